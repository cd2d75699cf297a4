import WorldMachine

/// A server behind the gateways: it echoes, and is at times what servers are at times.
final class Upstream {
    unowned let simulation: Simulation
    let address: Address
    private var random: SeededRandom
    private var peers: [Peer] = []
    /// Those that speak HTTP/1.
    private(set) var open: [(peer: Peer, connection: UpstreamConnection)] = []
    private var connections = 0
    /// Until when it accepts no connections, and sends nothing.
    var deadUntil: Int64 = 0
    var hangsUntil: Int64 = 0

    init(_ simulation: Simulation, _ index: Int) {
        self.simulation = simulation
        address = Address(100 + index, 80)
        random = SeededRandom(seed: simulation.plan.seed &+ UInt64(index), part: "upstream")
        listen()
    }

    func listen() {
        simulation.machine.network.services[address] = { [unowned self] in accept($0) }
        simulation.machine.network.services[streams] = { [unowned self] in acceptStreams($0) }
    }

    /// Is gone for a time: connections break, and new ones are refused.
    func die(for time: Int64) {
        simulation.machine.network.services[address] = nil
        simulation.machine.network.services[streams] = nil
        for peer in peers { peer.abort() }
        peers.removeAll()
        open.removeAll()
        simulation.machine.after(time) { [unowned self] in listen() }
    }

    /// Where it speaks HTTP/2.
    private var streams: Address { Address(host: address.host, port: 81) }

    private func acceptStreams(_ stream: Stream) {
        let peer = Peer(stream)
        peers.append(peer)
        let connection = UpstreamStreams(simulation, peer, SeededRandom(seed: random.next()))
        connection.isHanging = { [unowned self] in simulation.machine.now < hangsUntil ? hangsUntil : 0 }
        peer.received = { connection.received($0) }
        peer.ended = { [unowned self, unowned peer] _ in peers.removeAll { $0 === peer } }
        peer.stream.watcher?(stream)
    }

    private func accept(_ stream: Stream) {
        let peer = Peer(stream)
        peers.append(peer)
        let connection = UpstreamConnection(simulation, peer, SeededRandom(seed: random.next()))
        open.append((peer, connection))
        connection.isHanging = { [unowned self] in simulation.machine.now < hangsUntil ? hangsUntil : 0 }
        peer.received = { connection.received($0) }
        peer.ended = { [unowned self, unowned peer] _ in
            peers.removeAll { $0 === peer }
            open.removeAll { $0.peer === peer }
        }
        peer.stream.watcher?(stream)
    }
}

/// One connection to an upstream.
final class UpstreamConnection {
    unowned let simulation: Simulation
    let peer: Peer
    var random: SeededRandom
    private var reader = MessageReader(isResponse: false)
    private var exchange: Exchange?
    private var head: MessageHead?
    private var body: [UInt8] = []
    private var tunnel: UpstreamTunnel?
    private var hasResponded = false
    /// When it had sent its last response; `nil` while it has a request.
    private var idleSince: Int64?
    var isHanging: () -> Int64 = { 0 }

    init(_ simulation: Simulation, _ peer: Peer, _ random: SeededRandom) {
        self.simulation = simulation
        self.peer = peer
        self.random = random
    }

    /// The port of the gateway.
    var port: UInt16 { peer.stream.remote.port }

    /// Whether it is a gateway's, and was not used since a time.
    func isIdle(from host: UInt32, since time: Int64) -> Bool {
        guard let idleSince, let exchange, peer.stream.remote.host == host, !peer.hasEnded, peer.unsent == 0,
            !exchange.path.hasPrefix("/ws/"), exchange.state != .sent
        else { return false }
        return max(idleSince, exchange.finishedAt) < time
    }

    func received(_ bytes: [UInt8]) {
        if let tunnel { return tunnel.received(bytes) }
        for piece in reader.read(bytes) {
            switch piece {
            case .head(let head): begin(head)
            case .body(let part):
                if let exchange { simulation.ledger.checkBody(part, at: body.count, of: exchange) }
                body += part
            case .end(let trailer):
                if let exchange {
                    simulation.ledger.checkTrailer(trailer, of: exchange)
                    simulation.ledger.checkBodyEnd(body.count, of: exchange)
                }
                if !hasResponded { respond() }
            case .invalid(let reason):
                simulation.ledger.violate(.oneResponse, "an upstream got a malformed request: \(reason)")
            }
        }
    }

    private func begin(_ head: MessageHead) {
        self.head = head
        body = []
        hasResponded = false
        idleSince = nil
        exchange = simulation.ledger.seen(head)
        if head.value("expect") != nil, random.chance(500) { peer.send("HTTP/1.1 100 Continue\r\n\r\n") }
        // Some respond, or leave, before they have read the body.
        if let exchange, exchange.isEarly, random.chance(700) {
            hasResponded = true
            return respondEarly(to: exchange)
        }
        if random.chance(simulation.plan.rudeness) { peer.abort() }
    }

    private func respond() {
        guard let head, let exchange else { return }
        let (body, isHead) = (self.body, head.method == "HEAD")
        var delay = random.chance(simulation.plan.slowness) ? random.within(100...4000) : random.within(0...20)
        delay += exchange.slowness(&random)
        if exchange.path.hasPrefix("/ws/") || exchange.path.hasPrefix("/sse/") {
            if !random.chance(simulation.plan.failures) { return beginLong(exchange, after: delay) }
            exchange.down = Flow()
            exchange.down.isEnded = true
        }
        let isWrong = !isHead && random.chance(simulation.plan.rudeness / 3)
        let response =
            isWrong ? malformed(exchange, echoing: body) : makeResponse(exchange, echoing: body, isHead: isHead)
        let hanging = isHanging()
        simulation.machine.at(max(hanging, simulation.machine.now + Int64(delay) * 1_000_000)) { [self] in
            send(response, of: exchange, isWrong: isWrong)
        }
    }

