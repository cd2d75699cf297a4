import MartletTesting
import Testing

/// Routes that send copies of their requests to another upstream.
@Suite struct `Mirrored requests` {
    private static let route =
        "- { name: open, match: { path: /** }, auth: none, upstream: api, mirror: { upstream: shadow } }"

    /// A configuration with the upstreams `api` and `shadow`.
    private static func config(
        _ api: ScriptedUpstream, _ shadow: String, routes: String = route, providers: String = "", more: String = ""
    ) -> String {
        var config = GatewayConfig(endpoints: [api.url], providers: providers, server: "workers: 1", routes: routes)
        config.upstreams += "shadow: { endpoints: [\"\(shadow)\"]\(more) }\n"
        return config.text
    }

    private func count(_ result: String, _ gateway: Gateway) throws -> Int {
        let sample = "martlet_proxy_mirrored_requests_total{upstream=\"shadow\",result=\"\(result)\"} "
        let line = try gateway.askAdmin("/metrics").text.split(separator: "\n").first { $0.hasPrefix(sample) }
        return try #require(line.flatMap { Int($0.dropFirst(sample.count)) }, "no \(sample)")
    }

    // MARK: What is copied

    @Test func `the shadow gets who it is, and no credential`() throws {
        let (apple, api, shadow) = (try AppleFixture(), try ScriptedUpstream(), try ScriptedUpstream())
        let folder = try TemporaryFolder()
        let key = try folder.write(try SigningKey("assertion", .p256).privatePEM(), to: "assertion.pem")
        let routes = """
            - name: closed
              match: { path: /** }
              auth: { providers: [apple] }
              upstream: api
              forward_credentials: true
              rewrite: { strip_prefix: /v1, add_prefix: /api }
              mirror: { upstream: shadow, percent: 100 }
            """
        let assertion = "assertion: { issuer: \"https://gw.example.com\", key_file: \"\(key)\" }\n"
        let config = Self.config(api, shadow.url, routes: routes, providers: apple.provider()) + assertion
        try withMartlet(config) { gateway throws in
            let fields =
                bearer(try apple.token()) + [("Cookie", "a=b"), ("X-Own", "1"), ("X-Mirrored", "0"), ("Via", "1.1 x")]
            #expect(try gateway.exchange("PUT", "/v1/a?b=c", fields, body: Array("text".utf8)).status == 200)
            try waitUntil("the copy arrives") { shadow.wholeRequests.count == 1 }
            let (original, copy) = (try api.onlyRequest(), try shadow.onlyRequest())
            #expect(original["Authorization"] != nil && original["X-Auth-Assertion"] != nil)
            #expect(original["Cookie"] == "a=b" && original["X-Mirrored"] == nil)
            #expect(copy.method == "PUT" && copy.target == "/api/a?b=c" && copy.text == "text")
            #expect(copy["X-Auth-Subject"] == original["X-Auth-Subject"] && copy["X-Auth-Subject"] != nil)
            #expect(copy["X-Request-Id"] == original["X-Request-Id"] && copy["Via"] == original["Via"])
            #expect(copy["X-Own"] == "1" && copy["X-Mirrored"] == "1" && copy["Host"] == original["Host"])
            for name in ["Authorization", "Cookie", "X-Auth-Assertion", "Expect", "User-Agent", "Accept"] {
                #expect(copy[name] == nil, "\(name)")
            }
            try waitUntil("it is counted") { try count("sent", gateway) == 1 }
        }
    }

