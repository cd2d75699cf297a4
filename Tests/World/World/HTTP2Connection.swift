import WorldMachine

/// A client's connection to a gateway over HTTP/2 with prior knowledge: several requests at a time, and whatever else a
/// client may do with frames.
final class HTTP2Connection: Carrier {
    unowned let simulation: Simulation
    let gateway: Gateway
    private let peer: Peer
    private let session: FrameSession
    private var random: SeededRandom
    private var exchanges: [Int32: Exchange] = [:]
    /// How long a stream waits before it gives back its window, in nanoseconds.
    private let laziness: Int64
    private var hasReceived = false
    private(set) var isUsable = true

    init(_ simulation: Simulation, _ gateway: Gateway, from client: Address, _ random: SeededRandom) {
        self.simulation = simulation
        self.gateway = gateway
        self.random = random
        let window = self.random.pick([65_535, 65_535, 300, 4000, 1_000_000])
        laziness = self.random.chance(200) ? Int64(self.random.within(1...300)) * 1_000_000 : 0
        session = FrameSession(
            isServer: false,
            settings: [(2, 0), (1, self.random.pick([4096, 0, 100])), (3, self.random.within(0...100)), (4, window)])
        peer = Peer.connect(simulation.machine, from: client, to: gateway.address)
        session.mostData = { [unowned self] in self.random.chance(300) ? 1 + self.random.below(9000) : 16_384 }
        peer.received = { [unowned self] in received($0) }
        peer.ended = { [unowned self] _ in
            for (_, exchange) in exchanges.sorted(by: { $0.key < $1.key }) { simulation.ledger.checkServed(exchange) }
            ended()
        }
        if self.random.chance(200) { session.widen(0, by: self.random.within(1...1_000_000)) }
    }

    func send(_ exchange: Exchange, fields: [String], parts: [[UInt8]], pauses: [Int64], cut: Int?) {
        let hasBody = !parts.isEmpty
        let length = hasBody && random.chance(500) ? [(name: "content-length", value: "\(exchange.body.count)")] : []
        guard let id = session.request(head(exchange, fields) + length, hasBody: hasBody) else {
            isUsable = false
            return simulation.ledger.finished(exchange)
        }
        exchanges[id] = exchange
        simulation.machine.trace.note("request \(exchange.number) is stream \(id) to gateway \(gateway.index)")
        exchange.mayLeave = cut != nil
        let cut = hasBody ? cut.flatMap { $0 < exchange.body.count ? $0 : nil } : cut
        if hasBody { send(exchange.body, on: id, pauses: pauses, cut: cut) }
        if cut != nil {
            if hasBody { exchange.isWhole = false }
            let delay = Int64(random.chance(500) ? 0 : random.within(0...400)) * 1_000_000
            simulation.machine.after(delay + pauses.reduce(0, +)) { [weak self] in self?.leave(id) }
        }
        makeNoise(id)
        flush()
    }

    private func head(_ exchange: Exchange, _ fields: [String]) -> FrameEvent.Fields {
        var list: FrameEvent.Fields = [
            (":method", exchange.method), (":scheme", "http"), (":authority", "api.example.com"),
            (":path", exchange.path),
        ]
        for line in fields {
            let parts = line.split(separator: ":", maxSplits: 1)
            let name = parts[0].lowercased()
            // What frames the message, or concerns the connection, has no place here.
            if ["content-length", "transfer-encoding", "connection", "expect"].contains(name) { continue }
            list.append((name, String(parts[1].drop { $0 == " " })))
        }
        return list
    }

    private func send(_ body: [UInt8], on id: Int32, pauses: [Int64], cut: Int?) {
        var rest = body.prefix(cut ?? body.count)
        let trailer: FrameEvent.Fields = random.chance(100) ? [("x-user-id", "forged"), ("x-sum", "1")] : []
        var time = simulation.machine.now
        for pause in pauses {
            let part = Array(rest.prefix(random.below(rest.count + 1)))
            rest = rest.dropFirst(part.count)
            simulation.machine.at(time) { [weak self] in
                self?.session.append(part, to: id)
                self?.flush()
            }
            time += pause
        }
        let last = Array(rest)
        let act = { [weak self] in
            self?.session.append(last, to: id)
            if cut == nil { self?.session.end(id, trailer: trailer) }
        }
        if time == simulation.machine.now {
            act()
        } else {
            simulation.machine.at(time) { [weak self] in
                act()
                self?.flush()
            }
        }
    }

