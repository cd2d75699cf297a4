internal import MartletCore
internal import MartletDecisions
internal import MartletHTTP
internal import MartletResponder

/// The ends of tunnels: each side is closed once the other one has closed, and everything was passed on.
extension LoopState {
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
        switch exchanges.tunnels[exchanges[exchange].tunnel].peerClosed(peer, now: now) {
        case .known: return
        case .abrupt where exchanges[exchange].record.reason == 0:
            exchanges[exchange].record.reason = context.counters.reason(reason)
        case .abrupt, .orderly: break
        }
        advanceTunnel(exchange)
    }

    /// Advances a tunnel's end after a side has closed or was flushed.
    mutating func advanceTunnel(_ exchange: Handle<Exchange>) {
        let (downstream, upstream) = (exchanges[exchange].downstream, exchanges[exchange].upstream)
        guard !upstream.isNone else { return }
        let isDownstreamFlushed = downstreams.hasDrainedOutput(downstream, &exchanges, &upstreams)
        let isUpstreamFlushed = upstreams.unsent(upstream) == 0
        let actions = exchanges.tunnels[exchanges[exchange].tunnel].advance(
            now: now, isDownstreamFlushed: isDownstreamFlushed, isUpstreamFlushed: isUpstreamFlushed)
        guard !actions.isEmpty else { return }
        if actions.contains(.closeWriteUpstream) { upstreams[upstream].transport.closeWrite() }
        if actions.contains(.closeWriteDownstream) { downstreams.closeWrite(downstream, &exchanges, &context) }
        if actions.contains(.finish) { finishTunnel(exchange) }
    }

    /// Finishes a tunnel whose sides are both done.
    mutating func finishTunnel(_ exchange: Handle<Exchange>) {
        let downstream = exchanges[exchange].downstream
        exchanges.dropUpstream(of: exchange, &upstreams, &context)
        // A client that may still be sending could lose its last frame to a reset.
        exchanges[exchange].body.isComplete = downstreams[downstream].transport.isReadClosed
        complete(exchange)
    }

    /// Aborts a tunnel with a reset, which no side mistakes for an orderly end.
    mutating func abortTunnel(_ exchange: Handle<Exchange>) {
        let reason = exchanges.tunnels[exchanges[exchange].tunnel].closeReason.reason ?? "tunnel.cut"
        fail(exchange, .upstreamInvalid(reason))
    }

    /// Sends a Close frame to the client.
    mutating func sendClose(toClientOf exchange: Handle<Exchange>) {
        let reason = exchanges.tunnels[exchanges[exchange].tunnel].closeReason
        var frame = ByteBuffer(capacity: 64)
        frame.append(webSocketClose: reason.status, reason.text, mask: nil)
        exchanges[exchange].record.bytesOut &+= frame.count
        unsafe write(unsafe frame.bytes, to: exchanges[exchange].downstream)
    }
}
