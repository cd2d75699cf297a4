internal import MartletCore
internal import MartletIO

/// Deadlines: each connection has one; its meaning follows from the connection's phase.
extension EventLoop {
    /// Sets the deadline of a downstream connection.
    mutating func arm(downstream: Int32, at deadline: Int64) {
        downstreams[downstream].deadline = deadline
        guard deadline != .max else { return }
        let tick = TimerWheel.tick(for: deadline)
        guard tick < downstreams[downstream].scheduled else { return }
        downstreams[downstream].scheduled = tick
        timerWheel.enter(
            EventToken(.downstream, index: downstream, generation: downstreams[downstream].generation).raw, at: tick)
    }

    /// Sets the deadline of an upstream connection.
    mutating func arm(upstream: Int32, at deadline: Int64) {
        upstreams[upstream].deadline = deadline
        guard deadline != .max else { return }
        let tick = TimerWheel.tick(for: deadline)
        guard tick < upstreams[upstream].scheduled else { return }
        upstreams[upstream].scheduled = tick
        timerWheel.enter(
            EventToken(.upstream, index: upstream, generation: upstreams[upstream].generation).raw, at: tick)
    }

    /// How long an idle connection is kept while draining, for a request in flight, in nanoseconds.
    static let drainIdleTimeout: Int64 = 250_000_000
    /// The same for a connection without a request so far: it probably has one in flight.
    static let drainFreshTimeout: Int64 = 1_000_000_000

    /// Handles every deadline that has passed.
    mutating func fireTimers() {
        timerWheel.advance(to: now, due: &due)
        guard !due.isEmpty || now >= drainDeadline else { return }
        for entry in due {
            let token = EventToken(raw: entry.token)
            switch token.kind {
            case .downstream where downstreams.contains(token.index, token.generation):
                timerFired(downstream: token.index, entry.tick)
            case .upstream where upstreams.contains(token.index, token.generation):
                timerFired(upstream: token.index, entry.tick)
            default: break
            }
        }
        due.removeAll(keepingCapacity: true)
        if now >= drainDeadline { abortAll() }
    }

    private mutating func timerFired(downstream: Int32, _ tick: Int64) {
        guard downstreams[downstream].scheduled == tick else { return }
        downstreams[downstream].scheduled = .max
        let deadline = downstreams[downstream].deadline
        if deadline > now { arm(downstream: downstream, at: deadline) } else { downstreamTimedOut(downstream) }
    }

    private mutating func timerFired(upstream: Int32, _ tick: Int64) {
        guard upstreams[upstream].scheduled == tick else { return }
        upstreams[upstream].scheduled = .max
        let deadline = upstreams[upstream].deadline
        if deadline > now { arm(upstream: upstream, at: deadline) } else { upstreamTimedOut(upstream) }
    }
}
