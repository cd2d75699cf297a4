/// A response head as offsets into the bytes that it was parsed from.
///
/// Its memory is reused for every head.
package struct ResponseHead: ~Copyable {
    /// 100–599.
    package internal(set) var status = 0
    package internal(set) var reason = ByteRange.empty
    package internal(set) var isHTTP10 = false
    package internal(set) var fields: FieldList
    package internal(set) var framing = BodyFraming.none
    /// Whether the connection can serve another request after this response.
    package internal(set) var keepsAlive = true
    /// The value of `Upgrade` when `Connection` names it, else empty.
    package internal(set) var upgrade = ByteRange.empty

    /// The ranges of the head that are forwarded to a client unchanged.
    package internal(set) var forwardable = ForwardableResponseFields()

    var cache = ResponseHeadCache()

    /// Whether another head follows for the same request; 101 is final, because it ends HTTP.
    package var isInterim: Bool { status < 200 && status != 101 }

    package init(maximumFields: Int) { fields = FieldList(capacity: maximumFields) }

    /// Reads a common status line at the start: the reason is plain text or empty.
    /// - Returns: the offset of the fields, or −1 when `readStatusLine` has to decide.
    @inline(__always)
    mutating func readStatusLineFast(_ bytes: Span<UInt8>) -> Int {
        guard bytes.hasBlock(at: 0), let isOld = HTTPVersion.isHTTP10(bytes, at: 0) else { return -1 }
        // A space and three digits, each byte minus its lowest valid value; see `FramingChecks.decimal`.
        let digits = bytes.half(at: 8) ^ 0x3030_3020
        let hundreds = digits &>> 8 & 0xFF
        guard (digits &+ 0x7676_7600 | digits) & 0x8080_80FF == 0, hundreds &- 1 < 5,
            unsafe bytes[unchecked: 12] == 0x20
        else { return -1 }
        let end = bytes.endOfShortText(from: 13)
        guard bytes.hasLineEnd(at: end) else { return -1 }
        isHTTP10 = isOld
        status = Int(hundreds &* 100 &+ (digits &>> 16 & 0xFF) &* 10 &+ digits &>> 24)
        reason = ByteRange(ordered: 13, end)
        return end &+ 2
    }

    /// Reads the status line at `start` (RFC 9112 §4).
    ///
    /// The space before an empty reason may be missing.
    @inline(never)
    mutating func readStatusLine(_ bytes: Span<UInt8>, at start: Int) -> LineOutcome {
        guard start &+ 8 <= bytes.count else { return endTooSoon(bytes, from: start) }
        guard let isOld = HTTPVersion.isHTTP10(bytes, at: start) else {
            return .failure(HTTPVersion.isVersion(bytes, at: start) ? .upstreamBadVersion : .upstreamBadStatusLine)
        }
        isHTTP10 = isOld
        guard start &+ 12 < bytes.count else { return endTooSoon(bytes, from: start) }
        let hundreds = bytes[start &+ 9] &- 0x30
        let tens = bytes[start &+ 10] &- 0x30
        let ones = bytes[start &+ 11] &- 0x30
        guard bytes[start &+ 8] == 0x20, hundreds &- 1 < 5, tens < 10, ones < 10 else {
            return .failure(.upstreamBadStatusLine)
        }
        status = Int(hundreds) &* 100 &+ Int(tens) &* 10 &+ Int(ones)
        var index = start &+ 12
        guard bytes[index] == 0x20 else {
            reason = .empty
            return FieldLine.readEnd(bytes, at: index, otherwise: .upstreamBadStatusLine)
        }
        index &+= 1
        let text = index
        index = bytes.endOfText(from: index)
        while index < bytes.count, bytes[index] == 0x09 || bytes[index] >= 0x80 {
            index = bytes.endOfText(from: index &+ 1)
        }
        reason = ByteRange(ordered: text, index)
        return FieldLine.readEnd(bytes, at: index, otherwise: .upstreamBadStatusLine)
    }

    /// A line that ends too soon, or that has not arrived completely.
    private func endTooSoon(_ bytes: Span<UInt8>, from start: Int) -> LineOutcome {
        bytes.lineFeed(from: start) < bytes.count ? .failure(.upstreamBadStatusLine) : .incomplete
    }
}
