/// The name of a key, `kid`: 1 to 64 of `A-Z a-z 0-9 _ -`.
///
/// It only ever looks up a table.
public struct KeyID: Hashable, Sendable, CustomStringConvertible {
    private static let maximumLength = 64

    public let text: String

    /// - Returns: `nil` for a text that cannot be a key's name.
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
