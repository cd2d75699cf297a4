import WorldMachine

/// A gateway is without its store for a moment, in which a session ends elsewhere: it asks about its long responses
/// again, and ends those whose sessions have ended, and no others.
final class GapTrial {
    private unowned let simulation: Simulation
    private let client: Client
    private let gateway: Gateway
    private let other: Gateway

    private static let second: Int64 = 1_000_000_000
    /// Long enough for the gateway to notice it, and for it to have asked after it.
    private static let gap = 8 * second
    private static let timeout = gap + 18 * second

    /// - Returns: `nil` where nothing can be said of it.
    init?(_ simulation: Simulation) {
        let plan = simulation.plan
        var random = SeededRandom(seed: plan.seed, part: "gap")
        guard simulation.gateways.count > 1, plan.store != .memory, plan.skew == 0, random.chance(300) else {
            return nil
        }
        self.simulation = simulation
        client = simulation.clients[random.below(simulation.clients.count)]
        let index = random.below(simulation.gateways.count)
        gateway = simulation.gateways[index]
        other = simulation.gateways[(index + 1) % simulation.gateways.count]
    }

    private var machine: Machine { simulation.machine }

    func start() {
        simulation.probes += 1
        guard simulation.plan.callers.hasBrowsers else { return client.login { [self] _ in withToken() } }
        guard let browser = client.browser, simulation.plan.graceTime <= 5 * Self.second else { return finish() }
        browser.act { [self] _ in withCookie(browser) }
    }

    private func finish() { simulation.probes -= 1 }

    private func cut() {
        simulation.failovers.append(machine.now)
        simulation.redis.cut(gateway, for: Self.gap)
    }

    /// A long response at the gateway, which does not end by itself before the trial.
    private func watch(_ session: Session, _ fields: [String]) -> (Exchange, any Carrier)? {
        client.lastPort += 1
        let connection = ClientConnection(simulation, gateway, from: Address(249, client.lastPort))
        client.pinned = connection
        client.request("GET", "/sse/", .session(session), needsProof: true, fields: fields) { _ in connection.close() }
        client.pinned = nil
        guard let exchange = simulation.ledger.exchanges.last, exchange.path.hasPrefix("/sse/") else { return nil }
        exchange.lastsUntil = machine.now + 90 * Self.second
        return (exchange, connection)
    }

    // MARK: A session that ends

    private func withToken() {
        guard let session = client.session, session.endAsked == nil, !session.isUnsure,
            let token = session.access.last, token.from > machine.now + 60 * Self.second,
            let (exchange, connection) = watch(session, ["Authorization: Bearer \(token.token)"])
        else { return finish() }
        machine.after(3 * Self.second) { [self] in
            cut()
            machine.after(Self.gap / 2) { [self] in
                let second = client.carrier(to: other, from: Address(249, client.lastPort + 500))
                client.pinned = second
                client.end(session) { _ in second.close() }
                client.pinned = nil
            }
            machine.after(Self.timeout) { [self] in
                machine.trace.note(
                    "gap: request \(exchange.number) is \(exchange.state), of a session that ended at "
                        + "\(session.end?.time ?? 0)")
                if let end = session.end, !session.isUnsure, exchange.state == .sent, exchange.headAt > 0 {
                    simulation.ledger.violate(
                        .revocation,
                        "request \(exchange.number) goes on \((machine.now - end.time) / 1_000_000) ms after its session "
                            + "was ended while its gateway had no store")
                }
                connection.close()
                finish()
            }
        }
    }

    // MARK: A cookie that was replaced

    private func withCookie(_ browser: BrowserUser) {
        guard let (session, cookie) = browser.cookie, let (_, connection) = watch(session, [cookie]) else {
            return finish()
        }
        // The response to a use after its life replaces the cookie, and a use of the next one ends its grace.
        let pauses = [9 * Self.second, Self.second, simulation.plan.graceTime + 2 * Self.second]
        go(browser, pauses[...]) { [self] in
            cut()
            machine.after(Self.timeout) { [self] in
                browser.use { [self] _ in
                    connection.close()
                    finish()
                }
            }
        }
    }

    /// Uses the cookie after each of some pauses.
    private func go(_ browser: BrowserUser, _ pauses: ArraySlice<Int64>, _ then: @escaping () -> Void) {
        guard let pause = pauses.first else { return then() }
        machine.after(pause) { [self] in browser.use { [self] _ in go(browser, pauses.dropFirst(), then) } }
    }
}

extension BrowserUser {
    /// Its living session, with the field that proves it.
    fileprivate var cookie: (Session, String)? {
        guard let session, session.endAsked == nil, !session.isUnsure, let token = session.refreshTokens.last else {
            return nil
        }
        return (session, present(token))
    }

    /// Uses the newest cookie, if its session lives.
    fileprivate func use(_ next: @escaping (Exchange?) -> Void) {
        guard let session, session.endAsked == nil, let token = session.refreshTokens.last else { return next(nil) }
        use(session, token, next)
    }
}
