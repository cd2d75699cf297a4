import MartletTesting
import Testing

/// Bounds on everything that a client can make grow.
@Suite struct `Limits` {
    @Test func `a head over its bytes is 431`() throws {
        try withOpenGateway(server: "limits: { header_bytes: 4KiB }") { gateway, upstream throws in
            #expect(try gateway.get("/", [("X-A", String(repeating: "a", count: 3000))]).status == 200)
            for fields in [
                [("X-A", String(repeating: "a", count: 5000))], [(String(repeating: "a", count: 5000), "x")],
            ] {
                let client = try gateway.connect()
                try client.send("GET", "/", fields)
                expectRejection(try client.response(), 431, "request_too_large")
                #expect(client.socket.isEnded(within: .seconds(2)))
            }
            #expect(upstream.requests.count == 1)
        }
    }

    @Test func `a head over its number of fields is 431`() throws {
        try withOpenGateway(server: "limits: { header_fields: 20 }") { gateway, upstream throws in
            #expect(try gateway.get("/", (0..<19).map { ("X-\($0)", "1") }).status == 200)
            expectRejection(try gateway.get("/", (0..<20).map { ("X-\($0)", "1") }), 431, "request_too_large")
            #expect(upstream.requests.count == 1)
        }
    }

    @Test func `an endless head is refused before it ends`() throws {
        try withOpenGateway { gateway, upstream throws in
            let client = try gateway.connect()
            try client.send("GET / HTTP/1.1\r\nHost: a\r\nX: " + String(repeating: "a", count: 40_000))
            expectRejection(try client.response(), 431, "request_too_large")
            let line = try gateway.connect()
            try line.send("GET /" + String(repeating: "a", count: 40_000))
            expectRejection(try line.response(), 414, "request_too_large")
            #expect(upstream.requests.isEmpty)
        }
    }

    @Test func `a body over its limit is 413, announced or not`() throws {
        try withOpenGateway(server: "limits: { body_bytes: 1KiB }") { gateway, upstream throws in
            #expect(try gateway.exchange("POST", "/", body: Payload.bytes(1024)).status == 200)
            expectRejection(try gateway.exchange("POST", "/", body: Payload.bytes(1025)), 413, "request_too_large")
            #expect(upstream.requests.count == 1)
            let client = try gateway.connect()
            try client.send("POST", "/", [("Transfer-Encoding", "chunked")])
            try client.send(Payload.chunked(Payload.bytes(1025), size: 100))
            expectRejection(try client.response(), 413, "request_too_large")
            #expect(client.socket.isEnded(within: .seconds(2)))
            try waitUntil("no request is left half open") {
                upstream.requests.dropFirst().allSatisfy { $0.end == .truncated }
            }
        }
    }

    @Test func `an announced body over its limit gets no 100 Continue`() throws {
        try withOpenGateway(server: "limits: { body_bytes: 1KiB }") { gateway, upstream throws in
            let client = try gateway.connect()
            try client.send("POST", "/", [("Expect", "100-continue"), ("Content-Length", "5000")])
            expectRejection(try client.response(), 413, "request_too_large")
            #expect(client.interim.isEmpty && upstream.requests.isEmpty)
        }
    }

    @Test func `a route may have its own limit, or none`() throws {
        let routes = """
            - { name: big, match: { path: /big }, auth: none, limits: { body_bytes: unlimited }, upstream: api }
            - { name: small, match: { path: /small }, auth: none, limits: { body_bytes: 10B }, upstream: api }
            """
        try withOpenGateway(server: "limits: { body_bytes: 1KiB }", routes: routes) { gateway, _ throws in
            #expect(try gateway.exchange("POST", "/big", body: Payload.bytes(100_000)).status == 200)
            #expect(try gateway.exchange("POST", "/small", body: Payload.bytes(10)).status == 200)
            expectRejection(try gateway.exchange("POST", "/small", body: Payload.bytes(11)), 413, "request_too_large")
        }
    }

