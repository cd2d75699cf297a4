internal import MartletCore
internal import MartletDecisions
internal import MartletHTTP
internal import MartletIO
internal import MartletResponder
internal import MartletTLS

/// Events of upstream sockets: connecting, reading and failing.
extension ResponseReader {
    static let readBatch = 16

    /// Handles an event of an upstream socket.
    mutating func upstreamEvent(_ upstream: Handle<UpstreamConnection>, _ readiness: Readiness, _ loop: inout LoopState)
    {
        guard loop.upstreams.all.contains(upstream) else { return }
        if loop.upstreams[upstream].phase == .connecting {
            connectFinished(upstream, readiness, &loop)
            // An upstream may have sent bytes, or closed, before it received any; no other event will report it.
            guard loop.upstreams[upstream].isAlive, loop.upstreams[upstream].phase != .connecting else { return }
        }
        if readiness.has(.ended) { loop.upstreams[upstream].transport.isReadClosed = true }
        if readiness.has(.writable) {
            if loop.upstreams.mayHaveUnsent(upstream, &loop.exchanges) { loop.flush(upstream: upstream) }
            guard loop.upstreams[upstream].isAlive else { return }
            RequestForwarder.resumeSplice(toUpstream: upstream, &loop)
        }
        guard loop.upstreams[upstream].isAlive else { return }
        if readiness.has(.input) { readUpstream(upstream, &loop) }
    }

    private mutating func connectFinished(
        _ upstream: Handle<UpstreamConnection>, _ readiness: Readiness, _ loop: inout LoopState
    ) {
        let error = Socket.pendingError(loop.upstreams[upstream].transport.fd)
        guard error == 0, !readiness.has(.broken) else {
            return RequestForwarder.connectFailed(upstream, .upstreamUnavailable("upstream.refused"), &loop)
        }
        guard readiness.has(.writable) else { return }
        if loop.upstreams.needsPreamble(upstream) { return startPreamble(upstream, &loop) }
        RequestForwarder.upstreamReady(upstream, &loop)
    }

    /// Reads a response as far as it was received.
    mutating func readUpstream(_ upstream: Handle<UpstreamConnection>, _ loop: inout LoopState) {
        if loop.upstreams[upstream].kind == .stream { return resumeResponse(upstream, &loop) }
        if loop.upstreams[upstream].phase == .idle, !loop.upstreams[upstream].transport.isSecure {
            return loop.upstreams.close(upstream, &loop.context)
        }
        for _ in 0..<ResponseReader.readBatch {
            guard !loop.upstreams[upstream].isPaused, loop.upstreams[upstream].pipe.isNone else { return }
            if loop.upstreams[upstream].transport.isBulk, spliceResponse(upstream, &loop) { return }
            switch loop.upstreams[upstream].transport.receive(into: loop.context.scratch.receiveBuffer) {
            case .bytes(let count):
                if loop.upstreams[upstream].transport.isSecure || loop.upstreams[upstream].kind == .http2 {
                    unsafe receiveEncoded(upstream, loop.receiveBuffer.bytes(count), &loop)
                } else {
                    unsafe receivedResponse(upstream, loop.receiveBuffer.bytes(count), &loop)
                }
                guard loop.upstreams[upstream].isAlive else { return }
                guard loop.upstreams[upstream].phase != .idle else {
                    return loop.upstreams.checkIdle(upstream, received: count, &loop.context)
                }
                if count < ReceiveBuffer.size, !loop.upstreams[upstream].transport.isReadClosed { return }
            case .closed: return upstreamReadClosed(upstream, &loop)
            case .failed: return upstreamBroke(upstream, "upstream.reset", &loop)
            case .blocked:
                // Its close_notify may have come while the client was slow; nothing may follow it.
                if loop.upstreams[upstream].phase == .body,
                    loop.upstreams[upstream].transport.engine?.isPeerClosed == true
                {
                    upstreamReadClosed(upstream, &loop)
                }
                return
            }
        }
        loop.upstreams.markReady(upstream, &loop.context)
    }

    mutating func receivedResponse(
        _ upstream: Handle<UpstreamConnection>, _ bytes: UnsafeBufferPointer<UInt8>, _ loop: inout LoopState
    ) {
        loop.upstreams[upstream].response.hasBegun = true
        guard loop.upstreams[upstream].input.isEmpty else {
            unsafe loop.upstreams[upstream].input.append(bytes)
            let used = unsafe consumeResponse(unsafe loop.upstreams[upstream].input.bytes, from: upstream, &loop)
            guard loop.upstreams[upstream].isAlive else { return }
            loop.upstreams[upstream].input.consume(used)
            if loop.upstreams[upstream].input.isEmpty { return loop.upstreams[upstream].input.release() }
            if loop.upstreams[upstream].phase == .idle { loop.upstreams.close(upstream, &loop.context) }
            return
        }
        let used = unsafe consumeResponse(bytes, from: upstream, &loop)
        guard loop.upstreams[upstream].isAlive, used < bytes.count else { return }
        guard loop.upstreams[upstream].phase != .idle else { return loop.upstreams.close(upstream, &loop.context) }
        unsafe loop.upstreams[upstream].input.append(unsafe UnsafeBufferPointer(rebasing: bytes[used...]))
    }

