import MartletCore
import Synchronization
import Testing

@Suite struct MemoryStoreTests {
    /// A clock that only advances by hand.
    private final class ManualClock: Sendable {
        private let now = Mutex<Int64>(1_000_000_000)

        func advance(by span: Duration) { now.withLock { $0 += span.wholeNanoseconds } }

        var clock: Clock {
            Clock(
                unixTime: { UnixTime(seconds: 0) },
                monotonicTime: { MonotonicTime(nanoseconds: self.now.withLock { $0 }) })
        }
    }

    private let time = ManualClock()

    private func stored(_ store: MemoryStore, _ key: String) async -> [UInt8]? {
        if case .found(let value) = await store.value(for: key) { value } else { nil }
    }

    private func code(_ body: () async throws(StoreError) -> Void) async -> ErrorCode? {
        do {
            try await body()
            return nil
        } catch {
            return error.code
        }
    }

    @Test func `a value can be read until its lifetime ends`() async throws {
        let store = MemoryStore(clock: time.clock)
        #expect(await stored(store, "a") == nil)
        try await store.set([1], for: "a", lifetime: .seconds(10))
        time.advance(by: .milliseconds(9999))
        #expect(await stored(store, "a") == [1])
        time.advance(by: .milliseconds(1))
        #expect(await stored(store, "a") == nil)
        #expect(store.count == 0)
    }

    @Test func `a later write replaces value and lifetime`() async throws {
        let store = MemoryStore(clock: time.clock)
        try await store.set([1], for: "a", lifetime: .seconds(1))
        try await store.set([2], for: "a", lifetime: .seconds(60))
        time.advance(by: .seconds(2))
        #expect(await stored(store, "a") == [2])
    }

    @Test func `a counter can be decremented to 0`() async throws {
        let store = MemoryStore(clock: time.clock)
        try await store.decrement("a")
        #expect(store.count == 0)
        for _ in 0..<2 { _ = try await store.increment("a", lifetime: .seconds(10)) }
        time.advance(by: .seconds(4))
        try await store.decrement("a")
        #expect(try await store.counter("a") == CounterReading(count: 1, remaining: .seconds(6)))
        for _ in 0..<2 {
            try await store.decrement("a")
            #expect(try await store.counter("a") == CounterReading(count: 0, remaining: .zero))
        }
        #expect(store.count == 0, "a counter of 0 needs no entry")
    }

    @Test func `a lease has one holder, and only the holder releases it`() async throws {
        let store = MemoryStore(clock: time.clock)
        #expect(try await store.setIfAbsent([1], for: "lease", lifetime: .seconds(5)))
        #expect(try await !store.setIfAbsent([2], for: "lease", lifetime: .seconds(5)))
        try await store.remove("lease", ifEqualTo: [2])
        #expect(await stored(store, "lease") == [1])
        try await store.remove("lease", ifEqualTo: [1])
        #expect(try await store.setIfAbsent([2], for: "lease", lifetime: .seconds(5)))
        time.advance(by: .seconds(5))
        #expect(try await store.setIfAbsent([3], for: "lease", lifetime: .seconds(5)))
    }

    @Test func `a full store rejects new values until old ones expire`() async throws {
        let store = MemoryStore(clock: time.clock, maximumEntries: 3)
        for key in ["a", "b", "c"] { try await store.set([1], for: key, lifetime: .seconds(key == "b" ? 1 : 10)) }
        #expect(
            await code { () async throws(StoreError) in
                try await store.set([1], for: "d", lifetime: .seconds(1))
            } == "store.full")
        try await store.set([2], for: "a", lifetime: .seconds(10))
        #expect(await stored(store, "a") == [2])
        time.advance(by: .seconds(1))
        try await store.set([1], for: "d", lifetime: .seconds(1))
        #expect(
            await code { () async throws(StoreError) in
                try await store.set([1], for: "e", lifetime: .seconds(1))
            } == "store.full")
        #expect(await stored(store, "c") == [1])
    }

    /// Writes values until the store is full.
    private func fill(_ store: any SharedStoring) async -> Int {
        var written = 0
        while await code({ () async throws(StoreError) in
            try await store.set([1], for: "fill \(written)", lifetime: .seconds(60))
        }) == nil {
            written += 1
        }
        return written
    }

    @Test(arguments: StorePurpose.allCases)
    func `a store that is full for one purpose has capacity for the others`(purpose: StorePurpose) async throws {
        let store = MemoryStore(clock: time.clock)
        #expect((1000...100_000).contains(await fill(store.partition(purpose, for: .gateway))))
        for other in StorePurpose.allCases where other != purpose {
            let partition = store.partition(other, for: .gateway)
            #expect(try await partition.setIfAbsent([2], for: "other", lifetime: .seconds(60)), "\(other)")
            #expect(try await partition.increment("count", lifetime: .seconds(60)).count == 1, "\(other)")
        }
        let full = store.partition(purpose, for: .gateway)
        let failure = await code { () async throws(StoreError) in
            _ = try await full.increment("count", lifetime: .seconds(60))
        }
        #expect(failure == "store.full")
        time.advance(by: .seconds(60))
        #expect(try await full.increment("count", lifetime: .seconds(60)).count == 1)
    }

    @Test func `partitions are stable, and there are none with explicit limits`() async throws {
        let store = MemoryStore(clock: time.clock)
        try await store.partition(.codes, for: .gateway).set([1], for: "a", lifetime: .seconds(1))
        guard case .found([1]) = await store.partition(.codes, for: .gateway).value(for: "a") else {
            Issue.record("the value is missing")
            return
        }
        guard case .miss = await store.value(for: "a") else {
            Issue.record("the value is in the general partition")
            return
        }
        let single = MemoryStore(clock: time.clock, maximumEntries: 1)
        try await single.partition(.codes, for: .gateway).set([1], for: "a", lifetime: .seconds(1))
        #expect(await stored(single, "a") == [1])
    }

    @Test func `the size limit counts keys and values`() async throws {
        let store = MemoryStore(clock: time.clock, maximumEntries: 100, maximumBytes: 1000)
        try await store.set([UInt8](repeating: 0, count: 600), for: "a", lifetime: .seconds(10))
        #expect(
            await code { () async throws(StoreError) in
                try await store.set([UInt8](repeating: 0, count: 600), for: "b", lifetime: .seconds(10))
            } == "store.full")
        try await store.remove("a", ifEqualTo: [UInt8](repeating: 0, count: 600))
        try await store.set([UInt8](repeating: 0, count: 600), for: "b", lifetime: .seconds(10))
    }

    @Test func `expired values are removed even when they are not read again`() async throws {
        let store = MemoryStore(clock: time.clock)
        for number in 0..<20_000 {
            try await store.set([1], for: "k\(number)", lifetime: .milliseconds(5))
            time.advance(by: .milliseconds(1))
        }
        #expect(store.count < 3000)
    }

    @Test(arguments: [Duration.zero, .seconds(-5)])
    func `a value whose lifetime is not positive is not stored`(lifetime: Duration) async throws {
        let store = MemoryStore(clock: time.clock)
        try await store.set([1], for: "a", lifetime: lifetime)
        #expect(await stored(store, "a") == nil)
    }
}
