public import MartletCore
public import MartletJOSE
public import MartletJSON

/// The checks that every signed token of an issuer must pass, as a value: what differs between providers are its
/// properties.
///
/// Requests, logins and `martlet explain` all run them. The order is fixed: the payload is not trusted before the
/// signature is verified, and each check has its own error code. A provider adds its own checks after them.
public struct TokenChecks: Sendable {
    /// How the claim of the audience may name it.
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
    /// The claim that names the audience, if it is not `aud`.
    public var audienceClaim: ClaimPath?
    public var audienceForm: AudienceForm = .single
    /// How long after `exp` a token is still accepted.
    public var leeway: Duration = .zero
    /// How long after `iat` a token is accepted.
    public var maximumAge: Duration
    /// Whether a token is accepted until it expires, whatever its age, and also without `iat`.
    public var acceptsAnyAge = false
    /// The longest time from `iat` to `exp`; `nil` for any.
    public var maximumLifetime: Duration?
    /// Whether a token need not name its key, where the issuer has only one (OpenID Connect Core §10.1).
    public var acceptsUnnamedKeys = false
    /// Whether `iss`, `exp` and `iat` may be missing: in claims that the issuer itself has just sent, not in a token.
    public var isOnline = false
    /// Whether tokens are only accepted in the one form that their issuer is known to write: no fraction of a second, no
    /// header field that names a key but `kid`, and `typ` in one spelling.
    public var isStrict = false
    /// The maximum length of a token in bytes.
    public var maximumTokenBytes = CompactJWS.maximumLength
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
        /// The oldest instant of all for a token that does not say.
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
            try mappingErrors { () throws(JOSEError) in
                try CompactJWS(token, maximumLength: maximumTokenBytes, headers: headers)
            }
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
        log.note("\(audienceName) \(ShownText.make(audience))")
        let times = try checkTimes(of: claims, at: now, log: &log)
        return Checked(claims: claims, issuer: issuer, audience: audience, times: times)
    }

    /// Checks the identifier of the user: 1 to 255 bytes without control characters.
    /// - Parameter name: the claim that has it, if it is not `sub`.
    public func subject(
        of claims: TokenClaims, named name: String? = nil, log: inout CheckLog
    ) throws(TokenError) -> String {
        try subject(of: claims, in: name.map { ClaimPath($0) }, acceptsNumbers: false, log: &log)
    }

    /// Checks the identifier of the user: 1 to 255 bytes without control characters.
    /// - Parameter path: the claim that has it, which may also be a whole number then; `nil` for the text in `sub`.
    public func subject(
        of claims: TokenClaims, in path: ClaimPath?, log: inout CheckLog
    ) throws(TokenError) -> String {
        try subject(of: claims, in: path, acceptsNumbers: path != nil, log: &log)
    }

    private func subject(
        of claims: TokenClaims, in path: ClaimPath?, acceptsNumbers: Bool, log: inout CheckLog
    ) throws(TokenError) -> String {
        let name = path?.description ?? "sub"
        let subject = try log.check("subject") { () throws(TokenError) in
            let limit = TokenClaims.maximumIdentifierBytes
            let value = if let path { path.value(in: claims.payload) } else { claims[.subject] }
            let text = value?.string ?? (acceptsNumbers ? value.flatMap(Self.digits) : nil)
            guard let subject = text, (1...limit).contains(subject.utf8.count) else {
                throw rejected(
                    "bad_subject", "\(name) is not a string of 1 to \(limit) bytes, but \(ShownText.kind(of: value))")
            }
            guard !TokenClaims.hasControl(subject) else {
                throw rejected("bad_subject", "\(name) contains control characters")
            }
            return subject
        }
        log.note("\(name) \(ShownText.make(subject))")
        return subject
    }

    /// A whole number as text: of several spellings of a number, only the plain one.
    private static func digits(_ value: JSONValue) -> String? {
        guard case .number(let number) = value, number.text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else {
            return nil
        }
        return number.text
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
            try mappingErrors { () throws(JOSEError) in
                try jws.checkHeaderFields(accepting: types)
                if isStrict { try jws.checkNoUnusualFields() }
            }
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
        guard let issuer = value?.string else {
            throw rejected("bad_issuer", "iss is not a string, but \(ShownText.kind(of: value))")
        }
        guard issuers.contains(where: { issuer.hasSameBytes(as: $0) }) else {
            let expected = issuers.prefix(2).joined(separator: " or ")
            throw rejected("bad_issuer", "iss is \(ShownText.make(issuer)), not \(expected)")
        }
        return issuer
    }

    private func audience(of claims: TokenClaims) throws(TokenError) -> String {
        let value = if let path = audienceClaim { path.value(in: claims.payload) } else { claims[.audience] }
        if let audience = value?.string {
            guard accepts(audience) else { throw otherAudience(ShownText.make(audience)) }
            return audience
        }
        guard let list = value?.array, audienceForm == .anyOf || list.count == 1 else {
            let forms = audienceForm == .anyOf ? "a list" : "a list of one"
            throw rejected(
                "bad_audience", "\(audienceName) is neither a string nor \(forms), but \(ShownText.kind(of: value))")
        }
        var found: String?
        for entry in list {
            guard let audience = entry.string else {
                throw rejected("bad_audience", "\(audienceName) has an entry that is not a string")
            }
            if found == nil, accepts(audience) { found = audience }
        }
        if let found { return found }
        let names = list.prefix(4).map { ShownText.make($0.string ?? "") }.joined(separator: ", ")
        throw otherAudience("[\(names)\(list.count > 4 ? ", …" : "")]")
    }

    private var audienceName: String { audienceClaim?.description ?? "aud" }

    private func otherAudience(_ shown: String) -> TokenError {
        rejected("bad_audience", "\(audienceName) is \(shown), not \(audiences.prefix(4).joined(separator: " or "))")
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
        let issued = try log.check("life") { () throws(TokenError) in
            try self.issuedAt(of: claims, before: expiry, at: now)
        }
        log.note(issued.map { "iat \($0.floor)" } ?? "no iat")
        let latest = now.advanced(bySeconds: Self.clockSkew)
        let ageLimit = try log.check("age") { () throws(TokenError) in
            try checkAge(issued, at: now, notAfter: latest)
        }
        let authTime = try log.check("other times") { () throws(TokenError) in
            try otherTimes(of: claims, at: now, notAfter: latest)
        }
        let end = expiry.map { $0.advanced(bySeconds: leeway.wholeSeconds) }
        // What never ends is asked about once a day.
        let last = now.advanced(bySeconds: 86_400)
        return Times(
            issuedAt: issued?.floor ?? UnixTime(seconds: 0), authTime: authTime,
            end: min(end ?? ageLimit ?? last, ageLimit ?? end ?? last))
    }

    /// - Returns: the first instant at which the token is too old; `nil` if it never is.
    private func checkAge(
        _ issued: NumericDate?, at now: UnixTime, notAfter latest: UnixTime
    ) throws(TokenError) -> UnixTime? {
        guard let issued else { return nil }
        guard issued.ceiling <= latest else {
            throw rejected("issued_in_future", "iat \(issued.ceiling) is in the future, now is \(now)")
        }
        guard !acceptsAnyAge else { return nil }
        let limit = issued.floor.advanced(bySeconds: maximumAge.wholeSeconds).advanced(bySeconds: 1)
        guard now < limit else {
            throw rejected(
                "too_old", "iat \(issued.floor) is more than \(maximumAge.wholeSeconds) s ago, now is \(now)")
        }
        return limit
    }

    /// `nil` only if it may be missing.
    private func expiry(of claims: TokenClaims, at now: UnixTime) throws(TokenError) -> UnixTime? {
        guard let expiry = try time(.expiry, of: claims)?.floor else {
            guard isOnline else { throw rejected("bad_times", "exp is missing") }
            return nil
        }
        guard now < expiry.advanced(bySeconds: leeway.wholeSeconds) else {
            throw rejected("expired", "exp \(expiry) is in the past, now is \(now)")
        }
        return expiry
    }

    /// `nil` only if it may be missing.
    private func issuedAt(
        of claims: TokenClaims, before expiry: UnixTime?, at now: UnixTime
    ) throws(TokenError) -> NumericDate? {
        guard let issuedAt = try time(.issuedAt, of: claims) else {
            if isOnline { return NumericDate(now) }
            guard acceptsAnyAge else { throw rejected("bad_times", "iat is missing") }
            return nil
        }
        guard let expiry else { return issuedAt }
        let start = issuedAt.floor
        if let maximumLifetime {
            guard expiry > start, expiry <= start.advanced(bySeconds: maximumLifetime.wholeSeconds) else {
                let hours = maximumLifetime.wholeSeconds / 3600
                throw rejected(
                    "bad_times", "the lifetime from iat \(start) to exp \(expiry) is not between 0 and \(hours) hours")
            }
        } else if expiry <= start {
            throw rejected("bad_times", "exp \(expiry) is not after iat \(start)")
        }
        return issuedAt
    }

    private func otherTimes(
        of claims: TokenClaims, at now: UnixTime, notAfter latest: UnixTime
    ) throws(TokenError) -> UnixTime? {
        if let start = try time(.notBefore, of: claims)?.ceiling, start > latest {
            throw rejected("not_yet_valid", "nbf \(start) is in the future, now is \(now)")
        }
        guard let authTime = try authenticationTime(of: claims) else { return nil }
        guard authTime.ceiling <= latest else {
            throw rejected("issued_in_future", "auth_time \(authTime.ceiling) is in the future, now is \(now)")
        }
        return authTime.floor
    }

    /// `auth_time`, which some issuers write as a text: as a number, or as RFC 3339 has it.
    private func authenticationTime(of claims: TokenClaims) throws(TokenError) -> NumericDate? {
        guard !isStrict, let text = claims[.authTime]?.string else { return try time(.authTime, of: claims) }
        if let time = UnixTime(rfc3339: text) { return NumericDate(time) }
        if let seconds = Int64(text), let time = NumericDate(.integer(seconds)) { return time }
        throw rejected("bad_times", "auth_time is no time: \(ShownText.make(text))")
    }

    /// - Returns: `nil` if the claim is absent.
    private func time(_ name: TokenClaims.Name, of claims: TokenClaims) throws(TokenError) -> NumericDate? {
        if isStrict, claims.isNull(name) { throw rejected("bad_times", "\(name.rawValue) is null") }
        guard let value = claims[name] else { return nil }
        guard let time = isStrict ? TokenClaims.time(value).map({ NumericDate($0) }) : NumericDate(value) else {
            throw rejected("bad_times", "\(name.rawValue) is not a number of seconds, but \(ShownText.kind(of: value))")
        }
        return time
    }
}
