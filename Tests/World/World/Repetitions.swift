import WorldMachine

/// What a gateway acknowledged right before a failover, it repeats at the new master.
extension Simulation {
    /// Whether what a process acknowledged at a time is known to the store, though a master was lost since. Asked long
    /// after the last fault.
    func hasRepeated(_ time: Int64, _ gateway: Int, _ incarnation: Int) -> Bool {
        guard plan.store != .memory, (redis.lastLoss ?? -1) < time, plan.skew == 0,
            let process = gateways.first(where: { $0.index == gateway }), process.incarnation == incarnation,
            !process.process.isDead
        else { return false }
        // It found the new master in time: nothing kept it away for long.
        return (redis.lastFailover ?? 0) < machine.now - 10_000_000_000
    }

    /// When the gateways have the store again that they do not have at a time, or shortly after it.
    func storeOutage(at time: Int64) -> Int64 {
        let own = failovers.filter { $0 < time + 2_000_000_000 && time < $0 + 18_000_000_000 }.max() ?? -28_000_000_000
        return max(plan.storeOutage(at: time), own + 28_000_000_000)
    }

    /// How long what a client begins now may go on, in nanoseconds: at the end of a world nothing is left of it.
    var longest: Int64 {
        machine.now < plan.calm ? plan.calm + 22_000_000_000 - machine.now : 5_000_000_000
    }

    /// What ended, or was used, before a failover comes not back.
    func probeForgotten() {
        let ended = ledger.endedRightBefore.filter { session in
            guard let end = session.end else { return false }
            return hasRepeated(end.time, end.gateway, end.incarnation) && machine.now - end.time < 1_000_000_000_000
        }
        for session in ended.suffix(4) { probeForgotten(session) }
    }

    private func probeForgotten(_ session: Session) {
        guard let token = session.refreshTokens.last?.text, let end = session.end else { return }
        probes += 1
        let gateway = gateways[Int(plan.seed % UInt64(gateways.count))]
        let exchange = ledger.open(
            gateway: gateway, method: "POST", path: "/auth/refresh", proof: .nothing, needsProof: false)
        exchange.body = Array("grant_type=refresh_token&refresh_token=\(token)".utf8)
        let connection = ClientConnection(self, gateway, from: Address(253, 1000 + probes))
        exchange.done = { [self] exchange in
            probes -= 1
            connection.close()
            guard exchange.status == 200 else { return }
            ledger.violate(
                .revocation,
                "session \(session.id), which gateway \(end.gateway) ended at \(end.time), is back after the failover at "
                    + "\(redis.lastFailover ?? 0)")
        }
        connection.send(
            exchange,
            fields: ["Content-Type: application/x-www-form-urlencoded", "Content-Length: \(exchange.body.count)"],
            parts: [exchange.body], pauses: [], cut: nil)
    }

    /// The codes that were used are used, within their life.
    func probeCodes() {
        for code in appCodes.suffix(6) {
            guard let use = code.use, hasRepeated(use.time, use.gateway, use.incarnation) else { continue }
            probes += 1
            let gateway = gateways[Int(plan.seed % UInt64(gateways.count))]
            ledger.accounts.sends(code.identity)
            let exchange = ledger.open(
                gateway: gateway, method: "POST", path: "/auth/token", proof: .direct(subject: code.identity),
                needsProof: false)
            exchange.body = code.body()
            let connection = ClientConnection(self, gateway, from: Address(253, 2000 + probes))
            exchange.done = { [self] exchange in
                probes -= 1
                connection.close()
                if exchange.status == 200, exchange.isComplete { redeemed(code, exchange, isLate: true) }
            }
            connection.send(
                exchange,
                fields: ["Content-Type: application/x-www-form-urlencoded", "Content-Length: \(exchange.body.count)"],
                parts: [exchange.body], pauses: [], cut: nil)
        }
    }
}

extension Simulation {
    var hasReplicas: Bool { plan.store == .replicated || plan.store == .cluster }
}

extension Client {
    /// A master is lost, right after something was acknowledged.
    func failOver() {
        let (simulation, plan, machine, redis) = (simulation, simulation.plan, simulation.machine, simulation.redis!)
        guard simulation.hasReplicas, machine.now < plan.calm - 8_000_000_000,
            (redis.lastFailover ?? 0) < machine.now - 8_000_000_000
        else { return }
        let (shard, back) = (random.below(3), Int64(random.within(500...3000)) * 1_000_000)
        machine.after(Int64(random.within(0...20)) * 1_000_000) {
            guard (redis.lastFailover ?? 0) < machine.now - 8_000_000_000 else { return }
            simulation.failovers.append(machine.now)
            redis.failOver(shard, losing: 5, backAfter: back)
        }
    }

    /// Begins two sessions, uses both, ends both within a moment, and uses them again.
    func endTwice(_ next: @escaping (Exchange?) -> Void) {
        simulation.ledger.accounts.sends(subject)
        simulation.ledger.accounts.sends(subject)
        let gateways = simulation.gateways
        lastPort += 1
        let connection = ClientConnection(
            simulation, gateways[random.below(gateways.count)], from: Address(200 + index % 50, lastPort))
        let former = session
        var sessions: [Session] = []
        let steps: [(Session?, @escaping (Exchange?) -> Void) -> Void] = [
            { [self] _, done in
                let body = Array("username=u\(user)&password=secret-0".utf8)
                request(
                    "POST", "/auth/login/password", .direct(subject: subject),
                    fields: ["Content-Type: application/x-www-form-urlencoded"], body: body, isSafe: true
                ) { [self] exchange in
                    if let exchange, exchange.status == 200, exchange.isComplete {
                        begin(exchange, as: subject)
                        // A login whose response is lost may end one of them, where a subject may have few.
                        session?.endAsked = simulation.machine.now
                        if let session { sessions.append(session) }
                        session = former
                    }
                    done(exchange)
                }
            },
            { [self] session, done in session.map { use($0, done) } ?? done(nil) },
            { [self] session, done in session.map { end($0, done) } ?? done(nil) },
            { [self] session, done in session.map { use($0, done) } ?? done(nil) },
        ]
        var stage = 0
        func go() {
            guard stage < steps.count, connection.isUsable else {
                connection.close()
                return next(nil)
            }
            let step = steps[stage]
            stage += 1
            var left = 2
            for number in 0..<2 {
                pinned = connection
                step(stage == 1 ? nil : number < sessions.count ? sessions[number] : nil) { _ in
                    left -= 1
                    // A moment later, so that it is certain what was before.
                    if left == 0 { self.simulation.machine.after(50_000, go) }
                }
                pinned = nil
            }
        }
        go()
    }
}

extension Ledger {
    /// A gateway has acknowledged the end of a session that a request asked for.
    func acknowledgeEnd(of session: Session, by client: Client) {
        // A token that has expired ends nothing.
        guard endedRightBefore.count < 40, session.access.last?.from ?? 0 > simulation.machine.now else { return }
        endedRightBefore.append(session)
        if client.random.chance(60) { client.failOver() }
    }
}
