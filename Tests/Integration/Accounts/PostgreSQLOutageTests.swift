import MartletAccounts
import MartletCore
import MartletTesting
import Testing

@Suite(.serialized, .timeLimit(.minutes(3))) struct PostgreSQLOutageTests {
    /// Waits until calls get through again; how long that took.
    private func recovery(_ store: AccountStore) async throws -> Duration {
        let stopwatch = Stopwatch()
        while stopwatch.undisturbed < .seconds(20) {
            if await code({ _ = try await store.find(identity("probe", "1")) }) == nil {
                return stopwatch.undisturbed
            }
            try await Task.sleep(for: .milliseconds(10))
        }
        throw TestFailure("no recovery: \(store.health)")
    }

    @Test func `is back soon after PostgreSQL is, with what it had`() async throws {
        let server = try PostgreSQLServer()
        let log = LogRecorder()
        try await withStores(at: server.url(), logger: Logger(log, minimum: .debug)) { stores in
            let store = stores[0]
            let account = try await store.signIn(identity("apple", "001"))
            try server.stop()
            // Long enough for the pauses between attempts to have grown.
            try await Task.sleep(for: .seconds(3))
            let start = Stopwatch()
            #expect(await code { _ = try await store.find(identity("apple", "001")) } == .accountsNotConnected)
            #expect(await code { _ = try await store.signIn(identity("apple", "002")) } == .accountsNotConnected)
            // Immediately, on a machine that is not loaded; not after a timeout.
            #expect(start.undisturbed < .seconds(3))
            #expect(store.health.state == .unavailable && store.health.code == .accountsConnectFailed)
            #expect(!store.health.detail.contains(PostgreSQLServer.password))
            try server.start()
            // Promised within 2 s on a machine that is not loaded.
            #expect(try await recovery(store) < .seconds(5))
            #expect(try await store.signIn(identity("apple", "001")).subject == account.subject)
            #expect(store.health.state == .ready && store.health.reconnects > 0)
        }
        #expect(log.texts.contains { $0.hasPrefix("warning account store unavailable") })
        #expect(log.texts.contains { $0.hasPrefix("info account store available again") })
    }

    @Test func `starts without PostgreSQL and finds it later`() async throws {
        let server = try PostgreSQLServer()
        try server.stop()
        try await withStores(at: server.url(), starts: false) { stores in
            #expect(await code { _ = try await stores[0].find(identity("a", "1")) } == .accountsNotStarted)
            #expect(await code { try await stores[0].start() } == .accountsConnectFailed)
            try server.start()
            _ = try await recovery(stores[0])
            #expect(try await stores[0].signIn(identity("apple", "001")).isNew)
        }
    }

    @Test func `ends calls at their deadline when PostgreSQL does not respond`() async throws {
        let server = try PostgreSQLServer()
        try await withStores(at: server.url()) { stores in
            let store = stores[0]
            _ = try await store.signIn(identity("apple", "001"))
            server.freeze(true)
            let stopwatch = Stopwatch()
            let codes = try await together(40) { index in
                await code { _ = try await store.signIn(identity("apple", "\(index % 4)")) }
            }
            #expect(stopwatch.elapsed >= .milliseconds(1900) && stopwatch.undisturbed < .seconds(8))
            #expect(codes.allSatisfy { $0 == .accountsTimeout || $0 == .accountsNotConnected }, "\(codes)")
            // The connections are given up when the server's own timeouts are over. The kernel accepts for a frozen server,
            // so the attempts to connect end at their deadline too.
            try await Task.sleep(for: .seconds(7))
            // A call does not wait for a connection then. The fastest of several, as other processes take the cores too.
            var fastest = Duration.seconds(60)
            for _ in 0..<5 {
                let later = Stopwatch()
                #expect(await code { _ = try await store.find(identity("apple", "001")) } == .accountsNotConnected)
                fastest = min(fastest, later.undisturbed)
            }
            #expect(fastest < .seconds(1))
            #expect(store.health.state == .unavailable)
            server.freeze(false)
            #expect(try await recovery(store) < .seconds(8))
        }
    }

    @Test func `never has more connections than the pool, whatever its statements wait for`() async throws {
        let server = try SharedPostgreSQL.get()
        let database = try server.makeDatabase()
        let folder = try TemporaryFolder()
        try await withStores(at: server.url(database: database)) { stores in
            let store = stores[0]
            _ = try await store.signIn(identity("apple", "001"))
            let lock = "LOCK TABLE accounts, identity_subjects IN ACCESS EXCLUSIVE MODE"
            let holder = try server.session("BEGIN; \(lock); SELECT pg_sleep(11)", database: database, folder)
            defer { holder.kill(9) }
            let sleeping = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'"
            try await eventually("the tables are locked") { try server.query(sleeping) != "0" }
            let mine = """
                SELECT count(*) FROM pg_stat_activity WHERE datname = '\(database)' AND application_name = 'martlet'
                """
            async let codes = together(40) { index in
                await code { _ = try await store.signIn(identity("apple", "\(index % 4)")) }
            }
            // Until long after the calls were given up, so that no connection was given up instead of its statements.
            let stopwatch = Stopwatch()
            var counts: [Int] = []
            while stopwatch.elapsed < .seconds(8) {
                counts.append(Int(try server.query(mine)) ?? 0)
                try await Task.sleep(for: .milliseconds(150))
            }
            #expect(counts.max() == 4, "\(counts)")
            #expect(try await codes.allSatisfy { $0 == .accountsTimeout || $0 == .accountsBusy })
            holder.kill(9)
            #expect(try await recovery(store) < .seconds(5))
            #expect(try Int(server.query(mine)) == 4)
        }
    }

    /// Waits until each of the pool's four connections has taken calls.
    private func whole(_ server: PostgreSQLServer, _ store: AccountStore) async throws {
        let asked = """
            SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%identity_subjects%' AND pid <> pg_backend_pid()
            """
        for _ in 0..<500 {
            _ = try await together(64) { _ in await code { _ = try await store.find(identity("apple", "001")) } }
            if try server.query(asked) == "4" { return }
            try await Task.sleep(for: .milliseconds(20))
        }
        throw TestFailure("not every connection takes calls")
    }

    @Test func `rejects immediately what exceeds a client's part of the queue`() async throws {
        let server = try PostgreSQLServer()
        try await withStores(at: server.url()) { stores in
            let store = stores[0]
            try await whole(server, store)
            server.freeze(true)
            let codes = try await together(1400) { _ in
                await code { _ = try await store.find(identity("apple", "001")) }
            }
            server.freeze(false)
            // 128 are under way, one is next, and of one client 256 wait.
            #expect(codes.count { $0 == .accountsSaturated } == 1400 - 128 - 1 - 256)
            #expect(codes.allSatisfy { $0 != nil })
            _ = try await recovery(store)
        }
    }

    @Test func `goes on when the server ends its connections`() async throws {
        let server = try SharedPostgreSQL.get()
        let database = try server.makeDatabase()
        try await withStores(at: server.url(database: database)) { stores in
            let store = stores[0]
            _ = try await store.signIn(identity("apple", "001"))
            for round in 0..<3 {
                let end = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = '\(database)'"
                #expect(try server.query(end + " AND pid <> pg_backend_pid()") == "4")
                let codes = try await together(20) { index in
                    await code { _ = try await store.signIn(identity("apple", "\(round).\(index)")) }
                }
                // A change whose commit was under way may fail; none of these was.
                #expect(codes.allSatisfy { $0 == nil }, "\(codes)")
                try await waitUntilRefilled(server, database)
            }
            #expect(store.health.state == .ready && store.health.reconnects >= 3)
        }
    }

    private func waitUntilRefilled(_ server: PostgreSQLServer, _ database: String) async throws {
        for _ in 0..<500 {
            let count = try server.query("SELECT count(*) FROM pg_stat_activity WHERE datname = '\(database)'")
            if count == "4" { return }
            try await Task.sleep(for: .milliseconds(20))
        }
        throw TestFailure("the pool is not whole again")
    }

    @Test func `a lock that others hold is waited for, up to a bound`() async throws {
        let server = try SharedPostgreSQL.get()
        let database = try server.makeDatabase()
        try await withStores(at: server.url(database: database)) { stores in
            let store = stores[0]
            _ = try await store.signIn(identity("apple", "001"))
            let folder = try TemporaryFolder()
            let holder = try server.session(
                "BEGIN; LOCK TABLE accounts IN EXCLUSIVE MODE; SELECT pg_sleep(30)", database: database, folder)
            defer { holder.kill(9) }
            try waitUntil("the table is locked") {
                try server.query(
                    "SELECT count(*) FROM pg_locks WHERE mode = 'ExclusiveLock' AND relation = 'accounts'::regclass",
                    database: database) == "1"
            }
            let failure = await code { _ = try await store.signIn(identity("apple", "002")) }
            #expect(failure == .accountsBusy || failure == .accountsTimeout)
            #expect(try await store.isKnown(identity("apple", "001")))
        }
    }

    @Test func `refuses writes where PostgreSQL takes none`() async throws {
        let server = try SharedPostgreSQL.get()
        let database = try server.makeDatabase()
        try await withStores(at: server.url(database: database)) { stores in
            _ = try await stores[0].signIn(identity("apple", "001"))
        }
        let options = "?options=-c%20default_transaction_read_only%3Don"
        try await withStores(at: server.url(database: database, options: options), starts: false) { stores in
            #expect(await code { try await stores[0].start() } == .accountsReadOnly)
            #expect(await code { _ = try await stores[0].signIn(identity("apple", "2")) } == .accountsReadOnly)
        }
    }

    @Test func `completes waiting calls when it is shut down`() async throws {
        let server = try PostgreSQLServer()
        try await withStores(at: server.url()) { stores in
            server.freeze(true)
            defer { server.freeze(false) }
            let store = stores[0]
            async let waiting = code { _ = try await store.find(identity("apple", "001")) }
            try await Task.sleep(for: .milliseconds(200))
            await store.shutdown()
            #expect(await waiting == .accountsStopped)
            #expect(await code { _ = try await store.find(identity("apple", "1")) } == .accountsNotStarted)
            #expect(store.health.state == .stopped)
        }
    }
}
