import Foundation
import MartletCore
import MartletRedis
import MartletTesting
import Testing

private let writing = RedisScript("redis.call('SET', KEYS[1], ARGV[1]) return redis.call('GET', KEYS[1])")
private let nesting = RedisScript("return {{false, 1, KEYS[2]}, {}, redis.call('HMGET', KEYS[1], 'a', 'b')}")

extension RedisClient {
    /// The code that a write in a script fails with.
    fileprivate func scriptFailure() async -> ErrorCode? {
        await failure { () async throws(StoreError) in
            _ = try await run(writing, keys: [Array("k".utf8)], arguments: [[1]], expecting: .value)
        }
    }
}

@Suite(.timeLimit(.minutes(2))) struct RedisScriptTests {
    @Test func `sends a script's text once and its digest from then on`() async throws {
        let server = try RedisServer()
        try await withRedis(server.url) { client in
            try await client.waitUntilConnected()
            for value in 0..<5 as Range<UInt8> {
                let reply = try await client.run(
                    writing, keys: [Array("k".utf8)], arguments: [[value, 13, 10]], expecting: .value)
                #expect(reply == .bytes([value, 13, 10]))
            }
            let figures = try server.command("INFO commandstats")
            #expect(figures.contains("cmdstat_eval:calls=1,"))
            #expect(figures.contains("cmdstat_evalsha:calls=5,"))
            #expect(client.status.commands == 6 && client.status.reconnects == 0)
        }
    }

    @Test func `goes on after the server has forgotten its scripts, whoever asks`() async throws {
        let server = try RedisServer()
        var options = RedisOptions()
        options.commandTimeout = .seconds(10)
        try await withRedis(server.url, options: options) { client in
            try await client.waitUntilConnected()
            for _ in 0..<5 {
                #expect(try server.command("SCRIPT FLUSH") == "+OK\r\n")
                let wrong = try await withThrowingTaskGroup(of: Bool.self) { group in
                    for worker in 0..<50 as Range<UInt8> {
                        group.addTask {
                            try await client.run(
                                writing, keys: [[worker]], arguments: [[worker]], expecting: .value) != .bytes([worker])
                        }
                    }
                    return try await group.reduce(0) { $0 + ($1 ? 1 : 0) }
                }
                #expect(wrong == 0)
            }
        }
    }

    @Test func `reads arrays in arrays, with nothing in them`() async throws {
        let server = try RedisServer()
        try await withRedis(server.url) { client in
            try await client.waitUntilConnected()
            #expect(try server.command("HSET h b x") == ":1\r\n")
            let reply = try await client.run(
                nesting, keys: [Array("h".utf8), []], arguments: [], expecting: .array)
            #expect(
                reply
                    == .array([
                        .array([.nothing, .integer(1), .bytes([])]), .array([]),
                        .array([.nothing, .bytes(Array("x".utf8))]),
                    ]))
        }
    }

    @Test func `counts, and takes up where it was`() async throws {
        let server = try RedisServer()
        try await withRedis(server.url) { client in
            try await client.waitUntilConnected()
            #expect(try await client.counter("c") == CounterReading(count: 0, remaining: .zero))
            for count in 1...3 {
                let reading = try await client.increment("c", lifetime: .seconds(60))
                #expect(reading.count == count && reading.remaining > .seconds(50))
            }
            let reading = try await client.counter("c")
            #expect(reading.count == 3 && reading.remaining > .seconds(50) && reading.remaining <= .seconds(60))
            for count in [2, 1, 0, 0] {
                try await client.decrement("c")
                let reading = try await client.counter("c")
                #expect(reading.count == count && reading.remaining > .seconds(50))
            }
            try await client.decrement("uncounted")
            #expect(try server.command("EXISTS uncounted") == ":0\r\n")
        }
    }

    @Test(arguments: [
        ("CONFIG SET maxmemory 1", ErrorCode.redisOutOfMemory), ("REPLICAOF 127.0.0.1 1", .redisReadOnly),
        ("CONFIG SET min-replicas-to-write 1", .redisNoReplicas),
    ])
    func `what refuses a script's write is an outage`(cause: String, code: ErrorCode) async throws {
        let server = try RedisServer()
        try await withRedis(server.url) { client in
            try await client.waitUntilConnected()
            #expect(await client.scriptFailure() == nil)
            #expect(!(try server.command(cause).hasPrefix("-")))
            #expect(await client.scriptFailure() == code)
        }
    }

    @Test func `a script that cannot read a key finds none there`() async throws {
        let server = try RedisServer()
        try await withRedis(server.url) { client in
            try await client.waitUntilConnected()
            #expect(try server.command("LPUSH k x") == ":1\r\n")
            let reading = RedisScript("return redis.call('GET', KEYS[1])")
            let reply = try await client.run(reading, keys: [Array("k".utf8)], arguments: [], expecting: .value)
            #expect(reply == .nothing && client.failures.counts[.other] == 1)
            // Of a script that has other types no key is removed, and it fails.
            let pushing = RedisScript("return redis.call('LPUSH', KEYS[1], 'x')")
            try await client.set([1], for: "s", lifetime: .seconds(60))
            let rejection = await failure { () async throws(StoreError) in
                _ = try await client.run(pushing, keys: [Array("s".utf8)], arguments: [], expecting: .integer)
            }
            #expect(rejection == .redisRefused)
            #expect(try await client.stored("s") == [1])
        }
    }

    @Test func `a server that cannot save is an outage`() async throws {
        let folder = try TemporaryFolder()
        let server = try RedisServer(extra: ["--dir", folder.path])
        try await withRedis(server.url) { client in
            try await client.waitUntilConnected()
            #expect(try server.command("CONFIG SET save \"3600 1\"") == "+OK\r\n")
            try FileManager.default.removeItem(atPath: folder.path)
            _ = try server.command("BGSAVE")
            try await eventually("the snapshot has failed") {
                try server.command("INFO persistence").contains("rdb_last_bgsave_status:err")
            }
            #expect(await client.scriptFailure() == .redisMisconfigured)
        }
    }

    @Test func `a server that is busy with another's script is an outage`() async throws {
        let server = try RedisServer(extra: ["--lua-time-limit", "50"])
        try await withRedis(server.url) { client in
            try await client.waitUntilConnected()
            let other = try RawSocket(connectingTo: .loopback(server.port))
            try other.send("EVAL \"while true do end\" 0\r\n")
            try await eventually("the script is under way") { try server.command("PING").hasPrefix("-BUSY") }
            #expect(await client.scriptFailure() == .redisBusy)
            #expect(await client.outage(reading: "a") == .redisBusy)
            #expect(try server.command("SCRIPT KILL") == "+OK\r\n")
            _ = try await client.recovery()
            #expect(await client.scriptFailure() == nil)
        }
    }

    @Test func `a cluster and a user without the right are outages`() async throws {
        let cluster = try RedisServer(isClusterNode: true)
        try await withRedis(cluster.url) { client in
            try await client.waitUntilConnected()
            #expect(await client.scriptFailure() == .redisClusterDown)
        }
        let server = try RedisServer()
        for rights in ["+@all -evalsha", "+@all -eval", "+@all -set", "+@all resetkeys"] {
            #expect(try server.command("ACL SETUSER app reset on >pw ~* \(rights)") == "+OK\r\n")
            try await withRedis("redis://app:pw@127.0.0.1:\(server.port)") { client in
                try await client.waitUntilConnected()
                #expect(await client.scriptFailure() == .redisNotPermitted)
            }
        }
    }

    @Test func `a script's own failure is no reply, and one of the wrong kind costs the connection`() async throws {
        let server = try RedisServer()
        try await withRedis(server.url) { client in
            try await client.waitUntilConnected()
            for text in ["not lua", "return error('x')", "return redis.error_reply('SOME thing')"] {
                let code = await failure { () async throws(StoreError) in
                    _ = try await client.run(RedisScript(text), keys: [], arguments: [], expecting: .anything)
                }
                #expect(code == .redisRefused)
            }
            #expect(client.status.reconnects == 0)
            let code = await failure { () async throws(StoreError) in
                _ = try await client.run(RedisScript("return 1"), keys: [], arguments: [], expecting: .value)
            }
            #expect(code == .redisReplyUnexpected)
            _ = try await client.recovery()
        }
    }
}
