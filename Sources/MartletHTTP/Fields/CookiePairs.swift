/// One element of a `Cookie` field: what stands between two semicolons.
package struct CookiePair: Sendable, Equatable {
    /// Everything between the semicolons.
    package let element: ByteRange
    /// Without the white space around it; the whole text of a cookie without `=`.
    package let name: ByteRange
    /// Without the white space around it.
    package let value: ByteRange
    /// Whether there is a `=`.
    package let hasValue: Bool
    /// Whether no white space surrounds the `=`: browsers send none there.
    package let isTight: Bool

    /// Whether there is nothing but white space.
    package var isBlank: Bool { name.isEmpty && !hasValue }
}

/// The value of a `Cookie` field (RFC 6265bis §4.2.1), split at its semicolons; nothing is decoded.
package struct CookiePairs {
    private let end: Int
    private var index: Int
    private var isDone = false

    package init(_ value: ByteRange) {
        index = value.start
        end = value.end
    }

    /// The next element of the field in `bytes`; `nil` at its end.
    package mutating func next(_ bytes: Span<UInt8>) -> CookiePair? {
        guard !isDone else { return nil }
        let start = index
        let stop = bytes.first(UInt8(ascii: ";"), from: start, to: end)
        isDone = stop == end
        index = stop &+ 1
        var nameStart = start
        while nameStart < stop, ASCII.isBlank(bytes[nameStart]) { nameStart &+= 1 }
        let equals = bytes.first(UInt8(ascii: "="), from: nameStart, to: stop)
        let hasValue = equals < stop
        let name = CookiePairs.trimmedEnd(bytes, from: nameStart, to: equals)
        var valueStart = hasValue ? equals &+ 1 : stop
        while valueStart < stop, ASCII.isBlank(bytes[valueStart]) { valueStart &+= 1 }
        return CookiePair(
            element: ByteRange(from: start, to: stop), name: name,
            value: CookiePairs.trimmedEnd(bytes, from: valueStart, to: stop), hasValue: hasValue,
            isTight: hasValue && name.end == equals && valueStart == equals &+ 1)
    }

    private static func trimmedEnd(_ bytes: Span<UInt8>, from start: Int, to stop: Int) -> ByteRange {
        var end = stop
        while end > start, ASCII.isBlank(bytes[end &- 1]) { end &-= 1 }
        return ByteRange(from: start, to: end)
    }
}
