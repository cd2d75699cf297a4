/// The ID of a key, `kid`: 1 to 128 visible ASCII characters but `"` and `\`. Only used for lookups in a table.
///
/// Issuers use thumbprints, base64 with padding, addresses and URLs.
@frozen public struct KeyID: Hashable, Sendable, CustomStringConvertible {
    private static let maximumLength = 128

    public let text: String

    /// - Returns: `nil` for a text that is not a valid key ID.
    public init?(_ text: String) {
        guard (1...Self.maximumLength).contains(text.utf8.count), text.utf8.allSatisfy(Self.isAllowed) else {
            return nil
        }
        self.text = text
    }

    private static func isAllowed(_ byte: UInt8) -> Bool {
        (0x21...0x7E).contains(byte) && byte != UInt8(ascii: "\"") && byte != UInt8(ascii: "\\")
    }

    public var description: String { text }
}
