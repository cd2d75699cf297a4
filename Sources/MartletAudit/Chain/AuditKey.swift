package import MartletCore
package import MartletCrypto

/// The key that signs the heads of an audit log: P-256.
package struct AuditKey: Sendable {
    private let key: PrivateKey
    /// The public key, as heads name it.
    package let name: String

    /// - Returns: `nil` unless the PEM is that of a P-256 private key.
    package init?(pem: Secret) {
        guard let key = try? PrivateKey(pem: pem), let name = key.publicKey.auditName else { return nil }
        self.key = key
        self.name = name
    }

    /// A new key.
    /// - Throws: `crypto.failure`.
    package init() throws(CryptoError) {
        key = try PrivateKey(generating: .p256)
        guard let name = key.publicKey.auditName else { throw CryptoError(.cryptoFailure, "no key") }
        self.name = name
    }

    /// The key as PEM.
    /// - Throws: `crypto.failure`.
    package func pem() throws(CryptoError) -> Secret { try key.pkcs8PEM() }

    package var publicKey: PublicKey { key.publicKey }

    func sign(_ bytes: [UInt8]) throws(CryptoError) -> [UInt8] { try key.sign(bytes) }
}

extension PublicKey {
    /// The coordinates of a P-256 key in base64url, as heads name it; `nil` for another kind of key.
    package var auditName: String? {
        guard case .p256(let x, let y) = parts else { return nil }
        return Base64URL.encode(x + y)
    }

    /// The key of a name; `nil` if it is not one.
    convenience init?(auditName: String) {
        guard let bytes = Base64URL.decode(auditName), bytes.count == 64 else { return nil }
        do { try self.init(.p256(x: Array(bytes[..<32]), y: Array(bytes[32...]))) } catch { return nil }
    }
}
