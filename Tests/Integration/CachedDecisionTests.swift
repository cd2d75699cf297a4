import MartletTesting
import Testing

/// A cached decision holds for the same token, provider and configuration, and for nothing else.
@Suite struct `Cached decisions` {
    /// Two simulated Apples with issuers of their own, each with a route that trusts it alone, and one for both.
    ///
    /// The second one signs with `key`.
    static func withTwoIssuers(
        key: SigningKey? = nil, _ body: (Gateway, AppleFixture, AppleFixture) throws -> Void
    ) throws {
        let first = try AppleFixture()
        let second = try AppleFixture()
        second.setKeys([try key ?? SigningKey("second")])
        let upstream = try ScriptedUpstream()
        let providers =
            first.provider()
            + "second:\n  kind: apple\n  audiences: [com.example.app]\n  issuers: [\"https://second.test\"]\n  jwks_url: \(second.url)\n"
        let routes = """
            - { name: one, match: { path: /one }, auth: { providers: [apple] }, upstream: api }
            - { name: two, match: { path: /two }, auth: { providers: [second] }, upstream: api }
            - { name: both, match: { path: /both }, auth: { providers: [apple, second] }, upstream: api }
            """
        let config = GatewayConfig(endpoints: [upstream.url], providers: providers, routes: routes)
        try withMartlet(config.text) { try body($0, first, second) }
    }

    @Test func `a token that one provider proved does not open a route of another`() throws {
        try Self.withTwoIssuers { gateway, first, _ throws in
            let token = try first.token()
            let client = try gateway.connect()
            for _ in 0..<5 {
                #expect(try client.exchange("GET", "/one", bearer(token)).status == 200)
                #expect(try client.exchange("GET", "/both", bearer(token)).status == 200)
                expectUnauthorized(try client.exchange("GET", "/two", bearer(token)), "credential_invalid")
            }
        }
    }

    @Test func `a key of one issuer signs nothing for another`() throws {
        let key = try SigningKey("second")
        try Self.withTwoIssuers(key: key) { gateway, first, _ throws in
            var token = Token(kid: "second")
            token.claims["iss"] = "\"https://second.test\""
            #expect(try gateway.get("/two", bearer(token.signed(by: key))).status == 200)
            // The second issuer's key under the first one's name, and the other way round.
            expectUnauthorized(
                try gateway.get("/both", bearer(Token(kid: "second").signed(by: key))), "credential_invalid")
            token.header["kid"] = JSONText(string: first.key.identifier)
            expectUnauthorized(try gateway.get("/both", bearer(token.signed(by: first.key))), "credential_invalid")
        }
    }

    @Test func `a token that differs in one byte is another token`() throws {
        try withAppleGateway { gateway, upstream, apple throws in
            let token = try apple.token()
            #expect(try gateway.get("/v1", bearer(token)).status == 200)
            let client = try gateway.connect()
            var bytes = Array(token.utf8)
            for index in stride(from: 0, to: bytes.count, by: 41) {
                let original = bytes[index]
                bytes[index] = original == 65 ? 66 : 65
                let response = try client.exchange("GET", "/v1", bearer(String(decoding: bytes, as: UTF8.self)))
                #expect(response.status == 401, "byte \(index)")
                bytes[index] = original
            }
            #expect(upstream.requests.count == 1)
        }
    }

    @Test func `a reload verifies every token anew`() throws {
        let apple = try AppleFixture()
        let upstream = try ScriptedUpstream()
        var config = GatewayConfig(endpoints: [upstream.url], providers: apple.provider(), routes: GatewayConfig.closed)
        try withMartlet(config.text) { gateway throws in
            let token = try apple.token()
            let client = try gateway.connect()
            #expect(try client.exchange("GET", "/v1", bearer(token)).status == 200)
            config.providers = apple.provider().replacing("com.example.app", with: "com.example.other")
            try gateway.reload(config.text)
            try waitUntil("the new audience holds") { try client.exchange("GET", "/v1", bearer(token)).status == 401 }
            config.providers = apple.provider()
            try gateway.reload(config.text)
            try waitUntil("the old audience is back") { try client.exchange("GET", "/v1", bearer(token)).status == 200 }
        }
    }

    @Test func `cached or not, each route evaluates its own conditions`() throws {
        let routes = """
            - name: verified
              match: { path: /verified }
              auth: { providers: [apple] }
              authorize: [{ claim: email_verified, equals: true }]
              upstream: api
            - { name: any, match: { path: /any }, auth: { providers: [apple] }, upstream: api }
            """
        try withAppleGateway(routes: routes) { gateway, _, apple throws in
            let token = try apple.token { $0.claims["email_verified"] = "false" }
            let client = try gateway.connect()
            for _ in 0..<3 {
                #expect(try client.exchange("GET", "/any", bearer(token)).status == 200)
                expectRejection(try client.exchange("GET", "/verified", bearer(token)), 403, "not_allowed")
            }
        }
    }

