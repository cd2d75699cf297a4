import WorldMachine

/// A client's connection to a gateway over HTTP/1: requests go out in order, and responses have to come back in order.
final class ClientConnection {
    private unowned let simulation: Simulation
    let gateway: Gateway
    private let peer: Peer
    private var reader = MessageReader(isResponse: true)
    private var waiting: [Exchange] = []
    /// Called when the connection has ended.
    var ended: () -> Void = {}
    private(set) var isUsable = true

    init(_ simulation: Simulation, _ gateway: Gateway, from client: Address) {
        self.simulation = simulation
        self.gateway = gateway
        peer = Peer.connect(simulation.machine, from: client, to: gateway.address)
        peer.received = { [unowned self] in received($0) }
        peer.ended = { [unowned self] in ended(isBroken: $0) }
    }

    /// Sends a request.
    /// - Parameters:
    ///   - fields: lines of the head besides `Host`.
    ///   - pause: how long each part waits for the one before.
    ///   - cut: how many bytes are sent before the client leaves; `nil` for all.
    func send(_ exchange: Exchange, fields: [String], parts: [[UInt8]], pauses: [Int64], cut: Int?) {
        waiting.append(exchange)
        reader.headRequests.append(exchange.method == "HEAD")
        var head = "\(exchange.method) \(exchange.path) HTTP/1.1\r\nHost: api.example.com\r\n"
        for field in fields { head += field + "\r\n" }
        var all = [Array((head + "\r\n").utf8)] + parts
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
        var time = simulation.machine.now
        for (index, part) in all.enumerated() {
            if index < pauses.count { time += pauses[index] }
            let isLast = index == all.count - 1
            let act = { [weak self] in
                guard let self, !peer.hasEnded else { return }
                peer.send(part)
                if isLast, isCut { abort() }
            }
            if time == simulation.machine.now { act() } else { simulation.machine.at(time, act) }
        }
    }

    func finish() { peer.finish() }

    func pause(for time: Int64) {
        peer.isDeaf = true
        simulation.machine.after(time) { [weak peer] in peer?.isDeaf = false }
    }

    func abort() {
        guard !peer.hasEnded else { return }
        peer.abort()
        ended(isBroken: true)
    }

    func close() {
        guard !peer.hasEnded else { return }
        peer.close()
        ended(isBroken: false)
    }

    private func received(_ bytes: [UInt8]) {
        for piece in reader.read(bytes) {
            switch piece {
            case .invalid(let reason):
                simulation.ledger.violate(.oneResponse, "a client got a malformed response: \(reason)")
            case .head(let head): begin(head)
            case .body(let part):
                guard let exchange = waiting.first, exchange.head != nil else { return }
                checkBody(part, of: exchange)
                exchange.responseBody += part
            case .end:
                guard let exchange = waiting.first, exchange.head != nil else { continue }
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
        if head.status / 100 == 1, head.status != 101 { return }
        if let number = head.value("x-world"), number != String(exchange.number) {
            return simulation.ledger.violate(
                .oneResponse, "request \(exchange.number) got the response of request \(number)")
        }
        exchange.head = head
        if head.value("connection")?.lowercased() == "close" { isUsable = false }
    }

    /// An upstream's response has the bytes of its request.
    private func checkBody(_ part: [UInt8], of exchange: Exchange) {
        guard exchange.head?.value("x-world") != nil else { return }
        let sent = exchange.body.dropFirst(exchange.responseBody.count)
        if sent.count < part.count || !sent.prefix(part.count).elementsEqual(part) {
            simulation.ledger.violate(.body, "request \(exchange.number) got back other bytes than it sent")
        }
    }

    private func complete(_ exchange: Exchange) {
        exchange.isComplete = true
        if exchange.head?.value("x-world") != nil, exchange.method != "HEAD",
            exchange.responseBody.count != exchange.body.count
        {
            simulation.ledger.violate(
                .body,
                "request \(exchange.number) sent \(exchange.body.count) bytes, and got back \(exchange.responseBody.count) as if they were all"
            )
        }
        waiting.removeFirst()
        simulation.ledger.finished(exchange)
    }

    private func ended(isBroken: Bool) {
        isUsable = false
        if !isBroken, reader.endsMessage(), let exchange = waiting.first, exchange.head != nil { complete(exchange) }
        let left = waiting
        waiting.removeAll()
        for exchange in left { simulation.ledger.finished(exchange) }
        ended()
    }
}
