private import CLinux
internal import MartletCore
internal import MartletHTTP
internal import MartletTLS

/// Tunnels: bytes in both directions, with back-pressure on each side.
extension EventLoop {
    // MARK: From the client

    /// Handles what a client sends through its tunnel.
    /// - Returns: how many bytes were consumed: all of them.
    mutating func tunnelFromDownstream(_ bytes: UnsafeBufferPointer<UInt8>, _ exchange: Int32) -> Int {
        let generation = exchanges[exchange].generation
        let tunnel = exchanges[exchange].tunnel
        tunnels[tunnel].usedAt = now
        let violation = unsafe forwardUp(bytes, exchange)
        if let violation { return endTunnel(exchange, violation, bytes.count) }
        if exchanges[exchange].upstream >= 0 { flush(upstream: exchanges[exchange].upstream) }
        if exchanges.contains(exchange, generation) { advanceTunnel(exchange) }
        return bytes.count
    }

    private mutating func endTunnel(_ exchange: Int32, _ closeReason: CloseReason, _ used: Int) -> Int {
        endTunnel(exchange, closeReason)
        return used
    }

    /// - Returns: why the tunnel has to end, if it has to.
    private mutating func forwardUp(_ bytes: UnsafeBufferPointer<UInt8>, _ exchange: Int32) -> CloseReason? {
        let tunnel = exchanges[exchange].tunnel
        guard tunnels[tunnel].isWebSocket else {
            unsafe sendUp(bytes, exchange)
            return nil
        }
        var offset = 0
        while true {
            let isClosePending = tunnels[tunnel].upstream.isClosePending
            switch unsafe tunnels[tunnel].fromDownstream.next(
                bytes.span, from: &offset, stopsBetweenFrames: isClosePending)
            {
            case .pass(let range): unsafe sendUp(bytes[range], exchange)
            case .passHeader:
                let upstream = exchanges[exchange].upstream
                guard upstream >= 0, !tunnels[tunnel].upstream.isCloseSent else { continue }
                exchanges[exchange].bytesIn &+= tunnels[tunnel].fromDownstream.headerBytes
                tunnels[tunnel].fromDownstream.appendHeader(to: &upstreams[upstream].output)
            case .needMore, .closed: return nil
            case .violation: return tunnels[tunnel].phase == .open ? .clientViolation : nil
            }
            if isClosePending { sendCloseUpstream(exchange) }
        }
    }

    private mutating func sendUp(_ bytes: UnsafeBufferPointer<UInt8>, _ exchange: Int32) {
        let upstream = exchanges[exchange].upstream
        guard upstream >= 0, !tunnels[exchanges[exchange].tunnel].upstream.isCloseSent else { return }
        exchanges[exchange].bytesIn &+= bytes.count
        unsafe upstreams[upstream].output.append(bytes)
        if unsent(upstream) > EventLoop.highWatermark { downstreams[exchanges[exchange].downstream].isPaused = true }
    }

    // MARK: From the upstream

    /// Handles what an upstream sends through its tunnel.
    /// - Returns: how many bytes were consumed: all of them.
    mutating func tunnelFromUpstream(_ bytes: UnsafeBufferPointer<UInt8>, _ exchange: Int32) -> Int {
        let generation = exchanges[exchange].generation
        let tunnel = exchanges[exchange].tunnel
        tunnels[tunnel].usedAt = now
        let violation = unsafe forwardDown(bytes, exchange)
        guard exchanges.contains(exchange, generation) else { return bytes.count }
        sendStaging(exchange)
        guard exchanges.contains(exchange, generation) else { return bytes.count }
        if let violation { return endTunnel(exchange, violation, bytes.count) }
        if tunnels[tunnel].downstream.isClosePending { sendCloseDownstream(exchange) }
        if exchanges.contains(exchange, generation) { advanceTunnel(exchange) }
        return bytes.count
    }

    private mutating func forwardDown(_ bytes: UnsafeBufferPointer<UInt8>, _ exchange: Int32) -> CloseReason? {
        let generation = exchanges[exchange].generation
        let tunnel = exchanges[exchange].tunnel
        guard tunnels[tunnel].isWebSocket else {
            unsafe forwardResponseBody(bytes, exchange)
            return nil
        }
        var offset = 0
        while exchanges.contains(exchange, generation) {
            let isClosePending = tunnels[tunnel].downstream.isClosePending
            // Nothing after the end of this frame is for the client any more.
            if isClosePending, offset > 0, tunnels[tunnel].fromUpstream.isBetweenFrames { return nil }
            switch unsafe tunnels[tunnel].fromUpstream.next(
                bytes.span, from: &offset, stopsBetweenFrames: isClosePending)
            {
            case .pass(let range):
                if !tunnels[tunnel].downstream.isCloseSent { unsafe forwardResponseBody(bytes[range], exchange) }
            case .passHeader:
                guard !tunnels[tunnel].downstream.isCloseSent else { continue }
                exchanges[exchange].bytesOut &+= tunnels[tunnel].fromUpstream.headerBytes
                tunnels[tunnel].fromUpstream.appendHeader(to: &staging)
            case .needMore, .closed: return nil
            case .violation: return tunnels[tunnel].phase == .open ? .upstreamViolation : nil
            }
        }
        return nil
    }

