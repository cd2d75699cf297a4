public import MartletCore
public import MartletJOSE
internal import MartletJSON

/// The checks that every signed token of an issuer must pass, as a value: what differs between providers are its
/// properties.
///
/// Requests, logins and `martlet explain` all run them. The order is fixed: the payload is not trusted before the
/// signature is verified, and each check has its own error code. A provider adds its own checks after them.
public struct TokenChecks: Sendable {
    /// How `aud` may name an audience.
    public enum AudienceForm: Sendable {
        /// A string, or a list of exactly one.
        case single
        /// A string, or a list of strings of which at least one is accepted.
        case anyOf
    }

    /// How far ahead the issuer's clock may be, in seconds, for `iat`, `nbf` and `auth_time`.
    public static let clockSkew: Int64 = 60

    /// What the codes of errors begin with: the kind of the provider.
    public let prefix: String
    /// Whose keys and tokens they are, as a possessive in messages: `Apple's`.
    public let owner: String
    /// The accepted algorithms; never empty.
    public var algorithms: Set<SignatureAlgorithm>
    /// The accepted values of the header's `typ`.
    public var types: [TokenType] = [.none, .jwt]
    /// The accepted values of `iss`, compared byte by byte.
    public var issuers: [String]
    /// The accepted values of `aud`, compared byte by byte; without one, no token is accepted.
    public var audiences: [String]
    public var audienceForm: AudienceForm = .single
    /// How long after `exp` a token is still accepted.
    public var leeway: Duration = .zero
    /// How long after `iat` a token is accepted.
    public var maximumAge: Duration
    /// The longest time from `iat` to `exp`; `nil` for any.
    public var maximumLifetime: Duration?
    /// Whether a token need not name its key, where the issuer has only one (OpenID Connect Core §10.1).
    public var acceptsUnnamedKeys = false
    /// Whether `iss`, `exp` and `iat` may be missing: in claims that the issuer itself has just sent, not in a token.
    public var isOnline = false
    /// The parsed headers of the issuer's tokens.
    private let headers: JWSHeaderCache

    /// - Parameter headers: shared by the checks of one issuer; it does not affect results.
    public init(
        prefix: String, owner: String, algorithms: Set<SignatureAlgorithm>, issuers: [String], audiences: [String],
        maximumAge: Duration, headers: JWSHeaderCache = JWSHeaderCache()
    ) {
        self.prefix = prefix
        self.owner = owner
        self.algorithms = algorithms
        self.issuers = issuers
        self.audiences = audiences
        self.maximumAge = maximumAge
        self.headers = headers
    }

    /// When a token was issued and when it ceases to be accepted.
    public struct Times: Sendable {
        public let issuedAt: UnixTime
        /// When the user authenticated; `nil` if the token does not say.
        public let authTime: UnixTime?
        /// The first instant at which the token is no longer accepted.
        public let end: UnixTime
    }

    /// Claims that have passed.
    public struct Checked: Sendable {
        public let claims: TokenClaims
        /// What the token was signed with; `nil` for claims without a signature.
        public internal(set) var algorithm: SignatureAlgorithm?
        public let issuer: String
        /// The audience that was accepted.
        public let audience: String
        public let times: Times
    }

    /// Runs the checks of a token up to the first that fails: everything but the subject.
    ///
    /// - Parameter lookup: finds a key: among the cached ones, or the result of a fetch; for `nil` the only one, with
    ///   ``acceptsUnnamedKeys`` alone.
    public func check(
        _ token: [UInt8], at now: UnixTime, log: inout CheckLog, lookup: (KeyID?) -> IssuerKeys.Lookup
    ) throws(TokenError) -> Checked {
        let jws = try log.check("form") { () throws(TokenError) in
            try mappingErrors { () throws(JOSEError) in try CompactJWS(token, headers: headers) }
        }
        let algorithm = try checkSignature(of: jws, log: &log, lookup: lookup)
        var checked = try check(TokenClaims(jws.payload), at: now, log: &log)
        checked.algorithm = algorithm
        return checked
    }

    /// Runs the checks of claims whose origin is proven: issuer, audience and times.
    public func check(_ claims: TokenClaims, at now: UnixTime, log: inout CheckLog) throws(TokenError) -> Checked {
        let issuer = try log.check("issuer") { () throws(TokenError) in try self.issuer(of: claims) }
        log.note("iss \(issuer)")
        let audience = try log.check("audience") { () throws(TokenError) in try self.audience(of: claims) }
        log.note("aud \(ShownText.make(audience))")
        let times = try checkTimes(of: claims, at: now, log: &log)
        return Checked(claims: claims, issuer: issuer, audience: audience, times: times)
    }

