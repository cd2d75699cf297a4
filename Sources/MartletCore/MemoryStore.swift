private import Synchronization

/// The store of a single instance, `memory:`; what it holds ends with the process.
///
/// It is bounded: when it is full of values that are still good, a write fails as `store.full`. Nothing is evicted
/// early, because a nonce or a throttle that is forgotten too soon lets in what it was there to stop. Each purpose has
/// bounds of its own, so that a flood of one leaves the others their room.
public final class MemoryStore: SharedStoring {
    fileprivate struct Entry {
        let value: [UInt8]
        let expiry: MonotonicTime
    }

    fileprivate struct State {
        var entries: [String: Entry] = [:]
        var bytes = 0
        var writesSinceSweep = 0
        /// No entry of the last sweep expires before.
        var earliestExpiry = MonotonicTime(nanoseconds: .min)
    }

    /// What an entry costs beside its key and value.
    private static let entryOverhead = 128

    private let clock: Clock
    private let maximumEntries: Int
    private let maximumBytes: Int
    private let state = Mutex(State())
    /// Those of purposes; what is here is general.
    private let partitions: [StorePurpose: MemoryStore]

    /// Makes an empty store with room for each purpose.
    public init(clock: Clock) {
        self.clock = clock
        (maximumEntries, maximumBytes) = StorePurpose.general.bounds
        var partitions: [StorePurpose: MemoryStore] = [:]
        for purpose in StorePurpose.allCases where purpose != .general {
            let (entries, bytes) = purpose.bounds
            partitions[purpose] = MemoryStore(clock: clock, maximumEntries: entries, maximumBytes: bytes)
        }
        self.partitions = partitions
    }

    /// Makes an empty store with the same room for all purposes.
    /// - Parameters:
    ///   - maximumEntries: how many values it holds at most.
    ///   - maximumBytes: how much keys and values may take together.
    public init(clock: Clock, maximumEntries: Int, maximumBytes: Int = 64 * 1024 * 1024) {
        self.clock = clock
        self.maximumEntries = maximumEntries
        self.maximumBytes = maximumBytes
        partitions = [:]
    }

    /// The part for one purpose, with its own bounds.
    public func partition(_ purpose: StorePurpose) -> any SharedStoring { partitions[purpose] ?? self }

    /// Reads one value.
    public func value(for key: String) async -> StoreAnswer<[UInt8]> {
        let now = clock.monotonicTime
        return state.withLock { state in
            guard let entry = state.live(key, at: now) else { return .miss }
            return .answer(entry.value)
        }
    }

    /// Writes one value that expires after `lifetime`.
    public func set(_ value: [UInt8], for key: String, lifetime: Duration) async throws(StoreError) {
        _ = try write(value, for: key, lifetime: lifetime, onlyIfAbsent: false)
    }

    /// Writes only if nothing is there; `true` when this call wrote.
    public func setIfAbsent(_ value: [UInt8], for key: String, lifetime: Duration) async throws(StoreError) -> Bool {
        try write(value, for: key, lifetime: lifetime, onlyIfAbsent: true)
    }

    /// Removes the value if it is still exactly `value`.
    public func remove(_ key: String, ifEqualTo value: [UInt8]) async throws(StoreError) {
        let now = clock.monotonicTime
        state.withLock { state in
            guard let entry = state.live(key, at: now), entry.value == value else { return }
            state.remove(key)
        }
    }

    /// Removes the value, whatever it is.
    public func remove(_ key: String) async throws(StoreError) {
        state.withLock { $0.remove(key) }
    }

    /// Reads a value and removes it.
    public func take(_ key: String) async -> StoreAnswer<[UInt8]> {
        let now = clock.monotonicTime
        return state.withLock { state in
            guard let entry = state.live(key, at: now) else { return .miss }
            state.remove(key)
            return .answer(entry.value)
        }
    }

    /// Adds 1 to a counter, kept as decimal digits as in Redis.
    public func increment(_ key: String, lifetime: Duration) async throws(StoreError) -> CounterReading {
        let now = clock.monotonicTime
        let counted: CounterReading? = state.withLock { state in
            let live = state.live(key, at: now)
            let count = (live.flatMap { Int(String(decoding: $0.value, as: UTF8.self)) } ?? 0) &+ 1
            let expiry = live?.expiry ?? now + max(lifetime, .zero)
            guard store(Array(String(count).utf8), for: key, until: expiry, in: &state, at: now) else { return nil }
            return CounterReading(count: count, remaining: expiry.since(now))
        }
        guard let counted else { throw StoreError(code: "store.full", message: "the memory store is full") }
        return counted
    }

