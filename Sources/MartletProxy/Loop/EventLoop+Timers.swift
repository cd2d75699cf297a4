internal import MartletCore
internal import MartletIO

/// Deadlines: each connection has one; its meaning follows from the connection's phase.
extension EventLoop {
    /// Sets the deadline of a downstream connection.
    mutating func arm(downstream: Handle<DownstreamConnection>, at deadline: Int64) {
        guard let tick = downstreams[downstream].timer.set(deadline) else { return }
        schedule.enter(EventToken(downstream: downstream), at: tick)
    }

    /// Sets the deadline of an upstream connection.
    mutating func arm(upstream: Handle<UpstreamConnection>, at deadline: Int64) {
        guard let tick = upstreams[upstream].timer.set(deadline) else { return }
        schedule.enter(EventToken(upstream: upstream), at: tick)
    }

    /// How long an idle connection is kept while draining, for a request in flight, in nanoseconds.
    static let drainIdleTimeout: Int64 = 250_000_000
    /// The same for a connection without a request so far: it probably has one in flight.
    static let drainFreshTimeout: Int64 = 1_000_000_000

    /// Handles every deadline that has passed.
    mutating func fireTimers() {
        guard schedule.advance(to: now) else { return }
        for entry in schedule.due {
            let token = EventToken(raw: entry.token)
            switch token.kind {
            case .downstream where downstreams.contains(token.downstream):
                timerFired(downstream: token.downstream, entry.tick)
            case .upstream where upstreams.contains(token.upstream):
                timerFired(upstream: token.upstream, entry.tick)
            default: break
            }
        }
        schedule.clearDue()
        if schedule.isDrainOver(at: now) { abortAll() }
    }

    private mutating func timerFired(downstream: Handle<DownstreamConnection>, _ tick: Int64) {
        switch downstreams[downstream].timer.fire(tick, at: now) {
        case .stale: break
        case .early: arm(downstream: downstream, at: downstreams[downstream].timer.deadline)
        case .due: downstreamTimedOut(downstream)
        }
    }

    private mutating func timerFired(upstream: Handle<UpstreamConnection>, _ tick: Int64) {
        switch upstreams[upstream].timer.fire(tick, at: now) {
        case .stale: break
        case .early: arm(upstream: upstream, at: upstreams[upstream].timer.deadline)
        case .due: upstreamTimedOut(upstream)
        }
    }
}
