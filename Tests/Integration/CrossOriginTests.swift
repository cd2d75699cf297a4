import MartletJSON
import MartletTesting
import Testing

/// Pages of other origins: preflights, and what responses tell them.
@Suite struct `Cross-origin requests` {
    private static let page = ("Origin", "https://app.example.com")
    private static let below = ("Origin", "https://a.b.pages.example")
    private static let foreign = ("Origin", "https://evil.example")

    private static let routes = """
        - name: api
          match: { path: /v1/**, methods: [GET, POST] }
          auth: { providers: [apple] }
          cors:
            origins: [https://app.example.com, "https://*.pages.example"]
            methods: [GET, POST, DELETE]
            headers: [authorization, content-type]
            expose: [x-request-id]
            credentials: true
            max_age: 10m
          headers: { response: { set: { X-Frame-Options: DENY } } }
          upstream: api
        - { name: maybe, match: { path: /maybe/** }, auth: { mode: optional, providers: [apple] }, cors: { origins: ["*"] }, upstream: api }
        - { name: old, match: { path: /old/** }, auth: none, cors: { origins: ["*"] }, redirect: { to: "/new$path" } }
        - { name: closed, match: { path: /closed/** }, auth: none, cors: { origins: ["*"] }, respond: { status: 503, body: soon } }
        - { name: dead, match: { path: /dead/** }, auth: none, cors: { origins: ["*"] }, upstream: dead }
        - name: limited
          match: { path: /limited/** }
          auth: { providers: [apple] }
          cors: { origins: ["*"] }
          limits: { rate: [per_address, per_person] }
          upstream: api
        - { name: rest, match: { path: /rest/** }, auth: none, upstream: api }
        """
    private static let more = """
        rate_limits:
          per_address: { key: address, rate: 3/h }
          per_person: { key: subject, rate: 1/h }

        """

    private static func withGateway(
        script: @escaping ScriptedUpstream.Script = { try $0.respond(200, body: "ok") },
        _ body: (Gateway, ScriptedUpstream, AppleFixture) throws -> Void
    ) throws {
        let apple = try AppleFixture()
        let upstream = try ScriptedUpstream(script)
        var config = GatewayConfig(endpoints: [upstream.url], providers: apple.provider(), routes: routes)
        config.more = more
        let text = config.text.replacing(
            "upstreams:\n", with: "upstreams:\n  dead: { endpoints: [unix:/nonexistent/socket] }\n")
        try withMartlet(text) { try body($0, upstream, apple) }
    }

    private static func asking(_ method: String, _ headers: String? = nil) -> [(String, String)] {
        [("Access-Control-Request-Method", method)] + (headers.map { [("Access-Control-Request-Headers", $0)] } ?? [])
    }

    private static func isReadable(_ response: HTTPMessage, by origin: String = "*") -> Bool {
        response["Access-Control-Allow-Origin"] == origin && response["Vary"]?.contains("Origin") == true
    }

