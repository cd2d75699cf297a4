internal import MartletHTTP

/// The body of a request: what delimits it, how much of it was received, and how much is allowed.
struct RequestBody {
    /// The next element of a body.
    enum Event {
        /// Content to forward; never empty.
        case data(ByteRange)
        /// One field of the trailer section.
        case trailer(HeadField)
        /// The body is complete; what follows is the next request.
        case end
        /// Buffer the bytes from the offset on and call again with more appended.
        case needMore
        /// More was received than the limit allows.
        case tooLarge
        case malformed(HeadError)
    }

    var framing = BodyFraming.none
    /// Bytes that are still to come, where the length is known.
    private(set) var remaining = 0
    private var decoder = ChunkedDecoder()
    /// The whole request was received.
    var isComplete = false
    /// Most bytes that the route allows.
    private var limit = Int.max
    /// Bytes that were received.
    private(set) var count = 0

    /// The head sets the framing; ``expect()`` follows where there is a body.
    @inline(__always)
    mutating func begin() {
        remaining = 0
        isComplete = false
        limit = .max
        count = 0
    }

    /// Prepares for the body that the framing announces.
    mutating func expect() {
        if case .length(let length) = framing { remaining = length }
        decoder = ChunkedDecoder()
    }

    /// Sets the limit.
    /// - Returns: whether a length that is known from the head is within it.
    @inline(__always)
    mutating func restrict(to limit: Int) -> Bool {
        self.limit = limit
        return remaining <= limit
    }

    /// Reads the next element from `offset`, and advances it.
    /// - Parameters:
    ///   - isStream: whether the bytes are content alone, from the frames of a stream.
    ///   - mayHaveTrailers: whether the last byte of a known length may be followed by trailers, so that only the
    ///     stream's last frame ends the body.
    @inline(__always)
    mutating func next(_ bytes: Span<UInt8>, from offset: inout Int, isStream: Bool, mayHaveTrailers: Bool) -> Event {
        switch framing {
        case .length: nextOfLength(upTo: bytes.count, from: &offset, mayHaveTrailers: mayHaveTrailers)
        case .chunked where isStream: nextOfFrames(upTo: bytes.count, from: &offset)
        case .chunked: nextOfChunks(bytes, from: &offset)
        case .none, .untilClose: .needMore
        }
    }

    /// The limit was checked against the length before.
    @inline(__always)
    private mutating func nextOfLength(upTo end: Int, from offset: inout Int, mayHaveTrailers: Bool) -> Event {
        let range = ByteRange(start: offset, count: min(end &- offset, remaining))
        remaining &-= range.count
        count &+= range.count
        // With the last byte, so that the upstream's response timeout starts when that is sent.
        if remaining == 0, !mayHaveTrailers { isComplete = true }
        guard range.isEmpty else {
            offset = range.end
            return .data(range)
        }
        return isComplete ? .end : .needMore
    }

    @inline(__always)
    private mutating func nextOfChunks(_ bytes: Span<UInt8>, from offset: inout Int) -> Event {
        switch decoder.next(bytes, from: &offset) {
        case .data(let range):
            count &+= range.count
            return count <= limit ? .data(range) : .tooLarge
        case .trailer(let field): return .trailer(field)
        case .end:
            isComplete = true
            return .end
        case .needMore: return .needMore
        case .failure(let failure): return .malformed(failure)
        }
    }

    /// The stream's last frame ends the body.
    @inline(__always)
    private mutating func nextOfFrames(upTo end: Int, from offset: inout Int) -> Event {
        let range = ByteRange(from: offset, to: end)
        guard !range.isEmpty else { return .needMore }
        count &+= range.count
        guard count <= limit else { return .tooLarge }
        offset = end
        return .data(range)
    }

    /// Counts bytes of a known length that were spliced to the upstream.
    @inline(__always)
    mutating func skip(_ length: Int) {
        remaining &-= length
        count &+= length
        if remaining == 0 { isComplete = true }
    }
}
