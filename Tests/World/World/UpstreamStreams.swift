import WorldMachine

extension Plan {
    /// Whether upstreams are spoken to in HTTP/2.
    var hasHTTP2Upstreams: Bool {
        var random = SeededRandom(seed: seed, part: "h2c")
        return random.chance(350)
    }

    /// The endpoint of an upstream.
    func endpoint(_ index: Int) -> String {
        hasHTTP2Upstreams ? "h2c://10.0.0.\(100 + index):81" : "http://10.0.0.\(100 + index)"
    }
}

/// One connection to an upstream over HTTP/2.
final class UpstreamStreams {
    private final class Request {
        let exchange: Exchange
        var body: [UInt8] = []
        let isHead: Bool
        var hasResponded = false

        init(_ exchange: Exchange, isHead: Bool) {
            self.exchange = exchange
            self.isHead = isHead
        }
    }

    private unowned let simulation: Simulation
    private let peer: Peer
    private let session: FrameSession
    private var random: SeededRandom
    private var requests: [Int32: Request] = [:]
    private var lastRefused: Int32 = .max
    /// After how many requests it is gone without a word; what came since.
    private var requestsLeft: Int
    private var unheard: [Exchange] = []
    private var silentAt: Int64 = 0
    var isHanging: () -> Int64 = { 0 }

    init(_ simulation: Simulation, _ peer: Peer, _ random: SeededRandom) {
        self.simulation = simulation
        self.peer = peer
        self.random = random
        let streams = self.random.pick([100, 100, 2, 1])
        requestsLeft = self.random.chance(simulation.plan.rudeness * 3) ? 1 + self.random.below(12) : .max
        session = FrameSession(
            isServer: true,
            settings: [
                (3, streams), (4, self.random.pick([65_535, 1000, 300_000])), (1, self.random.pick([4096, 0])),
            ])
        session.mostData = { [unowned self] in self.random.chance(300) ? 1 + self.random.below(9000) : 16_384 }
    }

    func received(_ bytes: [UInt8]) {
        guard session.receive(bytes) else {
            return simulation.ledger.violate(.oneResponse, "an upstream got what is not HTTP/2")
        }
        if requestsLeft > 0 { flush() } else { hearNothing() }
    }

    private func flush() {
        guard requestsLeft > 0 else { return }
        session.exchange(with: peer) { handle($0) }
        if !peer.hasEnded, session.isOver { peer.finish() }
    }

    private func handle(_ event: FrameEvent) {
        switch event {
        case .goAway: break
        case .head(let id, let fields, let isEnd):
            if let request = requests[id] {
                simulation.ledger.checkTrailer(fields, of: request.exchange)
            } else if fields.contains(where: { $0.name == ":method" }) {
                // Without a method it is the trailer of a request that was not taken; nghttp2 rejects other heads.
                begin(id, fields)
            }
            if isEnd { end(id) }
        case .data(let id, let bytes, let isEnd):
            session.consumed(bytes.count, of: id)
            if let request = requests[id] {
                simulation.ledger.checkBody(bytes, at: request.body.count, of: request.exchange)
                request.body += bytes
                if random.chance(simulation.plan.rudeness / 8) { session.reset(id, random.pick([2, 7, 8, 11])) }
            }
            if isEnd { end(id) }
        case .closed(let id, _): requests[id] = nil
        }
    }

    /// It is gone without a word: once that was noticed, nothing more comes to it.
    private func hearNothing() {
        for event in session.takeEvents() {
            guard case .head(_, let fields, _) = event, let path = fields.first(where: { $0.name == ":path" })?.value,
                let exchange = simulation.ledger.exchange(ofPath: path)
            else { continue }
            // What it had sent before has arrived within a second.
            let noticed = unheard.first {
                $0.status == 504 && $0.sentAt > silentAt + 1_000_000_000 && $0.finishedAt < exchange.sentAt
            }
            if let first = noticed, !simulation.plan.isCut(at: silentAt) {
                simulation.ledger.violate(
                    .served,
                    "request \(exchange.number) went to a connection that was silent for \(first.number) until it got 504"
                )
            }
            unheard.append(exchange)
        }
    }

