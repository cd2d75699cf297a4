internal import MartletCore
internal import MartletIO
internal import MartletProvider
internal import MartletResponder

/// Deadlines: each connection has one; its meaning follows from the connection's phase.
extension EventLoop {
    /// Handles every deadline that has passed.
    mutating func fireTimers() {
        guard loop.context.schedule.advance(to: loop.now) else { return }
        for entry in loop.context.schedule.due {
            let token = EventToken(raw: entry.token)
            switch token.kind {
            case .downstream where loop.downstreams.all.contains(token.downstream):
                timerFired(downstream: token.downstream, entry.tick)
            case .upstream where loop.upstreams.all.contains(token.upstream):
                responses.timerFired(upstream: token.upstream, entry.tick, &loop)
            default: break
            }
        }
        loop.context.schedule.clearDue()
        if loop.context.schedule.isDrainOver(at: loop.now) { loop.abortAll() }
    }

    private mutating func timerFired(downstream: Handle<DownstreamConnection>, _ tick: Int64) {
        switch loop.downstreams[downstream].timer.fire(tick, at: loop.now) {
        case .stale: break
        case .early: loop.downstreams.arm(downstream, at: loop.downstreams[downstream].timer.deadline, &loop.context)
        case .due: downstreamTimedOut(downstream)
        }
    }

    /// The deadline of a downstream connection has passed.
    mutating func downstreamTimedOut(_ downstream: Handle<DownstreamConnection>) {
        let timeout = DownstreamTimeout(
            in: loop.downstreams[downstream].phase, isStream: loop.downstreams[downstream].isStream,
            isReceivingHead: loop.downstreams[downstream].reader.isReceivingHead)
        switch timeout {
        case .close: loop.close(downstream: downstream)
        case .failHandshake: loop.handshakeTimedOut(downstream)
        case .closeFrames: loop.framesTimedOut(downstream)
        case .checkWriting: loop.writeTimedOut(downstream)
        case .rejectHead:
            loop.downstreams[downstream].reader.isReceivingHead = false
            loop.reject(loop.exchanges.beginUnparsed(downstream, &loop.downstreams, &loop.context), .requestTimeout)
        case .endWait:
            let exchange = loop.downstreams[downstream].exchange
            loop.exchanges[exchange].suspension.limits?.wait.timedOut(at: loop.now)
            resume(exchange, .timedOut)
        case .checkExchange: RequestForwarder.exchangeTimedOut(loop.downstreams[downstream].exchange, &loop)
        }
    }
}
