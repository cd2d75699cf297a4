import MartletAccounts
import MartletCore
import MartletProvider
import MartletTesting
import Testing

/// Idle connections that are asked what their server is.
@Suite(.serialized, .timeLimit(.minutes(2))) struct PostgreSQLHeartbeatTests {
    @Test func `a change that arrives while all connections are asked is made as soon as they respond`() async throws {
        let server = try PostgreSQLServer()
        // On a loaded machine the freeze may outlast the time that a change has: the best of three counts.
        var found: ErrorCode?
        for number in 1...3 {
            found = try await addedUser("ada\(number)", at: server)
            if found == nil { break }
        }
        #expect(found == nil)
    }

    /// The error of a change that arrives while the server is frozen and all connections are asked.
    private func addedUser(_ name: String, at server: PostgreSQLServer) async throws -> ErrorCode? {
        try await withStores(at: server.url(database: try server.makeDatabase())) { stores in
            let store = stores[0]
            _ = try await store.signIn(identity("apple", "001"))
            try await Task.sleep(for: .milliseconds(4300))
            server.freeze(true)
            // They are asked every five seconds.
            try await Task.sleep(for: .milliseconds(1200))
            // A sign-in begins with a read, which may follow the question on its connection; a transaction may not.
            let user = UserRecord(name: name, key: name, hash: "x", isDisabled: false)
            async let failure = code { try await store.addUser(user, at: noon) }
            try await Task.sleep(for: .milliseconds(300))
            server.freeze(false)
            return await failure
        }
    }
}
