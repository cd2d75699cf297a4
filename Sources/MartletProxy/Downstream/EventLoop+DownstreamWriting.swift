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
    mutating func sendStaging(_ exchange: Handle<Exchange>, isLast: Bool = false) {
        guard !staging.isEmpty else { return }
        unsafe write(unsafe staging.bytes, to: exchanges[exchange].downstream, isLast: isLast)
        staging.removeAll()
    }

    /// Sends bytes to a client, and buffers what the kernel does not accept.
    mutating func write(
        _ bytes: UnsafeBufferPointer<UInt8>, to downstream: Handle<DownstreamConnection>, isLast: Bool = false
    ) {
        if downstreams[downstream].origin.rules.isSecure || downstreams[downstream].isStream {
            return unsafe downstreams[downstream].isStream
                ? sendOnStream(bytes, on: downstream)
                : encrypt(bytes, to: downstream)
        }
        switch unsafe downstreams[downstream].transport.send(bytes, isLast: isLast, now: now) {
        case .sent: break
        case .buffered, .blocked: applyBackPressure(downstream)
        case .failed: abandon(downstream)
        }
    }

    /// Pauses the upstream of a slow client, which has to keep reading.
    mutating func applyBackPressure(_ downstream: Handle<DownstreamConnection>) {
        let exchange = downstreams[downstream].exchange
        if exchange.isNone || exchanges[exchange].body.isComplete { armWrite(downstream) }
        guard !exchange.isNone, !exchanges[exchange].upstream.isNone else { return }
        if downstreams[downstream].transport.output.count > EventLoop.highWatermark {
            upstreams[exchanges[exchange].upstream].isPaused = true
        }
    }

    mutating func armWrite(_ downstream: Handle<DownstreamConnection>) {
        // A failed registration is retried: see `registerOverdue`.
        register(downstream)
        guard !downstreams[downstream].probe.isPending, downstreams[downstream].phase != .authenticating else { return }
        arm(downstream: downstream, at: now &+ snapshot.loopTimeouts.bodyIdle)
    }

    /// Encrypts bytes for a client and sends them; buffers what the kernel does not accept.
    mutating func encrypt(_ bytes: UnsafeBufferPointer<UInt8>, to downstream: Handle<DownstreamConnection>) {
        switch unsafe downstreams[downstream].transport.encryptAndSend(bytes, now: now) {
        case .sent: break
        case .buffered, .blocked: applyBackPressure(downstream)
        case .failed: abandon(downstream)
        }
    }

    /// Sends buffered output.
    mutating func flush(downstream: Handle<DownstreamConnection>) {
        guard !downstreams[downstream].transport.output.isEmpty else { return }
        switch downstreams[downstream].transport.flush(now: now) {
        case .sent, .buffered: break
        case .blocked: return
        case .failed: return abandon(downstream)
        }
        // Output of a handshake does not extend its deadline.
        if downstreams[downstream].phase == .handshake { return }
        let exchange = downstreams[downstream].exchange
        if !exchange.isNone, !exchanges[exchange].upstream.isNone,
            downstreams[downstream].transport.output.count < EventLoop.lowWatermark
        {
            let upstream = exchanges[exchange].upstream
            if upstreams[upstream].isPaused {
                upstreams[upstream].isPaused = false
                armResponseIdle(upstream, exchange)
                markReady(upstream: upstream)
            }
        }
        if downstreams[downstream].kind == .http2 { return framesWritten(downstream) }
        let isInputLeft =
            downstreams[downstream].transport.mayHaveUnread || !downstreams[downstream].reader.input.isEmpty
        if exchange.isNone, isInputLeft, downstreams[downstream].transport.output.count < EventLoop.lowWatermark {
            markReady(downstream: downstream)
        }
        guard downstreams[downstream].transport.output.isEmpty else { return armWrite(downstream) }
        if isTunnel(exchange) { return advanceTunnel(exchange) }
        if downstreams[downstream].ending.closesAfterFlush { return endConnection(downstream) }
        if exchange.isNone {
            if !downstreams[downstream].reader.isReceivingHead { awaitRequest(downstream) }
        } else if exchanges[exchange].responder == .upstream, exchanges[exchange].body.isComplete,
            !downstreams[downstream].probe.isPending
        {
            // The rest is up to the upstream connection, which has its own deadline.
            arm(downstream: downstream, at: .max)
        }
    }

    /// Whether all output was read by the client.
    func hasDrainedOutput(_ downstream: Handle<DownstreamConnection>) -> Bool {
        guard downstreams[downstream].isStream else {
            return downstreams[downstream].transport.output.isEmpty && !hasResponseInPipe(downstream)
        }
        return downstreams[downstreams[downstream].stream.connection].streams?.session.unsent(
            downstreams[downstream].stream.id) ?? 0 == 0
    }

    /// The client reads nothing of its response; on a stream, some may have been sent since the deadline was set.
    mutating func writeTimedOut(_ downstream: Handle<DownstreamConnection>) {
        guard downstreams[downstream].isStream, hasSentMore(downstream) else { return abandon(downstream) }
        arm(downstream: downstream, at: now &+ snapshot.loopTimeouts.bodyIdle)
    }

    /// Whether bytes were sent on a stream since the last check.
    mutating func hasSentMore(_ stream: Handle<DownstreamConnection>) -> Bool {
        let sent =
            downstreams[downstreams[stream].stream.connection].streams?.session.sent(downstreams[stream].stream.id) ?? 0
        defer { downstreams[stream].stream.sentAtCheck = sent }
        return sent > downstreams[stream].stream.sentAtCheck
    }
}
