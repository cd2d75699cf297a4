package import MartletCrypto
package import MartletJOSE
package import MartletJSON

/// A simulated issuer's key pair.
package struct SimulatedKey: Sendable {
    package let id: KeyID
    package let privateKey: PrivateKey

    package init(id: KeyID, privateKey: PrivateKey) {
        self.id = id
        self.privateKey = privateKey
    }

    package var algorithm: SignatureAlgorithm { privateKey.publicKey.parts.algorithm }

    /// The public key as a JWK (RFC 7517 §4).
    package var jwk: JSONObject { privateKey.publicKey.parts.jwk(named: id.text) }
}
