import MartletTesting
import Testing

/// Conditions on headers and parameters, rewrites, headers of both directions, and the timeout of routes.
@Suite struct `Route rules` {
    // MARK: Conditions

    private static let conditions = """
        - name: canary
          match: { path: /v1/**, headers: [{ name: X-Canary, equals: "1" }], query: [{ name: v, matches: "[2-9]" }] }
          auth: none
          headers: { set: { X-Route: { value: canary } } }
          upstream: api
        - name: maintenance
          match: { path: /v1/**, query: [{ name: maintenance, present: true }] }
          auth: none
          respond: { status: 503, body: soon }
        - name: closed
          match: { path: /v1/**, headers: [{ name: X-Closed, prefix: yes }] }
          auth: { providers: [apple] }
          upstream: api
        - { name: stable, match: { path: /v1/** }, auth: none, headers: { set: { X-Route: { value: stable } } }, upstream: api }
        """

    @Test func `a route is picked by the request's own headers and parameters`() throws {
        try withAppleGateway(routes: Self.conditions) { gateway, upstream, apple throws in
            let client = try gateway.connect()
            for (target, fields, route) in [
                ("/v1/a?v=2", [("x-canary", "1")], "canary"), ("/v1/a?v=1", [("X-Canary", "1")], "stable"),
                ("/v1/a?v=2", [("X-Canary", "2"), ("X-Canary", "1")], "stable"), ("/v1/a?v=2", [], "stable"),
                ("/v1/a?%76=%32", [("X-Canary", "1")], "canary"), ("/v1/a", [], "stable"),
            ] as [(String, [(String, String)], String)] {
                #expect(try client.exchange("GET", target, fields).status == 200)
                #expect(upstream.requests.last?["X-Route"] == route, "\(target) \(fields)")
            }
            let response = try client.exchange("GET", "/v1/a?x&maintenance")
            #expect(response.status == 503 && response.text == "soon")
            expectUnauthorized(try gateway.get("/v1/a", [("X-Closed", "yes, please")]), "credential_missing")
            let token = bearer(try apple.token())
            #expect(try gateway.get("/v1/a", token + [("X-Closed", "yes")]).status == 200)
        }
    }

    @Test func `a laxer route that any client can pick is a warning`() throws {
        let folder = try TemporaryFolder()
        let apple = try AppleFixture()
        let routes = """
            - { name: canary, match: { path: /**, headers: [{ name: X-A, present: true }] }, auth: none, upstream: api }
            - { name: rest, auth: { providers: [apple] }, upstream: api }
            """
        let config = GatewayConfig(endpoints: ["http://127.0.0.1:9"], providers: apple.provider(), routes: routes)
        let path = try folder.write(config.text, to: "config.yaml")
        let result = try run(try Executable.martlet(), ["check", "--config", path])
        #expect(result.description.contains("config.insecure"), "\(result)")
        #expect(result.description.contains("route 'canary' is picked by headers"), "\(result)")
    }

    // MARK: Rewrites

    @Test func `paths are rewritten in the order of the steps, and hosts`() throws {
        let routes = """
            - name: users
              match: { path: /v1/** }
              auth: none
              rewrite: { strip_prefix: /v1, regex: "/users/(.+)", to: "/u?id=$1", add_prefix: /api, host: internal.example }
              upstream: api
            - name: broken
              match: { path: /broken/** }
              auth: none
              rewrite: { regex: "/broken/(.*)", to: "/$1/x" }
              upstream: api
            - { name: stripped, match: { path: /s/** }, auth: none, rewrite: { strip_prefix: /s }, upstream: api }
            """
        try withOpenGateway(routes: routes) { gateway, upstream throws in
            let client = try gateway.connect()
            for (target, forwarded) in [
                ("/v1/users/a&b?c=d", "/api/u?id=a%26b&c=d"), ("/v1/%75sers/1", "/api/u?id=1"), ("/v1/x?c", "/api/x?c"),
                ("/v1", "/api"), ("/v1/", "/api/"), ("/v1/users/$1", "/api/u?id=%241"), ("/s/a?b", "/a?b"), ("/s", "/"),
                ("/broken/a", "/a/x"),
            ] {
                #expect(try client.exchange("GET", target).status == 200, "\(target)")
                #expect(upstream.requests.last?.target == forwarded, "\(target)")
                let host = upstream.requests.last?["Host"]
                #expect((host == "internal.example") == target.hasPrefix("/v1"), "\(target) \(host ?? "")")
            }
            let count = upstream.requests.count
            for target in ["/broken/", "/broken/a/"] {
                expectRejection(try client.exchange("GET", target), 400, "request_invalid", target)
            }
            #expect(upstream.requests.count == count)
            try waitUntil("both are in the log") {
                gateway.log.count { $0["reason"] == "router.bad_rewrite" } == 2
            }
        }
    }

