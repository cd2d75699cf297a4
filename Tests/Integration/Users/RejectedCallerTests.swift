import Foundation
import MartletTesting
import Testing

/// Whose sign-in or token it was that failed: in the access line, in the audit log, and by the name that a command tells.
@Suite(.timeLimit(.minutes(2))) struct `Rejected callers` {
    private static func lines(_ stage: SignInStage, _ reason: String) -> [LogLine] {
        stage.gateway.log.filter { $0["event"] == "request" && $0["reason"] == reason }
    }

    /// The last line with a reason, once it is there.
    private static func line(_ stage: SignInStage, _ reason: String) throws -> LogLine {
        try waitUntil("a line with \(reason)") { !lines(stage, reason).isEmpty }
        return try #require(lines(stage, reason).last)
    }

    private static func login(_ name: String, _ password: String) -> [String: String] {
        ["username": name, "password": password]
    }

    private static func user(_ stage: SignInStage, _ arguments: String...) throws -> String {
        try run(
            try Executable.martlet(), ["user"] + arguments + ["--config", stage.gateway.folder.file("config.yaml")]
        ).output
    }

    @Test func `a wrong password names the user, a wrong name nothing, and a throttled attempt too`() throws {
        let redis = try RedisServer()
        let throttle = "throttle: { attempts: 2, window: 2m, ban: 5m }"
        try withSignIn(password: throttle, more: "store: { url: \"\(redis.url)\" }") { stage in
            let subject = try stage.passwordLogin().subject
            #expect(try stage.post("/auth/login/password", Self.login("bob", "wrong password")).status == 401)
            #expect(try Self.line(stage, "password.unknown_user")["subject"] == nil)
            for _ in 0..<2 { _ = try stage.post("/auth/login/password", Self.login("alice", "wrong password")) }
            let wrong = try Self.line(stage, "password.wrong_password")
            #expect(wrong["subject"] == subject && wrong["provider"] == "password", "\(wrong)")
            #expect(try stage.post("/auth/login/password", Self.login("alice", "wrong password")).status == 429)
            #expect(try Self.line(stage, "password.throttled")["subject"] == subject)
            let shown = try Self.user(stage, "show", "alice")
            let warning = try #require(stage.gateway.log.first { $0["event"] == "user throttled" })
            #expect(shown.contains("in access lines: subject \(subject)\n"), "\(shown)")
            #expect(shown.contains("in warnings of throttling: user "), "\(shown)")
            #expect(shown.contains("locked: too many failed logins"), "\(shown)")
            #expect(warning["user"] != nil)
            let unlocked = try Self.user(stage, "unlock", "alice")
            #expect(unlocked.contains("unlocked: too many failed logins"), "\(unlocked)")
            #expect(try Self.user(stage, "show", "alice").contains("not locked"))
            #expect(try Self.user(stage, "unlock", "alice").contains("unlocked: no login was rejected"))
        }
    }

    @Test func `basic credentials of a known user are named by the form of the log`() throws {
        let log = "log: { level: debug, format: json, subject: hash, subject_key: 0123456789abcdef0123456789abcdef }\n"
        try withSignIn { stage in
            let subject = try stage.passwordLogin().subject
            let path = stage.gateway.folder.file("config.yaml")
            let text = try String(contentsOfFile: path, encoding: .utf8)
            try stage.gateway.reload(text.replacing("log: { level: debug, format: json }\n", with: log))
            try waitUntil("it is reloaded") { stage.gateway.log.contains { $0["event"] == "configuration reloaded" } }
            let basic = Data("alice:wrong password".utf8).base64EncodedString()
            #expect(try stage.gateway.get("/who", [("Authorization", "Basic \(basic)")]).status == 401)
            let line = try Self.line(stage, "password.wrong_password")
            let hash = try #require(line["subject"])
            #expect(hash.count == 32 && hash != subject && line["provider"] == "password", "\(line)")
            #expect(try Self.user(stage, "show", "alice").contains("in access lines: subject \(hash)\n"))
        }
    }

    @Test(arguments: [true, false]) func `an access token that has expired, and a disabled account`(
        hasRedis: Bool
    ) throws {
        let redis = hasRedis ? try RedisServer() : nil
        let store = redis.map { "store: { url: \"\($0.url)\" }\n" } ?? ""
        try withSignIn(more: "\(store)sessions: { access_ttl: 1s, cache_ttl: 0s }") { stage in
            let tokens = try stage.passwordLogin()
            try waitUntil("the token has expired") { try stage.status(with: tokens.access) == 401 }
            let expired = try Self.line(stage, "session.token_expired")
            #expect(expired["subject"] == tokens.subject && expired["session_id"] == tokens.session, "\(expired)")
            #expect(expired["provider"] == "password", "\(expired)")
            #expect(try stage.send("GET", "/auth/session", bearer: tokens.access).status == 401)
            func ofEndpoint() -> LogLine? {
                Self.lines(stage, "session.token_expired").last { $0["path"] == "/auth/session" }
            }
            try waitUntil("it is logged") { ofEndpoint() != nil }
            let endpoint = try #require(ofEndpoint())
            #expect(endpoint["subject"] == tokens.subject, "\(endpoint)")
        }
    }

    @Test func `the audit log has the subject of a login that was rejected`() throws {
        let folder = try TemporaryFolder()
        let key = folder.file("audit.key")
        #expect(try run(try Executable.martlet(), ["keygen", "audit", "--out", key]).ending == .exited(0))
        let file = folder.file("audit.log")
        try withSignIn(more: "audit: { file: \(file), key_file: \(key) }") { stage in
            let subject = try stage.passwordLogin().subject
            #expect(try stage.post("/auth/login/password", Self.login("alice", "wrong password")).status == 401)
            try waitUntil("the audit log has it") {
                let lines = try String(contentsOfFile: file, encoding: .utf8).split(separator: "\n")
                return lines.contains { $0.contains("password.wrong_password") && $0.contains(subject) }
            }
        }
    }
}
