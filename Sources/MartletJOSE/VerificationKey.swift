public import MartletCrypto

/// An issuer's public key, bound to the algorithms that it may verify. Thread-safe.
///
/// A key of a curve has one algorithm. An RSA key may have several, if its issuer does not say which one it is for; each
/// verification then names one, and a token that was signed with another does not verify.
public final class VerificationKey: Sendable {
    public let id: KeyID
    /// The only algorithm, or the first of several.
    private let algorithm: SignatureAlgorithm
    private let key: PublicKey
    private let others: [(algorithm: SignatureAlgorithm, key: PublicKey)]

    /// A key for the algorithm that its kind has; RSA: RS256.
    /// - Throws: `CryptoError` for key material that must not be used.
    public convenience init(id: KeyID, parts: PublicKeyParts) throws(CryptoError) {
        try self.init(id: id, parts: parts, allowing: [parts.algorithm])
    }

    /// A key for those of the allowed algorithms that its kind can have.
    /// - Throws: `CryptoError` for key material that must not be used, and if there is no such algorithm.
    public init(
        id: KeyID, parts: PublicKeyParts, allowing allowed: Set<SignatureAlgorithm>
    ) throws(CryptoError) {
        var bound: [(algorithm: SignatureAlgorithm, key: PublicKey)] = []
        for algorithm in parts.algorithms where allowed.contains(algorithm) {
            guard let scheme = algorithm.scheme else { continue }
            if let first = bound.first {
                // All of them share one key of OpenSSL.
                bound.append((algorithm, try first.key.bound(to: scheme)))
            } else {
                bound.append((algorithm, try PublicKey(parts, for: scheme)))
            }
        }
        guard let first = bound.first else {
            throw CryptoError(.cryptoBadKey, "no allowed algorithm is one of this kind of key")
        }
        self.id = id
        algorithm = first.algorithm
        key = first.key
        others = Array(bound.dropFirst())
    }

    /// The components of the key.
    public var parts: PublicKeyParts { key.parts }

    /// The algorithms that the key may verify; never empty.
    public var algorithms: [SignatureAlgorithm] { [algorithm] + others.map(\.algorithm) }

    /// Whether the key may verify this algorithm.
    public func serves(_ algorithm: SignatureAlgorithm) -> Bool {
        algorithm == self.algorithm || others.contains { $0.algorithm == algorithm }
    }

    /// Whether the signature over these bytes was made with this key and this algorithm, which must be one that the key
    /// may verify.
    public func verify(signature: [UInt8], signingInput: [UInt8], as algorithm: SignatureAlgorithm) -> Bool {
        if algorithm == self.algorithm { return key.verify(signature, over: signingInput) }
        guard let other = others.first(where: { $0.algorithm == algorithm }) else { return false }
        return other.key.verify(signature, over: signingInput)
    }

    /// Whether the signature over these bytes was made with this key, which must have only one algorithm.
    public func verify(signature: [UInt8], signingInput: [UInt8]) -> Bool {
        others.isEmpty && key.verify(signature, over: signingInput)
    }
}
