import MartletCore
import MartletRedis
import MartletSession
import MartletSessionTesting
import MartletTesting
import Testing
import WorldRedis

/// The gateway's client works with modeled servers as it does with real ones, in every topology.
@Suite(.timeLimit(.minutes(2))) struct RedisModelClientTests {
    private func sessions(_ client: RedisClient, prefix: String = "first:") async throws {
        let backend = RedisSessions(client: client, keyPrefix: prefix)
        var history = SessionHistory(seed: 3, startingAt: hourAhead(), on: [backend])
        try await history.run(steps: 150)
    }

    /// A client that waits for a replica and reads from replicas.
    private func with(_ url: String, _ body: (RedisClient) async throws -> Void) async throws {
        var options = patient
        options.readsReplicas = true
        options.waitTimeout = .milliseconds(50)
        try await withRedis(url, options: options) { client in
            try await client.waitUntilConnected()
            try await body(client)
        }
    }

    @Test func `a server alone, which restarts and forgets`() async throws {
        let servers = try ModeledServers(1) { RedisGroup(at: $0[0], engine: ScriptEngine(), clock: $1) }
        defer { servers.close() }
        try await with(servers.url("redis", servers.ports)) { client in
            let messages = Box<[[UInt8]]>([])
            let subscriber = RedisSubscriber(
                client, channel: "martlet:revoked", onMessage: { message in messages.withLock { $0.append(message) } },
                onGap: {})
            subscriber.start()
            defer { subscriber.shutdown() }
            try await subscriber.waitUntilConnected()
            try await sessions(client)
            try await client.publish([1], on: Array("martlet:revoked".utf8))
            try await eventually("the message arrives") { messages.value.contains([1]) }
            servers.change { $0.master().restart(keepsData: false) }
            _ = try await client.recovery()
            try await sessions(client, prefix: "second:")
            servers.change { $0.master().conditions = .loading }
            #expect(await client.outage(reading: "a") == .redisLoading)
        }
        #expect(servers.change { $0.unknownCommands } == [])
    }

    @Test func `a master with replicas and sentinels, and its failover`() async throws {
        let servers = try ModeledServers(6) {
            RedisGroup(
                at: Array($0[..<3]), sentinels: Array($0[3...]), name: "m", engine: ScriptEngine(), clock: $1)
        }
        defer { servers.close() }
        try await with(servers.url("redis+sentinel", servers.ports[3...], path: "/m/0")) { client in
            try await sessions(client)
            #expect(client.status.unreplicated == 0)
            servers.change { group in for link in group.master().links { group.master().setLag(.max, of: link.replica) }
            }
            let bench = SessionBench(backend: client.sessions(), startingAt: hourAhead())
            let tokens = try await bench.login()
            _ = try await bench.store.refresh(tokens.refreshToken)
            #expect(client.status.unreplicated == 1)
            // The login is written again to a master that has lost it.
            let second = try await bench.login("usr_bob")
            servers.change { group in
                group.failOver(losing: 100).map { group.rejoin($0) }
                #expect(!group.master().data.keys.contains { $0.bytes.starts(with: "martlet:".utf8) })
            }
            try await eventually("the session is back") { await bench.rejection(of: second.accessToken) == nil }
            #expect(servers.change { $0.master().address.port } == Int(servers.ports[1]))
            try await client.set([7], for: "k", lifetime: .seconds(60))
            try await eventually("a replica serves the read") { await client.replicatedValue(for: "k").isFound }
        }
        #expect(servers.change { $0.unknownCommands } == [])
    }

    @Test func `a cluster, a moved slot, and a failover`() async throws {
        let servers = try ModeledServers(6) {
            RedisGroup(cluster: [[$0[0], $0[3]], [$0[1], $0[4]], [$0[2], $0[5]]], engine: ScriptEngine(), clock: $1)
        }
        defer { servers.close() }
        try await with(servers.url("redis+cluster", servers.ports[..<3])) { client in
            try await sessions(client)
            let keys = (0..<30).map { "{\($0)}k" }
            for key in keys { try await client.set([1], for: key, lifetime: .seconds(60)) }
            let slot = RedisKey(Array("{7}k".utf8)).slot
            servers.change { group in
                let shard = group.shard(of: RedisKey(Array("{7}k".utf8)))
                group.beginMoving(slot, to: (shard + 1) % 3)
            }
            for key in keys { #expect(try await client.stored(key) == [1]) }
            servers.change { _ = $0.moveKeys(1, of: slot) }
            #expect(try await client.stored("{7}k") == [1])
            servers.change { $0.endMoving(slot) }
            #expect(try await client.stored("{7}k") == [1])
            let old = servers.change { group in group.failOver(shard: 0, losing: 0)?.address.port ?? 0 }
            servers.stop(old)
            for key in keys {
                try await eventually("\(key) is found") { (try? await client.stored(key)) == .some([1]) }
            }
            try await sessions(client, prefix: "second:")
        }
        #expect(servers.change { $0.unknownCommands } == [])
    }
}

extension StoreReply {
    fileprivate var isFound: Bool { if case .found = self { true } else { false } }
}
