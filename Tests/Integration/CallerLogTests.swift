import MartletTesting
import Testing

/// Who is named in the access log, and why they were rejected.
@Suite(.timeLimit(.minutes(2))) struct `The access log` {
    private static let routes = """
        - { name: public, match: { path: /public/** }, auth: none, upstream: api }
        - name: staff
          match: { path: /staff/** }
          auth: { providers: [apple, password] }
          authorize:
            - { claim: nothing, exists: false }
            - any: [{ claim: staff, equals: true }, { claim: role, equals: admin }]
          upstream: api
        - { name: all, match: { path: /** }, auth: { providers: [apple, password] }, upstream: api }
        """

    private func line(_ gateway: Gateway, of response: HTTPMessage) throws -> LogLine {
        let identifier = response["X-Request-Id"] ?? "none"
        try waitUntil("the line is there") {
            gateway.log.contains { $0["request_id"] == identifier && $0["event"] == "request" }
        }
        return try #require(gateway.log.first { $0["request_id"] == identifier && $0["event"] == "request" })
    }

    @Test func `names the caller of every request that was decided`() throws {
        try withSignIn(routes: Self.routes) { stage in
            let login = try stage.post(
                "/auth/login/password", ["username": "alice", "password": SignInStage.password])
            let tokens = try Tokens(login)
            let named = try line(stage.gateway, of: login)
            #expect(named["subject"] == tokens.subject && named["session_id"] == tokens.session)
            // Verified, cached, forbidden, cached again.
            for (path, status) in [("/a", 200), ("/a", 200), ("/staff/a", 403), ("/staff/a", 403)] {
                let response = try stage.gateway.get(path, bearer(tokens.access))
                #expect(response.status == status)
                let line = try line(stage.gateway, of: response)
                #expect(line["subject"] == tokens.subject && line["session_id"] == tokens.session)
                let condition = status == 403 ? "authorize[1] any (staff, role)" : nil
                #expect(line["condition"] == condition)
            }
            // A direct credential has no session; a public route and a bad token have no one.
            let direct = try stage.gateway.get("/a", bearer(stage.apple.token()))
            let apple = try line(stage.gateway, of: direct)
            #expect(apple["subject"]?.hasPrefix("usr_") == true && apple["session_id"] == "")
            for response in [
                try stage.gateway.get("/public/a"), try stage.gateway.get("/a"),
                try stage.gateway.get("/a", bearer(tokens.access + "x")),
            ] {
                let line = try line(stage.gateway, of: response)
                #expect(line["subject"] == nil && line["session_id"] == nil && line["condition"] == nil)
            }
            #expect(!stage.gateway.everything.contains(tokens.access))
        }
    }

    @Test func `names the callers of the sign-in endpoints`() throws {
        try withSignIn(users: ["alice"]) { stage in
            let tokens = try stage.passwordLogin()
            let refresh = try stage.post("/auth/refresh", ["refresh_token": tokens.refresh])
            let access = try Tokens(refresh).access
            let wrong = ["current_password": "wrong", "new_password": "a long new one"]
            let responses = [
                refresh, try stage.send("GET", "/auth/session", bearer: access),
                try stage.post("/auth/password", bearer: access, wrong),
                try stage.send("DELETE", "/auth/sessions/ses_0", bearer: access),
                try stage.send("POST", "/auth/logout", bearer: access),
            ]
            #expect(responses.map(\.status) == [200, 200, 401, 404, 204])
            for response in responses {
                let line = try line(stage.gateway, of: response)
                #expect(line["subject"] == tokens.subject && line["session_id"] == tokens.session, "\(line)")
            }
            // A user who is known is named where the password is not theirs.
            let attempt = try stage.post("/auth/login/password", ["username": "alice", "password": "wrong"])
            let named = try line(stage.gateway, of: attempt)
            #expect(named["subject"] == tokens.subject && named["session_id"]?.isEmpty != false, "\(named)")
            for response in [
                try stage.post("/auth/login/password", ["username": "bob", "password": "wrong"]),
                try stage.post("/auth/refresh", ["refresh_token": "mrt_x"]), try stage.post("/auth/nonce"),
            ] {
                #expect(try line(stage.gateway, of: response)["subject"] == nil)
            }
        }
    }

    @Test func `names callers of HTTP/2 streams apart`() throws {
        try withAppleGateway { gateway, _, apple throws in
            let peer = try HTTP2Peer(to: gateway.endpoint)
            let people = try (0..<4).map { ($0, try apple.token(subject: "person-\($0)")) }
            for _ in 0..<3 {
                let streams = try people.map { _, token in
                    try peer.request(["GET /closed HTTP/1.1", "Host: a", "Authorization: Bearer \(token)"], ends: true)
                }
                for (stream, person) in zip(streams, people) {
                    let identifier = try peer.outcome(of: stream).value(of: "x-request-id") ?? "none"
                    try waitUntil("the line is there") { gateway.log.contains { $0["request_id"] == identifier } }
                    let line = gateway.log.first { $0["request_id"] == identifier }
                    #expect(line?["subject"] == "apple:person-\(person.0)")
                }
            }
        }
    }

    @Test func `has hashes of subjects, or none, as configured, after a reload too`() throws {
        let apple = try AppleFixture()
        let upstream = try ScriptedUpstream()
        let config = GatewayConfig(
            endpoints: [upstream.url], providers: apple.provider(""), routes: GatewayConfig.closed)
        func text(_ log: String) -> String {
            config.text.replacing("log: { level: debug, format: json }", with: "log: { format: json, \(log) }")
        }
        let files = ["log.key": "0123456789abcdef0123456789abcdef\n"]
        try withMartlet(text("subject: hash, subject_key_file: log.key"), files: files) { gateway in
            let token = try apple.token(subject: "person")
            func subject() throws -> String? {
                try line(gateway, of: gateway.get("/closed", bearer(token)))["subject"]
            }
            let hash = try #require(try subject())
            #expect(hash.utf8.count == 32 && hash.utf8.allSatisfy { (0x30...0x39).contains($0) || $0 > 0x60 })
            #expect(try subject() == hash)
            try gateway.reload(text("subject: off"))
            try waitUntil("the names are gone") { try subject() == nil }
            try gateway.reload(text("subject: full"))
            try waitUntil("the names are there") { try subject() == "apple:person" }
            #expect(!gateway.everything.contains("0123456789abcdef0123456789abcdef"))
        }
    }

    @Test func `names callers and conditions as text too`() throws {
        let apple = try AppleFixture()
        let upstream = try ScriptedUpstream()
        let routes = Policy.routes(["{ claim: role, equals: admin }"])
        let config = GatewayConfig(endpoints: [upstream.url], providers: apple.provider(""), routes: routes)
        let text = config.text.replacing("format: json", with: "format: text")
        try withMartlet(config.text) { gateway in
            try gateway.reload(text)
            try waitUntil("the line is there") {
                _ = try gateway.get("/0", bearer(apple.token(subject: "person")))
                return gateway.everything.contains(#"policy.claim_missing condition="authorize[0] role" route=r0"#)
                    && gateway.everything.contains(" subject=apple:person instance_id=")
            }
        }
    }
}