    /// Takes 1 from a counter; one that comes to 0 is gone.
    public func decrement(_ key: String) async throws(StoreError) {
        let now = clock.monotonicTime
        state.withLock { state in
            guard let live = state.live(key, at: now), let count = Int(String(decoding: live.value, as: UTF8.self)),
                count > 0
            else { return }
            // A counter of 0 is as good as none, and takes no room.
            guard count > 1 else { return state.remove(key) }
            // No longer than before, so there is room.
            _ = store(Array(String(count - 1).utf8), for: key, until: live.expiry, in: &state, at: now)
        }
    }

    /// Reads a counter.
    public func counter(_ key: String) async throws(StoreError) -> CounterReading {
        let now = clock.monotonicTime
        return state.withLock { state in
            guard let live = state.live(key, at: now) else { return CounterReading(count: 0, remaining: .zero) }
            let count = Int(String(decoding: live.value, as: UTF8.self)) ?? 0
            return CounterReading(count: count, remaining: live.expiry.since(now))
        }
    }

    /// How many values it holds, some of which may have expired.
    public var count: Int { state.withLock { $0.entries.count } }

    private func write(
        _ value: [UInt8], for key: String, lifetime: Duration, onlyIfAbsent: Bool
    ) throws(StoreError) -> Bool {
        let now = clock.monotonicTime
        let written: Bool? = state.withLock { state in
            if onlyIfAbsent, state.live(key, at: now) != nil { return false }
            return store(value, for: key, until: now + max(lifetime, .zero), in: &state, at: now) ? true : nil
        }
        guard let written else { throw StoreError(code: "store.full", message: "the memory store is full") }
        return written
    }

    /// Puts a value in place; `false` when there is no room.
    private func store(
        _ value: [UInt8], for key: String, until expiry: MonotonicTime, in state: inout State, at now: MonotonicTime
    ) -> Bool {
        state.remove(key)
        let cost = MemoryStore.cost(key, value)
        state.writesSinceSweep += 1
        if state.writesSinceSweep > max(1024, state.entries.count / 2) { state.sweep(at: now) }
        if !hasRoom(state, for: cost), state.earliestExpiry <= now { state.sweep(at: now) }
        guard hasRoom(state, for: cost) else { return false }
        state.entries[key] = Entry(value: value, expiry: expiry)
        state.bytes += cost
        state.earliestExpiry = min(state.earliestExpiry, expiry)
        return true
    }

    private func hasRoom(_ state: borrowing State, for cost: Int) -> Bool {
        state.entries.count < maximumEntries && cost <= maximumBytes - state.bytes
    }

    fileprivate static func cost(_ key: String, _ value: [UInt8]) -> Int {
        key.utf8.count + value.count + entryOverhead
    }
}

extension StorePurpose {
    private static let mebibyte = 1024 * 1024

    /// How many values may be there, and how many bytes their keys and they may take.
    fileprivate var bounds: (entries: Int, bytes: Int) {
        switch self {
        case .general: (20_000, 16 * Self.mebibyte)
        case .keys: (1000, 16 * Self.mebibyte)
        case .throttles: (100_000, 32 * Self.mebibyte)
        case .bans: (20_000, 8 * Self.mebibyte)
        case .places: (100_000, 32 * Self.mebibyte)
        case .nonces: (50_000, 16 * Self.mebibyte)
        // Each stays for a quarter of an hour.
        case .codes: (100_000, 32 * Self.mebibyte)
        case .outcomes: (10_000, 16 * Self.mebibyte)
        case .changes: (10_000, 4 * Self.mebibyte)
        }
    }
}

extension MemoryStore.State {
    fileprivate mutating func live(_ key: String, at now: MonotonicTime) -> MemoryStore.Entry? {
        guard let entry = entries[key] else { return nil }
        if entry.expiry > now { return entry }
        remove(key)
        return nil
    }

    fileprivate mutating func remove(_ key: String) {
        guard let entry = entries.removeValue(forKey: key) else { return }
        bytes -= MemoryStore.cost(key, entry.value)
    }

    /// Drops what has expired and notes when there will be more to drop.
    fileprivate mutating func sweep(at now: MonotonicTime) {
        writesSinceSweep = 0
        earliestExpiry = .never
        for (key, entry) in entries {
            if entry.expiry <= now { remove(key) } else { earliestExpiry = min(earliestExpiry, entry.expiry) }
        }
    }
}
