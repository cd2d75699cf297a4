import MartletCore
import MartletJSON
import MartletProvider
import MartletRedis
import MartletSession
import MartletSessionTesting
import MartletTesting
import Testing

/// What a login asks of Redis: whether the identity has changed, the claims that are stored, and its attempts.
@Suite(.timeLimit(.minutes(2))) struct LoginStoreTests {
    private func seal(_ clock: Clock) -> StoreSeal? {
        StoreSeal(
            keys: [Secret([UInt8](repeating: 1, count: StoreSeal.keyLength))], clock: clock, logger: .silent)
    }

    @Test(arguments: [false, true])
    func `a change since the login began leaves no session behind`(isSealed: Bool) async throws {
        let server = try RedisServer()
        try await withInstances(1, of: server) { clients in
            let clock = Box(hourAhead())
            let seal = isSealed ? seal(.reading(clock)) : nil
            let bench = SessionBench(
                backend: RedisSessions(client: clients[0], keyPrefix: "martlet:", seal: seal), clock: clock, seal: seal)
            let key = ChangeMark.key(prefix: "martlet:", subject: "usr_ann", name: "x")
            func outcome(_ number: Int) async -> String {
                do throws(SessionError) {
                    _ = try await bench.store.create(
                        subject: "usr_ann", provider: "apple", identity: .ann, client: SessionClient(), evicting: true,
                        mark: ChangeMark(key: key, number: number))
                    return "created"
                } catch {
                    return "\(error)"
                }
            }
            #expect(await outcome(6) == "created")
            let plain: any SharedStoring = clients[0]
            let store = seal.map { SealedStore(plain, seal: $0) } ?? plain
            let changes = store.partition(.changes, for: .gateway)
            try await changes.set(ChangeMark.bytes(of: 7), for: key, lifetime: .seconds(60))
            #expect(await outcome(6) == "signin.overtaken")
            #expect(await outcome(7) == "created")
            // The number could not be read when the login began.
            #expect(await outcome(-1) == "session.contended")
            try await clients[0].set([1, 2, 3], for: key, lifetime: .seconds(60))
            #expect(await outcome(9) == "signin.overtaken", "what is no number may be any")
            #expect(try await bench.store.list(subject: "usr_ann").count == 2)
        }
    }

    @Test func `a login and a refresh tell which claims are stored, and a login keeps them`() async throws {
        let server = try RedisServer()
        try await withInstances(1, of: server) { clients in
            let clock = Box(hourAhead())
            let bench = SessionBench(backend: clients[0].sessions(), clock: clock)
            #expect(try await bench.login().claimsVersion == nil)
            let claims = VersionedClaims(version: 3, claims: AccountClaims(account: ["role": "admin"], identities: [:]))
            #expect(try await bench.store.apply(claims, to: "usr_ann"))
            bench.advance(.seconds(86_400))
            let tokens = try await bench.login()
            #expect(tokens.claimsVersion == 3)
            #expect(try await bench.store.refresh(tokens.refreshToken).claimsVersion == 3)
            let keys = try await clients[0].keys().filter { String(decoding: $0, as: UTF8.self).hasSuffix("}:u") }
            let left = try await clients[0].command([Array("PTTL".utf8), try #require(keys.first)])
            // Until the session ends that began last: 60 days and the day that has passed.
            guard case .integer(let left) = left else { throw TestFailure("\(left)") }
            #expect(left > 60 * 86_400_000)
        }
    }

    @Test func `an attempt is counted where it belongs, unless that is banned`() async throws {
        let server = try RedisServer()
        try await withInstances(1, of: server) { clients in
            let store = clients[0]
            let (common, own) = (
                CountedAttempt.Bucket(attempts: "{u}a", ban: "{u}b"),
                CountedAttempt.Bucket(attempts: "{u}a:n", ban: "{u}b:n")
            )
            let attempt = CountedAttempt(known: "{u}k", own: own, common: common, lifetime: .seconds(60))
            var counted = try await store.count(attempt, for: .anonymous)
            #expect(counted.known == nil && counted.ban.count == 0 && counted.attempts.count == 1)
            #expect(counted.attempts.remaining > .seconds(50))
            try await store.set([9], for: "{u}k", lifetime: .seconds(60))
            counted = try await store.count(attempt, for: .anonymous)
            #expect(counted.known == [9] && counted.attempts.count == 1, "of the user's own network")
            _ = try await store.increment("{u}b:n", lifetime: .seconds(30))
            counted = try await store.count(attempt, for: .anonymous)
            #expect(counted.ban.count == 1 && counted.ban.remaining > .seconds(20) && counted.attempts.count == 0)
            #expect(try await store.counter("{u}a:n").count == 1, "a banned attempt does not count")
            try await store.remove(["{u}k", "{u}b:n"])
            #expect(try await store.count(attempt, for: .anonymous).attempts.count == 2)
            // With a seal, a network that someone else has made known is not.
            let sealed = SealedStore(store, seal: try #require(seal(.system)))
            try await store.set([9], for: "{u}k", lifetime: .seconds(60))
            #expect(try await sealed.count(attempt, for: .anonymous).known == nil)
            try await sealed.partition(.loginLocations, for: .gateway).set([8], for: "{u}k", lifetime: .seconds(60))
            #expect(try await sealed.count(attempt, for: .anonymous).known == [8])
        }
    }

    @Test func `a session that is not found when it is revoked does not come back`() async throws {
        let server = try RedisServer()
        try await withInstances(2, of: server) { clients in
            let clock = Box(hourAhead())
            let instances = clients.map { SessionBench(backend: $0.sessions(), clock: clock) }
            // Only the writes of the last two seconds are repeated: a test that had to wait for a processor tries again.
            for attempt in 1...3 {
                let tokens = try await instances[0].login()
                // Repeated in any case: the writes of the other session are dropped once its end is known.
                _ = try await instances[0].login()
                // The next master has nothing of it; the instance that created the session writes it again.
                try await clients[0].ask("FLUSHALL")
                await #expect(throws: SessionError.self) {
                    try await instances[1].store.endSession(withRefreshToken: tokens.refreshToken, reporting: nil)
                }
                _ = try server.command("CLIENT KILL TYPE normal")
                do {
                    try await eventually("the writes are repeated", within: .seconds(10)) {
                        clients[0].status.repeated > 0
                    }
                } catch {
                    if attempt < 3 { continue }
                    throw error
                }
                try await eventually("a connection is there") {
                    await instances[0].rejection(of: tokens.accessToken) == "session.unknown"
                }
                #expect(await instances[0].rejection(ofRefreshing: tokens.refreshToken)?.code == "session.unknown")
                break
            }
        }
    }

    @Test func `a client that takes over repeats what the one before has ended`() async throws {
        let server = try RedisServer()
        try await withInstances(2, of: server) { clients in
            let bench = SessionBench(backend: clients[0].sessions(), clock: Box(hourAhead()))
            let (early, late) = (try await bench.login(), try await bench.login())
            try await bench.store.endSession(withRefreshToken: early.refreshToken, reporting: nil)
            clients[0].handOver(to: clients[1])
            try await bench.store.endSession(withRefreshToken: late.refreshToken, reporting: nil)
            clients[0].shutdown()
            try await eventually("both ends are there") { clients[1].mayMissWrites }
            // The same servers, connected again.
            _ = try server.command("CLIENT KILL TYPE normal")
            try await eventually("they are repeated") { clients[1].status.repeated >= 2 }
        }
    }
}
