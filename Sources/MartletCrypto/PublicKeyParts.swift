/// The components of a public key, as big-endian bytes like in a JWK.
public enum PublicKeyParts: Sendable, Equatable {
    /// Modulus and exponent.
    case rsa(modulus: [UInt8], exponent: [UInt8])
    /// The coordinates of the point, 32 bytes each.
    case p256(x: [UInt8], y: [UInt8])
    /// The coordinates of the point, 48 bytes each.
    case p384(x: [UInt8], y: [UInt8])
    /// The coordinates of the point, 66 bytes each.
    case p521(x: [UInt8], y: [UInt8])
    /// The point as RFC 8032 §5.1.2 encodes it: 32 bytes, little-endian.
    case ed25519(x: [UInt8])
    /// The point as RFC 8032 §5.2.2 encodes it: 57 bytes, little-endian.
    case ed448(x: [UInt8])

    /// How such a key verifies unless it is bound to another scheme: RSA with PKCS #1 v1.5 and SHA-256.
    public var defaultScheme: SignatureScheme {
        switch self {
        case .rsa: .rsaPKCS1(.sha256)
        case .p256, .p384, .p521: .ecdsa
        case .ed25519, .ed448: .edDSA
        }
    }
}
