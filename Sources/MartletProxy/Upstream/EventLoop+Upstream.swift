private import CLinux
internal import MartletCore
internal import MartletHTTP
internal import MartletHTTP2
internal import MartletIO
internal import MartletResponder
internal import MartletTLS

/// Upstream sockets: connecting, sending, reading and failing.
extension EventLoop {
    private static let readBatch = 16

    /// Handles an event of an upstream socket.
    mutating func upstreamEvent(_ upstream: Handle<UpstreamConnection>, _ readiness: Readiness) {
        guard upstreams.contains(upstream) else { return }
        if upstreams[upstream].phase == .connecting {
            connectFinished(upstream, readiness)
            // An upstream may have sent bytes, or closed, before it received any; no other event will report it.
            guard upstreams[upstream].isAlive, upstreams[upstream].phase != .connecting else { return }
        }
        if readiness.has(.ended) { upstreams[upstream].transport.isReadClosed = true }
        if readiness.has(.writable) {
            if mayHaveUnsent(upstream) { flush(upstream: upstream) }
            guard upstreams[upstream].isAlive else { return }
            resumeSplice(toUpstream: upstream)
        }
        guard upstreams[upstream].isAlive else { return }
        if readiness.has(.input) { readUpstream(upstream) }
    }

    /// Whether there may be something to send: most "writable" events of an edge-triggered socket are redundant.
    @inline(__always)
    private func mayHaveUnsent(_ upstream: Handle<UpstreamConnection>) -> Bool {
        if upstreams[upstream].kind != .http1 || upstreams[upstream].transport.isSecure
            || !upstreams[upstream].output.isEmpty
        {
            return true
        }
        let exchange = upstreams[upstream].exchange
        return !exchange.isNone && exchanges[exchange].forwarding.headSent < exchanges[exchange].forwarding.head.count
    }

    /// Bytes that the upstream has still to accept.
    func unsent(_ upstream: Handle<UpstreamConnection>) -> Int {
        if upstreams[upstream].kind == .stream {
            return upstreams[upstream].output.count
                &+ (session(of: upstream)?.unsent(upstreams[upstream].stream.id) ?? 0)
        }
        return upstreams[upstream].output.count &+ upstreams[upstream].transport.output.count
    }

    private mutating func connectFinished(_ upstream: Handle<UpstreamConnection>, _ readiness: Readiness) {
        let error = Socket.pendingError(upstreams[upstream].transport.fd)
        guard error == 0, !readiness.has(.broken) else {
            return connectFailed(upstream, .upstreamUnavailable("upstream.refused"))
        }
        guard readiness.has(.writable) else { return }
        if needsPreamble(upstream) { return startPreamble(upstream) }
        upstreamReady(upstream)
    }

    /// The connection is ready: sends the request.
    mutating func upstreamReady(_ upstream: Handle<UpstreamConnection>) {
        if upstreams[upstream].kind == .http2 { return startUpstreamFrames(upstream) }
        upstreams[upstream].expectResponse()
        armResponseTimeout(upstream)
        flush(upstream: upstream)
    }

    /// The connection could not be established, or is not trusted.
    mutating func connectFailed(_ upstream: Handle<UpstreamConnection>, _ failure: Failure) {
        if upstreams[upstream].kind == .http2 { return connectionFailed(upstream, failure) }
        let exchange = upstreams[upstream].exchange
        directory.failed(upstreams[upstream].endpoint, refused: true, now: now)
        reclaimBody(exchange)
        dropUpstream(of: exchange)
        retryOrReject(exchange, failure, nothingSent: true)
    }

    // MARK: Sending

    /// Sends buffered output: the head first, then the body.
    mutating func flush(upstream: Handle<UpstreamConnection>) {
        if upstreams[upstream].kind != .http1 || upstreams[upstream].transport.isSecure {
            return flushEncoded(upstream)
        }
        let exchange = upstreams[upstream].exchange
        guard !exchange.isNone, upstreams[upstream].phase != .connecting else { return }
        let headLeft = exchanges[exchange].forwarding.head.count &- exchanges[exchange].forwarding.headSent
        guard headLeft > 0 || !upstreams[upstream].output.isEmpty else { return }
        let head = unsafe UnsafeBufferPointer(
            rebasing: exchanges[exchange].forwarding.head.bytes[exchanges[exchange].forwarding.headSent...])
        let body = unsafe upstreams[upstream].output.bytes
        guard let sent = unsafe upstreams[upstream].transport.send(head, body) else { return sendFailed(upstream) }
        if sent == 0 { return }
        let ofHead = min(sent, headLeft)
        exchanges[exchange].forwarding.headSent &+= ofHead
        upstreams[upstream].output.consume(sent &- ofHead)
        if upstreams[upstream].output.isEmpty { upstreams[upstream].output.release() }
        if !exchanges[exchange].body.isComplete { armResponseTimeout(upstream) }
        resumeDownstream(of: exchange)
        if isTunnel(exchange), upstreams[upstream].output.isEmpty { advanceTunnel(exchange) }
    }

