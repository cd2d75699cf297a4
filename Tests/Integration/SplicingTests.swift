import Foundation
import MartletTesting
import Testing

/// Bodies long enough to be moved by the kernel alone: every promise about bodies holds for them, too.
@Suite struct `Long bodies` {
    private static let server = "workers: 1\nlimits: { body_bytes: 100MiB }"
    private static let echo: ScriptedUpstream.Script = { try $0.respond(200, bytes: $0.request.body) }

    private static func response(_ payload: [UInt8]) -> ScriptedUpstream.Script {
        { exchange in
            try exchange.send("HTTP/1.1 200 OK\r\nContent-Length: \(payload.count)\r\n\r\n")
            try exchange.socket.send(payload, within: .seconds(60))
        }
    }

    private func waitForNoExchange(_ gateway: Gateway) throws {
        try waitUntil("no exchange is open") {
            try gateway.askAdmin("/metrics").text.contains("martlet_proxy_exchanges_open 0\n")
        }
    }

    /// After whatever has happened: another long exchange goes well, and no pipe is kept that is not empty.
    private func expectHealth(_ gateway: Gateway, _ upstream: ScriptedUpstream) throws {
        try waitForNoExchange(gateway)
        upstream.respond(with: Self.echo)
        let payload = Payload.bytes(3 << 20, seed: 9)
        let response = try gateway.exchange("POST", "/health", body: payload)
        let isSame = response.body == payload
        #expect(isSame && response.end == .complete)
    }

    // MARK: Whole

    @Test(arguments: [65_535, 131_072, 262_145, 1 << 20, (5 << 20) + 7])
    func `bodies of any size come through and back, on one connection`(count: Int) throws {
        try withOpenGateway(server: Self.server, script: Self.echo) { gateway, upstream throws in
            let client = try gateway.connect()
            for seed in UInt64(1)...3 {
                let payload = Payload.bytes(count, seed: seed)
                let socket = client.socket
                let sent = Background {
                    try socket.send("PUT /a HTTP/1.1\r\nHost: a\r\nContent-Length: \(count)\r\n\r\n")
                    try socket.send(payload, within: .seconds(60))
                }
                let response = try client.response(within: .seconds(60))
                try sent.value()
                let isSame = response.body == payload && upstream.requests.last?.body == payload
                #expect(isSame && response.end == .complete && response["Content-Length"] == "\(count)")
            }
            try waitUntil("the log is written") { gateway.log.filter { $0["path"] == "/a" }.count == 3 }
            for line in gateway.log where line["path"] == "/a" {
                #expect(line["bytes_in"] == "\(count)" && line["bytes_out"] == "\(count)" && line["reason"] == "ok")
            }
        }
    }

    @Test func `requests right behind a long upload get their responses in order`() throws {
        try withOpenGateway(server: Self.server, script: Self.echo) { gateway, upstream throws in
            let bodies = [Payload.bytes(2 << 20), Payload.bytes(3), Payload.bytes((1 << 20) + 1, seed: 5), []]
            let client = try gateway.connect()
            let socket = client.socket
            let sent = Background {
                var bytes: [UInt8] = []
                for (index, body) in bodies.enumerated() {
                    bytes += "POST /\(index) HTTP/1.1\r\nHost: a\r\nContent-Length: \(body.count)\r\n\r\n".utf8
                    bytes += body
                }
                try socket.send(bytes, within: .seconds(60))
            }
            for (index, body) in bodies.enumerated() {
                let response = try client.response(within: .seconds(60))
                let isSame = response.body == body && upstream.requests[index].body == body
                #expect(isSame && upstream.requests[index].target == "/\(index)")
            }
            try sent.value()
        }
    }

    @Test func `no body is awaited where a length stands for another response's`() throws {
        let script: ScriptedUpstream.Script = { exchange in
            let status = exchange.request.method == "HEAD" ? "200 OK" : "304 Not Modified"
            try exchange.send("HTTP/1.1 \(status)\r\nContent-Length: 10000000\r\n\r\n")
        }
        try withOpenGateway(server: Self.server, script: script) { gateway, upstream throws in
            let client = try gateway.connect()
            for method in ["HEAD", "GET", "HEAD"] {
                try client.send(method, "/")
                let response = try client.response(to: method)
                #expect(response.body.isEmpty && response["Content-Length"] == "10000000")
            }
            try expectHealth(gateway, upstream)
        }
    }

    // MARK: Slow sides

    @Test func `a slow reader gets everything, out of a pipe`() throws {
        let payload = Payload.bytes(24 << 20)
        try withOpenGateway(server: Self.server, script: Self.response(payload)) { gateway, _ throws in
            let before = try gateway.pipes()
            let client = try HTTPClient(to: gateway.endpoint, receiveBuffer: 16_384)
            try client.send("GET", "/")
            try waitUntil("a pipe holds what the client does not take") { try gateway.pipes() > before }
            let response = try client.response(within: .seconds(60))
            let isSame = response.body == payload
            #expect(isSame && response.end == .complete)
        }
    }

