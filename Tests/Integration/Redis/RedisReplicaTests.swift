import Foundation
import MartletCore
import MartletRedis
import MartletSession
import MartletSessionTesting
import MartletTesting
import Testing

/// `store.replicas: keys`: what replicas serve, with real servers.
@Suite(.serialized, .timeLimit(.minutes(3))) struct RedisReplicaTests {
    private let options: RedisOptions = {
        var options = RedisOptions()
        options.readsReplicas = true
        return options
    }()

    private func text(_ text: String) -> [UInt8] { Array(text.utf8) }

    private func replica(of master: RedisServer, extra: [String] = []) throws -> RedisServer {
        let replica = try RedisServer(extra: ["--replicaof", "127.0.0.1 \(master.port)"] + extra)
        try waitUntil("the replica is in sync") {
            try replica.command("INFO replication").contains("master_link_status:up")
        }
        return replica
    }

    /// A master and a replica whose value of `k` is another one, so that it shows who has served a read.
    private func pair() throws -> (master: RedisServer, replica: RedisServer) {
        let master = try RedisServer()
        let replica = try replica(of: master, extra: ["--replica-read-only", "no"])
        #expect(try master.command("SET k master") == "+OK\r\n")
        try waitUntil("the replica has it") { try replica.command("GET k").contains("master") }
        #expect(try replica.command("SET k replica") == "+OK\r\n")
        return (master, replica)
    }

    private func isServed(_ client: RedisClient, _ value: String) async -> Bool {
        if case .found(text(value)) = await client.replicatedValue(for: "k") { true } else { false }
    }

    @Test func `issuers' keys are read from a replica, and nothing else is`() async throws {
        let (master, replica) = try await onOwnThread { try pair() }
        for key in ["taken", "absent"] { #expect(try replica.command("SET \(key) planted") == "+OK\r\n") }
        #expect(try replica.command("SET count 100") == "+OK\r\n")
        try await withRedis(master.url, options: options) { client in
            try await client.waitUntilConnected()
            try await eventually("the replica serves") { await isServed(client, "replica") }
            for _ in 0..<20 {
                #expect(await isServed(client, "replica"))
                #expect(try await client.stored("k") == text("master"))
            }
            for purpose in StorePurpose.allCases {
                guard case .found(let value) = await client.partition(purpose, for: .gateway).value(for: "k") else {
                    throw TestFailure("no value")
                }
                #expect(value == text("master"))
            }
            if case .miss = await client.take("taken") {} else { Issue.record("taken from the replica") }
            #expect(try await client.increment("count", lifetime: .seconds(60)).count == 1)
            #expect(try await client.counter("count").count == 1)
            #expect(try await client.setIfAbsent([1], for: "absent", lifetime: .seconds(60)))
        }
    }

    @Test func `what a replica has is verified with the seal of the store`() async throws {
        let (master, replica) = try await onOwnThread { try pair() }
        try await withRedis(master.url, options: options) { client in
            try await client.waitUntilConnected()
            let key = Secret([UInt8](repeating: 1, count: StoreSeal.keyLength))
            let seal = try #require(StoreSeal(keys: [key], clock: .system, logger: .silent))
            let store = SealedStore(client, seal: seal).partition(.keys, for: .gateway)
            try await store.set([1], for: "keys", lifetime: .seconds(60))
            try await eventually("the replica serves") { await isServed(client, "replica") }
            try await eventually("the replica has it") { try replica.command("EXISTS keys") == ":1\r\n" }
            guard case .found([1]) = await store.replicatedValue(for: "keys") else { throw TestFailure("no value") }
            #expect(try replica.command("SET keys planted") == "+OK\r\n")
            guard case .miss = await store.replicatedValue(for: "keys") else { throw TestFailure("planted") }
            #expect(seal.failures.counts[.key] == 1)
            guard case .found([1]) = await store.value(for: "keys") else { throw TestFailure("no value") }
        }
    }

    @Test func `a session is never read from a replica`() async throws {
        let (master, replica) = try await onOwnThread { try pair() }
        try await withInstances(1, of: replica) { planters in
            try await withInstances(1, of: master, options: options) { clients in
                try await eventually("the replica serves") { await isServed(clients[0], "replica") }
                let bench = SessionBench(backend: clients[0].sessions(), clock: Box(hourAhead()))
                let tokens = try await bench.login()
                let key = try await clients[0].key("s")
                try await eventually("the replica has it") {
                    try await planters[0].command([text("EXISTS"), key]) == .integer(1)
                }
                guard case .bytes(let record) = try await planters[0].command([text("DUMP"), key]) else {
                    throw TestFailure("no record")
                }
                try await planters[0].ask("FLUSHALL")
                for _ in 0..<10 { #expect(await bench.rejection(of: tokens.accessToken) == nil) }

                // A session that has ended, and that the replica has still.
                _ = try await clients[0].command([text("DEL"), key])
                _ = try await planters[0].command([text("RESTORE"), key, text("0"), record])
                for _ in 0..<10 { #expect(await bench.rejection(of: tokens.accessToken) != nil) }
                #expect(await bench.rejection(ofRefreshing: tokens.refreshToken)?.code == "session.unknown")
            }
            guard case .bytes(let calls) = try await planters[0].ask("INFO", "commandstats") else {
                throw TestFailure("no statistics")
            }
            let statistics = String(decoding: calls, as: UTF8.self)
            #expect(statistics.contains("cmdstat_get:"))
            for name in ["eval", "evalsha", "hget", "hmget", "hgetall", "getdel"] {
                #expect(!statistics.contains("cmdstat_\(name):"), "\(statistics)")
            }
        }
    }

    @Test func `without the option no replica is connected, and a single master is not asked for its role`()
        async throws
    {
        let (master, replica) = try await onOwnThread { try pair() }
        try await withRedis(master.url) { client in
            try await client.waitUntilConnected()
            for _ in 0..<20 {
                #expect(await isServed(client, "master"))
                try await Task.sleep(for: .milliseconds(100))
            }
            #expect(try !replica.command("CLIENT LIST").contains("name=martlet"))
            #expect(try !master.command("INFO commandstats").contains("cmdstat_role:"))
        }
    }

    @Test func `keys can be read while the only master does not respond, and nothing else can`() async throws {
        let (master, replica) = try await onOwnThread { try pair() }
        try await withRedis(master.url, options: options) { client in
            try await client.waitUntilConnected()
            try await eventually("the replica serves") { await isServed(client, "replica") }
            master.freeze(true)
            defer { master.freeze(false) }
            var outages: Set<ErrorCode> = []
            let end = ContinuousClock.now + .seconds(4)
            while ContinuousClock.now < end {
                #expect(await isServed(client, "replica"))
                if let code = await client.outage(reading: "k") { outages.insert(code) }
            }
            #expect(client.status.state == .down && !outages.isEmpty)
            #expect(try gets(replica) > 10)
        }
    }

    @Test func `keys can be read when the master is gone, although the replica's link is down`() async throws {
        let (master, replica) = try await onOwnThread { try pair() }
        try await withRedis(master.url, options: options) { client in
            try await client.waitUntilConnected()
            try await eventually("the replica serves") { await isServed(client, "replica") }
            try master.stop()
            try await eventually("the link is down") {
                try replica.command("INFO replication").contains("master_link_status:down")
            }
            try await Task.sleep(for: .seconds(2))
            for _ in 0..<20 { #expect(await isServed(client, "replica")) }
        }
    }

    @Test func `a replica without a link is not read while its master responds`() async throws {
        let (master, replica) = try await onOwnThread { try pair() }
        try await withRedis(master.url, options: options) { client in
            try await client.waitUntilConnected()
            try await eventually("the replica serves") { await isServed(client, "replica") }
            #expect(try replica.command("REPLICAOF 127.0.0.1 \(try refusedPort())") == "+OK\r\n")
            try await eventually("the master serves") { await isServed(client, "master") }
            #expect(await isServed(client, "master"))
        }
    }

    @Test func `the master serves what a replica does not have, and when the replica is frozen or gone`() async throws {
        let (master, replica) = try await onOwnThread { try pair() }
        try await withRedis(master.url, options: options) { client in
            try await client.waitUntilConnected()
            try await eventually("the replica serves") { await isServed(client, "replica") }
            #expect(try replica.command("DEL k") == ":1\r\n")
            for _ in 0..<5 { #expect(await isServed(client, "master")) }
            #expect(try replica.command("SET k replica") == "+OK\r\n")
            replica.freeze(true)
            for _ in 0..<20 { #expect(await isServed(client, "master")) }
            replica.freeze(false)
            try await eventually("the replica serves again") { await isServed(client, "replica") }
            try replica.stop()
            for _ in 0..<20 { #expect(await isServed(client, "master")) }
        }
    }

    @Test func `with Sentinel keys can be read until there is another master, and then from its replicas`()
        async throws
    {
        let servers = try await onOwnThread { try RedisSentinelServers() }
        #expect(try servers.master.command("SET k master") == "+OK\r\n")
        try await withRedis(servers.url, options: options) { client in
            try await client.waitUntilConnected()
            try await eventually("replicas are connected") {
                _ = await client.replicatedValue(for: "k")
                return try servers.replicas.allSatisfy { try $0.command("CLIENT LIST").contains("name=martlet") }
            }
            try await Task.sleep(for: .seconds(1))
            servers.master.freeze(true)
            defer { servers.master.freeze(false) }
            // No sentinel has noticed yet.
            for _ in 0..<20 { #expect(await isServed(client, "master")) }
            #expect(await client.outage(reading: "k") != nil)
            try await eventually("there is another master", within: .seconds(20)) {
                _ = await client.replicatedValue(for: "k")
                return servers.masterPort != nil && servers.masterPort != servers.master.port
            }
            try await eventually("the client follows") { await client.outage(reading: "k") == nil }
            let port = try #require(servers.masterPort)
            let other = try #require(servers.replicas.first { $0.port != port })
            let before = try gets(other)
            try await eventually("the other replica serves") {
                _ = await client.replicatedValue(for: "k")
                return try gets(other) > before + 5
            }
        }
    }

    /// How many GETs a server has executed.
    private func gets(_ server: RedisServer) throws -> Int {
        let text = try server.command("INFO commandstats")
        guard let start = text.range(of: "cmdstat_get:calls=") else { return 0 }
        return Int(text[start.upperBound...].prefix { $0.isNumber }) ?? 0
    }

    @Test func `in a cluster keys can be read while the master of their slot is unavailable`() async throws {
        // So that there is no other master, and nodes go on without this one.
        let partial = ["--cluster-require-full-coverage", "no"]
        let cluster = try await onOwnThread { try RedisClusterServers(extra: partial) }
        let replicas = try await onOwnThread {
            try cluster.servers.map {
                try cluster.addReplica(of: $0, extra: partial + ["--cluster-replica-no-failover", "yes"])
            }
        }
        try await withRedis(cluster.url, options: options) { client in
            try await client.waitUntilConnected()
            try await eventually("every master can be written to") {
                for key in ["a", "b", "c", "k"] {
                    try await client.set(text("master"), for: key, lifetime: .seconds(600))
                }
                return true
            }
            // The slot of `k` is 7629.
            let (owner, replica) = (cluster.servers[1], replicas[1])
            #expect(try owner.command("GET k").contains("master"))
            try await eventually("the replica serves", within: .seconds(30)) {
                _ = await client.replicatedValue(for: "k")
                return try gets(replica) > 0
            }
            #expect(try replicas[0].command("CLIENT LIST").contains("name=martlet") == false, "it was not needed")
            owner.freeze(true)
            defer { owner.freeze(false) }
            let end = ContinuousClock.now + .seconds(5)
            while ContinuousClock.now < end {
                #expect(await isServed(client, "master"))
                try await Task.sleep(for: .milliseconds(10))
            }
            #expect(await client.outage(reading: "k") != nil)
        }
    }
}
