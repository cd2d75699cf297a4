/// The ranges of a response head that are forwarded unchanged: the status line of an HTTP/1.1 response, and all fields
/// but the hop-by-hop ones and those that the gateway writes itself.
///
/// Left out are `Connection`, `Keep-Alive`, `Proxy-Connection`, `Transfer-Encoding`, `TE`, `Upgrade` and
/// `X-Request-Id`.
@usableFromInline
package struct ForwardableResponseFields: Sendable {
    /// Enough for heads whose omitted fields are not scattered.
    private static let capacity = 4

    @usableFromInline private(set) var ranges = InlineArray<4, ByteRange>(repeating: .empty)
    private var start = 0
    /// Whether the first range begins with the status line.
    package private(set) var hasStatusLine = false
    /// Whether a range contains `Content-Length`.
    package internal(set) var hasLength = false
    /// The number of ranges; −1 when the fields have to be copied one by one: there are too many ranges, or a
    /// `Connection` field names further fields.
    @usableFromInline package private(set) var count = -1

    package subscript(index: Int) -> ByteRange {
        @inlinable @inline(__always) get {
            precondition(index >= 0 && index < count)
            return ranges[index]
        }
    }

    /// Starts at the status line, or after it at the first field.
    @inline(__always)
    mutating func begin(at start: Int) {
        self.start = start
        hasStatusLine = start == 0
        hasLength = false
        count = 0
    }

    /// Omits a line.
    @inline(__always)
    mutating func omit(_ line: ByteRange) {
        if line.start > start {
            if count >= 0, count < ForwardableResponseFields.capacity {
                ranges[count] = ByteRange(ordered: start, line.start)
                count &+= 1
            } else {
                count = -1
            }
        }
        start = line.end
    }

    /// Ends before the empty line of the head.
    mutating func end(at end: Int, isWhole: Bool) {
        omit(ByteRange(ordered: end, end))
        if !isWhole { count = -1 }
    }
}
