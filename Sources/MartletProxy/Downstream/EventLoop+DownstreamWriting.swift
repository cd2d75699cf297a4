private import CLinux
internal import MartletConfig
internal import MartletCore
internal import MartletHTTP
internal import MartletHTTP2
internal import MartletRouter

/// Writing to downstream connections, with back-pressure.
extension EventLoop {
    /// Sends what is in `staging`.
    ///
    /// The last bytes before a FIN are held by the kernel so that both go in one packet; the FIN must follow
    /// immediately.
    @inline(__always)
    mutating func sendStaging(_ exchange: Int32, isLast: Bool = false) {
        guard !staging.isEmpty else { return }
        unsafe write(unsafe staging.bytes, to: exchanges[exchange].downstream, isLast: isLast)
        staging.removeAll()
    }

    /// Sends bytes to a client, and buffers what the kernel does not accept.
    mutating func write(_ bytes: UnsafeBufferPointer<UInt8>, to downstream: Int32, isLast: Bool = false) {
        if downstreams[downstream].rules.isSecure || downstreams[downstream].isStream {
            return unsafe downstreams[downstream].isStream
                ? sendOnStream(bytes, on: downstream)
                : encrypt(bytes, to: downstream)
        }
        var sent = 0
        if downstreams[downstream].output.isEmpty {
            let flags = isLast ? martlet_more_follows : Int32(MSG_NOSIGNAL)
            sent = unsafe martlet_send(downstreams[downstream].fd, bytes.baseAddress, bytes.count, flags)
            if sent == bytes.count { return }
            if sent < 0 {
                let reason = martlet_errno()
                guard reason == EAGAIN || reason == EINTR else { return abandon(downstream) }
                sent = 0
            }
            downstreams[downstream].lastWriteAt = now
        }
        unsafe downstreams[downstream].output.append(unsafe UnsafeBufferPointer(rebasing: bytes[sent...]))
        applyBackPressure(downstream)
    }

    /// Pauses the upstream of a slow client, which has to keep reading.
    mutating func applyBackPressure(_ downstream: Int32) {
        let exchange = downstreams[downstream].exchange
        if exchange < 0 || exchanges[exchange].isRequestComplete { armWrite(downstream) }
        guard exchange >= 0, exchanges[exchange].upstream >= 0 else { return }
        if downstreams[downstream].output.count > EventLoop.highWatermark {
            upstreams[exchanges[exchange].upstream].isPaused = true
        }
    }

    mutating func armWrite(_ downstream: Int32) {
        // A failed registration is retried: see `registerOverdue`.
        register(downstream)
        guard !downstreams[downstream].isProbePending, downstreams[downstream].phase != .authenticating else { return }
        arm(downstream: downstream, at: now &+ snapshot.loopTimeouts.bodyIdle)
    }

    /// Sends buffered output.
    mutating func flush(downstream: Int32) {
        let bytes = unsafe downstreams[downstream].output.bytes
        guard bytes.count > 0 else { return }
        let sent = unsafe martlet_send(downstreams[downstream].fd, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
        if sent < 0 {
            let reason = martlet_errno()
            if reason != EAGAIN && reason != EINTR { abandon(downstream) }
            return
        }
        downstreams[downstream].output.consume(sent)
        downstreams[downstream].lastWriteAt = now
        // Output of a handshake does not extend its deadline.
        if downstreams[downstream].phase == .handshake {
            if downstreams[downstream].output.isEmpty { downstreams[downstream].output.release() }
            return
        }
        let exchange = downstreams[downstream].exchange
        if exchange >= 0, exchanges[exchange].upstream >= 0,
            downstreams[downstream].output.count < EventLoop.lowWatermark
        {
            let upstream = exchanges[exchange].upstream
            if upstreams[upstream].isPaused {
                upstreams[upstream].isPaused = false
                armResponseIdle(upstream, exchange)
                markReady(upstream: upstream)
            }
        }
        if downstreams[downstream].kind == .http2 { return framesWritten(downstream) }
        let isInputLeft = downstreams[downstream].mayHaveUnread || !downstreams[downstream].input.isEmpty
        if exchange < 0, isInputLeft, downstreams[downstream].output.count < EventLoop.lowWatermark {
            markReady(downstream: downstream)
        }
        guard downstreams[downstream].output.isEmpty else { return armWrite(downstream) }
        downstreams[downstream].output.release()
        if isTunnel(exchange) { return advanceTunnel(exchange) }
        if downstreams[downstream].closesAfterFlush { return endConnection(downstream) }
        if exchange < 0 {
            if !downstreams[downstream].isReceivingHead { awaitRequest(downstream) }
        } else if exchanges[exchange].responder == .upstream, exchanges[exchange].isRequestComplete,
            !downstreams[downstream].isProbePending
        {
            // The rest is up to the upstream connection, which has its own deadline.
            arm(downstream: downstream, at: .max)
        }
    }

    /// Whether all output was read by the client.
    func hasDrainedOutput(_ downstream: Int32) -> Bool {
        guard downstreams[downstream].isStream else {
            return downstreams[downstream].output.isEmpty && !hasResponseInPipe(downstream)
        }
        return downstreams[downstreams[downstream].connection].streams?.session.unsent(
            downstreams[downstream].streamID) ?? 0 == 0
    }

    /// The client reads nothing of its response; on a stream, some may have been sent since the deadline was set.
    mutating func writeTimedOut(_ downstream: Int32) {
        guard downstreams[downstream].isStream, hasSentMore(downstream) else { return abandon(downstream) }
        arm(downstream: downstream, at: now &+ snapshot.loopTimeouts.bodyIdle)
    }

    /// Whether bytes were sent on a stream since the last check.
    mutating func hasSentMore(_ stream: Int32) -> Bool {
        let sent = downstreams[downstreams[stream].connection].streams?.session.sent(downstreams[stream].streamID) ?? 0
        defer { downstreams[stream].sentAtCheck = sent }
        return sent > downstreams[stream].sentAtCheck
    }
}
