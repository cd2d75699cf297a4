internal import MartletCore
private import Synchronization

/// What a process does with the stores of a configuration.
enum StoreAccess: Sendable {
    case full
    /// For commands that only look: nothing that others see is made, changed or removed.
    case readOnly
}

/// The shared store as it is, with this process's own changes kept to itself.
///
/// Whoever uses it sees what it would see in a running gateway: a nonce can be consumed once and an attempt counts, but
/// only here.
final class ReadOnlyStore: SharedStoring {
    private let base: any SharedStoring
    /// What this process has written.
    private let own: MemoryStore
    /// What this process has removed.
    private let removed = Mutex<Set<String>>([])

    /// - Parameter base: what is read.
    init(_ base: any SharedStoring, clock: Clock) {
        self.base = base
        own = MemoryStore(clock: clock)
    }

    func value(for key: String) async -> StoreAnswer<[UInt8]> {
        if case .answer(let value) = await own.value(for: key) { return .answer(value) }
        return isRemoved(key) ? .miss : await base.value(for: key)
    }

    func set(_ value: [UInt8], for key: String, lifetime: Duration) async throws(StoreError) {
        try await own.set(value, for: key, lifetime: lifetime)
    }

    func setIfAbsent(_ value: [UInt8], for key: String, lifetime: Duration) async throws(StoreError) -> Bool {
        if !isRemoved(key) {
            switch await base.value(for: key) {
            case .answer: return false
            case .unavailable(let error): throw error
            case .miss: break
            }
        }
        return try await own.setIfAbsent(value, for: key, lifetime: lifetime)
    }

    func remove(_ key: String, ifEqualTo value: [UInt8]) async throws(StoreError) {
        if case .answer(let found) = await self.value(for: key), found == value { try await remove(key) }
    }

    func remove(_ key: String) async throws(StoreError) {
        removed.withLock { _ = $0.insert(key) }
        try await own.remove(key)
    }

    func take(_ key: String) async -> StoreAnswer<[UInt8]> {
        let answer = await value(for: key)
        if case .answer = answer {
            removed.withLock { _ = $0.insert(key) }
            _ = await own.take(key)
        }
        return answer
    }

    func increment(_ key: String, lifetime: Duration) async throws(StoreError) -> CounterReading {
        let ours = try await own.increment(key, lifetime: lifetime)
        return sum(try await base.counter(key), ours)
    }

    func counter(_ key: String) async throws(StoreError) -> CounterReading {
        sum(try await base.counter(key), try await own.counter(key))
    }

    private func sum(_ shared: CounterReading, _ ours: CounterReading) -> CounterReading {
        let (count, overflow) = shared.count.addingReportingOverflow(ours.count)
        return CounterReading(count: overflow ? .max : count, remaining: max(shared.remaining, ours.remaining))
    }

    private func isRemoved(_ key: String) -> Bool { removed.withLock { $0.contains(key) } }
}
