/// Decodes `application/x-www-form-urlencoded` (WHATWG URL §5.1), but rejects invalid escapes.
@frozen package struct FormDecoder {
    /// An invalid escape, a control character, too many pairs, or a name or value that is not UTF-8.
    @frozen package struct FormError: Error {}

    private let bytes: [UInt8]
    private var offset = 0

    package init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// All pairs in order, as valid UTF-8; empty pairs between two `&` are skipped.
    /// - Parameter maximum: the most pairs; one more is an error, before the rest is decoded.
    package mutating func pairs(upTo maximum: Int = .max) throws(FormError) -> [(name: [UInt8], value: Secret)] {
        var pairs: [(name: [UInt8], value: Secret)] = []
        while offset < bytes.count {
            if bytes[offset] == UInt8(ascii: "&") {
                offset &+= 1
                continue
            }
            guard pairs.count < maximum else { throw FormError() }
            let name = try run(until: UInt8(ascii: "="))
            var value: [UInt8] = []
            if offset < bytes.count, bytes[offset] == UInt8(ascii: "=") {
                offset &+= 1
                value = try run(until: UInt8(ascii: "&"))
            }
            pairs.append((name, Secret(value)))
        }
        return pairs
    }

    /// The bytes up to a delimiter or `&`, unescaped.
    private mutating func run(until delimiter: UInt8) throws(FormError) -> [UInt8] {
        var end = offset
        while end < bytes.count, bytes[end] != delimiter, bytes[end] != UInt8(ascii: "&") { end &+= 1 }
        var plain: [UInt8] = []
        plain.reserveCapacity(end &- offset)
        while offset < end { plain.append(try byte(before: end)) }
        guard (try? UTF8Span(validating: plain.span)) != nil else { throw FormError() }
        return plain
    }

    /// The next decoded byte.
    private mutating func byte(before end: Int) throws(FormError) -> UInt8 {
        let byte = bytes[offset]
        offset &+= 1
        switch byte {
        case UInt8(ascii: "+"): return 0x20
        case ..<0x20, 0x7F: throw FormError()
        case UInt8(ascii: "%"):
            guard offset &+ 1 < end, let high = Self.digit(bytes[offset]), let low = Self.digit(bytes[offset &+ 1])
            else { throw FormError() }
            offset &+= 2
            return high << 4 | low
        default: return byte
        }
    }

    private static func digit(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): byte &- 48
        case UInt8(ascii: "a")...UInt8(ascii: "f"): byte &- 87
        case UInt8(ascii: "A")...UInt8(ascii: "F"): byte &- 55
        default: nil
        }
    }
}