    @Test func `preflights need no credential and reach no upstream`() throws {
        try Self.withGateway { gateway, upstream, _ throws in
            let client = try gateway.connect()
            for method in ["GET", "POST", "DELETE", "PUT", "patch"] {
                let fields = [Self.below] + Self.asking(method, "authorization, x-unknown")
                let response = try client.exchange("OPTIONS", "/v1/a", fields)
                #expect(response.status == 204 && response.text.isEmpty, "\(response)")
                #expect(Self.isReadable(response, by: Self.below.1), "\(response)")
                #expect(response["Access-Control-Allow-Methods"] == "GET, POST, DELETE")
                #expect(response["Access-Control-Allow-Headers"] == "authorization, content-type")
                #expect(response["Access-Control-Allow-Credentials"] == "true")
                #expect(response["Access-Control-Max-Age"] == "600" && response["X-Frame-Options"] == "DENY")
            }
            let foreign = try client.exchange("OPTIONS", "/v1/a", [Self.foreign] + Self.asking("GET"))
            #expect(foreign.status == 204 && foreign["Vary"] == "Origin", "\(foreign)")
            #expect(!foreign.fields.contains { $0.name.lowercased().hasPrefix("access-control") })
            for path in ["/maybe/a", "/old/a", "/closed/a", "/dead/a"] {
                let response = try client.exchange("OPTIONS", path, [Self.foreign] + Self.asking("GET"))
                #expect(response.status == 204 && Self.isReadable(response), "\(path) \(response)")
            }
            #expect(upstream.requests.isEmpty)
            expectUnauthorized(try client.exchange("GET", "/v1/a", [Self.page]), "credential_missing")
            let plain = try client.exchange("OPTIONS", "/rest", [Self.page] + Self.asking("GET"))
            #expect(plain.status == 200 && plain["Access-Control-Allow-Origin"] == nil && plain["Vary"] == nil)
            #expect(upstream.requests.count == 1)
            let framed = try HTTP2Caller(to: gateway)
            let response = try framed.response(framed.ask("OPTIONS", "/v1/a", [Self.page] + Self.asking("GET")))
            let head = response.head.lowercased()
            #expect(head.contains(" 204") && head.contains("access-control-allow-origin: https://app.example.com\r\n"))
            try waitUntil("they are in the log") {
                gateway.log.count { $0["route"] == "api" && $0["status"] == "204" } == 7
            }
        }
    }

    @Test func `an upstream's own fields are replaced`() throws {
        let script: ScriptedUpstream.Script = {
            try $0.respond(
                200,
                [
                    ("access-control-allow-origin", "*"), ("Access-Control-Allow-Credentials", "true"),
                    ("Access-Control-Expose-Headers", "X-Secret"), ("Vary", "Accept"), ("X-Other", "b"),
                ], body: "ok")
        }
        try Self.withGateway(script: script) { gateway, _, apple throws in
            let token = bearer(try apple.token())
            let response = try gateway.get("/v1/a", token + [Self.page])
            #expect(response.status == 200 && response.text == "ok" && response["X-Other"] == "b", "\(response)")
            #expect(response["Access-Control-Expose-Headers"] == "x-request-id")
            #expect(response.fields.count { $0.name.lowercased() == "access-control-allow-origin" } == 1)
            #expect(response["Access-Control-Allow-Origin"] == Self.page.1)
            #expect(response.fields.filter { $0.name == "Vary" }.map(\.value) == ["Accept", "Origin"])
            for fields in [[Self.foreign], []] {
                let foreign = try gateway.get("/v1/a", token + fields)
                #expect(foreign.status == 200 && foreign.fields.contains { $0.name == "Vary" && $0.value == "Origin" })
                #expect(!foreign.fields.contains { $0.name.lowercased().hasPrefix("access-control") }, "\(foreign)")
            }
            let other = try gateway.get("/rest", [Self.page])
            #expect(other["Access-Control-Allow-Origin"] == "*" && other["Access-Control-Expose-Headers"] == "X-Secret")
        }
    }

    @Test func `responses of the gateway itself can be read`() throws {
        try Self.withGateway { gateway, _, apple throws in
            let bad = try gateway.get("/v1/a", bearer("ey.x.y") + [Self.page])
            expectRejection(bad, 401, "credential_invalid")
            #expect(Self.isReadable(bad, by: Self.page.1) && bad["Retry-After"] == nil)
            #expect(bad["Access-Control-Expose-Headers"] == "x-request-id, Retry-After, WWW-Authenticate")
            for (path, status) in [("/old/a", 307), ("/closed/a", 503), ("/dead/a", 502), ("/limited/a", 401)] {
                let response = try gateway.get(path, [Self.foreign])
                #expect(response.status == status && Self.isReadable(response), "\(path) \(response)")
            }
            for (path, method) in [("/v1/../x", "GET"), ("/v1/a", "PUT")] {
                let response = try gateway.exchange(method, path, [Self.page])
                #expect(response.status >= 400 || path == "/v1/a", "\(response)")
                #expect(response["Access-Control-Allow-Origin"] == nil && response["Vary"] == nil, "\(path)")
            }
        }
    }

