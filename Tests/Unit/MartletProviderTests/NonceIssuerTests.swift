import MartletCore
import MartletTesting
import Testing

@testable import MartletProvider

@Suite struct NonceIssuerTests {
    /// A clock that a test advances, wall-clock and monotonic time together.
    private final class Time: Sendable {
        private let seconds = Box<Int64>(1_700_000_000)

        var clock: Clock {
            Clock(
                unixTime: { [seconds] in UnixTime(seconds: seconds.value) },
                monotonicTime: { [seconds] in MonotonicTime(nanoseconds: seconds.value * 1_000_000_000) })
        }

        func advance(_ span: Int64) { seconds.withLock { $0 += span } }
    }

    private let time = Time()
    private let store: FlakyStore

    init() { store = FlakyStore(MemoryStore(clock: time.clock)) }

    private func issuer(ahead seconds: Int64 = 0, store other: FlakyStore? = nil) -> NonceIssuer {
        let clock = time.clock
        let shifted = Clock(
            unixTime: { clock.unixTime.advanced(bySeconds: seconds) }, monotonicTime: { clock.monotonicTime })
        return NonceIssuer(store: other ?? store, keyPrefix: "test:", clock: shifted)
    }

    private func use(_ nonce: String, at issuer: NonceIssuer) async -> String {
        switch await issuer.consume(nonce, for: .anonymous) {
        case .found: "accepted"
        case .miss: "rejected"
        case .unavailable(let error): error.code.rawValue
        }
    }

    @Test func `issues short, URL-safe and unique nonces`() async throws {
        let issuer = issuer()
        var seen: Set<String> = []
        for _ in 0..<100 {
            let nonce = try await issuer.make()
            #expect(nonce.hasPrefix("mno_") && nonce.utf8.count == 79)
            #expect(Base64URL.decode(nonce) != nil)
            seen.insert(nonce)
        }
        #expect(seen.count == 100)
    }

    @Test func `stores nothing but its key until one is used`() async throws {
        let issuer = issuer()
        var last = ""
        for _ in 0..<1000 { last = try await issuer.make() }
        #expect(store.writes.value == ["test:nonce-key"])
        #expect(await use(last, at: issuer) == "accepted")
        #expect(store.writes.value.count == 2 && !store.writes.value[1].contains(last))
        #expect(store.reads.value == 1, "the key is read once")
    }

    @Test func `accepts each once, at any instance`() async throws {
        let (one, other) = (issuer(), issuer())
        let nonces = [try await one.make(), try await other.make()]
        for nonce in nonces {
            #expect(await use(nonce, at: other) == "accepted")
            #expect(await use(nonce, at: one) == "rejected")
            #expect(await use(nonce, at: other) == "rejected")
        }
        let contended = try await one.make()
        let results = await withTaskGroup(of: String.self) { group in
            for index in 0..<50 { group.addTask { await self.use(contended, at: index % 2 == 0 ? one : other) } }
            return await group.reduce(into: [String]()) { $0.append($1) }
        }
        #expect(results.count { $0 == "accepted" } == 1)
    }

    @Test func `accepts it for five minutes, and stores its use for longer`() async throws {
        let (issuer, behind) = (issuer(), issuer(ahead: -59))
        let (nonce, used) = (try await issuer.make(), try await issuer.make())
        #expect(await use(used, at: issuer) == "accepted")
        time.advance(299)
        #expect(await use(used, at: issuer) == "rejected")
        #expect(await use(nonce, at: issuer) == "accepted")
        let late = try await issuer.make()
        time.advance(300)
        #expect(await use(late, at: issuer) == "rejected")
        #expect(await use(late, at: behind) == "accepted", "an instance whose clock is behind accepts it for longer")
        #expect(await use(late, at: behind) == "rejected")
        time.advance(58)
        #expect(await use(late, at: behind) == "rejected", "its use is stored until then")
    }

    @Test func `rejects those from the future`() async throws {
        let (issuer, ahead, far) = (issuer(), issuer(ahead: 60), issuer(ahead: 61))
        #expect(await use(try await ahead.make(), at: issuer) == "accepted")
        #expect(await use(try await far.make(), at: issuer) == "rejected")
    }

    @Test func `rejects those that it did not issue`() async throws {
        let issuer = issuer()
        let nonce = try await issuer.make()
        let bytes = try #require(Base64URL.decode(Array(nonce.utf8.dropFirst(4))))
        for index in bytes.indices {
            var changed = bytes
            changed[index] ^= 1
            #expect(await use("mno_" + Base64URL.encode(changed), at: issuer) == "rejected", "byte \(index)")
        }
        for other in [
            "", "mno_", "my own", String(nonce.dropFirst(4)), nonce + "A", String(nonce.dropLast()), nonce + "=",
            "mno_" + Base64URL.encode([UInt8](repeating: 0xFF, count: 56)), "mno_\u{301}", nonce.uppercased(),
        ] {
            #expect(await use(other, at: issuer) == "rejected", "\(other)")
        }
        let stranger = self.issuer(store: FlakyStore(MemoryStore(clock: time.clock)))
        #expect(await use(try await stranger.make(), at: issuer) == "rejected")
        #expect(store.writes.value == ["test:nonce-key"], "rejected nonces are not stored")
        #expect(await use(nonce, at: issuer) == "accepted")
    }

