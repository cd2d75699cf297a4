private import CLinux
internal import MartletCore
internal import MartletHTTP
internal import MartletHTTP2
internal import MartletIO
internal import MartletTLS

/// Upstream sockets: connecting, sending, reading and failing.
extension Worker {
    private static let readBatch = 16

    /// Something happened on an upstream's socket.
    mutating func linkEvent(_ token: EventToken, _ readiness: Readiness) {
        let link = token.index
        guard links.holds(link, token.generation) else { return }
        if links[link].phase == .connecting {
            connected(link, readiness)
            // An upstream may have answered, or ended, before it heard anything; no other event will say so.
            guard links.holds(link, token.generation), links[link].phase != .connecting else { return }
        }
        if readiness.has(.ended) { links[link].hasEnded = true }
        if readiness.has(.writable) {
            if mayHaveUnsent(link) { flush(link: link) }
            guard links.holds(link, token.generation) else { return }
            goOnSplicing(toLink: link)
        }
        guard links.holds(link, token.generation) else { return }
        if readiness.has(.input) { readLink(link) }
    }

    /// Whether there may be something to send: most events of an edge-triggered socket say "writable" for nothing.
    @inline(__always)
    private func mayHaveUnsent(_ link: Int32) -> Bool {
        if links[link].kind != .http1 || links[link].isSecure || !links[link].output.isEmpty { return true }
        let exchange = links[link].exchange
        return exchange >= 0 && exchanges[exchange].headSent < exchanges[exchange].head.count
    }

    /// What the upstream has still to take.
    func unsent(_ link: Int32) -> Int {
        if links[link].kind == .stream {
            return links[link].output.count &+ (session(of: link)?.unsent(links[link].stream) ?? 0)
        }
        return links[link].output.count &+ links[link].wire.count
    }

    private mutating func connected(_ link: Int32, _ readiness: Readiness) {
        let error = Socket.pendingError(links[link].fd)
        guard error == 0, !readiness.has(.broken) else {
            return connectFailed(link, .upstreamUnavailable("upstream.refused"))
        }
        guard readiness.has(.writable) else { return }
        if needsGreeting(link) { return greet(link) }
        linkReady(link)
    }

    /// The way to the upstream is free: the request goes out.
    mutating func linkReady(_ link: Int32) {
        if links[link].kind == .http2 { return beginFrames(link) }
        links[link].expectAnswer()
        armAnswer(link)
        flush(link: link)
    }

    /// There is no connection, or none that can be trusted.
    mutating func connectFailed(_ link: Int32, _ failure: Failure) {
        if links[link].kind == .http2 { return connectionFailed(link, failure) }
        let exchange = links[link].exchange
        upstreams.failed(links[link].endpoint, refused: true, now: now)
        takeBackBody(exchange)
        dropLink(of: exchange)
        retryOrRefuse(exchange, failure, nothingSent: true)
    }

    // MARK: Sending

    /// Sends what waits: the head first, then the body.
    mutating func flush(link: Int32) {
        if links[link].kind != .http1 || links[link].isSecure { return flushWrapped(link) }
        let exchange = links[link].exchange
        guard exchange >= 0, links[link].phase != .connecting else { return }
        let headLeft = exchanges[exchange].head.count &- exchanges[exchange].headSent
        guard headLeft > 0 || !links[link].output.isEmpty else { return }
        let head = unsafe UnsafeBufferPointer(rebasing: exchanges[exchange].head.bytes[exchanges[exchange].headSent...])
        let body = unsafe links[link].output.bytes
        let sent = unsafe martlet_send_two(links[link].fd, head.baseAddress, head.count, body.baseAddress, body.count)
        if sent < 0 {
            let reason = martlet_errno()
            if reason != EAGAIN && reason != EINTR { sendFailed(link) }
            return
        }
        let ofHead = min(sent, headLeft)
        exchanges[exchange].headSent &+= ofHead
        links[link].output.consume(sent &- ofHead)
        if links[link].output.isEmpty { links[link].output.release() }
        if !exchanges[exchange].isRequestComplete { armAnswer(link) }
        resumeClient(of: exchange)
        if isTunnel(exchange), links[link].output.isEmpty { settleTunnel(exchange) }
    }

    /// The upstream takes no more.
    ///
    /// It may still have answered: what it said is read before the verdict.
    mutating func sendFailed(_ link: Int32) {
        links[link].output.removeAll()
        links[link].hasEnded = true
        let exchange = links[link].exchange
        exchanges[exchange].headSent = exchanges[exchange].head.count
        markReady(link: link)
    }

    mutating func resumeClient(of exchange: Int32) {
        let client = exchanges[exchange].client
        let link = exchanges[exchange].link
        guard clients[client].isPaused, unsent(link) < Worker.lowWater else { return }
        clients[client].isPaused = false
        if !exchanges[exchange].isRequestComplete { armBody(exchange) }
        markReady(client: client)
    }

    // MARK: Reading