    private func beginLong(_ exchange: Exchange, after delay: Int) {
        let long = UpstreamTunnel(
            simulation, exchange, peer, SeededRandom(seed: random.next()), isHanging: isHanging)
        let isTunnel = exchange.path.hasPrefix("/ws/")
        if isTunnel { tunnel = long }
        simulation.machine.at(max(isHanging(), simulation.machine.now + Int64(delay) * 1_000_000)) { [peer] in
            guard !peer.hasEnded else { return }
            if isTunnel { long.open() } else { long.begin() }
        }
    }

    private func makeResponse(_ exchange: Exchange, echoing body: [UInt8], isHead: Bool) -> [[UInt8]] {
        var lines = ["X-World: \(exchange.number)"]
        if random.chance(200) { lines.append("Set-Cookie: a=b") }
        var parts: [[UInt8]] = []
        if random.chance(60) { parts.append(Array("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n".utf8)) }
        let status =
            random.chance(simulation.plan.failures)
            ? random.pick(["500 Internal Server Error", "503 Service Unavailable", "404 Not Found"]) : "200 OK"
        if exchange.path.hasPrefix("/pub/whole/") {
            lines.append("Content-Length: \(body.count)")
            return [Array("HTTP/1.1 \(status)\r\n\(lines.joined(separator: "\r\n"))\r\n\r\n".utf8) + body]
        }
        switch random.below(10) {
        case 0 where !isHead:
            // Its end is that of the connection.
            lines.append("Connection: close")
            parts.append(Array("HTTP/1.1 \(status)\r\n\(lines.joined(separator: "\r\n"))\r\n\r\n".utf8))
            parts.append(body)
            parts.append([])
        case 1, 2, 3:
            lines.append("Transfer-Encoding: chunked")
            parts.append(Array("HTTP/1.1 \(status)\r\n\(lines.joined(separator: "\r\n"))\r\n\r\n".utf8))
            if !isHead { parts.append(contentsOf: chunks(body)) }
        default:
            lines.append("Content-Length: \(body.count)")
            parts.append(Array("HTTP/1.1 \(status)\r\n\(lines.joined(separator: "\r\n"))\r\n\r\n".utf8))
            if !isHead, !body.isEmpty { parts.append(body) }
        }
        return parts
    }

    private func chunks(_ body: [UInt8]) -> [[UInt8]] {
        var parts: [[UInt8]] = []
        var rest = body[...]
        while !rest.isEmpty {
            let size = min(rest.count, 1 + random.below(4000))
            parts.append(Array((String(size, radix: 16) + "\r\n").utf8) + rest.prefix(size) + [13, 10])
            rest = rest.dropFirst(size)
        }
        return parts + [Array("0\r\n\r\n".utf8)]
    }

    /// Sends the parts of a response, perhaps with pauses, perhaps not all of them.
    private func send(_ parts: [[UInt8]], of exchange: Exchange, isWrong: Bool) {
        guard !peer.hasEnded else { return }
        // A body that ends with its connection would look whole.
        let isOrderly = parts.last?.isEmpty == false && random.chance(500)
        let cut = random.chance(simulation.plan.rudeness) ? random.below(parts.count) : parts.count
        var time = simulation.machine.now
        for (index, part) in parts.enumerated() {
            if random.chance(50) { time += Int64(random.within(1...800)) * 1_000_000 }
            if isWrong, index > 0 { time += 30_000_000 }
            let isLast = index == parts.count - 1
            simulation.machine.at(time) { [self] in
                guard !peer.hasEnded else { return }
                simulation.machine.trace.note(
                    "upstream \(peer.stream.local) sends part \(index) of \(parts.count), \(part.count) bytes, cut at \(cut)"
                )
                if isLast { exchange.respondedAt = simulation.machine.now }
                if index >= cut { return isOrderly ? peer.finish() : peer.abort() }
                if isLast, !isWrong { exchange.wholeAt = simulation.machine.now }
                if part.isEmpty, isLast { return peer.finish() }
                peer.send(isLast && random.chance(simulation.plan.rudeness / 3) ? part + blurting() : part)
                if isLast { idleSince = simulation.machine.now }
                // Some close a connection that the gateway may use again.
                if isLast, random.chance(simulation.plan.rudeness) { peer.finish() }
            }
        }
    }
}

extension Ledger {
    /// An upstream has got a part of a body.
    func checkBody(_ part: [UInt8], at offset: Int, of exchange: Exchange) {
        if !exchange.sends(part, at: offset) {
            violate(.body, "an upstream got other bytes of request \(exchange.number) than it sends, from \(offset) on")
        }
    }

    /// An upstream has got a body to its end.
    func checkBodyEnd(_ count: Int, of exchange: Exchange) {
        guard count != exchange.body.count || !exchange.isWhole else { return }
        violate(
            .body,
            "an upstream got \(count) bytes of request \(exchange.number) as if they were all, of \(exchange.body.count)"
                + (exchange.isWhole ? "" : ", which its client did not send to the end"))
    }

    /// Trailers carry no identity.
    func checkTrailer(_ fields: [(name: String, value: String)], of exchange: Exchange) {
        for field in fields where field.name.lowercased().filter({ $0.isLetter || $0.isNumber }).hasPrefix("xuser") {
            violate(
                .clientHeader, "an upstream got the trailer \(field.name): \(field.value) in request \(exchange.number)"
            )
        }
    }
}
