import MartletAccounts
import MartletCore
import MartletTesting
import Testing

/// Behind PgBouncer in transaction mode, with fewer connections to the server than the pool has.
@Suite(.serialized, .timeLimit(.minutes(2))) struct PostgreSQLPoolerTests {
    @Test func `changes and reads share the sessions of a pooler`() async throws {
        let server = try SharedPostgreSQL.get()
        let database = try server.makeDatabase()
        let pooler = try PgBouncer(server, size: 2)
        try await withStores(at: pooler.url(server, database: database), 2) { stores in
            let accounts = try await together(120) { index in
                try await stores[index % 2].signIn(identity("apple", "\(index % 30)"))
            }
            #expect(accounts.count(where: \.isNew) == 30)
            let codes = try await together(400) { index in
                await code { _ = try await stores[index % 2].find(identity("apple", "\(index % 30)")) }
            }
            #expect(codes.allSatisfy { $0 == nil }, "\(codes)")
            #expect(stores.allSatisfy { $0.health.state == .ready && $0.health.reconnects == 0 })
        }
        let count = "SELECT count(*) FROM pg_stat_activity WHERE datname = '\(database)' AND pid <> pg_backend_pid()"
        let sessions = try #require(Int(try server.query(count)))
        #expect(sessions <= 2)
        // No setting stays in the session.
        let url = pooler.url(server, database: database)
        let shown = try run(try Executable.named("psql"), ["--no-psqlrc", "-qtAXc", "SHOW statement_timeout", url])
        #expect(shown.output == "0\n")
    }

    @Test func `a statement that waits too long ends behind a pooler as well`() async throws {
        let server = try SharedPostgreSQL.get()
        let database = try server.makeDatabase()
        let pooler = try PgBouncer(server, size: 2)
        try await withStores(at: pooler.url(server, database: database)) { stores in
            _ = try await stores[0].signIn(identity("apple", "001"))
            let folder = try TemporaryFolder()
            let holder = try server.session(
                "BEGIN; LOCK TABLE accounts IN EXCLUSIVE MODE; SELECT pg_sleep(30)", database: database, folder)
            defer { holder.kill(9) }
            try waitUntil("the table is locked") {
                try server.query(
                    "SELECT count(*) FROM pg_locks WHERE mode = 'ExclusiveLock' AND relation = 'accounts'::regclass",
                    database: database) == "1"
            }
            let failure = await code { _ = try await stores[0].signIn(identity("apple", "002")) }
            #expect(failure == .accountsBusy || failure == .accountsTimeout)
            #expect(try await stores[0].isKnown(identity("apple", "001")))
        }
    }
}