    @Test func `a slow upstream gets everything, out of a pipe`() throws {
        let payload = Payload.bytes(24 << 20)
        let mayRead = Box(false)
        let script: ScriptedUpstream.Script = { exchange in
            while !mayRead.value { pause(.milliseconds(10)) }
            try exchange.readBody()
            let isSame = exchange.request.body == payload
            try exchange.respond(isSame ? 200 : 500, body: "read")
        }
        try withOpenGateway(server: Self.server, readsBodies: false, script: script) { gateway, _ throws in
            let before = try gateway.pipes()
            let client = try gateway.connect()
            let socket = client.socket
            try client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: \(payload.count)\r\n\r\n")
            let sent = Background { try socket.send(payload, within: .seconds(60)) }
            try waitUntil("a pipe holds what the upstream does not take") { try gateway.pipes() > before }
            mayRead.withLock { $0 = true }
            let response = try client.response(within: .seconds(60))
            try sent.value()
            #expect(response.status == 200 && response.text == "read")
        }
    }

    @Test func `a sender that is fast and slow by turns is heard to the end`() throws {
        let payload = Payload.bytes(4 << 20)
        let script: ScriptedUpstream.Script = { exchange in
            try exchange.send("HTTP/1.1 200 OK\r\nContent-Length: \(exchange.request.body.count)\r\n\r\n")
            try Self.sendInBursts(exchange.request.body, over: exchange.socket)
        }
        try withOpenGateway(server: Self.server, script: script) { gateway, upstream throws in
            let client = try gateway.connect()
            try client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: \(payload.count)\r\n\r\n")
            try Self.sendInBursts(payload, over: client.socket)
            let response = try client.response(within: .seconds(60))
            let isSame = response.body == payload && upstream.requests.last?.body == payload
            #expect(isSame && response.end == .complete)
        }
    }

    private static func sendInBursts(_ bytes: [UInt8], over socket: RawSocket) throws {
        var start = 0
        for size in [300_000, 1, 700_000, 5, 90_000, 65_536, 3, 1_500_000] {
            try socket.send(Array(bytes[start..<(start + size)]))
            start += size
            pause(.milliseconds(30))
        }
        try socket.send(Array(bytes[start...]))
    }

    // MARK: Ends

    @Test func `a client that resets in the middle of a response costs nothing more`() throws {
        try withOpenGateway(server: Self.server, script: Self.response(Payload.bytes(32 << 20))) { gateway, up throws in
            let before = try gateway.pipes()
            let client = try HTTPClient(to: gateway.endpoint, receiveBuffer: 16_384)
            try client.send("GET", "/cut")
            try waitUntil("a pipe is in use") { try gateway.pipes() > before }
            client.socket.reset()
            try expectHealth(gateway, up)
            try waitUntil("it is logged") { gateway.log.contains { $0["path"] == "/cut" } }
            #expect(gateway.log.first { $0["path"] == "/cut" }?["reason"] == "request.client_left")
        }
    }

    @Test func `a client that resets in the middle of a request is not taken for complete`() throws {
        let script: ScriptedUpstream.Script = { exchange in
            while try !exchange.socket.receive(within: .seconds(20)).isEmpty {}
            exchange.closes = true
        }
        try withOpenGateway(server: Self.server, readsBodies: false, script: script) { gateway, upstream throws in
            let client = try gateway.connect()
            try client.send("POST /cut HTTP/1.1\r\nHost: a\r\nContent-Length: 90000000\r\n\r\n")
            try client.socket.send(Payload.bytes(8 << 20))
            client.socket.reset()
            try waitUntil("it is logged") { gateway.log.contains { $0["path"] == "/cut" } }
            let line = gateway.log.first { $0["path"] == "/cut" }
            #expect(line?["reason"] == "request.client_left" && line?["status"] == "499")
        }
    }

