import Foundation
import MartletCore
import MartletIO
import MartletRedis
import MartletTesting
import Testing

@Suite(.timeLimit(.minutes(2))) struct RedisOutageTests {
    @Test func `is back soon after Redis is`() async throws {
        let server = try RedisServer()
        try await withRedis(server.url) { client in
            try await client.waitUntilConnected()
            try server.stop()
            // Long enough for the pauses between attempts to have grown.
            try await Task.sleep(for: .seconds(3))
            let start = Stopwatch()
            #expect(await client.outage(reading: "a") == .redisNotConnected)
            #expect(start.undisturbed < .milliseconds(200))
            #expect(client.status.state == .down)
            try server.restart()
            let recovery = try await client.recovery()
            // Promised within 2 s on a machine that is not loaded.
            #expect(recovery < .seconds(4))
            #expect(client.status.reconnects == 1)
        }
    }

    @Test func `starts without Redis and finds it later`() async throws {
        let server = try RedisServer()
        try server.stop()
        try await withRedis(server.url) { client in
            #expect(
                await failure { () async throws(StoreError) in try await client.waitUntilConnected() } == .streamRefused
            )
            try server.restart()
            _ = try await client.recovery()
            #expect(client.status.reconnects == 0)
        }
    }

    @Test func `ends commands at their deadline when Redis does not respond`() async throws {
        let server = try RedisServer()
        try await withRedis(server.url) { client in
            try await client.waitUntilConnected()
            server.freeze(true)
            let stopwatch = Stopwatch()
            #expect(await client.outage(reading: "a") == .redisTimeout)
            #expect(stopwatch.elapsed >= .milliseconds(490) && stopwatch.undisturbed < .seconds(5))
            // The kernel accepts for a frozen server, so a new connection may be there already.
            try await eventually("the outage shows") {
                client.status.state != .connected || client.status.reconnects > 0
            }
            server.freeze(false)
            _ = try await client.recovery()
        }
    }

    @Test func `ends commands at their deadline while clients are paused`() async throws {
        let server = try RedisServer()
        try await withRedis(server.url) { client in
            try await client.waitUntilConnected()
            #expect(try server.command("CLIENT PAUSE 1500 ALL") == "+OK\r\n")
            #expect(await client.outage(reading: "a") == .redisTimeout)
            _ = try await client.recovery()
        }
    }

    @Test func `never shows a late reply to the next command`() async throws {
        let server = try RedisServer()
        try await withRedis(server.url) { client in
            try await client.waitUntilConnected()
            try await client.set([1], for: "one", lifetime: .seconds(60))
            try await client.set([2], for: "two", lifetime: .seconds(60))
            for _ in 0..<3 {
                #expect(try server.command("CLIENT PAUSE 700 ALL") == "+OK\r\n")
                #expect(await client.outage(reading: "one") == .redisTimeout)
                _ = try await client.recovery()
                #expect(try await client.stored("two") == [2])
            }
        }
    }

    @Test func `a replica refuses writes, which costs the connection, and still reads`() async throws {
        let server = try RedisServer()
        try await withRedis(server.url) { client in
            try await client.waitUntilConnected()
            #expect(try server.command("SET a b") == "+OK\r\n")
            #expect(try server.command("REPLICAOF 127.0.0.1 1") == "+OK\r\n")
            let code = await failure { () async throws(StoreError) in
                try await client.set([1], for: "a", lifetime: .seconds(60))
            }
            #expect(code == .redisReadOnly)
            try await eventually("the connection is remade") { client.status.reconnects == 1 }
            #expect(client.status.lastError?.code == .redisReadOnly)
            #expect(try await client.stored("a") == Array("b".utf8))
            #expect(try server.command("CONFIG SET replica-serve-stale-data no") == "+OK\r\n")
            #expect(await client.outage(reading: "a") == .redisMasterDown)
            #expect(try server.command("REPLICAOF NO ONE") == "+OK\r\n")
            try await client.set([1], for: "a", lifetime: .seconds(60))
        }
    }

    @Test func `finds the new master behind the same name`() async throws {
        let (old, new) = (try RedisServer(), try RedisServer())
        let folder = try TemporaryFolder()
        let name = folder.file("master.sock")
        try FileManager.default.createSymbolicLink(atPath: name, withDestinationPath: old.socketPath)
        try await withRedis("redis+unix://\(name)") { client in
            try await client.waitUntilConnected()
            try await client.set([1], for: "a", lifetime: .seconds(60))
            try FileManager.default.removeItem(atPath: name)
            try FileManager.default.createSymbolicLink(atPath: name, withDestinationPath: new.socketPath)
            // The connection stands, so the name is not resolved again.
            try await client.set([2], for: "a", lifetime: .seconds(60))
            #expect(try new.command("DBSIZE") == ":0\r\n")
            #expect(try old.command("REPLICAOF 127.0.0.1 1") == "+OK\r\n")
            let code = await failure { () async throws(StoreError) in
                try await client.set([3], for: "a", lifetime: .seconds(60))
            }
            #expect(code == .redisReadOnly)
            _ = try await client.recovery()
            try await client.set([4], for: "a", lifetime: .seconds(60))
            #expect(try new.command("DBSIZE") == ":1\r\n")
        }
    }

    @Test func `does not ask a server that refuses its work without pause`() async throws {
        let server = try RedisServer()
        try await withRedis(server.url) { client in
            try await client.waitUntilConnected()
            #expect(try server.command("REPLICAOF 127.0.0.1 1") == "+OK\r\n")
            let start = ContinuousClock.now
            while ContinuousClock.now - start < .seconds(4) {
                try? await client.set([1], for: "a", lifetime: .seconds(60))
                try await Task.sleep(for: .milliseconds(2))
            }
            // 25 ms at the least, and doubling: 160 without the doubling.
            #expect((1...12).contains(client.status.reconnects))
            #expect(try server.command("REPLICAOF NO ONE") == "+OK\r\n")
            #expect(try await client.recovery() < .seconds(4))
            try await client.set([1], for: "a", lifetime: .seconds(60))
        }
    }

    @Test func `a full Redis is an outage for writes`() async throws {
        let server = try RedisServer()
        try await withRedis(server.url) { client in
            try await client.waitUntilConnected()
            #expect(try server.command("CONFIG SET maxmemory 1") == "+OK\r\n")
            let code = await failure { () async throws(StoreError) in
                try await client.set([1], for: "a", lifetime: .seconds(60))
            }
            #expect(code == .redisOutOfMemory)
            #expect(try await client.stored("a") == nil)
        }
    }

    @Test func `a key of another type is a miss, not an outage`() async throws {
        let server = try RedisServer()
        try await withRedis(server.url) { client in
            try await client.waitUntilConnected()
            #expect(try server.command("LPUSH list x") == ":1\r\n")
            #expect(try await client.stored("list") == nil)
            #expect(try server.command("EXISTS list") == ":0\r\n")
            #expect(client.status.state == .connected && client.status.reconnects == 0)
        }
    }

    @Test func `notices a connection that Redis has ended`() async throws {
        let server = try RedisServer()
        try await withRedis(server.url) { client in
            try await client.waitUntilConnected()
            #expect(try server.command("CLIENT KILL TYPE normal SKIPME yes") == ":1\r\n")
            while client.status.reconnects == 0 { try await Task.sleep(for: .milliseconds(5)) }
            _ = try await client.recovery()
        }
    }

    @Test func `fails what waits when it is shut down`() async throws {
        let server = try RedisServer()
        try await withRedis(server.url) { client in
            try await client.waitUntilConnected()
            server.freeze(true)
            defer { server.freeze(false) }
            async let waiting = client.outage(reading: "a")
            while client.status.commands == 0 { try await Task.sleep(for: .milliseconds(1)) }
            client.shutdown()
            let code = await waiting
            #expect(code == .redisConnectionLost || code == .redisStopped)
            #expect(await client.outage(reading: "a") == .redisStopped)
            #expect(client.status.state == .stopped)
        }
    }
}