    /// Checks the identifier of the user: 1 to 255 bytes without control characters.
    /// - Parameter name: the claim that has it, if it is not `sub`.
    public func subject(
        of claims: TokenClaims, named name: String? = nil, log: inout CheckLog
    ) throws(TokenError) -> String {
        let subject = try log.check("subject") { () throws(TokenError) in
            let limit = TokenClaims.maximumIdentifierBytes
            let value = if let name { claims.payload[name] } else { claims[.subject] }
            guard let subject = value?.string, (1...limit).contains(subject.utf8.count) else {
                throw rejected("bad_subject", "\(name ?? "sub") is not a string of 1 to \(limit) bytes")
            }
            guard !TokenClaims.hasControl(subject) else {
                throw rejected("bad_subject", "\(name ?? "sub") contains control characters")
            }
            return subject
        }
        log.note("\(name ?? "sub") \(ShownText.make(subject))")
        return subject
    }

    /// An error of the provider: an invalid token.
    public func rejected(_ reason: String, _ message: String) -> TokenError {
        TokenError(.rejected, code: ErrorCode(rawValue: "\(prefix).\(reason)"), message: message)
    }

    private func mappingErrors<Value>(_ body: () throws(JOSEError) -> Value) throws(TokenError) -> Value {
        do { return try body() } catch { throw rejected(error.reason.rawValue, error.message) }
    }
}

// MARK: - Signature

extension TokenChecks {
    private func checkSignature(
        of jws: CompactJWS, log: inout CheckLog, lookup: (KeyID?) -> IssuerKeys.Lookup
    ) throws(TokenError) -> SignatureAlgorithm {
        let algorithm = try log.check("algorithm") { () throws(TokenError) in
            try mappingErrors { () throws(JOSEError) in try jws.algorithm(among: algorithms) }
        }
        log.note("alg \(algorithm.rawValue)")
        try log.check("header fields") { () throws(TokenError) in
            try mappingErrors { () throws(JOSEError) in try jws.checkHeaderFields(accepting: types) }
        }
        let key = try log.check("key") { () throws(TokenError) in try selectKey(of: jws, lookup) }
        log.note("kid \(key.id)")
        try log.check("key algorithm") { () throws(TokenError) in
            guard key.serves(algorithm) else {
                let others = key.algorithms.map(\.rawValue).joined(separator: ", ")
                throw rejected(JOSEError.Reason.keyUnusable.rawValue, "key \(key.id) is for \(others)")
            }
        }
        try log.check("signature") { () throws(TokenError) in
            guard key.verify(signature: jws.signature, signingInput: jws.signingInput, as: algorithm) else {
                let message = "the signature does not verify with key \(key.id)"
                guard isUnnamed(jws) else { throw rejected("bad_signature", message) }
                // The issuer may have another key by now.
                throw TokenError(
                    .undecided(nil), code: ErrorCode(rawValue: "\(prefix).bad_signature"), message: message)
            }
        }
        return algorithm
    }

    private func selectKey(
        of jws: CompactJWS, _ lookup: (KeyID?) -> IssuerKeys.Lookup
    ) throws(TokenError) -> VerificationKey {
        if isUnnamed(jws) { return try selectOnlyKey(lookup(nil)) }
        let id = try mappingErrors { () throws(JOSEError) in try jws.keyID() }
        switch lookup(id) {
        case .key(let key): return key
        case .unusable:
            throw rejected(JOSEError.Reason.keyUnusable.rawValue, "key \(id) of \(owner) key set is not usable")
        case .unknown: throw rejected(JOSEError.Reason.unknownKey.rawValue, "\(owner) key set has no key \(id)")
        case .undecided: throw undecided(id)
        case .unavailable: throw unavailable
        }
    }

    /// Whether the header has no `kid`, and need not have one; any other than a valid one is not accepted.
    private func isUnnamed(_ jws: CompactJWS) -> Bool { acceptsUnnamedKeys && !jws.header.fields.has("kid") }

    private func selectOnlyKey(_ found: IssuerKeys.Lookup) throws(TokenError) -> VerificationKey {
        switch found {
        case .key(let key): return key
        case .unusable, .unknown:
            throw rejected(
                JOSEError.Reason.unknownKey.rawValue, "the header names no key, and \(owner) key set has several")
        case .undecided: throw undecided(nil)
        case .unavailable: throw unavailable
        }
    }

    private func undecided(_ id: KeyID?) -> TokenError {
        TokenError(
            .undecided(id), code: ErrorCode(rawValue: "\(prefix).unknown_key"),
            message: "the key has not been fetched")
    }

    private var unavailable: TokenError {
        TokenError(
            .unavailable, code: ErrorCode(rawValue: "\(prefix).keys_unavailable"),
            message: "\(owner) keys are unavailable")
    }
}

// MARK: - Issuer and audience

extension TokenChecks {
    private func issuer(of claims: TokenClaims) throws(TokenError) -> String {
        let value = claims[.issuer]
        if value == nil, isOnline, let first = issuers.first { return first }
        guard let issuer = value?.string else { throw rejected("bad_issuer", "iss is not a string") }
        guard issuers.contains(where: { issuer.hasSameBytes(as: $0) }) else {
            throw rejected("bad_issuer", "iss is \(ShownText.make(issuer))")
        }
        return issuer
    }