    /// Sending to the upstream failed; its response, if any, is read first.
    mutating func sendFailed(_ upstream: Handle<UpstreamConnection>) {
        upstreams[upstream].output.removeAll()
        upstreams[upstream].transport.isReadClosed = true
        let exchange = upstreams[upstream].exchange
        exchanges[exchange].forwarding.headSent = exchanges[exchange].forwarding.head.count
        markReady(upstream: upstream)
    }

    mutating func resumeDownstream(of exchange: Handle<Exchange>) {
        let downstream = exchanges[exchange].downstream
        let upstream = exchanges[exchange].upstream
        guard downstreams[downstream].isPaused, unsent(upstream) < EventLoop.lowWatermark else { return }
        downstreams[downstream].isPaused = false
        if !exchanges[exchange].body.isComplete { armBody(exchange) }
        markReady(downstream: downstream)
    }

    // MARK: Reading

    /// Reads a response as far as it was received.
    mutating func readUpstream(_ upstream: Handle<UpstreamConnection>) {
        if upstreams[upstream].kind == .stream { return resumeResponse(upstream) }
        if upstreams[upstream].phase == .idle, !upstreams[upstream].transport.isSecure {
            return closeUpstream(upstream)
        }
        for _ in 0..<EventLoop.readBatch {
            guard !upstreams[upstream].isPaused, upstreams[upstream].pipe.isNone else { return }
            if upstreams[upstream].transport.isBulk, spliceResponse(upstream) { return }
            switch upstreams[upstream].transport.receive(into: receiveBuffer) {
            case .bytes(let count):
                if upstreams[upstream].transport.isSecure || upstreams[upstream].kind == .http2 {
                    unsafe receiveEncoded(upstream, receiveBuffer.bytes(count))
                } else {
                    unsafe receivedResponse(upstream, receiveBuffer.bytes(count))
                }
                guard upstreams[upstream].isAlive else { return }
                guard upstreams[upstream].phase != .idle else { return checkIdle(upstream, received: count) }
                if count < ReceiveBuffer.size, !upstreams[upstream].transport.isReadClosed { return }
            case .closed: return upstreamReadClosed(upstream)
            case .failed: return upstreamBroke(upstream, "upstream.reset")
            case .blocked:
                // Its close_notify may have come while the client was slow; nothing may follow it.
                if upstreams[upstream].phase == .body, upstreams[upstream].transport.engine?.isPeerClosed == true {
                    upstreamReadClosed(upstream)
                }
                return
            }
        }
        markReady(upstream: upstream)
    }

    /// After a full read, an idle connection may have unsolicited bytes: close it then.
    mutating func checkIdle(_ upstream: Handle<UpstreamConnection>, received: Int) {
        guard received == ReceiveBuffer.size else { return }
        if receiveBuffer.receive(from: upstreams[upstream].transport.fd) >= 0 || martlet_errno() != EAGAIN {
            closeUpstream(upstream)
        }
    }

    mutating func receivedResponse(_ upstream: Handle<UpstreamConnection>, _ bytes: UnsafeBufferPointer<UInt8>) {
        upstreams[upstream].response.hasBegun = true
        guard upstreams[upstream].input.isEmpty else {
            unsafe upstreams[upstream].input.append(bytes)
            let used = unsafe consumeResponse(unsafe upstreams[upstream].input.bytes, from: upstream)
            guard upstreams[upstream].isAlive else { return }
            upstreams[upstream].input.consume(used)
            if upstreams[upstream].input.isEmpty { return upstreams[upstream].input.release() }
            if upstreams[upstream].phase == .idle { closeUpstream(upstream) }
            return
        }
        let used = unsafe consumeResponse(bytes, from: upstream)
        guard upstreams[upstream].isAlive, used < bytes.count else { return }
        guard upstreams[upstream].phase != .idle else { return closeUpstream(upstream) }
        unsafe upstreams[upstream].input.append(unsafe UnsafeBufferPointer(rebasing: bytes[used...]))
    }

    // MARK: Ends

