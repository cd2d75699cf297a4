public import MartletCore

/// HKDF with SHA-256 (RFC 5869): derives keys from a secret.
public enum HKDFSHA256 {
    /// The maximum length of a derived key in bytes (RFC 5869 §2.3).
    public static let maximumLength = 255 * SHA256.length

    /// Derives the key for one purpose.
    /// - Parameters:
    ///   - secret: the input key material.
    ///   - salt: may be empty if the secret is uniformly random.
    ///   - purpose: the `info` of the RFC: distinguishes this key from others of the same secret.
    ///   - length: in bytes; clamped to 0 through ``maximumLength``.
    public static func derive(from secret: Secret, salt: [UInt8], purpose: [UInt8], length: Int) -> Secret {
        // A `Secret` wipes its storage, which must not be the caller's: copy the salt.
        let key = Secret(salt.map { $0 })
        let extracted = secret.withBytes { Secret(HMACSHA256.authenticate($0, key: key)) }
        let wanted = min(max(length, 0), maximumLength)
        guard wanted != SHA256.length else {
            return Secret(HMACSHA256.authenticate(purpose + [1], key: extracted))
        }
        var output: [UInt8] = []
        output.reserveCapacity(wanted + SHA256.length)
        var block = Secret([])
        var number: UInt8 = 0
        while output.count < wanted {
            number &+= 1
            block = Secret(block.withBytes { HMACSHA256.authenticate($0 + purpose + [number], key: extracted) })
            block.withBytes { output.append(contentsOf: $0) }
        }
        output.removeLast(output.count - wanted)
        return Secret(output)
    }
}
