internal import MartletCore
internal import MartletIO

/// Deadlines: each connection has one, and what it means follows from the connection's phase.
extension Worker {
    /// Sets when a client's patience ends.
    mutating func arm(client: Int32, at deadline: Int64) {
        clients[client].deadline = deadline
        guard deadline != .max else { return }
        let tick = TimerWheel.tick(for: deadline)
        guard tick < clients[client].scheduled else { return }
        clients[client].scheduled = tick
        wheel.enter(EventToken(.client, index: client, generation: clients[client].generation).raw, at: tick)
    }

    /// Sets when a link's patience ends.
    mutating func arm(link: Int32, at deadline: Int64) {
        links[link].deadline = deadline
        guard deadline != .max else { return }
        let tick = TimerWheel.tick(for: deadline)
        guard tick < links[link].scheduled else { return }
        links[link].scheduled = tick
        wheel.enter(EventToken(.link, index: link, generation: links[link].generation).raw, at: tick)
    }

    /// How long an idle connection is kept while draining, for a request that is on its way.
    static let drainIdle: Int64 = 250_000_000
    /// The same for one that has not asked for anything yet: nobody connects for nothing.
    static let drainFresh: Int64 = 1_000_000_000

    /// Acts on every deadline that has passed.
    mutating func expire() {
        wheel.advance(to: now, due: &due)
        guard !due.isEmpty || now >= drainDeadline else { return }
        for entry in due {
            let token = EventToken(raw: entry.token)
            switch token.kind {
            case .client where clients.holds(token.index, token.generation): expire(client: token.index, entry.tick)
            case .link where links.holds(token.index, token.generation): expire(link: token.index, entry.tick)
            default: break
            }
        }
        due.removeAll(keepingCapacity: true)
        if now >= drainDeadline { cutEverything() }
    }

    private mutating func expire(client: Int32, _ tick: Int64) {
        guard clients[client].scheduled == tick else { return }
        clients[client].scheduled = .max
        let deadline = clients[client].deadline
        if deadline > now { arm(client: client, at: deadline) } else { clientTimedOut(client) }
    }

    private mutating func expire(link: Int32, _ tick: Int64) {
        guard links[link].scheduled == tick else { return }
        links[link].scheduled = .max
        let deadline = links[link].deadline
        if deadline > now { arm(link: link, at: deadline) } else { linkTimedOut(link) }
    }
}
