internal import MartletCore
internal import MartletDecisions
internal import MartletHTTP
internal import MartletResponder

/// Tunnels, as far as they concern their exchange.
extension Exchanges {
    /// Whether the exchange is a tunnel.
    @inline(__always)
    mutating func isTunnel(_ exchange: Handle<Exchange>) -> Bool {
        guard !exchange.isNone, !self[exchange].tunnel.isNone else { return false }
        return tunnels[self[exchange].tunnel].phase != .requested
    }

    /// HTTP ends on both connections, and with it their deadlines.
    mutating func switchProtocols(
        of exchange: Handle<Exchange>, _ upstream: Handle<UpstreamConnection>,
        _ downstreams: inout DownstreamConnections, _ upstreams: inout UpstreamConnections, _ context: inout LoopContext
    ) {
        let downstream = self[exchange].downstream
        self[exchange].response.status = 101
        self[exchange].response.hasStarted = true
        self[exchange].response.closesDownstream = true
        // What follows the head is not a body: it ends with the connection.
        self[exchange].body.isComplete = false
        self[exchange].forwarding.head.release()
        upstreams[upstream].phase = .body
        upstreams[upstream].response.framing = .untilClose
        upstreams[upstream].response.keepsAlive = false
        upstreams.arm(upstream, at: .max, &context)
        downstreams[downstream].probe.isPending = false
        downstreams.arm(downstream, at: .max, &context)
    }

    /// - Returns: whether the client follows the protocol.
    mutating func forwardUp(
        _ bytes: UnsafeBufferPointer<UInt8>, _ exchange: Handle<Exchange>, _ upstream: Handle<UpstreamConnection>,
        _ downstreams: inout DownstreamConnections, _ upstreams: inout UpstreamConnections, _ context: inout LoopContext
    ) -> Bool {
        let tunnel = self[exchange].tunnel
        var offset = 0
        while true {
            switch unsafe tunnels[tunnel].nextFromDownstream(bytes.span, &offset, now: context.now) {
            case .pass(let range):
                self[exchange].record.bytesIn &+= range.count
                unsafe upstreams[upstream].output.append(bytes[range])
                if upstreams.unsent(upstream) > Watermark.high {
                    downstreams[self[exchange].downstream].isPaused = true
                }
            case .passHeader:
                self[exchange].record.bytesIn &+= tunnels[tunnel].fromDownstream.headerBytes
                tunnels[tunnel].fromDownstream.appendHeader(to: &upstreams[upstream].output)
            case .sendClose: appendClose(of: tunnel, to: upstream, &upstreams)
            case .done: return true
            case .violation: return false
            }
        }
    }

    /// Appends a Close frame to the upstream's output.
    mutating func appendClose(
        of tunnel: Handle<Tunnel>, to upstream: Handle<UpstreamConnection>, _ upstreams: inout UpstreamConnections
    ) {
        let reason = tunnels[tunnel].closeReason
        upstreams[upstream].output.append(
            webSocketClose: reason.upstreamStatus, reason.text, mask: .random(in: .min ... .max))
    }

    /// How long a tunnel's handshake took, in microseconds: comparable to the duration of other responses.
    mutating func handshakeMicroseconds(ofTunnel exchange: Handle<Exchange>) -> Int {
        Int((tunnels[self[exchange].tunnel].openedAt &- self[exchange].record.started) / 1000)
    }

    /// Frees the tunnel of an exchange that ends.
    mutating func releaseTunnel(of exchange: Handle<Exchange>, _ context: inout LoopContext) {
        let tunnel = self[exchange].tunnel
        guard !tunnel.isNone else { return }
        if tunnels[tunnel].phase != .requested {
            context.counters.tunnels.open &-= 1
            context.counters.countClosedTunnel(reason: self[exchange].record.reason)
        }
        self[exchange].tunnel = .none
        tunnels[tunnel].close()
        tunnels.free(tunnel)
    }
}