    private func begin(_ id: Int32, _ fields: FrameEvent.Fields) {
        func value(_ name: String) -> String { fields.first { $0.name == name }?.value ?? "" }
        let head = MessageHead(
            start: "\(value(":method")) \(value(":path")) HTTP/1.1", fields: fields.filter { !$0.name.hasPrefix(":") })
        // What was refused was not processed: it may come again elsewhere.
        if random.chance(simulation.plan.rudeness / 2) { return session.reset(id, 7) }
        if random.chance(simulation.plan.rudeness / 8) {
            session.goAway(last: id - 2)
            lastRefused = min(lastRefused, id)
        }
        guard id < lastRefused, let exchange = simulation.ledger.seen(head) else { return }
        requestsLeft -= 1
        if requestsLeft == 0 { silentAt = simulation.machine.now }
        requests[id] = Request(exchange, isHead: value(":method") == "HEAD")
        if random.chance(simulation.plan.rudeness / 4) { peer.abort() }
    }

    private func end(_ id: Int32) {
        guard let request = requests[id] else { return }
        simulation.ledger.checkBodyEnd(request.body.count, of: request.exchange)
        var delay = random.chance(simulation.plan.slowness) ? random.within(100...4000) : random.within(0...20)
        delay += request.exchange.slowness(&random)
        simulation.machine.at(max(isHanging(), simulation.machine.now + Int64(delay) * 1_000_000)) { [weak self] in
            self?.respond(id, request)
        }
    }

    private func respond(_ id: Int32, _ request: Request) {
        guard !peer.hasEnded, requests[id] === request else { return }
        let isFailing = random.chance(simulation.plan.failures)
        if request.exchange.path.hasPrefix("/sse/") {
            if !isFailing { return stream(id, request) }
            request.exchange.down = Flow()
            request.exchange.down.isEnded = true
        }
        if random.chance(60) { session.interim(id, [(":status", "103"), ("link", "</a>")]) }
        var fields: FrameEvent.Fields = [
            (":status", isFailing ? random.pick(["500", "503", "404"]) : "200"),
            ("x-world", "\(request.exchange.number)"),
        ]
        if random.chance(500) { fields.append(("content-length", "\(request.body.count)")) }
        let hasBody = !request.isHead && (!request.body.isEmpty || random.chance(300))
        session.respond(id, fields, hasBody: hasBody)
        guard hasBody else {
            request.exchange.respondedAt = simulation.machine.now
            request.exchange.wholeAt = simulation.machine.now
            return flush()
        }
        send(request.body, on: id, request)
    }

    private func send(_ body: [UInt8], on id: Int32, _ request: Request) {
        let cut = random.chance(simulation.plan.rudeness) ? random.below(body.count + 1) : nil
        let first = random.below(body.count + 1)
        let trailer: FrameEvent.Fields = random.chance(100) ? [("x-sum", "1")] : []
        session.append(Array(body.prefix(min(first, cut ?? first))), to: id)
        flush()
        let pause = random.chance(100) ? Int64(random.within(1...800)) * 1_000_000 : 0
        simulation.machine.after(pause) { [weak self] in
            guard let self, !peer.hasEnded, requests[id] === request else { return }
            if cut != nil {
                if random.chance(300) { return peer.abort() }
                session.reset(id, random.pick([2, 8, 11]))
            } else {
                request.exchange.respondedAt = simulation.machine.now
                request.exchange.wholeAt = simulation.machine.now
                session.append(Array(body.dropFirst(first)), to: id)
                session.end(id, trailer: trailer)
            }
            flush()
        }
    }

    private func stream(_ id: Int32, _ request: Request) {
        let long = UpstreamTunnel(
            simulation, request.exchange, peer, SeededRandom(seed: random.next()), isHanging: isHanging)
        long.isOver = { [weak self] in self?.requests[id] !== request }
        long.write = { [weak self] bytes in
            if let bytes { self?.session.append(bytes, to: id) } else { self?.session.end(id) }
            self?.flush()
        }
        session.respond(
            id, [(":status", "200"), ("content-type", "text/event-stream"), ("x-world", "\(request.exchange.number)")],
            hasBody: true)
        flush()
        long.begin()
    }
}
