import MartletTesting
import Testing

/// What passes through a tunnel, and how it ends by itself.
@Suite struct `Tunnels` {
    @Test func `frames of every size pass both ways, whole and in pieces`() throws {
        try withOpenGateway(script: EchoScript().script) { gateway, _ throws in
            let end = try gateway.webSocket()
            for count in [0, 1, 125, 126, 65_535, 65_536, 3 << 20] {
                let frame = Frame(first: 0x82, payload: Payload.bytes(count))
                let sending = Background { [socket = end.socket] in
                    try socket.send(frame.bytes(masked: true), within: .seconds(30))
                }
                let isSame = try end.frame() == frame
                #expect(isSame, "\(count)")
                try sending.value()
            }
            for byte in Frame.text("byte by byte").bytes(masked: true) { try end.socket.send([byte]) }
            #expect(try end.frame()?.words == "byte by byte")
        }
    }

    @Test func `frames of an extension pass where the handshake has agreed on it`() throws {
        let script: ScriptedUpstream.Script = { exchange in
            let end = try exchange.acceptWebSocket("Sec-WebSocket-Extensions: permessage-deflate\r\n")
            while let frame = try end.frame(within: .seconds(60)), frame.first != Frame.close { try end.send(frame) }
        }
        try withOpenGateway(script: script) { gateway, _ throws in
            let end = try gateway.webSocket("/", [("Sec-WebSocket-Extensions", "permessage-deflate")])
            let compressed = Frame(first: 0xC1, payload: [0xF2, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00])
            try end.send(compressed)
            #expect(try end.frame() == compressed)
        }
    }

    @Test func `a body's limits are not a tunnel's`() throws {
        let server = "limits: { body_bytes: 1KiB, body_min_rate: 1MiB }\ntimeouts: { body_idle: 1s }"
        try withOpenGateway(server: server, script: EchoScript().script) { gateway, _ throws in
            let end = try gateway.webSocket()
            for _ in 0..<4 { try end.expectEcho(String(repeating: "x", count: 1000)) }
            pause(.milliseconds(1700))
            try end.expectEcho("still here")
        }
    }

