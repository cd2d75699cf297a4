import WorldMachine

/// What an upstream does for a WebSocket, or for a response that does not end.
final class UpstreamTunnel {
    private unowned let simulation: Simulation
    private let exchange: Exchange
    private let peer: Peer
    private var random: SeededRandom
    private var writer: WebSocketWriter
    private var reader = WebSocketReader(isServer: true)
    private let isHanging: () -> Int64
    private let down = Flow()
    private let end: Int64
    private var hasClosed = false
    /// What is left of a frame that was begun.
    private var rest: [UInt8] = []
    /// Sends bytes of a long response, or its end, in a protocol other than HTTP/1.
    var write: (([UInt8]?) -> Void)?
    /// Whether such a response has been given up.
    var isOver: () -> Bool = { false }

    init(
        _ simulation: Simulation, _ exchange: Exchange, _ peer: Peer, _ random: SeededRandom,
        isHanging: @escaping () -> Int64
    ) {
        self.simulation = simulation
        self.exchange = exchange
        self.peer = peer
        self.random = random
        self.isHanging = isHanging
        writer = WebSocketWriter(isClient: false, random: random)
        let now = simulation.machine.now
        end = max(
            exchange.lastsUntil,
            min(
                now + Int64(self.random.within(100...40_000)) * 1_000_000,
                max(now, simulation.plan.calm) + 5_000_000_000))
        exchange.down = down
    }

    // MARK: WebSockets

    func open() {
        var lines = ["Connection: Upgrade", "Upgrade: websocket", "X-World: \(exchange.number)"]
        let isRight = !random.chance(simulation.plan.rudeness)
        lines.append("Sec-WebSocket-Accept: \(isRight ? WebSocketWriter.accept : "c3pPLMBiTxaQ9kYGzzhZRbK+xOo=")")
        peer.send("HTTP/1.1 101 Switching Protocols\r\n\(lines.map { $0 + "\r\n" }.joined())\r\n")
    }

    func received(_ bytes: [UInt8]) {
        for piece in reader.read(bytes) {
            switch piece {
            case .invalid(let reason):
                return simulation.ledger.violate(
                    .body, "an upstream got a malformed frame in request \(exchange.number): \(reason)")
            case .data(let bytes):
                simulation.ledger.passed(bytes, of: exchange.up, exchange, "to its upstream")
                echo(bytes)
            case .control(WebSocketWriter.close, let payload):
                guard !peer.hasEnded else { return }
                if !hasClosed { send(writer.frame(WebSocketWriter.close, Array(payload.prefix(2)))) }
                hasClosed = true
                peer.finish()
            case .control(WebSocketWriter.ping, let payload):
                if !hasClosed, !peer.hasEnded { send(writer.frame(WebSocketWriter.pong, payload)) }
            case .control: break
            }
        }
    }

    private func echo(_ bytes: [UInt8]) {
        let delay = Int64(random.chance(100) ? random.within(1...900) : 0) * 1_000_000
        simulation.machine.at(max(isHanging(), simulation.machine.now + delay)) { [self] in
            guard !peer.hasEnded, !hasClosed else { return }
            if random.chance(simulation.plan.rudeness / 4) { return peer.abort() }
            down.send(bytes, at: simulation.machine.now)
            send(writer.message(bytes), isSlow: random.chance(150))
            if simulation.machine.now > end {
                hasClosed = true
                send(writer.closing(1000))
            }
        }
    }

    /// Sends frames, perhaps with a pause in the middle.
    private func send(_ bytes: [UInt8], isSlow: Bool = false) {
        let all = rest + bytes
        let first = isSlow ? rest.count + 1 + random.below(bytes.count) : all.count
        peer.send(Array(all.prefix(first)))
        rest = Array(all.dropFirst(first))
        guard !rest.isEmpty else { return }
        simulation.machine.after(Int64(random.within(100...3000)) * 1_000_000) { [self] in
            if !peer.hasEnded, !rest.isEmpty { send([]) }
        }
    }

    // MARK: Long responses

    func begin() {
        if write != nil { return tick(0) }
        peer.send(
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nX-World: \(exchange.number)\r\n"
                + "Transfer-Encoding: chunked\r\n\r\n")
        tick(0)
    }

    private func tick(_ count: Int) {
        let time = max(isHanging(), simulation.machine.now + Int64(random.within(20...1500)) * 1_000_000)
        simulation.machine.at(time) { [self] in
            guard !peer.hasEnded, !isOver() else { return }
            if random.chance(simulation.plan.rudeness / 4) { return peer.abort() }
            if simulation.machine.now > end {
                down.isEnded = true
                if let write { return write(nil) }
                return peer.send("0\r\n\r\n")
            }
            let size = random.chance(100) ? random.within(5000...20_000) : random.below(200)
            let event = Array("data: \(count)\(String(repeating: "=", count: size))\n\n".utf8)
            down.send(event, at: simulation.machine.now)
            if let write {
                write(event)
            } else {
                peer.send(Array((String(event.count, radix: 16) + "\r\n").utf8) + event + [13, 10])
            }
            tick(count + 1)
        }
    }
}
