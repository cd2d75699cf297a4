internal import MartletDecisions
internal import MartletHTTP
internal import MartletResponder

/// Tunnels: bytes in both directions, and how a tunnel is ended from here.
extension RequestForwarder {
    /// Handles what a client sends through its tunnel.
    /// - Returns: how many bytes were consumed: all of them.
    static func tunnelFromDownstream(
        _ bytes: UnsafeBufferPointer<UInt8>, _ exchange: Handle<Exchange>, _ loop: inout LoopState
    ) -> Int {
        let upstream = loop.exchanges[exchange].upstream
        // An open tunnel has one until it ends.
        guard !upstream.isNone else { return bytes.count }
        guard
            unsafe loop.exchanges.forwardUp(
                bytes, exchange, upstream, &loop.downstreams, &loop.upstreams, &loop.context)
        else {
            endTunnel(exchange, .clientViolation, &loop)
            return bytes.count
        }
        loop.flush(upstream: upstream)
        if loop.exchanges[exchange].isAlive { loop.advanceTunnel(exchange) }
        return bytes.count
    }

    /// Handles what an upstream sends through its tunnel.
    /// - Returns: how many bytes were consumed: all of them.
    static func tunnelFromUpstream(
        _ bytes: UnsafeBufferPointer<UInt8>, _ exchange: Handle<Exchange>, _ loop: inout LoopState
    ) -> Int {
        let last = unsafe forwardDown(bytes, exchange, &loop)
        guard loop.exchanges[exchange].isAlive else { return bytes.count }
        loop.sendPending(exchange)
        guard loop.exchanges[exchange].isAlive else { return bytes.count }
        if last == .violation {
            endTunnel(exchange, .upstreamViolation, &loop)
            return bytes.count
        }
        if last == .sendClose { loop.sendClose(toClientOf: exchange) }
        if loop.exchanges[exchange].isAlive { loop.advanceTunnel(exchange) }
        return bytes.count
    }

    /// - Returns: the step after which nothing more is forwarded.
    private static func forwardDown(
        _ bytes: UnsafeBufferPointer<UInt8>, _ exchange: Handle<Exchange>, _ loop: inout LoopState
    ) -> Tunnel.Step {
        let tunnel = loop.exchanges[exchange].tunnel
        var offset = 0
        while loop.exchanges[exchange].isAlive {
            let step = unsafe loop.exchanges.tunnels[tunnel].nextFromUpstream(bytes.span, &offset, now: loop.now)
            switch step {
            case .pass(let range): unsafe loop.forwardResponseBody(bytes[range], exchange)
            case .passHeader:
                loop.exchanges[exchange].record.bytesOut &+= loop.exchanges.tunnels[tunnel].fromUpstream.headerBytes
                loop.exchanges.tunnels[tunnel].fromUpstream.appendHeader(to: &loop.context.scratch.pending[exchange])
            case .sendClose, .done, .violation: return step
            }
        }
        return .done
    }

    /// Starts closing a tunnel.
    static func endTunnel(_ exchange: Handle<Exchange>, _ closeReason: CloseReason, _ loop: inout LoopState) {
        let (tunnel, upstream) = (loop.exchanges[exchange].tunnel, loop.exchanges[exchange].upstream)
        let ending = loop.exchanges.tunnels[tunnel].end(closeReason, now: loop.now)
        guard ending != .ignored else { return }
        if let reason = closeReason.reason {
            loop.exchanges[exchange].record.reason = loop.context.counters.reason(reason)
        }
        guard ending == .close else { return loop.abortTunnel(exchange) }
        if !upstream.isNone {
            if loop.exchanges.tunnels[tunnel].dequeueClose(for: .upstream) {
                loop.exchanges.appendClose(of: tunnel, to: upstream, &loop.upstreams)
            }
            loop.flush(upstream: upstream)
        }
        guard loop.exchanges[exchange].isAlive else { return }
        if loop.exchanges.tunnels[tunnel].dequeueClose(for: .downstream) {
            loop.sendClose(toClientOf: exchange)
        }
        if loop.exchanges[exchange].isAlive { loop.advanceTunnel(exchange) }
    }

    /// Checks a tunnel's age, its idle timeout, and its close deadline.
    static func checkTunnel(_ exchange: Handle<Exchange>, endsForDrain: inout Int, _ loop: inout LoopState) {
        let (tunnel, downstream) = (loop.exchanges[exchange].tunnel, loop.exchanges[exchange].downstream)
        var isFlushed = false
        if loop.exchanges.tunnels[tunnel].isOverdue(at: loop.now) {
            isFlushed = loop.downstreams.hasDrainedOutput(downstream, &loop.exchanges, &loop.upstreams)
        }
        let lastWriteAt = loop.downstreams[downstream].transport.lastWriteAt
        switch loop.exchanges.tunnels[tunnel].check(
            now: loop.now, isDownstreamFlushed: isFlushed, lastWriteAt: lastWriteAt, isDraining: endsForDrain > 0)
        {
        case .none: break
        case .end(let reason):
            if reason == .draining { endsForDrain &-= 1 }
            endTunnel(exchange, reason, &loop)
        case .abort: loop.abortTunnel(exchange)
        case .finish: loop.finishTunnel(exchange)
        }
    }
}
