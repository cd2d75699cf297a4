import Foundation
import MartletCore
import MartletCrypto
import MartletJSON
import MartletTesting
import Testing

/// What routes make of sessions, of pairs of name and password, and of tokens as they are.
@Suite struct `Routes of people who signed in` {
    private static let limits = JSONLimits(maximumDepth: 8, maximumBytes: 16 * 1024)
    private static let routes = """
        - { name: sessions, match: { path: /s/** }, auth: { credentials: [session] }, upstream: api }
        - { name: direct, match: { path: /d/** }, auth: { credentials: [direct] }, upstream: api }
        - { name: apple, match: { path: /a/** }, auth: { providers: [apple] }, upstream: api }
        - { name: maybe, match: { path: /m/** }, auth: { mode: optional }, upstream: api }
        - { name: open, match: { path: /o/** }, auth: none, upstream: api }
        - { name: passing, match: { path: /f/** }, auth: {}, forward_credentials: true, upstream: api }
        - { name: all, match: { path: /** }, auth: {}, upstream: api }
        """

    private static func pair(_ name: String, _ password: String) -> [(String, String)] {
        [("Authorization", "Basic \(Base64.encode(Array("\(name):\(password)".utf8), padding: .required))")]
    }

    @Test func `take the kinds of credential that they name`() throws {
        try withSignIn(routes: Self.routes) { stage in
            let session = try stage.passwordLogin().access
            let token = try stage.apple.token()
            let pair = Self.pair("alice", SignInStage.password)
            func status(_ path: String, _ fields: [(String, String)]) throws -> Int {
                try stage.gateway.get(path, fields).status
            }
            #expect(try status("/s/x", bearer(session)) == 200)
            #expect(try status("/s/x", bearer(token)) == 401)
            #expect(try status("/s/x", pair) == 401)
            #expect(try status("/d/x", bearer(session)) == 401)
            #expect(try status("/d/x", bearer(token)) == 200)
            #expect(try status("/d/x", pair) == 200)
            // A session counts as the provider that made it.
            #expect(try status("/a/x", bearer(session)) == 401)
            #expect(try status("/a/x", bearer(try stage.appleLogin().access)) == 200)
            #expect(try status("/a/x", pair) == 401)
            // A bad one never counts as anonymous, and a refresh token is no access token.
            #expect(try status("/m/x", bearer("mat_planted")) == 401)
            #expect(try status("/x", bearer(try stage.passwordLogin().refresh)) == 401)
        }
    }

    @Test func `offer a pair where one will do, and know it by its bytes`() throws {
        try withSignIn(routes: Self.routes) { stage in
            let rejection = try stage.gateway.get("/x")
            let challenges = rejection.fields.filter { $0.name.lowercased() == "www-authenticate" }.map(\.value)
            #expect(challenges == ["Bearer realm=\"martlet\"", "Basic realm=\"martlet\", charset=\"UTF-8\""])
            #expect(try stage.gateway.get("/a/x")["WWW-Authenticate"] == "Bearer realm=\"martlet\"")
            for _ in 0..<3 {
                #expect(try stage.gateway.get("/x", Self.pair("Alice", SignInStage.password)).status == 200)
            }
            let seen = try #require(stage.upstream.requests.last)
            #expect(seen["X-Auth-Provider"] == "password" && seen["Authorization"] == nil)
            #expect(seen["X-Auth-Subject"] == (try stage.passwordLogin().subject))
            let wrong = try stage.gateway.get("/x", Self.pair("alice", "wrong"))
            #expect(wrong.status == 401 && wrong.member("code") == "credential_invalid")
        }
    }

    @Test func `forget a pair when its password is changed`() throws {
        try withSignIn(routes: Self.routes) { stage in
            let pair = Self.pair("alice", SignInStage.password)
            #expect(try stage.gateway.get("/x", pair).status == 200)
            let session = try stage.passwordLogin().access
            let change = ["current_password": SignInStage.password, "new_password": "another good one"]
            #expect(try stage.post("/auth/password", bearer: session, change).status == 204)
            #expect(try stage.gateway.get("/x", pair).status == 401)
            #expect(try stage.gateway.get("/x", Self.pair("alice", "another good one")).status == 200)
        }
    }

