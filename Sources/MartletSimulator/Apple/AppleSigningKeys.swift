private import MartletCore
package import MartletCrypto
package import MartletJOSE
package import MartletJSON

/// The keys with which a simulated Apple signs.
package struct AppleSigningKeys: Sendable {
    /// Three published RSA keys, like Apple's.
    let keys: [SimulatedKey]
    /// The first of them.
    let key: SimulatedKey
    /// A published P-256 key; only gateways that allow ES256 use it.
    let ellipticKey: SimulatedKey
    /// Signs what is forged.
    let unpublishedKey: PrivateKey

    /// Generates new keys with new ids, so that keys cached from another run do not match.
    package init() throws(CryptoError) {
        key = try Self.makeKey(.rsa2048)
        keys = [key, try Self.makeKey(.rsa2048), try Self.makeKey(.rsa2048)]
        ellipticKey = try Self.makeKey(.p256)
        unpublishedKey = try PrivateKey(generating: .rsa2048)
    }

    private static func makeKey(_ kind: PrivateKey.Kind) throws(CryptoError) -> SimulatedKey {
        let name = Base64URL.encode(try RandomBytes.make(6))
        guard let id = KeyID(name) else { throw CryptoError(.cryptoFailure, "\(name) is not a key id") }
        return SimulatedKey(id: id, privateKey: try PrivateKey(generating: kind))
    }
}

/// A simulated issuer's key pair.
package struct SimulatedKey: Sendable {
    package let id: KeyID
    package let privateKey: PrivateKey

    package var algorithm: SignatureAlgorithm { privateKey.publicKey.parts.algorithm }

    /// The public key as a JWK (RFC 7517 §4).
    package var jwk: JSONObject { privateKey.publicKey.parts.jwk(named: id.text) }
}

/// An unsigned identity token, whose header and claims may be changed.
package struct IdentityToken: Sendable {
    package var header: JSONObject
    package var claims: JSONObject

    package init(header: JSONObject, claims: JSONObject) {
        self.header = header
        self.claims = claims
    }

    /// The compact form, signed with a key regardless of the header.
    package func signed(by key: PrivateKey) throws(CryptoError) -> String {
        let input = "\(Base64URL.encode(JSON.write(header))).\(Base64URL.encode(JSON.write(claims)))"
        return "\(input).\(Base64URL.encode(try key.sign(Array(input.utf8))))"
    }
}
