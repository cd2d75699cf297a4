import MartletTesting
import Testing

/// What operators see, and what they must not.
@Suite struct `Observation` {
    @Test func `the access log has one line per request, without token and query`() throws {
        try withAppleGateway { gateway, _, apple throws in
            let token = try apple.token()
            let responses = try [
                gateway.get("/closed/path?secret=query", bearer(token)), gateway.get("/closed/other?secret=query"),
                gateway.get("/closed/bad?secret=query", bearer(token + "x")), gateway.get("/closed/../x?secret=query"),
            ]
            for response in responses {
                let identifier = response["X-Request-Id"] ?? "none"
                try waitUntil("a line about \(identifier)") { gateway.everything.contains(identifier) }
            }
            let parts = token.split(separator: ".").map(String.init)
            #expect(!gateway.everything.contains("secret=query"))
            for part in [token, parts[1], parts[2]] { #expect(!gateway.everything.contains(part)) }
            let lines = gateway.everything.split(separator: "\n")
            #expect(lines.count == gateway.log.count, "not every line is JSON: \(gateway.everything)")
            let line = gateway.log.first { $0.text.contains(responses[0]["X-Request-Id"] ?? "none") }
            #expect(line?.text.contains("200") == true && line?.text.contains("closed") == true)
        }
    }

    @Test(arguments: [
        ([("X-Forwarded-For", "6.6.6.6, 9.9.9.9, 10.1.1.1")], "9.9.9.9"),
        ([("X-Forwarded-For", "10.1.1.1")], "10.1.1.1"), ([("X-Forwarded-For", "not an address")], "127.0.0.1"),
        ([("X-Forwarded-For", "9.9.9.9:4711")], "9.9.9.9"),
        ([("Forwarded", "for=6.6.6.6, for=\"[2001:db8::1]:80\";proto=https, for=10.1.1.1")], "2001:db8::1"),
        ([("Forwarded", "for=9.9.9.9"), ("Forwarded", "for=_hidden")], "127.0.0.1"),
        ([("X-Forwarded-For", "9.9.9.9"), ("Forwarded", "for=6.6.6.6")], "9.9.9.9"),
    ])
    func `the log names the client behind trusted proxies`(chain: [(String, String)], client: String) throws {
        try withOpenGateway(server: "trusted_proxies: [10.0.0.0/8, 127.0.0.0/8]") { gateway, _ throws in
            let identifier = try gateway.get("/", chain)["X-Request-Id"] ?? "none"
            try waitUntil("the line is there") { gateway.log.contains { $0["request_id"] == identifier } }
            #expect(gateway.log.first { $0["request_id"] == identifier }?["client"] == client)
        }
    }

    @Test func `a rejected request is logged with its target, without the query`() throws {
        try withOpenGateway { gateway, _ throws in
            let rows = [
                ("GET //x", "//x"), ("GET /../x?secret=query", "/../x"), ("GET ?\u{540D}=secret=query", ""),
                ("GET /a b", "/a%20b"),
                ("post /a", "/a"), ("CONNECT a:1", "a:1"), ("OPTIONS *", "*"),
            ]
            for (line, path) in rows {
                let (response, _) = try gateway.raw("\(line) HTTP/1.1\r\nHost: a\r\n\r\n")
                let identifier = response["X-Request-Id"] ?? "none"
                try waitUntil("the line is there") { gateway.log.contains { $0["request_id"] == identifier } }
                let found = gateway.log.first { $0["request_id"] == identifier }
                #expect(
                    found?["path"] == path && found?["method"] == line.split(separator: " ").first.map(String.init),
                    "\(line)")
            }
            #expect(!gateway.everything.contains("secret=query"))
        }
    }

