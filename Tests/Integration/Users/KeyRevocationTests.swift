import Foundation
import MartletTesting
import Testing

/// A change of a key, or of the account behind it, at every instance that shares the stores.
@Suite(.serialized, .timeLimit(.minutes(3))) struct KeyRevocationTests {
    enum Store: String, CaseIterable, Sendable { case sqlite, postgresql }

    /// The promise is one second; a loaded machine may be slower by as much.
    private static let limit = Duration.seconds(2)

    @Test(arguments: Store.allCases) func `a revoked key is refused everywhere within a second`(_ store: Store) throws {
        let server = store == .postgresql ? try SharedPostgreSQL.get() : nil
        let url = try server.map { $0.url(database: try $0.makeDatabase()) }
        try KeyStage.run(accounts: url, gateways: 2) { stage in
            let (key, other) = (try stage.create("--subject", "billing"), try stage.create("--subject", "shipping"))
            for index in 0..<2 {
                #expect(try stage.status(key, at: index) == 200 && stage.status(other, at: index) == 200)
            }
            #expect(try stage.key("revoke", keyID(key)).ending == .exited(0))
            let started = ContinuousClock.now
            var refused: [Duration?] = [nil, nil]
            while refused.contains(where: { $0 == nil }) {
                for index in 0..<2 where refused[index] == nil {
                    if try stage.status(key, at: index) == 401 { refused[index] = started.duration(to: .now) }
                }
                guard started.duration(to: .now) < Self.limit else { break }
            }
            #expect(refused.allSatisfy { $0 != nil }, "\(refused)")
            print("a revoked key was refused after \(refused)")
            for index in 0..<2 {
                #expect(try stage.status(other, at: index) == 200)
                try stage.waitForReason("api_key.revoked", at: index)
            }
        }
    }

    @Test func `a response that is still being sent ends with its key`() throws {
        try KeyStage.run { stage in
            stage.upstream.respond { exchange in
                try exchange.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n")
                // Until the gateway closes the connection.
                _ = exchange.socket.isEnded(within: .seconds(20))
            }
            let (key, other) = (try stage.create("--subject", "billing"), try stage.create("--subject", "shipping"))
            let (client, neighbor) = (try stage.gateway.connect(), try stage.gateway.connect())
            for (client, key) in [(client, key), (neighbor, other)] {
                try client.send("GET", "/stream", bearer(key))
                #expect(try String(decoding: client.socket.receive(), as: UTF8.self).hasPrefix("HTTP/1.1 200"))
            }
            #expect(try stage.key("revoke", keyID(key)).ending == .exited(0))
            #expect(client.socket.isEnded(within: .seconds(4)))
            // The rest of the body was read by then.
            _ = try? neighbor.socket.receive(within: .milliseconds(200))
            #expect(neighbor.socket.isSilent(for: .milliseconds(500)))
            #expect(try stage.key("revoke", keyID(other)).ending == .exited(0))
            #expect(neighbor.socket.isEnded(within: .seconds(4)))
        }
    }

    @Test func `a key of an account has its subject and claims, and ends with it`() throws {
        let redis = try RedisServer()
        let password = "password: { kind: password, users: accounts, hash: { memory: 8MiB, iterations: 1 } }"
        try KeyStage.run(blocks: "store: { url: \"\(redis.url)\" }\n", providers: password) { stage in
            let added = try run(
                try Executable.martlet(),
                ["user", "add", "ada", "--config", stage.gateway.folder.file("config.yaml")], input: "correct horse\n")
            #expect(added.ending == .exited(0), "\(added)")
            let login = try stage.gateway.exchange(
                "POST", "/auth/login/password", [("Content-Type", "application/json")],
                body: Array(#"{"username":"ada","password":"correct horse"}"#.utf8))
            let subject = try #require(login.member("subject"))
            let key = try stage.create("--subject", subject, "--account", "--claims", "role=partner")
            #expect(try stage.status(key) == 200)
            #expect(stage.upstream.requests.last?["X-Auth-Subject"] == subject)
            #expect(stage.upstream.requests.last?["X-Auth-Provider"] == "partners")
            #expect(stage.upstream.requests.last?["X-Role"] == "partner")
            #expect(try stage.command(["account", "set", subject, "role=staff"]).ending == .exited(0))
            try waitUntil("the account's claim has won", within: .seconds(4)) {
                try stage.status(key) == 200 && stage.upstream.requests.last?["X-Role"] == "staff"
            }
            #expect(try stage.command(["account", "disable", subject]).ending == .exited(0))
            try waitUntil("the account is disabled", within: .seconds(4)) { try stage.status(key) == 403 }
            try stage.waitForReason("account.disabled")
            #expect(try stage.command(["account", "enable", subject]).ending == .exited(0))
            try waitUntil("the account is enabled", within: .seconds(4)) { try stage.status(key) == 200 }
            // The key has no account of its own, nor has the one of a partner.
            #expect(try stage.status(try stage.create("--subject", "billing")) == 200)
            let accounts = try stage.command(["account", "list"]).output
            #expect(accounts.split(separator: "\n").count == 1, "\(accounts)")
            #expect(try stage.command(["account", "delete", subject]).ending == .exited(0))
            try waitUntil("the account is deleted", within: .seconds(4)) { try stage.status(key) == 401 }
            let late = try stage.key("create", "--subject", subject, "--account")
            #expect(late.ending == .exited(64) && late.errorOutput.contains("key.unknown_account"), "\(late)")
        }
    }

    @Test func `an outage of the account store rejects keys after max_stale, and ends by itself`() throws {
        let server = try PostgreSQLServer()
        try KeyStage.run(accounts: server.url(), more: "  max_stale: 3s\n") { stage in
            let key = try stage.create("--subject", "billing")
            #expect(try stage.status(key) == 200)
            try server.stop()
            #expect(try stage.status(key) == 200)
            try waitUntil("keys are rejected", within: .seconds(12)) { try stage.status(key) == 503 }
            try stage.waitForReason("api_key.store_unavailable")
            try server.start()
            try waitUntil("keys are accepted", within: .seconds(20)) { try stage.status(key) == 200 }
        }
    }
}
