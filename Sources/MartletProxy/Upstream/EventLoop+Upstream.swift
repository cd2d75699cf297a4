private import CLinux
internal import MartletCore
internal import MartletHTTP
internal import MartletHTTP2
internal import MartletIO
internal import MartletTLS

/// Upstream sockets: connecting, sending, reading and failing.
extension EventLoop {
    private static let readBatch = 16

    /// Handles an event of an upstream socket.
    mutating func upstreamEvent(_ token: EventToken, _ readiness: Readiness) {
        let upstream = token.index
        guard upstreams.contains(upstream, token.generation) else { return }
        if upstreams[upstream].phase == .connecting {
            connectFinished(upstream, readiness)
            // An upstream may have sent bytes, or closed, before it received any; no other event will report it.
            guard upstreams.contains(upstream, token.generation), upstreams[upstream].phase != .connecting else {
                return
            }
        }
        if readiness.has(.ended) { upstreams[upstream].isReadClosed = true }
        if readiness.has(.writable) {
            if mayHaveUnsent(upstream) { flush(upstream: upstream) }
            guard upstreams.contains(upstream, token.generation) else { return }
            resumeSplice(toUpstream: upstream)
        }
        guard upstreams.contains(upstream, token.generation) else { return }
        if readiness.has(.input) { readUpstream(upstream) }
    }

    /// Whether there may be something to send: most "writable" events of an edge-triggered socket are redundant.
    @inline(__always)
    private func mayHaveUnsent(_ upstream: Int32) -> Bool {
        if upstreams[upstream].kind != .http1 || upstreams[upstream].isSecure || !upstreams[upstream].output.isEmpty {
            return true
        }
        let exchange = upstreams[upstream].exchange
        return exchange >= 0 && exchanges[exchange].headSent < exchanges[exchange].head.count
    }

    /// Bytes that the upstream has still to accept.
    func unsent(_ upstream: Int32) -> Int {
        if upstreams[upstream].kind == .stream {
            return upstreams[upstream].output.count
                &+ (session(of: upstream)?.unsent(upstreams[upstream].streamID) ?? 0)
        }
        return upstreams[upstream].output.count &+ upstreams[upstream].transportOutput.count
    }

    private mutating func connectFinished(_ upstream: Int32, _ readiness: Readiness) {
        let error = Socket.pendingError(upstreams[upstream].fd)
        guard error == 0, !readiness.has(.broken) else {
            return connectFailed(upstream, .upstreamUnavailable("upstream.refused"))
        }
        guard readiness.has(.writable) else { return }
        if needsPreamble(upstream) { return startPreamble(upstream) }
        upstreamReady(upstream)
    }

    /// The connection is ready: sends the request.
    mutating func upstreamReady(_ upstream: Int32) {
        if upstreams[upstream].kind == .http2 { return startUpstreamFrames(upstream) }
        upstreams[upstream].expectResponse()
        armResponseTimeout(upstream)
        flush(upstream: upstream)
    }

    /// The connection could not be established, or is not trusted.
    mutating func connectFailed(_ upstream: Int32, _ failure: Failure) {
        if upstreams[upstream].kind == .http2 { return connectionFailed(upstream, failure) }
        let exchange = upstreams[upstream].exchange
        directory.failed(upstreams[upstream].endpoint, refused: true, now: now)
        reclaimBody(exchange)
        dropUpstream(of: exchange)
        retryOrReject(exchange, failure, nothingSent: true)
    }

    // MARK: Sending

    /// Sends buffered output: the head first, then the body.
    mutating func flush(upstream: Int32) {
        if upstreams[upstream].kind != .http1 || upstreams[upstream].isSecure { return flushEncoded(upstream) }
        let exchange = upstreams[upstream].exchange
        guard exchange >= 0, upstreams[upstream].phase != .connecting else { return }
        let headLeft = exchanges[exchange].head.count &- exchanges[exchange].headSent
        guard headLeft > 0 || !upstreams[upstream].output.isEmpty else { return }
        let head = unsafe UnsafeBufferPointer(rebasing: exchanges[exchange].head.bytes[exchanges[exchange].headSent...])
        let body = unsafe upstreams[upstream].output.bytes
        let sent = unsafe martlet_send_two(
            upstreams[upstream].fd, head.baseAddress, head.count, body.baseAddress, body.count)
        if sent < 0 {
            let reason = martlet_errno()
            if reason != EAGAIN && reason != EINTR { sendFailed(upstream) }
            return
        }
        let ofHead = min(sent, headLeft)
        exchanges[exchange].headSent &+= ofHead
        upstreams[upstream].output.consume(sent &- ofHead)
        if upstreams[upstream].output.isEmpty { upstreams[upstream].output.release() }
        if !exchanges[exchange].isRequestComplete { armResponseTimeout(upstream) }
        resumeDownstream(of: exchange)
        if isTunnel(exchange), upstreams[upstream].output.isEmpty { advanceTunnel(exchange) }
    }

