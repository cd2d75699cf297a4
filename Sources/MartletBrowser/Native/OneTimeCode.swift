internal import MartletCore
package import MartletCrypto

/// The code that an app exchanges for tokens: `moc_` and base64url of 32 random bytes.
package struct OneTimeCode: Sendable {
    /// How long it can be exchanged.
    package static let lifetime = Duration.seconds(60)
    private static let prefix = OwnToken.code.prefix
    private static let length = 32

    /// As the app gets it.
    package let text: String

    /// A new code.
    /// - Throws: `crypto.failure`.
    package init() throws(CryptoError) {
        text = Self.prefix + Base64URL.encode(try RandomBytes.make(Self.length))
    }

    /// Parses a code strictly: each has exactly one encoding. `nil` for any other text.
    package init?(_ text: String) {
        guard text.utf8.count <= 64, text.utf8.starts(with: Self.prefix.utf8),
            Base64URL.decode(Array(text.utf8.dropFirst(Self.prefix.utf8.count)))?.count == Self.length
        else { return nil }
        self.text = text
    }

    /// Names the code in the store, which never has the code itself: its SHA-256 in hexadecimal digits.
    package var storeKey: String { URLEscaping.hexadecimal(SHA256.digest(Array(text.utf8))) }
}
