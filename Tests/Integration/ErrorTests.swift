import MartletTesting
import Testing

/// The gateway's own responses, row by row (section 6).
@Suite struct `Errors` {
    @Test func `every response carries a request id, the gateway's and the upstream's`() throws {
        try withOpenGateway { gateway, _ throws in
            let first = try gateway.get("/")
            let second = try gateway.get("/")
            let identifiers = [first, second].compactMap { $0["X-Request-Id"] }
            #expect(identifiers.count == 2 && Set(identifiers).count == 2 && !identifiers.contains(""))
        }
    }

    @Test func `an upstream that refuses is 502, and the client's connection lives on`() throws {
        let port = try refusedPort()
        try withMartlet(GatewayConfig(endpoints: ["http://127.0.0.1:\(port)"]).text) { gateway throws in
            let client = try gateway.connect()
            expectRejection(try client.exchange("GET", "/"), 502, "upstream_unavailable")
            expectRejection(try client.exchange("GET", "/"), 502, "upstream_unavailable")
        }
    }

    @Test func `an upstream that does not respond in time is 504`() throws {
        let script: ScriptedUpstream.Script = {
            _ = $0.waitForEnd()
            $0.closes = true
        }
        try withOpenGateway(upstream: "timeouts: { response_head: 300ms }", script: script) {
            gateway, upstream throws in
            expectRejection(try gateway.get("/"), 504, "upstream_timeout")
            try waitUntil("the upstream's side is closed", within: .seconds(2)) { upstream.endedConnections == 1 }
        }
    }