    @Test func `a connection too many is turned away with 503`() throws {
        try withOpenGateway(server: "workers: 1\nlimits: { connections: 3 }") { gateway, _ throws in
            let held = try (0..<3).map { _ in try gateway.connect() }
            for client in held { #expect(try client.exchange("GET", "/").status == 200) }
            let extra = try gateway.connect()
            #expect(try extra.response().status == 503)
            #expect(extra.socket.isEnded(within: .seconds(2)))
            held[0].close()
            try waitUntil("there is room again") {
                let client = try gateway.connect()
                try? client.send("GET", "/", [("Connection", "close")])
                return (try? client.response().status) == 200
            }
        }
    }

    @Test func `a connection that says nothing gives its place to a new one`() throws {
        try withOpenGateway(server: "workers: 1\nlimits: { connections: 3 }") { gateway, _ throws in
            let served = try gateway.connect()
            #expect(try served.exchange("GET", "/").status == 200)
            let silent = try gateway.connect()
            let half = try gateway.connect()
            try half.send("GET / HTTP/1.1\r\nHost: a\r\n")
            // Young ones are left alone.
            #expect(try gateway.connect().response().status == 503)
            pause(.milliseconds(1300))
            let first = try gateway.connect()
            #expect(try first.exchange("GET", "/").status == 200)
            let second = try gateway.connect()
            #expect(try second.exchange("GET", "/").status == 200)
            #expect(silent.socket.isEnded(within: .seconds(2)) && half.socket.isEnded(within: .seconds(2)))
            // Those that have got a response stay.
            #expect(try gateway.connect().response().status == 503)
            for client in [served, first, second] { #expect(try client.exchange("GET", "/").status == 200) }
        }
    }

    @Test func `an upload that trickles gives its place to a new connection`() throws {
        try withOpenGateway(server: "workers: 1\nlimits: { connections: 2 }") { gateway, upstream throws in
            let served = try gateway.connect()
            #expect(try served.exchange("GET", "/").status == 200)
            let slow = try gateway.connect()
            try slow.send("POST", "/", [("Content-Length", "100000")])
            try slow.send("a little")
            pause(.milliseconds(1300))
            let other = try gateway.connect()
            #expect(try other.exchange("GET", "/").status == 200)
            expectRejection(try slow.response(), 503, "overloaded")
            #expect(slow.socket.isEnded(within: .seconds(2)))
            try waitUntil("the request that was cut is ended upstream") {
                upstream.requests.contains { $0.end == .truncated }
            }
        }
    }

    @Test func `one address may not take every connection`() throws {
        try withOpenGateway(server: "workers: 1\nlimits: { connections_per_address: 2 }") { gateway, _ throws in
            let held = try (0..<2).map { _ in try gateway.connect() }
            for client in held { #expect(try client.exchange("GET", "/").status == 200) }
            let extra = try gateway.connect()
            try? extra.send("GET", "/")
            let response = try? extra.response(within: .seconds(3))
            #expect(response == nil || response?.status == 503)
            #expect(try held[0].exchange("GET", "/").status == 200)
        }
    }
}

/// Every wait ends.
@Suite struct `Deadlines` {
    static let server = "timeouts: { request_head: 500ms, idle: 700ms, body_idle: 500ms }"

    @Test func `a head that does not end is cut off`() throws {
        try withOpenGateway(server: Self.server) { gateway, upstream throws in
            let client = try gateway.connect()
            try client.send("GET / HTTP/1.1\r\nHost: a\r\n")
            #expect(client.socket.isEnded(within: .seconds(3)))
            #expect(upstream.requests.isEmpty)
        }
    }

    @Test func `a head byte by byte does not win time`() throws {
        try withOpenGateway(server: Self.server) { gateway, _ throws in
            let client = try gateway.connect()
            let socket = client.socket
            let drip = Background { () -> Int in
                var count = 0
                while count < 100, (try? socket.send("G")) != nil {
                    count += 1
                    pause(.milliseconds(50))
                }
                return count
            }
            #expect(client.socket.isEnded(within: .seconds(4)))
            #expect(try drip.value() < 60)
        }
    }

    @Test func `an idle connection is closed, without a word`() throws {
        try withOpenGateway(server: Self.server) { gateway, _ throws in
            let client = try gateway.connect()
            #expect(try client.exchange("GET", "/").status == 200)
            #expect(try client.socket.receiveToEnd(within: .seconds(4)).isEmpty)
        }
    }

    @Test func `frames that are no requests do not keep a connection`() throws {
        try withOpenGateway(server: Self.server) { gateway, _ throws in
            let socket = try RawSocket(connectingTo: gateway.endpoint)
            try socket.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
            try socket.send([0, 0, 0, 4, 0, 0, 0, 0, 0])
            let pings = Background {
                var count = 0
                let ping = [0, 0, 8, 6, 0, 0, 0, 0, 0] + [UInt8](repeating: 1, count: 8)
                while count < 40, (try? socket.send(ping)) != nil {
                    count += 1
                    pause(.milliseconds(100))
                }
                return count
            }
            #expect(socket.isEnded(within: .seconds(5)))
            #expect(try pings.value() < 30)
        }
    }

    @Test func `a body that stops is cut off, and the upstream's side with it`() throws {
        try withOpenGateway(server: Self.server) { gateway, upstream throws in
            let client = try gateway.connect()
            try client.send("POST", "/", [("Content-Length", "10")])
            try client.send("abc")
            #expect(client.socket.isEnded(within: .seconds(4)))
            try waitUntil("the upstream's side ends", within: .seconds(2)) {
                upstream.endedConnections == upstream.acceptedConnections
            }
            #expect(upstream.requests.allSatisfy { $0.end == .truncated })
        }
    }

    @Test func `a slow response is not an idle connection`() throws {
        let script: ScriptedUpstream.Script = {
            pause(.milliseconds(1500))
            try $0.respond(200, body: "late")
        }
        try withOpenGateway(server: Self.server, script: script) { gateway, _ throws in
            #expect(try gateway.get("/").text == "late")
        }
    }

    @Test func `a response that stops is cut off`() throws {
        let script: ScriptedUpstream.Script = {
            try $0.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")
            _ = $0.waitForEnd()
            $0.closes = true
        }
        try withOpenGateway(upstream: "timeouts: { idle: 500ms }", script: script) { gateway, upstream throws in
            let client = try gateway.connect()
            let response = try client.exchange("GET", "/")
            #expect(response.end == .truncated && response.text == "abc")
            try waitUntil("the upstream's side ends", within: .seconds(2)) { upstream.endedConnections == 1 }
        }
    }

    @Test func `a connection that is never made is 504 or 502 in time`() throws {
        // A listener whose queue is full completes no more handshakes.
        let listener = try Listener(on: .loopback(0), backlog: 0)
        var fillers: [RawSocket] = []
        while try RawSocket.connects(to: listener.endpoint, within: .milliseconds(300), holding: &fillers) {}
        let config = GatewayConfig(endpoints: ["http://\(listener.endpoint)"], upstream: "timeouts: { connect: 400ms }")
        try withMartlet(config.text) { gateway throws in
            let client = try gateway.connect()
            let stopwatch = Stopwatch()
            try client.send("GET", "/")
            let response = try client.response()
            #expect(stopwatch.undisturbed < .seconds(4))
            #expect([502, 504].contains(response.status), "\(response)")
        }
        withExtendedLifetime((listener, fillers)) {}
    }
}
