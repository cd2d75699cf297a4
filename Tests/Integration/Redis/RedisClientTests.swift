import MartletCore
import MartletRedis
import MartletTesting
import Testing

@Suite(.timeLimit(.minutes(2))) struct RedisClientTests {
    @Test(arguments: [false, true])
    func `stores, reads, replaces and lets expire`(overUnixSocket: Bool) async throws {
        let server = try RedisServer()
        let url = overUnixSocket ? "redis+unix://\(server.socketPath)?db=3" : server.url + "/3"
        try await withRedis(url) { client in
            try await client.waitUntilConnected()
            #expect(try await client.stored("a") == nil)
            try await client.set([0, 13, 10, 255], for: "a", lifetime: .seconds(60))
            #expect(try await client.stored("a") == [0, 13, 10, 255])
            try await client.set([], for: "a", lifetime: .seconds(60))
            #expect(try await client.stored("a") == [])
            try await client.set([1], for: "short", lifetime: .milliseconds(20))
            try await Task.sleep(for: .milliseconds(60))
            #expect(try await client.stored("short") == nil)
            #expect(try server.command("DBSIZE") == ":0\r\n")
            #expect(client.status.commands == 7 && client.status.failures.isEmpty)
            #expect(client.status.lastLatency ?? .zero > .zero)
        }
    }

    @Test func `lets one caller take a lease and only its holder let go`() async throws {
        let server = try RedisServer()
        try await withRedis(server.url) { client in
            try await client.waitUntilConnected()
            #expect(try await client.setIfAbsent([1], for: "lease", lifetime: .seconds(60)))
            #expect(try await !client.setIfAbsent([2], for: "lease", lifetime: .seconds(60)))
            try await client.remove("lease", ifEqualTo: [2])
            #expect(try await client.stored("lease") == [1])
            try await client.remove("lease", ifEqualTo: [1])
            try await client.remove("lease", ifEqualTo: [1])
            #expect(try await client.stored("lease") == nil)
        }
    }

    @Test func `keeps replies with their commands under load`() async throws {
        let server = try RedisServer()
        var options = RedisOptions()
        options.commandTimeout = .seconds(10)
        try await withRedis("redis://localhost:\(server.port)", options: options) { client in
            try await client.waitUntilConnected()
            let wrong = try await withThrowingTaskGroup(of: Int.self) { group in
                for worker in 0..<64 {
                    group.addTask {
                        var wrong = 0
                        for round in 0..<50 {
                            let value = Array("\(worker)-\(round)".utf8)
                            try await client.set(value, for: "k\(worker)", lifetime: .seconds(60))
                            if try await client.stored("k\(worker)") != value { wrong += 1 }
                        }
                        return wrong
                    }
                }
                return try await group.reduce(0, +)
            }
            #expect(wrong == 0)
            #expect(client.status.commands == 6400 && client.status.failures.isEmpty)
        }
    }

    @Test func `takes a value of a mebibyte and none above the bound`() async throws {
        let server = try RedisServer()
        var options = RedisOptions()
        options.commandTimeout = .seconds(10)
        try await withRedis(server.url, options: options) { client in
            try await client.waitUntilConnected()
            let large = [UInt8](repeating: 7, count: 1024 * 1000)
            try await client.set(large, for: "large", lifetime: .seconds(60))
            #expect(try await client.stored("large") == large)
            let code = await failure { () async throws(StoreError) in
                try await client.set(large + large, for: "larger", lifetime: .seconds(60))
            }
            #expect(code == .redisCommandInvalid)
            #expect(try server.command("SETRANGE large 1100000 x") == ":1100001\r\n")
            #expect(try await client.stored("large") == nil)
            #expect(client.status.state == .connected && client.status.reconnects == 0)
            #expect(client.failures.counts[.other] == 1)
            #expect(try server.command("EXISTS large") == ":0\r\n")
        }
    }

    @Test func `refuses commands beyond its bound instead of queueing them`() async throws {
        let server = try RedisServer()
        var options = RedisOptions()
        options.maximumInFlight = 4
        options.commandTimeout = .seconds(2)
        try await withRedis(server.url, options: options) { client in
            try await client.waitUntilConnected()
            server.freeze(true)
            defer { server.freeze(false) }
            let codes = await withTaskGroup(of: ErrorCode?.self) { group in
                for _ in 0..<20 { group.addTask { await client.outage(reading: "a") } }
                return await group.reduce(into: [ErrorCode?: Int]()) { $0[$1, default: 0] += 1 }
            }
            #expect(codes[.redisOverloaded] == 16)
            #expect(codes[.redisTimeout] == 1 && codes[.redisConnectionLost] == 3)
        }
    }

    @Test func `enters with a password or an ACL user, and not with a wrong one`() async throws {
        let server = try RedisServer(password: "se cret")
        let port = server.port
        for url in ["redis://:se%20cret@127.0.0.1:\(port)", "redis://default:se%20cret@127.0.0.1:\(port)/2"] {
            try await withRedis(url) { client in
                try await client.waitUntilConnected()
                #expect(try await client.stored("a") == nil)
            }
        }
        let refused: [(String, ErrorCode)] = [
            ("redis://:wrong@127.0.0.1:\(port)", .redisWrongPassword),
            ("redis://ann:se%20cret@127.0.0.1:\(port)", .redisWrongPassword),
            ("redis://127.0.0.1:\(port)", .redisAuthRequired),
            ("redis://:se%20cret@127.0.0.1:\(port)/99", .redisDatabaseRefused),
        ]
        for (url, code) in refused {
            try await withRedis(url) { client in
                #expect(await failure { () async throws(StoreError) in try await client.waitUntilConnected() } == code)
                #expect(client.status.state == .down && client.status.lastError?.code == code)
                #expect(await client.outage(reading: "a") == .redisNotConnected)
            }
        }
    }

    @Test func `tells what an ACL user may not do from a miss`() async throws {
        let server = try RedisServer()
        #expect(try server.command("ACL SETUSER app on >pw ~own:* +get +set") == "+OK\r\n")
        try await withRedis("redis://app:pw@127.0.0.1:\(server.port)") { client in
            try await client.waitUntilConnected()
            try await client.set([1], for: "own:a", lifetime: .seconds(60))
            #expect(try await client.stored("own:a") == [1])
            #expect(await client.outage(reading: "other") == .redisNotPermitted)
            let code = await failure { () async throws(StoreError) in
                try await client.remove("own:a", ifEqualTo: [1])
            }
            #expect(code == .redisNotPermitted)
            #expect(client.status.state == .connected)
        }
    }

    @Test func `says that a password was not wanted`() async throws {
        let server = try RedisServer()
        try await withRedis("redis://:pw@127.0.0.1:\(server.port)") { client in
            #expect(
                await failure { () async throws(StoreError) in try await client.waitUntilConnected() }
                    == .redisAuthRefused)
        }
    }
}
