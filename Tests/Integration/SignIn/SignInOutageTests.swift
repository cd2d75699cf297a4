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
            // Redis came back empty.
            expectUnauthorized(try stage.post("/auth/refresh", ["refresh_token": tokens.refresh]), "credential_invalid")
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
