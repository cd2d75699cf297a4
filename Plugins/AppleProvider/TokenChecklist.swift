internal import MartletConfig
internal import MartletCore
internal import MartletJOSE
internal import MartletProvider

/// What a verified identity token says.
struct VerifiedToken {
    let identity: Identity
    /// All claims, including those that only serve to verify the token, such as `nonce`.
    let claims: AppleClaims
}

/// The list of checks that an identity token must pass.
///
/// Requests, logins and `martlet explain` all run it. The order is fixed: the payload is not trusted before the
/// signature is verified, and each check has its own error code.
struct TokenChecklist {
    /// How far ahead Apple's clock may be, in seconds, for `iat`, `nbf` and `auth_time`.
    private static let clockSkew: Int64 = 60
    /// The longest lifetime of a token, in seconds; Apple's tokens have 24 hours.
    private static let maximumLifetime: Int64 = 48 * 3600

    let configuration: AppleConfiguration
    /// How long after `iat` a token is accepted.
    let maximumAge: Duration
    /// The parsed headers of Apple's tokens.
    let headers: JWSHeaderCache

    /// Runs the checks up to the first that fails.
    ///
    /// - Parameter lookup: finds a key: among the cached ones, or the result of a fetch.
    func run(
        _ token: [UInt8], at now: UnixTime, log: inout CheckLog, lookup: (KeyID) -> IssuerKeys.Lookup
    ) throws(AppleError) -> VerifiedToken {
        let jws = try log.check("form") { () throws(AppleError) in
            try mappingErrors { () throws(JOSEError) in try CompactJWS(token, headers: headers) }
        }
        try checkSignature(of: jws, log: &log, lookup: lookup)

        let claims = AppleClaims(jws.payload)
        let issuer = try log.check("issuer") { () throws(AppleError) in
            try claims.issuer(among: configuration.issuers)
        }
        log.note("iss \(issuer)")
        let audience = try log.check("audience") { () throws(AppleError) in
            try claims.audience(among: configuration.audiences)
        }
        log.note("aud \(shown(audience))")

        let times = try checkTimes(of: claims, at: now, log: &log)
        let subject = try log.check("subject") { () throws(AppleError) in try claims.subject() }
        log.note("sub \(shown(subject))")
        try log.check("token kind") { () throws(AppleError) in try claims.rejectEvents() }
        let values = try log.check("claims") { () throws(AppleError) in try claims.normalized() }
        let identity = Identity(
            providerSubject: subject, issuer: issuer, claims: values, authTime: times.authTime ?? times.issuedAt,
            issuedAt: times.issuedAt, expiresAt: times.end)
        return VerifiedToken(identity: identity, claims: claims)
    }

    /// Runs the checks of a notification: the same up to its times, but it must have events and needs no subject.
    func runNotification(
        _ token: [UInt8], at now: UnixTime, lookup: (KeyID) -> IssuerKeys.Lookup
    ) throws(AppleError) -> AppleClaims {
        var log = CheckLog(recorded: false)
        let jws = try mappingErrors { () throws(JOSEError) in try CompactJWS(token, headers: headers) }
        try checkSignature(of: jws, log: &log, lookup: lookup)
        let claims = AppleClaims(jws.payload)
        _ = try claims.issuer(among: configuration.issuers)
        _ = try claims.audience(among: configuration.audiences)
        _ = try checkTimes(of: claims, at: now, log: &log)
        return claims
    }

    private func mappingErrors<Value>(_ body: () throws(JOSEError) -> Value) throws(AppleError) -> Value {
        do { return try body() } catch { throw AppleError(error) }
    }
}

// MARK: - Signature

