private import CLinux
internal import MartletCore
internal import MartletDecisions
internal import MartletHTTP
internal import MartletTraffic

/// Reads the head and the body of a response.
extension ResponseReader {
    /// Consumes received bytes of a response as far as possible.
    /// - Returns: how many were consumed; the rest is buffered until more is received.
    mutating func consumeResponse(
        _ bytes: UnsafeBufferPointer<UInt8>, from upstream: Handle<UpstreamConnection>, _ loop: inout LoopState
    ) -> Int {
        var offset = 0
        while offset < bytes.count, loop.upstreams[upstream].isAlive {
            let rest = unsafe UnsafeBufferPointer(rebasing: bytes[offset...])
            var used = 0
            switch loop.upstreams[upstream].phase {
            case .awaitingHead: used = unsafe parseResponseHead(rest, from: upstream, &loop)
            case .body: used = unsafe consumeResponseBody(rest, from: upstream, &loop)
            case .connecting, .handshake, .idle, .frames: return offset
            }
            if used == 0 { break }
            offset &+= used
        }
        guard loop.upstreams[upstream].isAlive, !loop.upstreams[upstream].exchange.isNone else { return offset }
        loop.sendPending(loop.upstreams[upstream].exchange)
        // Everything was consumed and the response continues: wait for the next byte.
        if loop.upstreams[upstream].isAlive, loop.upstreams[upstream].phase == .body {
            loop.exchanges[loop.upstreams[upstream].exchange].armResponseIdle(upstream, &loop.upstreams, &loop.context)
        }
        return offset
    }

    @inline(__always)
    private mutating func parseResponseHead(
        _ bytes: UnsafeBufferPointer<UInt8>, from upstream: Handle<UpstreamConnection>, _ loop: inout LoopState
    ) -> Int {
        let exchange = loop.upstreams[upstream].exchange
        let method = loop.exchanges[exchange].request.method
        var parser = loop.upstreams[upstream].response.parser
        let outcome = unsafe parser.parse(bytes.span, requestMethod: method, into: &response)
        loop.upstreams[upstream].response.parser = parser
        switch outcome {
        case .needMore: return 0
        case .failure(let failure):
            loop.rejectResponse(upstream, failure.code)
            return bytes.count
        case .complete(let count):
            let head = unsafe UnsafeBufferPointer(rebasing: bytes[..<count])
            if response.status == 101, !loop.exchanges[exchange].tunnel.isNone {
                unsafe openTunnel(head, upstream, &loop)
            } else {
                if response.framing.isChunked, unsafe rejectsChunks(bytes, from: count, upstream, &loop) {
                    return bytes.count
                }
                unsafe response.status < 200
                    ? forwardInterim(head, upstream, &loop) : startResponse(head, upstream, &loop)
            }
            return count
        }
    }

    /// Rejects a response whose chunks are invalid as far as they came together with its head, as long as nothing was
    /// sent to the client.
    @inline(never)
    private mutating func rejectsChunks(
        _ bytes: UnsafeBufferPointer<UInt8>, from start: Int, _ upstream: Handle<UpstreamConnection>,
        _ loop: inout LoopState
    ) -> Bool {
        guard loop.upstreams[upstream].kind == .http1,
            let failure = unsafe UpstreamResponse.chunkError(in: bytes.span, from: start)
        else { return false }
        loop.rejectResponse(upstream, failure.code, closes: true)
        return true
    }

    @inline(never)
    private mutating func forwardInterim(
        _ bytes: UnsafeBufferPointer<UInt8>, _ upstream: Handle<UpstreamConnection>, _ loop: inout LoopState
    ) {
        let exchange = loop.upstreams[upstream].exchange
        switch loop.upstreams[upstream].response.interim(
            status: response.status, bytes: bytes.count, for: &loop.exchanges[exchange].request)
        {
        case .reject: loop.rejectResponse(upstream, "upstream.unexpected_interim_answer")
        case .discard: break
        case .forward:
            let start = loop.context.scratch.pending[exchange].count
            unsafe loop.exchanges[exchange].headWriter(&loop.downstreams).writeInterim(
                response, bytes, into: &loop.context.scratch.pending[exchange])
            if response.fields.has(.setCookie) { Exchanges.cutCookies(of: exchange, from: start, &loop.context) }
            loop.exchanges.sendStreamHead(exchange, ends: false, &loop.downstreams, &loop.context)
        }
    }