    /// The client wants no more of a request, or of any.
    private func leave(_ id: Int32) {
        guard exchanges[id] != nil, !peer.hasEnded else { return }
        if random.chance(150) {
            peer.abort()
            return ended()
        }
        session.reset(id, random.pick([8, 8, 0, 2, 5, 11]))
        flush()
    }

    /// Frames that mean nothing, or little.
    private func makeNoise(_ id: Int32) {
        guard random.chance(150) else { return }
        switch random.below(7) {
        case 0: session.ping()
        case 1: session.submit(settings: [(4, random.pick([65_535, 1000, 200_000]))])
        case 2: session.submit(settings: [])
        case 3: session.prioritize(id)
        case 4: session.widen(0, by: random.within(1...10_000))
        case 5: session.submitForeign(type: 0x2a, [UInt8](repeating: 7, count: random.below(40)))
        default:
            if random.chance(200) {
                session.goAway()
                isUsable = false
            }
        }
    }

    func pause(for time: Int64) {
        peer.isDeaf = true
        simulation.machine.after(time) { [weak self] in
            guard let self else { return }
            for exchange in exchanges.values { exchange.progressAt = simulation.machine.now }
            peer.isDeaf = false
        }
    }

    func close() {
        guard !peer.hasEnded else { return }
        if random.chance(300) {
            session.goAway()
            peer.send(session.output())
        }
        peer.close()
        ended()
    }

    // MARK: What arrives

    private func received(_ bytes: [UInt8]) {
        guard session.receive(bytes) else {
            // Who has no turn reads so in HTTP/1.
            if !hasReceived, bytes.starts(with: "HTTP/1.1 503".utf8) { return close() }
            return simulation.ledger.violate(.oneResponse, "a client got what is not HTTP/2: \(bytes.prefix(40))")
        }
        hasReceived = true
        flush()
    }

    /// Sends what can be sent, and looks at what has happened.
    private func flush() {
        session.exchange(with: peer) { handle($0) }
        guard !peer.hasEnded, session.isOver else { return }
        peer.close()
        ended()
    }

    private func handle(_ event: FrameEvent) {
        switch event {
        case .goAway: isUsable = false
        case .head(let id, let fields, let isEnd):
            if let exchange = exchanges[id] { begin(id, exchange, fields) }
            if isEnd { end(id) }
        case .data(let id, let bytes, let isEnd):
            giveBack(bytes.count, of: id)
            if let exchange = exchanges[id] {
                if exchange.head == nil {
                    simulation.ledger.violate(.oneResponse, "request \(exchange.number) got a body without a head")
                }
                accept(bytes, of: exchange)
                if random.chance(simulation.plan.rudeness / 4) {
                    exchange.mayLeave = true
                    session.reset(id, 8)
                }
            }
            if isEnd { end(id) }
        case .closed(let id, _):
            if let exchange = exchanges.removeValue(forKey: id) {
                simulation.ledger.checkServed(exchange)
                simulation.ledger.finished(exchange)
            }
        }
    }

    private func begin(_ id: Int32, _ exchange: Exchange, _ fields: FrameEvent.Fields) {
        guard exchange.head == nil else {
            exchange.trailer = fields
            return
        }
        let status = fields.first { $0.name == ":status" }?.value ?? ""
        if status.hasPrefix("1") { return }
        _ = accept(MessageHead(start: "HTTP/2 \(status)", fields: fields), of: exchange)
    }

    private func end(_ id: Int32) {
        guard let exchange = exchanges.removeValue(forKey: id) else { return }
        // A call of gRPC that was cut says so.
        if exchange.trailer.contains(where: { $0.name == "grpc-status" && $0.value != "0" }) {
            return simulation.ledger.finished(exchange)
        }
        // The response has ended before the request: the rest is of no use.
        if session.unsent(id) > 0 {
            exchange.isWhole = false
            session.reset(id, 0)
        }
        complete(exchange)
    }

    private func giveBack(_ count: Int, of id: Int32) {
        guard laziness > 0 else { return session.consumed(count, of: id) }
        simulation.machine.after(laziness) { [weak self] in
            self?.session.consumed(count, of: id)
            self?.flush()
        }
    }

    private func ended() {
        isUsable = false
        let left = exchanges.sorted { $0.key < $1.key }
        exchanges.removeAll()
        for (_, exchange) in left { simulation.ledger.finished(exchange) }
    }
}
