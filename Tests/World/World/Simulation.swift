import CLinux
import MartletCommands
import MartletCore
import WorldMachine
import WorldRedis

/// A world with gateways in it, from its first moment to its last.
final class Simulation {
    let plan: Plan
    let machine: Machine
    let program: Program
    private(set) var ledger: Ledger!
    private(set) var redis: RedisServers!
    private(set) var gateways: [Gateway] = []
    private(set) var upstreams: [Upstream] = []
    private(set) var clients: [Client] = []
    private var readers: [EventReader] = []
    /// Apple.
    private(set) var issuer: Issuer!
    private(set) lazy var limits = LimitChecks(self)
    private(set) var weChat: WeChat!
    private(set) lazy var keyTrial = plan.traffic.triesKeys && plan.callers.hasApple ? KeyTrial(self) : nil
    /// The servers that only some configurations name.
    private(set) var offers: Offers!
    var incarnations = 0
    /// Codes that apps got.
    var appCodes: [AppCode] = []
    /// When masters were lost right after something was acknowledged.
    var failovers: [Int64] = []
    /// Gateways whose process the driver is to start.
    var starting: [Gateway] = []
    /// When a process was last started.
    var lastStart: Int64 = 0

    init(_ plan: Plan, _ program: Program, _ keys: SigningKeys, _ machine: Machine, folder: String) {
        self.plan = plan
        self.program = program
        self.machine = machine
        machine.begin(seed: plan.seed)
        machine.folder = folder
        machine.network.weather = plan.weather
        ledger = Ledger(self)
        redis = RedisServers(self)
        upstreams = (0..<plan.upstreams).map { Upstream(self, $0) }
        issuer = Issuer(self, keys)
        weChat = WeChat(self)
        offers = Offers(self, keys)
        gateways = (1...plan.gateways).map { Gateway(self, $0) }
        write("users", plan.usersFile)
        for file in plan.callers.files + plan.featureFiles { write(file.name, file.text) }
        for gateway in gateways {
            write("gateway-\(gateway.index).yaml", plan.configuration(gateway.index, store: redis.url, variant: 0))
        }
    }

    func write(_ name: String, _ text: String) {
        guard let file = fopen(machine.folder + "/" + name, "w") else { return }
        fputs(text, file)
        fchmod(fileno(file), 0o600)
        fclose(file)
    }

    /// Whether all gateways know what was acknowledged at a time, whatever their store has lost since.
    func knows(since time: Int64) -> Bool {
        guard let failover = redis.lastFailover else { return true }
        return failover < time - 3_500_000_000 - 35_000_000_000
            || machine.now > failover + 62_000_000_000 + plan.cacheTime
    }

    /// Whether a failover, which loses the last writes, came while a request was under way.
    func isShaken(_ exchange: Exchange) -> Bool {
        // An instance uses the old master until it has found the new one.
        exchange.sentAt <= (redis.lastFailover ?? .min / 2) + 8_000_000_000
    }

    /// Whether the store may have lost a session.
    func mayForget(_ session: Session) -> Bool {
        // Sessions in memory end with their process.
        if plan.store == .memory { return session.incarnation != incarnations }
        return session.askedAt <= redis.lastLoss ?? -1
    }

    /// Whether the store may have lost that something was used at a time, or later.
    func mayForgetUse(since time: Int64) -> Bool {
        if plan.store == .memory { return lastStart > time }
        return (redis.lastLoss ?? -1) >= time || (redis.lastFailover ?? -1) >= time
    }

    // MARK: Life of a world

