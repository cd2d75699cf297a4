internal import MartletCore
internal import MartletDecisions
internal import MartletHTTP
internal import MartletProvider
internal import MartletResponder
internal import MartletUpstreams

/// Forwards the body of a request as it arrives.
extension RequestForwarder {
    /// Consumes bytes of a request's body as far as possible.
    /// - Returns: how many were consumed; 0 when more are needed first or the other side is slow.
    static func consumeBody(
        _ bytes: UnsafeBufferPointer<UInt8>, for exchange: Handle<Exchange>, _ loop: inout LoopState
    ) -> Int {
        let isStream = loop.exchanges[exchange].isStream
        if loop.exchanges.isTunnel(exchange) {
            if isStream {
                loop.downstreams.creditStream(loop.exchanges[exchange].downstream, bytes.count, &loop.context)
            }
            return unsafe tunnelFromDownstream(bytes, exchange, &loop)
        }
        let used = unsafe forwardBody(bytes, of: exchange, isStream: isStream, &loop)
        guard loop.exchanges[exchange].isAlive else { return bytes.count }
        if isStream { loop.downstreams.creditStream(loop.exchanges[exchange].downstream, used, &loop.context) }
        if !loop.exchanges[exchange].upstream.isNone { loop.flush(upstream: loop.exchanges[exchange].upstream) }
        guard loop.exchanges[exchange].isAlive else { return bytes.count }
        if loop.exchanges[exchange].body.isComplete {
            requestCompleted(exchange, &loop)
        } else {
            loop.exchanges[exchange].armBody(&loop.downstreams, &loop.context)
        }
        return used
    }

    /// Forwards the elements of the body that `bytes` contain.
    /// - Returns: how many bytes were consumed; all of them where the exchange has failed.
    @inline(__always)
    private static func forwardBody(
        _ bytes: UnsafeBufferPointer<UInt8>, of exchange: Handle<Exchange>, isStream: Bool, _ loop: inout LoopState
    ) -> Int {
        // The last byte of a stream's body may be followed by trailers.
        let mayHaveTrailers = isStream && loop.exchanges[exchange].goesOverStream(&loop.upstreams)
        var offset = 0
        while true {
            switch unsafe loop.exchanges[exchange].body.next(
                bytes.span, from: &offset, isStream: isStream, mayHaveTrailers: mayHaveTrailers)
            {
            case .data(let range):
                if loop.exchanges[exchange].bodyWatch.isActive,
                    unsafe differs(exchange, after: bytes[range], &loop)
                {
                    return bytes.count
                }
                if loop.exchanges[exchange].responder.holdsBody, !reserve(range.count, of: exchange, &loop) {
                    return bytes.count
                }
                unsafe loop.exchanges[exchange].forwardPiece(
                    bytes[range], &loop.downstreams, &loop.upstreams, &loop.context)
            case .trailer(let field):
                unsafe loop.exchanges[exchange].collectTrailer(field, bytes, &loop.upstreams, &loop.context)
            case .end:
                if loop.exchanges[exchange].bodyWatch.isActive, differs(exchange, &loop) { return bytes.count }
                loop.exchanges[exchange].forwardEnd(&loop.upstreams)
                return offset
            case .needMore: return offset
            case .tooLarge:
                loop.fail(exchange, .bodyTooLarge)
                return bytes.count
            case .malformed(let failure):
                loop.fail(exchange, .head(failure))
                return bytes.count
            }
        }
    }

    /// Makes sure of the memory for a piece that this process keeps.
    /// - Returns: `false` if the exchange has failed, because its network keeps too much already.
    @inline(never)
    private static func reserve(_ count: Int, of exchange: Handle<Exchange>, _ loop: inout LoopState) -> Bool {
        let owner = loop.exchanges[exchange].clientNetwork(&loop.downstreams)?.workOwner ?? .anonymous
        let isReserved = loop.exchanges[exchange].heldBody.reserve(
            count, isWhole: loop.exchanges[exchange].body.isComplete, upTo: LocalLimits.bodyBytes, for: owner,
            in: .process)
        guard !isReserved else { return true }
        loop.reject(exchange, .bodiesOverShare)
        return false
    }

