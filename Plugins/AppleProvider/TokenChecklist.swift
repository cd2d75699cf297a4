internal import MartletConfig
internal import MartletCore
internal import MartletJOSE
internal import MartletProvider

/// What an identity token that holds has shown.
struct CheckedToken {
    let identity: Identity
    /// Also those that say nothing about the person, such as `nonce`.
    let claims: AppleClaims
}

/// The one list of checks that makes an identity of an identity token.
///
/// Requests, logins and `martlet explain` all run it. The order is fixed: nothing of the payload is believed before the
/// signature holds, and each check has its own reason.
struct TokenChecklist {
    /// How far ahead Apple's clock may be, for `iat`, `nbf` and `auth_time`.
    private static let clockSkew: Int64 = 60
    /// The longest life that a token may claim; Apple's have 24 hours.
    private static let longestLife: Int64 = 48 * 3600

    let configuration: AppleConfiguration
    /// How long after `iat` a token counts.
    let maximumAge: Duration
    /// The headers that Apple's tokens have.
    let headers: JWSHeaderMemory

    /// Runs the checks up to the first that fails.
    ///
    /// - Parameter lookup: how a key is found: from memory, or as a fetch has settled it.
    func run(
        _ token: [UInt8], at now: UnixTime, trail: inout CheckTrail, lookup: (KeyID) -> IssuerKeys.Lookup
    ) throws(Refusal) -> CheckedToken {
        let jws = try trail.check("form") { () throws(Refusal) in
            try refusing { () throws(JOSEError) in try CompactJWS(token, headers: headers) }
        }
        try checkSignature(of: jws, trail: &trail, lookup: lookup)

        let claims = AppleClaims(jws.payload)
        let issuer = try trail.check("issuer") { () throws(Refusal) in
            try claims.issuer(among: configuration.issuers)
        }
        trail.note("iss \(issuer)")
        let audience = try trail.check("audience") { () throws(Refusal) in
            try claims.audience(among: configuration.audiences)
        }
        trail.note("aud \(shown(audience))")

        let times = try checkTimes(of: claims, at: now, trail: &trail)
        let subject = try trail.check("subject") { () throws(Refusal) in try claims.subject() }
        trail.note("sub \(shown(subject))")
        try trail.check("token kind") { () throws(Refusal) in try claims.refuseEvents() }
        let values = try trail.check("claims") { () throws(Refusal) in try claims.normalised() }
        let identity = Identity(
            providerSubject: subject, issuer: issuer, claims: values, authTime: times.authTime ?? times.issuedAt,
            issuedAt: times.issuedAt, expiresAt: times.end)
        return CheckedToken(identity: identity, claims: claims)
    }

    private func refusing<Found>(_ body: () throws(JOSEError) -> Found) throws(Refusal) -> Found {
        do { return try body() } catch { throw Refusal(error) }
    }
}

// MARK: - Signature

extension TokenChecklist {
    private func checkSignature(
        of jws: CompactJWS, trail: inout CheckTrail, lookup: (KeyID) -> IssuerKeys.Lookup
    ) throws(Refusal) {
        let algorithm = try trail.check("algorithm") { () throws(Refusal) in
            try refusing { () throws(JOSEError) in try jws.algorithm(among: configuration.algorithms) }
        }
        trail.note("alg \(algorithm.rawValue)")
        try trail.check("header fields") { () throws(Refusal) in
            try refusing { () throws(JOSEError) in try jws.checkHeaderFields() }
        }
        let key = try trail.check("key") { () throws(Refusal) in try chosenKey(of: jws, lookup) }
        trail.note("kid \(key.id)")
        try trail.check("key algorithm") { () throws(Refusal) in
            guard key.algorithm == algorithm else {
                throw Refusal(JOSEError(.keyUnusable, "key \(key.id) is for \(key.algorithm.rawValue)"))
            }
        }
        try trail.check("signature") { () throws(Refusal) in
            guard key.verify(signature: jws.signature, signingInput: jws.signingInput) else {
                throw .badSignature("the signature is not that of key \(key.id)")
            }
        }
    }

    private func chosenKey(
        of jws: CompactJWS, _ lookup: (KeyID) -> IssuerKeys.Lookup
    ) throws(Refusal) -> VerificationKey {
        let id = try refusing { () throws(JOSEError) in try jws.keyID() }
        switch lookup(id) {
        case .key(let key): return key
        case .unusable: throw Refusal(JOSEError(.keyUnusable, "key \(id) of Apple's set may not be used"))
        case .unknown: throw Refusal(JOSEError(.unknownKey, "Apple's set has no key \(id)"))
        case .undecided: throw .undecided(id)
        case .unavailable: throw .unavailable
        }
    }
}

// MARK: - Times

extension TokenChecklist {
    /// When a token was made and when nothing may rely on it any more.
    private struct Times {
        let issuedAt: UnixTime
        let authTime: UnixTime?
        let end: UnixTime
    }

    private func checkTimes(
        of claims: AppleClaims, at now: UnixTime, trail: inout CheckTrail
    ) throws(Refusal) -> Times {
        let leeway = configuration.leeway.wholeSeconds
        let expiry = try trail.check("expiry") { () throws(Refusal) in
            guard let expiry = try claims.time(.expiry) else { throw .badTimes("exp is missing") }
            guard now < expiry.advanced(bySeconds: leeway) else {
                throw .expired("exp \(expiry) is past, it is \(now)")
            }
            return expiry
        }
        trail.note("exp \(expiry)")
        let issuedAt = try trail.check("life") { () throws(Refusal) in
            guard let issuedAt = try claims.time(.issuedAt) else { throw .badTimes("iat is missing") }
            guard expiry > issuedAt, expiry <= issuedAt.advanced(bySeconds: Self.longestLife) else {
                throw .badTimes("the life from iat \(issuedAt) to exp \(expiry) is not between 0 and 48 hours")
            }
            return issuedAt
        }
        trail.note("iat \(issuedAt)")
        let latest = now.advanced(bySeconds: Self.clockSkew)
        // The first instant at which the token is too old.
        let ageLimit = issuedAt.advanced(bySeconds: maximumAge.wholeSeconds).advanced(bySeconds: 1)
        try trail.check("age") { () throws(Refusal) in
            guard issuedAt <= latest else { throw .issuedInFuture("iat \(issuedAt) is ahead, it is \(now)") }
            guard now < ageLimit else { throw .tooOld("iat \(issuedAt) is too long ago, it is \(now)") }
        }
        let authTime = try trail.check("other times") { () throws(Refusal) in
            try otherTimes(of: claims, at: now, notAfter: latest)
        }
        return Times(issuedAt: issuedAt, authTime: authTime, end: min(expiry.advanced(bySeconds: leeway), ageLimit))
    }

    private func otherTimes(
        of claims: AppleClaims, at now: UnixTime, notAfter latest: UnixTime
    ) throws(Refusal) -> UnixTime? {
        if let start = try claims.time(.notBefore), start > latest {
            throw .notYetValid("nbf \(start) is ahead, it is \(now)")
        }
        guard let authTime = try claims.time(.authTime) else { return nil }
        guard authTime <= latest else { throw .issuedInFuture("auth_time \(authTime) is ahead, it is \(now)") }
        return authTime
    }
}
