import WorldMachine

/// A client's WebSocket: it sends for a while, and gets back what it sent.
final class WebSocketClient {
    private unowned let simulation: Simulation
    private let exchange: Exchange
    private let peer: Peer
    private var random: SeededRandom
    private var writer: WebSocketWriter
    private var head = MessageReader(isResponse: true)
    private var reader = WebSocketReader(isServer: false)
    private var isOpen = false
    private var hasClosed = false
    private let end: Int64

    init(_ simulation: Simulation, _ exchange: Exchange, to gateway: Gateway, from address: Address, _ seed: UInt64) {
        self.simulation = simulation
        self.exchange = exchange
        random = SeededRandom(seed: seed)
        writer = WebSocketWriter(isClient: true, random: SeededRandom(seed: seed &+ 1))
        let time = Int64(random.within(100...40_000)) * 1_000_000
        end = simulation.machine.now + min(time, simulation.longest)
        peer = Peer.connect(simulation.machine, from: address, to: gateway.address)
        // It lives for as long as its connection does.
        peer.received = { self.received($0) }
        peer.ended = { _ in self.finish() }
    }

    func open(_ fields: [String]) {
        let lines =
            [
                "GET \(exchange.path) HTTP/1.1", "Host: api.example.com", "Connection: keep-alive, Upgrade",
                "Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: \(WebSocketWriter.key)",
            ] + fields
        peer.send(lines.map { $0 + "\r\n" }.joined() + "\r\n")
        // Some do not wait for the response.
        if random.chance(100) { sendMessage() }
        step()
    }

    private func step() {
        simulation.machine.after(Int64(random.within(1...1500)) * 1_000_000) { [self] in
            guard !peer.hasEnded, !hasClosed else { return }
            if simulation.machine.now >= end { return leave() }
            if isOpen {
                for _ in 0..<(random.chance(100) ? 5 : 1) { sendMessage() }
                if random.chance(20) {
                    peer.isDeaf = true
                    simulation.machine.after(Int64(random.within(10...3000)) * 1_000_000) { [peer] in
                        peer.isDeaf = false
                    }
                }
            }
            step()
        }
    }

    private func sendMessage() {
        let size = random.chance(80) ? random.within(60_000...80_000) : random.below(400)
        let start = random.below(256)
        let payload = (0..<size).map { UInt8(truncatingIfNeeded: start &+ $0 &* 7) }
        exchange.up.send(payload, at: simulation.machine.now)
        peer.send(writer.message(payload))
    }

    private func leave() {
        hasClosed = true
        switch random.below(5) {
        case 0:
            peer.abort()
            finish()
        case 1: peer.finish()
        case 2 where isOpen: peer.send(writer.violation())
        default: peer.send(isOpen ? writer.closing(1000) : [])
        }
        // Whatever the other side does.
        simulation.machine.after(5_000_000_000) { [self] in
            guard !peer.hasEnded else { return }
            peer.close()
            finish()
        }
    }

    private func received(_ bytes: [UInt8]) {
        guard !isOpen else { return read(bytes) }
        for piece in head.read(bytes) {
            switch piece {
            case .invalid(let reason):
                simulation.ledger.violate(.oneResponse, "a client got a malformed response: \(reason)")
            case .head(let head) where head.status / 100 == 1 && head.status != 101: break
            case .head(let head):
                exchange.head = head
                exchange.headAt = simulation.machine.now
                isOpen = head.status == 101
                if isOpen, head.value("sec-websocket-accept") != WebSocketWriter.accept {
                    simulation.ledger.violate(.oneResponse, "a WebSocket was opened with a wrong key")
                }
            case .body(let part): if isOpen { read(part) } else { exchange.responseBody += part }
            case .end:
                peer.close()
                finish()
            }
        }
    }

    private func read(_ bytes: [UInt8]) {
        for piece in reader.read(bytes) {
            switch piece {
            case .invalid(let reason):
                return simulation.ledger.violate(
                    .body, "a client got a malformed frame in request \(exchange.number): \(reason)")
            case .data(let bytes): simulation.ledger.passed(bytes, of: exchange.down, exchange, "to its client")
            case .control(WebSocketWriter.close, let payload):
                if !hasClosed { peer.send(writer.frame(WebSocketWriter.close, Array(payload.prefix(2)))) }
                hasClosed = true
                peer.finish()
            case .control(WebSocketWriter.ping, let payload):
                if !hasClosed { peer.send(writer.frame(WebSocketWriter.pong, payload)) }
            case .control: break
            }
        }
    }

    private func finish() {
        guard exchange.state == .sent else { return }
        hasClosed = true
        simulation.ledger.finished(exchange)
    }
}

extension Client {
    /// Opens a WebSocket, or a response that does not end, and goes on with other things.
    func long(_ session: Session, _ next: @escaping (Exchange?) -> Void) {
        let gateways = simulation.gateways
        let gateway = gateways[random.below(gateways.count)]
        let token = session.access[session.access.count - 1].token
        lastPort += 1
        let address = Address(200 + index % 50, lastPort)
        if random.chance(500) {
            let exchange = simulation.ledger.open(
                gateway: gateway, method: "GET", path: "/ws/", proof: .session(session), needsProof: true)
            exchange.sent = ["Authorization: Bearer \(token)"]
            WebSocketClient(simulation, exchange, to: gateway, from: address, random.next()).open(exchange.sent)
        } else {
            let connection = carrier(to: gateway, from: address)
            pinned = connection
            request(
                "GET", "/sse/", .session(session), needsProof: true, fields: ["Authorization: Bearer \(token)"]
            ) { _ in connection.close() }
            pinned = nil
            let time = Int64(random.within(100...40_000)) * 1_000_000
            simulation.machine.after(min(time, simulation.longest)) { connection.close() }
        }
        next(nil)
    }
}
