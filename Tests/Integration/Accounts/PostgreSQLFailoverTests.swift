import MartletAccounts
import MartletCore
import MartletTesting
import Testing

@Suite(.serialized, .timeLimit(.minutes(4))) struct PostgreSQLFailoverTests {
    private func waitFor(_ expected: ErrorCode?, _ store: AccountStore) async throws -> Duration {
        let stopwatch = Stopwatch()
        while stopwatch.undisturbed < .seconds(20) {
            if await code({ _ = try await store.find(identity("probe", "1")) }) == expected {
                return stopwatch.undisturbed
            }
            try await Task.sleep(for: .milliseconds(10))
        }
        throw TestFailure("not \(String(describing: expected)): \(store.health)")
    }

    private func waitForConnections(_ server: PostgreSQLServer, _ count: Int) async throws {
        let text = """
            SELECT count(*) FROM pg_stat_activity WHERE application_name = 'martlet' AND datname = 'postgres'
            """
        for _ in 0..<500 {
            if try server.query(text) == String(count) { return }
            try await Task.sleep(for: .milliseconds(20))
        }
        throw TestFailure("not \(count) connections: \(try server.query(text))")
    }

    @Test func `leaves standbys, follows a promotion, and does not return to the old primary`() async throws {
        let first = try PostgreSQLServer()
        let second = try PostgreSQLServer(standbyOf: first)
        // The standby is named first, and the URL does not ask for a primary.
        try await withStores(at: PostgreSQLServer.url([second, first])) { stores in
            let store = stores[0]
            let account = try await store.signIn(identity("apple", "001"))
            try await waitForConnections(first, 4)
            try await waitForConnections(second, 0)
            // Without a primary nothing hangs.
            try first.stop()
            _ = try await waitFor(.accountsReadOnly, store)
            let start = Stopwatch()
            #expect(await code { _ = try await store.signIn(identity("apple", "002")) } == .accountsReadOnly)
            #expect(start.undisturbed < .seconds(3))
            #expect(store.health.failures[.accountsReadOnly, default: 0] > 0)
            try second.promote()
            #expect(try await waitFor(nil, store) < .seconds(5))
            #expect(try await store.signIn(identity("apple", "001")).subject == account.subject)
            // The old primary is back and takes writes, but it was replaced.
            try first.start()
            try second.stop()
            _ = try await waitFor(.accountsOldPrimary, store)
            #expect(await code { _ = try await store.signIn(identity("apple", "003")) } == .accountsOldPrimary)
            try second.start()
            #expect(try await waitFor(nil, store) < .seconds(5))
            try await waitForConnections(second, 4)
            try await waitForConnections(first, 0)
        }
    }

    @Test func `calls fail with a code of their own while the migration waits, and go on afterwards`() async throws {
        let server = try PostgreSQLServer()
        let folder = try TemporaryFolder()
        let lock = "SELECT pg_advisory_xact_lock(hashtextextended('martlet schema', 0))"
        let holder = try server.session("BEGIN; \(lock); SELECT pg_sleep(600)", database: "postgres", folder)
        defer { holder.kill(9) }
        try waitUntil("the lock is held") {
            try server.query("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted") == "1"
        }
        try await withStores(at: server.url(), starts: false) { stores in
            let start = Stopwatch()
            #expect(await code { try await stores[0].start() } == .accountsMigrating)
            #expect(start.undisturbed < .seconds(20))
            // Longer than one wait for the lock and the pause after it.
            for _ in 0..<20 {
                let call = Stopwatch()
                let failure = await code { _ = try await stores[0].find(identity("apple", "001")) }
                #expect(failure == .accountsMigrating || failure == .accountsTimeout, "\(String(describing: failure))")
                // A call ends long before the lock; how soon depends on the machine.
                #expect(call.undisturbed < .seconds(20))
                #expect(stores[0].health.state == .unavailable && stores[0].health.code == .accountsMigrating)
                let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
                let count = try #require(Int(try server.query(waiting)))
                #expect(count <= 1)
                try await Task.sleep(for: .milliseconds(200))
            }
            _ = try server.query(
                "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted")
            #expect(try await waitFor(nil, stores[0]) < .seconds(30))
            #expect(try await stores[0].signIn(identity("apple", "001")).isNew)
        }
    }
}