    /// - Returns: the violation that was found.
    func run() -> Violation? {
        starting = gateways
        begin()
        guard drive(until: { self.gateways.allSatisfy(\.isServing) }, within: 30, "started") else { return failure }
        clients = plan.clients.enumerated().map { Client(self, $0, requests: $1) }
        for client in clients { client.start() }
        readers = (0..<plan.callers.readers).map { EventReader(self, $0) }
        for reader in readers { reader.start() }
        startTrials()
        for fault in plan.faults { machine.at(fault.at) { [self] in strike(fault) } }
        guard drive(until: { self.machine.now >= self.plan.calm }, within: 100, "faults over") else { return failure }
        for gateway in gateways { gateway.process.faults = [:] }
        guard drive(until: { self.clients.allSatisfy(\.isDone) }, within: 300, "served") else { return failure }
        probe()
        guard drive(until: { self.probes == 0 }, within: 100, "probed") else { return failure }
        guard drive(until: { false }, within: 5, nil) else { return failure }
        for reader in readers { reader.stop() }
        limits.finish()
        guard drive(until: { self.limits.isDone }, within: 60, "given slots") else { return failure }
        guard drive(until: { self.issuer.unrevoked == nil }, within: 400, nil) else { return failure }
        if let left = issuer.unrevoked { ledger.violate(.deletion, "\(left), was not revoked") }
        probeEnded()
        guard drive(until: { self.probes == 0 }, within: 60, "probed again") else { return failure }
        // Long responses may have begun late.
        guard drive(until: { !self.ledger.exchanges.contains { $0.state == .sent } }, within: 60, nil) else {
            return failure
        }
        guard drive(until: { false }, within: 18, nil) else { return failure }
        checkBounds()
        let bounds = Bounds(self)
        guard drive(until: { bounds.isDone }, within: 20, "measured") else { return failure }
        for gateway in gateways { machine.signal(gateway.process, Int(SIGTERM)) }
        guard drive(until: { self.gateways.allSatisfy(\.process.isDead) }, within: 60, "ended") else { return failure }
        ledger.checkLines()
        return failure
    }

    private var failure: Violation? {
        ledger.violations.first ?? machine.failure.map { Violation(invariant: .crash, what: $0) }
    }

    private func begin() {
        let queue = starting
        starting = []
        for gateway in queue { gateway.start() }
    }

    /// Lets the world go on until a condition holds.
    /// - Parameter goal: what has to be reached in time; `nil` if time is all that has to pass.
    private func drive(until condition: @escaping () -> Bool, within seconds: Int64, _ goal: String?) -> Bool {
        let end = machine.now + seconds * 1_000_000_000
        while machine.failure == nil {
            if condition() { return true }
            if machine.now >= end {
                if let goal {
                    ledger.violate(.served, "not \(goal) within \(seconds) s of simulated time: \(waiting)")
                    return false
                }
                return true
            }
            machine.at(min(end, machine.now + 250_000_000)) { [machine] in machine.stop() }
            _ = machine.run()
            begin()
        }
        return false
    }

    /// What helps to understand a failure.
    var details: [String] {
        let responses = ledger.responses.sorted { $0.key < $1.key }.map { "\($0.key):\($0.value)" }
        return ["  responses \(responses.joined(separator: " "))"]
            + gateways.flatMap { gateway in gateway.log.suffix(6).map { "  \(gateway.process.name) \($0)" } }
    }

    private var waiting: String {
        ledger.exchanges.filter { $0.state == .sent }.prefix(4).map {
            "\($0.method) \($0.path) at gateway \($0.gateway)"
        }
        .joined(separator: ", ")
    }

    // MARK: Faults

