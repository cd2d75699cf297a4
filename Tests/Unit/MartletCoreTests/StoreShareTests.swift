import MartletTesting
import Testing

@testable import MartletCore

extension Clock {
    /// The milliseconds of a box.
    fileprivate static func reading(_ time: Box<Int64>) -> Clock {
        Clock(
            unixTime: { UnixTime(seconds: time.value / 1000) },
            monotonicTime: { MonotonicTime(nanoseconds: time.value * 1_000_000) })
    }
}

/// One client's values are no outage of the others.
@Suite struct StoreShareTests {
    private let time = Box<Int64>(1_000_000)
    private var clock: Clock { .reading(time) }

    /// Writes values of an owner until one is refused.
    private func fill(
        _ store: any SharedStoring, _ name: String, lifetime: Duration = .seconds(60)
    ) async -> (written: Int, error: ErrorCode?) {
        var written = 0
        while written < 200_000 {
            do throws(StoreError) {
                try await store.set([1], for: "\(name) \(written)", lifetime: lifetime)
                written += 1
            } catch {
                return (written, error.code)
            }
        }
        return (written, nil)
    }

    /// One address of a network.
    private static func address(_ number: UInt64, in network: UInt64 = 1) -> WorkOwner {
        WorkOwner(group: network, member: number)
    }

    @Test(arguments: StorePurpose.allCases)
    func `what one owner fills has capacity for the others`(purpose: StorePurpose) async throws {
        let store = MemoryStore(clock: clock)
        let bob = store.partition(purpose, for: WorkOwner(named: "bob"))
        let (written, error) = await fill(bob, "bob")
        #expect(written == purpose.bounds.entries / 8 && error == .storeShareUsedUp)
        let ada = store.partition(purpose, for: WorkOwner(named: "ada"))
        #expect(try await ada.setIfAbsent([1], for: "ada", lifetime: .seconds(60)))
        #expect(try await ada.increment("count", lifetime: .seconds(60)).count == 1)
        // What an owner has can be read, changed and removed, by all.
        #expect(try await !ada.setIfAbsent([2], for: "bob 0", lifetime: .seconds(60)))
        try await bob.set([3], for: "bob 0", lifetime: .seconds(60))
        guard case .found([3]) = await ada.take("bob 0") else {
            Issue.record("not found")
            return
        }
        try await bob.set([1], for: "another", lifetime: .seconds(60))
        time.withLock { $0 += 60_000 }
        #expect(try await bob.increment("count", lifetime: .seconds(60)).count == 1)
    }

    @Test func `addresses of one network have no more than is left for others`() async throws {
        let store = MemoryStore(clock: clock)
        var written: [Int] = []
        for number in 0..<10 {
            written.append(await fill(store.partition(.codes, for: Self.address(UInt64(number))), "\(number)").written)
        }
        #expect(written == [12_500, 12_500, 12_500, 12_500, 0, 0, 0, 0, 0, 0])
        // And of several networks, each as much as the others, and as much is left.
        for network in 2..<6 {
            for number in 0..<10 {
                let owner = Self.address(UInt64(number), in: UInt64(network))
                written.append(await fill(store.partition(.codes, for: owner), "\(network) \(number)").written)
            }
        }
        #expect(written.reduce(0, +) == 96_875)
        let one = store.partition(.codes, for: WorkOwner(named: "one"))
        #expect(await fill(one, "one") == (1563, .storeShareUsedUp))
    }

