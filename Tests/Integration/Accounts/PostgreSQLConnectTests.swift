import MartletAccounts
import MartletCore
import MartletTesting
import Testing

@Suite(.timeLimit(.minutes(2))) struct PostgreSQLConnectTests {
    @Test func `speaks TLS to a server it can verify by name and by address`() async throws {
        let server = try SharedPostgreSQL.get()
        let database = try server.makeDatabase()
        let options = "?sslmode=verify-full&sslrootcert=\(server.authority.certificateFile)"
        for host in ["localhost", "127.0.0.1"] {
            try await withStores(at: server.url(database: database, host: host, options: options)) { stores in
                _ = try await stores[0].signIn(identity("apple", host))
                let query = "SELECT bool_and(ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE datname = "
                let isOpaque = try server.query(query + "'\(database)'")
                #expect(isOpaque == "t")
            }
        }
    }

    @Test func `shows its certificate to a server that asks for one`() async throws {
        let server = try SharedPostgreSQL.get()
        let database = try server.makeDatabase()
        let ours = try server.authority.issue("martlet-client", ["DNS:client"])
        let options =
            "?sslmode=verify-full&sslrootcert=\(server.authority.certificateFile)"
            + "&sslcert=\(ours.certificateFile)&sslkey=\(ours.keyFile)"
        try await withStores(at: server.url(database: database, host: "localhost", options: options)) { stores in
            _ = try await stores[0].signIn(identity("apple", "001"))
            let query = "SELECT bool_and(client_dn = '/CN=martlet-client') FROM pg_stat_ssl JOIN pg_stat_activity "
            let isSeen = try server.query(query + "USING (pid) WHERE datname = '\(database)'")
            #expect(isSeen == "t")
        }
    }

    @Test func `refuses servers it cannot verify`() async throws {
        let server = try SharedPostgreSQL.get()
        let stranger = try CertificateAuthority(name: "Stranger")
        let options = "?sslmode=verify-full&sslrootcert=\(stranger.certificateFile)"
        try await withStores(at: server.url(options: options), starts: false) { stores in
            #expect(await code { try await stores[0].start() } == .accountsConnectFailed)
            #expect(stores[0].health.detail.contains("certificate verify failed"))
        }
    }

    @Test func `speaks over a Unix socket`() async throws {
        let server = try SharedPostgreSQL.get()
        try await withStores(at: server.socketURL(database: try server.makeDatabase())) { stores in
            let account = try await stores[0].signIn(identity("apple", "001"))
            #expect(account.isNew)
        }
    }

    @Test func `goes on to the next server if one is unavailable`() async throws {
        let server = try SharedPostgreSQL.get()
        let away = try refusedPort()
        let url = server.url(database: try server.makeDatabase())
            .replacing("@127.0.0.1:\(server.port)", with: "@localhost:\(away),127.0.0.1:\(server.port)")
        try await withStores(at: url) { stores in
            let account = try await stores[0].signIn(identity("apple", "001"))
            #expect(account.isNew)
        }
    }

    @Test func `says why it is not let in, without the password`() async throws {
        let server = try SharedPostgreSQL.get()
        let wrong = server.url().replacing("p%40ss%3Aw%2Frd%25", with: "open-sesame")
        let cases = [wrong, server.url(database: "nowhere"), server.url(host: "no-such-host.invalid")]
        for (url, expected) in zip(cases, ["password", "nowhere", "no-such-host.invalid"]) {
            try await withStores(at: url, starts: false) { stores in
                let failure = await code { try await stores[0].start() }
                #expect(failure == .accountsConnectFailed || failure == .accountsNameUnknown)
                let detail = stores[0].health.detail
                #expect(detail.contains(expected), "\(detail)")
                #expect(!detail.contains("open-sesame") && !detail.contains("p@ss"))
            }
        }
    }

    @Test func `several instances make the tables of an empty database concurrently`() async throws {
        let server = try SharedPostgreSQL.get()
        let database = try server.makeDatabase()
        try await withStores(at: server.url(database: database)) { _ in }
        let empty = "DROP SCHEMA public CASCADE; CREATE SCHEMA public; GRANT ALL ON SCHEMA public TO PUBLIC"
        _ = try server.query(empty, database: database)
        try await withStores(at: server.url(database: database), 4, starts: false) { stores in
            _ = try await together(4) { index in try await stores[index].start() }
            _ = try await stores[0].signIn(identity("apple", "001"))
            for store in stores { #expect(try await store.isKnown(identity("apple", "001"))) }
        }
        #expect(try server.query("SELECT version FROM martlet_schema", database: database) == "1")
    }

    @Test func `runs on the schema of the next version`() async throws {
        let server = try SharedPostgreSQL.get()
        let database = try server.makeDatabase()
        try await withStores(at: server.url(database: database)) { _ in }
        _ = try server.query(
            "INSERT INTO martlet_schema SELECT max(version) + 1 FROM martlet_schema", database: database)
        try await withStores(at: server.url(database: database)) { stores in
            let account = try await stores[0].signIn(identity("apple", "001"))
            #expect(account.isNew)
        }
        _ = try server.query(
            "INSERT INTO martlet_schema SELECT max(version) + 1 FROM martlet_schema", database: database)
        try await withStores(at: server.url(database: database), starts: false) { stores in
            #expect(await code { try await stores[0].start() } == .accountsSchemaNewer)
        }
    }

    @Test func `refuses a database of a newer version`() async throws {
        let server = try SharedPostgreSQL.get()
        let database = try server.makeDatabase()
        try await withStores(at: server.url(database: database)) { _ in }
        _ = try server.query("INSERT INTO martlet_schema VALUES (1000)", database: database)
        try await withStores(at: server.url(database: database), starts: false) { stores in
            #expect(await code { try await stores[0].start() } == .accountsSchemaNewer)
            #expect(await code { _ = try await stores[0].find(identity("a", "1")) } != nil)
            #expect(stores[0].health.state == .unavailable)
        }
    }

    @Test func `needs no right to make tables once they are there`() async throws {
        let server = try SharedPostgreSQL.get()
        let database = try server.makeDatabase()
        try await withStores(at: server.url(database: database)) { _ in }
        let role = "least_" + database
        _ = try server.query(
            """
            CREATE ROLE \(role) LOGIN PASSWORD 'x'; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO \(role)
            """, database: database)
        let url = "postgresql://\(role):x@127.0.0.1:\(server.port)/\(database)"
        try await withStores(at: url) { stores in
            let account = try await stores[0].signIn(identity("apple", "001"))
            #expect(account.isNew)
        }
    }
}