    // MARK: Ends of streams

    /// The client has closed its sending side; what it sent before was consumed.
    mutating func tunnelDownstreamEnded(_ exchange: Int32) {
        let tunnel = exchanges[exchange].tunnel
        guard !tunnels[tunnel].downstream.isReadClosed else { return }
        tunnels[tunnel].downstream.isReadClosed = true
        recordDeparture(exchange, "tunnel.client_left")
        shortenDeadline(tunnel, EventLoop.departureTimeout)
        advanceTunnel(exchange)
    }

    /// The upstream has closed its sending side.
    mutating func tunnelUpstreamEnded(_ exchange: Int32) {
        let tunnel = exchanges[exchange].tunnel
        guard !tunnels[tunnel].upstream.isReadClosed else { return }
        tunnels[tunnel].upstream.isReadClosed = true
        recordDeparture(exchange, "tunnel.upstream_left")
        shortenDeadline(tunnel, EventLoop.closeTimeout)
        advanceTunnel(exchange)
    }

    /// Records for the log which side left a WebSocket without a Close frame.
    private mutating func recordDeparture(_ exchange: Int32, _ reason: ErrorCode) {
        let tunnel = exchanges[exchange].tunnel
        guard tunnels[tunnel].isWebSocket, tunnels[tunnel].phase == .open, exchanges[exchange].reason == 0,
            !tunnels[tunnel].fromDownstream.hasClosed, !tunnels[tunnel].fromUpstream.hasClosed
        else { return }
        exchanges[exchange].reason = counters.reason(reason)
    }

    /// When one side of a WebSocket has disconnected, the other is not waited for long.
    private mutating func shortenDeadline(_ tunnel: Int32, _ timeout: Int64) {
        guard tunnels[tunnel].isWebSocket else { return }
        tunnels[tunnel].deadline = min(tunnels[tunnel].deadline, now &+ timeout)
    }

    /// Advances a tunnel's end after a side has closed or was flushed: forwards closed directions, and finishes when
    /// both sides are done.
    mutating func advanceTunnel(_ exchange: Int32) {
        let tunnel = exchanges[exchange].tunnel
        let (downstream, upstream) = (exchanges[exchange].downstream, exchanges[exchange].upstream)
        guard upstream >= 0 else { return }
        if tunnels[tunnel].fromDownstream.hasClosed, tunnels[tunnel].fromUpstream.hasClosed {
            // Both sides have sent Close; the upstream should end the connection (RFC 6455 §7.1.1).
            tunnels[tunnel].phase = .closing
            shortenDeadline(tunnel, EventLoop.closeTimeout)
        }
        let isDownstreamDone = isDone(tunnels[tunnel].downstream, hasClosed: tunnels[tunnel].fromDownstream.hasClosed)
        let isUpstreamDone = isDone(tunnels[tunnel].upstream, hasClosed: tunnels[tunnel].fromUpstream.hasClosed)
        let isDownstreamFlushed = hasDrainedOutput(downstream)
        let isUpstreamFlushed = unsent(upstream) == 0
        if isUpstreamFlushed,
            tunnels[tunnel].downstream.isReadClosed
                || (tunnels[tunnel].upstream.isCloseSent && isUpstreamDone)
        {
            closeWrite(upstream: upstream, of: tunnel)
        }
        if isDownstreamFlushed,
            tunnels[tunnel].upstream.isReadClosed
                || (tunnels[tunnel].downstream.isCloseSent && isDownstreamDone)
        {
            closeWrite(downstream: downstream, of: tunnel)
        }
        if isDownstreamDone, isUpstreamDone, isUpstreamFlushed, isDownstreamFlushed { finishTunnel(exchange) }
    }

    /// Whether nothing more is expected from a side.
    private func isDone(_ side: Tunnel.Side, hasClosed: Bool) -> Bool {
        side.isReadClosed || (side.isCloseSent && hasClosed)
    }

    private mutating func closeWrite(upstream: Int32, of tunnel: Int32) {
        guard !tunnels[tunnel].upstream.isWriteClosed else { return }
        tunnels[tunnel].upstream.isWriteClosed = true
        shutdownWrite(upstream: upstream)
    }

    private mutating func closeWrite(downstream: Int32, of tunnel: Int32) {
        guard !tunnels[tunnel].downstream.isWriteClosed else { return }
        tunnels[tunnel].downstream.isWriteClosed = true
        shutdownWrite(downstream: downstream)
    }

    /// Closes the writing direction to the upstream.
    private mutating func shutdownWrite(upstream: Int32) {
        upstreams[upstream].engine?.close()
        upstreams[upstream].engine?.dequeueCiphertext(into: &upstreams[upstream].transportOutput)
        flushTransport(upstream)
        _ = shutdown(upstreams[upstream].fd, Int32(SHUT_WR))
    }

    /// Closes the writing direction to the client.
    private mutating func shutdownWrite(downstream: Int32) {
        if downstreams[downstream].isStream { return finishStream(downstreams[downstream].exchange) }
        sendCloseNotify(downstream)
        _ = shutdown(downstreams[downstream].fd, Int32(SHUT_WR))
    }
}