extension TokenChecklist {
    private func checkSignature(
        of jws: CompactJWS, log: inout CheckLog, lookup: (KeyID) -> IssuerKeys.Lookup
    ) throws(AppleError) {
        let algorithm = try log.check("algorithm") { () throws(AppleError) in
            try mappingErrors { () throws(JOSEError) in try jws.algorithm(among: configuration.algorithms) }
        }
        log.note("alg \(algorithm.rawValue)")
        try log.check("header fields") { () throws(AppleError) in
            try mappingErrors { () throws(JOSEError) in try jws.checkHeaderFields() }
        }
        let key = try log.check("key") { () throws(AppleError) in try selectKey(of: jws, lookup) }
        log.note("kid \(key.id)")
        try log.check("key algorithm") { () throws(AppleError) in
            guard key.serves(algorithm) else {
                let others = key.algorithms.map(\.rawValue).joined(separator: ", ")
                throw AppleError(JOSEError(.keyUnusable, "key \(key.id) is for \(others)"))
            }
        }
        try log.check("signature") { () throws(AppleError) in
            guard key.verify(signature: jws.signature, signingInput: jws.signingInput, as: algorithm) else {
                throw .badSignature("the signature does not verify with key \(key.id)")
            }
        }
    }

    private func selectKey(
        of jws: CompactJWS, _ lookup: (KeyID) -> IssuerKeys.Lookup
    ) throws(AppleError) -> VerificationKey {
        let id = try mappingErrors { () throws(JOSEError) in try jws.keyID() }
        switch lookup(id) {
        case .key(let key): return key
        case .unusable: throw AppleError(JOSEError(.keyUnusable, "key \(id) of Apple's key set is not usable"))
        case .unknown: throw AppleError(JOSEError(.unknownKey, "Apple's key set has no key \(id)"))
        case .undecided: throw .undecided(id)
        case .unavailable: throw .unavailable
        }
    }
}

// MARK: - Times

extension TokenChecklist {
    /// When a token was issued and when it ceases to be accepted.
    private struct Times {
        let issuedAt: UnixTime
        let authTime: UnixTime?
        let end: UnixTime
    }

    private func checkTimes(
        of claims: AppleClaims, at now: UnixTime, log: inout CheckLog
    ) throws(AppleError) -> Times {
        let leeway = configuration.leeway.wholeSeconds
        let expiry = try log.check("expiry") { () throws(AppleError) in
            guard let expiry = try claims.time(.expiry) else { throw .badTimes("exp is missing") }
            guard now < expiry.advanced(bySeconds: leeway) else {
                throw .expired("exp \(expiry) is in the past, now is \(now)")
            }
            return expiry
        }
        log.note("exp \(expiry)")
        let issuedAt = try log.check("life") { () throws(AppleError) in
            guard let issuedAt = try claims.time(.issuedAt) else { throw .badTimes("iat is missing") }
            guard expiry > issuedAt, expiry <= issuedAt.advanced(bySeconds: Self.maximumLifetime) else {
                throw .badTimes("the lifetime from iat \(issuedAt) to exp \(expiry) is not between 0 and 48 hours")
            }
            return issuedAt
        }
        log.note("iat \(issuedAt)")
        let latest = now.advanced(bySeconds: Self.clockSkew)
        // The first instant at which the token is too old.
        let ageLimit = issuedAt.advanced(bySeconds: maximumAge.wholeSeconds).advanced(bySeconds: 1)
        try log.check("age") { () throws(AppleError) in
            guard issuedAt <= latest else { throw .issuedInFuture("iat \(issuedAt) is in the future, now is \(now)") }
            guard now < ageLimit else { throw .tooOld("iat \(issuedAt) is too old, now is \(now)") }
        }
        let authTime = try log.check("other times") { () throws(AppleError) in
            try otherTimes(of: claims, at: now, notAfter: latest)
        }
        return Times(issuedAt: issuedAt, authTime: authTime, end: min(expiry.advanced(bySeconds: leeway), ageLimit))
    }

    private func otherTimes(
        of claims: AppleClaims, at now: UnixTime, notAfter latest: UnixTime
    ) throws(AppleError) -> UnixTime? {
        if let start = try claims.time(.notBefore), start > latest {
            throw .notYetValid("nbf \(start) is in the future, now is \(now)")
        }
        guard let authTime = try claims.time(.authTime) else { return nil }
        guard authTime <= latest else { throw .issuedInFuture("auth_time \(authTime) is in the future, now is \(now)") }
        return authTime
    }
}
