private import Synchronization

/// The store of a single instance, `memory:`; what it holds ends with the process.
///
/// It is bounded: when it is full of values that are still good, a write fails as `store.full`. Nothing is evicted
/// early, because a nonce or a throttle that is forgotten too soon lets in what it was there to stop.
public final class MemoryStore: KeyValueStoring {
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

    /// Makes an empty store.
    /// - Parameters:
    ///   - maximumEntries: how many values it holds at most.
    ///   - maximumBytes: how much keys and values may take together.
    public init(clock: Clock, maximumEntries: Int = 100_000, maximumBytes: Int = 64 * 1024 * 1024) {
        self.clock = clock
        self.maximumEntries = maximumEntries
        self.maximumBytes = maximumBytes
    }

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

    /// How many values it holds, some of which may have expired.
    public var count: Int { state.withLock { $0.entries.count } }

    private func write(
        _ value: [UInt8], for key: String, lifetime: Duration, onlyIfAbsent: Bool
    ) throws(StoreError) -> Bool {
        let now = clock.monotonicTime
        let written: Bool? = state.withLock { state in
            if onlyIfAbsent, state.live(key, at: now) != nil { return false }
            state.remove(key)
            let cost = MemoryStore.cost(key, value)
            state.writesSinceSweep += 1
            if state.writesSinceSweep > max(1024, state.entries.count / 2) { state.sweep(at: now) }
            if !hasRoom(state, for: cost), state.earliestExpiry <= now { state.sweep(at: now) }
            guard hasRoom(state, for: cost) else { return nil }
            let expiry = now + max(lifetime, .zero)
            state.entries[key] = Entry(value: value, expiry: expiry)
            state.bytes += cost
            state.earliestExpiry = min(state.earliestExpiry, expiry)
            return true
        }
        guard let written else { throw StoreError(code: "store.full", message: "the memory store is full") }
        return written
    }

    private func hasRoom(_ state: borrowing State, for cost: Int) -> Bool {
        state.entries.count < maximumEntries && cost <= maximumBytes - state.bytes
    }

    fileprivate static func cost(_ key: String, _ value: [UInt8]) -> Int {
        key.utf8.count + value.count + entryOverhead
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
