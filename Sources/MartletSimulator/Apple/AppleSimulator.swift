package import MartletCore
package import MartletCrypto
private import MartletJOSE
private import MartletJSON

/// A simulated Apple without HTTP: its keys, the document that publishes them, valid and invalid tokens, and its books of
/// developers, users, codes and tokens.
package final class AppleSimulator: Sendable {
    /// Kinds of tokens that a gateway must distinguish.
    package enum Sample: String, Sendable, CaseIterable {
        case good
        /// Expired an hour ago.
        case expired
        /// Signed with an unpublished key under the id of a published one.
        case forged
        /// For another app.
        case otherAudience = "other_audience"
        /// Signed with an unpublished key under an unknown id.
        case unknownKey = "unknown_key"
        /// With `alg: none`.
        case unsigned
    }

    package static let issuer = "https://appleid.apple.com"
    private static let lifetime: Int64 = 24 * 3600

    private let signing: AppleSigningKeys
    /// A developer's key for client secrets, which is registered; `nil` if others were given.
    package let developer: DeveloperKeyPair?
    let records: AppleRecords
    let transfers = Lock(Transfers(capacity: AppleRecords.capacity))
    /// What arrives at Apple's endpoints.
    let log = Lock(RequestLog())
    /// The errors that tests inject there.
    let errors = Lock(ErrorInjection())
    let clock: Clock

    /// The team of the generated developer's key.
    package static let generatedTeamID = "SIMTEAM001"
    /// The id of the generated developer's key.
    package static let generatedKeyID = "SIMKEY0001"

    /// - Parameters:
    ///   - clock: the time of tokens and of their expiry.
    ///   - signing: the keys of its signatures; without any, they are generated.
    ///   - developers: the keys of developers; without any, one is generated.
    ///   - refreshesPerDay: how often a refresh token may be verified within a day; `nil` is no limit.
    package init(
        clock: Clock, signing: AppleSigningKeys? = nil, developers: [DeveloperKey] = [], refreshesPerDay: Int? = nil
    ) throws(CryptoError) {
        self.signing = if let signing { signing } else { try AppleSigningKeys() }
        self.clock = clock
        records = AppleRecords(clock: clock, refreshesPerDay: refreshesPerDay)
        developer =
            developers.isEmpty
            ? try DeveloperKeyPair(teamID: Self.generatedTeamID, keyID: Self.generatedKeyID) : nil
        for key in developers + (developer.map { [$0.key] } ?? []) { _ = register(key) }
    }

    /// Three published RSA keys, like Apple's.
    package var keys: [SimulatedKey] { signing.keys }
    var key: SimulatedKey { signing.key }
    /// A published P-256 key; only gateways that allow ES256 use it.
    package var ellipticKey: SimulatedKey { signing.ellipticKey }

    /// Registers a developer's key.
    /// - Returns: `false` if there are too many.
    package func register(_ key: DeveloperKey) -> Bool { records.withBooks { $0.keys.register(key) } }

    /// Generates a developer's key and registers it.
    /// - Throws: `crypto.bad_key` for ids that are not ten characters of `A-Z 0-9`, or if there are too many keys.
    package func makeDeveloperKey(
        teamID: String, keyID: String, clientIDs: [String] = []
    ) throws(CryptoError) -> DeveloperKeyPair {
        let pair = try DeveloperKeyPair(teamID: teamID, keyID: keyID, clientIDs: clientIDs)
        guard register(pair.key) else { throw CryptoError(.cryptoBadKey, "too many keys are registered") }
        return pair
    }

    /// The response of `/auth/keys`.
    package var keySetDocument: [UInt8] { Self.document(keys + [ellipticKey]) }

    /// A JWKS document of some keys.
    package static func document(_ keys: [SimulatedKey]) -> [UInt8] {
        JSON.write(JSONValue.object(["keys": .array(keys.map { .object($0.jwk) })]))
    }
}

// MARK: - Minting

extension AppleSimulator {
    /// A token as Apple would issue it now, not yet signed; its header names the first key.
    package func token(audience: String, subject: String) -> IdentityToken {
        token(audience: audience, subject: subject, issuedAt: clock.unixTime)
    }

    private func token(audience: String, subject: String, issuedAt: UnixTime) -> IdentityToken {
        var token = IdentityToken(
            header: ["kid": .string(key.id.text), "alg": .string(key.algorithm.rawValue)],
            claims: [
                "iss": .string(Self.issuer), "aud": .string(audience),
                "exp": .integer(issuedAt.advanced(bySeconds: Self.lifetime).seconds), "iat": .integer(issuedAt.seconds),
                "sub": .string(subject), "email": "abc123xyz@privaterelay.appleid.com", "email_verified": "true",
                "is_private_email": "true", "auth_time": .integer(issuedAt.seconds), "nonce_supported": true,
                "real_user_status": 2,
            ])
        let now = clock.unixTime
        token.claims["transfer_sub"] = transfers.withLock { $0.transferSubject(of: subject, at: now) }.map {
            .string($0)
        }
        return token
    }

    /// Signs a token with one of the simulator's keys, and sets the header to name it.
    package func mint(_ token: IdentityToken, by key: SimulatedKey) throws(CryptoError) -> String {
        var token = token
        token.header["kid"] = .string(key.id.text)
        token.header["alg"] = .string(key.algorithm.rawValue)
        return try token.signed(by: key.privateKey)
    }

    /// Signs a token with an unpublished key; the header is unchanged.
    package func forge(_ token: IdentityToken) throws(CryptoError) -> String {
        try token.signed(by: signing.unpublishedKey)
    }

    /// A signed token of a kind.
    package func mint(_ sample: Sample, audience: String, subject: String) throws(CryptoError) -> String {
        var token = token(audience: audience, subject: subject)
        switch sample {
        case .good: return try mint(token, by: key)
        case .expired:
            let then = clock.unixTime.advanced(bySeconds: -Self.lifetime - 3600)
            return try mint(self.token(audience: audience, subject: subject, issuedAt: then), by: key)
        case .forged: return try token.signed(by: signing.unpublishedKey)
        case .otherAudience:
            token.claims["aud"] = "com.somebody.else"
            return try mint(token, by: key)
        case .unknownKey:
            token.header["kid"] = "nobody"
            return try token.signed(by: signing.unpublishedKey)
        case .unsigned:
            token.header["alg"] = "none"
            return try token.signed(by: signing.unpublishedKey)
        }
    }
}
