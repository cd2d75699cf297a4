internal import MartletCore

/// How a process may use the stores of a configuration.
package enum StoreAccess: Sendable {
    case full
    /// For commands that only inspect: no shared data is created, changed or removed.
    case readOnly
}

/// A view of the shared store with a private overlay of this process's changes.
///
/// It behaves as the store of a running gateway does, for example a nonce can be consumed once, but changes are not
/// shared.
final class ReadOnlyStore: SharedStoring {
    private let base: any SharedStoring
    /// The values that this process has written.
    private let own: MemoryStore
    private let removed: RemovedKeys

    /// - Parameter base: the shared store, which is only read.
    init(_ base: any SharedStoring, clock: Clock) {
        self.base = base
        own = MemoryStore(clock: clock)
        removed = RemovedKeys()
    }

    private init(_ other: ReadOnlyStore, _ purpose: StorePurpose, _ owner: WorkOwner) {
        base = other.base.partition(purpose, for: owner)
        own = other.own
        removed = other.removed
    }

    /// A view of the partition with the same overlay.
    func partition(_ purpose: StorePurpose, for owner: WorkOwner) -> any SharedStoring {
        ReadOnlyStore(self, purpose, owner)
    }

    func value(for key: String) async -> StoreReply<[UInt8]> {
        if case .found(let value) = await own.value(for: key) { return .found(value) }
        return isRemoved(key) ? .miss : await base.value(for: key)
    }

    func replicatedValue(for key: String) async -> StoreReply<[UInt8]> {
        if case .found(let value) = await own.value(for: key) { return .found(value) }
        return isRemoved(key) ? .miss : await base.replicatedValue(for: key)
    }

    func set(_ value: [UInt8], for key: String, lifetime: Duration) async throws(StoreError) {
        try await own.set(value, for: key, lifetime: lifetime)
    }

    func setIfAbsent(_ value: [UInt8], for key: String, lifetime: Duration) async throws(StoreError) -> Bool {
        if !isRemoved(key) {
            switch await base.value(for: key) {
            case .found: return false
            case .unavailable(let error): throw error
            case .miss: break
            }
        }
        return try await own.setIfAbsent(value, for: key, lifetime: lifetime)
    }

    func remove(_ key: String, ifEqualTo value: [UInt8]) async throws(StoreError) {
        if case .found(let found) = await self.value(for: key), found == value { try await remove(key) }
    }

    func remove(_ key: String) async throws(StoreError) {
        removed.insert(key)
        try await own.remove(key)
    }

    func take(_ key: String) async -> StoreReply<[UInt8]> {
        let found = await value(for: key)
        if case .found = found {
            removed.insert(key)
            _ = await own.take(key)
        }
        return found
    }

    func increment(_ key: String, lifetime: Duration) async throws(StoreError) -> CounterReading {
        let local = try await own.increment(key, lifetime: lifetime)
        return sum(try await base.counter(key), local)
    }

    func counter(_ key: String) async throws(StoreError) -> CounterReading {
        sum(try await base.counter(key), try await own.counter(key))
    }

    private func sum(_ shared: CounterReading, _ local: CounterReading) -> CounterReading {
        let (count, overflow) = shared.count.addingReportingOverflow(local.count)
        return CounterReading(count: overflow ? .max : count, remaining: max(shared.remaining, local.remaining))
    }

    private func isRemoved(_ key: String) -> Bool { removed.contains(key) }
}

/// The keys that a process has removed from its view.
private final class RemovedKeys: Sendable {
    private let keys = Lock<Set<String>>([])

    func insert(_ key: String) { keys.withLock { _ = $0.insert(key) } }
    func contains(_ key: String) -> Bool { keys.withLock { $0.contains(key) } }
}
