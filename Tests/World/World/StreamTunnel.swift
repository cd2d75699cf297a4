import WorldMachine

/// A client's WebSocket over HTTP/2 (RFC 8441): it sends for a while, and gets back what it sent.
final class StreamTunnel {
    private unowned let simulation: Simulation
    private let exchange: Exchange
    private let peer: Peer
    private let session: FrameSession
    private var random: SeededRandom
    private var writer: WebSocketWriter
    private var reader = WebSocketReader(isServer: false)
    private var stream: Int32?
    private var isOpen = false
    private var hasClosed = false
    private let end: Int64

    init(_ simulation: Simulation, _ exchange: Exchange, to gateway: Gateway, from address: Address, _ seed: UInt64) {
        self.simulation = simulation
        self.exchange = exchange
        random = SeededRandom(seed: seed)
        writer = WebSocketWriter(isClient: true, random: SeededRandom(seed: seed &+ 1))
        end = simulation.machine.now + Int64(random.within(100...15_000)) * 1_000_000
        session = FrameSession(isServer: false, settings: [(2, 0), (4, random.pick([65_535, 1000, 300_000]))])
        peer = Peer.connect(simulation.machine, from: address, to: gateway.address)
        // It lives for as long as its connection does.
        peer.received = { self.received($0) }
        peer.ended = { _ in self.finish() }
        flush()
    }

    private func received(_ bytes: [UInt8]) {
        guard session.receive(bytes) else {
            if bytes.starts(with: "HTTP/1.1 503".utf8) {
                peer.close()
                return finish()
            }
            return simulation.ledger.violate(.oneResponse, "a client got what is not HTTP/2: \(bytes.prefix(40))")
        }
        // The server's settings have come: they say that there are WebSockets.
        if stream == nil { open() }
        flush()
    }

    private func open() {
        let fields = exchange.sent.map { line in
            let parts = line.split(separator: ":", maxSplits: 1)
            return (name: parts[0].lowercased(), value: String(parts[1].drop { $0 == " " }))
        }
        let kind = random.chance(50) ? "chat" : "websocket"
        stream = session.request(
            [
                (":method", "CONNECT"), (":protocol", kind), (":scheme", "http"), (":authority", "api.example.com"),
                (":path", exchange.path), ("sec-websocket-version", random.chance(50) ? "12" : "13"),
            ] + fields, hasBody: true)
        guard stream != nil else {
            peer.close()
            return finish()
        }
        if random.chance(100) { sendMessage() }
        step()
    }

    private func flush() {
        session.exchange(with: peer) { handle($0) }
    }

    private func step() {
        simulation.machine.after(Int64(random.within(1...1200)) * 1_000_000) { [self] in
            guard !peer.hasEnded, !hasClosed else { return }
            if simulation.machine.now >= end { return leave() }
            if isOpen { sendMessage() }
            flush()
            step()
        }
    }

    private func sendMessage() {
        guard let stream else { return }
        let size = random.chance(80) ? random.within(60_000...80_000) : random.below(400)
        let payload = (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 5) }
        exchange.up.send(payload, at: simulation.machine.now)
        session.append(writer.message(payload), to: stream)
    }

    private func leave() {
        guard let stream else { return }
        hasClosed = true
        switch random.below(5) {
        case 0: session.reset(stream, 8)
        case 1: session.end(stream)
        case 2 where isOpen: session.append(writer.violation(), to: stream)
        default: if isOpen { session.append(writer.closing(1000), to: stream) }
        }
        flush()
        simulation.machine.after(5_000_000_000) { [self] in
            guard !peer.hasEnded else { return }
            peer.close()
            finish()
        }
    }

    private func handle(_ event: FrameEvent) {
        switch event {
        case .goAway: break
        case .head(_, let fields, let isEnd):
            if exchange.head == nil { begin(fields) }
            if isEnd { close() }
        case .data(let id, let bytes, let isEnd):
            session.consumed(bytes.count, of: id)
            if isOpen { read(bytes) } else { exchange.responseBody += bytes }
            if isEnd { close() }
        case .closed: close()
        }
    }

    private func begin(_ fields: FrameEvent.Fields) {
        let status = fields.first { $0.name == ":status" }?.value ?? ""
        if status.hasPrefix("1") { return }
        exchange.head = MessageHead(start: "HTTP/2 \(status)", fields: fields)
        exchange.headAt = simulation.machine.now
        // An upstream that opens no tunnel has its own response.
        isOpen = status == "200" && exchange.sightings > 0
    }

    private func read(_ bytes: [UInt8]) {
        for piece in reader.read(bytes) {
            switch piece {
            case .invalid(let reason):
                return simulation.ledger.violate(
                    .body, "a client got a malformed frame in request \(exchange.number): \(reason)")
            case .data(let bytes): simulation.ledger.passed(bytes, of: exchange.down, exchange, "to its client")
            case .control(WebSocketWriter.close, let payload):
                if !hasClosed, let stream {
                    session.append(writer.frame(WebSocketWriter.close, Array(payload.prefix(2))), to: stream)
                    session.end(stream)
                }
                hasClosed = true
            case .control(WebSocketWriter.ping, let payload):
                if !hasClosed, let stream { session.append(writer.frame(WebSocketWriter.pong, payload), to: stream) }
            case .control: break
            }
        }
    }

    private func close() {
        hasClosed = true
        finish()
        simulation.machine.after(1_000_000) { [peer] in if !peer.hasEnded { peer.close() } }
    }

    private func finish() {
        guard exchange.state == .sent else { return }
        hasClosed = true
        simulation.ledger.finished(exchange)
    }
}