    @Test func `preflights count by address, not by caller`() throws {
        try Self.withGateway { gateway, _, apple throws in
            let client = try gateway.connect()
            let token = bearer(try apple.token())
            #expect(try client.exchange("GET", "/limited/a", token + [Self.page]).status == 200)
            for _ in 0..<2 {
                let preflight = try client.exchange("OPTIONS", "/limited/a", [Self.page] + Self.asking("GET"))
                #expect(preflight.status == 204, "\(preflight)")
            }
            for (method, fields) in [("OPTIONS", [Self.page] + Self.asking("GET")), ("GET", token + [Self.page])] {
                let throttled = try client.exchange(method, "/limited/a", fields)
                expectRejection(throttled, 429, "throttled")
                #expect(Self.isReadable(throttled) && throttled["Retry-After"] != nil, "\(throttled)")
            }
        }
    }

    @Test func `a page of a named origin may use the session of a cookie's owner only where the route says so`() throws
    {
        let routes = """
            - { name: shared, match: { path: /shared/** }, auth: { providers: [apple] }, cors: { origins: [https://app.example.com], credentials: true }, upstream: api }
            - { name: own, auth: { providers: [apple] }, upstream: api }
            """
        let more = "sessions: { access_ttl: 5m }\nbrowser: { origin: \"http://127.0.0.1:1\" }\n"
        try withAppleGateway(routes: routes, more: more) { gateway, _, _ throws in
            let cookie = [("Cookie", "martlet=mct_unknown"), Self.page]
            let shared = try gateway.exchange("POST", "/shared/a", cookie, body: [])
            expectRejection(shared, 401, "credential_invalid")
            #expect(shared["Access-Control-Allow-Credentials"] == "true")
            expectRejection(try gateway.exchange("POST", "/own/a", cookie, body: []), 403, "cross_site")
            let command = [
                "explain", "--admin", "http://\(gateway.admin)", "--path", "/own/a", "--header",
                "Cookie: martlet=mct_unknown",
            ]
            func explain(_ arguments: String...) throws -> String {
                try run(Executable.martlet(), command + arguments).output
            }
            #expect(try explain().contains("401 credential_invalid"))
            #expect(try explain("--method", "POST", "--header", "Origin: https://x.example").contains("403 cross_site"))
            let two = try explain("--header", "Authorization: Bearer a")
            #expect(two.contains("400 request_invalid") && !two.contains("mct_unknown"), "\(two)")
            let foreign = [("Cookie", "martlet=mct_unknown"), Self.foreign]
            expectRejection(try gateway.exchange("POST", "/shared/a", foreign, body: []), 403, "cross_site")
        }
    }

    @Test func `an explanation has the fields`() throws {
        let apple = try AppleFixture()
        let folder = try TemporaryFolder()
        var config = GatewayConfig(endpoints: ["http://127.0.0.1:9"], providers: apple.provider(), routes: Self.routes)
        config.more = Self.more
        let text = config.text.replacing(
            "upstreams:\n", with: "upstreams:\n  dead: { endpoints: [unix:/nonexistent/socket] }\n")
        let path = try folder.write(text, to: "config.yaml")
        func explain(_ arguments: String...) throws -> CommandResult {
            try run(try Executable.martlet(), ["explain", "--config", path] + arguments)
        }
        let preflight = try explain(
            "--method", "OPTIONS", "--path", "/v1/a", "--header", "Origin: https://app.example.com", "--header",
            "Access-Control-Request-Method: DELETE")
        #expect(preflight.ending == .exited(0), "\(preflight)")
        for line in [
            "api matches", "sets Access-Control-Allow-Methods: GET, POST, DELETE, by cors",
            "before authentication: 204",
            "pages of its origin may use the route",
        ] {
            #expect(preflight.output.contains(line), "\(line) \(preflight)")
        }
        let rejected = try explain("--path", "/v1/a", "--header", "Origin: https://evil.example", "--json")
        #expect(rejected.ending == .exited(1) && rejected.output.contains(#""cors":["Vary: Origin"]"#), "\(rejected)")
    }
}
