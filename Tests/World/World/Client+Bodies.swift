import WorldMachine

extension Client {
    /// What clients do more rarely.
    func special(_ next: @escaping (Exchange?) -> Void) {
        let traffic = simulation.plan.traffic
        switch random.below(12) {
        case 0, 1: tellAhead(next)
        case 2 where traffic.allowsSlowBodies: stall(next)
        case 2, 3: goOnAfterClose(next)
        case 4 where traffic.hasGreedyClients:
            random.chance(simulation.plan.hasHTTP2Upstreams ? 0 : 500) ? pipelineDeaf(next) : takeSlowly(next)
        case 5 where random.chance(300): holdHead(next)
        case 6 where !simulation.plan.hasHTTP2Upstreams: meetBlurts(next)
        case 7, 8: endTwice(next)
        case 9, 10: session.map { refreshTwice($0, next) } ?? visit("/gone/", next)
        case 11 where AppSignIn.isPossible(simulation): AppSignIn(self).begin(next)
        default: random.chance(300) ? changeBetween(next) : visit(random.pick(["/early/", "/gone/"]), next)
        }
    }

    private func newConnection() -> ClientConnection {
        let gateways = simulation.gateways
        lastPort += 1
        return ClientConnection(
            simulation, gateways[random.below(gateways.count)], from: Address(200 + index % 50, lastPort))
    }

    private func open(
        _ method: String, _ path: String, on connection: ClientConnection, body: [UInt8] = [],
        _ done: @escaping (Exchange) -> Void
    ) -> Exchange {
        let exchange = simulation.ledger.open(
            gateway: connection.gateway, method: method, path: path, proof: .nothing, needsProof: false)
        exchange.body = body
        exchange.done = done
        return exchange
    }