    @Test func `bytes_out counts bodies alone, our own responses' too`() throws {
        try withOpenGateway(routes: "- { name: a, match: { path: /a }, auth: none, upstream: api }") {
            gateway, _ throws in
            let peer = try HTTP2Peer(to: gateway.endpoint)
            let stream = try peer.outcome(of: try peer.request(["GET /none HTTP/1.1", "Host: a"], ends: true))
            let framed = stream.value(of: "x-request-id") ?? "none"
            let responses = [try gateway.get("/none"), try gateway.get("/a"), try gateway.exchange("HEAD", "/none")]
            let rows = responses.map { ($0["X-Request-Id"] ?? "none", $0.body.count) } + [(framed, stream.body.count)]
            for (identifier, count) in rows {
                try waitUntil("the line is there") { gateway.log.contains { $0["request_id"] == identifier } }
                #expect(gateway.log.first { $0["request_id"] == identifier }?["bytes_out"] == "\(count)")
            }
            #expect(rows[0].1 > 0 && rows[2].1 == 0 && rows[3].1 > 0)
        }
    }

    @Test func `the fine reason of a rejection is in the log alone`() throws {
        try withAppleGateway { gateway, _, apple throws in
            let response = try gateway.get("/closed", bearer(apple.token { $0.claims["aud"] = "\"other\"" }))
            try waitUntil("the reason is logged") {
                gateway.log.contains {
                    $0.text.contains(response["X-Request-Id"] ?? "none") && $0.text.contains("audience")
                }
            }
            #expect(!response.text.contains("audience") && !"\(response.fields)".contains("audience"))
        }
    }

    @Test func `bytes of a client cannot make log lines`() throws {
        try withOpenGateway { gateway, _ throws in
            for target in ["/%0a%7b%22event%22:1%7d", "/\"},{\"event\":\"forged\"}", "/%22quoted%22"] {
                _ = try gateway.raw("GET \(target) HTTP/1.1\r\nHost: a\r\nUser-Agent: \"x\\\"\u{1b}[31m\r\n\r\n")
            }
            pause(.milliseconds(200))
            #expect(!gateway.log.contains { $0["event"] == "forged" })
            #expect(gateway.everything.split(separator: "\n").count == gateway.log.count, "\(gateway.everything)")
            #expect(!gateway.everything.contains("\u{1b}"))
        }
    }

    @Test func `the admin listener reports health, the public one does not`() throws {
        try withOpenGateway(routes: "- { name: a, match: { path: /a }, auth: none, upstream: api }") {
            gateway, _ throws in
            for path in ["/livez", "/readyz", "/healthz"] {
                #expect(try gateway.askAdmin(path).status == 200, "\(path)")
                expectRejection(try gateway.get(path), 404, "no_route", path)
            }
            expectRejection(try gateway.get("/metrics"), 404, "no_route")
            #expect(try gateway.askAdmin("/a").status == 404)
        }
    }

    @Test func `metrics count in Prometheus' words`() throws {
        try withAppleGateway { gateway, _, apple throws in
            for _ in 0..<3 { _ = try gateway.get("/closed", bearer(apple.token())) }
            _ = try gateway.get("/closed")
            let response = try gateway.askAdmin("/metrics")
            #expect(response.status == 200 && response["Content-Type"]?.hasPrefix("text/plain") == true)
            let lines = response.text.split(separator: "\n").map(String.init)
            #expect(lines.contains { $0.hasPrefix("# TYPE martlet_") && $0.hasSuffix(" counter") })
            for line in lines where !line.hasPrefix("#") {
                let value = line.split(separator: " ").last.flatMap { Double($0) }
                #expect(line.hasPrefix("martlet_") && value != nil, "\(line)")
            }
            #expect(lines.contains { !$0.hasPrefix("#") && $0.contains("401") }, "\(response.text)")
            #expect(!response.text.contains(`Identity headers`.subject))
        }
    }

    @Test func `readiness tells of a provider without keys`() throws {
        let apple = try AppleFixture()
        apple.stop()
        try withAppleGateway(apple: apple) { gateway, _, _ throws in
            let response = try gateway.askAdmin("/readyz")
            #expect(response.text.contains("apple"), "\(response)")
        }
    }
}