    /// How many verifications there were, over the life of the gateway.
    private func verifications(_ gateway: Gateway) throws -> String {
        let lines = try gateway.askAdmin("/metrics").text.split(separator: "\n")
        return String(lines.first { $0.hasPrefix("martlet_proxy_token_misses_total ") }?.split(separator: " ")[1] ?? "")
    }

    @Test func `a token is verified once, by whichever route it comes`() throws {
        let routes = """
            - { name: one, match: { path: /one }, auth: { providers: [apple] }, upstream: api }
            - { name: two, match: { path: /two }, auth: { providers: [apple] }, upstream: api }
            """
        try withAppleGateway(routes: routes, server: "workers: 1") { gateway, _, apple throws in
            for number in 1...3 {
                let token = try apple.token(subject: "person-\(number)")
                for path in ["/one", "/two", "/one", "/two"] {
                    #expect(try gateway.get(path, bearer(token)).status == 200)
                }
                #expect(try verifications(gateway) == "\(number)")
            }
        }
    }

    @Test func `a token is verified once, though its only route decides anew`() throws {
        let routes = """
            - name: fresh
              match: { path: /** }
              auth: { providers: [apple] }
              authorize: [{ max_age: 2s }]
              upstream: api
            """
        try withAppleGateway(routes: routes, server: "workers: 1") { gateway, _, apple throws in
            let token = try apple.token()
            for _ in 0..<3 { #expect(try gateway.get("/", bearer(token)).status == 200) }
            try waitUntil("it is too old") { try gateway.get("/", bearer(token)).status == 401 }
            for _ in 0..<3 { expectRejection(try gateway.get("/", bearer(token)), 401, "reauthentication_required") }
            #expect(try verifications(gateway) == "1")
        }
    }

    @Test func `callers on one connection are distinguished`() throws {
        try withAppleGateway { gateway, upstream, apple throws in
            let client = try gateway.connect()
            let tokens = try (0..<5).map { try apple.token(subject: "person-\($0)") }
            for round in 0..<4 {
                for (index, token) in tokens.enumerated() {
                    _ = try client.exchange("GET", "/v1/\(round)", bearer(token))
                    #expect(upstream.requests.last?["X-Auth-Subject"] == "apple:person-\(index)")
                }
                expectUnauthorized(try client.exchange("GET", "/v1"), "credential_missing")
                #expect(try client.exchange("GET", "/public/a").status == 200)
                #expect(upstream.requests.last?["X-Auth-Subject"] == nil)
            }
        }
    }

    @Test func `pipelined requests of several callers keep their callers`() throws {
        let script: ScriptedUpstream.Script = { try $0.respond(200, body: $0.request["X-Auth-Subject"] ?? "nobody") }
        try withAppleGateway(script: script) { gateway, _, apple throws in
            let client = try gateway.connect()
            var text = ""
            var expected: [String] = []
            for index in 0..<12 {
                let isPublic = index % 3 == 2
                let token = try apple.token(subject: "p\(index)")
                text += "GET /\(isPublic ? "public/" : "")\(index) HTTP/1.1\r\nHost: a\r\n"
                text += (isPublic ? "" : "Authorization: Bearer \(token)\r\n") + "\r\n"
                expected.append(isPublic ? "nobody" : "apple:p\(index)")
            }
            try client.send(text)
            for value in expected { #expect(try client.response().text == value) }
        }
    }

    @Test func `in a burst of new tokens, more than the loop verifies itself, each gets its own result`() throws {
        let script: ScriptedUpstream.Script = { try $0.respond(200, body: $0.request["X-Auth-Subject"] ?? "nobody") }
        let forger = try SigningKey("forger")
        try withAppleGateway(script: script) { gateway, _, apple throws in
            // One good token after another, every fourth of them signed by another issuer.
            let tokens = try (0..<160).map { index in
                let token = Token(kid: apple.key.identifier, subject: "b\(index)")
                return try token.signed(by: index % 4 == 3 ? forger : apple.key)
            }
            for _ in 0..<2 {
                let clients = try tokens.map { _ in try gateway.connect() }
                for (client, token) in zip(clients, tokens) {
                    try client.send("GET /v1 HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer \(token)\r\n\r\n")
                }
                for (index, client) in clients.enumerated() {
                    let response = try client.response()
                    if index % 4 == 3 {
                        expectUnauthorized(response, "credential_invalid")
                    } else {
                        #expect(response.text == "apple:b\(index)")
                    }
                }
            }
            let counted = "martlet_proxy_refusals_total{reason=\"apple.bad_signature\"} 80\n"
            #expect(try gateway.askAdmin("/metrics").text.contains(counted))
        }
    }

    @Test func `two providers that claim one issuer on one route are a configuration error`() throws {
        let apple = try AppleFixture()
        let provider = apple.provider()
        let config = GatewayConfig(
            endpoints: ["http://127.0.0.1:9"], providers: provider + provider.replacing("apple:\n", with: "again:\n"),
            routes: "- { name: a, match: { path: /** }, auth: { providers: [apple, again] }, upstream: api }")
        let folder = try TemporaryFolder()
        let path = try folder.write(config.text, to: "config.yaml")
        #expect(try run(Executable.martlet(), ["check", "--config", path]).ending == .exited(78))
    }
}
