/// How a public key verifies: the padding of RSA with its hash, or the scheme of a curve.
public enum SignatureScheme: Sendable, Hashable {
    /// RSASSA-PKCS1-v1_5 (RFC 8017 §8.2).
    case rsaPKCS1(HashFunction)
    /// RSASSA-PSS (RFC 8017 §8.1) with MGF1 of the same hash and a salt as long as its digest, and no other.
    case rsaPSS(HashFunction)
    /// ECDSA with the hash that belongs to the key's curve (RFC 7518 §3.4), and r‖s as the signature.
    case ecdsa
    /// EdDSA without context or prehashing (RFC 8032), on the key's curve.
    case edDSA
}
