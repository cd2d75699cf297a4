import MartletTesting
import Testing

/// Routes that require a recent or a stronger authentication (RFC 9470).
@Suite(.timeLimit(.minutes(3))) struct `Step-up` {
    private static let routes = """
        - name: fresh
          match: { path: /fresh/** }
          auth: { providers: [apple, password] }
          authorize: [{ max_age: 8s }]
          upgrade: { websocket: true }
          upstream: api
        - name: strong
          match: { path: /strong/** }
          auth: { providers: [apple, password] }
          authorize:
            - { claim: email, exists: false }
            - { acr: "urn:mfa" }
            - { max_age: 1h }
          upstream: api
        - { name: all, match: { path: /** }, auth: { providers: [apple, password] }, upstream: api }
        """
    private static let challenge =
        #"Bearer realm="martlet", error="insufficient_user_authentication", "#
        + #"error_description="More recent authentication is required", max_age=8"#
    private static let proof = [
        "provider": "password", "username": "alice", "password": SignInStage.password,
    ]

    @Test func `an old session is challenged, and satisfied by another proof`() throws {
        try withSignIn(server: "workers: 3", routes: Self.routes) { stage in
            let tokens = try stage.passwordLogin()
            let clients = try (0..<6).map { _ in try stage.gateway.connect() }
            for client in clients {
                #expect(try client.exchange("GET", "/fresh/a", bearer(tokens.access)).status == 200)
            }
            pause(.milliseconds(8200))
            for client in clients {
                let response = try client.exchange("GET", "/fresh/a", bearer(tokens.access))
                #expect(response.status == 401 && response.member("code") == "reauthentication_required")
                #expect(response.object["max_age"] as? Int == 8)
                #expect(response.all("WWW-Authenticate").first == Self.challenge)
                #expect(try client.exchange("GET", "/b", bearer(tokens.access)).status == 200)
            }
            try waitUntil("the condition is logged") {
                stage.gateway.log.contains {
                    $0["condition"] == "authorize[0] max_age" && $0["subject"] == tokens.subject
                        && $0["reason"] == "policy.authentication_too_old"
                }
            }
            // A refresh is no authentication.
            let refreshed = try Tokens(stage.post("/auth/refresh", ["refresh_token": tokens.refresh]))
            #expect(try stage.gateway.get("/fresh/a", bearer(refreshed.access)).status == 401)
            #expect(try stage.post("/auth/reauthenticate", bearer: tokens.access, Self.proof).status == 200)
            for client in clients {
                #expect(try client.exchange("GET", "/fresh/a", bearer(tokens.access)).status == 200)
            }
            #expect(try stage.gateway.get("/fresh/a", bearer(refreshed.access)).status == 200)
        }
    }

    @Test func `a level that no provider states is never there`() throws {
        try withSignIn(routes: Self.routes) { stage in
            let tokens = try stage.passwordLogin()
            for _ in 0..<2 {
                let response = try stage.gateway.get("/strong/a", bearer(tokens.access))
                #expect(response.status == 401)
                #expect(
                    response.all("WWW-Authenticate").first
                        == #"Bearer realm="martlet", error="insufficient_user_authentication", "#
                        + #"error_description="A different authentication level is required", acr_values="urn:mfa""#)
                #expect(try stage.post("/auth/reauthenticate", bearer: tokens.access, Self.proof).status == 200)
            }
            // What another authentication cannot mend is 403.
            let apple = try stage.gateway.get("/strong/a", bearer(stage.apple.token()))
            expectRejection(apple, 403, "not_allowed")
        }
    }

    @Test func `HTTP/2 and gRPC callers are challenged, too`() throws {
        try withSignIn(routes: Self.routes) { stage in
            let tokens = try stage.passwordLogin()
            pause(.milliseconds(8200))
            let peer = try HTTP2Peer(to: stage.gateway.endpoint)
            let authorization = "Authorization: Bearer \(tokens.access)"
            let request = ["GET /fresh/a HTTP/1.1", "Host: a", authorization]
            let plain = try peer.outcome(of: try peer.request(request, ends: true))
            #expect(plain.head.hasPrefix("HTTP/1.1 401") && plain.value(of: "www-authenticate") == Self.challenge)
            let called = try peer.outcome(of: try peer.request(call("/fresh/Echo", [authorization]), ends: true))
            #expect(called.value(of: "grpc-status") == "16" && called.value(of: "www-authenticate") == Self.challenge)
            #expect(try stage.post("/auth/reauthenticate", bearer: tokens.access, Self.proof).status == 200)
            let after = try peer.outcome(of: try peer.request(request, ends: true))
            #expect(after.head.hasPrefix("HTTP/1.1 200"))
        }
    }

    @Test func `satisfaction at one instance counts at the others within a second`() throws {
        let redis = try RedisServer()
        let more = "store: { url: \"\(redis.url)\" }\nsessions: { cache_ttl: 60s }"
        try withSignIn(server: "workers: 2", routes: Self.routes, more: more) { stage in
            let other = try stage.startAnother()
            let tokens = try stage.passwordLogin()
            pause(.milliseconds(8200))
            let clients = try (0..<4).flatMap { _ in try [stage.gateway.connect(), other.connect()] }
            func statuses() throws -> Set<Int> {
                Set(try clients.map { try $0.exchange("GET", "/fresh/a", bearer(tokens.access)).status })
            }
            #expect(try statuses() == [401])
            #expect(try stage.post("/auth/reauthenticate", bearer: tokens.access, Self.proof).status == 200)
            #expect(try stage.gateway.get("/fresh/a", bearer(tokens.access)).status == 200)
            try waitUntil("all loops allow it", within: .seconds(1)) { try statuses() == [200] }
            try other.stop()
        }
    }

    @Test func `explain tells about it in the words of the log`() throws {
        try withSignIn(routes: Self.routes) { stage in
            let folder = try TemporaryFolder()
            let caller = #"{"subject":"usr_1","provider":"password","claims":{},"auth_time":1000,"issued_at":2000}"#
            let file = try folder.write(caller, to: "caller.json")
            let path = try folder.write(stage.configuration, to: "config.yaml")
            let result = try run(
                try Executable.martlet(),
                ["explain", "--config", path, "--path", "/fresh/a", "--as", file])
            #expect(result.output.contains("FAIL authorize[0] max_age"), "\(result)")
            #expect(result.output.contains("condition: authorize[0] max_age"))
            #expect(result.output.contains(Self.challenge))
            #expect(result.ending == .exited(1))
        }
    }
}