    /// Reads an answer as far as it has come.
    mutating func readLink(_ link: Int32) {
        if links[link].kind == .stream { return continueAnswer(link) }
        let generation = links[link].generation
        if links[link].phase == .idle, !links[link].isSecure { return closeLink(link) }
        for _ in 0..<Worker.readBatch {
            guard !links[link].isPaused, links[link].pipe < 0 else { return }
            if links[link].isBulk, spliceAnswer(link) { return }
            let count = receiveBuffer.receive(from: links[link].fd)
            if count > 0 {
                links[link].isBulk = count == ReceiveBuffer.size
                if links[link].isSecure || links[link].kind == .http2 {
                    unsafe unwrap(link, receiveBuffer.bytes(count))
                } else {
                    unsafe answered(link, receiveBuffer.bytes(count))
                }
                guard links.holds(link, generation) else { return }
                guard links[link].phase != .idle else { return checkIdle(link, received: count) }
                if count < ReceiveBuffer.size, !links[link].hasEnded { return }
            } else if count == 0 {
                return linkEnded(link)
            } else {
                let reason = martlet_errno()
                guard reason == EAGAIN || reason == EINTR else { return linkBroke(link, "upstream.reset") }
                // Its goodbye may have come while the client was slow, and nothing may follow it.
                if links[link].phase == .body, links[link].engine?.isPeerClosed == true { linkEnded(link) }
                return
            }
        }
        markReady(link: link)
    }

    /// A link that was parked behind a full read may have more to say, which is nobody's answer.
    mutating func checkIdle(_ link: Int32, received: Int) {
        guard received == ReceiveBuffer.size else { return }
        if receiveBuffer.receive(from: links[link].fd) >= 0 || martlet_errno() != EAGAIN { closeLink(link) }
    }

    mutating func answered(_ link: Int32, _ bytes: UnsafeBufferPointer<UInt8>) {
        let generation = links[link].generation
        links[link].hasAnswered = true
        guard links[link].input.isEmpty else {
            unsafe links[link].input.append(bytes)
            let used = unsafe useAnswer(unsafe links[link].input.bytes, from: link)
            guard links.holds(link, generation) else { return }
            links[link].input.consume(used)
            if links[link].input.isEmpty { return links[link].input.release() }
            if links[link].phase == .idle { closeLink(link) }
            return
        }
        let used = unsafe useAnswer(bytes, from: link)
        guard links.holds(link, generation), used < bytes.count else { return }
        guard links[link].phase != .idle else { return closeLink(link) }
        unsafe links[link].input.append(unsafe UnsafeBufferPointer(rebasing: bytes[used...]))
    }

    // MARK: Ends

    /// The upstream has sent its last byte.
    mutating func linkEnded(_ link: Int32) {
        if isTunnel(links[link].exchange) { return upstreamEnded(tunnelOf: links[link].exchange) }
        // RFC 9112 §9.8: under TLS an end that was not announced may be a cut.
        let isAnnounced = !links[link].isSecure || links[link].engine?.isPeerClosed == true
        guard links[link].phase == .body, links[link].framing.isUntilClose, isAnnounced else {
            return linkBroke(link, links[link].hasAnswered ? "upstream.truncated" : "upstream.closed_early")
        }
        links[link].keepsAlive = false
        // What other requests left there is nobody's business here.
        staging.removeAll()
        endAnswer(link)
    }

    /// The connection failed with a request on it.
    mutating func linkBroke(_ link: Int32, _ reason: ErrorCode) {
        if links[link].phase == .handshake { return connectFailed(link, .upstreamUnavailable(reason)) }
        if links[link].kind == .http2 { return connectionBroke(link, reason) }
        let exchange = links[link].exchange
        guard exchange >= 0 else { return closeLink(link) }
        if isTunnel(exchange) { return fail(exchange, .upstreamInvalid("tunnel.upstream_broke")) }
        let wasStale = links[link].served > 0 && !links[link].hasAnswered
        if !wasStale { upstreams.failed(links[link].endpoint, refused: false, now: now) }
        let hasAnswered = links[link].hasAnswered
        dropLink(of: exchange)
        let failure = hasAnswered ? Failure.upstreamInvalid(reason) : Failure.upstreamUnavailable(reason)
        if hasAnswered { fail(exchange, failure) } else { retryOrRefuse(exchange, failure, nothingSent: false) }
    }

    /// The upstream said something that is not HTTP, or not allowed.
    ///
    /// - Parameter closes: the client's connection ends with it, as it would where the answer had begun.
    mutating func answerInvalid(_ link: Int32, _ reason: ErrorCode, closes: Bool = false) {
        let exchange = links[link].exchange
        upstreams.failed(links[link].endpoint, refused: false, now: now)
        dropLink(of: exchange)
        var failure = Failure.upstreamInvalid(reason)
        failure.closes = closes
        fail(exchange, failure)
    }

    /// A link's deadline has passed.
    mutating func linkTimedOut(_ link: Int32) {
        let exchange = links[link].exchange
        if isTunnel(exchange) { return }
        switch links[link].phase {
        case .idle: closeLink(link)
        case .frames: framesIdle(link)
        case .connecting, .handshake: connectFailed(link, .upstreamTimeout("upstream.connect_timed_out"))
        case .awaitingHead where isTakingRequest(link): armAnswer(link)
        case .awaitingHead:
            // An upstream that waits for the rest of a request has not failed.
            if exchanges[exchange].isRequestComplete || !links[link].output.isEmpty || hasBodyInPipe(link) {
                upstreams.failed(links[link].endpoint, refused: false, now: now)
            }
            doubtConnection(of: link, silentFor: exchanges[exchange].answerPatience)
            dropLink(of: exchange)
            fail(exchange, .upstreamTimeout("upstream.answer_timed_out"))
        case .body:
            guard !links[link].isPaused else { return arm(link: link, at: now &+ 1_000_000_000) }
            upstreams.failed(links[link].endpoint, refused: false, now: now)
            dropLink(of: exchange)
            fail(exchange, .upstreamTimeout("upstream.answer_stalled"))
        }
    }
}