    @Test func `a slow reader holds its upstream back`() throws {
        let sent = Box(0)
        let script: ScriptedUpstream.Script = { exchange in
            let end = try exchange.acceptWebSocket()
            for _ in 0..<512 {
                try end.send(Frame(first: 0x82, payload: [UInt8](repeating: 7, count: 65_536)))
                sent.withLock { $0 += 1 }
            }
            _ = try end.frame(within: .seconds(30))
        }
        try withOpenGateway(script: script) { gateway, _ throws in
            let client = try HTTPClient(to: gateway.endpoint, receiveBuffer: 16_384)
            try client.send("GET", "/chat", webSocketFields)
            let end = WebSocketEnd(try client.response(), client.socket, isClient: true, client.reader.pending)
            pause(.seconds(1))
            #expect(sent.value < 256, "\(sent.value) of 512 pieces had left the upstream")
            for _ in 0..<512 { #expect(try end.frame()?.payload.count == 65_536) }
        }
    }

    @Test func `a slow upstream holds its client back`() throws {
        let goes = Box(false)
        let script: ScriptedUpstream.Script = { exchange in
            let end = try exchange.acceptWebSocket()
            try waitUntil("it may read", within: .seconds(20)) { goes.value }
            var count = 0
            while count < 512, try end.frame(within: .seconds(30)) != nil { count += 1 }
            try end.send("\(count)")
        }
        try withOpenGateway(script: script) { gateway, _ throws in
            let end = try gateway.webSocket()
            let sent = Box(0)
            let sending = Background { [socket = end.socket] in
                let bytes = Frame(first: 0x82, payload: [UInt8](repeating: 7, count: 65_536)).bytes(masked: true)
                for _ in 0..<512 {
                    try socket.send(bytes, within: .seconds(60))
                    sent.withLock { $0 += 1 }
                }
            }
            pause(.seconds(1))
            #expect(sent.value < 512, "all of it was taken")
            goes.withLock { $0 = true }
            try sending.value(within: .seconds(60))
            #expect(try end.frame(within: .seconds(30))?.words == "512")
        }
    }

    @Test func `its end is logged with what passed both ways, and counted`() throws {
        try withOpenGateway(script: EchoScript().script) { gateway, _ throws in
            let end = try gateway.webSocket("/chat/1")
            try end.expectEcho("hello")
            #expect(try gateway.metric("martlet_proxy_tunnels_open") == "1")
            try end.send(.close(1000))
            try end.expectClose(1000)
            let line = try gateway.record(of: "/chat/1")
            #expect(line["status"] == "101" && line["reason"] == "ok")
            // Masked: 11 and 8 bytes; not masked: 7 and 4.
            #expect(line["bytes_in"] == "19" && line["bytes_out"] == "11")
            #expect(try gateway.metric("martlet_proxy_tunnels_open") == "0")
            #expect(try gateway.metric("martlet_proxy_tunnels_total") == "1")
            #expect(try gateway.get("/", [("Connection", "Upgrade"), ("Upgrade", "tcp")]).status == 400)
            #expect(try gateway.metric("martlet_proxy_upgrades_refused_total") == "1")
            #expect(try gateway.metric(#"martlet_proxy_tunnel_ends_total{reason="ok"}"#) == "1")
        }
    }

    @Test func `a client that leaves takes its upstream along within a second`() throws {
        let echo = EchoScript()
        try withOpenGateway(script: echo.script) { gateway, _ throws in
            for isReset in [false, true] {
                let end = try gateway.webSocket("/left/\(isReset)")
                try end.expectEcho("hello")
                let before = echo.ends.value.count
                isReset ? end.socket.reset() : end.socket.close()
                try waitUntil("the upstream hears of it", within: .seconds(1)) { echo.ends.value.count > before }
                #expect(echo.ends.value.last == .some(nil))
                let reason = try gateway.record(of: "/left/\(isReset)")["reason"]
                #expect(reason == (isReset ? "request.client_left" : "tunnel.client_left"))
            }
        }
    }

    @Test func `an upstream that leaves takes its client along`() throws {
        let isReset = Box(false)
        let script: ScriptedUpstream.Script = { exchange in
            let end = try exchange.acceptWebSocket()
            try end.send("last words")
            _ = try end.frame()
            if isReset.value { exchange.socket.reset() }
        }
        try withOpenGateway(script: script) { gateway, _ throws in
            for resets in [false, true] {
                isReset.withLock { $0 = resets }
                for _ in 0..<8 {
                    let end = try gateway.webSocket()
                    #expect(try end.frame()?.words == "last words")
                    try end.send("go")
                    #expect(try end.frame() == nil)
                    end.socket.close()
                }
            }
            // An upstream is not left out because of what its tunnels do.
            #expect(try gateway.webSocket().frame()?.words == "last words")
        }
    }

    static let violations: [(String, [UInt8])] = [
        ("no mask", Frame.text("x").bytes(masked: false)),
        ("a long ping", [0x89, 0xFE, 0, 126, 1, 2, 3, 4]),
        ("a length that is too long", [0x82, 0xFE, 0, 1, 1, 2, 3, 4, 5]),
        ("an extension bit", [0xC1, 0x81, 1, 2, 3, 4, 5]),
    ]

    @Test func `a client that breaks the protocol gets a close reason, and so does its upstream`() throws {
        let echo = EchoScript()
        try withOpenGateway(script: echo.script) { gateway, _ throws in
            for (index, (name, bytes)) in Self.violations.enumerated() {
                let end = try gateway.webSocket("/bad/\(index)")
                try end.expectEcho(name)
                try end.socket.send(bytes)
                try end.expectClose(1002)
                try waitUntil("the upstream sees the end") { echo.ends.value.count == index + 1 }
                #expect(echo.ends.value.last??.status == 1002)
                #expect(try gateway.record(of: "/bad/\(index)")["reason"] == "tunnel.client_broke_protocol")
            }
        }
    }

    @Test func `an upstream that breaks the protocol ends it`() throws {
        let script: ScriptedUpstream.Script = { exchange in
            let end = try exchange.acceptWebSocket()
            try exchange.send(Frame.text("good").bytes(masked: false) + Frame.text("bad").bytes(masked: true))
            #expect(try end.frame()?.status == 1002)
        }
        try withOpenGateway(script: script) { gateway, _ throws in
            let end = try gateway.webSocket("/bad")
            #expect(try end.frame()?.words == "good")
            try end.expectClose(1002)
            #expect(try gateway.record(of: "/bad")["reason"] == "tunnel.upstream_broke_protocol")
        }
    }

    @Test func `an upstream's extension bit without an extension ends it`() throws {
        let script: ScriptedUpstream.Script = { exchange in
            let end = try exchange.acceptWebSocket()
            try exchange.send([0x91, 1, 0x61])
            #expect(try end.frame()?.status == 1002)
        }
        try withOpenGateway(script: script) { gateway, _ throws in
            try gateway.webSocket("/bits").expectClose(1002)
            #expect(try gateway.record(of: "/bits")["reason"] == "tunnel.upstream_broke_protocol")
        }
    }

    @Test func `500 concurrent tunnels do not mix`() throws {
        try withOpenGateway(script: EchoScript().script) { gateway, upstream throws in
            let ends = try (0..<500).map { try gateway.webSocket("/chat/\($0)") }
            for (index, end) in ends.enumerated() { try end.send("to \(index)") }
            for (index, end) in ends.enumerated() { #expect(try end.frame()?.words == "to \(index)") }
            #expect(try gateway.metric("martlet_proxy_tunnels_open") == "500")
            for end in ends { end.socket.close() }
            try waitUntil("all are over") { upstream.endedConnections == 500 }
            try waitUntil("none is left") { try gateway.metric("martlet_proxy_tunnels_open") == "0" }
        }
    }
}

extension Gateway {
    /// The value of a sample at `/metrics`.
    func metric(_ name: String) throws -> String? {
        try askAdmin("/metrics").text.split(separator: "\n").first { $0.hasPrefix("\(name) ") }
            .map { String($0.dropFirst(name.count + 1)) }
    }

    /// The access record of the only request for a path.
    func record(of path: String) throws -> LogLine {
        var found: LogLine?
        try waitUntil("\(path) is logged") {
            found = log.first { $0["event"] == "request" && $0["path"] == path }
            return found != nil
        }
        return try #require(found)
    }
}
