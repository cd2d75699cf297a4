import Foundation
import MartletTesting
import Testing

/// Limits on how often clients try to sign in (`sessions.limits.login`).
@Suite struct LoginLimitTests {
    private static let server = "trusted_proxies: [127.0.0.0/8]"

    private static func login(_ stage: SignInStage, from address: String, _ password: String) throws -> HTTPMessage {
        try post(stage, "/auth/login/password", from: address, ["username": "alice", "password": password])
    }

    private static func post(
        _ stage: SignInStage, _ target: String, from address: String, bearer token: String? = nil,
        _ members: [String: String]
    ) throws -> HTTPMessage {
        let body = Array(try JSONSerialization.data(withJSONObject: members))
        let fields = [("X-Forwarded-For", address), ("Content-Type", "application/json")]
        return try stage.send("POST", target, bearer: token, fields, body)
    }

    @Test func `logins over the limit get 429 whatever their credential, others go on`() throws {
        let more = """
            rate_limits: { logins: { key: address, rate: 3/h } }
            sessions: { limits: { login: [logins] } }
            """
        try withSignIn(server: Self.server, more: more) { stage throws in
            #expect(try Self.login(stage, from: "203.0.113.1", "wrong").status == 401)
            let login = try Self.login(stage, from: "203.0.113.1", SignInStage.password)
            #expect(login.status == 200)
            // Another kind of login counts as well.
            #expect(
                try Self.post(stage, "/auth/login/apple", from: "203.0.113.1", ["identity_token": "x"]).status != 429)
            for password in [SignInStage.password, "wrong"] {
                let rejected = try Self.login(stage, from: "203.0.113.1", password)
                expectRejection(rejected, 429, "throttled")
                let seconds = Int(rejected["Retry-After"] ?? "") ?? 0
                #expect((1_100...1_200).contains(seconds), "\(seconds)")
            }
            #expect(try Self.login(stage, from: "203.0.113.2", SignInStage.password).status == 200)
            // What brings no credential of a login is not counted.
            let tokens = try Tokens(login)
            #expect(
                try Self.post(stage, "/auth/refresh", from: "203.0.113.1", ["refresh_token": tokens.refresh]).status
                    == 200)
            #expect(try stage.send("POST", "/auth/nonce", [("X-Forwarded-For", "203.0.113.1")]).status == 200)
            try waitUntil("the log names the limit") {
                stage.gateway.everything.contains("limits.rate_exceeded")
            }
            let metrics = try stage.gateway.askAdmin("/metrics").text
            #expect(metrics.contains("martlet_rate_limit_admitted_total{limit=\"logins\"} 4\n"))
            #expect(metrics.contains("martlet_rate_limit_limited_total{limit=\"logins\"} 2\n"))
            #expect(metrics.contains("martlet_rate_limit_entries{limit=\"logins\"} 2\n"))
        }
    }

    @Test func `several limits have to let a login pass, and one that rejects it gives back the others' tokens`() throws
    {
        let more = """
            rate_limits:
              by_host: { key: [host, "header:X-App"], rate: 3/h }
              by_address: { key: address, rate: 1/h }
            sessions: { limits: { login: [by_host, by_address] } }
            """
        try withSignIn(server: Self.server, more: more) { stage throws in
            #expect(try Self.login(stage, from: "203.0.113.1", "wrong").status == 401)
            for _ in 0..<5 { #expect(try Self.login(stage, from: "203.0.113.1", "wrong").status == 429) }
            #expect(try Self.login(stage, from: "203.0.113.2", "wrong").status == 401)
            #expect(try Self.login(stage, from: "203.0.113.3", "wrong").status == 401)
            #expect(try Self.login(stage, from: "203.0.113.4", "wrong").status == 429)
        }
    }
}