    private func strike(_ fault: PlannedFault) {
        machine.trace.note("fault \(fault.kind)")
        switch fault.kind {
        case .upstreamDies(let index): upstreams[index].die(for: fault.duration)
        case .upstreamHangs(let index): upstreams[index].hangsUntil = machine.now + fault.duration
        case .upstreamUnreachable(let index):
            machine.network.cut[upstreams[index].address.host] = machine.now + fault.duration
        case .clientsCut:
            for index in 0..<25 { machine.network.cut[Address(200 + index, 0).host] = machine.now + fault.duration }
        case .reload(let index): reload(gateways[index])
        case .restart(let index): restart(gateways[index], by: SIGTERM)
        case .kill(let index): restart(gateways[index], by: SIGKILL)
        case .callFails(let index, let kind, let error):
            if gateways[index].isServing, !gateways[index].wantsRestart { gateways[index].process.faults[kind] = error }
        case .outputFails(let index): failOutput(gateways[index], for: fault.duration)
        case .redisDies(let index): redis.die(index, for: fault.duration)
        case .redisHangs(let index): redis.hang(index, for: fault.duration)
        case .redisUnreachable(let index): redis.cut(index, for: fault.duration)
        case .redisCutFrom(let index): redis.cut(gateways[index], for: fault.duration)
        case .redisCondition(let index, let condition):
            redis.set(RedisConditions(rawValue: condition), of: index, for: fault.duration)
        case .redisLags(let writes): redis.lag(writes, for: fault.duration)
        case .redisFailsOver(let shard, let losing): redis.failOver(shard, losing: losing, backAfter: fault.duration)
        case .redisLosesAll: redis.lose()
        case .clockJumps(let index, let time): gateways[index].process.clockOffset += time
        case .issuerFails(let kind): issuer.strike(kind, for: fault.duration)
        case .diskFails(let index, let error):
            let process = gateways[index].process
            process.diskError = error
            machine.after(fault.duration) { process.diskError = 0 }
        case .weChatFails(let kind): weChat.strike(kind, for: fault.duration)
        case .offersFail(let kind): offers.strike(kind, for: fault.duration)
        case .keysRotate: issuer.rotate(keepingFor: fault.duration * 4)
        case .watchFails(let index, let error): failWatches(of: gateways[index], error, for: fault.duration)
        case .storm:
            machine.network.weather.reset = 30
            machine.after(fault.duration) { [self] in machine.network.weather.reset = plan.weather.reset }
        }
    }

    private func restart(_ gateway: Gateway, by signal: Int32) {
        guard !gateway.process.isDead, gateway.isServing, !gateway.wantsRestart, mayRestart else { return }
        gateway.wantsRestart = true
        if signal == SIGKILL {
            ledger.mayLoseLines.insert(gateway.incarnation)
            machine.kill(gateway.process)
        } else {
            machine.signal(gateway.process, Int(SIGTERM))
        }
    }

    private func failOutput(_ gateway: Gateway, for time: Int64) {
        let process = gateway.process
        ledger.mayLoseLines.insert(gateway.incarnation)
        process.outputError = ENOSPC
        machine.after(time) { process.outputError = 0 }
    }

    // MARK: The end

    var probes = 0

    /// With all faults gone, everything is served again.
    private func probe() {
        for gateway in gateways { probe(gateway, attempt: 0) }
        keyTrial?.probe()
        GapTrial(self)?.start()
        takeSlowly()
        guard !appCodes.isEmpty else { return }
        // Long after the last failover, within the life of a code.
        probes += 1
        machine.at(plan.calm + 12_000_000_000) { [self] in
            probes -= 1
            probeCodes()
        }
    }

    private func probe(_ gateway: Gateway, attempt: Int) {
        if attempt == 0 { probes += 1 }
        let exchange = ledger.open(gateway: gateway, method: "GET", path: "/pub/", proof: .nothing, needsProof: false)
        let connection = ClientConnection(self, gateway, from: Address(250, 1000 + attempt))
        exchange.done = { [self] exchange in
            connection.close()
            if exchange.status == 200 {
                probes -= 1
            } else {
                machine.after(1_000_000_000) { self.probe(gateway, attempt: attempt + 1) }
            }
        }
        connection.send(exchange, fields: [], parts: [], pauses: [], cut: nil)
    }

    /// What was deleted does not work any more.
    private func probeEnded() {
        probeForgotten()
        for session in ledger.accounts.deletions.flatMap(\.sessions).filter({ $0.end != nil }).suffix(3) {
            guard let token = session.access.last?.token else { continue }
            probes += 1
            let gateway = gateways[0]
            let exchange = ledger.open(
                gateway: gateway, method: "GET", path: "/me/", proof: .session(session), needsProof: true)
            let connection = ClientConnection(self, gateway, from: Address(251, 1000 + probes))
            exchange.done = { [self] _ in
                probes -= 1
                connection.close()
            }
            connection.send(exchange, fields: ["Authorization: Bearer \(token)"], parts: [], pauses: [], cut: nil)
        }
    }

    private func checkBounds() {
        for command in redis.unknownCommands { ledger.violate(.crash, "the model of Redis has no \(command)") }
    }
}
