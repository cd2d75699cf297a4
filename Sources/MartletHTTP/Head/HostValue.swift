/// The value of a `Host` field or the authority of a target: a name or address and perhaps a port (RFC 9110 §7.2).
///
/// Narrower than RFC 3986: no user information, no percent-encoding, no empty label, so that no upstream can read a
/// different host from it. An empty port is cut off (``withoutEmptyPort(_:_:)``).
package enum HostValue {
    /// Whether a text is a name or address and perhaps a port.
    package static func isValid(_ text: Span<UInt8>) -> Bool { isValid(text, ByteRange(from: 0, to: text.count)) }

    /// - Parameter requiresPort: whether a port is mandatory.
    @inline(__always)
    static func isValid(_ bytes: Span<UInt8>, _ range: ByteRange, requiresPort: Bool = false) -> Bool {
        guard UInt(bitPattern: range.count &- 1) < 15, bytes.hasBlock(at: range.start) else {
            return isValidSlow(bytes, range, requiresPort: requiresPort)
        }
        let block = bytes.block(at: range.start)
        let isDot = block .== ASCII.dot
        let isLabel = ASCII.areNameCharacters(block) .| isDot .| (block .== ASCII.underscore) .| (block .== ASCII.tilde)
        let end = min(firstMatch(.!isLabel), range.count)
        // An empty label is a dot at the start or after another dot.
        let dots = laneBits(isDot)
        guard (dots &<< 1 | 1) & dots & (1 &<< UInt32(truncatingIfNeeded: end) &- 1) == 0, end > 0 else {
            return isValidSlow(bytes, range, requiresPort: requiresPort)
        }
        if end == range.count { return !requiresPort }
        let colon = range.start &+ end
        return bytes.has(UInt8(ascii: ":"), at: colon)
            && isPort(bytes, ByteRange(ordered: colon &+ 1, range.end), isRequired: requiresPort)
    }

    /// Handles long names, addresses in brackets and invalid values.
    @inline(never)
    private static func isValidSlow(_ bytes: Span<UInt8>, _ range: ByteRange, requiresPort: Bool) -> Bool {
        guard !range.isEmpty, range.count <= 261 else { return false }
        let end: Int
        if bytes[range.start] == UInt8(ascii: "[") {
            var close = range.start &+ 1
            while close < range.end, bytes[close] != UInt8(ascii: "]") { close &+= 1 }
            guard close < range.end, isIPv6(bytes, ByteRange(from: range.start &+ 1, to: close)) else { return false }
            end = close &+ 1
        } else {
            guard bytes[range.start] != UInt8(ascii: ".") else { return false }
            // The range is followed by a byte that no name contains, or by the end; two dots stop the scan earlier.
            end = min(bytes.endOfLabels(from: range.start), range.end)
            guard end > range.start else { return false }
        }
        if end == range.end { return !requiresPort }
        return bytes[end] == UInt8(ascii: ":")
            && isPort(bytes, ByteRange(from: end &+ 1, to: range.end), isRequired: requiresPort)
    }

    @inline(__always)
    private static func isPort(_ bytes: Span<UInt8>, _ range: ByteRange, isRequired: Bool) -> Bool {
        if range.isEmpty { return !isRequired }
        guard range.count <= 5, let port = FramingChecks.decimal(bytes, range) else { return false }
        return port <= 65535
    }

    /// A valid value without a colon at its end, which precedes an empty port (RFC 9110 §4.2.3).
    @inline(__always)
    static func withoutEmptyPort(_ bytes: Span<UInt8>, _ range: ByteRange) -> ByteRange {
        bytes.has(UInt8(ascii: ":"), at: range.end &- 1)
            ? ByteRange(from: range.start, to: range.end &- 1) : range
    }

    /// Whether two valid values are the same, where a port that is empty or the scheme's default is as none.
    static func areSame(_ bytes: Span<UInt8>, _ left: ByteRange, _ right: ByteRange, isSecure: Bool) -> Bool {
        bytes.sameIgnoringCase(
            withoutDefaultPort(bytes, left, isSecure: isSecure), withoutDefaultPort(bytes, right, isSecure: isSecure))
    }

    private static func withoutDefaultPort(_ bytes: Span<UInt8>, _ range: ByteRange, isSecure: Bool) -> ByteRange {
        let port: StaticString = isSecure ? ":443" : ":80"
        let start = range.end &- port.utf8CodeUnitCount
        guard start > range.start else { return withoutEmptyPort(bytes, range) }
        for offset in 0..<port.utf8CodeUnitCount where bytes[start &+ offset] != port.byte(at: offset) {
            return withoutEmptyPort(bytes, range)
        }
        return ByteRange(from: range.start, to: start)
    }

    /// RFC 4291 §2.2: groups of up to four hexadecimal digits, one `::`, perhaps an IPv4 address at the end; no zone.
    private static func isIPv6(_ bytes: Span<UInt8>, _ range: ByteRange) -> Bool {
        var index = range.start
        var groups = 0
        var hasGap = false
        while index < range.end {
            if bytes[index] == UInt8(ascii: ":") {
                let isDouble = index &+ 1 < range.end && bytes[index &+ 1] == UInt8(ascii: ":")
                if isDouble {
                    guard !hasGap else { return false }
                    hasGap = true
                    index &+= 2
                    if index == range.end { break }
                } else {
                    guard groups > 0 else { return false }
                    index &+= 1
                }
            } else if groups > 0 {
                return false
            }
            let start = index
            while index < range.end, ASCII.hexValue(bytes[index]) != nil { index &+= 1 }
            if index < range.end, bytes[index] == UInt8(ascii: ".") {
                guard isIPv4(bytes, ByteRange(from: start, to: range.end)) else { return false }
                groups &+= 2
                index = range.end
                break
            }
            guard index > start, index &- start <= 4 else { return false }
            groups &+= 1
        }
        return hasGap ? groups <= 7 : groups == 8
    }

    private static func isIPv4(_ bytes: Span<UInt8>, _ range: ByteRange) -> Bool {
        var parts = 0
        var index = range.start
        while index <= range.end {
            let start = index
            while index < range.end, ASCII.isDigit(bytes[index]) { index &+= 1 }
            let digits = ByteRange(from: start, to: index)
            guard digits.count <= 3, let value = FramingChecks.decimal(bytes, digits), value <= 255 else {
                return false
            }
            parts &+= 1
            guard index < range.end else { break }
            guard bytes[index] == UInt8(ascii: ".") else { return false }
            index &+= 1
        }
        return parts == 4
    }
}
