internal import MartletCore
internal import MartletHTTP

/// How the gateway ends a tunnel: a WebSocket with Close frames, any other by a reset.
extension EventLoop {
    /// How long to wait for the end of a frame in progress, in nanoseconds.
    private static let frameTimeout: Int64 = 400_000_000
    /// How long to wait for both sides after Close was sent.
    static let closeTimeout: Int64 = 1_000_000_000
    /// How long to wait for an upstream whose client has disconnected.
    static let departureTimeout: Int64 = 500_000_000
    /// How many tunnels a drain ends at a time, at least.
    private static let drainBatch = 64

    /// Starts closing a tunnel.
    mutating func endTunnel(_ exchange: Int32, _ closeReason: CloseReason) {
        let tunnel = exchanges[exchange].tunnel
        guard tunnels[tunnel].phase == .open else { return }
        tunnels[tunnel].phase = .closing
        tunnels[tunnel].closeReason = closeReason
        if let reason = closeReason.reason { exchanges[exchange].reason = counters.reason(reason) }
        guard tunnels[tunnel].isWebSocket else { return abortTunnel(exchange) }
        // A side that has received a Close frame from the other gets no second one.
        tunnels[tunnel].downstream.isCloseSent =
            tunnels[tunnel].fromUpstream.hasClosed
            || tunnels[tunnel].downstream.isWriteClosed
        tunnels[tunnel].downstream.isClosePending = !tunnels[tunnel].downstream.isCloseSent
        tunnels[tunnel].upstream.isCloseSent =
            tunnels[tunnel].fromDownstream.hasClosed
            || tunnels[tunnel].upstream.isWriteClosed
        tunnels[tunnel].upstream.isClosePending = !tunnels[tunnel].upstream.isCloseSent
        tunnels[tunnel].deadline = now &+ EventLoop.frameTimeout
        let generation = exchanges[exchange].generation
        if tunnels[tunnel].upstream.isClosePending { sendCloseUpstream(exchange) }
        if exchanges[exchange].upstream >= 0 { flush(upstream: exchanges[exchange].upstream) }
        if exchanges.contains(exchange, generation), tunnels[tunnel].downstream.isClosePending {
            sendCloseDownstream(exchange)
        }
        if exchanges.contains(exchange, generation) { advanceTunnel(exchange) }
    }

    /// Sends a Close frame to the client, if the upstream's last frame is complete.
    mutating func sendCloseDownstream(_ exchange: Int32) {
        let tunnel = exchanges[exchange].tunnel
        guard tunnels[tunnel].fromUpstream.isBetweenFrames else { return }
        tunnels[tunnel].downstream.isClosePending = false
        tunnels[tunnel].downstream.isCloseSent = true
        startCloseTimeout(tunnel)
        var frame = ByteBuffer(capacity: 64)
        frame.append(webSocketClose: tunnels[tunnel].closeReason.status, tunnels[tunnel].closeReason.text, mask: nil)
        exchanges[exchange].bytesOut &+= frame.count
        unsafe write(unsafe frame.bytes, to: exchanges[exchange].downstream)
    }

    /// Appends a Close frame to the upstream's output, if the client's last frame is complete.
    mutating func sendCloseUpstream(_ exchange: Int32) {
        let (tunnel, upstream) = (exchanges[exchange].tunnel, exchanges[exchange].upstream)
        guard tunnels[tunnel].fromDownstream.isBetweenFrames, upstream >= 0 else { return }
        tunnels[tunnel].upstream.isClosePending = false
        tunnels[tunnel].upstream.isCloseSent = true
        startCloseTimeout(tunnel)
        upstreams[upstream].output.append(
            webSocketClose: tunnels[tunnel].closeReason.upstreamStatus, tunnels[tunnel].closeReason.text,
            mask: .random(in: .min ... .max))
    }

    /// Starts the timeout for the replies, once Close was sent to both sides.
    private mutating func startCloseTimeout(_ tunnel: Int32) {
        guard !tunnels[tunnel].downstream.isClosePending, !tunnels[tunnel].upstream.isClosePending else { return }
        tunnels[tunnel].deadline = now &+ EventLoop.closeTimeout
    }

    /// Finishes a tunnel whose sides are both done.
    mutating func finishTunnel(_ exchange: Int32) {
        let downstream = exchanges[exchange].downstream
        dropUpstream(of: exchange)
        // A client that may still be sending could lose its last frame to a reset.
        exchanges[exchange].isRequestComplete = downstreams[downstream].isReadClosed
        complete(exchange)
    }

    /// Aborts a tunnel with a reset, which no side mistakes for an orderly end.
    private mutating func abortTunnel(_ exchange: Int32) {
        let reason = tunnels[exchanges[exchange].tunnel].closeReason.reason ?? "tunnel.cut"
        fail(exchange, .upstreamInvalid(reason))
    }

    /// Checks a tunnel's age, its idle timeout, and its close deadline.
    mutating func checkTunnel(_ exchange: Int32, endsForDrain: inout Int) {
        let tunnel = exchanges[exchange].tunnel
        if now >= tunnels[tunnel].deadline { return tunnelTimedOut(exchange) }
        guard tunnels[tunnel].phase == .open else { return }
        if now >= tunnels[tunnel].endsAt {
            endTunnel(exchange, .aged)
        } else if now &- tunnels[tunnel].usedAt >= tunnels[tunnel].idleTimeout {
            endTunnel(exchange, .idle)
        } else if endsForDrain > 0, tunnels[tunnel].isWebSocket {
            endsForDrain &-= 1
            endTunnel(exchange, .draining)
        }
    }

    /// How many WebSockets a drain ends now: few enough that their clients do not all reconnect at the same time,
    /// enough to finish in the first half of the drain.
    var tunnelsToDrain: Int {
        guard isDraining else { return 0 }
        let looks = max((drainDeadline &- now) / (2 &* EventLoop.expiryCheckInterval), 1)
        return max(EventLoop.drainBatch, Int(Int64(counters.tunnelsOpen) / looks))
    }

    /// The close deadline has passed: sides that were sent Close and everything else are finished, others aborted.
    private mutating func tunnelTimedOut(_ exchange: Int32) {
        let tunnel = exchanges[exchange].tunnel
        let downstream = exchanges[exchange].downstream
        guard hasDrainedOutput(downstream) else {
            // A client that still reads gets the rest of what its upstream sent before it disconnected.
            let isTaking = now &- downstreams[downstream].lastWriteAt < EventLoop.closeTimeout
            if isTaking, tunnels[tunnel].phase == .open { return }
            return abortTunnel(exchange)
        }
        tunnels[tunnel].downstream.isClosePending ? abortTunnel(exchange) : finishTunnel(exchange)
    }

    /// How long a tunnel's handshake took, in microseconds: comparable to the duration of other responses.
    func handshakeMicroseconds(ofTunnel exchange: Int32) -> Int {
        Int((tunnels[exchanges[exchange].tunnel].openedAt &- exchanges[exchange].started) / 1000)
    }

    /// Frees the tunnel of an exchange that ends.
    mutating func releaseTunnel(of exchange: Int32) {
        let tunnel = exchanges[exchange].tunnel
        guard tunnel >= 0 else { return }
        if tunnels[tunnel].phase != .requested {
            counters.tunnelsOpen &-= 1
            counters.countClosedTunnel(reason: exchanges[exchange].reason)
        }
        exchanges[exchange].tunnel = -1
        tunnels[tunnel].close()
        tunnels.free(tunnel)
    }
}
