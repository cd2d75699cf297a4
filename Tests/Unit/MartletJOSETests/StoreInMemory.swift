import MartletCore
import Synchronization

/// A shared store in memory, with expiry by a test's clock, that can be made unavailable.
final class StoreInMemory: KeyValueStoring {
    private struct Entry {
        let value: [UInt8]
        let end: MonotonicTime
    }

    private let entries = Mutex<[String: Entry]>([:])
    private let broken = Mutex(false)
    private let replica = Mutex(Replica.current)
    private let ahead = Mutex<(@Sendable () async -> Void)?>(nil)
    private let clock: Clock

    init(clock: Clock) { self.clock = clock }

    /// What serves reads that may be old.
    enum Replica {
        case current
        /// Has nothing yet.
        case late
        /// Responds while every other call fails.
        case independent
    }

    var replicaState: Replica {
        get { replica.withLock { $0 } }
        set { replica.withLock { $0 = newValue } }
    }

    /// Every call fails while this is set.
    var isBroken: Bool {
        get { broken.withLock { $0 } }
        set { broken.withLock { $0 = newValue } }
    }

    /// Runs `body` once, before the next claim.
    func beforeNextClaim(_ body: @escaping @Sendable () async -> Void) { ahead.withLock { $0 = body } }

    /// The current keys.
    var keys: [String] {
        let now = clock.monotonicTime
        return entries.withLock { $0.filter { now < $0.value.end }.keys.sorted() }
    }

    private static let outage = StoreError(code: "store.unavailable", message: "the store is broken")

    func value(for key: String) async -> StoreReply<[UInt8]> {
        if isBroken { return .unavailable(Self.outage) }
        return stored(key)
    }

    func replicatedValue(for key: String) async -> StoreReply<[UInt8]> {
        switch replicaState {
        case .current: await value(for: key)
        case .late: isBroken ? .unavailable(Self.outage) : .miss
        case .independent: stored(key)
        }
    }

    private func stored(_ key: String) -> StoreReply<[UInt8]> {
        let now = clock.monotonicTime
        guard let entry = entries.withLock({ $0[key] }), now < entry.end else { return .miss }
        return .found(entry.value)
    }

    func set(_ value: [UInt8], for key: String, lifetime: Duration) async throws(StoreError) {
        if isBroken { throw Self.outage }
        let end = clock.monotonicTime + lifetime
        entries.withLock { $0[key] = Entry(value: value, end: end) }
    }

    func setIfAbsent(_ value: [UInt8], for key: String, lifetime: Duration) async throws(StoreError) -> Bool {
        let body = ahead.withLock { ahead in
            defer { ahead = nil }
            return ahead
        }
        await body?()
        if isBroken { throw Self.outage }
        let now = clock.monotonicTime
        return entries.withLock { entries in
            if let entry = entries[key], now < entry.end { return false }
            entries[key] = Entry(value: value, end: now + lifetime)
            return true
        }
    }

    func remove(_ key: String, ifEqualTo value: [UInt8]) async throws(StoreError) {
        if isBroken { throw Self.outage }
        entries.withLock { if $0[key]?.value == value { $0[key] = nil } }
    }
}
