import MartletTesting
import Testing

/// What clients, proxies and upstreams of every age send, and what becomes of it.
@Suite struct `Protocols as others speak them` {
    // MARK: Upstreams

    @Test(arguments: ["Content-Length: 0\r\n", "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"])
    func `a switch of protocols passes without fields about a body`(fields: String) throws {
        let accept = "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"
        let script: ScriptedUpstream.Script = { exchange in
            try exchange.send(
                "HTTP/1.1 101 S\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\(accept)\(fields)\r\n")
            exchange.closes = true
        }
        try withOpenGateway(script: script) { gateway, _ throws in
            let client = try gateway.connect()
            try client.send("GET", "/ws", webSocketFields)
            let text = String(decoding: try client.socket.receiveToEnd(), as: UTF8.self)
            #expect(text.hasPrefix("HTTP/1.1 101 ") && text.contains("\r\n\r\n"), "\(text)")
            #expect(!text.lowercased().contains("content-length") && !text.lowercased().contains("transfer-enc"))
        }
    }

    @Test func `as many interim responses as the work takes pass, as long as they are short`() throws {
        let progress = String(repeating: "HTTP/1.1 102 Processing\r\n\r\n", count: 100)
        let script: ScriptedUpstream.Script = { exchange in
            let count = exchange.request.target == "/flood" ? 30 : 1
            for _ in 0..<count { try exchange.send(progress) }
            try exchange.respond(200, body: "ok")
        }
        try withOpenGateway(script: script) { gateway, _ throws in
            let client = try gateway.connect()
            #expect(try client.exchange("GET", "/work").text == "ok")
            #expect(client.interim.count == 100 && client.interim.allSatisfy { $0.status == 102 })
            #expect(try gateway.get("/flood").status == 502)
        }
    }

    @Test func `an upstream may pad the sizes of its chunks`() throws {
        let script: ScriptedUpstream.Script = { exchange in
            try exchange.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2   \r\nok\r\n0\t\r\n\r\n")
        }
        try withOpenGateway(script: script) { gateway, _ throws in
            #expect(try gateway.get("/").text == "ok")
            let smuggled = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2 \r\nok\r\n0\r\n\r\n"
            #expect(try gateway.raw(smuggled).response.status == 400)
        }
    }

    // MARK: HTTP/1.0 and hosts

    @Test func `HTTP/1.0 needs no host, but where a route names one`() throws {
        let routes = """
            - { name: named, match: { path: /named/**, hosts: [a.example] }, auth: none, upstream: api }
            - { name: open, match: { path: /open/** }, auth: none, upstream: api }
            """
        try withOpenGateway(server: "health: { path: /healthz }", routes: routes) { gateway, upstream throws in
            #expect(try gateway.raw("GET /healthz HTTP/1.0\r\n\r\n").response.status == 200)
            let admin = try HTTPClient(to: gateway.admin)
            try admin.send("GET /readyz HTTP/1.0\r\n\r\n")
            #expect(try admin.response().status == 200)
            #expect(try gateway.raw("GET /open/a HTTP/1.0\r\n\r\n").response.text == "ok")
            #expect(try gateway.raw("GET /named/a HTTP/1.0\r\n\r\n").response.status == 404)
            #expect(try gateway.raw("GET /open/a HTTP/1.1\r\n\r\n").response.status == 400)
            let seen = try upstream.onlyRequest()
            #expect(seen["Host"].map { "http://\($0)" } == upstream.url && seen["X-Forwarded-Host"] == nil)
        }
    }

    @Test(arguments: [("GET / HTTP/1.1", "a:"), ("GET http://a:80/ HTTP/1.1", "a"), ("GET http://a/ HTTP/1.1", "a:80")])
    func `an empty or usual port is as none`(_ line: String, _ host: String) throws {
        try withOpenGateway { gateway, upstream throws in
            #expect(try gateway.raw("\(line)\r\nHost: \(host)\r\nConnection: close\r\n\r\n").response.status == 200)
            let expected = host == "a:" ? "a" : host
            #expect(try upstream.onlyRequest()["Host"] == expected)
            #expect(try upstream.onlyRequest()["X-Forwarded-Host"] == expected)
        }
    }

    @Test func `a client of HTTP/1.0 that ends its side has left`() throws {
        let isOver = Box(false)
        let script: ScriptedUpstream.Script = { exchange in
            try waitUntil("the test is over", within: .seconds(20)) { isOver.value }
            try exchange.respond(200, body: "late")
        }
        try withOpenGateway(script: script) { gateway, _ throws in
            let client = try gateway.connect()
            try client.send("GET /slow HTTP/1.0\r\nHost: a\r\n\r\n")
            client.socket.finishSending()
            try waitUntil("the log says so") {
                gateway.log.contains { $0["event"] == "request" && $0["reason"] == "request.client_left" }
            }
            isOver.withLock { $0 = true }
        }
    }

