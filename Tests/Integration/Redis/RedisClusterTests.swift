import MartletCore
import MartletRedis
import MartletTesting
import Testing

@Suite(.timeLimit(.minutes(2))) struct RedisClusterTests {
    @Test func `stores values on every master`() async throws {
        let cluster = try await onOwnThread { try RedisClusterServers() }
        try await withRedis(cluster.url) { client in
            try await client.waitUntilConnected()
            for number in 0..<200 {
                try await client.set([UInt8(number)], for: "key \(number)", lifetime: .seconds(60))
            }
            for number in 0..<200 { #expect(try await client.stored("key \(number)") == [UInt8(number)]) }
            for server in cluster.servers {
                let size = try server.command("DBSIZE")
                #expect(size != ":0\r\n", "\(size)")
            }
            #expect(client.status.nodes.count == 3)
        }
    }

    @Test func `finds a key by its name, on whichever master it is`() async throws {
        let cluster = try await onOwnThread { try RedisClusterServers() }
        try await withRedis(cluster.url) { client in
            try await client.waitUntilConnected()
            for number in 0..<30 { try await client.set([1], for: "key *\(number).", lifetime: .seconds(60)) }
            for number in 0..<30 {
                let name = Array("key *\(number).".utf8)
                #expect(try await client.name(matching: RedisClient.pattern(matching: name)) == name)
            }
            #expect(try await client.name(matching: RedisClient.pattern(matching: Array("key ?1.".utf8))) == nil)
        }
    }

    @Test func `is connected when the map comes after the last connection`() async throws {
        let cluster = try await onOwnThread { try RedisClusterServers(masters: 1) }
        try await withRedis(cluster.url) { client in
            try await client.waitUntilConnected()
            try await client.set([1], for: "a", lifetime: .seconds(60))
        }
    }

    @Test func `waiting for a cluster without slots ends`() async throws {
        let server = try RedisServer(isClusterNode: true)
        try await withRedis("redis+cluster://127.0.0.1:\(server.port)") { client in
            #expect(
                await failure { () async throws(StoreError) in try await client.waitUntilConnected() }
                    == .redisClusterDown)
            #expect(await client.outage(reading: "a") != nil)
        }
    }

    @Test func `waiting for a cluster that does not permit to ask for slots names the right`() async throws {
        let cluster = try await onOwnThread { try RedisClusterServers(masters: 1) }
        _ = try cluster.servers[0].command("ACL SETUSER default -cluster|slots")
        try await withRedis(cluster.url) { client in
            let start = Stopwatch()
            #expect(
                await failure { () async throws(StoreError) in try await client.waitUntilConnected() }
                    == .redisNotPermitted)
            #expect(client.status.lastError?.message.contains("+cluster|slots") == true)
            #expect(start.undisturbed < .seconds(2))
        }
    }

    @Test func `learns the other nodes from one seed`() async throws {
        let cluster = try await onOwnThread { try RedisClusterServers() }
        try await withRedis("redis+cluster://127.0.0.1:\(cluster.servers[1].port)") { client in
            try await client.waitUntilConnected()
            for number in 0..<50 {
                #expect(try await client.increment("counter \(number)", lifetime: .seconds(60)).count == 1)
            }
        }
    }

    @Test func `loses no command while slots are moved`() async throws {
        let cluster = try await onOwnThread { try RedisClusterServers() }
        try await withRedis(cluster.url) { client in
            try await client.waitUntilConnected()
            for number in 0..<400 { try await client.set([1], for: "k\(number)", lifetime: .seconds(600)) }
            let (tally, isOver) = (Box<[ErrorCode: Int]>([:]), Box(false))
            let done = Box(0)
            try await withThrowingTaskGroup { group in
                for worker in 0..<8 {
                    group.addTask {
                        var number = worker
                        while !isOver.value {
                            number = (number + 8) % 400
                            let key = "k\(number)"
                            let code = await client.outage(reading: key)
                            if let code { tally.withLock { $0[code, default: 0] += 1 } }
                            do throws(StoreError) {
                                _ = try await client.increment("n\(number)", lifetime: .seconds(600))
                            } catch {
                                tally.withLock { $0[error.code, default: 0] += 1 }
                            }
                            done.withLock { $0 += 2 }
                        }
                    }
                }
                for (source, target) in [(0, 1), (1, 2)] {
                    for slot in 0..<150 {
                        try await onOwnThread {
                            try cluster.move(slot, from: cluster.servers[source], to: cluster.servers[target])
                        }
                    }
                }
                isOver.withLock { $0 = true }
                try await group.waitForAll()
            }
            #expect(tally.value.isEmpty, "\(tally.value) of \(done.value)")
            #expect(done.value > 100)
            for number in 0..<400 { #expect(try await client.stored("k\(number)") == [1]) }
        }
    }

    @Test func `fails quickly for the slots of a lost master, and serves the others`() async throws {
        let cluster = try await onOwnThread {
            try RedisClusterServers(extra: ["--cluster-require-full-coverage", "no"])
        }
        try await withRedis(cluster.url) { client in
            try await client.waitUntilConnected()
            try await eventually("all nodes are connected") { client.status.nodes.count == 3 }
            try cluster.servers[2].stop()
            try await eventually("the node is lost") { client.status.nodes.count == 2 }
            var codes: [ErrorCode?: Int] = [:]
            let start = Stopwatch()
            for number in 0..<60 { codes[await client.outage(reading: "key \(number)"), default: 0] += 1 }
            // One may have been on its way to the lost node.
            let failures = (codes[.redisNotConnected] ?? 0) + (codes[.redisTimeout] ?? 0)
            #expect((codes[nil] ?? 0) > 20 && failures > 0 && (codes[nil] ?? 0) + failures == 60, "\(codes)")
            #expect(start.undisturbed < .seconds(10))
            #expect(client.status.state == .connected)
            let lost = RedisURL.Address.tcp(host: "127.0.0.1", port: cluster.servers[2].port)
            try await eventually("the loss is known") { Set(client.status.lostMasters.keys) == [lost] }
            #expect(client.status.masters == 3 && client.status.connectedMasters == 2)
            try cluster.servers[2].restart()
        }
    }

    @Test func `a server without cluster mode is an outage with a reason`() async throws {
        let server = try RedisServer()
        try await withRedis("redis+cluster://127.0.0.1:\(server.port)") { client in
            try await eventually("the reason is known") { client.status.lastError?.code == .redisNotCluster }
            #expect(await client.outage(reading: "a") != nil)
        }
    }

    @Test func `a cluster behind a plain URL is an outage with a reason`() async throws {
        let cluster = try await onOwnThread { try RedisClusterServers() }
        try await withRedis(cluster.servers[0].url) { client in
            try await client.waitUntilConnected()
            var codes: Set<ErrorCode?> = []
            for number in 0..<30 { codes.insert(await client.outage(reading: "key \(number)")) }
            #expect(codes == [nil, .redisMoved])
        }
    }
}
