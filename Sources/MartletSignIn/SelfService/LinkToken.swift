internal import MartletCore
internal import MartletCrypto

/// The one-time token of a link: 256 random bits, of which only a digest is stored.
struct LinkToken: Sendable {
    private static let prefix = OwnToken.link.prefix
    private static let randomBytes = 32
    private static let textBytes = prefix.utf8.count + 43

    /// For the mail alone.
    let text: String
    /// SHA-256 of the text, in hexadecimal.
    var digest: String { Self.digest(of: Array(text.utf8)) }

    /// A new token.
    /// - Throws: if no random bytes are available.
    init() throws(CryptoError) {
        text = Self.prefix + Base64URL.encode(try RandomBytes.make(Self.randomBytes))
    }

    /// The digest of a token that a client presents; `nil` for a text that is not a token.
    static func digest(of token: Secret) -> String? {
        token.withBytes { bytes in
            guard bytes.count == textBytes, bytes.starts(with: prefix.utf8) else { return nil }
            return digest(of: bytes)
        }
    }

    private static func digest(of bytes: [UInt8]) -> String { Hexadecimal.text(SHA256.digest(bytes)) }
}
