/// What a public key consists of, as a JWK carries it: big-endian bytes.
public enum PublicKeyParts: Sendable, Equatable {
    /// Modulus and exponent.
    case rsa(modulus: [UInt8], exponent: [UInt8])
    /// The coordinates of the point, 32 bytes each.
    case p256(x: [UInt8], y: [UInt8])
}