    @Test func `a shadow that speaks HTTP/2 with prior knowledge gets every copy`() throws {
        let (api, shadow) = (try ScriptedUpstream(), try GRPCUpstream())
        try withMartlet(Self.config(api, shadow.url)) { gateway throws in
            for index in 0..<6 { #expect(try gateway.get("/\(index)").status == 200) }
            try waitUntil("all are counted") { try count("sent", gateway) + count("failed", gateway) == 6 }
            #expect(try count("failed", gateway) == 0 && shadow.heads.value.count == 6)
        }
    }

    @Test func `bodies up to 64 KiB are copied, however they are framed, and no others`() throws {
        let (api, shadow) = (try ScriptedUpstream(), try ScriptedUpstream())
        try withMartlet(Self.config(api, shadow.url)) { gateway throws in
            let client = try gateway.connect()
            let largest = [UInt8](repeating: 0x78, count: 64 * 1024)
            #expect(try client.exchange("POST", "/long", body: largest + [0x79]).status == 200)
            #expect(try client.exchange("POST", "/largest", body: largest).status == 200)
            func chunks(_ target: String, _ pieces: [String]) throws {
                try client.send("POST \(target) HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
                for piece in pieces { try client.send("\(String(piece.utf8.count, radix: 16))\r\n\(piece)\r\n") }
                try client.send("0\r\n\r\n")
                #expect(try client.response().status == 200)
            }
            try chunks("/chunks", ["ab", "c"])
            try chunks("/many", [String](repeating: String(repeating: "z", count: 9000), count: 8))
            #expect(try client.exchange("POST", "/empty", body: []).status == 200)
            #expect(try client.exchange("DELETE", "/last").status == 200)
            try waitUntil("all copies arrive") { shadow.wholeRequests.count == 4 }
            let copies = Dictionary(uniqueKeysWithValues: shadow.requests.map { ($0.target, $0) })
            #expect(Set(copies.keys) == ["/largest", "/chunks", "/empty", "/last"])
            #expect(copies["/largest"]?.body == largest && copies["/chunks"]?.text == "abc")
            #expect(copies["/chunks"]?["Transfer-Encoding"] == nil && copies["/chunks"]?["Content-Length"] == "3")
            #expect(copies["/empty"]?["Content-Length"] == "0" && copies["/last"]?["Content-Length"] == nil)
            #expect(api.requests.count == 6)
        }
    }

    @Test func `requests over HTTP/2 are copied, to an upstream of its own host`() throws {
        let (api, shadow) = (try ScriptedUpstream(), try ScriptedUpstream())
        try withMartlet(Self.config(api, shadow.url, more: ", host: shadow.test")) { gateway throws in
            let caller = try HTTP2Caller(to: gateway)
            let streams = try (0..<20).map { try caller.ask("GET", "/\($0)") }
            for stream in streams { #expect(try caller.response(stream).status == 200) }
            try waitUntil("all copies arrive") { shadow.requests.count == 20 }
            #expect(shadow.requests.allSatisfy { $0["Host"] == "shadow.test" && $0.method == "GET" })
            #expect(Set(shadow.requests.map(\.target)) == Set((0..<20).map { "/\($0)" }))
        }
    }

    @Test func `a shadow with TLS is verified as its upstream says, over either version`() throws {
        let (api, behind, certificates) = (
            try ScriptedUpstream(), try ScriptedUpstream(), try TLSCertificates.shared.get()
        )
        // Another gateway, with ALPN.
        var shadow = GatewayConfig(endpoints: [behind.url], server: "workers: 1")
        shadow.listen = certificates.listener()
        let trust = "ca_file: \"\(certificates.authority.certificateFile)\""
        try withMartlet(shadow.text) { shadow throws in
            for (version, signature) in [("http1", "1.1"), ("h2", "2.0")] {
                let more = ", protocol: \(version), tls: { \(trust) }, host: shadow.test"
                try withMartlet(Self.config(api, "https://\(shadow.endpoint)", more: more)) { gateway throws in
                    #expect(try gateway.exchange("POST", "/\(version)", body: Array("text".utf8)).status == 200)
                    try waitUntil("the copy arrives") { behind.wholeRequests.last?.target == "/\(version)" }
                    let copy = try #require(behind.wholeRequests.last)
                    #expect(copy.text == "text" && copy["Host"] == "shadow.test" && copy["X-Mirrored"] == "1")
                    #expect(copy["Via"]?.contains(", \(signature) martlet-") == true, "\(copy)")
                }
            }
            try withMartlet(Self.config(api, "https://\(shadow.endpoint)")) { gateway throws in
                #expect(try gateway.get("/untrusted").status == 200)
                try waitUntil("the copy failed") { try count("failed", gateway) == 1 }
                #expect(!behind.requests.contains { $0.target == "/untrusted" })
            }
        }
    }

    @Test func `a shadow that is the gateway itself ends the loop`() throws {
        let (api, port) = (try ScriptedUpstream(), try refusedPort())
        var config = GatewayConfig(endpoints: [api.url], server: "workers: 1", routes: Self.route)
        config.listen = "- address: 127.0.0.1:\(port)"
        config.upstreams += "shadow: { endpoints: [\"http://127.0.0.1:\(port)\"] }\n"
        try withMartlet(config.text) { gateway throws in
            #expect(try gateway.get("/").status == 200)
            try waitUntil("the copy has come back") { try count("sent", gateway) == 1 }
            #expect(api.requests.count == 1)
            try waitUntil("it is in the log") { gateway.log.contains { $0["status"] == "508" } }
        }
    }

    @Test func `retries are no second copy, and what the gateway rejects or responds to is none`() throws {
        let (api, other, shadow) = (try ScriptedUpstream(), try ScriptedUpstream(), try ScriptedUpstream())
        api.respond { try $0.respond(503) }
        other.respond { try $0.respond(503) }
        var config = GatewayConfig(
            endpoints: [api.url, other.url], upstream: "retries: { attempts: 2, min_per_second: 100, backoff: 0s }",
            server: "workers: 1",
            routes: """
                - { name: moved, match: { path: /moved }, auth: none, redirect: { to: /x } }
                - { name: small, match: { path: /small }, auth: none, upstream: api, limits: { body_bytes: 1B }, mirror: { upstream: shadow } }
                - { name: none, match: { path: /none }, auth: none, upstream: api, mirror: { upstream: shadow, percent: 0 } }
                - { name: cors, match: { path: /cors }, auth: none, upstream: api, cors: { origins: ["https://a.test"] }, mirror: { upstream: shadow } }
                - { name: last, match: { path: /last }, auth: none, upstream: api, mirror: { upstream: shadow } }
                """)
        config.upstreams += "shadow: { endpoints: [\"\(shadow.url)\"] }\n"
        try withMartlet(config.text) { gateway throws in
            #expect(try gateway.get("/moved").status == 307)
            #expect(try gateway.exchange("POST", "/small", body: [1, 2]).status == 413)
            #expect(try gateway.get("/none").status == 503)
            let preflight = [("Origin", "https://a.test"), ("Access-Control-Request-Method", "GET")]
            #expect(try gateway.exchange("OPTIONS", "/cors", preflight).status == 204)
            #expect(try gateway.get("/nowhere").status == 404)
            #expect(try gateway.get("/last").status == 503)
            try waitUntil("the copy is counted") { try count("sent", gateway) == 1 }
            #expect(try shadow.onlyRequest().target == "/last")
            #expect(api.requests.count { $0.target == "/last" } + other.requests.count { $0.target == "/last" } == 3)
        }
    }

    // MARK: Shadows that do harm

    @Test func `a shadow that hangs delays nothing`() throws {
        let (api, hanging) = (try ScriptedUpstream(), try Listener(on: .loopback(0)))
        let config = Self.config(api, "http://\(hanging.endpoint)")
        try withMartlet(config) { gateway throws in
            let (client, caller) = (try gateway.connect(), try HTTP2Caller(to: gateway))
            let started = Stopwatch()
            for number in 0..<40 {
                #expect(try client.exchange("GET", "/\(number)").status == 200)
                #expect(try client.exchange("POST", "/\(number)", body: [1, 2, 3]).status == 200)
                #expect(try caller.response(caller.ask("GET", "/\(number)")).status == 200)
            }
            // The least that one of them would have waited is ten seconds.
            #expect(started.undisturbed < .seconds(9))
            #expect(try count("dropped", gateway) == 120 - 64 && count("sent", gateway) == 0)
            #expect(api.requests.count == 120)
        }
    }

    @Test func `a shadow that resets or is gone fails no request`() throws {
        let (api, shadow) = (try ScriptedUpstream(), try ScriptedUpstream { _ in throw TestFailure("reset") })
        try withMartlet(Self.config(api, shadow.url)) { gateway throws in
            let client = try gateway.connect()
            for number in 0..<10 { #expect(try client.exchange("POST", "/\(number)", body: [1]).status == 200) }
            try waitUntil("all copies failed") { try count("failed", gateway) == 10 }
            shadow.stop()
            for number in 0..<10 { #expect(try client.exchange("GET", "/\(number)").status == 200) }
            try waitUntil("all others failed, too") { try count("failed", gateway) == 20 }
            #expect(try count("dropped", gateway) == 0 && count("sent", gateway) == 0)
        }
    }

    @Test func `a reload begins and ends copies`() throws {
        let (api, shadow) = (try ScriptedUpstream(), try ScriptedUpstream())
        let with = Self.config(api, shadow.url)
        var plain = GatewayConfig(endpoints: [api.url], server: "workers: 1")
        plain.upstreams += "shadow: { endpoints: [\"\(shadow.url)\"] }\n"
        try withMartlet(plain.text) { gateway throws in
            func reload(_ text: String, _ number: Int) throws {
                try gateway.reload(text)
                try waitUntil("it is reloaded") {
                    try gateway.askAdmin("/metrics").text.contains(
                        "martlet_server_reloads_total{result=\"success\"} \(number)\n")
                }
            }
            #expect(try gateway.get("/before").status == 200)
            #expect(try !gateway.askAdmin("/metrics").text.contains("mirrored"))
            try reload(with, 1)
            try waitUntil("there are copies") {
                _ = try gateway.get("/with")
                return !shadow.requests.isEmpty
            }
            try reload(plain.text, 2)
            let client = try gateway.connect()
            #expect(try client.exchange("GET", "/after").status == 200)
            #expect(shadow.requests.allSatisfy { $0.target == "/with" })
        }
    }

    @Test func `a drained endpoint gets no copies, and an explanation names the mirror`() throws {
        let (api, shadows) = (try ScriptedUpstream(), [try ScriptedUpstream(), try ScriptedUpstream()])
        var config = GatewayConfig(endpoints: [api.url], server: "workers: 1", routes: Self.route)
        config.upstreams += "shadow: { endpoints: [\"\(shadows[0].url)\", \"\(shadows[1].url)\"] }\n"
        try withMartlet(config.text) { gateway throws in
            let body = Array("{\"endpoint\":\"\(shadows[0].url)\"}".utf8)
            let admin = try HTTPClient(to: gateway.operators)
            let drained = try admin.exchange(
                "POST", "/upstreams/shadow/drain", [("Content-Type", "application/json")], body: body)
            #expect(drained.status == 200, "\(drained)")
            for _ in 0..<6 { #expect(try gateway.get("/").status == 200) }
            try waitUntil("all copies are counted") { try count("sent", gateway) == 6 }
            #expect(shadows.map(\.requests.count) == [0, 6])
            let path = try gateway.folder.write(config.text, to: "explained.yaml")
            let page = try run(try Executable.martlet(), ["explain", "--config", path, "--path", "/a"])
            #expect(
                page.output.contains("mirror: shadow gets copies of 100% of the requests, without credentials"),
                "\(page)")
            let json = try run(try Executable.martlet(), ["explain", "--config", path, "--path", "/a", "--json"])
            #expect(
                json.output.contains("\"mirror\":{\"upstream\":\"shadow\",\"percent\":100}"), "\(json)")
        }
    }
}
