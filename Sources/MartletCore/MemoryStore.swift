/// The store of a single instance, `memory:`; its values do not outlive the process.
///
/// It is bounded: when it is full of values that have not expired, a write fails with `store.full`. Nothing is evicted
/// early, because an evicted nonce could be replayed and an evicted throttle would be lifted. Each purpose has its own
/// limits, so that a flood in one leaves the capacity of the others, and each owner a share of them, so that a flood of
/// one client leaves the capacity of the other clients: ``Shares``.
public final class MemoryStore: SharedStoring {
    fileprivate struct Entry {
        let value: [UInt8]
        let expiry: MonotonicTime
        let owner: WorkOwner
    }

    fileprivate struct State {
        var entries: [String: Entry] = [:]
        var bytes = 0
        var shares = Shares()
        /// When to look whether an entry has expired; an entry that was replaced leaves one that finds nothing.
        var expiries = Expiries()
    }

    /// The approximate memory of an entry in addition to its key and value, in bytes.
    private static let entryOverhead = 128

    private let clock: Clock
    private let bounds: ShareBounds
    private let state = Lock(State())
    /// The stores of the other purposes; this one is `general`.
    private let partitions: [StorePurpose: MemoryStore]

    /// Creates an empty store with separate limits for each purpose, of which each owner has a share.
    public convenience init(clock: Clock) {
        var partitions: [StorePurpose: MemoryStore] = [:]
        for purpose in StorePurpose.allCases where purpose != .general {
            partitions[purpose] = MemoryStore(clock: clock, purpose.bounds, [:])
        }
        self.init(clock: clock, StorePurpose.general.bounds, partitions)
    }

    /// Creates an empty store whose limits are shared by all purposes and owners.
    /// - Parameters:
    ///   - clock: the time of expiries.
    ///   - maximumEntries: the maximum number of values.
    ///   - maximumBytes: the maximum size of all keys and values.
    public convenience init(clock: Clock, maximumEntries: Int, maximumBytes: Int = 64 * 1024 * 1024) {
        self.init(clock: clock, ShareBounds(.undivided, entries: maximumEntries, bytes: maximumBytes), [:])
    }

    private init(clock: Clock, _ bounds: ShareBounds, _ partitions: [StorePurpose: MemoryStore]) {
        self.clock = clock
        self.bounds = bounds
        self.partitions = partitions
    }