    @Test func `values are counted by their size, too`() async throws {
        let store = MemoryStore(clock: clock)
        let bob = store.partition(.browsers, for: WorkOwner(named: "bob"))
        let large = [UInt8](repeating: 0, count: 64 * 1024)
        var written = 0
        await #expect(throws: StoreError.self) {
            while written < 1000 {
                try await bob.set(large, for: "\(written)", lifetime: .seconds(60))
                written += 1
            }
        }
        #expect(written == 63)
        try await store.partition(.browsers, for: WorkOwner(named: "ada")).set(large, for: "a", lifetime: .seconds(60))
    }

    @Test func `a counter stays its first owner's, and a value that is refused leaves the one before`() async throws {
        let store = MemoryStore(clock: clock)
        let (ada, bob) = (WorkOwner(named: "ada"), WorkOwner(named: "bob"))
        _ = try await store.partition(.bans, for: ada).increment("count", lifetime: .seconds(60))
        try await store.partition(.bans, for: ada).set([1], for: "value", lifetime: .seconds(60))
        let full = store.partition(.bans, for: bob)
        _ = await fill(full, "bob")
        #expect(try await full.increment("count", lifetime: .seconds(60)).count == 2)
        await #expect(throws: StoreError.self) { try await full.set([2], for: "value", lifetime: .seconds(60)) }
        guard case .found([1]) = await full.value(for: "value") else {
            Issue.record("the value is lost")
            return
        }
    }

    @Test func `the gateway has no share`() async {
        let store = MemoryStore(clock: clock)
        #expect(await fill(store.partition(.keys, for: .gateway), "k") == (1000, .storeFull))
    }

    @Test func `expired values leave nothing behind`() async throws {
        let store = MemoryStore(clock: clock)
        let partition = store.partition(.proofs, for: WorkOwner(named: "ada"))
        for number in 0..<100_000 {
            try await partition.set([1], for: "\(number)", lifetime: .milliseconds(5))
            try await partition.remove("\(number)")
            time.withLock { $0 += 1 }
        }
        #expect(await fill(partition, "all").written == 12_500)
    }

    @Test func `keys expire in order`() {
        var expiries = Expiries()
        let times = (0..<500).map { Int64($0 * 7919 % 1009) }
        for time in times { expiries.add("\(time)", at: MonotonicTime(nanoseconds: time)) }
        var popped: [Int64] = []
        while let key = expiries.popFirst(until: MonotonicTime(nanoseconds: 600)) { popped.append(Int64(key) ?? -1) }
        #expect(popped == times.filter { $0 <= 600 }.sorted() && expiries.count == 500 - popped.count)
    }
}

/// The same for a store without a limit of its own.
@Suite struct StoreMeterTests {
    private let time = Box<Int64>(1_000_000)

    @Test func `one owner writes a share in the time that values live`() async throws {
        let clock = Clock.reading(time)
        let (base, meter) = (MemoryStore(clock: clock, maximumEntries: 1_000_000), StoreMeter(clock: clock))
        func partition(_ name: String, _ purpose: StorePurpose = .proofs) -> any SharedStoring {
            MeteredStore(base, meter, purpose, for: WorkOwner(named: name))
        }
        func write(_ name: String, _ count: Int) async -> Int {
            var written = 0
            for number in 0..<count {
                let key = "\(name) \(time.value) \(number)"
                if (try? await partition(name).setIfAbsent([1], for: key, lifetime: .seconds(75))) == true {
                    written += 1
                }
            }
            return written
        }
        #expect((12_500...12_501).contains(await write("bob", 20_000)))
        await #expect(throws: StoreError.self) { try await partition("bob").set([1], for: "b", lifetime: .seconds(1)) }
        await #expect(throws: StoreError.self) {
            _ = try await partition("bob").increment("c", lifetime: .seconds(1))
        }
        #expect(await write("ada", 100) == 100)
        _ = try await partition("bob", .codes).increment("c", lifetime: .seconds(1))
        time.withLock { $0 += 7500 }
        #expect((1249...1251).contains(await write("bob", 20_000)))
        // Counted is what was written.
        for _ in 0..<20_000 { _ = try await partition("eve").setIfAbsent([1], for: "once", lifetime: .seconds(75)) }
        for _ in 0..<20_000 { _ = try await partition("eve").increment("count", lifetime: .seconds(75)) }
        #expect(await write("eve", 100) == 100)
    }

    @Test func `a network has half, whatever its addresses`() async throws {
        let clock = Clock.reading(time)
        let (base, meter) = (MemoryStore(clock: clock, maximumEntries: 1_000_000), StoreMeter(clock: clock))
        var written = 0
        for number in 0..<100_000 {
            let owner = WorkOwner(group: 7, member: UInt64(number % 4096))
            let partition = MeteredStore(base, meter, .proofs, for: owner)
            let isNew = try? await partition.setIfAbsent([1], for: "\(number)", lifetime: .seconds(75))
            if isNew == true { written += 1 }
        }
        #expect((50_000...50_001).contains(written))
        let gateway = MeteredStore(base, meter, .proofs, for: .gateway)
        for number in 0..<200_000 { try await gateway.set([1], for: "g\(number % 10)", lifetime: .seconds(75)) }
    }
}
