/// The components of a public key, as big-endian bytes like in a JWK.
public enum PublicKeyParts: Sendable, Equatable {
    /// Modulus and exponent.
    case rsa(modulus: [UInt8], exponent: [UInt8])
    /// The coordinates of the point, 32 bytes each.
    case p256(x: [UInt8], y: [UInt8])
}