    /// Sending to the upstream failed; its response, if any, is read first.
    mutating func sendFailed(_ upstream: Int32) {
        upstreams[upstream].output.removeAll()
        upstreams[upstream].isReadClosed = true
        let exchange = upstreams[upstream].exchange
        exchanges[exchange].headSent = exchanges[exchange].head.count
        markReady(upstream: upstream)
    }

    mutating func resumeDownstream(of exchange: Int32) {
        let downstream = exchanges[exchange].downstream
        let upstream = exchanges[exchange].upstream
        guard downstreams[downstream].isPaused, unsent(upstream) < EventLoop.lowWatermark else { return }
        downstreams[downstream].isPaused = false
        if !exchanges[exchange].isRequestComplete { armBody(exchange) }
        markReady(downstream: downstream)
    }

    // MARK: Reading

    /// Reads a response as far as it was received.
    mutating func readUpstream(_ upstream: Int32) {
        if upstreams[upstream].kind == .stream { return resumeResponse(upstream) }
        let generation = upstreams[upstream].generation
        if upstreams[upstream].phase == .idle, !upstreams[upstream].isSecure { return closeUpstream(upstream) }
        for _ in 0..<EventLoop.readBatch {
            guard !upstreams[upstream].isPaused, upstreams[upstream].pipe < 0 else { return }
            if upstreams[upstream].isBulk, spliceResponse(upstream) { return }
            let count = receiveBuffer.receive(from: upstreams[upstream].fd)
            if count > 0 {
                upstreams[upstream].isBulk = count == ReceiveBuffer.size
                if upstreams[upstream].isSecure || upstreams[upstream].kind == .http2 {
                    unsafe receiveEncoded(upstream, receiveBuffer.bytes(count))
                } else {
                    unsafe receivedResponse(upstream, receiveBuffer.bytes(count))
                }
                guard upstreams.contains(upstream, generation) else { return }
                guard upstreams[upstream].phase != .idle else { return checkIdle(upstream, received: count) }
                if count < ReceiveBuffer.size, !upstreams[upstream].isReadClosed { return }
            } else if count == 0 {
                return upstreamReadClosed(upstream)
            } else {
                let reason = martlet_errno()
                guard reason == EAGAIN || reason == EINTR else { return upstreamBroke(upstream, "upstream.reset") }
                // Its close_notify may have come while the client was slow; nothing may follow it.
                if upstreams[upstream].phase == .body, upstreams[upstream].engine?.isPeerClosed == true {
                    upstreamReadClosed(upstream)
                }
                return
            }
        }
        markReady(upstream: upstream)
    }

    /// After a full read, an idle connection may have unsolicited bytes: close it then.
    mutating func checkIdle(_ upstream: Int32, received: Int) {
        guard received == ReceiveBuffer.size else { return }
        if receiveBuffer.receive(from: upstreams[upstream].fd) >= 0 || martlet_errno() != EAGAIN {
            closeUpstream(upstream)
        }
    }

    mutating func receivedResponse(_ upstream: Int32, _ bytes: UnsafeBufferPointer<UInt8>) {
        let generation = upstreams[upstream].generation
        upstreams[upstream].hasResponded = true
        guard upstreams[upstream].input.isEmpty else {
            unsafe upstreams[upstream].input.append(bytes)
            let used = unsafe consumeResponse(unsafe upstreams[upstream].input.bytes, from: upstream)
            guard upstreams.contains(upstream, generation) else { return }
            upstreams[upstream].input.consume(used)
            if upstreams[upstream].input.isEmpty { return upstreams[upstream].input.release() }
            if upstreams[upstream].phase == .idle { closeUpstream(upstream) }
            return
        }
        let used = unsafe consumeResponse(bytes, from: upstream)
        guard upstreams.contains(upstream, generation), used < bytes.count else { return }
        guard upstreams[upstream].phase != .idle else { return closeUpstream(upstream) }
        unsafe upstreams[upstream].input.append(unsafe UnsafeBufferPointer(rebasing: bytes[used...]))
    }