    /// Looks at a piece of the body before it is forwarded: compares it with what the credential vouches for.
    /// - Returns: whether the exchange has failed, because with this piece the body is complete and another one.
    @inline(never)
    private static func differs(
        _ exchange: Handle<Exchange>, after piece: UnsafeBufferPointer<UInt8>, _ loop: inout LoopState
    ) -> Bool {
        unsafe loop.exchanges[exchange].bodyWatch.add(piece)
        guard !loop.exchanges[exchange].body.framing.isChunked, loop.exchanges[exchange].body.remaining == 0 else {
            return false
        }
        return differs(exchange, &loop)
    }

    /// The same for a body that is complete, whose copy is sent.
    @inline(never)
    private static func differs(_ exchange: Handle<Exchange>, _ loop: inout LoopState) -> Bool {
        switch loop.exchanges[exchange].bodyWatch.finish() {
        case .accepted(let copy):
            if let copy { loop.context.threads.mirror?.send(copy) }
            return false
        case .differs:
            loop.fail(exchange, .malformed(BodyWatch.mismatch))
            return true
        }
    }

    /// The last frame of a stream's body was consumed.
    private static func finishStreamedBody(_ exchange: Handle<Exchange>, _ loop: inout LoopState) {
        if loop.exchanges[exchange].bodyWatch.isActive, differs(exchange, &loop) { return }
        loop.exchanges[exchange].body.isComplete = true
        // Only now it is known which of them the upstream may get.
        var lines = ByteBuffer()
        swap(&lines, &loop.exchanges[exchange].trailers.received)
        unsafe loop.exchanges[exchange].collectTrailers(lines.bytes, &loop.upstreams, &loop.context)
        loop.exchanges[exchange].forwardEnd(&loop.upstreams)
        if !loop.exchanges[exchange].upstream.isNone { loop.flush(upstream: loop.exchanges[exchange].upstream) }
        if loop.exchanges[exchange].isAlive { requestCompleted(exchange, &loop) }
    }

    /// Completes the request once all frames of the stream are consumed.
    static func finishStreamInput(_ stream: Handle<DownstreamConnection>, _ loop: inout LoopState) {
        let exchange = loop.downstreams[stream].exchange
        guard loop.downstreams[stream].stream.isEnded, loop.downstreams[stream].reader.input.isEmpty,
            loop.downstreams[stream].phase == .exchange,
            !exchange.isNone, !loop.exchanges[exchange].body.isComplete
        else { return }
        if loop.exchanges.isTunnel(exchange) {
            loop.downstreams[stream].transport.isReadClosed = true
            return loop.tunnelDownstreamEnded(exchange)
        }
        guard loop.exchanges[exchange].body.framing.isChunked || loop.exchanges[exchange].body.remaining == 0 else {
            return loop.abandon(stream)
        }
        finishStreamedBody(exchange, &loop)
    }

    static func requestCompleted(_ exchange: Handle<Exchange>, _ loop: inout LoopState) {
        loop.downstreams.arm(loop.exchanges[exchange].downstream, at: .max, &loop.context)
        switch loop.exchanges[exchange].responder {
        case .local: return startLocal(exchange, &loop)
        case .route: return sendPrepared(exchange, &loop)
        case .call: return RequestForwarder.describeCheck(exchange, &loop)
        case .none, .upstream: break
        }
        let upstream = loop.exchanges[exchange].upstream
        guard !upstream.isNone, loop.upstreams[upstream].phase == .awaitingHead else { return }
        loop.exchanges[loop.upstreams[upstream].exchange].armResponseTimeout(upstream, &loop.upstreams, &loop.context)
    }
}
