import MartletCore
import MartletProvider
import MartletTesting
import Testing

@testable import PasswordProvider

@Suite struct ThrottleTests {
    private func fail(
        _ times: Int, _ bench: Bench, _ name: String = "alice", from client: ClientNetwork? = Bench.home
    ) async {
        for _ in 0..<times {
            let error = await bench.logIn(name, "wrong", from: client)
            #expect(error?.disposition == .rejected)
        }
    }

    @Test(arguments: ["alice", "nobody"])
    func `rejects a user after the allowed failures`(name: String) async throws {
        let bench = try Bench()
        await fail(5, bench, name)
        for password in [Bench.alice, "wrong", "", "\0"] {
            let error = try #require(await bench.logIn(name, password))
            #expect(error.code == "password.throttled" && error.disposition == .throttled)
            #expect(error.retryAfter == .seconds(300))
        }
        bench.time.advance(by: .seconds(299))
        #expect(await bench.logIn(name, Bench.alice)?.retryAfter == .seconds(1))
        bench.time.advance(by: .seconds(1))
        #expect(await bench.logIn(name, "wrong")?.disposition == .rejected)
    }

    @Test func `is no outage for others where one network fills counters and bans`() async throws {
        let bench = try Bench()
        let store = MemoryStore(clock: bench.time.clock)
        let services = ProviderContext.Services.detached(clock: bench.time.clock, hasUsers: false, store: store)
        let throttle = Throttle(limits: .standard, context: .detached("password", services: services))
        let far = try #require(ClientNetwork(address: [UInt8](repeating: 0, count: 10) + [255, 255, 10, 1, 2, 3]))
        for purpose in [StorePurpose.throttles, .bans] {
            let partition = store.partition(purpose, for: far.workOwner)
            await #expect(throws: StoreError.self) {
                for number in 0..<100_000 { try await partition.set([1], for: "\(number)", lifetime: .seconds(300)) }
            }
        }
        let refused = await #expect(throws: AuthenticationError.self) {
            _ = try await throttle.admit(Array("alice".utf8), from: far)
        }
        #expect(refused?.code == "store.share_used_up" && refused?.disposition == .throttled)
        for _ in 0..<5 {
            await throttle.recordFailure(try await throttle.admit(Array("bob".utf8), from: Bench.home))
        }
        let banned = await #expect(throws: AuthenticationError.self) {
            _ = try await throttle.admit(Array("bob".utf8), from: Bench.home)
        }
        #expect(banned?.retryAfter == .seconds(300))
        await throttle.recordSuccess(
            try await throttle.admit(Array("alice".utf8), from: Bench.home), at: bench.time.clock.unixTime)
    }

    /// A ban that cannot be stored is none, but the attempts stay counted.
    @Test func `does not let more attempts pass where bans are full`() async throws {
        let bench = try Bench()
        let store = MemoryStore(clock: bench.time.clock)
        let services = ProviderContext.Services.detached(clock: bench.time.clock, hasUsers: false, store: store)
        let throttle = Throttle(limits: .standard, context: .detached("password", services: services))
        await #expect(throws: StoreError.self) {
            let bans = store.partition(.bans, for: .gateway)
            for number in 0..<100_000 { try await bans.set([1], for: "\(number)", lifetime: .seconds(3000)) }
        }
        for _ in 0..<5 {
            await throttle.recordFailure(try await throttle.admit(Array("bob".utf8), from: Bench.home))
        }
        let throttled = await #expect(throws: AuthenticationError.self) {
            _ = try await throttle.admit(Array("bob".utf8), from: Bench.home)
        }
        #expect(throttled?.code == "password.throttled")
        _ = try await throttle.admit(Array("alice".utf8), from: Bench.home)
    }

    @Test func `accepts the right password when the ban is over`() async throws {
        let bench = try Bench()
        await fail(5, bench)
        // Further attempts do not extend the ban.
        for _ in 0..<60 {
            bench.time.advance(by: .seconds(5))
            if await bench.logIn("alice", "wrong")?.disposition == .rejected { break }
        }
        #expect(await bench.logIn("alice", Bench.alice) == nil)
    }

    @Test func `has one count for every spelling of a name`() async throws {
        let bench = try Bench()
        for name in ["alice", "Alice", "ALICE", "\u{FF41}lice", "aLiCe"] { await fail(1, bench, name) }
        #expect(await bench.logIn("alicE", Bench.alice)?.disposition == .throttled)
    }

    @Test func `resets the count after a login`() async throws {
        let bench = try Bench()
        for _ in 0..<3 {
            await fail(4, bench)
            #expect(await bench.logIn("alice", Bench.alice) == nil)
        }
    }

    @Test func `forgets failures when their window is over`() async throws {
        let bench = try Bench()
        for _ in 0..<3 {
            await fail(4, bench)
            bench.time.advance(by: .seconds(120))
        }
        #expect(await bench.logIn("alice", Bench.alice) == nil)
    }

    @Test func `takes its limits from the configuration`() async throws {
        let bench = try Bench([
            "throttle: { attempts: 2, window: 10s, ban: 1h, per_address: { attempts: 3, window: 1m } }"
        ])
        await fail(2, bench)
        #expect(await bench.logIn("alice", "wrong")?.retryAfter == .seconds(3600))
        await fail(1, bench, "bob")
        let error = try #require(await bench.logIn("carol", "wrong"))
        #expect(error.code == "password.address_throttled" && error.disposition == .throttled)
        #expect(error.retryAfter == .seconds(60))
    }

    // MARK: - Networks

    @Test func `cannot lock out a user at a network of an earlier login`() async throws {
        let bench = try Bench()
        #expect(await bench.logIn("alice", Bench.alice, from: Bench.home) == nil)
        for _ in 0..<20 { await bench.logIn("alice", "wrong", from: Bench.elsewhere) }
        #expect(await bench.logIn("alice", Bench.alice, from: Bench.elsewhere)?.disposition == .throttled)
        #expect(await bench.logIn("alice", Bench.alice, from: Bench.home) == nil)
        // The login at home lifts no ban elsewhere.
        #expect(await bench.logIn("alice", Bench.alice, from: Bench.elsewhere)?.disposition == .throttled)
    }

    @Test func `throttles at a known network too`() async throws {
        let bench = try Bench()
        #expect(await bench.logIn("alice", Bench.alice) == nil)
        await fail(5, bench)
        #expect(await bench.logIn("alice", Bench.alice)?.disposition == .throttled)
        // Another network has its own count, which is still empty.
        #expect(await bench.logIn("alice", Bench.alice, from: Bench.elsewhere) == nil)
    }

    @Test func `knows a network for thirty days after its last login`() async throws {
        let bench = try Bench()
        #expect(await bench.logIn("alice", Bench.alice) == nil)
        bench.time.advance(by: .seconds(20 * 86_400))
        #expect(await bench.logIn("alice", Bench.alice) == nil)
        bench.time.advance(by: .seconds(20 * 86_400))
        await fail(5, bench, from: Bench.elsewhere)
        #expect(await bench.logIn("alice", Bench.alice) == nil)
        bench.time.advance(by: .seconds(31 * 86_400))
        await fail(5, bench, from: Bench.elsewhere)
        #expect(await bench.logIn("alice", Bench.alice)?.disposition == .throttled)
    }

    @Test func `knows a network for one user only`() async throws {
        let bench = try Bench()
        #expect(await bench.logIn("alice", Bench.alice) == nil)
        await fail(5, bench, "bob", from: Bench.elsewhere)
        #expect(await bench.logIn("bob", "wrong")?.disposition == .throttled)
    }

    @Test func `rejects a network with too many failures, whoever the user`() async throws {
        let bench = try Bench()
        for index in 0..<100 { await fail(1, bench, "user\(index)", from: Bench.elsewhere) }
        let error = try #require(await bench.logIn("alice", Bench.alice, from: Bench.elsewhere))
        #expect(error.code == "password.address_throttled")
        #expect(await bench.logIn("alice", Bench.alice) == nil)
        bench.time.advance(by: .seconds(120))
        #expect(await bench.logIn("alice", Bench.alice, from: Bench.elsewhere) == nil)
    }

    @Test func `queries the store for a throttled address once a second`() async throws {
        let bench = try Bench(["throttle: { per_address: { attempts: 3, window: 10s } }"])
        for index in 0..<3 { await fail(1, bench, "user\(index)", from: Bench.elsewhere) }
        let queries = Box(0)
        bench.store.hold.withLock { $0 = { queries.withLock { $0 += 1 } } }
        let (home, elsewhere) = (try #require(Bench.home), try #require(Bench.elsewhere))
        for second in 0..<3 {
            for attempt in 0..<20 {
                if attempt > 0 {
                    let rejection = bench.provider.rejection(of: elsewhere)
                    #expect(rejection?.code == "password.address_throttled")
                    #expect(rejection?.retryAfter == .seconds(10 - second))
                }
                let error = await bench.logIn("guess\(second)\(attempt)", "wrong", from: Bench.elsewhere)
                #expect(error?.code == "password.address_throttled")
                #expect(error?.retryAfter == .seconds(10 - second))
            }
            // The failure that was one too many has already told it.
            #expect(queries.value == second)
            bench.time.advance(by: .seconds(1))
        }
        // No other address is affected.
        #expect(bench.provider.rejection(of: home) == nil)
        #expect(await bench.logIn("alice", Bench.alice) == nil)
        bench.time.advance(by: .seconds(7))
        #expect(await bench.logIn("alice", Bench.alice, from: Bench.elsewhere) == nil)
    }

    @Test func `attempts that wait for a hash cost none once their address is throttled`() async throws {
        let bench = try Bench(["throttle: { per_address: { attempts: 3, window: 10s } }"])
        let gate = Gate()
        for _ in 0..<2 {
            bench.pool.submit(until: .never) { _ in gate.block() }
            while bench.pool.waiting > 0 { await Task.yield() }
        }
        let codes = Box<[ErrorCode?]>([])
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<5 {
                group.addTask {
                    let error = await bench.logIn("waiting\(number)", "wrong", from: Bench.elsewhere)
                    codes.withLock { $0.append(error?.code) }
                }
            }
            while bench.pool.waiting < 5 { await Task.yield() }
            // Others from the same address fail meanwhile.
            for number in 0..<3 {
                let attempt = try? await bench.provider.throttle.admit(
                    Array("failing\(number)".utf8), from: Bench.elsewhere)
                if let attempt { await bench.provider.throttle.recordFailure(attempt) }
            }
            gate.open()
        }
        #expect(codes.value == Array(repeating: "password.address_throttled", count: 5))
        #expect(await bench.logIn("alice", Bench.alice) == nil)
    }

    @Test func `counts no successes against a network`() async throws {
        let bench = try Bench(["throttle: { per_address: { attempts: 3 } }"])
        for _ in 0..<10 { #expect(await bench.logIn("alice", Bench.alice) == nil) }
    }

    @Test func `throttles where no address is known`() async throws {
        let bench = try Bench()
        await fail(5, bench, from: nil)
        #expect(await bench.logIn("alice", Bench.alice, from: nil)?.disposition == .throttled)
    }

    // MARK: - The store

    @Test func `has no name, address or password in a key or a line of the log`() async throws {
        let bench = try Bench()
        let planted = "PlantedName*\r\n{x}"
        for _ in 0..<6 { await bench.logIn(planted, "PlantedPassword") }
        for _ in 0..<6 { await bench.logIn("alice", "PlantedPassword") }
        let keys = bench.store.keys.value
        #expect(!keys.isEmpty)
        for key in keys {
            #expect(key.hasPrefix("test:provider:password:"))
            #expect(key.utf8.allSatisfy { (0x21...0x7E).contains($0) } && key.utf8.count < 100)
        }
        let text = (keys + bench.log.texts).joined(separator: "\n")
        for secret in ["Planted", "planted", "alice"] { #expect(!text.contains(secret)) }
        #expect(!keys.contains { $0.contains("192.0.2") })
    }

    @Test func `admits no more concurrent attempts than sequential ones`() async throws {
        let bench = try Bench()
        let outcomes = await withTaskGroup(of: AuthenticationError?.self) { group in
            for index in 0..<40 { group.addTask { await bench.logIn("alice", "guess \(index)") } }
            var outcomes: [AuthenticationError?] = []
            for await outcome in group { outcomes.append(outcome) }
            return outcomes
        }
        #expect(outcomes.count { $0?.disposition == .rejected } <= 5)
        #expect(outcomes.allSatisfy { $0?.disposition == .rejected || $0?.disposition == .throttled })
        #expect(await bench.logIn("alice", Bench.alice)?.retryAfter == .seconds(300))
    }

    @Test func `counts no attempt that could not be verified`() async throws {
        let bench = try Bench()
        bench.users.isBroken.withLock { $0 = true }
        for _ in 0..<10 { #expect(await bench.logIn("alice", "wrong")?.disposition == .unavailable) }
        bench.users.isBroken.withLock { $0 = false }
        await fail(4, bench)
        #expect(await bench.logIn("alice", Bench.alice) == nil)
        bench.users.isReadOnly.withLock { $0 = true }
        for _ in 0..<10 {
            #expect(await bench.change("alice", from: Bench.alice, to: "a new password")?.disposition == .unavailable)
        }
        bench.users.isReadOnly.withLock { $0 = false }
        #expect(await bench.change("alice", from: Bench.alice, to: "a new password") == nil)
        #expect(await bench.logIn("alice", "a new password") == nil)
    }

    @Test func `counts attempts while failures cannot be counted`() async throws {
        let bench = try Bench()
        for _ in 0..<5 { await bench.logIn("alice", "wrong", from: nil) }
        bench.store.isBroken.withLock { $0 = true }
        #expect(await bench.logIn("alice", Bench.alice)?.disposition == .unavailable)
        bench.store.isBroken.withLock { $0 = false }
        #expect(await bench.logIn("alice", Bench.alice)?.disposition == .throttled)
    }
}
