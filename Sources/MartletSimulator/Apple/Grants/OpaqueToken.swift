private import MartletCore
internal import MartletCrypto

/// Names of codes and tokens, in the form of Apple's; clients must not parse them.
enum OpaqueToken {
    private static let letters = "msqw"

    enum Kind: String {
        case code = "c"
        case accessToken = "a"
        case refreshToken = "r"
    }

    /// A new name, with 128 random bits in each of its two long parts.
    static func make(_ kind: Kind) throws(CryptoError) -> String {
        let digits = Hexadecimal.text(try RandomBytes.make(16))
        return "\(kind.rawValue)\(digits).0.\(letters).\(Base64URL.encode(try RandomBytes.make(16)))"
    }

    /// The value of `c_hash` or `at_hash` (OpenID Connect Core 1.0 §3.3.2.11).
    static func halfHash(_ name: String) -> String {
        Base64URL.encode(Array(SHA256.digest(Array(name.utf8)).prefix(SHA256.length / 2)))
    }
}
