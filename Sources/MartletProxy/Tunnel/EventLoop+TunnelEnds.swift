internal import MartletCore
internal import MartletHTTP
internal import MartletReports
internal import MartletResponder

/// How the gateway ends a tunnel: a WebSocket with Close frames, any other by a reset.
extension EventLoop {
    /// Starts closing a tunnel.
    mutating func endTunnel(_ exchange: Handle<Exchange>, _ closeReason: CloseReason) {
        let (tunnel, upstream) = (exchanges[exchange].tunnel, exchanges[exchange].upstream)
        let ending = tunnels[tunnel].end(closeReason, now: now)
        guard ending != .ignored else { return }
        if let reason = closeReason.reason { exchanges[exchange].record.reason = counters.reason(reason) }
        guard ending == .close else { return abortTunnel(exchange) }
        if !upstream.isNone {
            if tunnels[tunnel].dequeueClose(for: .upstream, now: now) { appendClose(of: tunnel, to: upstream) }
            flush(upstream: upstream)
        }
        guard exchanges[exchange].isAlive else { return }
        if tunnels[tunnel].dequeueClose(for: .downstream, now: now) { sendClose(toClientOf: exchange) }
        if exchanges[exchange].isAlive { advanceTunnel(exchange) }
    }

    /// Sends a Close frame to the client.
    mutating func sendClose(toClientOf exchange: Handle<Exchange>) {
        let reason = tunnels[exchanges[exchange].tunnel].closeReason
        var frame = ByteBuffer(capacity: 64)
        frame.append(webSocketClose: reason.status, reason.text, mask: nil)
        exchanges[exchange].record.bytesOut &+= frame.count
        unsafe write(unsafe frame.bytes, to: exchanges[exchange].downstream)
    }

    /// Appends a Close frame to the upstream's output.
    mutating func appendClose(of tunnel: Handle<Tunnel>, to upstream: Handle<UpstreamConnection>) {
        let reason = tunnels[tunnel].closeReason
        upstreams[upstream].output.append(
            webSocketClose: reason.upstreamStatus, reason.text, mask: .random(in: .min ... .max))
    }

    /// Finishes a tunnel whose sides are both done.
    mutating func finishTunnel(_ exchange: Handle<Exchange>) {
        let downstream = exchanges[exchange].downstream
        dropUpstream(of: exchange)
        // A client that may still be sending could lose its last frame to a reset.
        exchanges[exchange].body.isComplete = downstreams[downstream].transport.isReadClosed
        complete(exchange)
    }

    /// Aborts a tunnel with a reset, which no side mistakes for an orderly end.
    private mutating func abortTunnel(_ exchange: Handle<Exchange>) {
        let reason = tunnels[exchanges[exchange].tunnel].closeReason.reason ?? "tunnel.cut"
        fail(exchange, .upstreamInvalid(reason))
    }

    /// Checks a tunnel's age, its idle timeout, and its close deadline.
    mutating func checkTunnel(_ exchange: Handle<Exchange>, endsForDrain: inout Int) {
        let (tunnel, downstream) = (exchanges[exchange].tunnel, exchanges[exchange].downstream)
        var isFlushed = false
        if tunnels[tunnel].isOverdue(at: now) { isFlushed = hasDrainedOutput(downstream) }
        let lastWriteAt = downstreams[downstream].transport.lastWriteAt
        switch tunnels[tunnel].check(
            now: now, isDownstreamFlushed: isFlushed, lastWriteAt: lastWriteAt, isDraining: endsForDrain > 0)
        {
        case .none: break
        case .end(let reason):
            if reason == .draining { endsForDrain &-= 1 }
            endTunnel(exchange, reason)
        case .abort: abortTunnel(exchange)
        case .finish: finishTunnel(exchange)
        }
    }

    /// How many WebSockets a drain ends now.
    var tunnelsToDrain: Int {
        guard isDraining else { return 0 }
        return Tunnel.drainBatch(
            open: counters.tunnels.open, timeLeft: drainDeadline &- now, interval: EventLoop.expiryCheckInterval)
    }

    /// How long a tunnel's handshake took, in microseconds: comparable to the duration of other responses.
    func handshakeMicroseconds(ofTunnel exchange: Handle<Exchange>) -> Int {
        Int((tunnels[exchanges[exchange].tunnel].openedAt &- exchanges[exchange].record.started) / 1000)
    }

    /// Frees the tunnel of an exchange that ends.
    mutating func releaseTunnel(of exchange: Handle<Exchange>) {
        let tunnel = exchanges[exchange].tunnel
        guard !tunnel.isNone else { return }
        if tunnels[tunnel].phase != .requested {
            counters.tunnels.open &-= 1
            counters.countClosedTunnel(reason: exchanges[exchange].record.reason)
        }
        exchanges[exchange].tunnel = .none
        tunnels[tunnel].close()
        tunnels.free(tunnel)
    }
}