    /// The upstream has closed its sending side.
    mutating func upstreamReadClosed(_ upstream: Handle<UpstreamConnection>) {
        let end = UpstreamEnd(
            in: upstreams[upstream].phase, isTunnel: isTunnel(upstreams[upstream].exchange),
            isUntilClose: upstreams[upstream].response.framing.isUntilClose,
            hasResponse: upstreams[upstream].response.hasBegun, isSecure: upstreams[upstream].transport.isSecure,
            hasCloseNotify: upstreams[upstream].transport.engine?.isPeerClosed == true)
        switch end {
        case .tunnelSide: tunnelUpstreamEnded(upstreams[upstream].exchange)
        case .truncated: upstreamBroke(upstream, "upstream.truncated")
        case .closedEarly: upstreamBroke(upstream, "upstream.closed_early")
        case .complete:
            upstreams[upstream].response.keepsAlive = false
            // Discard what other requests left.
            staging.removeAll()
            finishResponse(upstream)
        }
    }

    /// The connection failed.
    mutating func upstreamBroke(_ upstream: Handle<UpstreamConnection>, _ reason: ErrorCode) {
        let exchange = upstreams[upstream].exchange
        let kind = UpstreamFailureKind(
            of: upstreams[upstream].kind, in: upstreams[upstream].phase, carriesRequest: !exchange.isNone,
            isTunnel: isTunnel(exchange), served: upstreams[upstream].served,
            hasResponse: upstreams[upstream].response.hasBegun)
        switch kind {
        case .notEstablished: connectFailed(upstream, kind.failure(reason))
        case .connectionOfStreams: connectionBroke(upstream, reason)
        case .unused: closeUpstream(upstream)
        case .tunnel: fail(exchange, kind.failure(reason))
        case .stale, .noResponse, .incompleteResponse:
            if kind.blamesEndpoint { directory.failed(upstreams[upstream].endpoint, refused: false, now: now) }
            dropUpstream(of: exchange)
            let failure = kind.failure(reason)
            kind.allowsRetry ? retryOrReject(exchange, failure, nothingSent: false) : fail(exchange, failure)
        }
    }

    /// The upstream's response is malformed or not allowed.
    ///
    /// - Parameter closes: the client's connection is closed, as if the response had started.
    mutating func rejectResponse(_ upstream: Handle<UpstreamConnection>, _ reason: ErrorCode, closes: Bool = false) {
        let exchange = upstreams[upstream].exchange
        directory.failed(upstreams[upstream].endpoint, refused: false, now: now)
        dropUpstream(of: exchange)
        var failure = Failure.upstreamInvalid(reason)
        failure.closes = closes
        fail(exchange, failure)
    }

    /// The deadline of an upstream connection has passed.
    mutating func upstreamTimedOut(_ upstream: Handle<UpstreamConnection>) {
        let exchange = upstreams[upstream].exchange
        let isTunnel = isTunnel(exchange)
        let isAwaiting = upstreams[upstream].phase == .awaitingHead && !isTunnel
        let isSending = isAwaiting && isRequestProgressing(upstream)
        let timeout = UpstreamTimeout(
            in: upstreams[upstream].phase, isTunnel: isTunnel, isSending: isSending,
            isResponseDue: isAwaiting && isResponseDue(upstream), isPaused: upstreams[upstream].isPaused)
        switch timeout {
        case .ignore: break
        case .close: closeUpstream(upstream)
        case .closeFrames: closeIdleHTTP2(upstream)
        case .notEstablished: connectFailed(upstream, .upstreamTimeout("upstream.connect_timed_out"))
        case .extendSending: armResponseTimeout(upstream)
        case .noResponse(let blamesEndpoint):
            if blamesEndpoint { directory.failed(upstreams[upstream].endpoint, refused: false, now: now) }
            suspectConnection(of: upstream, silentFor: exchanges[exchange].forwarding.responseTimeout)
            dropUpstream(of: exchange)
            fail(exchange, .upstreamTimeout("upstream.answer_timed_out"))
        case .extendPause: arm(upstream: upstream, at: now &+ UpstreamTimeout.pauseCheck)
        case .stalled:
            directory.failed(upstreams[upstream].endpoint, refused: false, now: now)
            dropUpstream(of: exchange)
            fail(exchange, .upstreamTimeout("upstream.answer_stalled"))
        }
    }

    /// Whether the upstream does not wait for the rest of its request: that is complete, or not accepted.
    private func isResponseDue(_ upstream: Handle<UpstreamConnection>) -> Bool {
        exchanges[upstreams[upstream].exchange].body.isComplete || !upstreams[upstream].output.isEmpty
            || hasRequestInPipe(upstream)
    }
}
