import WorldMachine

extension Plan {
    /// Requests of one route that may be under way in a process.
    var concurrency: Int { 2 + Int(seed % 3) }
    /// Tokens of a bucket, and how many come back in a second.
    var burst: Int { 3 + Int(seed / 3 % 10) }
    var rate: Int { 1 + Int(seed / 5 % 5) }

    /// What happens while the store does not respond, which is a matter of 75 ms.
    private var withoutStore: String { ["local", "deny", "allow"][Int(seed % 3)] }
    /// Whether as much passes as the store says, and no more.
    var isCountedInStore: Bool { withoutStore == "deny" || weather.late == 0 }

    var rateLimits: String {
        let shared = store == .memory ? "" : ", shared: true, on_store_error: \(withoutStore)"
        return """
            rate_limits:
              here: {key: route, rate: \(rate)/s, burst: \(burst)}
              everywhere: {key: route, rate: \(rate)/s, burst: \(burst)\(shared)}

            """
    }

    /// Routes with limits of rate and concurrency.
    var limitedRoutes: String {
        """
        - {name: here, match: {path: "/here/**"}, upstream: app, auth: none, limits: {rate: [here]}}
        - {name: everywhere, match: {path: "/everywhere/**"}, upstream: app, auth: none, limits: {rate: [everywhere]}}
        - {name: narrow, match: {path: "/narrow/**"}, upstream: app, auth: none, limits: {concurrency: \(concurrency)}}

        """
    }
}

/// Whether more than allowed has passed a limit.
final class LimitChecks {
    private unowned let simulation: Simulation
    /// Requests that upstreams have seen, by the bucket that they took a token of.
    private var seen: [String: [(sent: Int64, seen: Int64)]] = [:]
    private var waiting = 0
    var isDone: Bool { waiting == 0 }

    init(_ simulation: Simulation) { self.simulation = simulation }

    /// An upstream sees a request for the first time.
    ///
    /// A token was taken between the times when the client sent it and now; so in any span that has all of both, there are
    /// not more of them than the bucket has tokens.
    func saw(_ exchange: Exchange) {
        let plan = simulation.plan
        let isShared = exchange.path.hasPrefix("/everywhere/") && plan.store != .memory
        guard !isShared || plan.isCountedInStore else { return }
        guard isShared || exchange.path.hasPrefix("/here/") || exchange.path.hasPrefix("/everywhere/") else { return }
        let bucket = isShared ? "everywhere" : "\(exchange.path.prefix(3)) \(exchange.incarnation)"
        let now = simulation.machine.now
        seen[bucket, default: []].append((exchange.sentAt, now))
        // What a loop or a lease may let pass beyond it.
        let extra = isShared ? max(plan.burst / 10, 1) : plan.workers
        let all = seen[bucket] ?? []
        for first in all.suffix(60) {
            // Without its store a gateway counts alone, as when it has just been started.
            if isShared, simulation.storeOutage(at: first.sent) > 0 || simulation.storeOutage(at: now) > 0 { continue }
            if isShared, first.sent < simulation.lastStart + 2_000_000_000 { continue }
            let count = all.count { $0.sent >= first.sent }
            let most = Double(plan.burst + extra) + Double(plan.rate) * Double(now - first.sent) / 1e9 + 1
            guard Double(count) > most else { continue }
            return simulation.ledger.violate(
                .bounds, "\(count) requests passed limit \(bucket) in \((now - first.sent) / 1_000_000) ms, of \(most)")
        }
    }

    /// With all traffic ended: the requests that were surely under way at a time, and slots that are free again.
    func finish() {
        let complete = simulation.ledger.exchanges.filter {
            $0.path.hasPrefix("/narrow/") && $0.isComplete && $0.head?.value("x-world") != nil && $0.respondedAt > 0
        }
        for one in complete {
            let others = complete.filter {
                $0.incarnation == one.incarnation && $0.seenAt <= one.seenAt && one.seenAt < $0.respondedAt
            }
            guard others.count > simulation.plan.concurrency else { continue }
            return simulation.ledger.violate(
                .bounds, "\(others.count) requests were under way at \(one.seenAt): \(others.map(\.number))")
        }
        for gateway in simulation.gateways {
            // As many as may wait for a connection.
            let most = simulation.plan.traffic.breaker?.pending ?? .max
            for index in 0..<min(simulation.plan.concurrency, most) { probe(gateway, index, rounds: 3) }
        }
    }

    /// - Parameter rounds: how often, so that slots which were taken here have to come back, too.
    private func probe(_ gateway: Gateway, _ index: Int, rounds: Int) {
        waiting += 1
        let exchange = simulation.ledger.open(
            gateway: gateway, method: "GET", path: "/narrow/", proof: .nothing, needsProof: false)
        let connection = ClientConnection(simulation, gateway, from: Address(252, 1000 + index * 10 + rounds))
        exchange.done = { [self] exchange in
            waiting -= 1
            connection.close()
            // A breaker rejects what waits too long for a slow upstream.
            let isLate = simulation.machine.now - exchange.sentAt > Traffic.queueTimeout - 100_000_000
            let mayWait = simulation.plan.traffic.breaker != nil && isLate
            if exchange.status == 503, exchange.head?.value("x-world") == nil, !mayWait {
                simulation.ledger.violate(.bounds, "slots of gateway \(gateway.index) have not come back")
            }
            guard rounds > 1 else { return }
            waiting += 1
            // The slot of a client that was served is free a moment later.
            simulation.machine.after(2_000_000_000) { [self] in
                waiting -= 1
                probe(gateway, index, rounds: rounds - 1)
            }
        }
        connection.send(exchange, fields: [], parts: [], pauses: [], cut: nil)
    }
}

extension Exchange {
    /// How long an upstream takes for it, so that several are under way at a time, in milliseconds.
    func slowness(_ random: inout SeededRandom) -> Int { path.hasPrefix("/narrow/") ? random.within(0...600) : 0 }
}

extension Client {
    /// More than limits allow.
    func flood(_ next: @escaping (Exchange?) -> Void) {
        let path = random.pick(["/here/", "/everywhere/", "/narrow/", "/narrow/"])
        let count = random.within(2...12)
        var left = count
        // On one connection of HTTP/1 they are served one after the other.
        for _ in 0..<count {
            if !simulation.plan.speaksHTTP2(index) {
                let gateways = simulation.gateways
                lastPort += 1
                let connection = carrier(
                    to: gateways[random.below(gateways.count)], from: Address(200 + index % 50, lastPort))
                pinned = connection
                visit(path) { exchange in
                    connection.close()
                    left -= 1
                    if left == 0 { next(exchange) }
                }
                pinned = nil
            } else {
                visit(path) { exchange in
                    left -= 1
                    if left == 0 { next(exchange) }
                }
            }
        }
    }
}
