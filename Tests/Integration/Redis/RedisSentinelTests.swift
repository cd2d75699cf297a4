import MartletCore
import MartletIO
import MartletRedis
import MartletTesting
import Testing

@Suite(.timeLimit(.minutes(2))) struct RedisSentinelTests {
    @Test func `follows a failover after the master was killed`() async throws {
        let servers = try await onOwnThread { try RedisSentinelServers() }
        try await withRedis(servers.url) { client in
            try await client.waitUntilConnected()
            try await client.set([1], for: "a", lifetime: .seconds(600))
            #expect(try await client.stored("a") == [1])
            try servers.master.stop()
            try await eventually("there is another master", within: .seconds(20)) {
                guard let port = servers.masterPort else { return false }
                return port != servers.master.port
            }
            #expect(try await client.recovery() < .seconds(3))
            try await client.set([2], for: "b", lifetime: .seconds(600))
            #expect(try await client.stored("b") == [2])
        }
    }

    @Test func `leaves a master that is no longer one, without losing a command`() async throws {
        let servers = try await onOwnThread { try RedisSentinelServers() }
        try await withRedis(servers.url) { client in
            try await client.waitUntilConnected()
            let (codes, isOver) = (Box<[ErrorCode: Int]>([:]), Box(false))
            try await withThrowingTaskGroup { group in
                group.addTask {
                    while !isOver.value {
                        if let code = await client.outage(reading: "a") { codes.withLock { $0[code, default: 0] += 1 } }
                        try await Task.sleep(for: .milliseconds(5))
                    }
                }
                #expect(try servers.sentinels[0].command("SENTINEL FAILOVER mymaster") == "+OK\r\n")
                try await eventually("there is another master", within: .seconds(20)) {
                    servers.masterPort != servers.master.port
                }
                try await Task.sleep(for: .seconds(3))
                isOver.withLock { $0 = true }
                try await group.waitForAll()
            }
            #expect(codes.value.values.reduce(0, +) < 20, "\(codes.value)")
            try await client.set([1], for: "a", lifetime: .seconds(60))
            let port = try #require(servers.masterPort)
            #expect(client.status.nodes == [.tcp(host: "127.0.0.1", port: port)])
        }
    }

    @Test func `accepts nothing from an old master that comes back`() async throws {
        let servers = try await onOwnThread { try RedisSentinelServers() }
        try await withRedis(servers.url) { client in
            try await client.waitUntilConnected()
            try await client.set([1], for: "a", lifetime: .seconds(600))
            servers.master.freeze(true)
            try await eventually("there is another master", within: .seconds(20)) {
                guard let port = servers.masterPort else { return false }
                return port != servers.master.port
            }
            _ = try await client.recovery()
            try await client.set([2], for: "a", lifetime: .seconds(600))
            servers.master.freeze(false)
            let end = ContinuousClock.now + .seconds(3)
            while ContinuousClock.now < end {
                let found = await client.value(for: "a")
                if case .found(let value) = found { #expect(value == [2]) }
                try await Task.sleep(for: .milliseconds(5))
            }
        }
    }

    @Test func `names the right when the sentinels do not permit the question`() async throws {
        let servers = try await onOwnThread { try RedisSentinelServers(replicas: 1, sentinels: 1) }
        _ = try servers.sentinels[0].command("ACL SETUSER default -sentinel|master")
        try await withRedis(servers.url) { client in
            #expect(
                await failure { () async throws(StoreError) in try await client.waitUntilConnected() }
                    == .redisNotPermitted)
            #expect(client.status.lastError?.message.contains("+sentinel|master") == true)
        }
    }

    @Test func `follows sentinels that were set up anew, and whose epochs begin again`() async throws {
        let servers = try await onOwnThread { try RedisSentinelServers(replicas: 1, sentinels: 1) }
        let (sentinel, first, second) = (servers.sentinels[0], servers.master, servers.replicas[0])
        try await withRedis(servers.url) { client in
            try await client.waitUntilConnected()
            // Not before the sentinel knows the state of the replica.
            try await eventually("a failover begins", within: .seconds(20)) {
                try sentinel.command("SENTINEL FAILOVER mymaster") == "+OK\r\n"
            }
            try await eventually("there is another master", within: .seconds(20)) { servers.masterPort == second.port }
            _ = try await client.recovery()
            _ = try first.command("REPLICAOF NO ONE")
            _ = try second.command("REPLICAOF 127.0.0.1 \(first.port)")
            #expect(try sentinel.command("SENTINEL REMOVE mymaster") == "+OK\r\n")
            #expect(try sentinel.command("SENTINEL MONITOR mymaster 127.0.0.1 \(first.port) 1") == "+OK\r\n")
            try await eventually("the client is at the first one again", within: .seconds(15)) {
                client.status.nodes == [.tcp(host: "127.0.0.1", port: first.port)]
            }
            try await client.set([1], for: "a", lifetime: .seconds(60))
        }
    }

    @Test func `names the reason when no sentinel knows the master`() async throws {
        let servers = try await onOwnThread { try RedisSentinelServers(replicas: 1, sentinels: 1) }
        let url = "redis+sentinel://127.0.0.1:\(servers.sentinels[0].port)/another"
        try await withRedis(url) { client in
            try await eventually("the reason is known") { client.status.lastError?.code == .redisMasterUnknown }
        }
    }

    @Test func `acknowledges a write without the right to wait, and counts it`() async throws {
        let servers = try await onOwnThread { try RedisSentinelServers(replicas: 1, sentinels: 1) }
        let script = RedisScript("return redis.call('SET', KEYS[1], ARGV[1])", traits: .waitsForReplicas)
        _ = try servers.master.command("ACL SETUSER default -wait")
        try await withRedis(servers.url, options: patient) { client in
            try await client.waitUntilConnected()
            _ = try await client.run(script, keys: [[0x61]], arguments: [[0x31]], expecting: .anything)
            #expect(client.status.unreplicated == 1)
        }
    }

    @Test func `acknowledges a write without a replica, and counts it`() async throws {
        let servers = try await onOwnThread { try RedisSentinelServers(replicas: 1, sentinels: 1) }
        let script = RedisScript("return redis.call('SET', KEYS[1], ARGV[1])", traits: .waitsForReplicas)
        try await withRedis(servers.url, options: patient) { client in
            try await client.waitUntilConnected()
            func write() async throws {
                _ = try await client.run(script, keys: [[0x61]], arguments: [[0x31]], expecting: .anything)
            }
            try await eventually("the write connection is there") { client.status.nodes.count == 1 }
            try await Task.sleep(for: .milliseconds(300))
            try await write()
            #expect(client.status.unreplicated == 0)
            servers.replicas[0].freeze(true)
            defer { servers.replicas[0].freeze(false) }
            try await withThrowingTaskGroup { group in
                for _ in 0..<20 { group.addTask { try await write() } }
                try await group.waitForAll()
            }
            #expect(client.status.unreplicated == 20)
            // They wait together, not one after the other.
            let info = try servers.master.command("INFO commandstats")
            let line = try #require(info.split(separator: "\r\n").first { $0.hasPrefix("cmdstat_wait:calls=") })
            let calls = try #require(Int(line.dropFirst("cmdstat_wait:calls=".count).prefix { $0 != "," }))
            #expect((2...12).contains(calls), "\(line)")
        }
    }
}
