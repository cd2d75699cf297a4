import Foundation
import MartletTesting
import Testing

/// `martlet explain` beside a running gateway: what it looks up, and that it changes nothing there.
@Suite(.timeLimit(.minutes(2))) struct `Explanation from the stores` {
    /// A gateway with one password user, `alice`, accounts in a file and sessions in a Redis of its own.
    private struct Stand {
        let gateway: Gateway
        let redis: RedisServer
        let apple: AppleFixture

        static func open(sessions: String = "", _ body: (Stand) throws -> Void) throws {
            let (redis, apple) = (try RedisServer(), try AppleFixture())
            var config = GatewayConfig(
                endpoints: ["builtin:echo"],
                providers: apple.provider()
                    + "password:\n  kind: password\n  hash: { memory: 8MiB, iterations: 1 }\n  throttle: { attempts: 2 }\n",
                routes: """
                    - { name: staff, match: { path: /staff }, auth: { providers: [apple] }, upstream: api }
                    - name: closed
                      match: { path: /** }
                      auth: { providers: [apple, password] }
                      authorize: [{ claim: preferred_username, exists: true }]
                      upstream: api
                    """)
            config.more = """
                accounts: { url: "sqlite:users.db" }
                store: { url: "\(redis.url)" }
                \(sessions)

                """
            try withMartlet(config.text) { gateway in
                let stand = Stand(gateway: gateway, redis: redis, apple: apple)
                let added = try run(
                    try Executable.martlet(), ["user", "add", "alice", "--config", stand.configuration],
                    input: "correct horse\n")
                guard added.ending == .exited(0) else { throw TestFailure("\(added)") }
                try body(stand)
            }
        }

        var configuration: String { gateway.folder.file("config.yaml") }

        func login() throws -> Tokens {
            let body = Array(#"{"username":"alice","password":"correct horse"}"#.utf8)
            return try Tokens(
                gateway.exchange("POST", "/auth/login/password", [("Content-Type", "application/json")], body: body))
        }

        func explain(_ path: String, token: String? = nil, fields: [String] = []) throws -> CommandResult {
            let more = try token.map { ["--token", try gateway.folder.write($0, to: "token")] } ?? []
            return try run(
                try Executable.martlet(),
                ["explain", "--config", configuration, "--path", path] + more + fields.flatMap { ["--header", $0] })
        }

        /// The subject that the upstream receives.
        func subject(with token: String) throws -> String? {
            let response = try gateway.get("/x", bearer(token))
            let fields = response.object["headers"] as? [String: Any] ?? [:]
            return fields["x-auth-subject"] as? String
        }
    }

    @Test func `a session token is looked up`() throws {
        try Stand.open { stand in
            let tokens = try stand.login()
            let good = try stand.explain("/x", token: tokens.access)
            #expect(good.ending == .exited(0), "\(good)")
            for part in ["is \(tokens.subject)", "provider 'password'", "X-Auth-Subject: \(tokens.subject)"] {
                #expect(good.output.contains(part), "\(part) in \(good)")
            }
            #expect(try stand.subject(with: tokens.access) == tokens.subject)
            let elsewhere = try stand.explain("/staff", token: tokens.access)
            #expect(elsewhere.ending == .exited(1) && elsewhere.output.contains("auth.provider_not_on_route"))
            let refresh = try stand.explain("/x", token: tokens.refresh)
            #expect(refresh.ending == .exited(1) && refresh.output.contains("session.token_malformed"), "\(refresh)")
            #expect(try stand.gateway.exchange("POST", "/auth/logout", bearer(tokens.access)).status == 204)
            let over = try stand.explain("/x", token: tokens.access)
            #expect(over.ending == .exited(1) && over.output.contains("session.unknown"), "\(over)")
        }
    }

    @Test func `a look does not count as a use`() throws {
        try Stand.open(sessions: "sessions: { idle_timeout: 10s, cache_ttl: 0s }") { stand in
            let tokens = try stand.login()
            let key = try #require(
                try stand.redis.command("KEYS martlet:*").split(separator: "\r\n")
                    .first { try stand.redis.command("TYPE \($0)").hasPrefix("+hash") })
            // The note of the last use would be written anew after half a second of idling.
            pause(.milliseconds(1200))
            let before = try stand.redis.command("HGET \(key) s")
            let life = try stand.redis.command("PEXPIRETIME \(key)")
            let result = try stand.explain("/x", token: tokens.access)
            #expect(result.ending == .exited(0), "\(result)")
            #expect(try stand.redis.command("HGET \(key) s") == before)
            #expect(try stand.redis.command("PEXPIRETIME \(key)") == life)
        }
    }

    @Test func `a direct token shows the subject of its account, and makes none`() throws {
        try Stand.open { stand in
            let token = try stand.apple.token()
            for _ in 1...2 {
                let unseen = try stand.explain("/staff", token: token)
                #expect(unseen.ending == .exited(0) && unseen.output.contains("has no account yet"), "\(unseen)")
            }
            let response = try stand.gateway.get("/staff", bearer(token))
            let fields = response.object["headers"] as? [String: Any] ?? [:]
            let subject = try #require(fields["x-auth-subject"] as? String, "\(response)")
            let seen = try stand.explain("/staff", token: token)
            #expect(seen.ending == .exited(0) && seen.output.contains("X-Auth-Subject: \(subject)\n"), "\(seen)")
        }
    }

    @Test func `a name and a password, and no attempt is counted`() throws {
        try Stand.open { stand in
            func basic(_ pair: String) -> String { "Authorization: Basic " + Data(pair.utf8).base64EncodedString() }
            for _ in 1...4 {
                let wrong = try stand.explain("/x", fields: [basic("alice:wrong")])
                #expect(wrong.ending == .exited(1) && wrong.output.contains("credential_invalid"), "\(wrong)")
            }
            let good = try stand.explain("/x", fields: [basic("alice:correct horse")])
            #expect(good.ending == .exited(0) && good.output.contains("provider 'password'"), "\(good)")
            #expect(!good.output.contains(basic("alice:correct horse").dropFirst(21)), "\(good)")
            let field = basic("alice:correct horse").split(separator: ": ").map(String.init)
            #expect(try stand.gateway.get("/x", [(field[0], field[1])]).status == 200)
            #expect(try stand.explain("/staff", fields: [basic("a:b")]).output.contains("auth.scheme_not_accepted"))
        }
    }

    @Test func `what cannot be asked is undecidable`() throws {
        try Stand.open { stand in
            let tokens = try stand.login()
            try stand.redis.stop()
            let away = try stand.explain("/x", token: tokens.access)
            #expect(away.ending == .exited(69), "\(away)")
            for part in ["undecidable: ", "503 auth_unavailable", "session.store_unavailable"] {
                #expect(away.output.contains(part), "\(part) in \(away)")
            }
        }
        let config = GatewayConfig(
            endpoints: ["builtin:echo"], providers: try AppleFixture().provider(), routes: GatewayConfig.closed)
        try withMartlet(config.text) { gateway in
            let token = try gateway.folder.write("mat_" + String(repeating: "a", count: 75), to: "token")
            let result = try run(
                try Executable.martlet(),
                ["explain", "--config", gateway.folder.file("config.yaml"), "--path", "/x", "--token", token])
            #expect(result.ending == .exited(69), "\(result)")
            #expect(
                result.output.contains("undecidable: sessions are in the memory of the running gateway"), "\(result)")
        }
    }
}
