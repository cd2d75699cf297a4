import MartletTesting
import Testing

/// Another proof of a session's owner: `POST /auth/reauthenticate`.
@Suite(.timeLimit(.minutes(3))) struct `Authenticating again at the gateway` {
    private static let path = "/auth/reauthenticate"
    /// A route that tells the upstream when the user authenticated.
    private static let routes = """
        - name: all
          match: { path: /** }
          auth: { providers: [apple, password] }
          headers: { set: { X-Proof: { attribute: auth_time } } }
          upstream: api
        """
    private static let proof = [
        "provider": "password", "username": "alice", "password": SignInStage.password,
    ]

    /// What the upstream learns about a token's proof, by any gateway.
    private static func authTime(_ stage: SignInStage, _ token: String, at gateway: Gateway) throws -> Int? {
        let before = stage.upstream.requests.count
        #expect(try gateway.get("/who", bearer(token)).status == 200)
        return stage.upstream.requests.dropFirst(before).last?["X-Proof"].flatMap { Int($0) }
    }

    @Test func `reaches every loop of every instance within a second`() throws {
        let redis = try RedisServer()
        // Without a message, a copy would be used for a minute.
        let more = "store: { url: \"\(redis.url)\" }\nsessions: { cache_ttl: 60s }"
        try withSignIn(server: "workers: 3", routes: Self.routes, more: more) { stage in
            let other = try stage.startAnother()
            let tokens = try stage.passwordLogin()
            // Connections on different loops, each of which caches the session.
            let clients = try (0..<8).flatMap { _ in try [stage.gateway.connect(), other.connect()] }
            func all() throws -> Set<Int> {
                var seen: Set<Int> = []
                for client in clients {
                    let before = stage.upstream.requests.count
                    #expect(try client.exchange("GET", "/who", bearer(tokens.access)).status == 200)
                    let fields = stage.upstream.requests.dropFirst(before).last
                    seen.insert(fields?["X-Proof"].flatMap { Int($0) } ?? 0)
                }
                return seen
            }
            let first = try #require(try all().first)
            pause(.milliseconds(1100))
            let reply = try stage.post(Self.path, bearer: tokens.access, Self.proof)
            #expect(reply.status == 200 && reply.member("session_id") == tokens.session)
            let renewed = try #require(reply.object["auth_time"] as? Int)
            #expect(renewed > first)
            // Here immediately, elsewhere within a second.
            #expect(try Self.authTime(stage, tokens.access, at: stage.gateway) == renewed)
            try waitUntil("all loops know", within: .seconds(1)) { try all() == [renewed] }
            // The session goes on, and so do its tokens.
            let refreshed = try Tokens(stage.post("/auth/refresh", ["refresh_token": tokens.refresh]))
            #expect(try Self.authTime(stage, refreshed.access, at: other) == renewed)
            try other.stop()
        }
    }

    @Test func `with a wrong credential changes nothing`() throws {
        try withSignIn(users: ["alice", "bob"], routes: Self.routes) { stage in
            let tokens = try stage.passwordLogin()
            let before = try Self.authTime(stage, tokens.access, at: stage.gateway)
            pause(.milliseconds(1100))
            var wrong = Self.proof
            wrong["password"] = "another"
            #expect(try stage.post(Self.path, bearer: tokens.access, wrong).status == 401)
            var others = Self.proof
            others["username"] = "bob"
            let reply = try stage.post(Self.path, bearer: tokens.access, others)
            #expect(reply.status == 401 && reply.member("code") == "credential_invalid")
            #expect(try Self.authTime(stage, tokens.access, at: stage.gateway) == before)
            try waitUntil("the reason is logged") { stage.gateway.everything.contains("signin.other_account") }
        }
    }

    @Test func `with Apple needs an identity of the same account`() throws {
        try withSignIn(routes: Self.routes) { stage in
            let tokens = try stage.passwordLogin()
            let token = try stage.apple.token(subject: "001234.0123456789abcdef0123456789abcdef.0001")
            let proof: [String: Any] = ["provider": "apple", "identity_token": token]
            #expect(try stage.post(Self.path, bearer: tokens.access, proof).status == 401)
            #expect(try stage.post("/auth/link/apple", bearer: tokens.access, ["identity_token": token]).status == 204)
            #expect(try stage.post(Self.path, bearer: tokens.access, proof).status == 200)
        }
    }

    @Test func `leaves exchanges in progress alone`() throws {
        try withSignIn(routes: Self.routes) { stage in
            let tokens = try stage.passwordLogin()
            stage.upstream.respond {
                try $0.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n")
                pause(.milliseconds(2500))
                try $0.send("3\r\ntwo\r\n0\r\n\r\n")
            }
            let client = try stage.gateway.connect()
            try client.send("GET", "/stream", bearer(tokens.access))
            pause(.milliseconds(1000))
            #expect(try stage.post(Self.path, bearer: tokens.access, Self.proof).status == 200)
            #expect(try client.response().text == "onetwo")
        }
    }
}
