import WorldMachine

/// What clients do right before a fault, so that the fault meets it: by chance that happens once in thousands of worlds.
extension Simulation {
    /// Begins what happens once in a world.
    func startTrials() {
        keyTrial?.start()
        if plan.traffic.hasDeafReader { DeafReader(self).start() }
        var random = SeededRandom(seed: plan.seed, part: "trials")
        for fault in plan.faults {
            switch fault.kind {
            case .redisFailsOver(_, let losing) where losing > 0: endBeforeFailover(at: fault.at, losing, &random)
            case .kill where gateways.count > 1: deleteBeforeKill(at: fault.at, &random)
            default: break
            }
        }
        guard AppSignIn.isPossible(self), random.chance(600) else { return }
        let client = clients[random.below(clients.count)]
        machine.at(Int64(random.within(3000...20_000)) * 1_000_000) { AppSignIn(client).begin { _ in } }
    }

    /// With all faults gone, what slow clients leave behind serves the next ones.
    func takeSlowly() {
        guard plan.traffic.hasGreedyClients, plan.weather.reset == 0 else { return }
        for client in clients.prefix(4) {
            probes += 1
            client.takeSlowly { [self] _ in
                // As many as there may be connections at rest.
                var left = 8
                for _ in 0..<8 {
                    client.request("GET", "/pub/", .nothing) { [self] _ in
                        left -= 1
                        if left == 0 { probes -= 1 }
                    }
                }
            }
        }
    }

    /// Sessions end, and the replicas of their master do not get to know it.
    private func endBeforeFailover(at time: Int64, _ losing: Int, _ random: inout SeededRandom) {
        let first = random.below(clients.count)
        let delay = Int64(random.within(20...700)) * 1_000_000
        machine.at(max(time - 900_000_000, 1)) { [self] in redis.lag(losing, for: 1_000_000_000) }
        machine.at(max(time - delay, 1)) { [self] in
            let found = client(from: first) { $0.session?.endAsked == nil && $0.session?.isRefreshing == false }
            if let found, let session = found.session { found.end(session) { _ in } }
        }
    }

    /// An account is deleted while its issuer does not respond, and whoever is to revoke its grant may die.
    private func deleteBeforeKill(at time: Int64, _ random: inout SeededRandom) {
        guard plan.callers.hasAccounts, plan.callers.hasApple else { return }
        let first = random.below(clients.count)
        let delay = Int64(random.within(50...900)) * 1_000_000
        let length = Int64(random.within(1000...3000)) * 1_000_000
        machine.at(max(time - delay - 300_000_000, 1)) { [self] in
            guard let found = client(from: first, where: { $0.isAtIssuer }), let session = found.session else { return }
            issuer.strike(.fails, for: length)
            machine.after(300_000_000) { found.delete(session) { _ in } }
        }
    }

    /// The first client that does something, from one on.
    private func client(from first: Int, where matches: (Client) -> Bool) -> Client? {
        (0..<clients.count).map { clients[(first + $0) % clients.count] }.first(where: matches)
    }
}

extension Client {
    /// Whether its session is of a login at Apple.
    fileprivate var isAtIssuer: Bool {
        guard apple != nil, let session, session.endAsked == nil, !session.isRefreshing else { return false }
        return session.identity.hasPrefix("apple:")
    }
}
