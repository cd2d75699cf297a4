public import MartletCore
public import MartletCrypto

/// A secret that is shared with an issuer, bound to one HMAC (RFC 7518 §3.2).
///
/// It is a type of its own, apart from ``VerificationKey``: a configuration holds it, never a key set, and so a public
/// key cannot become a secret.
public struct HMACKey: Sendable {
    public let algorithm: SignatureAlgorithm
    private let hash: HashFunction
    private let secret: Secret

    /// - Throws: `crypto.weak_key` for a secret that is shorter than the hash, `crypto.bad_key` for an algorithm that is
    ///   not an HMAC.
    public init(_ secret: Secret, algorithm: SignatureAlgorithm) throws(CryptoError) {
        guard let hash = algorithm.hmacHash else {
            throw CryptoError(.cryptoBadKey, "\(algorithm.rawValue) is not an HMAC")
        }
        guard secret.count >= hash.length else {
            throw CryptoError(.cryptoWeakKey, "the secret is shorter than \(hash.length) bytes")
        }
        self.algorithm = algorithm
        self.hash = hash
        self.secret = secret
    }

    /// Whether the signature is the HMAC of these bytes; compared in constant time.
    public func verify(signature: [UInt8], signingInput: [UInt8]) -> Bool {
        ConstantTime.areEqual(signature, hash.authenticationCode(of: signingInput, key: secret))
    }
}
