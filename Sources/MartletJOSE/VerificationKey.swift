public import MartletCrypto

/// An issuer's public key, bound to one algorithm. Thread-safe.
public final class VerificationKey: Sendable {
    public let id: KeyID
    public let algorithm: SignatureAlgorithm
    private let key: PublicKey

    /// - Throws: `CryptoError` for key material that must not be used.
    public init(id: KeyID, parts: PublicKeyParts) throws(CryptoError) {
        self.id = id
        algorithm = parts.algorithm
        key = try PublicKey(parts)
    }

    /// The components of the key.
    public var parts: PublicKeyParts { key.parts }

    /// Whether the signature over these bytes was made with this key.
    public func verify(signature: [UInt8], signingInput: [UInt8]) -> Bool {
        key.verify(signature, over: signingInput)
    }
}
