/// Where something stands in the bytes that were parsed: offsets, never a copy.
///
/// A range is only meaningful together with the bytes of the call that made it.
package struct ByteRange: Sendable, Equatable {
    private let low: UInt32
    private let high: UInt32

    /// No bytes at all, at the beginning.
    package static let empty = ByteRange(from: 0, to: 0)

    /// The bytes from `start` up to but without `end`.
    package init(from start: Int, to end: Int) {
        low = UInt32(truncatingIfNeeded: start)
        high = UInt32(truncatingIfNeeded: max(start, end))
    }

    package init(start: Int, count: Int) { self.init(from: start, to: start &+ count) }

    package var start: Int { Int(low) }
    package var end: Int { Int(high) }
    package var count: Int { Int(high &- low) }
    package var isEmpty: Bool { low == high }
    /// For `Span.extracting(_:)`.
    package var bounds: Range<Int> { start..<end }
}
