internal import MartletConfig
internal import MartletCore
internal import MartletHTTP
internal import MartletRouter

/// Forwards a response from the upstream to the client.
extension EventLoop {
    /// Consumes received bytes of a response as far as possible.
    /// - Returns: how many were consumed; the rest is buffered until more is received.
    mutating func consumeResponse(
        _ bytes: UnsafeBufferPointer<UInt8>, from upstream: Handle<UpstreamConnection>
    ) -> Int {
        var offset = 0
        staging.removeAll()
        while offset < bytes.count, upstreams[upstream].isAlive {
            let rest = unsafe UnsafeBufferPointer(rebasing: bytes[offset...])
            var used = 0
            switch upstreams[upstream].phase {
            case .awaitingHead: used = unsafe parseResponseHead(rest, from: upstream)
            case .body: used = unsafe consumeResponseBody(rest, from: upstream)
            case .connecting, .handshake, .idle, .frames: return offset
            }
            if used == 0 { break }
            offset &+= used
        }
        guard upstreams[upstream].isAlive, !upstreams[upstream].exchange.isNone else { return offset }
        sendStaging(upstreams[upstream].exchange)
        // Everything was consumed and the response continues: wait for the next byte.
        if upstreams[upstream].isAlive, upstreams[upstream].phase == .body {
            armResponseIdle(upstream, upstreams[upstream].exchange)
        }
        return offset
    }

    // MARK: Head

    @inline(__always)
    private mutating func parseResponseHead(
        _ bytes: UnsafeBufferPointer<UInt8>, from upstream: Handle<UpstreamConnection>
    ) -> Int {
        let exchange = upstreams[upstream].exchange
        let method = exchanges[exchange].request.method
        var parser = upstreams[upstream].response.parser
        let outcome = unsafe parser.parse(bytes.span, requestMethod: method, into: &response)
        upstreams[upstream].response.parser = parser
        switch outcome {
        case .needMore: return 0
        case .failure(let failure):
            rejectResponse(upstream, failure.code)
            return bytes.count
        case .complete(let count):
            let head = unsafe UnsafeBufferPointer(rebasing: bytes[..<count])
            if response.status == 101, !exchanges[exchange].tunnel.isNone {
                unsafe openTunnel(head, upstream)
            } else {
                if response.framing.isChunked, unsafe rejectsChunks(bytes, from: count, upstream) { return bytes.count }
                unsafe response.status < 200 ? forwardInterim(head, upstream) : startResponse(head, upstream)
            }
            return count
        }
    }

    @inline(never)
    private mutating func forwardInterim(_ bytes: UnsafeBufferPointer<UInt8>, _ upstream: Handle<UpstreamConnection>) {
        let exchange = upstreams[upstream].exchange
        switch upstreams[upstream].response.interim(status: response.status, for: &exchanges[exchange].request) {
        case .reject: rejectResponse(upstream, "upstream.unexpected_interim_answer")
        case .discard: break
        case .forward:
            unsafe headWriter(exchange).writeInterim(response, bytes, into: &staging)
            sendStreamHead(exchange, ends: false)
        }
    }

    @inline(__always)
    private mutating func startResponse(_ bytes: UnsafeBufferPointer<UInt8>, _ upstream: Handle<UpstreamConnection>) {
        let exchange = upstreams[upstream].exchange
        directory.succeeded(upstreams[upstream].endpoint)
        let (framing, isWhole) = upstreams[upstream].response.start(
            framing: response.framing, keepsAlive: response.keepsAlive, isStream: upstreams[upstream].kind == .stream,
            endsWithHead: upstreams[upstream].stream.endsWithHead, forStream: exchanges[exchange].isStream)
        exchanges[exchange].response.start(
            status: response.status, framing: framing, isHTTP10: exchanges[exchange].request.isHTTP10,
            isStream: exchanges[exchange].isStream,
            closes: !exchanges[exchange].request.keepsAlive || isDraining || !exchanges[exchange].body.isComplete)
        unsafe headWriter(exchange).write(
            response, bytes, framing, date: clock.dateText, requestID: exchanges[exchange].record.texts.requestID,
            into: &staging)
        sendStreamHead(exchange, ends: isWhole)
        if isWhole {
            finishResponse(upstream)
        } else {
            upstreams[upstream].phase = .body
        }
    }

    /// What writes the heads of an exchange's response.
    @inline(__always)
    func headWriter(_ exchange: Handle<Exchange>) -> ResponseHeadWriter {
        ResponseHeadWriter(
            isHTTP10: exchanges[exchange].request.isHTTP10, isStream: exchanges[exchange].isStream,
            isChunked: exchanges[exchange].response.isChunked, closes: exchanges[exchange].response.closesDownstream,
            strictTransportSeconds: downstreams[exchanges[exchange].downstream].origin.rules.strictTransportSeconds)
    }

    /// Rejects a response whose chunks are invalid as far as they came together with its head, as long as nothing was
    /// sent to the client.
    @inline(never)
    private mutating func rejectsChunks(
        _ bytes: UnsafeBufferPointer<UInt8>, from start: Int, _ upstream: Handle<UpstreamConnection>
    ) -> Bool {
        guard upstreams[upstream].kind == .http1,
            let failure = unsafe UpstreamResponse.chunkError(in: bytes.span, from: start)
        else { return false }
        rejectResponse(upstream, failure.code, closes: true)
        return true
    }

    // MARK: Body

    /// Finishes a response: its last bytes are sent, the upstream connection goes back to the pool, the exchange ends.
    mutating func finishResponse(_ upstream: Handle<UpstreamConnection>) {
        let exchange = upstreams[upstream].exchange
        if !upstreams[upstream].response.framing.isNone {
            let lent = unsafe exchanges.address(of: exchange)
            unsafe lent.pointee.response.writeLastChunk(into: &staging)
        }
        sendStaging(exchange, isLast: exchanges[exchange].response.closesDownstream)
        guard exchanges[exchange].isAlive else { return }
        finishStream(exchange)
        detach(upstream, of: exchange)
        complete(exchange)
    }

    /// Detaches the upstream connection from the exchange, and returns it to the pool if it can be reused.
    @inline(__always)
    private mutating func detach(_ upstream: Handle<UpstreamConnection>, of exchange: Handle<Exchange>) {
        exchanges[exchange].upstream = .none
        upstreams[upstream].exchange = .none
        upstreams[upstream].served &+= 1
        directory.ended(upstreams[upstream].endpoint)
        // A stream carries one request.
        let isReusable =
            upstreams[upstream].kind == .http1
            && upstreams[upstream].response.canBeReused(
                isBodyComplete: exchanges[exchange].body.isComplete,
                isHeadSent: exchanges[exchange].forwarding.headSent == exchanges[exchange].forwarding.head.count,
                unsent: unsent(upstream), isReadClosed: upstreams[upstream].transport.isReadClosed)
        if isReusable { returnToPool(upstream) } else { closeUpstream(upstream) }
    }

    mutating func armResponseIdle(_ upstream: Handle<UpstreamConnection>, _ exchange: Handle<Exchange>) {
        arm(upstream: upstream, at: now &+ exchanges[exchange].forwarding.idleTimeout)
    }
}