    @Test func `keep tokens and pairs from upstreams, unless they say so`() throws {
        try withSignIn(routes: Self.routes) { stage in
            let session = try stage.passwordLogin().access
            for (path, token) in [("/x", session), ("/o/x", session), ("/o/x", "mrt_looks_like_one")] {
                #expect(try stage.gateway.get(path, bearer(token)).status == 200)
                #expect(stage.upstream.requests.last?["Authorization"] == nil, "\(path)")
            }
            #expect(try stage.gateway.get("/f/x", bearer(session)).status == 200)
            #expect(stage.upstream.requests.last?["Authorization"] == "Bearer \(session)")
        }
    }

    @Test func `leave the gateway's own paths to it`() throws {
        try withSignIn(routes: Self.routes) { stage in
            for path in ["/auth", "/auth/", "/auth/nowhere", "/%61uth/nowhere"] {
                let response = try stage.gateway.get(path)
                #expect(response.status == 404 && response.member("code") == "no_route", "\(path)")
            }
            #expect(try stage.gateway.raw("GET /x/../auth/session HTTP/1.1\r\nHost: a\r\n\r\n").response.status == 400)
            #expect(stage.upstream.requests.isEmpty)
            #expect(try stage.gateway.get("/authx").status == 401)
        }
    }

    @Test func `say who is calling in a statement that can be checked`() throws {
        let key = try SigningKey("assertion", .p256)
        let folder = try TemporaryFolder()
        let path = try folder.write(try key.privatePEM(), to: "assertion.pem")
        let more = "assertion: { issuer: \"https://gw.example.com\", key_file: \"\(path)\" }"
        try withSignIn(routes: Self.routes, more: more) { stage in
            let tokens = try stage.passwordLogin()
            #expect(try stage.gateway.get("/x", bearer(tokens.access) + [("X-Auth-Assertion", "forged")]).status == 200)
            let statement = try #require(stage.upstream.requests.last?["X-Auth-Assertion"])
            let parts = statement.split(separator: ".").map { Array($0.utf8) }
            let payload = try #require(Base64URL.decode(parts[1]))
            let claims = try #require(try JSON.parse(payload, limits: Self.limits).object)
            #expect(claims["iss"] == "https://gw.example.com" && claims["aud"] == "api")
            #expect(claims["sub"]?.string == tokens.subject && claims["provider"] == "password")
            #expect(claims["sid"]?.string == tokens.session)
            let document = try JSON.parse(
                try stage.gateway.get("/.well-known/jwks.json").body, limits: Self.limits
            ).object
            let published = try #require(document?["keys"]?.array?.first?.object)
            let x = try #require(Base64URL.decode(published["x"]?.string ?? ""))
            let y = try #require(Base64URL.decode(published["y"]?.string ?? ""))
            let signature = try #require(Base64URL.decode(parts[2]))
            let signed = Array(statement.utf8.prefix(parts[0].count + 1 + parts[1].count))
            #expect(try PublicKey(.p256(x: x, y: y)).verify(signature, over: signed))
            #expect(try stage.gateway.get("/o/x", [("X-Auth-Assertion", "forged")]).status == 200)
            #expect(stage.upstream.requests.last?["X-Auth-Assertion"] == nil)
        }
    }

    @Test func `hear of a logout at another instance`() throws {
        let redis = try RedisServer()
        let store = "store: { url: \"\(redis.url)\" }\nsessions: { cache_ttl: 60s }"
        try withSignIn(routes: Self.routes, more: store) { stage in
            let other = try Gateway(
                try String(contentsOfFile: stage.gateway.folder.path + "/config.yaml", encoding: .utf8),
                in: stage.gateway.folder)
            let session = try stage.passwordLogin().access
            #expect(try other.get("/x", bearer(session)).status == 200)
            #expect(try stage.send("POST", "/auth/logout", bearer: session).status == 204)
            try waitUntil("the other instance knows", within: .seconds(5)) {
                try other.get("/x", bearer(session)).status == 401
            }
            try other.stop()
        }
    }

