/// The value of an `Upgrade` field (RFC 9110 §7.8): protocols, each a name or a name, a slash and a version.
package struct UpgradeList {
    /// Bounds the work.
    private static let maximum = 16

    private let end: Int
    private var index: Int
    private var count = 0
    /// An element is not a protocol, or there are too many; iteration stops.
    package private(set) var isMalformed = false

    package init(_ value: ByteRange) {
        index = value.start
        end = value.end
    }

    /// The next protocol of the list in `bytes`; `nil` at its end.
    package mutating func next(_ bytes: Span<UInt8>) -> ByteRange? {
        while index < end, bytes[index] == UInt8(ascii: ",") || ASCII.isBlank(bytes[index]) { index &+= 1 }
        guard index < end else { return nil }
        let start = index
        skipToken(bytes)
        let nameEnd = index
        if index < end, bytes[index] == UInt8(ascii: "/") {
            index &+= 1
            skipToken(bytes)
            isMalformed = index == nameEnd &+ 1
        }
        let element = ByteRange(from: start, to: index)
        while index < end, ASCII.isBlank(bytes[index]) { index &+= 1 }
        count &+= 1
        let isEnded = index == end || bytes[index] == UInt8(ascii: ",")
        guard nameEnd > start, isEnded, !isMalformed, count <= UpgradeList.maximum else {
            isMalformed = true
            index = end
            return nil
        }
        return element
    }

    private mutating func skipToken(_ bytes: Span<UInt8>) {
        while index < end, Token.isMember(bytes[index]) { index &+= 1 }
    }
}
