import WorldMachine

/// What upstreams do that a gateway has to keep from its clients.
extension UpstreamConnection {
    /// Responds before the body has come, as to a request that is not allowed.
    func respondEarly(to exchange: Exchange) {
        simulation.machine.after(Int64(random.within(0...30)) * 1_000_000) { [self] in
            guard !peer.hasEnded else { return }
            exchange.respondedAt = simulation.machine.now
            peer.send("HTTP/1.1 413 Content Too Large\r\nX-World: \(exchange.number)\r\nContent-Length: 0\r\n\r\n")
        }
    }

    /// A response that was not asked for, in one piece with one that was.
    func blurting() -> [UInt8] {
        let arrival = simulation.machine.now + 500_000_000
        return Array("HTTP/1.1 200 OK\r\nConnection: close\r\nX-Blurt: \(arrival)\r\nContent-Length: 0\r\n\r\n".utf8)
    }

    /// Sends a response that was not asked for, to an idle connection.
    func blurt() {
        guard !peer.hasEnded, peer.unsent == 0 else { return }
        // Its time of arrival tells whether a gateway could know.
        peer.send("HTTP/1.1 200 OK\r\nConnection: close\r\nX-Blurt: ")
        let arrival = String(peer.stream.lastArrival)
        peer.send(arrival + "\r\nContent-Length: 0\r\n\r\n")
        simulation.machine.after(200_000_000) { [peer] in if !peer.hasEnded { peer.finish() } }
    }

    /// What is no response, in the pieces in which it is sent.
    func malformed(_ exchange: Exchange, echoing body: [UInt8]) -> [[UInt8]] {
        let head = "HTTP/1.1 200 OK\r\nX-World: \(exchange.number)\r\n"
        if !body.isEmpty, random.chance(500) {
            // The second chunk is none.
            let part = body.prefix(1 + random.below(min(body.count, 4000)))
            let size = Array((String(part.count, radix: 16) + "\r\n").utf8)
            return [Array((head + "Transfer-Encoding: chunked\r\n\r\n").utf8), size + part + Array("\r\nzz\r\n".utf8)]
        }
        let text = random.pick([
            head + "Transfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n0\r\n\r\n",
            head + "Content-Length: 1\r\nContent-Length: 2\r\n\r\nab",
            "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/9 200 OK\r\n\r\n",
            head + "Content-Length: x\r\n\r\n",
        ])
        return [Array(text.utf8)]
    }
}

extension Upstream {
    /// Whether a gateway has a connection that was idle since a time.
    func hasIdle(from host: UInt32, since time: Int64) -> Bool {
        open.contains { $0.connection.isIdle(from: host, since: time) }
    }

    /// Sends responses that were not asked for on all idle connections.
    func blurt(to host: UInt32) {
        for (_, connection) in open
        where connection.isIdle(from: host, since: simulation.machine.now - 20_000_000) { connection.blurt() }
    }
}

extension Carrier {
    /// A response has come that was sent before its request: the gateway knew it before, or it could not know.
    func checkBlurt(_ arrival: Int64, _ exchange: Exchange) {
        let isKnown =
            exchange.sentAt > arrival + 50_000_000 || exchange.arrivesAt.map { $0 > arrival } ?? false
        guard isKnown else { return }
        simulation.ledger.violate(
            .oneResponse,
            "request \(exchange.number) of \(exchange.sentAt), at its gateway at \(exchange.arrivesAt ?? 0), got a response "
                + "that was there at \(arrival)")
    }
}

extension Client {
    /// Requests on idle connections, at the moment at which upstreams send what was not asked for.
    func meetBlurts(_ next: @escaping (Exchange?) -> Void) {
        let gateways = simulation.gateways
        let gateway = gateways[random.below(gateways.count)]
        let connections = (0..<5).map { _ in
            lastPort += 1
            return ClientConnection(simulation, gateway, from: Address(200 + index % 50, lastPort))
        }
        ask(connections) { [self] in
            simulation.machine.after(200_000_000) { [self] in
                let host = gateway.process.host
                for upstream in simulation.upstreams { upstream.blurt(to: host) }
                ask(connections) {
                    for connection in connections { connection.close() }
                    next(nil)
                }
            }
        }
    }

    private func ask(_ connections: [ClientConnection], _ done: @escaping () -> Void) {
        var left = 1
        let one = {
            left -= 1
            if left == 0 { done() }
        }
        for connection in connections where connection.isUsable {
            left += 1
            let exchange = simulation.ledger.open(
                gateway: connection.gateway, method: "GET", path: "/pub/", proof: .nothing, needsProof: false)
            exchange.done = { _ in one() }
            connection.send(exchange, fields: [], parts: [], pauses: [], cut: nil)
        }
        simulation.machine.after(0, one)
    }
}
