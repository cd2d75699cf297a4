/// The supported signature algorithms (RFC 7518 §3.1): none that is symmetric, and not `none`.
public enum SignatureAlgorithm: String, Sendable, Hashable, CaseIterable {
    /// RSASSA-PKCS1-v1_5 with SHA-256.
    case rs256 = "RS256"
    /// ECDSA with P-256 and SHA-256.
    case es256 = "ES256"
}
