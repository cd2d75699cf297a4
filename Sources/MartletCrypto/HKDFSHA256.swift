public import MartletCore

/// Makes keys from a secret (RFC 5869, with SHA-256).
public enum HKDFSHA256 {
    /// More than this cannot be made from one secret (RFC 5869 §2.3).
    public static let maximumLength = 255 * SHA256.length

    /// The key of one purpose.
    /// - Parameters:
    ///   - secret: what nobody else knows.
    ///   - salt: may be empty where the secret is random already.
    ///   - purpose: what tells this key from others of the same secret.
    ///   - length: at most 8160 bytes; more is cut.
    public static func derive(from secret: Secret, salt: [UInt8], purpose: [UInt8], length: Int) -> Secret {
        // A secret wipes the storage it is given, which must not be the caller's.
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
