private import Synchronization

/// The store of a single instance, `memory:`; its values do not outlive the process.
///
/// It is bounded: when it is full of values that have not expired, a write fails with `store.full`. Nothing is evicted
/// early, because an evicted nonce could be replayed and an evicted throttle would be lifted. Each purpose has its own
/// limits, so that a flood in one leaves the capacity of the others.
public final class MemoryStore: SharedStoring {
    fileprivate struct Entry {
        let value: [UInt8]
        let expiry: MonotonicTime
    }

    fileprivate struct State {
        var entries: [String: Entry] = [:]
        var bytes = 0
        var writesSinceSweep = 0
        /// No entry of the last sweep expires before this.
        var earliestExpiry = MonotonicTime(nanoseconds: .min)
    }

    /// The approximate memory of an entry in addition to its key and value, in bytes.
    private static let entryOverhead = 128

    private static let full = StoreError(code: "store.full", message: "the memory store is full")

    private let clock: Clock
    private let maximumEntries: Int
    private let maximumBytes: Int
    private let state = Mutex(State())
    /// The stores of the other purposes; this one is `general`.
    private let partitions: [StorePurpose: MemoryStore]

    /// Creates an empty store with separate limits for each purpose.
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

    /// Creates an empty store whose limits are shared by all purposes.
    /// - Parameters:
    ///   - clock: the time of expiries.
    ///   - maximumEntries: the maximum number of values.
    ///   - maximumBytes: the maximum size of all keys and values.
    public init(clock: Clock, maximumEntries: Int, maximumBytes: Int = 64 * 1024 * 1024) {
        self.clock = clock
        self.maximumEntries = maximumEntries
        self.maximumBytes = maximumBytes
        partitions = [:]
    }

    /// The partition for one purpose, with its own limits.
    public func partition(_ purpose: StorePurpose) -> any SharedStoring { partitions[purpose] ?? self }

    /// Reads one value.
    public func value(for key: String) async -> StoreReply<[UInt8]> {
        let now = clock.monotonicTime
        return state.withLock { state in
            guard let entry = state.live(key, at: now) else { return .miss }
            return .found(entry.value)
        }
    }

    /// Writes one value that expires after `lifetime`.
    public func set(_ value: [UInt8], for key: String, lifetime: Duration) async throws(StoreError) {
        _ = try write(value, for: key, lifetime: lifetime, onlyIfAbsent: false)
    }

    /// Writes only if the key is absent; `true` when this call wrote.
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
    public func take(_ key: String) async -> StoreReply<[UInt8]> {
        let now = clock.monotonicTime
        return state.withLock { state in
            guard let entry = state.live(key, at: now) else { return .miss }
            state.remove(key)
            return .found(entry.value)
        }
    }

    /// Adds 1 to a counter, stored as decimal digits as in Redis.
    public func increment(_ key: String, lifetime: Duration) async throws(StoreError) -> CounterReading {
        let now = clock.monotonicTime
        let counted: CounterReading? = state.withLock { state in
            let live = state.live(key, at: now)
            let count = (live.flatMap { Int(String(decoding: $0.value, as: UTF8.self)) } ?? 0) &+ 1
            let expiry = live?.expiry ?? now + max(lifetime, .zero)
            guard store(Array(String(count).utf8), for: key, until: expiry, in: &state, at: now) else { return nil }
            return CounterReading(count: count, remaining: expiry.since(now))
        }
        guard let counted else { throw Self.full }
        return counted
    }

    /// Subtracts 1 from a counter; a counter that reaches 0 is removed.
    public func decrement(_ key: String) async throws(StoreError) {
        let now = clock.monotonicTime
        state.withLock { state in
            guard let live = state.live(key, at: now), let count = Int(String(decoding: live.value, as: UTF8.self)),
                count > 0
            else { return }
            // A counter of 0 reads like an absent one, which needs no memory.
            guard count > 1 else { return state.remove(key) }
            // Not longer than before, so it fits.
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

    /// The number of values, some of which may have expired.
    public var count: Int { state.withLock { $0.entries.count } }

    private func write(
        _ value: [UInt8], for key: String, lifetime: Duration, onlyIfAbsent: Bool
    ) throws(StoreError) -> Bool {
        let now = clock.monotonicTime
        let written: Bool? = state.withLock { state in
            if onlyIfAbsent, state.live(key, at: now) != nil { return false }
            return store(value, for: key, until: now + max(lifetime, .zero), in: &state, at: now) ? true : nil
        }
        guard let written else { throw Self.full }
        return written
    }

    /// Stores a value; `false` when the store is full.
    private func store(
        _ value: [UInt8], for key: String, until expiry: MonotonicTime, in state: inout State, at now: MonotonicTime
    ) -> Bool {
        state.remove(key)
        let cost = MemoryStore.cost(key, value)
        state.writesSinceSweep += 1
        if state.writesSinceSweep > max(1024, state.entries.count / 2) { state.sweep(at: now) }
        if !hasCapacity(state, for: cost), state.earliestExpiry <= now { state.sweep(at: now) }
        guard hasCapacity(state, for: cost) else { return false }
        state.entries[key] = Entry(value: value, expiry: expiry)
        state.bytes += cost
        state.earliestExpiry = min(state.earliestExpiry, expiry)
        return true
    }

    private func hasCapacity(_ state: borrowing State, for cost: Int) -> Bool {
        state.entries.count < maximumEntries && cost <= maximumBytes - state.bytes
    }

    fileprivate static func cost(_ key: String, _ value: [UInt8]) -> Int {
        key.utf8.count + value.count + entryOverhead
    }
}

extension StorePurpose {
    private static let mebibyte = 1024 * 1024

    /// The maximum number of values, and the maximum size of their keys and values in bytes.
    fileprivate var bounds: (entries: Int, bytes: Int) {
        switch self {
        case .general: (20_000, 16 * Self.mebibyte)
        case .keys: (1000, 16 * Self.mebibyte)
        case .throttles: (100_000, 32 * Self.mebibyte)
        case .bans: (20_000, 8 * Self.mebibyte)
        case .loginLocations: (100_000, 32 * Self.mebibyte)
        case .nonces: (50_000, 16 * Self.mebibyte)
        // Each is stored for 15 minutes.
        case .codes: (100_000, 32 * Self.mebibyte)
        // One for each request of a client with a bound token, within two minutes.
        case .proofs: (100_000, 32 * Self.mebibyte)
        // Sign-ins that came back, within twelve minutes each; the codes of apps have the identity in them.
        case .browsers: (50_000, 32 * Self.mebibyte)
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

    /// Removes expired entries and records when the next one expires.
    fileprivate mutating func sweep(at now: MonotonicTime) {
        writesSinceSweep = 0
        earliestExpiry = .never
        for (key, entry) in entries {
            if entry.expiry <= now { remove(key) } else { earliestExpiry = min(earliestExpiry, entry.expiry) }
        }
    }
}