    static let badResponses = [
        ("no response", ""), ("not HTTP", "hello\r\n\r\n"), ("another protocol", "SSH-2.0-x\r\n\r\n"),
        ("another version", "HTTP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n"), ("no status", "HTTP/1.1 OK\r\n\r\n"),
        ("a short status", "HTTP/1.1 20 OK\r\nContent-Length: 0\r\n\r\n"),
        ("a long status", "HTTP/1.1 2000 OK\r\nContent-Length: 0\r\n\r\n"),
        ("both lengths", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        ("two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nabc"),
        ("a length that is none", "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"),
        ("another coding", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"),
        ("space before colon", "HTTP/1.1 200 OK\r\nA : b\r\nContent-Length: 0\r\n\r\n"),
        ("a folded line", "HTTP/1.1 200 OK\r\nA: b\r\n c\r\nContent-Length: 0\r\n\r\n"),
        ("NUL in a value", "HTTP/1.1 200 OK\r\nA: b\0\r\nContent-Length: 0\r\n\r\n"),
        ("bare CR in a value", "HTTP/1.1 200 OK\r\nA: b\rSet-Cookie: x\r\nContent-Length: 0\r\n\r\n"),
        ("half a head", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n"),
        ("an endless head", "HTTP/1.1 200 OK\r\nA: " + String(repeating: "b", count: 300_000) + "\r\n\r\n"),
        ("an unrequested switch", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n"),
    ]

    @Test func `a response that is no HTTP is 502`() throws {
        let bytes = Box("")
        let script: ScriptedUpstream.Script = {
            try $0.send(bytes.value)
            $0.closes = true
        }
        try withOpenGateway(script: script) { gateway, _ throws in
            for (what, response) in Self.badResponses {
                bytes.withLock { $0 = response }
                // POST: not repeated on another connection, so that each row is one exchange.
                let received = try gateway.exchange("POST", "/", body: [])
                #expect([502].contains(received.status), "\(what): \(received)")
                let code = received.member("code") ?? ""
                #expect(["upstream_invalid", "upstream_unavailable"].contains(code), "\(what): \(code)")
                if !response.isEmpty { #expect(code == "upstream_invalid", "\(what)") }
            }
        }
    }

    @Test func `a rejection has a length or an end, whatever the client speaks`() throws {
        try withOpenGateway(routes: "- { name: a, match: { path: /a }, auth: none, upstream: api }") {
            gateway, _ throws in
            let old = try gateway.connect()
            try old.send("GET /none HTTP/1.0\r\nHost: a\r\n\r\n")
            expectRejection(try old.response(), 404, "no_route")
            #expect(old.socket.isEnded(within: .seconds(2)))
            let head = try gateway.connect()
            try head.send("HEAD", "/none")
            let response = try head.response(to: "HEAD")
            #expect(response.status == 404 && head.reader.pending.isEmpty)
            expectRejection(try head.exchange("GET", "/none"), 404, "no_route")
        }
    }

    @Test func `an error is reported in coarse words alone`() throws {
        try withAppleGateway { gateway, _, apple throws in
            let responses = try [
                gateway.get("/closed", bearer(apple.token { $0.claims["aud"] = "\"other\"" })),
                gateway.get("/closed", bearer(apple.token { $0.claims["exp"] = "1" })),
                gateway.get("/closed", bearer(apple.token { $0.header["kid"] = "\"other\"" })),
            ]
            for response in responses {
                #expect(Set(response.object.keys).isSubset(of: ["type", "title", "status", "code", "request_id"]))
                #expect(response.member("code") == "credential_invalid")
            }
            #expect(Set(responses.compactMap { $0.member("title") }).count == 1)
        }
    }
}

/// What an upstream learns about the way that a request came.
@Suite struct `Forwarded headers` {
    static let claimed = [
        ("X-Forwarded-For", "1.2.3.4, 5.6.7.8"), ("X-Forwarded-Proto", "https"), ("X-Forwarded-Host", "evil.test"),
        ("Forwarded", "for=1.2.3.4;proto=https"), ("X-Request-Id", "claimed"),
        ("traceparent", "00-\(hex(32))-\(hex(16))-01"),
    ]

    static func hex(_ count: Int) -> String { String(repeating: "a1", count: count / 2) }

    @Test func `a stranger's word is replaced`() throws {
        try withOpenGateway { gateway, upstream throws in
            let response = try gateway.get(
                "/", Self.claimed + [("x_forwarded_for", "9.9.9.9"), ("X_Forwarded_Proto", "https")])
            let request = try upstream.onlyRequest()
            #expect(request.all("X-Forwarded-For") == ["127.0.0.1"])
            #expect(request.all("X-Forwarded-Proto") == ["http"])
            #expect(request.all("X-Forwarded-Host") == ["localhost"])
            #expect(request["Forwarded"]?.contains("1.2.3.4") != true)
            #expect(request["X-Request-Id"] != "claimed" && request["X-Request-Id"] == response["X-Request-Id"])
            #expect(request["traceparent"] == "00-\(Self.hex(32))-\(Self.hex(16))-01")
            #expect(request["Host"] == "localhost")
            #expect(!request.fields.contains { $0.name.contains("_") }, "\(request)")
        }
    }

    @Test(arguments: [true, false])
    func `whatever else is for a proxy to say comes from trusted ones only`(isTrusted: Bool) throws {
        let names = [
            "X-Forwarded-Prefix", "X-Forwarded-Port", "X-Forwarded-Uri", "X-Forwarded-Method", "x-forwarded-USER",
            "X-Forwarded-Ssl", "X_Forwarded_Groups", "X-Real-IP",
        ]
        let server = isTrusted ? "trusted_proxies: [127.0.0.0/8]" : ""
        try withOpenGateway(server: server) { gateway, upstream throws in
            _ = try gateway.get("/", names.map { ($0, "claimed") } + [("X-Forwarding", "kept"), ("X-Real", "kept")])
            let request = try upstream.onlyRequest()
            for name in names { #expect(request[name] == (isTrusted ? "claimed" : nil), "\(name)") }
            #expect(request["X-Forwarding"] == "kept" && request["X-Real"] == "kept")
        }
    }

    @Test func `a trusted proxy's word is kept and added to`() throws {
        try withOpenGateway(server: "trusted_proxies: [10.0.0.0/8, 127.0.0.0/8]") { gateway, upstream throws in
            let response = try gateway.get("/", Self.claimed)
            let request = try upstream.onlyRequest()
            #expect(request["X-Forwarded-For"] == "1.2.3.4, 5.6.7.8, 127.0.0.1")
            #expect(request["X-Forwarded-Proto"] == "https")
            #expect(request["X-Forwarded-Host"] == "evil.test")
            #expect(request["X-Request-Id"] == "claimed" && response["X-Request-Id"] == "claimed")
        }
    }

    @Test func `a proxy outside the configured blocks is a stranger`() throws {
        try withOpenGateway(server: "trusted_proxies: [127.0.0.2/32, 10.0.0.0/8]") { gateway, upstream throws in
            _ = try gateway.get("/", Self.claimed)
            #expect(try upstream.onlyRequest().all("X-Forwarded-For") == ["127.0.0.1"])
        }
    }

    @Test(arguments: [("keep", "client.test:81"), ("endpoint", ""), ("fixed.test", "fixed.test")])
    func `the upstream gets the Host that the configuration names`(policy: String, expected: String) throws {
        try withOpenGateway(upstream: "host: \(policy)") { gateway, upstream throws in
            _ = try gateway.get("/", [("Host", "client.test:81")])
            let wanted = expected.isEmpty ? "\(upstream.endpoint)" : expected
            #expect(try upstream.onlyRequest().all("Host") == [wanted])
        }
    }

    @Test func `Server and date fields of the upstream go through`() throws {
        let script: ScriptedUpstream.Script = {
            try $0.respond(
                299,
                [
                    ("Server", "mine"), ("Date", "Thu, 01 Jan 1970 00:00:00 GMT"), ("Set-Cookie", "a=1"),
                    ("Set-Cookie", "b=2"),
                ],
                body: "x")
        }
        try withOpenGateway(script: script) { gateway, _ throws in
            let response = try gateway.get("/")
            #expect(response.status == 299 && response.all("Set-Cookie") == ["a=1", "b=2"])
            #expect(response.all("Server") == ["mine"] && response.all("Date") == ["Thu, 01 Jan 1970 00:00:00 GMT"])
        }
    }
}
