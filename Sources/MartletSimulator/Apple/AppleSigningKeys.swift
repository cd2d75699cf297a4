private import MartletCore
package import MartletCrypto
private import MartletJOSE

/// The keys with which a simulated Apple signs.
package struct AppleSigningKeys: Sendable {
    /// Three published RSA keys, like Apple's.
    let keys: [SimulatedKey]
    /// A published P-256 key; only gateways that allow ES256 use it.
    let ellipticKey: SimulatedKey
    /// Signs what is forged.
    let unpublishedKey: PrivateKey

    /// Generates new keys with new ids, so that keys cached from another run do not match.
    package init() throws(CryptoError) {
        var keys: [SimulatedKey] = []
        for _ in 0..<3 { keys.append(try Self.makeKey(.rsa2048)) }
        self.keys = keys
        ellipticKey = try Self.makeKey(.p256)
        unpublishedKey = try PrivateKey(generating: .rsa2048)
    }

    private static func makeKey(_ kind: PrivateKey.Kind) throws(CryptoError) -> SimulatedKey {
        let name = Base64URL.encode(try RandomBytes.make(6))
        guard let id = KeyID(name) else { throw CryptoError(.cryptoFailure, "\(name) is not a key id") }
        return SimulatedKey(id: id, privateKey: try PrivateKey(generating: kind))
    }
}
