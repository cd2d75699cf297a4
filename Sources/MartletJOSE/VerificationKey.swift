public import MartletCrypto

/// An issuer's public key, bound to its one algorithm.
///
/// Usable by any number of threads at once.
public final class VerificationKey: Sendable {
    public let id: KeyID
    public let algorithm: SignatureAlgorithm
    private let key: PublicKey

    /// - Throws: `CryptoError` for key material that may not be used.
    public init(id: KeyID, parts: PublicKeyParts) throws(CryptoError) {
        self.id = id
        algorithm = parts.algorithm
        key = try PublicKey(parts)
    }

    /// What the key consists of.
    public var parts: PublicKeyParts { key.parts }

    /// Whether the signature is this key's over these bytes.
    public func verify(signature: [UInt8], signingInput: [UInt8]) -> Bool {
        key.verify(signature, over: signingInput)
    }
}
