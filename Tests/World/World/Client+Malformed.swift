import WorldMachine

extension Client {
    /// A request that two readers could read differently, with another one behind it: 400 or a closed connection, and no
    /// upstream sees anything; or one that is too slow, 408.
    func malformed(_ next: @escaping (Exchange?) -> Void) {
        let gateways = simulation.gateways
        let gateway = gateways[random.below(gateways.count)]
        lastPort += 1
        let connection = ClientConnection(simulation, gateway, from: Address(200 + index % 50, lastPort))
        connection.retire()
        var left = 2
        func open(_ method: String) -> Exchange {
            let exchange = simulation.ledger.open(
                gateway: gateway, method: method, path: "/pub/", proof: .nothing, needsProof: false)
            exchange.done = { exchange in
                left -= 1
                guard left == 0 else { return }
                connection.close()
                next(exchange)
            }
            return exchange
        }
        if random.chance(200) {
            left = 1
            return connection.send(slow(open("GET")), slowSteps)
        }
        let (exchange, behind) = (open("POST"), open("GET"))
        behind.isMalformed = true
        let second = "GET \(behind.path) HTTP/1.1\r\nHost: api.example.com\r\n\r\n"
        var text: String
        if random.chance(250) {
            text = badBody(exchange)
        } else {
            exchange.isMalformed = true
            text = badHead(exchange, smuggling: second)
        }
        // A request that is announced as the body of the first must not be read as one, nor one behind it.
        exchange.sent = text.split(separator: "\r\n").map(String.init)
        behind.sent = exchange.sent
        text += second
        var steps: [Outbox.Step] = []
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            let part = rest.prefix(random.chance(700) ? rest.count : 1 + random.below(rest.count))
            rest = rest.dropFirst(part.count)
            steps += [.bytes(Array(part)), .pause(Int64(random.below(50)) * 1_000_000)]
        }
        connection.send(exchange, steps)
        connection.send(behind, [.finish])
    }

    private var slowSteps: [Outbox.Step] {
        Array("GET /pub/".utf8).flatMap { [.bytes([$0]), .pause(1_000_000_000)] } + [.pause(5_000_000_000)]
    }

    /// Its head never ends: the gateway has 10 s for it.
    private func slow(_ exchange: Exchange) -> Exchange {
        exchange.isMalformed = true
        exchange.sent = ["a byte a second"]
        let done = exchange.done
        let (machine, ledger, started) = (simulation.machine, simulation.ledger, simulation.machine.now)
        exchange.done = { exchange in
            // The network may have been cut meanwhile.
            if exchange.status == 408, machine.now < started + 9_900_000_000 {
                ledger?.violate(.oneResponse, "request \(exchange.number) got 408 too early")
            }
            done(exchange)
        }
        return exchange
    }

    private func badHead(_ exchange: Exchange, smuggling second: String) -> String {
        let path = exchange.path
        func head(_ fields: String..., line: String? = nil, host: String = "Host: api.example.com\r\n") -> String {
            (line ?? "POST \(path) HTTP/1.1") + "\r\n" + host + fields.map { $0 + "\r\n" }.joined() + "\r\n"
        }
        let length = "Content-Length: \(second.utf8.count)"
        switch random.below(26) {
        case 0: return head(length, "Content-Length: 0")
        case 1: return head(length, length)
        case 2: return head(length, "Transfer-Encoding: chunked") + "0\r\n\r\n"
        case 3: return head("Transfer-Encoding: chunked", length) + "0\r\n\r\n"
        case 4: return "POST \(path) HTTP/1.1\nHost: api.example.com\n\n"
        case 5: return head("X-A: 1\nX-B: 2")
        case 6: return head("Content-Length : 0")
        case 7: return head("X-A: 1", " folded", "Content-Length: 0")
        case 8: return head("Content-Length: 0", host: "")
        case 9: return head("Host: other.example.com", "Content-Length: 0")
        case 10: return head("Content-Length: 0", line: "POST http://other.example.com\(path) HTTP/1.1")
        case 11: return head("Transfer-Encoding: chunked, identity") + "0\r\n\r\n"
        case 12: return head("Transfer-Encoding: xchunked", length)
        case 13: return head("Transfer-Encoding: chunked", "Transfer-Encoding: chunked") + "0\r\n\r\n"
        case 14:
            let length = random.pick(["+0", "-1", "0x0", "0, 0", "0 0", "", "99999999999999999999"])
            return head("Content-Length: \(length)")
        case 15: return head("X-A: a\u{0}b", "Content-Length: 0")
        case 16: return head("X-A: a\rb", "Content-Length: 0")
        case 17: return head("X A: b", "Content-Length: 0")
        case 18: return head("Transfer-Encoding: chunked", line: "POST \(path) HTTP/1.0") + "0\r\n\r\n"
        case 19: return head("Expect: 200-ok", "Content-Length: 0")
        case 20: return head("Content-Length: 0", line: "POST  \(path) HTTP/1.1")
        case 21: return head("Content-Length: 0", line: "POST \(path) HTTP/1.2")
        case 22: return head("Content-Length: 0", line: "POST \(path) x HTTP/1.1")
        case 23: return head("Content-Length: 0", line: "POST \(path) http/1.1")
        case 24: return head("Transfer-Encoding:\u{b}chunked") + "0\r\n\r\n"
        default: return head(":authority: other.example.com", "Content-Length: 0")
        }
    }

    /// The head is right, so that an upstream may see it, but never a whole body.
    private func badBody(_ exchange: Exchange) -> String {
        exchange.isWhole = false
        exchange.body = Array("abcde".utf8)
        let body = random.pick([
            "5\nabcde\r\n0\r\n\r\n", "5 x\r\nabcde\r\n0\r\n\r\n", "g\r\nabcde\r\n0\r\n\r\n", "5\r\nabcde0\r\n\r\n",
            "5\r\nabcdef\r\n0\r\n\r\n", "FFFFFFFFFFFFFFFFF\r\nabcde\r\n0\r\n\r\n", "-5\r\nabcde\r\n0\r\n\r\n",
            "5\r\nabcde\r\n0\r\nbad trailer\r\n\r\n", "5\r\nabcde\r\n0\n\n", "5;a=\u{0}\r\nabcde\r\n0\r\n\r\n",
            "0x5\r\nabcde\r\n0\r\n\r\n", "\r\nabcde\r\n0\r\n\r\n",
        ])
        return "POST \(exchange.path) HTTP/1.1\r\nHost: api.example.com\r\nTransfer-Encoding: chunked\r\n\r\n\(body)"
    }
}
