import Foundation
import MartletTesting
import Testing

/// Where sessions come from, as their owner's list says.
@Suite struct `Listed devices` {
    @Test(arguments: [false, true])
    func `tell the name, the agent and the addresses`(usesRedis: Bool) throws {
        let redis = try usesRedis ? RedisServer() : nil
        let store = redis.map { "store: { url: \"\($0.url)\" }\n" } ?? ""
        try withSignIn(
            server: "trusted_proxies: [127.0.0.0/8]", more: store + "sessions: { cache_ttl: 0s }"
        ) { stage in
            func from(_ address: String) -> [(String, String)] { [("X-Forwarded-For", address)] }
            func listed(_ token: String) throws -> [String: Any] {
                let response = try stage.send("GET", "/auth/sessions", bearer: token, from("192.0.2.9"))
                return try #require((response.object["sessions"] as? [[String: Any]])?.first)
            }
            let body = ["username": "alice", "password": SignInStage.password, "device_name": "Alice\u{2019}s phone"]
            let login = try stage.send(
                "POST", "/auth/login/password",
                [("Content-Type", "application/json"), ("User-Agent", "App/2.1 iOS/26")] + from("2001:db8::7"),
                Array(try JSONSerialization.data(withJSONObject: body)))
            let tokens = try Tokens(login)
            let first = try listed(tokens.access)
            #expect(first["device_name"] as? String == "Alice\u{2019}s phone")
            #expect(first["user_agent"] as? String == "App/2.1 iOS/26")
            #expect(first["address"] as? String == "2001:db8::7" && first["last_address"] as? String == "192.0.2.9")
            #expect(try stage.gateway.get("/who", bearer(tokens.access) + from("198.51.100.4")).status == 200)
            let fields = [("Content-Type", "application/x-www-form-urlencoded")] + from("203.0.113.5")
            let refreshed = try stage.send(
                "POST", "/auth/refresh", fields, Array("refresh_token=\(tokens.refresh)".utf8))
            let next = try Tokens(refreshed)
            #expect(try listed(next.access)["address"] as? String == "2001:db8::7")
            let plain = try stage.passwordLogin()
            let bare = try listed(plain.access)
            #expect(bare["address"] as? String == "127.0.0.1")
            #expect(bare["device_name"] == nil && bare["user_agent"] == nil)
        }
    }
}
