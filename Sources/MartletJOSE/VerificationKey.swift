public import MartletCrypto

/// An issuer's public key, bound to the algorithms that it may verify. Thread-safe.
///
/// A key of a curve has one algorithm. An RSA key may have several, if its issuer does not say which one it is for; each
/// verification then names one, and a token that was signed with another does not verify. Where the issuer gives one ID
/// to several keys (RFC 7517 §4.5), this is all of them, and each that serves the algorithm is tried.
public final class VerificationKey: Sendable {
    /// How many keys with one ID are tried for one algorithm.
    static let maximumTries = 4

    /// A key for one algorithm.
    private struct Bound: Sendable {
        let algorithm: SignatureAlgorithm
        let key: PublicKey
    }

    public let id: KeyID
    /// The only key with its only algorithm, or the first of several.
    private let first: Bound
    private let others: [Bound]

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
        var bound: [Bound] = []
        for algorithm in parts.algorithms where allowed.contains(algorithm) {
            guard let scheme = algorithm.scheme else { continue }
            if let first = bound.first {
                // All of them share one key of OpenSSL.
                bound.append(Bound(algorithm: algorithm, key: try first.key.bound(to: scheme)))
            } else {
                bound.append(Bound(algorithm: algorithm, key: try PublicKey(parts, for: scheme)))
            }
        }
        guard let first = bound.first else {
            throw CryptoError(.cryptoBadKey, "no allowed algorithm is one of this kind of key")
        }
        self.id = id
        self.first = first
        others = Array(bound.dropFirst())
    }

    private init(id: KeyID, first: Bound, others: [Bound]) {
        self.id = id
        self.first = first
        self.others = others
    }

    /// This key and another of the issuer with the same ID.
    /// - Returns: `nil` if there are as many keys of the other's algorithm as are tried.
    func adding(_ other: VerificationKey) -> VerificationKey? {
        let added = other.bound.filter { new in
            !bound.contains { $0.algorithm == new.algorithm && $0.key.parts == new.key.parts }
        }
        for new in added where bound.count(where: { $0.algorithm == new.algorithm }) >= Self.maximumTries { return nil }
        return VerificationKey(id: id, first: first, others: others + added)
    }

    private var bound: [Bound] { [first] + others }

    /// The components of the key; of several, of the first.
    public var parts: PublicKeyParts { first.key.parts }

    /// The components of all keys with this ID, without duplicates.
    var allParts: [PublicKeyParts] {
        bound.reduce(into: []) { parts, bound in
            if !parts.contains(bound.key.parts) { parts.append(bound.key.parts) }
        }
    }

    /// The algorithms that the key may verify, without duplicates; never empty.
    public var algorithms: [SignatureAlgorithm] {
        bound.reduce(into: []) { algorithms, bound in
            if !algorithms.contains(bound.algorithm) { algorithms.append(bound.algorithm) }
        }
    }

    /// Whether the key may verify this algorithm.
    public func serves(_ algorithm: SignatureAlgorithm) -> Bool {
        algorithm == first.algorithm || others.contains { $0.algorithm == algorithm }
    }

    /// Whether the signature over these bytes was made with this key and this algorithm, which must be one that the key
    /// may verify.
    public func verify(signature: [UInt8], signingInput: [UInt8], as algorithm: SignatureAlgorithm) -> Bool {
        if algorithm == first.algorithm, first.key.verify(signature, over: signingInput) { return true }
        return others.contains { $0.algorithm == algorithm && $0.key.verify(signature, over: signingInput) }
    }

    /// Whether the signature over these bytes was made with this key, which must have only one algorithm.
    public func verify(signature: [UInt8], signingInput: [UInt8]) -> Bool {
        others.isEmpty && first.key.verify(signature, over: signingInput)
    }
}