    private func head(_ exchange: Exchange, _ fields: [String]) -> [UInt8] {
        let lines = ["\(exchange.method) \(exchange.path) HTTP/1.1", "Host: api.example.com"] + fields
        return Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8)
    }

    private func bytes(_ count: Int) -> [UInt8] {
        let start = random.below(256)
        return (0..<count).map { UInt8(truncatingIfNeeded: start &+ $0 &* 31) }
    }

    /// Sends a body that reads like a request where it goes on after the response, which comes early.
    private func tellAhead(_ next: @escaping (Exchange?) -> Void) {
        let connection = newConnection()
        connection.retire()
        let behind = open("GET", "/pub/", on: connection) { _ in }
        behind.isMalformed = true
        let first = bytes(random.within(1...2000))
        let rest = head(behind, [])
        let exchange = open("POST", "/early/", on: connection, body: first + rest) { [self] exchange in
            // Whoever went on reading has read it by then.
            simulation.machine.after(100_000_000) {
                connection.close()
                next(exchange)
            }
        }
        exchange.mayLeave = true
        connection.send(
            exchange,
            [
                .bytes(head(exchange, ["Content-Length: \(first.count + rest.count)"]) + first),
                .invitation(exchange, most: 2_000_000_000), .bytes(rest),
            ])
    }

    /// Stops in the middle of a body, and never goes on.
    private func stall(_ next: @escaping (Exchange?) -> Void) {
        let connection = newConnection()
        connection.retire()
        let body = bytes(random.within(2...3000))
        let path = random.pick(["/pub/", "/auth/revoke"])
        let exchange = open("POST", path, on: connection, body: body) { exchange in
            connection.close()
            next(exchange)
        }
        exchange.isWhole = false
        let sent = body.prefix(random.below(body.count))
        connection.send(exchange, [.bytes(head(exchange, ["Content-Length: \(body.count)"]) + sent)])
    }

    /// Another request behind one that closes the connection, while its response waits.
    private func goOnAfterClose(_ next: @escaping (Exchange?) -> Void) {
        let connection = newConnection()
        connection.retire()
        var left = 2
        let done: (Exchange) -> Void = { exchange in
            left -= 1
            guard left == 0 else { return }
            connection.close()
            next(exchange)
        }
        let isLarge = simulation.plan.weather.capacity < 100_000
        let body = bytes(isLarge ? simulation.plan.weather.capacity + random.within(5000...90_000) : 3000)
        let first = open("PUT", "/pub/", on: connection, body: body, done)
        let behind = open("GET", "/pub/", on: connection, done)
        behind.isMalformed = true
        behind.sent = ["behind Connection: close"]
        connection.pause(for: 1_500_000_000)
        connection.send(first, [.bytes(head(first, ["Content-Length: \(body.count)", "Connection: close"]) + body)])
        connection.send(behind, [.bytes(head(behind, []))])
    }

    /// Sends many requests without taking responses: the gateway must not take all of them.
    private func pipelineDeaf(_ next: @escaping (Exchange?) -> Void) {
        let connection = newConnection()
        connection.retire()
        let capacity = simulation.plan.weather.capacity
        let size = 30_000
        let count = (400_000 + capacity) / size + 4
        var left = count
        connection.pause(for: 5_000_000_000)
        let all = (0..<count).map { _ in
            open("PUT", "/pub/whole/", on: connection, body: bytes(size)) { exchange in
                left -= 1
                guard left == 0 else { return }
                connection.close()
                next(exchange)
            }
        }
        for exchange in all {
            connection.send(exchange, [.bytes(head(exchange, ["Content-Length: \(size)"]) + exchange.body)])
        }
        simulation.machine.after(4_900_000_000) { [self] in
            let begun = all.count { $0.wholeAt > 0 } * size
            // What fills connections and pipes, what may wait, and the responses at both ends of it.
            let most = capacity + 256 * 1024 + 4 * size
            guard begun > most else { return }
            simulation.ledger.violate(
                .bounds,
                "responses of \(begun) bytes were taken for one connection whose client takes none, of \(most)")
        }
    }

    /// Takes a large response with pauses.
    func takeSlowly(_ next: @escaping (Exchange?) -> Void) {
        let connection = newConnection()
        connection.retire()
        // Some end when as much waits for the client as may.
        let most = simulation.plan.weather.capacity + 256 * 1024
        let body = bytes(random.chance(500) ? most + random.within(1...64_000) : random.within(450_000...700_000))
        var left = 2
        let done: (Exchange) -> Void = { exchange in
            left -= 1
            guard left == 0 else { return }
            connection.close()
            next(exchange)
        }
        let first = open("PUT", "/pub/", on: connection, body: body, done)
        let second = open("GET", "/pub/", on: connection, done)
        connection.send(first, [.bytes(head(first, ["Content-Length: \(body.count)"]) + body)])
        connection.send(second, [.bytes(head(second, []))])
        for index in 0..<6 {
            simulation.machine.after(Int64(index) * 600_000_000 + 50_000_000) { connection.pause(for: 500_000_000) }
        }
    }

    /// Requests before a change of the configuration, and others after it, each on a connection of its own.
    private func changeBetween(_ next: @escaping (Exchange?) -> Void) {
        let gateway = simulation.gateways[random.below(simulation.gateways.count)]
        let isNarrow = random.chance(500)
        let count = isNarrow ? simulation.plan.concurrency : 6
        var left = count * 2
        let send = { [self] (isFirst: Bool) in
            for _ in 0..<count {
                lastPort += 1
                let connection = ClientConnection(simulation, gateway, from: Address(200 + index % 50, lastPort))
                let path = isNarrow ? "/narrow/" : isFirst ? "/gone/" : "/auth/revoke"
                let body = Array("token=mat_\(String(repeating: "A", count: 75))".utf8)
                let exchange = open(isNarrow || isFirst ? "GET" : "POST", path, on: connection) { exchange in
                    connection.close()
                    left -= 1
                    if left == 0 { next(exchange) }
                }
                guard !isNarrow, !isFirst else {
                    connection.send(exchange, [.bytes(head(exchange, []))])
                    continue
                }
                exchange.body = body
                let fields = [
                    "Content-Type: application/x-www-form-urlencoded", "Transfer-Encoding: chunked", "Trailer: X-Sum",
                ]
                let size = String(body.count, radix: 16)
                let whole = head(exchange, fields) + Array("\(size)\r\n".utf8) + body
                connection.send(exchange, [.bytes(whole + Array("\r\n0\r\nX-Sum: 1\r\n\r\n".utf8))])
            }
        }
        send(true)
        simulation.machine.after(Int64(isNarrow ? random.within(1...60) : 700) * 1_000_000) { [self] in
            if isNarrow || gateway.variant % 2 == 0 { simulation.reload(gateway) }
            let (machine, time) = (simulation.machine, Int64(isNarrow ? random.within(10...200) : 900))
            machine.after(time * 1_000_000) { send(false) }
        }
    }

    /// Begins a head over HTTP/2, beside a request, and never ends it.
    private func holdHead(_ next: @escaping (Exchange?) -> Void) {
        let gateways = simulation.gateways
        lastPort += 1
        let holder = HeadHolder(
            simulation, gateways[random.below(gateways.count)], from: Address(200 + index % 50, lastPort))
        holder.done = { next(nil) }
        holder.begin()
    }
}

/// A client of HTTP/2 that sends its heads byte by byte, and does not close its connections.
final class HeadHolder {
    private let simulation: Simulation
    private let stream: Stream
    private let session = FrameSession(isServer: false, settings: [])
    private let began: Int64
    var done: () -> Void = {}

    init(_ simulation: Simulation, _ gateway: Gateway, from client: Address) {
        self.simulation = simulation
        began = simulation.machine.now
        stream = simulation.machine.network.connect(from: client, to: gateway.address) { _ in }
    }

    func begin() {
        simulation.machine.after(500_000_000) { [self] in
            guard stream.isConnected, !stream.isReset else { return end() }
            let head = [
                (":method", "GET"), (":scheme", "http"), (":authority", "api.example.com"), (":path", "/livez"),
            ]
            _ = session.request(head, hasBody: true)
            // The beginning of a head of 200 bytes on a later stream.
            let bytes = session.output() + [0, 0, 200, 1, 0, 0, 0, 0, 101, 0x82, 0x86]
            _ = stream.put(bytes[...])
            go()
        }
    }

    private func go() {
        simulation.machine.after(500_000_000) { [self] in
            _ = stream.take()
            if stream.isReset || stream.isRefused { return end() }
            if simulation.machine.now > began + 30_000_000_000 {
                if simulation.wasClear(from: began) {
                    simulation.ledger.violate(.served, "a client that never ended its head was kept for 30 s")
                }
                return end()
            }
            _ = stream.put([0x84])
            go()
        }
    }

    private func end() {
        stream.abort()
        done()
    }
}
