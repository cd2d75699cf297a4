internal import MartletHTTP

/// The response that an upstream connection is receiving.
struct UpstreamResponse: ~Copyable {
    /// What happens to an interim response (1xx).
    enum InterimAction: Sendable {
        /// Forward it to the client.
        case forward
        /// Discard it, and wait for the next head.
        case discard
        /// Reject the whole response.
        case reject
    }

    /// What received bytes of a body are.
    enum BodyPart: Sendable, Equatable {
        /// The first bytes, this many, are content; with the last ones the response is whole.
        case content(Int, isLast: Bool)
        /// Chunks, which the decoder has to read.
        case chunks
    }

    /// Bytes of all interim responses (1xx) to one request.
    private static let interimLimit = 64 * 1024

    var parser = ResponseParser(maximumHeadBytes: 65_536)
    var framing = BodyFraming.none
    var remaining = 0
    var decoder = ChunkedDecoder()
    /// Bytes of it were received.
    var hasBegun = false
    /// The upstream will keep the connection open.
    var keepsAlive = false
    /// Bytes of interim responses to the request.
    var interimBytes = 0

    /// Prepares for the next response.
    @inline(__always)
    mutating func expect() {
        hasBegun = false
        framing = .none
        remaining = 0
        interimBytes = 0
        parser.reset()
    }

    // MARK: Head

    /// Decides about an interim head: 1xx passes to a client that understands it (RFC 9110 §15.2), an unrequested 101
    /// is an error, and so are more bytes than any work that reports its progress needs.
    /// - Parameters:
    ///   - bytes: the length of the head.
    ///   - request: a forwarded 100 is recorded there, because the client gets only one.
    mutating func interim(status: Int, bytes: Int, for request: inout RequestProperties) -> InterimAction {
        interimBytes &+= bytes
        guard status != 101, interimBytes <= UpstreamResponse.interimLimit else { return .reject }
        guard !request.isHTTP10 else { return .discard }
        if status == 100 {
            guard request.expectsContinue, !request.hasContinued else { return .discard }
            request.hasContinued = true
        }
        return .forward
    }

    /// Starts the final response with what its head says.
    /// - Parameters:
    ///   - framing: of the body, as the head says.
    ///   - keepsAlive: whether the upstream will keep the connection open.
    ///   - isStream: the response comes over an HTTP/2 stream.
    ///   - endsWithHead: the frame of the head has ended the stream.
    ///   - forStream: the client uses an HTTP/2 stream.
    /// - Returns: the framing of the body, and whether the response is whole without one.
    @inline(__always)
    mutating func start(
        framing: BodyFraming, keepsAlive: Bool, isStream: Bool, endsWithHead: Bool, forStream: Bool
    ) -> (framing: BodyFraming, isWhole: Bool) {
        let found = UpstreamResponse.bodyFraming(framing, endsWithHead: endsWithHead, forStream: forStream)
        self.keepsAlive = keepsAlive
        self.framing = found
        if case .length(let count) = found { remaining = count }
        if found.isChunked { decoder = ChunkedDecoder(isUpstream: true) }
        // On a stream, a head without a body may still be followed by trailers.
        return (found, found.isEmpty && (!isStream || endsWithHead))
    }

    /// How a response's body is framed.
    ///
    /// A stream's frames say that there is none; for an HTTP/1 client it takes a length of 0.
    @inline(__always)
    private static func bodyFraming(_ framing: BodyFraming, endsWithHead: Bool, forStream: Bool) -> BodyFraming {
        guard endsWithHead, !framing.isNone else { return framing }
        return framing.isUnbounded && forStream ? .none : .length(0)
    }

    /// The first error in the chunks from `start` on, as far as they were received.
    static func chunkError(in bytes: Span<UInt8>, from start: Int) -> HeadError? {
        var decoder = ChunkedDecoder(isUpstream: true)
        var offset = start
        while true {
            switch decoder.next(bytes, from: &offset) {
            case .data, .trailer: continue
            case .needMore, .end: return nil
            case .failure(let failure): return failure
            }
        }
    }

    // MARK: Body

    /// Consumes received bytes of the body.
    /// - Parameters:
    ///   - available: how many were received.
    ///   - isStream: they come over an HTTP/2 stream, whose frames are decoded already and say when it ends.
    @inline(__always)
    mutating func consume(_ available: Int, isStream: Bool) -> BodyPart {
        switch framing {
        case .length:
            let count = min(available, remaining)
            remaining &-= count
            return .content(count, isLast: remaining == 0 && !isStream)
        case .untilClose: return .content(available, isLast: false)
        case .chunked: return isStream ? .content(available, isLast: false) : .chunks
        case .none: return .content(0, isLast: false)
        }
    }

    // MARK: End

    /// Whether the HTTP/1 connection of a complete response can carry another request: nothing of this request is left
    /// that the upstream would read as a part of the next one.
    /// - Parameters:
    ///   - isBodyComplete: the whole request was received from the client.
    ///   - isHeadSent: the whole head of the request was sent.
    ///   - unsent: bytes of the request that are buffered.
    ///   - isReadClosed: the upstream has closed its sending side.
    @inline(__always)
    func canBeReused(isBodyComplete: Bool, isHeadSent: Bool, unsent: Int, isReadClosed: Bool) -> Bool {
        keepsAlive && isBodyComplete && isHeadSent && unsent == 0 && !isReadClosed
    }
}
