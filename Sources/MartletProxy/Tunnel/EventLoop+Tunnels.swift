internal import MartletCore
internal import MartletHTTP
internal import MartletTLS

/// Tunnels: bytes in both directions, with back-pressure on each side.
extension EventLoop {
    // MARK: From the client

    /// Handles what a client sends through its tunnel.
    /// - Returns: how many bytes were consumed: all of them.
    mutating func tunnelFromDownstream(_ bytes: UnsafeBufferPointer<UInt8>, _ exchange: Handle<Exchange>) -> Int {
        let upstream = exchanges[exchange].upstream
        // An open tunnel has one until it ends.
        guard !upstream.isNone else { return bytes.count }
        guard unsafe forwardUp(bytes, exchange, upstream) else {
            endTunnel(exchange, .clientViolation)
            return bytes.count
        }
        flush(upstream: upstream)
        if exchanges[exchange].isAlive { advanceTunnel(exchange) }
        return bytes.count
    }

    /// - Returns: whether the client follows the protocol.
    private mutating func forwardUp(
        _ bytes: UnsafeBufferPointer<UInt8>, _ exchange: Handle<Exchange>, _ upstream: Handle<UpstreamConnection>
    ) -> Bool {
        let tunnel = exchanges[exchange].tunnel
        var offset = 0
        while true {
            switch unsafe tunnels[tunnel].nextFromDownstream(bytes.span, &offset, now: now) {
            case .pass(let range):
                exchanges[exchange].record.bytesIn &+= range.count
                unsafe upstreams[upstream].output.append(bytes[range])
                if unsent(upstream) > EventLoop.highWatermark {
                    downstreams[exchanges[exchange].downstream].isPaused = true
                }
            case .passHeader:
                exchanges[exchange].record.bytesIn &+= tunnels[tunnel].fromDownstream.headerBytes
                tunnels[tunnel].fromDownstream.appendHeader(to: &upstreams[upstream].output)
            case .sendClose: appendClose(of: tunnel, to: upstream)
            case .done: return true
            case .violation: return false
            }
        }
    }

    // MARK: From the upstream

    /// Handles what an upstream sends through its tunnel.
    /// - Returns: how many bytes were consumed: all of them.
    mutating func tunnelFromUpstream(_ bytes: UnsafeBufferPointer<UInt8>, _ exchange: Handle<Exchange>) -> Int {
        let last = unsafe forwardDown(bytes, exchange)
        guard exchanges[exchange].isAlive else { return bytes.count }
        sendStaging(exchange)
        guard exchanges[exchange].isAlive else { return bytes.count }
        if last == .violation {
            endTunnel(exchange, .upstreamViolation)
            return bytes.count
        }
        if last == .sendClose { sendClose(toClientOf: exchange) }
        if exchanges[exchange].isAlive { advanceTunnel(exchange) }
        return bytes.count
    }

    /// - Returns: the step after which nothing more is forwarded.
    private mutating func forwardDown(
        _ bytes: UnsafeBufferPointer<UInt8>, _ exchange: Handle<Exchange>
    ) -> Tunnel.Step {
        let tunnel = exchanges[exchange].tunnel
        var offset = 0
        while exchanges[exchange].isAlive {
            let step = unsafe tunnels[tunnel].nextFromUpstream(bytes.span, &offset, now: now)
            switch step {
            case .pass(let range): unsafe forwardResponseBody(bytes[range], exchange)
            case .passHeader:
                exchanges[exchange].record.bytesOut &+= tunnels[tunnel].fromUpstream.headerBytes
                tunnels[tunnel].fromUpstream.appendHeader(to: &staging)
            case .sendClose, .done, .violation: return step
            }
        }
        return .done
    }

    // MARK: Ends of streams

    /// The client has closed its sending side; what it sent before was consumed.
    mutating func tunnelDownstreamEnded(_ exchange: Handle<Exchange>) {
        tunnelPeerClosed(.downstream, exchange, "tunnel.client_left")
    }

    /// The upstream has closed its sending side.
    mutating func tunnelUpstreamEnded(_ exchange: Handle<Exchange>) {
        tunnelPeerClosed(.upstream, exchange, "tunnel.upstream_left")
    }

    /// - Parameter reason: for the log, if the peer left without a Close frame before the other one did.
    private mutating func tunnelPeerClosed(_ peer: Tunnel.Peer, _ exchange: Handle<Exchange>, _ reason: ErrorCode) {
        switch tunnels[exchanges[exchange].tunnel].peerClosed(peer, now: now) {
        case .known: return
        case .abrupt where exchanges[exchange].record.reason == 0:
            exchanges[exchange].record.reason = counters.reason(reason)
        case .abrupt, .orderly: break
        }
        advanceTunnel(exchange)
    }

    /// Advances a tunnel's end after a side has closed or was flushed.
    mutating func advanceTunnel(_ exchange: Handle<Exchange>) {
        let (downstream, upstream) = (exchanges[exchange].downstream, exchanges[exchange].upstream)
        guard !upstream.isNone else { return }
        let isDownstreamFlushed = hasDrainedOutput(downstream)
        let isUpstreamFlushed = unsent(upstream) == 0
        let actions = tunnels[exchanges[exchange].tunnel].advance(
            now: now, isDownstreamFlushed: isDownstreamFlushed, isUpstreamFlushed: isUpstreamFlushed)
        guard !actions.isEmpty else { return }
        if actions.contains(.closeWriteUpstream) { upstreams[upstream].transport.closeWrite() }
        if actions.contains(.closeWriteDownstream) { shutdownWrite(downstream: downstream) }
        if actions.contains(.finish) { finishTunnel(exchange) }
    }

    /// Closes the writing direction to the client.
    private mutating func shutdownWrite(downstream: Handle<DownstreamConnection>) {
        if downstreams[downstream].isStream { return finishStream(downstreams[downstream].exchange) }
        downstreams[downstream].transport.closeWrite()
    }
}
