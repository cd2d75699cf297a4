import MartletTesting
import Testing

/// WebSockets on streams of HTTP/2 (RFC 8441), frame by frame.
@Suite struct `WebSockets over HTTP/2` {
    @Test func `a stream becomes a WebSocket with the caller's identity, beside others`() throws {
        try withAppleGateway(script: EchoScript().script) { gateway, upstream, apple throws in
            let connection = try FrameConnection(to: gateway.endpoint)
            #expect(try connection.offersExtendedConnect())
            let token = try apple.token()
            try connection.open(1, [("authorization", "Bearer \(token)"), ("x-auth-subject", "root")])
            try connection.open(3, [("authorization", "Bearer \(token)")])
            try connection.open(5, [])
            #expect(try connection.status(of: 1) && connection.status(of: 3))
            #expect(try connection.status(of: 5) == false)
            for stream in [1, 3] as [UInt32] {
                try connection.data(stream, Frame.text("hello \(stream)").bytes(masked: true))
                let expected = Frame.text("hello \(stream)").bytes(masked: false)
                #expect(try connection.body(of: stream, count: expected.count) == expected)
            }
            let seen = try #require(upstream.requests.first)
            #expect(seen.method == "GET" && seen["Upgrade"] == "websocket" && seen["Sec-WebSocket-Version"] == "13")
            #expect(seen["X-Auth-Subject"]?.hasPrefix("apple:") == true && seen["Authorization"] == nil)
            try connection.data(1, Frame.close(1000).bytes(masked: true), ends: true)
            let closing = Frame.close(1000).bytes(masked: false)
            #expect(try connection.body(of: 1, count: closing.count) == closing)
            #expect(try connection.end(of: 1) == .orderly)
            try connection.data(3, Frame.text("again").bytes(masked: true))
            #expect(try connection.body(of: 3, count: 7) == Frame.text("again").bytes(masked: false))
        }
    }

    @Test func `it ends with 4401 when its token does, and a stream of events is reset`() throws {
        let script: ScriptedUpstream.Script = { exchange in
            guard exchange.request["Upgrade"] == nil else { return try EchoScript().script(exchange) }
            try exchange.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n")
            _ = exchange.waitForEnd(within: .seconds(30))
        }
        try withAppleGateway(script: script) { gateway, _, apple throws in
            let token = try apple.token { $0.claims["exp"] = JSONText(unixNow() + 2) }
            let connection = try FrameConnection(to: gateway.endpoint)
            try connection.open(1, [("authorization", "Bearer \(token)")])
            try connection.get(3, "/events", [("authorization", "Bearer \(token)")])
            #expect(try connection.status(of: 1) && connection.status(of: 3))
            let start = Stopwatch()
            let close = Frame.close(4401, "credential expired").bytes(masked: false)
            #expect(try connection.body(of: 1, count: close.count) == close)
            try connection.data(1, Frame.close(4401).bytes(masked: true), ends: true)
            #expect(try connection.end(of: 1) == .orderly)
            #expect(try connection.end(of: 3) == .reset)
            #expect(start.undisturbed < .milliseconds(3200))
            // The connection goes on.
            try connection.get(5, "/public/x", [])
            #expect(try connection.status(of: 5))
        }
    }

    @Test func `a stream that is reset ends at the upstream, and an upstream's end at the stream`() throws {
        let echo = EchoScript()
        let script: ScriptedUpstream.Script = { exchange in
            guard exchange.request.target == "/leave" else { return try echo.script(exchange) }
            _ = try exchange.acceptWebSocket().frame()
            exchange.socket.reset()
        }
        try withOpenGateway(script: script) { gateway, _ throws in
            let connection = try FrameConnection(to: gateway.endpoint)
            try connection.open(1, [])
            try connection.open(3, [], path: "/leave")
            #expect(try connection.status(of: 1) && connection.status(of: 3))
            try connection.reset(1)
            try waitUntil("the upstream hears of it", within: .seconds(1)) { echo.ends.value == [nil] }
            try connection.data(3, Frame.text("go").bytes(masked: true))
            #expect(try connection.end(of: 3) == .reset)
        }
    }

    @Test func `an unknown protocol is 501, and never a GET`() throws {
        let health = "health: { path: /health }"
        try withOpenGateway(server: health, script: EchoScript().script) { gateway, upstream throws in
            let connection = try FrameConnection(to: gateway.endpoint)
            // What looks like gRPC would have its status in a 200.
            let kinds = [("h2c", "/a"), ("H2C", "/b"), ("chat", "/c"), ("h2c", "/health")]
            for (index, (name, path)) in kinds.enumerated() {
                let stream = UInt32(2 * index + 1)
                let fields = index == 2 ? [("content-type", "application/grpc")] : []
                try connection.open(stream, fields, path: path, protocol: name)
                #expect(try connection.status(of: stream) == false, "\(name) \(path)")
                // Probes have no line.
                guard path != "/health" else { continue }
                let line = try gateway.record(of: path)
                #expect(line["status"] == "501" && line["reason"] == "request.protocol_unknown", "\(line)")
            }
            #expect(upstream.requests.isEmpty)
            try connection.open(101, [])
            #expect(try connection.status(of: 101))
        }
    }
}