    @Test func `needs the store once for its key, and then only for uses`() async throws {
        let issuer = issuer()
        store.isUnavailable.withLock { $0 = true }
        await #expect(throws: StoreError.self) { try await issuer.make() }
        store.isUnavailable.withLock { $0 = false }
        let nonce = try await issuer.make()
        store.isUnavailable.withLock { $0 = true }
        let during = try await issuer.make()
        #expect(await use(nonce, at: issuer) == "store.unavailable")
        #expect(await use("mno_x", at: issuer) == "rejected", "decided without the store")
        time.advance(61)
        _ = try await issuer.make()
        store.isUnavailable.withLock { $0 = false }
        for nonce in [nonce, during] { #expect(await use(nonce, at: issuer) == "accepted") }
    }

    @Test func `stores its key again if the store has lost it`() async throws {
        let issuer = issuer()
        let nonce = try await issuer.make()
        try await store.partition(.keys, for: .gateway).remove("test:nonce-key")
        time.advance(61)
        _ = try await issuer.make()
        try await until { store.writes.value.count { $0 == "test:nonce-key" } == 2 }
        #expect(await use(nonce, at: self.issuer()) == "accepted", "a new instance accepts it")
    }

    @Test func `adopts the key of the store, and still accepts nonces of its previous key`() async throws {
        let old = issuer()
        let before = try await old.make()
        try await store.partition(.keys, for: .gateway).remove("test:nonce-key")
        let new = issuer()
        time.advance(6)
        _ = try await old.make()
        try await until { await use(try await old.make(), at: new) == "accepted" }
        #expect(await use(before, at: old) == "accepted")
        #expect(await use(try await new.make(), at: old) == "accepted")
    }

    @Test(arguments: [1, 6])
    func `looks for a newer key, every second at most, before it rejects one`(seconds: Int64) async throws {
        let old = issuer()
        _ = try await old.make()
        try await store.partition(.keys, for: .gateway).remove("test:nonce-key")
        let foreign = try await issuer().make()
        #expect(await use(foreign, at: old) == "rejected", "the keys were compared a moment ago")
        time.advance(seconds)
        store.isUnavailable.withLock { $0 = true }
        #expect(await use(foreign, at: old) == "store.unavailable")
        store.isUnavailable.withLock { $0 = false }
        #expect(await use(foreign, at: old) == "accepted")
    }

    @Test(arguments: [[], [1], [UInt8](repeating: 1, count: 33)])
    func `replaces an invalid key`(bytes: [UInt8]) async throws {
        try await store.set(bytes, for: "test:nonce-key", lifetime: .seconds(1000))
        let (one, other) = (issuer(), issuer())
        #expect(await use(try await one.make(), at: other) == "accepted")
    }

    /// Waits for the effect of another task.
    private func until(_ condition: () async throws -> Bool) async throws {
        for _ in 0..<10_000 {
            if try await condition() { return }
            await Task.yield()
        }
        throw TestFailure("the condition was never met")
    }
}

/// A store that can be unavailable, and records operations.
private final class FlakyStore: SharedStoring {
    let isUnavailable = Box(false)
    let writes = Box<[String]>([])
    let reads = Box(0)
    private let store: MemoryStore

    init(_ store: MemoryStore) { self.store = store }

    private func access() throws(StoreError) {
        if isUnavailable.value { throw StoreError(code: "store.unavailable", message: "") }
    }

    func value(for key: String) async -> StoreReply<[UInt8]> {
        do throws(StoreError) { try access() } catch { return .unavailable(error) }
        reads.withLock { $0 += 1 }
        return await store.value(for: key)
    }

    func set(_ value: [UInt8], for key: String, lifetime: Duration) async throws(StoreError) {
        try access()
        try await store.set(value, for: key, lifetime: lifetime)
    }

    func setIfAbsent(_ value: [UInt8], for key: String, lifetime: Duration) async throws(StoreError) -> Bool {
        try access()
        let isWritten = try await store.setIfAbsent(value, for: key, lifetime: lifetime)
        if isWritten { writes.withLock { $0.append(key) } }
        return isWritten
    }

    func remove(_ key: String, ifEqualTo value: [UInt8]) async throws(StoreError) {
        try access()
        try await store.remove(key, ifEqualTo: value)
    }

    func remove(_ key: String) async throws(StoreError) { try await store.remove(key) }
    func take(_ key: String) async -> StoreReply<[UInt8]> { await store.take(key) }
    func increment(_ key: String, lifetime: Duration) async throws(StoreError) -> CounterReading {
        try await store.increment(key, lifetime: lifetime)
    }
    func counter(_ key: String) async throws(StoreError) -> CounterReading { try await store.counter(key) }
}
