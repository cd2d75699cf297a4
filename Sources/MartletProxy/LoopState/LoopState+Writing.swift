internal import MartletCore
internal import MartletDecisions

/// Writing to downstream connections, with back-pressure.
extension LoopState {
    /// Sends the pending bytes of a response.
    ///
    /// The last bytes before a FIN are held by the kernel so that both go in one packet; the FIN must follow
    /// immediately.
    @inline(__always)
    mutating func sendPending(_ exchange: Handle<Exchange>, isLast: Bool = false) {
        let bytes = unsafe context.scratch.pending.take(exchange)
        guard bytes.count > 0 else { return }
        unsafe write(bytes, to: exchanges[exchange].downstream, isLast: isLast)
    }

    /// Sends bytes to a client, and buffers what the kernel does not accept.
    mutating func write(
        _ bytes: UnsafeBufferPointer<UInt8>, to downstream: Handle<DownstreamConnection>, isLast: Bool = false
    ) {
        if downstreams[downstream].origin.rules.isSecure || downstreams[downstream].isStream {
            return unsafe downstreams[downstream].isStream
                ? downstreams.sendOnStream(bytes, on: downstream, &exchanges, &upstreams, &context)
                : encrypt(bytes, to: downstream)
        }
        switch unsafe downstreams[downstream].transport.send(bytes, isLast: isLast, now: now) {
        case .sent: break
        case .buffered, .blocked: downstreams.applyBackPressure(downstream, &exchanges, &upstreams, &context)
        case .failed: abandon(downstream)
        }
    }

    /// Encrypts bytes for a client and sends them; buffers what the kernel does not accept.
    mutating func encrypt(_ bytes: UnsafeBufferPointer<UInt8>, to downstream: Handle<DownstreamConnection>) {
        switch unsafe downstreams[downstream].transport.encryptAndSend(bytes, now: now) {
        case .sent: break
        case .buffered, .blocked: downstreams.applyBackPressure(downstream, &exchanges, &upstreams, &context)
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
            downstreams[downstream].transport.output.count < Watermark.low
        {
            let upstream = exchanges[exchange].upstream
            if upstreams[upstream].isPaused {
                upstreams[upstream].isPaused = false
                exchanges[exchange].armResponseIdle(upstream, &upstreams, &context)
                upstreams.markReady(upstream, &context)
            }
        }
        if downstreams[downstream].kind == .http2 { return framesWritten(downstream) }
        let isInputLeft =
            downstreams[downstream].transport.mayHaveUnread || !downstreams[downstream].reader.input.isEmpty
        if exchange.isNone, isInputLeft, downstreams[downstream].transport.output.count < Watermark.low {
            downstreams.markReady(downstream, &context)
        }
        guard downstreams[downstream].transport.output.isEmpty else {
            return downstreams.armWrite(downstream, &context)
        }
        if exchanges.isTunnel(exchange) { return advanceTunnel(exchange) }
        if downstreams[downstream].ending.closesAfterFlush { return endConnection(downstream) }
        if exchange.isNone {
            if !downstreams[downstream].reader.isReceivingHead { downstreams.awaitRequest(downstream, &context) }
        } else if exchanges[exchange].responder == .upstream, exchanges[exchange].body.isComplete,
            !downstreams[downstream].probe.isPending
        {
            // The rest is up to the upstream connection, which has its own deadline.
            downstreams.arm(downstream, at: .max, &context)
        }
    }

    /// The client reads nothing of its response; on a stream, some may have been sent since the deadline was set.
    mutating func writeTimedOut(_ downstream: Handle<DownstreamConnection>) {
        guard downstreams[downstream].isStream, downstreams.hasSentMore(downstream) else { return abandon(downstream) }
        downstreams.arm(downstream, at: now &+ context.snapshot.loopTimeouts.bodyIdle, &context)
    }

    /// Forwards body bytes of the response to the client.
    mutating func forwardResponseBody(_ bytes: UnsafeBufferPointer<UInt8>, _ exchange: Handle<Exchange>) {
        guard bytes.count > 0 else { return }
        exchanges[exchange].record.bytesOut &+= bytes.count
        let lent = unsafe exchanges.all.address(of: exchange)
        if unsafe lent.pointee.response.writeBody(bytes, into: &context.scratch.pending[exchange]) { return }
        unsafe write(bytes, to: exchanges[exchange].downstream)
    }
}
