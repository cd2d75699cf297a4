import MartletCore
import MartletProvider
import MartletRedis
import MartletSession
import MartletSessionTesting
import MartletTesting
import Testing

/// What another program has written to Redis in another form costs whom it concerns, and no other.
@Suite(.timeLimit(.minutes(3))) struct MalformedRecordTests {
    private static func words(_ text: String...) -> [[UInt8]] { text.map { Array($0.utf8) } }

    /// Makes a field of a session large, which no command of a client can.
    private static func inflate(_ key: [UInt8], _ client: RedisClient) async throws {
        let script = "return redis.call('HSET', KEYS[1], '1d', string.rep('a', 2000000))"
        _ = try await client.command([Array("EVAL".utf8), Array(script.utf8), Array("1".utf8), key])
    }

    /// How a session is made unreadable, by its key and the fields that it has.
    private static let harms: [(String, @Sendable (RedisClient, [UInt8]) async throws -> Void)] = [
        ("a string", { client, key in _ = try await client.command([Array("SET".utf8), key, [0x78]]) }),
        (
            "a list",
            { client, key in
                try await client.remove(String(decoding: key, as: UTF8.self))
                _ = try await client.command([Array("RPUSH".utf8), key, [0x78]])
            }
        ),
        (
            "an access token's time",
            { client, key in
                for field in try await client.fields(of: key) where field.name.hasPrefix("a:") {
                    try await client.set(field.name, to: [0x78] + field.value, of: key)
                }
            }
        ),
        (
            "the end of it",
            { client, key in
                for field in try await client.fields(of: key) where field.name.hasPrefix("a:") {
                    try await client.set(field.name, to: field.value.map { $0 == 0x20 ? 0x78 : $0 }, of: key)
                }
            }
        ),
        ("its time", { client, key in try await client.set("x", to: [0x78], of: key) }),
        ("a large part", { client, key in try await Self.inflate(key, client) }),
    ]

    @Test(arguments: harms.indices)
    func `a session that cannot be read is none, and its owner can sign in`(index: Int) async throws {
        let (name, harm) = Self.harms[index]
        let server = try RedisServer()
        try await withInstances(1, of: server) { clients in
            let clock = Box(hourAhead())
            let bench = SessionBench(backend: clients[0].sessions(), clock: clock)
            let tokens = try await bench.login()
            let key = try await clients[0].key("s")
            let other = try await bench.login("usr_bob")
            try await harm(clients[0], key)
            #expect(await bench.rejection(of: tokens.accessToken) != nil, "\(name)")
            let error = await bench.rejection(ofRefreshing: tokens.refreshToken)
            #expect(error == nil || error?.kind == .invalid, "\(name): \(String(describing: error))")
            #expect(clients[0].failures.counts[.session] ?? 0 > 0, "\(name)")
            let again = try await bench.login()
            #expect(await bench.rejection(of: again.accessToken) == nil, "\(name)")
            #expect(await bench.rejection(of: other.accessToken) == nil, "\(name)")
            _ = try await bench.store.list(subject: "usr_ann")
            try await bench.store.endAll(subject: "usr_ann", provider: nil, except: nil)
            #expect(clients[0].status.state == .connected)
        }
    }

    @Test(arguments: ["u", "g"])
    func `a subject or a number that is none does not keep its subject out`(kind: String) async throws {
        let server = try RedisServer()
        try await withInstances(1, of: server) { clients in
            let bench = SessionBench(backend: clients[0].sessions(), clock: Box(hourAhead()))
            let tokens = try await bench.login()
            if kind == "u" {
                _ = try await clients[0].command([Array("SET".utf8), try await clients[0].key("u"), [0x78]])
            } else {
                try await clients[0].set("g", to: [0x78], of: try await clients[0].key("s"))
                #expect(await bench.rejection(ofRefreshing: tokens.refreshToken)?.kind == .invalid)
            }
            #expect(await bench.rejection(of: try await bench.login().accessToken) == nil)
            #expect(clients[0].failures.counts[.session] == 1)
        }
    }

    @Test func `a large reply ends no other caller's connection`() async throws {
        let server = try RedisServer()
        try await withInstances(1, of: server, options: patient) { clients in
            let (client, bench) = (clients[0], SessionBench(backend: clients[0].sessions(), clock: Box(hourAhead())))
            let tokens = try await bench.login()
            let key = try await client.key("s")
            let other = try await bench.login("usr_bob")
            for _ in 0..<5 {
                try await Self.inflate(key, client)
                let rejections = try await together(10) { number -> ErrorCode? in
                    if number % 2 == 0 { return await bench.rejection(of: other.accessToken) }
                    _ = await bench.rejection(of: tokens.accessToken)
                    return nil
                }
                #expect(rejections.allSatisfy { $0 == nil })
            }
            #expect(client.status.state == .connected && client.status.reconnects == 0)
        }
    }

    @Test func `values and counters of another form are misses`() async throws {
        let server = try RedisServer()
        try await withInstances(1, of: server) { clients in
            let client = clients[0]
            for command in [
                Self.words("HSET", "hash", "a", "b"), Self.words("HSET", "taken", "a", "b"),
                Self.words("SET", "count", "x"), Self.words("SET", "big", "99999999999999999999"),
                Self.words("RPUSH", "list", "x"), Self.words("HSET", "{u}b", "a", "b"),
                Self.words("SET", "{u}a", "1.5"),
            ] { _ = try await client.command(command) }
            _ = try await client.command(Self.words("SETRANGE", "large", "2000000", "x"))
            for key in ["hash", "large"] {
                guard case .miss = await client.value(for: key) else {
                    Issue.record("\(key) is found, or unavailable")
                    continue
                }
                #expect(try await client.setIfAbsent([1], for: key, lifetime: .seconds(60)), "\(key)")
            }
            guard case .miss = await client.take("taken") else {
                Issue.record("found, or unavailable")
                return
            }
            #expect(try await client.counter("count").count == 0)
            for key in ["count", "big", "list"] {
                #expect(try await client.increment(key, lifetime: .seconds(60)).count == 1, "\(key)")
            }
            let bucket = CountedAttempt.Bucket(attempts: "{u}a", ban: "{u}b")
            let attempt = CountedAttempt(known: nil, own: nil, common: bucket, lifetime: .seconds(60))
            let counted = try await client.count(attempt, for: .anonymous)
            #expect(counted.ban.count == 0 && counted.attempts.count == 1)
            #expect(client.failures.counts[.throttle] ?? 0 >= 4 && client.failures.counts[.other] ?? 0 >= 4)
            #expect(client.status.state == .connected)
        }
    }

    @Test func `one client's values have a share of Redis, too`() async throws {
        let server = try RedisServer()
        try await withInstances(1, of: server) { clients in
            let bob = clients[0].partition(.bans, for: WorkOwner(named: "bob"))
            let codes = try await together(30) { part in
                var codes: [ErrorCode?] = []
                for number in 0..<100 {
                    do throws(StoreError) {
                        try await bob.set([1], for: "b\(part).\(number)", lifetime: .seconds(600))
                        codes.append(nil)
                    } catch { codes.append(error.code) }
                }
                return codes
            }.flatMap(\.self)
            let written = codes.count { $0 == nil }
            #expect(written >= 2500 && codes.count { $0 == .storeShareUsedUp } == 3000 - written)
            #expect(written < 3000)
            let ada = clients[0].partition(.bans, for: WorkOwner(named: "ada"))
            try await ada.set([1], for: "a", lifetime: .seconds(60))
        }
    }
}
