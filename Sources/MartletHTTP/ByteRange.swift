/// Offsets into the bytes that were parsed; only meaningful together with those bytes.
@usableFromInline
package struct ByteRange: Sendable, Equatable {
    @usableFromInline let low: UInt32
    @usableFromInline let high: UInt32

    /// The empty range at offset 0.
    package static let empty = ByteRange(from: 0, to: 0)

    /// The bytes from `start` up to but without `end`.
    @inlinable
    package init(from start: Int, to end: Int) {
        low = UInt32(truncatingIfNeeded: start)
        high = UInt32(truncatingIfNeeded: max(start, end))
    }

    /// The bytes from `start` up to but without `end`, which must not be less.
    @inline(__always)
    init(ordered start: Int, _ end: Int) {
        low = UInt32(truncatingIfNeeded: start)
        high = UInt32(truncatingIfNeeded: end)
    }

    @inlinable @inline(__always)
    init(ordered start: UInt32, _ end: UInt32) {
        low = start
        high = end
    }

    @inlinable
    package init(start: Int, count: Int) { self.init(from: start, to: start &+ count) }

    @inlinable package var start: Int { Int(low) }
    @inlinable package var end: Int { Int(high) }
    @inlinable package var count: Int { Int(high &- low) }
    @inlinable package var isEmpty: Bool { low == high }
    /// For `Span.extracting(_:)`.
    @inlinable package var bounds: Range<Int> { Int(low)..<Int(max(low, high)) }
}
