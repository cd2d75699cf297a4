import MartletTesting
import Testing

/// What a request may become, and what it takes.
@Suite struct `Upgrades` {
    @Test func `a WebSocket passes with the caller's identity and nothing of their credential`() throws {
        try withAppleGateway(script: EchoScript().script) { gateway, upstream, apple throws in
            let more = [
                ("Authorization", "Bearer \(try apple.token())"), ("X-Auth-Subject", "root"),
                ("Sec-WebSocket-Protocol", "chat.v2"), ("Sec-WebSocket-Extensions", "permessage-deflate"),
                ("Keep-Alive", "timeout=5"), ("Origin", "https://app.example.com"),
            ]
            let end = try gateway.webSocket("/chat?room=1", more)
            #expect(end.head["Upgrade"] == "websocket" && end.head["Connection"] == "Upgrade")
            #expect(end.head["Sec-WebSocket-Accept"] == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")
            #expect(end.head["X-Request-Id"]?.isEmpty == false)
            try end.expectEcho("hello")
            let seen = try upstream.onlyRequest()
            #expect(seen["Connection"] == "Upgrade" && seen["Upgrade"] == "websocket" && seen.target == "/chat?room=1")
            #expect(seen["X-Auth-Subject"]?.hasPrefix("apple:") == true && seen["Authorization"] == nil)
            #expect(seen["Sec-WebSocket-Protocol"] == "chat.v2" && seen["Keep-Alive"] == nil)
            #expect(seen["Sec-WebSocket-Extensions"] == "permessage-deflate" && seen["Content-Length"] == nil)
            try end.send(.close(1000, "bye"))
            try end.expectClose(1000)
        }
    }

    @Test func `an upgrade without a credential, or with a bad one, is 401 and reaches no upstream`() throws {
        try withAppleGateway { gateway, upstream, _ throws in
            expectUnauthorized(try gateway.get("/chat", webSocketFields), "credential_missing")
            let bad = try gateway.get("/chat", webSocketFields + bearer("e30.e30.e30"))
            expectUnauthorized(bad, "credential_invalid")
            let query = try gateway.get("/chat?access_token=e30", webSocketFields)
            expectUnauthorized(query, "credential_missing")
            #expect(upstream.requests.isEmpty)
        }
    }

    struct Offer: CustomTestStringConvertible {
        let testDescription: String
        let fields: [(String, String)]
        let status: Int
        var method = "GET"

        init(_ name: String, _ changes: [String: String?], _ status: Int, method: String = "GET") {
            testDescription = name
            fields =
                webSocketFields.filter { changes[$0.0] == nil }
                + changes.compactMap { key, value in
                    value.map { (key, $0) }
                }
            (self.status, self.method) = (status, method)
        }
    }

    static let offers = [
        Offer("another protocol", ["Upgrade": "chat/2"], 400),
        Offer("a list that names it", ["Upgrade": "chat/2, WebSocket"], 101),
        Offer("in capitals", ["Upgrade": "WEBSOCKET", "Connection": "keep-alive, UPGRADE"], 101),
        Offer("without Connection", ["Connection": nil], 200),
        Offer("h2c alone is ignored", ["Upgrade": "h2c"], 200),
        Offer("h2c beside it is ignored", ["Upgrade": "h2c, websocket"], 101),
        Offer("no list at all", ["Upgrade": "web socket"], 400),
        Offer("POST", ["Content-Length": "0"], 400, method: "POST"),
        Offer("an empty body", ["Content-Length": "0"], 101),
        Offer("a body", ["Transfer-Encoding": "chunked"], 400),
        Offer("no key", ["Sec-WebSocket-Key": nil], 400),
        Offer("a short key", ["Sec-WebSocket-Key": "c2hvcnQ="], 400),
        Offer("no version", ["Sec-WebSocket-Version": nil], 426),
        Offer("another version", ["Sec-WebSocket-Version": "8"], 426),
    ]