    @Test func `end after cache_ttl even where no instance hears of it`() throws {
        let redis = try RedisServer()
        let store = "store: { url: \"\(redis.url)\" }\nsessions: { cache_ttl: 3s }"
        try withSignIn(routes: Self.routes, more: store) { stage in
            let session = try stage.passwordLogin().access
            #expect(try stage.status(with: session) == 200)
            // No message says so.
            _ = try redis.command("FLUSHALL")
            pause(.milliseconds(3500))
            // Every loop has a copy of its own.
            for _ in 0..<16 { #expect(try stage.status(with: session) == 401) }
        }
    }

    @Test func `reject sessions immediately where the configuration says so`() throws {
        let redis = try RedisServer()
        let store = "store: { url: \"\(redis.url)\", on_error: deny }\nsessions: { cache_ttl: 60s }"
        try withSignIn(routes: Self.routes, more: store) { stage in
            let session = try stage.passwordLogin().access
            #expect(try stage.status(with: session) == 200)
            try redis.stop()
            try waitUntil("copies are not believed", within: .seconds(5)) { try stage.status(with: session) == 503 }
            // What needs no store goes on.
            #expect(try stage.gateway.get("/x", bearer(try stage.apple.token())).status == 200)
            #expect(try stage.gateway.askAdmin("/readyz").status == 503)
        }
    }
}

/// Providers of passwords that are for logins alone.
@Suite struct `Passwords without Basic` {
    @Test func `share a route, and are offered nowhere`() throws {
        let upstream = try ScriptedUpstream { try $0.respond(200, body: "ok") }
        let folder = try TemporaryFolder()
        let login = { (name: String) in "username=\(name)&password=\(SignInStage.password.replacing(" ", with: "+"))" }
        var config = GatewayConfig(
            endpoints: [upstream.url],
            providers: """
                password:
                  kind: password
                  hash: { memory: 7168KiB, iterations: 5 }
                staff:
                  kind: password
                  hash: { memory: 7168KiB, iterations: 5 }
                  basic: false
                """,
            routes: """
                - { name: staff, match: { path: /staff/** }, auth: { providers: [staff] }, upstream: api }
                - { name: both, match: { path: /** }, auth: { providers: [password, staff] }, upstream: api }
                """)
        config.more = "accounts: { url: \"sqlite:accounts.db\" }"
        let path = try folder.write(config.text, to: "config.yaml")
        let added = try run(
            try Executable.martlet(), ["user", "add", "alice", "--provider", "staff", "--config", path],
            input: "\(SignInStage.password)\n")
        #expect(added.ending == .exited(0), "\(added)")
        let gateway = try Gateway(config.text, in: folder)
        let form = [("Content-Type", "application/x-www-form-urlencoded")]
        let response = try gateway.exchange("POST", "/auth/login/staff", form, body: Array(login("alice").utf8))
        let tokens = try Tokens(response)
        for target in ["/staff/a", "/a"] {
            #expect(try gateway.get(target, bearer(tokens.access)).status == 200)
        }
        let pair = Data("alice:\(SignInStage.password)".utf8).base64EncodedString()
        let basic = [("Authorization", "Basic \(pair)")]
        #expect(try gateway.get("/a", basic).status == 200)
        for refused in [try gateway.get("/staff/a", basic), try gateway.get("/staff/a")] {
            #expect(refused.status == 401)
            #expect(
                !refused.fields.contains { $0.name.lowercased() == "www-authenticate" && $0.value.hasPrefix("Basic") })
        }
        let offered = try gateway.get("/a")
        #expect(offered.fields.contains { $0.name.lowercased() == "www-authenticate" && $0.value.hasPrefix("Basic") })
        try gateway.stop()
    }
}
