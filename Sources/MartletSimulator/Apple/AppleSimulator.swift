package import MartletCore
package import MartletCrypto
private import MartletJOSE
private import MartletJSON

/// A simulated Apple without HTTP: its keys, the document that publishes them, and valid and invalid tokens.
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

    /// Three published RSA keys, like Apple's.
    package let keys: [SimulatedKey]
    /// A published P-256 key; only gateways that allow ES256 use it.
    package let ellipticKey: SimulatedKey
    private let unpublishedKey: PrivateKey
    private let clock: Clock

    /// Generates new keys with new ids, so that keys cached from another run do not match.
    package init(clock: Clock) throws(CryptoError) {
        var keys: [SimulatedKey] = []
        for _ in 0..<3 { keys.append(try Self.makeKey(.rsa2048)) }
        self.keys = keys
        ellipticKey = try Self.makeKey(.p256)
        unpublishedKey = try PrivateKey(generating: .rsa2048)
        self.clock = clock
    }

    private static func makeKey(_ kind: PrivateKey.Kind) throws(CryptoError) -> SimulatedKey {
        let name = Base64URL.encode(try RandomBytes.make(6))
        guard let id = KeyID(name) else { throw CryptoError(.cryptoFailure, "\(name) is not a key id") }
        return SimulatedKey(id: id, privateKey: try PrivateKey(generating: kind))
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
        IdentityToken(
            header: header(key: keys.first?.id, algorithm: .rs256),
            claims: [
                "iss": .string(Self.issuer), "aud": .string(audience),
                "exp": .integer(issuedAt.advanced(bySeconds: Self.lifetime).seconds), "iat": .integer(issuedAt.seconds),
                "sub": .string(subject), "email": "abc123xyz@privaterelay.appleid.com", "email_verified": "true",
                "is_private_email": "true", "auth_time": .integer(issuedAt.seconds), "nonce_supported": true,
                "real_user_status": 2,
            ])
    }

    private func header(key: KeyID?, algorithm: SignatureAlgorithm) -> JSONObject {
        ["kid": .string(key?.text ?? ""), "alg": .string(algorithm.rawValue)]
    }

    /// Signs a token with one of the simulator's keys, and sets the header to name it.
    package func mint(_ token: IdentityToken, by key: SimulatedKey) throws(CryptoError) -> String {
        var token = token
        token.header["kid"] = .string(key.id.text)
        token.header["alg"] = .string(key.algorithm.rawValue)
        return try token.signed(by: key.privateKey)
    }

    /// Signs a token with an unpublished key; the header is unchanged.
    package func forge(_ token: IdentityToken) throws(CryptoError) -> String { try token.signed(by: unpublishedKey) }

    /// A signed token of a kind.
    package func mint(_ sample: Sample, audience: String, subject: String) throws(CryptoError) -> String {
        guard let key = keys.first else { throw CryptoError(.cryptoFailure, "the simulator has no key") }
        var token = token(audience: audience, subject: subject)
        switch sample {
        case .good: return try mint(token, by: key)
        case .expired:
            let then = clock.unixTime.advanced(bySeconds: -Self.lifetime - 3600)
            return try mint(self.token(audience: audience, subject: subject, issuedAt: then), by: key)
        case .forged: return try token.signed(by: unpublishedKey)
        case .otherAudience:
            token.claims["aud"] = "com.somebody.else"
            return try mint(token, by: key)
        case .unknownKey:
            token.header["kid"] = "nobody"
            return try token.signed(by: unpublishedKey)
        case .unsigned:
            token.header["alg"] = "none"
            return try token.signed(by: unpublishedKey)
        }
    }
}