    /// The partition for one purpose, with its own limits, of which the owner has a share.
    public func partition(_ purpose: StorePurpose, for owner: WorkOwner) -> any SharedStoring {
        OwnedPartition(store: partitions[purpose] ?? self, owner: owner)
    }

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
        _ = try write(value, for: key, lifetime: lifetime, onlyIfAbsent: false, by: .gateway)
    }

    /// Writes only if the key is absent; `true` when this call wrote.
    public func setIfAbsent(_ value: [UInt8], for key: String, lifetime: Duration) async throws(StoreError) -> Bool {
        try write(value, for: key, lifetime: lifetime, onlyIfAbsent: true, by: .gateway)
    }

    /// Removes the value if it is still exactly `value`.
    public func remove(_ key: String, ifEqualTo value: [UInt8]) async throws(StoreError) {
        let now = clock.monotonicTime
        state.withLock { state in
            guard let entry = state.live(key, at: now), entry.value == value else { return }
            _ = state.remove(key)
        }
    }

    /// Removes the value, whatever it is.
    public func remove(_ key: String) async throws(StoreError) {
        state.withLock { _ = $0.remove(key) }
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
        try increment(key, lifetime: lifetime, by: .gateway)
    }

    /// Adds 1 to a counter, which stays its first owner's; one that is no number starts over.
    fileprivate func increment(
        _ key: String, lifetime: Duration, by owner: WorkOwner
    ) throws(StoreError) -> CounterReading {
        let now = clock.monotonicTime
        let result: Result<CounterReading, StoreError> = state.withLock { state in
            let live = state.live(key, at: now)
            let count = (live.flatMap { Int(String(decoding: $0.value, as: UTF8.self)) } ?? 0) &+ 1
            let entry = Entry(
                value: Array(String(count).utf8), expiry: live?.expiry ?? now + max(lifetime, .zero),
                owner: live?.owner ?? owner)
            if let error = store(entry, for: key, in: &state, at: now) { return .failure(error) }
            return .success(CounterReading(count: count, remaining: entry.expiry.since(now)))
        }
        return try result.get()
    }

    /// Subtracts 1 from a counter; a counter that reaches 0 is removed.
    public func decrement(_ key: String) async throws(StoreError) {
        let now = clock.monotonicTime
        state.withLock { state in
            guard let live = state.live(key, at: now), let count = Int(String(decoding: live.value, as: UTF8.self)),
                count > 0
            else { return }
            // A counter of 0 reads like an absent one, which needs no memory.
            guard count > 1 else {
                _ = state.remove(key)
                return
            }
            // Not longer than before, so it fits.
            let entry = Entry(value: Array(String(count - 1).utf8), expiry: live.expiry, owner: live.owner)
            _ = store(entry, for: key, in: &state, at: now)
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

    fileprivate func write(
        _ value: [UInt8], for key: String, lifetime: Duration, onlyIfAbsent: Bool, by owner: WorkOwner
    ) throws(StoreError) -> Bool {
        let now = clock.monotonicTime
        let result: Result<Bool, StoreError> = state.withLock { state in
            if onlyIfAbsent, state.live(key, at: now) != nil { return .success(false) }
            let entry = Entry(value: value, expiry: now + max(lifetime, .zero), owner: owner)
            if let error = store(entry, for: key, in: &state, at: now) { return .failure(error) }
            return .success(true)
        }
        return try result.get()
    }

    /// Stores a value.
    /// - Returns: why the store, or the owner, has no capacity for it; the key has what it had then.
    private func store(
        _ entry: Entry, for key: String, in state: inout State, at now: MonotonicTime
    ) -> StoreError? {
        state.removeExpired(at: now)
        let before = state.remove(key)
        let error = error(storing: entry, instead: before, for: key, in: state)
        if error == nil, before?.expiry != entry.expiry { state.expiries.add(key, at: entry.expiry) }
        if let stored = error == nil ? entry : before { state.add(stored, for: key) }
        return error
    }

    private func error(
        storing entry: Entry, instead before: Entry?, for key: String, in state: borrowing State
    ) -> StoreError? {
        let cost = MemoryStore.cost(key, entry.value)
        let (free, freeBytes) = (bounds.entries - state.entries.count, bounds.bytes - state.bytes)
        guard free > 0, cost <= freeBytes else { return .full }
        // What an owner has already may change.
        guard before?.owner != entry.owner else { return nil }
        return state.shares.hasCapacity(for: entry.owner, bytes: cost, of: bounds, free: free, freeBytes: freeBytes)
            ? nil : .shareUsedUp
    }

    fileprivate static func cost(_ key: String, _ value: [UInt8]) -> Int {
        key.utf8.count + value.count + entryOverhead
    }
}

/// A partition of a ``MemoryStore``, as one owner writes to it.
private struct OwnedPartition: SharedStoring {
    let store: MemoryStore
    let owner: WorkOwner

    func value(for key: String) async -> StoreReply<[UInt8]> { await store.value(for: key) }

    func set(_ value: [UInt8], for key: String, lifetime: Duration) async throws(StoreError) {
        _ = try store.write(value, for: key, lifetime: lifetime, onlyIfAbsent: false, by: owner)
    }

    func setIfAbsent(_ value: [UInt8], for key: String, lifetime: Duration) async throws(StoreError) -> Bool {
        try store.write(value, for: key, lifetime: lifetime, onlyIfAbsent: true, by: owner)
    }

    func increment(_ key: String, lifetime: Duration) async throws(StoreError) -> CounterReading {
        try store.increment(key, lifetime: lifetime, by: owner)
    }

    func remove(_ key: String, ifEqualTo value: [UInt8]) async throws(StoreError) {
        try await store.remove(key, ifEqualTo: value)
    }

    func remove(_ key: String) async throws(StoreError) { try await store.remove(key) }
    func take(_ key: String) async -> StoreReply<[UInt8]> { await store.take(key) }
    func decrement(_ key: String) async throws(StoreError) { try await store.decrement(key) }
    func counter(_ key: String) async throws(StoreError) -> CounterReading { try await store.counter(key) }
}

extension MemoryStore.State {
    fileprivate mutating func live(_ key: String, at now: MonotonicTime) -> MemoryStore.Entry? {
        guard let entry = entries[key] else { return nil }
        if entry.expiry > now { return entry }
        remove(key)
        return nil
    }

    fileprivate mutating func add(_ entry: MemoryStore.Entry, for key: String) {
        let cost = MemoryStore.cost(key, entry.value)
        entries[key] = entry
        bytes += cost
        shares.add(bytes: cost, of: entry.owner)
    }

    @discardableResult fileprivate mutating func remove(_ key: String) -> MemoryStore.Entry? {
        guard let entry = entries.removeValue(forKey: key) else { return nil }
        let cost = MemoryStore.cost(key, entry.value)
        bytes -= cost
        shares.remove(cost, of: entry.owner)
        return entry
    }

    /// Removes what has expired, at a cost that each value has once.
    fileprivate mutating func removeExpired(at now: MonotonicTime) {
        while let key = expiries.popFirst(until: now) {
            if let entry = entries[key], entry.expiry <= now { remove(key) }
        }
        // Of values that were removed or replaced, only the expiry is left.
        guard expiries.count > 1024, expiries.count / 2 > entries.count else { return }
        expiries = Expiries()
        for (key, entry) in entries { expiries.add(key, at: entry.expiry) }
    }
}
