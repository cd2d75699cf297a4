import Foundation
import MartletTesting
import Testing

/// Stores that are up and do not do what they are for: `/readyz`, `martlet status` and the log say so, with a reason.
@Suite(.timeLimit(.minutes(4))) struct `Useless stores` {
    /// A way in which a Redis server that was useful becomes useless, and is mended.
    struct Way: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let code: String
        /// A part of the reason, with what to do.
        let hint: String
        let breaking: [String]
        let mending: [String]
        var extra: [String] = []
        /// Whether only writes that wait for replicas have a connection of their own, which is rejected.
        var isSeenByRefreshes = false
    }

    private static let dead = "127.0.0.1 9"

    static let ways = [
        Way(
            testDescription: "out of memory", code: "redis.out_of_memory", hint: "raise maxmemory",
            breaking: ["CONFIG SET maxmemory 1"], mending: ["CONFIG SET maxmemory 0"]),
        Way(
            testDescription: "too few replicas", code: "redis.no_replicas", hint: "min-replicas-to-write",
            breaking: ["CONFIG SET min-replicas-to-write 1"], mending: ["CONFIG SET min-replicas-to-write 0"]),
        Way(
            testDescription: "a replica", code: "redis.read_only", hint: "must name the master",
            breaking: ["REPLICAOF \(dead)"], mending: ["REPLICAOF NO ONE"]),
        Way(
            testDescription: "a replica without its master", code: "redis.master_down", hint: "INFO replication",
            breaking: ["CONFIG SET replica-serve-stale-data no", "REPLICAOF \(dead)"], mending: ["REPLICAOF NO ONE"]),
        Way(
            testDescription: "no right to run scripts", code: "redis.not_permitted", hint: "check --online",
            breaking: ["ACL SETUSER default -evalsha -eval"], mending: ["ACL SETUSER default +@all"]),
        Way(
            testDescription: "cannot save", code: "redis.misconfigured", hint: "its disk",
            breaking: ["BGSAVE"], mending: ["CONFIG SET stop-writes-on-bgsave-error no"], extra: ["--save", "3600 1"]),
        Way(
            testDescription: "too many clients", code: "redis.too_many_clients", hint: "raise maxclients",
            breaking: ["CONFIG SET maxclients 1"], mending: ["CONFIG SET maxclients 1000"], isSeenByRefreshes: true),
    ]

    /// The check `store` of `/readyz`, and what is wrong in the text of `martlet status`.
    private static func report(_ stage: SignInStage) throws -> String {
        let ready = try stage.gateway.askAdmin("/readyz")
        let status = try run(try Executable.martlet(), ["status", "--admin", "http://\(stage.gateway.admin)"])
        let document = try stage.gateway.askAdmin("/store")
        #expect(ready.status == 200, "\(ready)")
        return [ready.text, status.output, document.text].joined(separator: "\n")
    }

    /// Waits until all three say that the store is degraded, and why; and the log once.
    private static func expectDegraded(_ stage: SignInStage, _ code: String, _ hint: String) throws {
        try waitUntil("the store is degraded") {
            try stage.gateway.askAdmin("/readyz").text.contains("\"store\",\"state\":\"degraded\"")
        }
        let text = try report(stage)
        #expect(text.components(separatedBy: hint).count - 1 == 3, "\(text)")
        #expect(text.contains(code) && text.contains("store degraded"), "\(text)")
        let lines = stage.gateway.log.filter { $0["event"] == "redis commands fail" && $0["code"] == code }
        #expect(lines.count == 1 && lines.first?["reason"]?.contains(hint) == true, "\(lines)")
    }

    private static let login = ["username": "alice", "password": SignInStage.password]

    @Test(arguments: ways) func `of one server, until that kind of command succeeds`(way: Way) throws {
        let data = try TemporaryFolder()
        let folder = data.path + "/data"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
        let redis = try RedisServer(extra: way.extra.isEmpty ? [] : way.extra + ["--dir", folder])
        try withSignIn(more: "store: { url: \"\(redis.url)\", on_error: cached }") { stage in
            let tokens = try stage.passwordLogin()
            let admin = try RawSocket(connectingTo: .loopback(redis.port))
            func tell(_ commands: [String]) throws {
                for command in commands {
                    try admin.send(command + "\r\n")
                    let reply = String(decoding: try admin.receive(), as: UTF8.self)
                    #expect(reply.hasPrefix("+"), "\(command): \(reply)")
                }
            }
            if !way.extra.isEmpty { try FileManager.default.removeItem(atPath: folder) }
            try tell(way.breaking)
            if way.breaking == ["BGSAVE"] {
                try waitUntil("the save has failed") {
                    try redis.command("INFO persistence").contains("rdb_last_bgsave_status:err")
                }
            }
            func attempt() throws -> Int {
                way.isSeenByRefreshes
                    ? try stage.post("/auth/refresh", ["refresh_token": tokens.refresh]).status
                    : try stage.post("/auth/login/password", Self.login).status
            }
            #expect(try attempt() == 503)
            try Self.expectDegraded(stage, way.code, way.hint)
            // What still works does not hide it.
            _ = try stage.status(with: tokens.access)
            _ = try attempt()
            try Self.expectDegraded(stage, way.code, way.hint)
            try tell(way.mending)
            try waitUntil("logins succeed", within: .seconds(20)) { try attempt() == 200 }
            // Each kind of command that has failed has to succeed once.
            try waitUntil("the store is well") {
                _ = try attempt()
                _ = try stage.status(with: tokens.access)
                pause(.milliseconds(200))
                return try stage.gateway.askAdmin("/readyz").text.contains("\"store\",\"state\":\"connected\"")
            }
            #expect(stage.gateway.log.contains { $0["event"] == "redis commands succeed" })
        }
    }

    @Test func `of a server that loads its data, until it has`() throws {
        let redis = try RedisServer()
        try withSignIn(more: "store: { url: \"\(redis.url)\" }") { stage in
            #expect(try stage.post("/auth/login/password", Self.login).status == 200)
            _ = try redis.command("EVAL \"for i = 1, 8000 do redis.call('SET', 'other:' .. i, i) end\" 0")
            #expect(try redis.command("SAVE") == "+OK\r\n")
            try redis.stop()
            // 5 ms for each key.
            try redis.restart(extra: ["--key-load-delay", "5000", "--loading-process-events-interval-bytes", "1024"])
            try waitUntil("the log has the reason") {
                _ = try stage.post("/auth/login/password", Self.login)
                return stage.gateway.log.contains { $0["code"] == "redis.loading" }
            }
            #expect(try stage.post("/auth/login/password", Self.login).status == 503)
            let text = try Self.report(stage)
            #expect(text.contains("\"store\",\"state\":\"degraded\"") && text.contains("store degraded"), "\(text)")
            // The connection for revocations has the same reason.
            #expect(text.components(separatedBy: "it accepts commands when it has").count > 3, "\(text)")
            #expect(try redis.command("CONFIG SET key-load-delay 0") == "+OK\r\n")
            try waitUntil("logins succeed") { try stage.post("/auth/login/password", Self.login).status == 200 }
            try waitUntil("the store is well") {
                try stage.gateway.askAdmin("/readyz").text.contains("\"store\",\"state\":\"connected\"")
            }
        }
    }

    @Test func `at an address that is no store`() throws {
        let node = try RedisServer(isClusterNode: true)
        let master = try RedisServer()
        let sentinel = try RedisSentinelServers.Sentinel(of: master, quorum: 1, extra: [])
        let cluster = try RedisClusterServers()
        for (port, code, hint) in [
            (node.port, "redis.cluster_down", "redis-cli --cluster check"),
            (sentinel.port, "redis.command_unknown", "redis+sentinel://"),
            (cluster.servers[0].port, "redis.moved", "redis+cluster://"),
        ] {
            try withSignIn(more: "store: { url: \"redis://127.0.0.1:\(port)\" }") { stage in
                // Of a cluster, this node has the keys of some users.
                func login() throws -> Int {
                    let name = "user\(UInt32.random(in: 0 ... .max))"
                    return try stage.post("/auth/login/password", ["username": name, "password": "wrong password"])
                        .status
                }
                try waitUntil("a login fails") { try login() == 503 }
                try Self.expectDegraded(stage, code, hint)
                for _ in 0..<10 { _ = try login() }
                try Self.expectDegraded(stage, code, hint)
            }
        }
    }

    @Test func `PostgreSQL says why it does not execute a statement, in health and log`() throws {
        let server = try SharedPostgreSQL.get()
        for (breaking, mending, reason, hint) in [
            (
                "ALTER TABLE identity_subjects RENAME TO gone", "ALTER TABLE gone RENAME TO identity_subjects",
                "relation \\\"identity_subjects\\\" does not exist", "of its own"
            ),
            (
                "ALTER TABLE users RENAME COLUMN hash TO other", "ALTER TABLE users RENAME COLUMN other TO hash",
                "column",
                "of its own"
            ),
        ] {
            let database = try server.makeDatabase()
            let accounts = "accounts: { url: \"\(server.url(database: database))\" }"
            try withSignIn(accounts: accounts) { stage in
                _ = try stage.passwordLogin()
                _ = try server.query(breaking, database: database)
                for _ in 0..<3 { #expect(try stage.post("/auth/login/password", Self.login).status == 503) }
                let lines = stage.gateway.log.filter { $0["event"] == "account store statement failed" }
                let plain = reason.replacing("\\\"", with: "\"")
                #expect(lines.count == 1, "\(lines)")
                #expect(lines.first?["reason"]?.contains(plain) == true, "\(lines)")
                #expect(lines.first?["reason"]?.contains(hint) == true, "\(lines)")
                let text = try Self.report(stage)
                #expect(text.contains("\"accounts\",\"state\":\"degraded\""), "\(text)")
                #expect(text.contains("accounts degraded: calls fail") && text.contains(hint), "\(text)")
                // Background work, which succeeds, does not hide it.
                pause(.seconds(2))
                #expect(try Self.report(stage).contains("accounts degraded"))
                _ = try server.query(mending, database: database)
                try waitUntil("logins succeed") { try stage.post("/auth/login/password", Self.login).status == 200 }
                try waitUntil("the store is well") {
                    try stage.gateway.askAdmin("/readyz").text.contains("\"accounts\",\"state\":\"ready\"")
                }
                #expect(stage.gateway.log.contains { $0["event"] == "account store calls succeed" })
            }
        }
    }

    @Test func `locks of PostgreSQL that logins wait for are named until they succeed`() throws {
        let server = try SharedPostgreSQL.get()
        let database = try server.makeDatabase()
        let accounts = "accounts: { url: \"\(server.url(database: database))\", statement_timeout: 500ms }"
        try withSignIn(accounts: accounts) { stage in
            _ = try stage.passwordLogin()
            let holder = try server.session(
                "BEGIN; LOCK TABLE users IN ACCESS EXCLUSIVE MODE; SELECT pg_sleep(5)", database: database,
                stage.gateway.folder)
            defer { holder.kill(9) }
            try waitUntil("a login waits in vain") { try stage.post("/auth/login/password", Self.login).status == 503 }
            let text = try Self.report(stage)
            #expect(text.contains("accounts degraded: calls fail"), "\(text)")
            try waitUntil("the store is well", within: .seconds(30)) {
                _ = try stage.post("/auth/login/password", Self.login)
                pause(.milliseconds(300))
                return try stage.gateway.askAdmin("/readyz").text.contains("\"accounts\",\"state\":\"ready\"")
            }
        }
    }

    @Test func `a user of PostgreSQL who may not create tables is named by the command, the check and the log`() throws
    {
        let server = try SharedPostgreSQL.get()
        let database = try server.makeDatabase()
        let role = "r\(UInt32.random(in: 0 ... .max))"
        _ = try server.query("CREATE ROLE \(role) LOGIN PASSWORD 'secret'")
        _ = try server.query("REVOKE CREATE ON SCHEMA public FROM PUBLIC", database: database)
        let folder = try TemporaryFolder()
        var config = GatewayConfig(endpoints: ["http://127.0.0.1:9"], providers: "password: { kind: password }")
        let host = try #require(server.url(database: database).components(separatedBy: "@").last)
        config.more = "accounts: { url: \"postgresql://\(role):secret@\(host)\" }\n"
        let path = try folder.write(config.text, to: "config.yaml")
        let checked = try run(try Executable.martlet(), ["check", "--online", "--config", path])
        #expect(checked.output.contains("GRANT CREATE ON SCHEMA public"), "\(checked)")
        let added = try run(
            try Executable.martlet(), ["user", "add", "ada", "--config", path], input: "correct horse battery\n")
        #expect(added.ending == .exited(69), "\(added)")
        #expect(added.errorOutput.contains("permission denied for schema public"), "\(added)")
        #expect(added.errorOutput.contains("GRANT CREATE"), "\(added)")
    }

    @Test func `a policy that evicts sessions is a warning, at the start and of the check`() throws {
        let redis = try RedisServer(extra: ["--maxmemory", "20mb", "--maxmemory-policy", "volatile-lru"])
        try withSignIn(more: "store: { url: \"\(redis.url)\" }") { stage in
            try waitUntil("the log has it") {
                stage.gateway.log.contains { $0["event"] == "redis may evict sessions" && $0["level"] == "warning" }
            }
            let path = stage.gateway.folder.file("config.yaml")
            let checked = try run(try Executable.martlet(), ["check", "--online", "--config", path])
            #expect(checked.output.contains("store: warning: maxmemory-policy is volatile-lru"), "\(checked)")
        }
    }

    @Test(arguments: [("off ~* &* +@all", true), ("off", false)])
    func `a default user that is off keeps its rights, or the check warns`(rights: String, isGood: Bool) throws {
        let folder = try TemporaryFolder()
        let users = try folder.write(
            "user default \(rights)\nuser gw on >pw ~martlet:* &martlet:revoked +@all\n", to: "users.acl")
        let redis = try RedisServer(extra: ["--aclfile", users, "--appendonly", "yes", "--appendfsync", "always"])
        try withSignIn(more: "store: { url: \"redis://gw:pw@127.0.0.1:\(redis.port)\" }") { stage in
            let checked = try run(
                try Executable.martlet(),
                ["check", "--online", "--config", stage.gateway.folder.file("config.yaml")])
            #expect(checked.output.contains("store: warning: the default user") == !isGood, "\(checked)")
            guard isGood else { return }
            // What scripts wrote is there after a restart.
            let tokens = try stage.passwordLogin()
            try redis.stop()
            try redis.restart()
            try waitUntil("the session is found") { try stage.status(with: tokens.access) == 200 }
        }
    }
}