    @Test(arguments: [false, true])
    func `a listener for every IPv6 address accepts IPv4, unless it is not to`(isIPv6Only: Bool) throws {
        let upstream = try ScriptedUpstream { try $0.respond(200, body: "ok") }
        var config = GatewayConfig(endpoints: [upstream.url], routes: GatewayConfig.open)
        config.listen = "- { address: \"[::]:0\", ipv6_only: \(isIPv6Only) }"
        try withMartlet(config.text) { gateway throws in
            let port = gateway.endpoint.port
            #expect(try HTTPClient(to: .tcp(host: "::1", port: port)).exchange("GET", "/").text == "ok")
            guard !isIPv6Only else {
                #expect(throws: (any Error).self) {
                    try HTTPClient(to: .tcp(host: "127.0.0.1", port: port)).exchange("GET", "/")
                }
                return
            }
            #expect(try HTTPClient(to: .tcp(host: "127.0.0.1", port: port)).exchange("GET", "/").text == "ok")
            #expect(upstream.requests.map { $0["X-Forwarded-For"] } == ["::1", "127.0.0.1"])
        }
    }

    // MARK: Proxies

    @Test func `Forwarded of a trusted proxy is as good as X-Forwarded`() throws {
        try withOpenGateway(server: "trusted_proxies: [127.0.0.1, 10.0.0.0/8]") { gateway, upstream throws in
            let field = "for=203.0.113.7;proto=https;host=shop.example, for=10.0.0.5;proto=http;host=inner"
            #expect(try gateway.get("/", [("Forwarded", field)]).status == 200)
            let seen = try upstream.onlyRequest()
            #expect(seen["X-Forwarded-For"] == "203.0.113.7, 10.0.0.5, 127.0.0.1")
            #expect(seen["X-Forwarded-Proto"] == "https" && seen["X-Forwarded-Host"] == "shop.example")
            let own = try #require(seen["Forwarded"]?.dropFirst(field.count))
            #expect(seen["Forwarded"]?.hasPrefix(field) == true && own.hasPrefix(", for=127.0.0.1;proto=http;host="))
            try waitUntil("the log has the client") { gateway.log.contains { $0["client"] == "203.0.113.7" } }
        }
    }

    @Test func `fields of an untrusted peer are ignored, and that is logged once`() throws {
        try withOpenGateway { gateway, upstream throws in
            for _ in 0..<3 { #expect(try gateway.get("/", [("X-Forwarded-For", "203.0.113.7")]).status == 200) }
            #expect(upstream.requests.allSatisfy { $0["X-Forwarded-For"] == "127.0.0.1" })
            let lines = gateway.log.filter { $0["event"] == "forwarded fields of an untrusted peer ignored" }
            #expect(lines.count == 1 && lines.first?["level"] == "warning")
            #expect(lines.first?["peer"] == "127.0.0.1" && lines.first?["field"] == "x-forwarded-for")
        }
    }

    // MARK: Paths

    @Test func `characters beyond ASCII go on encoded, however they come`() throws {
        try withOpenGateway { gateway, upstream throws in
            let line = "GET /café/文件….txt?q=ü&%C3%BC HTTP/1.1\r\nHost: a\r\n\r\n"
            let client = try gateway.connect()
            // In pieces, two in one, and behind another request.
            try client.send("GET /first HTTP/1.1\r\nHost: a\r\n\r\n" + line + line)
            for _ in 0..<3 { #expect(try client.response().text == "ok") }
            for byte in Array(line.utf8) { try client.send([byte]) }
            #expect(try client.response().text == "ok")
            let target = "/caf%C3%A9/%E6%96%87%E4%BB%B6%E2%80%A6.txt?q=%C3%BC&%C3%BC"
            #expect(upstream.requests.dropFirst().map(\.target) == [target, target, target])
        }
    }

    @Test func `what is not UTF-8, or looks like a separator, is rejected as ever`() throws {
        try withOpenGateway { gateway, upstream throws in
            for bytes in [[0xFF], [0xC3], [0xC0, 0xAF], [0xED, 0xA0, 0x80]] as [[UInt8]] {
                for (before, after) in [("/", ""), ("/?q=", "x"), ("/a/", "/b")] {
                    let client = try gateway.connect()
                    try client.send(
                        Array("GET \(before)".utf8) + bytes + Array("\(after) HTTP/1.1\r\nHost: a\r\n\r\n".utf8))
                    #expect(try client.response().status == 400, "\(bytes)")
                }
            }
            for path in ["/a／b", "/‥/a", "/％2Fb", "/a＼b", "/é/../b"] {
                #expect(try gateway.raw("GET \(path) HTTP/1.1\r\nHost: a\r\n\r\n").response.status == 400, "\(path)")
            }
            #expect(upstream.requests.isEmpty)
        }
    }

    // MARK: gRPC

    @Test func `a malformed call gets a status, of gRPC-Web too`() throws {
        try withOpenGateway(routes: "- { name: a, match: { path: /a/** }, auth: none, upstream: api }") { gateway, _ in
            let peer = try HTTP2Peer(to: gateway.endpoint)
            let twice = ["Authorization: Bearer a", "Authorization: Bearer b"]
            let stream = try peer.request(
                ["POST /s.S/M HTTP/1.1", "Host: a", "Content-Type: application/grpc"] + twice, ends: true)
            let response = try peer.outcome(of: stream)
            #expect(response.head.hasPrefix("HTTP/1.1 200") && response.value(of: "grpc-status") == "3")
            for (type, fields, status) in [
                ("application/grpc-web+proto", [], "12"),
                ("application/grpc-web-text", [("Authorization", "Bearer a"), ("Authorization", "Bearer b")], "3"),
            ] {
                let client = try gateway.connect()
                try client.send("POST", "/s.S/M", [("Content-Type", type), ("Content-Length", "0")] + fields)
                let response = try client.response(to: "POST")
                #expect(response.status == 200 && response["Grpc-Status"] == status && response.body.isEmpty)
                #expect(response["Content-Type"] == (status == "3" ? "\(type)+proto" : type))
            }
            #expect(try gateway.exchange("POST", "/s.S/M", [("Content-Type", "application/json")]).status == 404)
        }
    }
}
