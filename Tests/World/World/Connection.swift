import WorldMachine

/// A client's connection to a gateway over HTTP/1: requests go out in order, and responses have to come back in order.
final class ClientConnection: Carrier {
    unowned let simulation: Simulation
    let gateway: Gateway
    private let peer: Peer
    private var reader = MessageReader(isResponse: true)
    private var waiting: [Exchange] = []
    private let outbox: Outbox
    /// How heads are written; `nil` for the usual way.
    private var spelling: Spelling?
    private var random: SeededRandom
    /// Called when the connection has ended.
    var ended: () -> Void = {}
    private(set) var isUsable = true
    private var lastUse: Int64 = 0

    /// - Parameter port: where the gateway listens.
    init(
        _ simulation: Simulation, _ gateway: Gateway, from client: Address, at port: UInt16 = 8080,
        spelled random: SeededRandom? = nil
    ) {
        self.simulation = simulation
        self.gateway = gateway
        spelling = random.map(Spelling.init)
        self.random = random ?? SeededRandom(seed: 0)
        outbox = Outbox(simulation.machine)
        peer = Peer.connect(simulation.machine, from: client, to: Address(gateway.index, Int(port)))
        peer.received = { [unowned self] in received($0) }
        peer.ended = { [unowned self] isBroken in
            for exchange in waiting.prefix(1) { simulation.ledger.checkServed(exchange) }
            ended(isBroken: isBroken)
        }
        outbox.perform = { [unowned self] in perform($0) }
    }

    func send(_ exchange: Exchange, fields: [String], parts: [[UInt8]], pauses: [Int64], cut: Int?) {
        let isOld = spelling?.isOld == true && !fields.contains { $0.hasPrefix("Transfer-Encoding") }
        let expects = spelling != nil && !parts.isEmpty && !isOld && random.chance(60)
        if isOld { isUsable = false }
        let head =
            spelling?.head(exchange.method, exchange.path, fields, expects: expects, version: isOld ? 0 : 1)
            ?? "\(exchange.method) \(exchange.path) HTTP/1.1\r\nHost: api.example.com\r\n"
            + fields.map { $0 + "\r\n" }.joined() + "\r\n"
        var all = [Array(head.utf8)] + parts
        var isCut = false
        if let cut, cut < all.reduce(0, { $0 + $1.count }) {
            exchange.isWhole = false
            isCut = true
            var left = cut
            all = all.map { part in
                defer { left -= min(left, part.count) }
                return Array(part.prefix(left))
            }
        }
        var steps: [Outbox.Step] = []
        for (index, part) in all.enumerated() {
            if index < pauses.count { steps.append(.pause(pauses[index])) }
            if index == 1, expects {
                steps.append(.invitation(exchange, most: Int64(random.within(0...3000)) * 1_000_000))
            }
            steps.append(.bytes(part))
        }
        exchange.mayLeave = isCut
        if isCut { steps.append(.leave) }
        if !isCut, spelling != nil, random.chance(10) {
            isUsable = false
            exchange.mayLeave = true
            steps.append(.finish)
        }
        send(exchange, steps)
    }

    /// Sends a request in any way.
    func send(_ exchange: Exchange, _ steps: [Outbox.Step]) {
        let isIdle = waiting.isEmpty && lastUse > 0 && simulation.machine.now - lastUse > 50_000_000
        lastUse = simulation.machine.now
        waiting.append(exchange)
        reader.headRequests.append(exchange.method == "HEAD")
        outbox.add(steps)
        // In one piece, on a connection that was idle.
        if isIdle, steps.count == 1, simulation.plan.weather.short == 0 { exchange.arrivesAt = peer.stream.lastArrival }
    }

    private func perform(_ step: Outbox.Step) {
        guard !peer.hasEnded else { return }
        switch step {
        case .bytes(let bytes): peer.send(bytes)
        case .leave: abort()
        case .finish: peer.finish()
        case .pause, .invitation: break
        }
    }

    /// Takes no more requests.
    func retire() { isUsable = false }

    func pause(for time: Int64) {
        peer.isDeaf = true
        simulation.machine.after(time) { [weak self] in
            guard let self else { return }
            for exchange in waiting { exchange.progressAt = simulation.machine.now }
            peer.isDeaf = false
        }
    }

    func abort() {
        guard !peer.hasEnded else { return }
        peer.abort()
        ended(isBroken: true)
    }

    func close() {
        guard !peer.hasEnded else { return }
        peer.close()
        // Where it was not the other side that ended it, nothing ends with it.
        ended(isBroken: true)
    }

    private func received(_ bytes: [UInt8]) {
        for piece in reader.read(bytes) {
            switch piece {
            case .invalid(let reason):
                simulation.ledger.violate(.oneResponse, "a client got a malformed response: \(reason)")
            case .head(let head): begin(head)
            case .body(let part):
                guard let exchange = waiting.first, exchange.head != nil else { return }
                accept(part, of: exchange)
            case .end:
                guard let exchange = waiting.first, exchange.head != nil else { continue }
                waiting.removeFirst()
                lastUse = simulation.machine.now
                complete(exchange)
            }
        }
    }

    private func begin(_ head: MessageHead) {
        guard let exchange = waiting.first else {
            // A connection that is closed for its own reasons may say why.
            if head.status == 408 || head.status == 400 || head.status == 503 { return }
            return simulation.ledger.violate(.oneResponse, "a client got \(head.start) without a request")
        }
        outbox.invited(exchange)
        if head.status / 100 == 1, head.status != 101 { return }
        guard accept(head, of: exchange) else { return }
        if head.value("connection")?.lowercased() == "close" { isUsable = false }
    }

    private func ended(isBroken: Bool) {
        isUsable = false
        outbox.clear()
        // Linux ends the connections of a process that is killed as it would have done itself.
        let isKilled = waiting.first.map { $0.incarnation != gateway.incarnation || gateway.process.isDead } ?? false
        if !isBroken, !isKilled, reader.endsMessage(), let exchange = waiting.first, exchange.head != nil {
            waiting.removeFirst()
            complete(exchange)
        }
        let left = waiting
        waiting.removeAll()
        for exchange in left { simulation.ledger.finished(exchange) }
        ended()
    }
}
