/// The ID of a key, `kid`: 1 to 64 characters of `A-Z a-z 0-9 _ -`. Only used for lookups in a table.
public struct KeyID: Hashable, Sendable, CustomStringConvertible {
    private static let maximumLength = 64

    public let text: String

    /// - Returns: `nil` for a text that is not a valid key ID.
    public init?(_ text: String) {
        guard (1...Self.maximumLength).contains(text.utf8.count), text.utf8.allSatisfy(Self.isAllowed) else {
            return nil
        }
        self.text = text
    }

    private static func isAllowed(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
            true
        default: false
        }
    }

    public var description: String { text }
}