    @Test(arguments: [true, false])
    func `an upstream that breaks off in the middle of a response is seen to`(isReset: Bool) throws {
        let script: ScriptedUpstream.Script = { exchange in
            try exchange.send("HTTP/1.1 200 OK\r\nContent-Length: 9000000\r\n\r\n")
            try exchange.send(Payload.bytes(5 << 20))
            exchange.closes = true
            if isReset { exchange.socket.reset() }
        }
        try withOpenGateway(server: Self.server, script: script) { gateway, upstream throws in
            let client = try gateway.connect()
            try client.send("GET", "/cut")
            // However much of it came: it does not look whole.
            if let response = try? client.response() { #expect(response.status == 200 && response.end == .truncated) }
            try expectHealth(gateway, upstream)
            try waitUntil("it is logged") { gateway.log.contains { $0["path"] == "/cut" } }
            let reason = gateway.log.first { $0["path"] == "/cut" }?["reason"]
            #expect(["upstream.truncated", "upstream.reset"].contains(reason))
        }
    }

    @Test(arguments: [true, false])
    func `an upstream that breaks off in the middle of a request is a 502`(isReset: Bool) throws {
        let script: ScriptedUpstream.Script = { exchange in
            var count = 0
            while count < 3 << 20 { count += try exchange.socket.receive().count }
            exchange.closes = true
            if isReset { exchange.socket.reset() }
        }
        try withOpenGateway(server: Self.server, readsBodies: false, script: script) { gateway, _ throws in
            let client = try gateway.connect()
            let socket = client.socket
            try client.send("POST /cut HTTP/1.1\r\nHost: a\r\nContent-Length: 90000000\r\n\r\n")
            let sent = Background { try? socket.send(Payload.bytes(64 << 20), within: .seconds(5)) }
            expectRejection(try client.response(), 502, "upstream_unavailable")
            _ = try sent.value()
            try waitForNoExchange(gateway)
        }
    }

    @Test func `a response that comes before the end of a long request reaches its client`() throws {
        let script: ScriptedUpstream.Script = { exchange in
            var count = 0
            while count < 2 << 20 { count += try exchange.socket.receive().count }
            try exchange.respond(413, [("Connection", "close")], body: "too much")
            while try !exchange.socket.receive(within: .seconds(20)).isEmpty {}
            exchange.closes = true
        }
        try withOpenGateway(server: Self.server, readsBodies: false, script: script) { gateway, _ throws in
            let client = try gateway.connect()
            let socket = client.socket
            try client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 90000000\r\n\r\n")
            let sent = Background { try? socket.send(Payload.bytes(4 << 20), within: .seconds(5)) }
            let response = try client.response()
            #expect(response.status == 413 && response.text == "too much")
            _ = try sent.value()
            try waitForNoExchange(gateway)
        }
    }

    // MARK: Deadlines

    @Test func `a client that takes no more of a long response is not waited for`() throws {
        let server = Self.server + "\ntimeouts: { body_idle: 1s }"
        let script = Self.response(Payload.bytes(64 << 20))
        try withOpenGateway(server: server, script: script) { gateway, upstream throws in
            let client = try HTTPClient(to: gateway.endpoint, receiveBuffer: 16_384)
            try client.send("GET", "/")
            _ = try client.reader.readHead()
            try expectHealth(gateway, upstream)
        }
    }

    @Test func `a client that sends no more of a long request is not waited for`() throws {
        let server = Self.server + "\ntimeouts: { body_idle: 1s }"
        try withOpenGateway(server: server, script: Self.echo) { gateway, upstream throws in
            let client = try gateway.connect()
            try client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 90000000\r\n\r\n")
            try client.socket.send(Payload.bytes(4 << 20))
            #expect(try client.response().status == 408)
            try expectHealth(gateway, upstream)
        }
    }

    @Test func `an upstream that takes no more of a long request is not waited for`() throws {
        let script: ScriptedUpstream.Script = { exchange in
            pause(.seconds(4))
            _ = exchange.waitForEnd()
        }
        let timeouts = "timeouts: { idle: 1s }"
        try withOpenGateway(
            server: Self.server, upstream: timeouts, readsBodies: false, script: script
        ) { gateway, _ throws in
            let client = try gateway.connect()
            let socket = client.socket
            try client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 90000000\r\n\r\n")
            let sent = Background { try? socket.send(Payload.bytes(64 << 20), within: .seconds(3)) }
            expectRejection(try client.response(), 504, "upstream_timeout")
            _ = try sent.value()
            try waitForNoExchange(gateway)
        }
    }

    @Test func `a drain lets a long response finish`() throws {
        let payload = Payload.bytes(24 << 20)
        try withOpenGateway(server: Self.server, script: Self.response(payload)) { gateway, _ throws in
            let client = try HTTPClient(to: gateway.endpoint, receiveBuffer: 16_384)
            try client.send("GET", "/")
            pause(.milliseconds(200))
            gateway.process.kill(SIGTERM)
            let response = try client.response(within: .seconds(60))
            let isSame = response.body == payload
            #expect(isSame && response.end == .complete)
            // A second signal would end it immediately.
            #expect(try gateway.process.wait() == .exited(0))
        }
    }
}

extension Gateway {
    /// Ends of pipes that the process has open.
    fileprivate func pipes() throws -> Int {
        let folder = "/proc/\(process.identifier)/fd"
        let names = try FileManager.default.contentsOfDirectory(atPath: folder)
        let targets = names.map { try? FileManager.default.destinationOfSymbolicLink(atPath: "\(folder)/\($0)") }
        return targets.filter { $0?.hasPrefix("pipe:") == true }.count
    }
}
