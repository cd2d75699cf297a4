import Glibc
import MartletTesting
import Testing

/// What a 204 says: that no loop believes the session any more.
@Suite(.timeLimit(.minutes(3))) struct `Answered ends` {
    /// How a caller ends a session.
    enum End: String, CaseIterable, Sendable { case logout, everywhere, byID }

    private static let rounds = 30
    private static let connections = 12

    /// Ends sessions round by round and sends requests with them immediately, on connections that were used before.
    private func rejections(
        of stage: SignInStage, rounds: Int = Self.rounds, _ end: (Tokens) throws -> HTTPMessage
    ) throws {
        let clients = try (0..<Self.connections).map { _ in try stage.gateway.connect() }
        for round in 0..<rounds {
            let tokens = try stage.appleLogin("001.abc.\(1000 + round)")
            for client in clients {
                #expect(try client.exchange("GET", "/who", bearer(tokens.access)).status == 200)
            }
            #expect(try end(tokens).status == 204)
            for client in clients { try client.send("GET", "/who", bearer(tokens.access)) }
            let statuses = try clients.map { try $0.response().status }
            #expect(statuses == clients.map { _ in 401 }, "round \(round)")
        }
    }

    @Test(arguments: [End.logout, .everywhere, .byID])
    func `are the ends for every connection`(end: End) throws {
        try withSignIn(server: "workers: 4") { stage in
            try rejections(of: stage) { tokens in
                switch end {
                case .everywhere: try stage.send("POST", "/auth/logout?all=true", bearer: tokens.access)
                case .byID: try stage.send("DELETE", "/auth/sessions/\(tokens.session)", bearer: tokens.access)
                default: try stage.send("POST", "/auth/logout", bearer: tokens.access)
                }
            }
        }
    }

    @Test func `are the ends in Redis too`() throws {
        let redis = try RedisServer()
        try withSignIn(server: "workers: 4", more: "store: { url: \"\(redis.url)\" }") { stage in
            try rejections(of: stage) { try stage.send("POST", "/auth/logout", bearer: $0.access) }
        }
    }

    @Test func `are the ends of what an unlinked identity has made`() throws {
        let users = (0..<4).map { "user\($0)" }
        try withSignIn(users: users, server: "workers: 4") { stage in
            var names = users
            try rejections(of: stage, rounds: users.count) { tokens in
                let name = names.removeFirst()
                let link = ["username": name, "password": SignInStage.password]
                #expect(try stage.post("/auth/link/password", bearer: tokens.access, link).status == 204)
                let other = try stage.passwordLogin(name)
                return try stage.send("DELETE", "/auth/link/apple", bearer: other.access)
            }
        }
    }

    @Test func `are the ends of other sessions when a password changes`() throws {
        let users = (0..<4).map { "user\($0)" }
        try withSignIn(users: users, server: "workers: 4") { stage in
            var names = users
            try rejections(of: stage, rounds: users.count) { tokens in
                let name = names.removeFirst()
                let link = ["username": name, "password": SignInStage.password]
                #expect(try stage.post("/auth/link/password", bearer: tokens.access, link).status == 204)
                let other = try stage.passwordLogin(name)
                let change = ["current_password": SignInStage.password, "new_password": "another long one"]
                return try stage.post("/auth/password", bearer: other.access, change)
            }
        }
    }

    @Test func `come while a gateway drains`() throws {
        try withSignIn(server: "workers: 4\ntimeouts: { drain: 8s }") { stage in
            let tokens = try stage.appleLogin()
            let kept = try stage.gateway.connect()
            #expect(try kept.exchange("GET", "/who", bearer(tokens.access)).status == 200)
            // A request that has begun keeps its loop; the others have ended when it is whole.
            try kept.send("POST /auth/logout HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer \(tokens.access)\r\n")
            pause(.milliseconds(100))
            stage.gateway.process.kill(SIGTERM)
            pause(.milliseconds(500))
            let start = Stopwatch()
            try kept.send("\r\n")
            #expect(try kept.response(to: "POST").status == 204)
            #expect(start.undisturbed < .milliseconds(900))
            _ = try stage.gateway.process.wait(within: .seconds(10))
        }
    }
}