    private func audience(of claims: TokenClaims) throws(TokenError) -> String {
        switch audienceForm {
        case .single:
            var value = claims[.audience]
            if let list = value?.array, list.count == 1 { value = list.first }
            guard let audience = value?.string else {
                throw rejected("bad_audience", "aud is neither a string nor a list of one")
            }
            guard accepts(audience) else { throw rejected("bad_audience", "aud is \(ShownText.make(audience))") }
            return audience
        case .anyOf: return try anyAudience(of: claims)
        }
    }

    private func anyAudience(of claims: TokenClaims) throws(TokenError) -> String {
        if let audience = claims[.audience]?.string {
            guard accepts(audience) else { throw rejected("bad_audience", "aud is \(ShownText.make(audience))") }
            return audience
        }
        guard let list = claims[.audience]?.array else {
            throw rejected("bad_audience", "aud is neither a string nor a list")
        }
        var found: String?
        for entry in list {
            guard let audience = entry.string else {
                throw rejected("bad_audience", "aud has an entry that is not a string")
            }
            if found == nil, accepts(audience) { found = audience }
        }
        guard let found else { throw rejected("bad_audience", "aud has \(list.count) entries, none is accepted") }
        return found
    }

    private func accepts(_ audience: String) -> Bool { audiences.contains { audience.hasSameBytes(as: $0) } }
}

// MARK: - Times

extension TokenChecks {
    private func checkTimes(
        of claims: TokenClaims, at now: UnixTime, log: inout CheckLog
    ) throws(TokenError) -> Times {
        let expiry = try log.check("expiry") { () throws(TokenError) in try self.expiry(of: claims, at: now) }
        if let expiry { log.note("exp \(expiry)") }
        let issuedAt = try log.check("life") { () throws(TokenError) in
            try self.issuedAt(of: claims, before: expiry, at: now)
        }
        log.note("iat \(issuedAt)")
        let latest = now.advanced(bySeconds: Self.clockSkew)
        // The first instant at which the token is too old.
        let ageLimit = issuedAt.advanced(bySeconds: maximumAge.wholeSeconds).advanced(bySeconds: 1)
        try log.check("age") { () throws(TokenError) in
            guard issuedAt <= latest else {
                throw rejected("issued_in_future", "iat \(issuedAt) is in the future, now is \(now)")
            }
            guard now < ageLimit else { throw rejected("too_old", "iat \(issuedAt) is too old, now is \(now)") }
        }
        let authTime = try log.check("other times") { () throws(TokenError) in
            try otherTimes(of: claims, at: now, notAfter: latest)
        }
        let end = expiry.map { min($0.advanced(bySeconds: leeway.wholeSeconds), ageLimit) } ?? ageLimit
        return Times(issuedAt: issuedAt, authTime: authTime, end: end)
    }

    /// `nil` only if it may be missing.
    private func expiry(of claims: TokenClaims, at now: UnixTime) throws(TokenError) -> UnixTime? {
        guard let expiry = try time(.expiry, of: claims) else {
            guard isOnline else { throw rejected("bad_times", "exp is missing") }
            return nil
        }
        guard now < expiry.advanced(bySeconds: leeway.wholeSeconds) else {
            throw rejected("expired", "exp \(expiry) is in the past, now is \(now)")
        }
        return expiry
    }

    private func issuedAt(
        of claims: TokenClaims, before expiry: UnixTime?, at now: UnixTime
    ) throws(TokenError) -> UnixTime {
        guard let issuedAt = try time(.issuedAt, of: claims) else {
            guard isOnline else { throw rejected("bad_times", "iat is missing") }
            return now
        }
        guard let expiry else { return issuedAt }
        if let maximumLifetime {
            guard expiry > issuedAt, expiry <= issuedAt.advanced(bySeconds: maximumLifetime.wholeSeconds) else {
                let hours = maximumLifetime.wholeSeconds / 3600
                throw rejected(
                    "bad_times",
                    "the lifetime from iat \(issuedAt) to exp \(expiry) is not between 0 and \(hours) hours")
            }
        } else if expiry <= issuedAt {
            throw rejected("bad_times", "exp \(expiry) is not after iat \(issuedAt)")
        }
        return issuedAt
    }

    private func otherTimes(
        of claims: TokenClaims, at now: UnixTime, notAfter latest: UnixTime
    ) throws(TokenError) -> UnixTime? {
        if let start = try time(.notBefore, of: claims), start > latest {
            throw rejected("not_yet_valid", "nbf \(start) is in the future, now is \(now)")
        }
        guard let authTime = try time(.authTime, of: claims) else { return nil }
        guard authTime <= latest else {
            throw rejected("issued_in_future", "auth_time \(authTime) is in the future, now is \(now)")
        }
        return authTime
    }

    /// - Returns: `nil` if the claim is absent.
    private func time(_ name: TokenClaims.Name, of claims: TokenClaims) throws(TokenError) -> UnixTime? {
        guard let value = claims[name] else { return nil }
        guard let time = TokenClaims.time(value) else {
            throw rejected("bad_times", "\(name.rawValue) is not a whole number of seconds")
        }
        return time
    }
}