/// WebSockets over HTTP/2, tunnels of a certain age, and gRPC.
extension Explorer {
    private func tunnel(_ path: String, _ next: @escaping Next, _ open: (Exchange, Gateway) -> Void) {
        guard let session = living, let token = session.access.last?.token else { return client.login(next) }
        let gateway = gateway
        let exchange = simulation.ledger.open(
            gateway: gateway, method: "GET", path: path, proof: .session(session), needsProof: true)
        exchange.sent = ["Authorization: Bearer \(token)"]
        if path == "/ws/aged/" {
            exchange.done = { [self] exchange in
                // The client may have been deaf for a while.
                let most = Int64(Plan.age + 6) * 1_000_000_000
                if exchange.headAt > 0, exchange.head?.status != 502, simulation.machine.now > exchange.headAt + most {
                    simulation.ledger.violate(
                        .bounds,
                        "the tunnel of request \(exchange.number) was open for \((simulation.machine.now - exchange.headAt) / 1_000_000) ms"
                    )
                }
            }
        }
        open(exchange, gateway)
        next(nil)
    }

    func openStream(_ next: @escaping Next) {
        tunnel(client.random.pick(["/ws/", "/ws/aged/"]), next) { exchange, gateway in
            _ = StreamTunnel(
                simulation, exchange, to: gateway, from: Address(200 + client.index % 50, nextPort),
                client.random.next())
        }
    }

    func age(_ next: @escaping Next) {
        tunnel("/ws/aged/", next) { exchange, gateway in
            WebSocketClient(
                simulation, exchange, to: gateway, from: Address(200 + client.index % 50, nextPort),
                client.random.next()
            ).open(exchange.sent)
        }
    }

    /// A call of gRPC, which ends with a status in any case.
    func call(_ next: @escaping Next) {
        let (proof, fields) = client.random.chance(300) ? (.nothing, []) : proof
        let path = client.random.pick(["/calls/", "/sse/calls/", "/sse/calls/"])
        let type = client.random.pick(["application/grpc", "application/grpc+proto"])
        let gateway = gateway
        let exchange = simulation.ledger.open(
            gateway: gateway, method: "POST", path: path, proof: proof, needsProof: true)
        // An upstream that responds to a long call with an error sends back its message.
        let size = client.random.below(200)
        if path == "/calls/" { exchange.body = [0, 0, 0, 0, UInt8(size)] + (0..<size).map { UInt8($0) } }
        let connection = HTTP2Connection(
            simulation, gateway, from: Address(200 + client.index % 50, nextPort),
            SeededRandom(seed: client.random.next()))
        exchange.sent = ["call of \(path)"] + fields
        exchange.done = { [self] exchange in
            connection.close()
            checkCall(exchange)
        }
        connection.send(
            exchange, fields: fields + ["Content-Type: \(type)", "TE: trailers"], parts: [exchange.body], pauses: [],
            cut: nil)
        simulation.machine.after(Int64(client.random.within(100...20_000)) * 1_000_000) { connection.close() }
        next(nil)
    }

    private func checkCall(_ exchange: Exchange) {
        guard exchange.status != 0 else { return }
        let head = exchange.head?.value("grpc-status")
        if !exchange.isFromUpstream, exchange.status != 200 || head == nil {
            violate(.routing, exchange, "is a call, and got \(exchange.status) with status \(head ?? "none")")
        }
        guard let status = head ?? exchange.trailer.first(where: { $0.name == "grpc-status" })?.value else { return }
        switch exchange.proof {
        case .session(let session):
            let isOver =
                session.endAsked != nil || session.isUnsure || simulation.mayForget(session)
                || exchange.validUntil < simulation.machine.now + plan.skew + 2_000_000_000
            if status == "16", !isOver {
                violate(.outage, exchange, "has a living session, and got status 16")
            }
        default:
            if ["0", "5", "7", "12"].contains(status) {
                violate(.routing, exchange, "has no credential, and got status \(status)")
            }
        }
    }
}
