import CLinux
import WorldMachine

/// What a seed decides about routes and upstreams beyond those that every world has: it draws from a generator of its own,
/// so that a plan without them stays as it was.
struct Traffic {
    /// How often requests are sent again; 0 is what gateways do by themselves.
    let retries: Int
    /// The connections to the upstream, and the requests that wait for one.
    let breaker: (connections: Int, pending: Int)?
    /// Whether bodies may be as slow as they like, and must not stop.
    let allowsSlowBodies: Bool
    /// Whether gateways are asked about keys that they do not know while the issuer does not respond.
    let triesKeys: Bool
    /// Whether a reader of events takes nothing.
    let hasDeafReader: Bool
    /// Whether clients send more than they read.
    let hasGreedyClients: Bool
    private let watchFaults: Int

    /// How long a request waits for a connection, in nanoseconds.
    static let queueTimeout: Int64 = 2_000_000_000

    init(seed: UInt64) {
        var random = SeededRandom(seed: seed, part: "traffic")
        retries = random.chance(250) ? random.within(1...3) : 0
        breaker = random.chance(150) ? (random.within(2...4), random.within(2...4)) : nil
        allowsSlowBodies = random.chance(150)
        triesKeys = random.chance(400)
        hasDeafReader = random.chance(20)
        hasGreedyClients = random.chance(200)
        watchFaults = random.chance(200) ? random.within(1...3) : 0
    }

    func faults(seed: UInt64, calm: Int64, gateways: Int) -> [PlannedFault] {
        var random = SeededRandom(seed: seed, part: "traffic's faults")
        return (0..<watchFaults).map { _ in
            let at = 2_000_000_000 + Int64(random.below(Int((calm - 8_000_000_000) / 1_000_000))) * 1_000_000
            return PlannedFault(
                .watchFails(random.below(gateways), random.pick([12, 28])), at: at,
                duration: Int64(random.within(10...400)) * 1_000_000)
        }
    }

    var bodyTimeout: String { allowsSlowBodies ? ", body_idle: 5s" : "" }
    var bodyRate: String { allowsSlowBodies ? "0B" : "256B" }

    /// Blocks of the upstream.
    var blocks: String {
        var lines: [String] = []
        if retries > 0 { lines.append("    retries: {attempts: \(retries), per_try_timeout: 3s, min_per_second: 100}") }
        if let breaker {
            lines.append(
                "    breaker: {max_connections: \(breaker.connections), max_pending: \(breaker.pending), queue_timeout: 2s}"
            )
        }
        return lines.joined(separator: "\n")
    }

    /// The last routes, which change with each reload: their order, and whether the very last one is there.
    func routes(_ providers: String, _ variant: Int) -> String {
        let sides = ["left", "right"].map { name in
            """
            - name: \(name)
              match: {path: "/\(name)/**"}
              auth: {providers: [\(providers)]}
              headers: {set: {X-User-Id: {attribute: subject}, X-User-Route: {attribute: route}}}
              upstream: app

            """
        }
        let gone = """
            - {name: gone, match: {path: "/gone/**"}, auth: none, headers: {remove: [X-Sum]}, upstream: app}

            """
        return """
            - {name: early, match: {path: "/early/**"}, auth: none, upstream: app}

            """ + (variant % 2 == 0 ? sides[0] + sides[1] + gone : sides[1] + sides[0])
    }
}

extension Simulation {
    /// Changes the configuration of a gateway, and has it read it.
    func reload(_ gateway: Gateway) {
        gateway.variant += 1
        let name = "gateway-\(gateway.index).yaml"
        // A process that starts meanwhile reads the one or the other.
        write(name + ".new", plan.configuration(gateway.index, store: redis.url, variant: gateway.variant))
        rename(machine.folder + "/" + name + ".new", machine.folder + "/" + name)
        machine.signal(gateway.process, Int(SIGHUP))
    }

    /// Nothing can be watched for a time, and for the first moments there are no descriptors either.
    func failWatches(of gateway: Gateway, _ error: Int32, for time: Int64) {
        guard gateway.isServing, !gateway.wantsRestart else { return }
        let process = gateway.process
        process.watchError = error
        process.descriptorLimit = 0
        machine.after(min(time / 2, 60_000_000)) { process.descriptorLimit = Process.usualDescriptorLimit }
        machine.after(time) { process.watchError = 0 }
    }

    /// Whether nothing broke or delayed connections from a time until now, except what upstreams did to themselves.
    func wasClear(from time: Int64) -> Bool {
        guard plan.weather.reset == 0 else { return false }
        return plan.faults.allSatisfy { fault in
            switch fault.kind {
            case .reload, .outputFails, .keysRotate, .issuerFails, .weChatFails, .diskFails, .redisDies, .redisHangs,
                .redisUnreachable, .redisCutFrom, .redisCondition, .redisLags, .redisFailsOver, .redisLosesAll,
                .clockJumps:
                true
            default: fault.at > machine.now || fault.at + fault.duration + 1_000_000_000 < time
            }
        }
    }
}

extension Plan {
    /// Whether upstreams, or connections to them, are cut off about a time.
    func isCut(at time: Int64) -> Bool {
        faults.contains { fault in
            switch fault.kind {
            case .upstreamUnreachable, .storm:
                fault.at < time + 1_000_000_000 && time < fault.at + fault.duration + 1_000_000_000
            default: false
            }
        }
    }
}

// MARK: What follows

extension Ledger {
    /// How long what is whole at an upstream may be on its way to a client that takes it, in nanoseconds.
    private static let longestWay: Int64 = 6_500_000_000

    /// A gateway has ended a request without the response that its upstream had sent whole.
    func checkServed(_ exchange: Exchange) {
        guard case .nothing = exchange.proof, exchange.wholeAt > 0, !exchange.mayLeave, !exchange.isEarly else {
            return
        }
        let last = max(exchange.wholeAt, exchange.progressAt)
        let now = simulation.machine.now
        guard now - last > Self.longestWay, simulation.wasClear(from: exchange.wholeAt) else { return }
        violate(
            .served,
            "request \(exchange.number) \(exchange.method) \(exchange.path.prefix(40)) ended with \(exchange.status) after "
                + "\((now - last) / 1_000_000) ms in which nothing of its whole response came")
    }

    /// A request was rejected for want of a connection: it waited beside an idle one.
    func checkWaiting(_ exchange: Exchange) {
        let now = simulation.machine.now
        guard exchange.status == 503, simulation.plan.traffic.breaker != nil, exchange.head?.value("x-world") == nil,
            // The connections of other upstreams to the same endpoints look the same.
            !simulation.plan.has(.traffic), !simulation.plan.has(.routes), !simulation.plan.has(.streams),
            case .nothing = exchange.proof, now - exchange.sentAt < Traffic.queueTimeout + 1_000_000_000
        else { return }
        let since = now - Traffic.queueTimeout - 100_000_000
        guard now - exchange.sentAt >= Traffic.queueTimeout, simulation.wasClear(from: since) else { return }
        let host = UInt32(0x0a00_0000 + exchange.gateway)
        guard simulation.upstreams.contains(where: { $0.hasIdle(from: host, since: since) }) else { return }
        violate(
            .served, "request \(exchange.number) \(exchange.path.prefix(40)) got 503 beside an idle connection")
    }
}
