import MartletCore
import MartletProvider
import MartletRedis
import MartletSession
import MartletSessionTesting
import MartletTesting
import Testing

/// What becomes of sessions when Redis is unavailable, is not itself, or another client writes into it.
@Suite(.timeLimit(.minutes(3))) struct RedisSessionHarmTests {
    @Test func `an outage is never a miss`() async throws {
        let server = try RedisServer()
        try await withInstances(1, of: server) { clients in
            let bench = SessionBench(backend: clients[0].sessions(), startingAt: hourAhead())
            let tokens = try await bench.login()
            try server.stop()
            let error = await #expect(throws: AuthenticationError.self) { try await bench.verify(tokens.accessToken) }
            #expect(error?.disposition == .unavailable && error?.code == .sessionStoreUnavailable)
            #expect((error?.cause as? StoreError)?.code.rawValue.hasPrefix("redis.") == true)
            #expect(error?.retryAfter == .seconds(1))
            let rejection = await bench.rejection(ofRefreshing: tokens.refreshToken)
            #expect(rejection?.kind == .unavailable && rejection?.code == .sessionStoreUnavailable)
            let outages: [SessionError?] = [
                await #expect(throws: SessionError.self) { try await bench.login() },
                await #expect(throws: SessionError.self) { try await bench.store.list(subject: "usr_ann") },
                await #expect(throws: SessionError.self) { try await bench.store.end(tokens.session) },
                await #expect(throws: SessionError.self) {
                    try await bench.store.endAll(subject: "usr_ann", provider: nil, except: nil)
                },
            ]
            #expect(outages.allSatisfy { $0?.kind == .unavailable })
            #expect(await bench.rejection(of: Secret("mat_x")) == .sessionTokenMalformed)
            try server.restart()
            _ = try await clients[0].recovery()
            // The server is empty; the login right before its loss is repeated.
            try await eventually("the session is there") { await bench.rejection(of: tokens.accessToken) == nil }
        }
    }

    @Test func `nothing happens where publishing is not permitted`() async throws {
        let server = try RedisServer()
        try await withInstances(1, of: server) { clients in
            let bench = SessionBench(backend: clients[0].sessions(), startingAt: hourAhead()) {
                $0.maximumPerSubject = 1
            }
            let tokens = try await bench.login()
            _ = try server.command("ACL SETUSER default resetchannels")
            await #expect(throws: SessionError.self) { try await bench.store.end(tokens.session) }
            await #expect(throws: SessionError.self) { try await bench.login() }
            _ = try server.command("ACL SETUSER default allchannels")
            #expect(await bench.rejection(of: tokens.accessToken) == nil)
            #expect(bench.revoked.value.isEmpty)
        }
    }

    @Test func `needs no more rights than the guide says`() async throws {
        let server = try RedisServer()
        let rights = "~martlet:* resetchannels &martlet:revoked +@read +@write +@scripting +@pubsub +@connection"
        #expect(try server.command("ACL SETUSER app reset on >pw \(rights)") == "+OK\r\n")
        try await withInstances(1, of: server, at: "redis://app:pw@127.0.0.1:\(server.port)") { clients in
            let bench = SessionBench(backend: clients[0].sessions(), startingAt: hourAhead()) {
                $0.maximumPerSubject = 1
            }
            _ = try await bench.login()
            var tokens = try await bench.login()
            for _ in 0..<2 { tokens = try await bench.store.refresh(tokens.refreshToken) }
            bench.advance(.seconds(100))
            #expect(await bench.rejection(of: tokens.accessToken) == nil)
            #expect(try await bench.store.list(subject: "usr_ann").count == 1)
            try await bench.store.endAll(subject: "usr_ann", provider: "apple", except: nil)
            #expect(bench.revoked.value.count == 2)
        }
    }

    /// What a changed field leads to.
    struct Change: Sendable, CustomTestStringConvertible {
        let field: String
        let rejected: ErrorCode?
        let refreshed: ErrorCode?
        var testDescription: String { field }
    }

    @Test(
        arguments: [
            Change(field: "d", rejected: .sessionRecordUnreadable, refreshed: .sessionRecordUnreadable),
            Change(field: "a:", rejected: .sessionTokenUnknown, refreshed: nil),
            Change(field: "r", rejected: nil, refreshed: .sessionTokenReused),
            Change(field: "v", rejected: nil, refreshed: .sessionTokenUnknown),
            Change(field: "m", rejected: nil, refreshed: nil),
            Change(field: "p", rejected: nil, refreshed: nil),
        ])
    func `a changed value opens nothing`(change: Change) async throws {
        let server = try RedisServer()
        try await withInstances(1, of: server) { clients in
            let client = clients[0]
            let bench = SessionBench(backend: client.sessions(), startingAt: hourAhead())
            for position in [0.0, 0.3, 0.6, 0.999] {
                try await client.ask("FLUSHALL")
                let tokens = try await bench.login()
                try await client.alter(change.field, at: position, in: client.key("s"))
                #expect(await bench.rejection(of: tokens.accessToken) == change.rejected)
                #expect(try await bench.store.list(subject: "usr_ann").count == (change.field == "m" ? 0 : 1))
                #expect(await bench.rejection(ofRefreshing: tokens.refreshToken)?.code == change.refreshed)
            }
        }
    }

    @Test func `no end can be moved`() async throws {
        let server = try RedisServer()
        try await withInstances(1, of: server) { clients in
            let client = clients[0]
            let bench = SessionBench(backend: client.sessions(), startingAt: hourAhead()) { policy in
                policy.refreshTTL = .seconds(1000)
            }
            let tokens = try await bench.login()
            let key = try await client.key("s")
            let later = Array(String(bench.now.value + 1_000_000_000).utf8)
            let access = try #require(try await client.fields(of: key).first { $0.name.hasPrefix("a:") })
            try await client.set(access.name, to: later + access.value.drop { $0 != 0x20 }, of: key)
            #expect(await bench.rejection(of: tokens.accessToken) == .sessionTokenUnknown)
            try await client.set(access.name, to: access.value, of: key)
            #expect(await bench.rejection(of: tokens.accessToken) == nil)
            try await client.set("x", to: later, of: key)
            try await client.ask("PERSIST", String(decoding: key, as: UTF8.self))
            bench.advance(.seconds(1000))
            #expect(await bench.rejection(of: tokens.accessToken) == .sessionTokenExpired)
            #expect(await bench.rejection(ofRefreshing: tokens.refreshToken)?.kind == .invalid)
        }
    }

    @Test func `one session's values open nothing in another's place`() async throws {
        let server = try RedisServer()
        try await withInstances(1, of: server) { clients in
            let client = clients[0]
            let bench = SessionBench(backend: client.sessions(), startingAt: hourAhead())
            let mine = try await bench.login("usr_eve")
            let key = try await client.key("s")
            let fields = try await client.fields(of: key)
            let theirs = try await bench.login("usr_ann")
            let other = try #require(
                try await client.keys().first { $0 != key && String(decoding: $0, as: UTF8.self).contains("}:s") })
            // All of mine in their place, their record in mine.
            let record = try await client.parts(of: "d", in: other)
            #expect(record.count == record.last.flatMap { Int($0.name.dropLast()) })
            for part in record { try await client.set(part.name, to: part.value, of: key) }
            #expect(await bench.rejection(of: mine.accessToken) == .sessionRecordUnreadable)
            for field in fields { try await client.set(field.name, to: field.value, of: other) }
            #expect(await bench.rejection(of: mine.accessToken) == .sessionRecordUnreadable)
            #expect(await bench.rejection(of: theirs.accessToken) == .sessionRecordUnreadable)
        }
    }

    @Test func `nonsense in any field is refused or an outage, and no trap`() async throws {
        let server = try RedisServer()
        try await withInstances(1, of: server) { clients in
            let client = clients[0]
            let bench = SessionBench(backend: client.sessions(), startingAt: hourAhead())
            var generator = SeededGenerator(seed: 7)
            let values = ["", " ", "-1", "nan", "1e999", "99999999999999999999", "9223372036854775807", "\u{0}", "1 "]
            for round in 0..<120 {
                try await client.ask("FLUSHALL")
                let tokens = try await bench.login()
                let key = try await client.key("s")
                let names = try await client.fields(of: key).map(\.name)
                let name = names[round % names.count]
                let value = values.randomElement(using: &generator) ?? ""
                if round % 4 == 0 {
                    _ = try await client.command([Array("HDEL".utf8), key, Array(name.utf8)])
                } else {
                    try await client.set(name, to: Array(value.utf8), of: key)
                }
                _ = await bench.rejection(of: tokens.accessToken)
                _ = try? await bench.store.list(subject: "usr_ann")
                _ = await bench.rejection(ofRefreshing: tokens.refreshToken)
                try? await bench.store.endAll(subject: "usr_ann", provider: nil, except: nil)
            }
            try await client.ask("FLUSHALL")
            let tokens = try await bench.login()
            let key = String(decoding: try await client.key("s"), as: UTF8.self)
            try await client.ask("SET", key, "text")
            let error = await #expect(throws: AuthenticationError.self) { try await bench.verify(tokens.accessToken) }
            #expect(error?.disposition == .rejected)
            #expect(clients[0].status.reconnects == 0)
        }
    }
}
