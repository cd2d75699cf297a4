import Foundation
import MartletCore
import MartletCrypto
import MartletTesting
import Testing

/// A gateway that people sign in to, and a receiver of the ends of their sessions.
private struct EndStage {
    let signIn: SignInStage
    let receiver: ScriptedUpstream

    /// - Parameter more: more top-level blocks.
    static func open(
        hasRedis: Bool = false, _ more: String = "", _ body: (EndStage) throws -> Void
    ) throws {
        let redis = hasRedis ? try RedisServer() : nil
        let receiver = try ScriptedUpstream { try $0.respond(204) }
        let secret = "whsec_" + Base64.encode(WebhookStage.key, padding: .required)
        var blocks =
            "webhooks: [{ name: ends, url: \"\(receiver.url)/hook\", secret: \"\(secret)\", "
            + "events: [session.revoked, \"account.*\"] }]\n"
        if let redis { blocks += "store: { url: \"\(redis.url)\" }\n" }
        try withSignIn(more: blocks + more) { try body(EndStage(signIn: $0, receiver: receiver)) }
    }

    /// The reported ends: the session with the reason, in order.
    var ends: [String] {
        receiver.requests.filter { $0.member("type") == "dev.martlet.session.revoked" }.compactMap { request in
            guard let data = request.object["data"] as? [String: String] else { return nil }
            return "\(data["session_id"] ?? "-") \(data["provider"] ?? "-") \(data["reason"] ?? "-")"
        }
    }

    func martlet(_ arguments: String...) throws -> CommandResult {
        try run(
            try Executable.martlet(),
            arguments + ["--config", signIn.gateway.folder.file("config.yaml")])
    }

    /// Waits for the ends, and for whether more follow.
    func expect(_ expected: [String], at location: SourceLocation = #_sourceLocation) throws {
        try waitUntil("the ends are reported", within: .seconds(10)) { ends.count >= expected.count }
        Thread.sleep(forTimeInterval: 0.3)
        #expect(ends.sorted() == expected.sorted(), sourceLocation: location)
    }
}

@Suite(.timeLimit(.minutes(2))) struct SessionEndTests {
    @Test(arguments: [false, true])
    func `the oldest session gives way, with one event`(hasRedis: Bool) throws {
        try EndStage.open(hasRedis: hasRedis, "sessions: { max_per_subject: 2 }\n") { stage in
            let tokens = try (0..<4).map { _ in try stage.signIn.passwordLogin() }
            #expect(try tokens.map { try stage.signIn.status(with: $0.access) } == [401, 401, 200, 200])
            try stage.expect(tokens.prefix(2).map { "\($0.session) password evicted" })
        }
    }

    @Test func `logins at the same time report each session that gives way once`() throws {
        try EndStage.open("sessions: { max_per_subject: 2 }\n") { stage in
            let all = Box<[Tokens]>([])
            let gateway = stage.signIn.gateway
            let body = #"{"username":"alice","password":"\#(SignInStage.password)"}"#
            DispatchQueue.concurrentPerform(iterations: 8) { _ in
                let response = try? gateway.exchange(
                    "POST", "/auth/login/password", [("Content-Type", "application/json")], body: Array(body.utf8))
                if let tokens = try? response.map(Tokens.init) { all.withLock { $0.append(tokens) } }
            }
            #expect(all.value.count == 8)
            let live = try all.value.filter { try stage.signIn.status(with: $0.access) == 200 }
            #expect(live.count == 2)
            let gone = all.value.filter { !live.contains($0) }
            try stage.expect(gone.map { "\($0.session) password evicted" })
        }
    }

    @Test(arguments: [false, true])
    func `a refresh token that comes again ends the session, with one event`(hasRedis: Bool) throws {
        try EndStage.open(hasRedis: hasRedis, "sessions: { refresh_reuse_grace: 0s }\n") { stage in
            let tokens = try stage.signIn.passwordLogin()
            let other = try stage.signIn.passwordLogin()
            let refreshed = try Tokens(stage.signIn.post("/auth/refresh", ["refresh_token": tokens.refresh]))
            for _ in 0..<2 {
                expectUnauthorized(
                    try stage.signIn.post("/auth/refresh", ["refresh_token": tokens.refresh]), "credential_invalid")
            }
            #expect(try stage.signIn.status(with: refreshed.access) == 401)
            #expect(try stage.signIn.status(with: other.access) == 200)
            try stage.expect(["\(tokens.session) password refresh_reuse"])
        }
    }

    @Test(arguments: [false, true])
    func `a revoked token reports the end of its session`(hasRedis: Bool) throws {
        try EndStage.open(hasRedis: hasRedis, "sessions: { refresh_reuse_grace: 0s }\n") { stage in
            let byAccess = try stage.signIn.passwordLogin()
            let byRefresh = try stage.signIn.passwordLogin()
            let other = try stage.signIn.passwordLogin()
            for token in [byAccess.access, byRefresh.refresh] {
                for _ in 0..<2 {
                    #expect(try stage.signIn.post("/auth/revoke", ["token": token]).status == 200)
                }
            }
            #expect(try stage.signIn.status(with: byAccess.access) == 401)
            #expect(try stage.signIn.status(with: byRefresh.access) == 401)
            #expect(try stage.signIn.status(with: other.access) == 200)
            try stage.expect([byAccess, byRefresh].map { "\($0.session) password logout" })
        }
    }

    @Test func `commands report what they end`() throws {
        try EndStage.open(hasRedis: true) { stage in
            let tokens = try (0..<3).map { _ in try stage.signIn.passwordLogin() }
            let subject = tokens[0].subject
            let one = try stage.martlet("session", "end", "--offline", "--subject", subject, "--id", tokens[0].session)
            #expect(one.ending == .exited(0) && one.output == "session \(tokens[0].session) ended\n", "\(one)")
            try waitUntil("it is out", within: .seconds(1)) {
                try stage.signIn.status(with: tokens[0].access) == 401
            }
            try stage.expect(["\(tokens[0].session) password admin"])
            #expect(
                try stage.martlet("session", "end", "--offline", "--subject", subject, "--id", tokens[0].session).ending
                    == .exited(64))
            #expect(try stage.martlet("session", "end", "--offline", "--subject", subject).ending == .exited(0))
            let after = try stage.signIn.passwordLogin()
            #expect(try stage.martlet("account", "disable", "--offline", subject).ending == .exited(0))
            try waitUntil("it is out", within: .seconds(1)) { try stage.signIn.status(with: after.access) == 403 }
            // That ended nothing; the admin listener reports what it ends.
            let ends = tokens.map { "\($0.session) password admin" }
            try stage.expect(ends)
            let path = "/sessions/\(after.session)?subject=\(subject)"
            #expect(try HTTPClient(to: stage.signIn.gateway.operators).exchange("DELETE", path).status == 204)
            try stage.expect(ends + ["\(after.session) password admin"])
        }
    }
}