    @inline(__always)
    private mutating func startResponse(
        _ bytes: UnsafeBufferPointer<UInt8>, _ upstream: Handle<UpstreamConnection>, _ loop: inout LoopState
    ) {
        let exchange = loop.upstreams[upstream].exchange
        if response.status >= 502, response.status <= 504 {
            guard !isRepeated(exchange, upstream, &loop) else { return }
        } else {
            loop.upstreams.directory.succeeded(loop.upstreams[upstream].endpoint, now: loop.now)
        }
        let (framing, isWhole) = loop.upstreams[upstream].response.start(
            framing: response.framing, keepsAlive: response.keepsAlive,
            isStream: loop.upstreams[upstream].kind == .stream,
            endsWithHead: loop.upstreams[upstream].stream.endsWithHead, forStream: loop.exchanges[exchange].isStream)
        loop.exchanges[exchange].response.start(
            status: response.status, framing: framing, isHTTP10: loop.exchanges[exchange].request.isHTTP10,
            isStream: loop.exchanges[exchange].isStream,
            closes: !loop.exchanges[exchange].request.keepsAlive || loop.isDraining
                || !loop.exchanges[exchange].body.isComplete)
        let start = loop.context.scratch.pending[exchange].count
        unsafe loop.exchanges[exchange].headWriter(&loop.downstreams).write(
            response, bytes, framing, date: loop.context.clock.dateText,
            requestID: loop.exchanges[exchange].record.texts.requestID,
            into: &loop.context.scratch.pending[exchange])
        completeHead(exchange, from: start, &loop.exchanges, &loop.context)
        loop.exchanges.sendStreamHead(exchange, ends: isWhole, &loop.downstreams, &loop.context)
        if isWhole {
            loop.finishResponse(upstream)
        } else {
            loop.upstreams[upstream].phase = .body
        }
    }

    /// A response counts as a failure of its endpoint: whether the request is sent again instead of forwarding it.
    @inline(never)
    private mutating func isRepeated(
        _ exchange: Handle<Exchange>, _ upstream: Handle<UpstreamConnection>, _ loop: inout LoopState
    ) -> Bool {
        loop.upstreams.directory.failed(loop.upstreams[upstream].endpoint, refused: false, now: loop.now)
        return RequestForwarder.retry(
            exchange, "upstream.failure_status", .responded(RetryPolicy.Conditions(status: response.status)), &loop)
    }

    @inline(__always)
    private mutating func consumeResponseBody(
        _ bytes: UnsafeBufferPointer<UInt8>, from upstream: Handle<UpstreamConnection>, _ loop: inout LoopState
    ) -> Int {
        let exchange = loop.upstreams[upstream].exchange
        if loop.exchanges.isTunnel(exchange) {
            return unsafe RequestForwarder.tunnelFromUpstream(bytes, exchange, &loop)
        }
        switch loop.upstreams[upstream].response.consume(
            bytes.count, isStream: loop.upstreams[upstream].kind == .stream)
        {
        case .content(let count, let isLast):
            unsafe loop.forwardResponseBody(unsafe UnsafeBufferPointer(rebasing: bytes[..<count]), exchange)
            if isLast, loop.upstreams[upstream].isAlive, loop.upstreams[upstream].exchange == exchange {
                loop.finishResponse(upstream)
            }
            return count
        case .chunks: return unsafe consumeResponseChunks(bytes, from: upstream, &loop)
        }
    }

    private mutating func consumeResponseChunks(
        _ bytes: UnsafeBufferPointer<UInt8>, from upstream: Handle<UpstreamConnection>, _ loop: inout LoopState
    ) -> Int {
        let exchange = loop.upstreams[upstream].exchange
        var offset = 0
        while loop.upstreams[upstream].isAlive {
            switch unsafe loop.upstreams[upstream].response.decoder.next(bytes.span, from: &offset) {
            case .data(let range): unsafe loop.forwardResponseBody(bytes[range], exchange)
            case .trailer(let field):
                unsafe loop.exchanges[exchange].collectResponseTrailer(field, bytes, &loop.context)
            case .end:
                loop.finishResponse(upstream)
                return offset
            case .needMore: return offset
            case .failure(let failure):
                loop.rejectResponse(upstream, failure.code)
                return bytes.count
            }
        }
        return bytes.count
    }

    /// Moves a part of a response's body.
    /// - Returns: whether that is all there is to do now; otherwise the upstream connection has to be read.
    mutating func spliceResponse(_ upstream: Handle<UpstreamConnection>, _ loop: inout LoopState) -> Bool {
        guard loop.upstreams.canSpliceResponse(upstream, &loop.downstreams, &loop.exchanges),
            let pipe = loop.pipes.acquire()
        else {
            return false
        }
        let count = loop.pipes.fill(
            pipe, from: loop.upstreams[upstream].transport.fd, atMost: loop.upstreams[upstream].response.remaining)
        guard count > 0 else {
            // An end of stream or an error is left to the read.
            let isDry = count < 0 && martlet_errno() == EAGAIN
            loop.pipes.release(pipe)
            return isDry
        }
        loop.upstreams[upstream].pipe = pipe
        loop.upstreams[upstream].transport.isBulk = SpliceRules.isBulk(count)
        loop.upstreams.arm(
            upstream, at: loop.now &+ loop.exchanges[loop.upstreams[upstream].exchange].forwarding.idleTimeout,
            &loop.context)
        RequestForwarder.drainResponsePipe(upstream, &loop)
        return true
    }
}