    @Test func `what is asked for decides`() throws {
        try withOpenGateway(readsBodies: false, script: EchoScript().script) { gateway, upstream throws in
            for offer in Self.offers {
                let before = upstream.requests.count
                let client = try gateway.connect()
                try client.send(offer.method, "/chat", offer.fields)
                let response = try client.response()
                #expect(response.status == offer.status, "\(offer.testDescription): \(response)")
                let isSent = upstream.requests.count > before
                #expect(isSent == (offer.status < 300), "\(offer.testDescription)")
                if offer.status == 200 { #expect(upstream.requests.last?["Upgrade"] == nil) }
                if offer.status == 426 {
                    expectRejection(response, 426, "request_invalid")
                    #expect(response["Sec-WebSocket-Version"] == "13" && response["Upgrade"] == "websocket")
                }
                if offer.status == 400 { expectRejection(response, 400, "request_invalid", offer.testDescription) }
            }
        }
    }

    @Test func `a second key, version or Upgrade is refused or ignored`() throws {
        try withOpenGateway(script: EchoScript().script) { gateway, _ throws in
            for (name, value, status) in [
                ("Sec-WebSocket-Key", "AAAAAAAAAAAAAAAAAAAAAA==", 400), ("Sec_WebSocket_Key", "x", 400),
                ("Sec-WebSocket-Version", "13", 426), ("Upgrade", "websocket", 200),
            ] {
                let response = try gateway.get("/chat", webSocketFields + [(name, value)])
                #expect(response.status == status, "\(name): \(response)")
            }
        }
    }

    @Test func `HTTP/1.0 upgrades to nothing`() throws {
        try withOpenGateway(script: EchoScript().script) { gateway, upstream throws in
            let fields = webSocketFields.map { "\($0.0): \($0.1)\r\n" }.joined()
            let (response, _) = try gateway.raw("GET /chat HTTP/1.0\r\nHost: a\r\n\(fields)\r\n")
            #expect(response.status == 200)
            #expect(try upstream.onlyRequest()["Upgrade"] == nil)
        }
    }

    @Test func `a route can allow none, or others`() throws {
        let routes = """
            - { name: none, match: { path: /none/** }, auth: none, upstream: api, upgrade: { websocket: false } }
            - { name: raw, match: { path: /raw/** }, auth: none, upstream: api, upgrade: [line/1, tcp] }
            - { name: all, match: { path: /** }, auth: none, upstream: api }
            """
        let script: ScriptedUpstream.Script = { exchange in
            let wanted = exchange.request["Upgrade"] ?? ""
            try exchange.send("HTTP/1.1 101 Go\r\nConnection: upgrade\r\nUpgrade: \(wanted)\r\n\r\nready\n")
            while case let bytes = try exchange.socket.receive(within: .seconds(30)), !bytes.isEmpty {
                try exchange.send(bytes)
            }
            try exchange.send("end\n")
            exchange.closes = true
        }
        try withOpenGateway(routes: routes, script: script) { gateway, upstream throws in
            expectRejection(try gateway.get("/none/x", webSocketFields), 400, "request_invalid")
            expectRejection(try gateway.get("/raw/x", webSocketFields), 400, "request_invalid")
            expectRejection(
                try gateway.get("/", [("Connection", "Upgrade"), ("Upgrade", "tcp")]), 400, "request_invalid")
            expectRejection(
                try gateway.get("/raw/x", [("Connection", "Upgrade"), ("Upgrade", "line/2")]), 400, "request_invalid")
            #expect(upstream.requests.isEmpty)
            for name in ["line/1", "TCP"] {
                let client = try gateway.connect()
                try client.send("GET", "/raw/x", [("Connection", "Upgrade"), ("Upgrade", name)])
                let response = try client.response()
                #expect(response.status == 101 && response["Upgrade"] == name)
                try client.send("not\u{0} HTTP")
                client.socket.finishSending()
                let rest = client.reader.pending + (try client.socket.receiveToEnd())
                #expect(String(decoding: rest, as: UTF8.self) == "ready\nnot\u{0} HTTPend\n")
            }
        }
    }

    @Test func `an upstream that cannot be handed a connection is refused`() throws {
        let config = GatewayConfig(endpoints: ["builtin:echo"])
        try withMartlet(config.text) { gateway in
            expectRejection(try gateway.get("/chat", webSocketFields), 502, "upstream_unavailable")
            #expect(try gateway.get("/").status == 200)
        }
    }

    static let badSwitches = [
        ("another protocol", "Connection: Upgrade\r\nUpgrade: h2c\r\nSec-WebSocket-Accept: ACCEPT\r\n"),
        ("no Connection", "Upgrade: websocket\r\nSec-WebSocket-Accept: ACCEPT\r\n"),
        ("no Upgrade", "Connection: Upgrade\r\nSec-WebSocket-Accept: ACCEPT\r\n"),
        ("no Accept", "Connection: Upgrade\r\nUpgrade: websocket\r\n"),
        ("a wrong Accept", "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: AAAA\r\n"),
        (
            "two Accepts",
            "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: ACCEPT\r\nSec-WebSocket-Accept: x\r\n"
        ),
    ]

    @Test func `a switch that is not what was asked for is 502`() throws {
        let response = Box("")
        let script: ScriptedUpstream.Script = { exchange in
            let accept = webSocketAccept(exchange.request["Sec-WebSocket-Key"] ?? "")
            let fields = response.value.replacing("ACCEPT", with: accept)
            try exchange.send("HTTP/1.1 101 Switching Protocols\r\n\(fields)\r\nraw bytes")
            exchange.closes = true
        }
        try withOpenGateway(script: script) { gateway, _ throws in
            for (name, fields) in Self.badSwitches {
                response.withLock { $0 = fields }
                expectRejection(try gateway.get("/chat", webSocketFields), 502, "upstream_invalid", name)
                pause(.milliseconds(20))
            }
        }
    }

    @Test func `an upstream that responds otherwise is heard, and its connection goes on`() throws {
        let script: ScriptedUpstream.Script = {
            try $0.respond($0.request["Upgrade"] == nil ? 200 : 403, body: "not here")
        }
        try withOpenGateway(script: script) { gateway, upstream throws in
            let client = try gateway.connect()
            let response = try client.exchange("GET", "/chat", webSocketFields)
            #expect(response.status == 403 && response.text == "not here" && response["Upgrade"] == nil)
            #expect(try client.exchange("GET", "/").status == 200)
            #expect(upstream.acceptedConnections == 1)
        }
    }

    @Test func `bytes behind the request wait for the switch`() throws {
        let early = Box<[UInt8]?>(nil)
        let script: ScriptedUpstream.Script = { exchange in
            pause(.milliseconds(300))
            early.withLock { $0 = exchange.pending + (exchange.socket.isSilent(for: .milliseconds(100)) ? [] : [0]) }
            let end = try exchange.acceptWebSocket(early: Frame.text("first").bytes(masked: false))
            while let frame = try end.frame() { try end.send(frame) }
        }
        try withOpenGateway(script: script) { gateway, _ throws in
            let client = try gateway.connect()
            let head = webSocketFields.map { "\($0.0): \($0.1)\r\n" }.joined()
            let frames = Frame.text("one").bytes(masked: true) + Frame.text("two").bytes(masked: true)
            try client.send(Array("GET /chat HTTP/1.1\r\nHost: a\r\n\(head)\r\n".utf8) + frames)
            let response = try client.response()
            let end = WebSocketEnd(response, client.socket, isClient: true, client.reader.pending)
            let texts = try (0..<3).map { _ in try end.frame()?.words }
            #expect(response.status == 101 && texts == ["first", "one", "two"] && early.value == [])
        }
    }

    @Test func `bytes behind a request that is not switched never reach the upstream`() throws {
        let seen = Box<[UInt8]>([])
        let script: ScriptedUpstream.Script = { exchange in
            pause(.milliseconds(200))
            try exchange.respond(200, body: "no")
            seen.withLock { $0 = exchange.pending }
        }
        try withOpenGateway(script: script) { gateway, upstream throws in
            let client = try gateway.connect()
            try client.send("GET", "/chat", webSocketFields)
            try client.send(Frame.text("GET /admin HTTP/1.1\r\n\r\n").bytes(masked: true))
            #expect(try client.response().status == 200)
            // What is no request is refused as one.
            #expect(try client.response().status == 400)
            #expect(upstream.requests.count == 1 && seen.value.isEmpty)
        }
    }
}