    // MARK: Ends

    /// The upstream has closed its sending side.
    mutating func upstreamReadClosed(_ upstream: Int32) {
        if isTunnel(upstreams[upstream].exchange) { return tunnelUpstreamEnded(upstreams[upstream].exchange) }
        // RFC 9112 §9.8: under TLS an end without close_notify may be a truncation.
        let isAnnounced = !upstreams[upstream].isSecure || upstreams[upstream].engine?.isPeerClosed == true
        guard upstreams[upstream].phase == .body, upstreams[upstream].framing.isUntilClose, isAnnounced else {
            return upstreamBroke(
                upstream, upstreams[upstream].hasResponded ? "upstream.truncated" : "upstream.closed_early")
        }
        upstreams[upstream].keepsAlive = false
        // Discard what other requests left.
        staging.removeAll()
        finishResponse(upstream)
    }

    /// The connection failed with a request on it.
    mutating func upstreamBroke(_ upstream: Int32, _ reason: ErrorCode) {
        if upstreams[upstream].phase == .handshake { return connectFailed(upstream, .upstreamUnavailable(reason)) }
        if upstreams[upstream].kind == .http2 { return connectionBroke(upstream, reason) }
        let exchange = upstreams[upstream].exchange
        guard exchange >= 0 else { return closeUpstream(upstream) }
        if isTunnel(exchange) { return fail(exchange, .upstreamInvalid("tunnel.upstream_broke")) }
        let wasStale = upstreams[upstream].served > 0 && !upstreams[upstream].hasResponded
        if !wasStale { directory.failed(upstreams[upstream].endpoint, refused: false, now: now) }
        let hasResponded = upstreams[upstream].hasResponded
        dropUpstream(of: exchange)
        let failure = hasResponded ? Failure.upstreamInvalid(reason) : Failure.upstreamUnavailable(reason)
        if hasResponded { fail(exchange, failure) } else { retryOrReject(exchange, failure, nothingSent: false) }
    }

    /// The upstream's response is malformed or not allowed.
    ///
    /// - Parameter closes: the client's connection is closed, as if the response had started.
    mutating func rejectResponse(_ upstream: Int32, _ reason: ErrorCode, closes: Bool = false) {
        let exchange = upstreams[upstream].exchange
        directory.failed(upstreams[upstream].endpoint, refused: false, now: now)
        dropUpstream(of: exchange)
        var failure = Failure.upstreamInvalid(reason)
        failure.closes = closes
        fail(exchange, failure)
    }

    /// The deadline of an upstream connection has passed.
    mutating func upstreamTimedOut(_ upstream: Int32) {
        let exchange = upstreams[upstream].exchange
        if isTunnel(exchange) { return }
        switch upstreams[upstream].phase {
        case .idle: closeUpstream(upstream)
        case .frames: closeIdleHTTP2(upstream)
        case .connecting, .handshake: connectFailed(upstream, .upstreamTimeout("upstream.connect_timed_out"))
        case .awaitingHead where isRequestProgressing(upstream): armResponseTimeout(upstream)
        case .awaitingHead:
            // An upstream that waits for the rest of a request has not failed.
            if exchanges[exchange].isRequestComplete || !upstreams[upstream].output.isEmpty
                || hasRequestInPipe(upstream)
            {
                directory.failed(upstreams[upstream].endpoint, refused: false, now: now)
            }
            suspectConnection(of: upstream, silentFor: exchanges[exchange].responseTimeout)
            dropUpstream(of: exchange)
            fail(exchange, .upstreamTimeout("upstream.answer_timed_out"))
        case .body:
            guard !upstreams[upstream].isPaused else { return arm(upstream: upstream, at: now &+ 1_000_000_000) }
            directory.failed(upstreams[upstream].endpoint, refused: false, now: now)
            dropUpstream(of: exchange)
            fail(exchange, .upstreamTimeout("upstream.answer_stalled"))
        }
    }
}