    // MARK: Headers

    @Test func `constants are reserved, and responses have the route's headers`() throws {
        let routes = """
            - name: api
              match: { path: /api/** }
              auth: { providers: [apple] }
              headers:
                set: { X-Env: { value: prod } }
                response: { set: { X-Frame-Options: DENY, Cache-Control: no-cache }, remove: [Server] }
              upstream: api
            - { name: rest, auth: none, upstream: api }
            """
        let script: ScriptedUpstream.Script = {
            try $0.respond(200, [("Server", "a"), ("cache-control", "public"), ("X-Other", "b")], body: "ok")
        }
        try withAppleGateway(routes: routes, script: script) { gateway, upstream, apple throws in
            let token = bearer(try apple.token())
            let response = try gateway.get("/api/x", token + [("X_Env", "evil"), ("X-Env", "evil")])
            #expect(response.status == 200 && response.text == "ok" && response["X-Other"] == "b")
            #expect(response["X-Frame-Options"] == "DENY" && response["Server"] == nil)
            #expect(response["Cache-Control"] == "no-cache")
            let request = try #require(upstream.requests.last)
            #expect(request["X-Env"] == "prod" && request["X_Env"] == nil && request["X-Auth-Subject"] != nil)
            let refused = try gateway.get("/api/x")
            expectUnauthorized(refused, "credential_missing")
            #expect(refused["X-Frame-Options"] == "DENY" && refused["Cache-Control"] == "no-store")
            let other = try gateway.get("/x", [("X-Env", "evil")])
            #expect(other["X-Frame-Options"] == nil && other["Server"] == "a")
            #expect(upstream.requests.last?["X-Env"] == nil)
            let caller = try HTTP2Caller(to: gateway)
            let framed = try caller.response(caller.ask("GET", "/api/x", token))
            let head = framed.head.lowercased()
            #expect(framed.body == "ok" && head.contains("x-frame-options: deny\r\n") && !head.contains("server:"))
        }
    }

    // MARK: The timeout

    @Test func `a route's timeout ends a request whose response does not come`() throws {
        let routes = """
            - { name: slow, match: { path: /slow/** }, auth: none, timeout: 400ms, upstream: api }
            - { name: rest, auth: none, upstream: api }
            """
        let script: ScriptedUpstream.Script = { exchange in
            if exchange.request.target == "/slow/head" { pause(.seconds(3)) }
            try exchange.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n")
            if exchange.request.target == "/slow/body" { pause(.seconds(1)) }
            try exchange.send("ok")
        }
        try withOpenGateway(routes: routes, script: script) { gateway, _ throws in
            let client = try gateway.connect()
            expectRejection(try client.exchange("GET", "/slow/head"), 504, "upstream_timeout")
            #expect(try client.exchange("GET", "/slow/body").text == "ok")
            #expect(try client.exchange("GET", "/other").text == "ok")
            try waitUntil("it is in the log") {
                gateway.log.contains { $0["reason"] == "route.timed_out" && $0["route"] == "slow" }
            }
            try client.send("POST", "/slow/x", [("Content-Length", "5")])
            try client.send("he")
            #expect([408, 504].contains(try client.response().status))
        }
    }
}