    /// The upstream has closed its sending side.
    mutating func upstreamReadClosed(_ upstream: Handle<UpstreamConnection>, _ loop: inout LoopState) {
        let end = UpstreamEnd(
            in: loop.upstreams[upstream].phase, isTunnel: loop.exchanges.isTunnel(loop.upstreams[upstream].exchange),
            isUntilClose: loop.upstreams[upstream].response.framing.isUntilClose,
            hasResponse: loop.upstreams[upstream].response.hasBegun,
            isSecure: loop.upstreams[upstream].transport.isSecure,
            hasCloseNotify: loop.upstreams[upstream].transport.engine?.isPeerClosed == true)
        switch end {
        case .tunnelSide: loop.tunnelUpstreamEnded(loop.upstreams[upstream].exchange)
        case .truncated: upstreamBroke(upstream, "upstream.truncated", &loop)
        case .closedEarly: upstreamBroke(upstream, "upstream.closed_early", &loop)
        case .complete:
            loop.upstreams[upstream].response.keepsAlive = false
            loop.finishResponse(upstream)
        }
    }

    /// The connection failed.
    mutating func upstreamBroke(_ upstream: Handle<UpstreamConnection>, _ reason: ErrorCode, _ loop: inout LoopState) {
        let exchange = loop.upstreams[upstream].exchange
        let kind = UpstreamFailureKind(
            of: loop.upstreams[upstream].kind, in: loop.upstreams[upstream].phase, carriesRequest: !exchange.isNone,
            isTunnel: loop.exchanges.isTunnel(exchange), served: loop.upstreams[upstream].served,
            hasResponse: loop.upstreams[upstream].response.hasBegun)
        switch kind {
        case .notEstablished: RequestForwarder.connectFailed(upstream, kind.failure(reason), &loop)
        case .connectionOfStreams: connectionBroke(upstream, reason, &loop)
        case .unused: loop.upstreams.close(upstream, &loop.context)
        case .tunnel: loop.fail(exchange, kind.failure(reason))
        case .stale, .noResponse, .incompleteResponse:
            if kind.blamesEndpoint {
                loop.upstreams.directory.failed(loop.upstreams[upstream].endpoint, refused: false, now: loop.now)
            }
            loop.exchanges.dropUpstream(of: exchange, &loop.upstreams, &loop.context)
            let failure = kind.failure(reason)
            kind.allowsRetry
                ? RequestForwarder.retryOrReject(
                    exchange, failure, kind == .stale ? .sentOnIdleConnection : .requestSent, &loop)
                : loop.fail(exchange, failure)
        }
    }

    mutating func timerFired(upstream: Handle<UpstreamConnection>, _ tick: Int64, _ loop: inout LoopState) {
        switch loop.upstreams[upstream].timer.fire(tick, at: loop.now) {
        case .stale: break
        case .early: loop.upstreams.arm(upstream, at: loop.upstreams[upstream].timer.deadline, &loop.context)
        case .due: upstreamTimedOut(upstream, &loop)
        }
    }

    /// The deadline of an upstream connection has passed.
    private mutating func upstreamTimedOut(_ upstream: Handle<UpstreamConnection>, _ loop: inout LoopState) {
        let exchange = loop.upstreams[upstream].exchange
        let isTunnel = loop.exchanges.isTunnel(exchange)
        let isAwaiting = loop.upstreams[upstream].phase == .awaitingHead && !isTunnel
        let isSending = isAwaiting && loop.upstreams.isRequestProgressing(upstream)
        let timeout = UpstreamTimeout(
            in: loop.upstreams[upstream].phase, isTunnel: isTunnel, isSending: isSending,
            isResponseDue: isAwaiting && loop.upstreams.isResponseDue(upstream, &loop.downstreams, &loop.exchanges),
            isPaused: loop.upstreams[upstream].isPaused)
        switch timeout {
        case .ignore: break
        case .close: loop.upstreams.close(upstream, &loop.context)
        case .closeFrames: closeIdleHTTP2(upstream, &loop)
        case .notEstablished:
            RequestForwarder.connectFailed(upstream, .upstreamTimeout("upstream.connect_timed_out"), &loop)
        case .extendSending:
            loop.exchanges[loop.upstreams[upstream].exchange].armResponseTimeout(
                upstream, &loop.upstreams, &loop.context)
        case .noResponse(let blamesEndpoint):
            if blamesEndpoint {
                loop.upstreams.directory.failed(loop.upstreams[upstream].endpoint, refused: false, now: loop.now)
            }
            loop.upstreams.suspectConnection(
                of: upstream, silentFor: loop.exchanges[exchange].forwarding.responseTimeout, &loop.context)
            loop.exchanges.dropUpstream(of: exchange, &loop.upstreams, &loop.context)
            RequestForwarder.retryOrReject(
                exchange, .upstreamTimeout("upstream.answer_timed_out"), .timedOut, &loop)
        case .extendPause: loop.upstreams.arm(upstream, at: loop.now &+ UpstreamTimeout.pauseCheck, &loop.context)
        case .stalled:
            loop.upstreams.directory.failed(loop.upstreams[upstream].endpoint, refused: false, now: loop.now)
            loop.exchanges.dropUpstream(of: exchange, &loop.upstreams, &loop.context)
            loop.fail(exchange, .upstreamTimeout("upstream.answer_stalled"))
        }
    }
}
