/// The stretches of an answer's head that pass to a client as they stand: the status line of an HTTP/1.1 answer, and all
/// fields but those that are about the upstream's connection or that the gateway says itself.
///
/// Left out are `Connection`, `Keep-Alive`, `Proxy-Connection`, `Transfer-Encoding`, `TE`, `Upgrade` and `X-Request-Id`.
@usableFromInline
package struct KeptRuns: Sendable {
    /// More than a head has that does not have these fields all over it.
    private static let capacity = 4

    @usableFromInline private(set) var runs = InlineArray<4, ByteRange>(repeating: .empty)
    private var start = 0
    /// Whether the first of them begins with the status line.
    package private(set) var hasStatusLine = false
    /// Whether a `Content-Length` is in them.
    package internal(set) var hasLength = false
    /// How many stretches there are; −1 where they do not say it all, so that one has to go through the fields: there are too
    /// many, or a `Connection` field names others.
    @usableFromInline package private(set) var count = -1

    package subscript(index: Int) -> ByteRange {
        @inlinable @inline(__always) get {
            precondition(index >= 0 && index < count)
            return runs[index]
        }
    }

    /// Begins with the status line, or behind it with the field that stands first.
    @inline(__always)
    mutating func begin(at start: Int) {
        self.start = start
        hasStatusLine = start == 0
        hasLength = false
        count = 0
    }

    /// Leaves a line out.
    @inline(__always)
    mutating func cut(_ line: ByteRange) {
        if line.start > start {
            if count >= 0, count < KeptRuns.capacity {
                runs[count] = ByteRange(ordered: start, line.start)
                count &+= 1
            } else {
                count = -1
            }
        }
        start = line.end
    }

    /// Ends before the empty line.
    mutating func end(at end: Int, isWhole: Bool) {
        cut(ByteRange(ordered: end, end))
        if !isWhole { count = -1 }
    }
}
