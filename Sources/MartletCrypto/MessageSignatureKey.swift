private import COpenSSL
public import MartletCore

/// The algorithms of HTTP message signatures that the gateway verifies (RFC 9421 §3.3), by their registered names.
public enum MessageSignatureAlgorithm: String, Sendable, CaseIterable {
    case hmacSHA256 = "hmac-sha256"
    /// With r‖s as the signature.
    case ecdsaP256SHA256 = "ecdsa-p256-sha256"
    case ed25519 = "ed25519"
}

/// A key that verifies HTTP message signatures, bound to its algorithm. Thread-safe.
public struct MessageSignatureKey: Sendable {
    private enum Material: Sendable {
        case secret(HMACSHA256.Key)
        case publicKey(PublicKey)
    }

    public let algorithm: MessageSignatureAlgorithm
    private let material: Material

    /// A shared secret, for `hmac-sha256`.
    /// - Throws: `crypto.weak_key` for one of fewer than 32 bytes.
    public init(secret: Secret) throws(CryptoError) {
        guard secret.count >= SHA256.length else {
            throw CryptoError(.cryptoWeakKey, "the secret has fewer than \(SHA256.length) bytes")
        }
        algorithm = .hmacSHA256
        material = .secret(HMACSHA256.Key(secret))
    }

    /// A public key.
    /// - Throws: `crypto.bad_key` for a key of another algorithm, or for `hmac-sha256`, which has none.
    public init(_ parts: PublicKeyParts, for algorithm: MessageSignatureAlgorithm) throws(CryptoError) {
        switch (parts, algorithm) {
        case (.p256, .ecdsaP256SHA256), (.ed25519, .ed25519): break
        default: throw CryptoError(.cryptoBadKey, "the key is not one for \(algorithm.rawValue)")
        }
        self.algorithm = algorithm
        material = .publicKey(try PublicKey(parts))
    }

    /// A public key in PEM (`BEGIN PUBLIC KEY`). A private key is rejected: a gateway that verifies needs none.
    /// - Throws: `crypto.bad_key` for anything else, and as above.
    public init(pem: Secret, for algorithm: MessageSignatureAlgorithm) throws(CryptoError) {
        guard let handle = PublicKey.handle(pem) else {
            throw CryptoError(.cryptoBadKey, "not the PEM of a public key")
        }
        if let parts = handle.ed25519Parts {
            try self.init(parts, for: algorithm)
        } else {
            try self.init(try handle.publicParts(), for: algorithm)
        }
    }

    /// Whether the signature over the signature base was made with the key.
    public func verify(_ signature: [UInt8], over base: [UInt8]) -> Bool {
        switch material {
        case .secret(let key): ConstantTime.areEqual(signature, key.authenticate(base))
        case .publicKey(let key): key.verify(signature, over: base)
        }
    }
}

extension KeyHandle {
    /// The components of an Ed25519 key; `nil` for other kinds.
    fileprivate var ed25519Parts: PublicKeyParts? {
        guard unsafe EVP_PKEY_is_a(pointer, "ED25519") == 1 else { return nil }
        var point = [UInt8](repeating: 0, count: 32)
        var length = point.count
        guard unsafe EVP_PKEY_get_raw_public_key(pointer, &point, &length) == 1, length == point.count else {
            ERR_clear_error()
            return nil
        }
        return .ed25519(x: point)
    }
}
