import MartletCore
import MartletJSON
import MartletProvider
import MartletRedis
import MartletSession
import MartletSessionTesting
import MartletTesting
import Testing

/// Sessions of browsers in Redis: the same rules, at several instances.
@Suite(.timeLimit(.minutes(3))) struct RedisCookieTests {
    @Test func `whatever order things happen in at three instances, the rules hold`() async throws {
        let server = try RedisServer()
        try await withInstances(3, of: server, options: patient) { clients in
            var results: [String: Int] = [:]
            for seed in 0..<12 as Range<UInt64> {
                try await clients[0].ask("FLUSHALL")
                var history = CookieHistory(seed: seed, startingAt: hourAhead(), on: clients.map { $0.sessions() })
                try await history.run(steps: 500)
                results.merge(history.results, uniquingKeysWith: +)
            }
            for result in ["use yes", "use replaced", "use session.token_reused", "reissue yes"] {
                #expect(results[result, default: 0] > 20, "\(result)")
            }
        }
    }

    @Test func `follows its rules`() async throws {
        let server = try RedisServer()
        try await withInstances(1, of: server, options: patient) { clients in
            for course in CookieCase.all {
                try await clients[0].ask("FLUSHALL")
                try await course.run(on: clients[0].sessions(), startingAt: hourAhead())
            }
        }
    }

    @Test func `64 concurrent requests with a token that is due, at four instances, get one replacement`() async throws
    {
        let server = try RedisServer()
        try await withInstances(4, of: server, options: patient) { clients in
            let clock = Box(hourAhead())
            let instances = clients.map { SessionBench(backend: $0.sessions(), clock: clock) }
            var cookie = try await instances[0].cookieLogin().token
            for _ in 0..<3 {
                instances[0].advance(.seconds(900))
                var next = try await present(cookie, at: instances)
                #expect(next.count == 64 && Set(next).count == 1)
                let replacement = Secret(try #require(next.first ?? nil))
                next = try await present(replacement, at: instances)
                #expect(next == Array(repeating: nil, count: 64))
                cookie = replacement
            }
            #expect(instances.allSatisfy { $0.revoked.value.isEmpty })
        }
    }

    /// The replacements that 64 concurrent requests get.
    private func present(_ cookie: Secret, at instances: [SessionBench]) async throws -> [[UInt8]?] {
        try await withThrowingTaskGroup(of: [UInt8]?.self) { group in
            for caller in 0..<64 {
                group.addTask { try await instances[caller % 4].use(cookie).replacement?.token.copy }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
    }

    @Test func `a verification is one round trip, and three when the token changes`() async throws {
        let server = try RedisServer()
        try await withInstances(1, of: server) { clients in
            let bench = SessionBench(backend: clients[0].sessions(), startingAt: hourAhead())
            func trips(_ cookie: Secret) async throws -> (Int, next: Secret?) {
                let before = clients[0].status.commands
                let next = try await bench.use(cookie, from: [UInt8](repeating: 1, count: 16)).replacement?.token
                return (Int(clients[0].status.commands - before), next)
            }
            // Scripts are loaded.
            let other = try await bench.cookieLogin("usr_bob").token
            bench.advance(.seconds(900))
            _ = try await bench.use(try #require(try await bench.use(other).replacement?.token))
            let cookie = try await bench.cookieLogin().token
            for _ in 0..<10 {
                bench.advance(.seconds(61))
                #expect(try await trips(cookie).0 == 1)
            }
            bench.advance(.seconds(290))
            let due = try await trips(cookie)
            let next = try #require(due.next)
            #expect(due.0 == 3)
            #expect(try await trips(cookie).0 == 2)
            #expect(try await trips(next).0 == 3)
            for _ in 0..<3 { #expect(try await trips(next).0 == 1) }
        }
    }

    @Test func `a privilege change is one for every instance, and published`() async throws {
        let server = try RedisServer()
        try await withInstances(2, of: server, options: patient) { clients in
            let clock = Box(hourAhead())
            let instances = clients.map { SessionBench(backend: $0.sessions(), clock: clock) }
            let cookie = try await instances[0].cookieLogin().token
            let number = try await instances[0].use(cookie).number
            let heard = Box<[UInt64]>([])
            try await withSubscriber(of: server, channel: RevocationMessage.channel(prefix: "martlet:")) { message in
                heard.withLock { $0 += RevocationMessage.changedNumbers(in: message) ?? [0] }
            } during: {
                instances[0].advance(.seconds(60))
                let proof = instances[1].proof(acr: "mfa")
                let issued = try await instances[1].reissue(cookie, renewedBy: proof)
                #expect(issued.proof == proof && instances[1].changed.value == [number])
                let identity = try await instances[0].use(issued.token).principal.identity
                #expect(identity.authTime == proof.authTime && identity.claims["acr"]?.string == "mfa")
                try await eventually("it is heard of") { heard.value == [number] }
            }
        }
    }

    @Test func `every key has an end, and a replaced token's begins with the first use of the next`() async throws {
        let server = try RedisServer()
        try await withInstances(1, of: server) { clients in
            let client = clients[0]
            let bench = SessionBench(backend: client.sessions(), startingAt: hourAhead()) { policy in
                policy.idleTimeout = .seconds(10_000)
                policy.refreshTTL = .seconds(15_000)
            }
            let start = bench.now.value
            let cookie = try await bench.cookieLogin().token
            #expect(try await client.ends("s", at: start + 10_000_000))
            bench.advance(.seconds(1_000))
            let next = try #require(try await bench.use(cookie).replacement?.token)
            #expect(try await client.ends("s", at: start + 11_000_000))
            #expect(try await client.ends("g", at: start + 15_000_000))
            bench.advance(.seconds(1_000))
            _ = try await bench.use(next)
            #expect(try await client.ends("g", at: start + 2_030_000))
            #expect(try await client.ends("s", at: start + 12_000_000))
        }
    }

    @Test func `a session whose cookie is replaced for long stays small`() async throws {
        let server = try RedisServer()
        try await withInstances(1, of: server, options: patient) { clients in
            let client = clients[0]
            let bench = SessionBench(backend: client.sessions(), startingAt: hourAhead())
            let browser = SessionClient(
                userAgent: "Mozilla/5.0 (X11; Linux x86_64; rv:140.0)", address: [UInt8](repeating: 1, count: 16))
            var cookie = try await bench.cookieLogin(client: browser).token
            #expect(try await room(of: client) < 1_900)
            for _ in 0..<50 {
                bench.advance(.seconds(900))
                cookie = try #require(try await bench.use(cookie).replacement?.token)
                _ = try await bench.use(cookie)
            }
            let fields = try await client.fields(of: try await client.key("s")).map { $0.name.prefix(2) }
            #expect(fields.count { $0 == "a:" } == 1 && fields.count { $0 == "q:" } == 1)
        }
    }

    private func room(of client: RedisClient) async throws -> Int64 {
        var sum: Int64 = 0
        for key in try await client.keys() {
            let reply = try await client.command([
                Array("MEMORY".utf8), Array("USAGE".utf8), key, Array("SAMPLES".utf8), [0x30],
            ])
            if case .integer(let bytes) = reply { sum += bytes }
        }
        return sum
    }

    @Test func `a reader of Redis finds nothing readable and nothing usable`() async throws {
        let server = try RedisServer()
        try await withInstances(1, of: server) { clients in
            let client = clients[0]
            let bench = SessionBench(backend: client.sessions(), startingAt: hourAhead())
            let first = try await bench.cookieLogin().token
            bench.advance(.seconds(900))
            let second = try #require(try await bench.use(first).replacement?.token)
            _ = try await bench.use(second)
            let third = try await bench.reissue(second).token
            var seen: [[UInt8]] = []
            for key in try await client.keys() {
                seen += try await client.command([Array("HGETALL".utf8), key]).parts + [key]
                for command in ["GET", "DUMP"] {
                    if case .bytes(let value) = try await client.command([Array(command.utf8), key]) {
                        seen.append(value)
                    }
                }
            }
            var planted = ["usr_ann", "apple", "000123.abc", "ann@example.com", "claims"].map { Array($0.utf8) }
            for token in [first, second, third] {
                let text = token.copy
                let bytes = try #require(Base64URL.decode(text[4...]))
                for part in [bytes[8..<24], bytes[24..<40], bytes[40..<56]] {
                    planted += [Array(part), Array(part.map { hexadecimal($0) }.joined().utf8)]
                }
                planted += [Array(text[20..<40]), Array(text[40..<60])]
            }
            #expect(seen.count > 20)
            for value in seen {
                for secret in planted { #expect(!value.contains(secret), "\(String(decoding: secret, as: UTF8.self))") }
            }
        }
    }

    /// What a changed field leads to, before the token is due, when it is, and for a token that was replaced.
    struct Change: Sendable, CustomTestStringConvertible {
        let field: String
        let used: ErrorCode?
        let due: ErrorCode?
        let replaced: ErrorCode?
        var testDescription: String { field }
    }

    @Test(
        arguments: [
            Change(
                field: "d", used: .sessionRecordUnreadable, due: .sessionRecordUnreadable,
                replaced: .sessionRecordUnreadable),
            Change(field: "a:", used: .sessionTokenUnknown, due: nil, replaced: nil),
            Change(field: "r", used: nil, due: .sessionTokenReused, replaced: nil),
            Change(field: "v", used: nil, due: .sessionTokenUnknown, replaced: .sessionTokenUnknown),
            Change(field: "m", used: nil, due: nil, replaced: nil),
            Change(field: "o", used: nil, due: nil, replaced: nil),
        ])
    func `a changed value opens nothing`(change: Change) async throws {
        let server = try RedisServer()
        try await withInstances(1, of: server) { clients in
            let client = clients[0]
            let bench = SessionBench(backend: client.sessions(), startingAt: hourAhead())
            func alter(at position: Double) async throws {
                try await client.alter(change.field, at: position, in: client.key("s"))
            }
            for position in [0.0, 0.3, 0.6, 0.999] {
                try await client.ask("FLUSHALL")
                var cookie = try await bench.cookieLogin().token
                try await alter(at: position)
                #expect(await bench.rejection(ofCookie: cookie) == change.used)
                bench.advance(.seconds(900))
                #expect(await bench.rejection(ofCookie: cookie) == change.due)
                try await client.ask("FLUSHALL")
                cookie = try await bench.cookieLogin().token
                bench.advance(.seconds(900))
                let next = try await bench.use(cookie).replacement?.token
                try await alter(at: position)
                #expect(await bench.rejection(ofCookie: cookie) == change.replaced)
                // Where it is not the session's any more, the next token is not offered.
                let offered = try? await bench.use(cookie).replacement?.token.copy
                #expect(offered == (change.replaced == nil && change.field != "r" ? next?.copy : nil))
            }
        }
    }

    @Test func `no end can be moved, and no grace period opened by another's value`() async throws {
        let server = try RedisServer()
        try await withInstances(1, of: server) { clients in
            let client = clients[0]
            let bench = SessionBench(backend: client.sessions(), startingAt: hourAhead())
            func field(_ prefix: String) async throws -> (name: String, value: [UInt8]) {
                try #require(
                    try await client.fields(of: try await client.key("s")).first { $0.name.hasPrefix(prefix) })
            }
            let cookie = try await bench.cookieLogin().token
            let key = try await client.key("s")
            let access = try await field("a:")
            let later = Array(String(bench.now.value + 1_000_000_000).utf8)
            try await client.set(access.name, to: later + access.value.drop { $0 != 0x20 }, of: key)
            #expect(await bench.rejection(ofCookie: cookie) == .sessionTokenUnknown)
            // Without it the sealed time counts: the token is not replaced earlier or later.
            _ = try await client.command([Array("HDEL".utf8), key, Array(access.name.utf8)])
            bench.advance(.milliseconds(899_999))
            #expect(try await bench.use(cookie).replacement == nil)
            try await client.set(access.name, to: [0x31] + access.value.drop { $0 != 0x20 }, of: key)
            #expect(try await bench.use(cookie).replacement == nil)
            bench.advance(.milliseconds(1))
            let next = try #require(try await bench.use(cookie).replacement?.token)
            // After a privilege change the end of the grace period is sealed.
            let third = try await bench.reissue(next).token
            let name = try await field("q:").name
            bench.advance(.seconds(30))
            for field in try await client.fields(of: key) where field.name.hasPrefix("q:") {
                try await client.set(field.name, to: later, of: key)
            }
            #expect(!name.isEmpty)
            #expect(await bench.rejection(ofCookie: next) == .sessionTokenReused)
            #expect(await bench.rejection(ofCookie: third) == .sessionUnknown)
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
                let cookie = try await bench.cookieLogin().token
                bench.advance(.seconds(900))
                let next = try #require(try await bench.use(cookie).replacement?.token)
                if round % 2 == 0 { _ = try await bench.use(next) }
                let key = try await client.key("s")
                let names = try await client.fields(of: key).map(\.name)
                let name = names[round % names.count]
                let value = values.randomElement(using: &generator) ?? ""
                if round % 4 == 0 {
                    _ = try await client.command([Array("HDEL".utf8), key, Array(name.utf8)])
                } else {
                    try await client.set(name, to: Array(value.utf8), of: key)
                }
                _ = await bench.rejection(ofCookie: cookie)
                _ = await bench.rejection(ofCookie: next)
                _ = try? await bench.reissue(next)
                bench.advance(.seconds(900))
                _ = await bench.rejection(ofCookie: next)
                _ = try? await bench.store.list(subject: "usr_ann")
                try? await bench.store.endAll(subject: "usr_ann", provider: nil, except: nil)
            }
            #expect(clients[0].status.reconnects == 0)
        }
    }

    @Test func `an outage is never a miss, and nothing happens where publishing is not permitted`() async throws {
        let server = try RedisServer()
        try await withInstances(1, of: server) { clients in
            let bench = SessionBench(backend: clients[0].sessions(), startingAt: hourAhead())
            let cookie = try await bench.cookieLogin().token
            bench.advance(.seconds(900))
            _ = try server.command("ACL SETUSER default resetchannels")
            await #expect(throws: SessionError.self) { try await bench.reissue(cookie) }
            _ = try server.command("ACL SETUSER default allchannels")
            let next = try #require(try await bench.use(cookie).replacement?.token)
            #expect(await bench.rejection(ofCookie: next) == nil)
            try server.stop()
            let error = await #expect(throws: AuthenticationError.self) { try await bench.use(next) }
            #expect(error?.disposition == .unavailable && error?.code == .sessionStoreUnavailable)
            let outage = await #expect(throws: SessionError.self) { try await bench.reissue(next) }
            #expect(outage?.kind == .unavailable)
        }
    }
}
