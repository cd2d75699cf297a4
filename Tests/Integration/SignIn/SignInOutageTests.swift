import Foundation
import MartletTesting
import Testing

/// What is left of signing in when something is down.
@Suite struct `Signing in during an outage` {
    @Test func `is 503 without Redis and goes on after it`() throws {
        let redis = try RedisServer()
        try withSignIn(more: "store: { url: \"\(redis.url)\" }") { stage in
            let tokens = try stage.passwordLogin()
            #expect(try stage.status(with: tokens.access) == 200)
            try redis.stop()
            let login = ["username": "alice", "password": SignInStage.password]
            try waitUntil("the outage is known") { try stage.post("/auth/login/password", login).status == 503 }
            expectUnavailable(try stage.post("/auth/login/password", login))
            expectUnavailable(try stage.post("/auth/refresh", ["refresh_token": tokens.refresh]))
            expectUnavailable(try stage.send("POST", "/auth/nonce"))
            for (method, path) in [
                ("GET", "/auth/session"), ("GET", "/auth/sessions"), ("POST", "/auth/logout"),
                ("DELETE", "/auth/sessions/x"),
            ] {
                expectUnavailable(try stage.send(method, path, bearer: tokens.access), path)
            }
            try redis.restart()
            try waitUntil("logins go on", within: .seconds(5)) {
                try stage.post("/auth/login/password", login).status == 200
            }
            // Redis came back empty, and recent sessions were written again.
            _ = try redis.command("FLUSHALL")
            expectUnauthorized(try stage.post("/auth/refresh", ["refresh_token": tokens.refresh]), "credential_invalid")
        }
    }

    @Test func `gives out nonces without Redis once it has their key`() throws {
        let redis = try RedisServer()
        try withSignIn(apple: "nonce: required", more: "store: { url: \"\(redis.url)\" }") { stage in
            func nonce() throws -> HTTPMessage { try stage.send("POST", "/auth/nonce") }
            func login(_ nonce: String) throws -> Int {
                let token = try stage.apple.token {
                    $0.claims["nonce"] = JSONText(string: nonce)
                    $0.claims["jti"] = JSONText(string: "\(UInt64.random(in: 0 ... .max))")
                }
                return try stage.post("/auth/login/apple", ["identity_token": token, "nonce": nonce]).status
            }
            try redis.stop()
            try waitUntil("the outage is known") { try nonce().status == 503 }
            expectUnavailable(try nonce())
            try redis.restart()
            try waitUntil("there is one") { try nonce().status == 200 }
            try redis.stop()
            try waitUntil("the outage is known") { try login("mno_x") == 503 }
            let during = try (0..<3).map { _ in try #require(nonce().member("nonce")) }
            #expect(try login(during[0]) == 503)
            // Redis comes back empty.
            try redis.restart()
            try waitUntil("logins go on") { try login(during[0]) == 200 }
            #expect(try during.map { try login($0) } == [401, 200, 200])
        }
    }

    @Test func `takes a nonce of any instance, once`() throws {
        let redis = try RedisServer()
        let apple = try AppleFixture()
        var config = GatewayConfig(
            endpoints: ["builtin:echo"], providers: apple.provider("nonce: required"), routes: GatewayConfig.closed)
        config.more = "store: { url: \"\(redis.url)\" }"
        try withMartlet(config.text) { one in
            try withMartlet(config.text) { other in
                func login(_ nonce: String, at gateway: Gateway) throws -> Int {
                    let token = try apple.token {
                        $0.claims["nonce"] = JSONText(string: nonce)
                        $0.claims["jti"] = JSONText(string: "\(UInt64.random(in: 0 ... .max))")
                    }
                    let body = Array("{\"identity_token\":\"\(token)\",\"nonce\":\"\(nonce)\"}".utf8)
                    let type = [("Content-Type", "application/json")]
                    return try gateway.exchange("POST", "/auth/login/apple", type, body: body).status
                }
                let nonces = try [one, other, one, other].map {
                    try #require($0.exchange("POST", "/auth/nonce").member("nonce"))
                }
                #expect(Set(nonces).count == 4 && nonces.allSatisfy { $0.utf8.count <= 128 })
                #expect(try nonces.map { try login($0, at: other) } == [200, 200, 200, 200])
                #expect(try nonces.map { try login($0, at: one) } == [401, 401, 401, 401])
            }
        }
    }

    @Test func `is 503 without accounts while sessions go on`() throws {
        try withSignIn { stage in
            let tokens = try stage.passwordLogin()
            // The database becomes something that SQLite refuses to read.
            let path = stage.gateway.folder.path + "/accounts.db"
            for suffix in ["", "-wal", "-shm"] where FileManager.default.fileExists(atPath: path + suffix) {
                let handle = try FileHandle(forWritingTo: URL(filePath: path + suffix))
                try handle.truncate(atOffset: 0)
                try handle.write(contentsOf: Data(repeating: 0x5A, count: 8192))
                try handle.close()
            }
            let token = try stage.apple.token()
            try waitUntil("the outage is known") {
                try stage.post("/auth/login/apple", ["identity_token": token]).status == 503
            }
            expectUnavailable(try stage.post("/auth/login/apple", ["identity_token": token]))
            expectUnavailable(try stage.gateway.get("/who", bearer(token)), "a token that was not seen")
            #expect(try stage.send("GET", "/auth/session", bearer: tokens.access).status == 200)
            #expect(
                try Tokens(stage.post("/auth/refresh", ["refresh_token": tokens.refresh])).subject == tokens.subject)
            #expect(try stage.status(with: tokens.access) == 200)
        }
    }
}
