/// Counts what owners write to a store that does not count itself, in memory of constant size.
///
/// Counts are local to the process, and drain evenly over the time that values of a purpose live.
package final class StoreMeter: Sendable {
    private struct Counts: Sendable {
        var members = LeakyCountMinSketch()
        var groups = LeakyCountMinSketch()
    }

    private let clock: Clock
    private let counts = Lock<[StorePurpose: Counts]>([:])

    package init(clock: Clock) { self.clock = clock }

    /// Whether an owner may write another value.
    package func check(_ owner: WorkOwner, _ purpose: StorePurpose) throws(StoreError) {
        guard owner != .gateway else { return }
        let (now, span) = (clock.monotonicTime.nanoseconds, purpose.bounds.span.wholeNanoseconds)
        let isFree = counts.withLock { counts in
            guard let counts = counts[purpose] else { return true }
            return counts.members.backlog(of: owner, at: now) < span
                && counts.groups.backlog(of: owner.group, at: now) < span
        }
        guard isFree else { throw .shareUsedUp }
    }

    /// Counts a value that an owner has written.
    package func add(_ owner: WorkOwner, _ purpose: StorePurpose) {
        guard owner != .gateway else { return }
        let (now, bounds) = (clock.monotonicTime.nanoseconds, purpose.bounds)
        let span = bounds.span.wholeNanoseconds
        counts.withLock { counts in
            counts[purpose, default: Counts()].members.add(
                owner, cost: span / Int64(clamping: bounds.ownEntries), at: now)
            counts[purpose, default: Counts()].groups.add(
                owner.group, cost: span / Int64(clamping: bounds.groupEntries), at: now)
        }
    }
}

/// A partition of a store whose writes a ``StoreMeter`` counts for one owner.
package struct MeteredStore: SharedStoring {
    private let base: any SharedStoring
    private let meter: StoreMeter
    private let purpose: StorePurpose
    private let owner: WorkOwner

    package init(_ base: any SharedStoring, _ meter: StoreMeter, _ purpose: StorePurpose, for owner: WorkOwner) {
        self.base = base
        self.meter = meter
        self.purpose = purpose
        self.owner = owner
    }

    /// Reads one value.
    package func value(for key: String) async -> StoreReply<[UInt8]> { await base.value(for: key) }

    /// Reads one value that may be old.
    package func replicatedValue(for key: String) async -> StoreReply<[UInt8]> { await base.replicatedValue(for: key) }

    /// Writes and counts one value.
    package func set(_ value: [UInt8], for key: String, lifetime: Duration) async throws(StoreError) {
        try meter.check(owner, purpose)
        try await base.set(value, for: key, lifetime: lifetime)
        meter.add(owner, purpose)
    }

    /// Writes and counts one value if the key is absent.
    package func setIfAbsent(_ value: [UInt8], for key: String, lifetime: Duration) async throws(StoreError) -> Bool {
        try meter.check(owner, purpose)
        guard try await base.setIfAbsent(value, for: key, lifetime: lifetime) else { return false }
        meter.add(owner, purpose)
        return true
    }

    /// Adds 1 to a counter, which is one value however often.
    package func increment(_ key: String, lifetime: Duration) async throws(StoreError) -> CounterReading {
        try meter.check(owner, purpose)
        let reading = try await base.increment(key, lifetime: lifetime)
        if reading.count == 1 { meter.add(owner, purpose) }
        return reading
    }

    /// Subtracts 1 from a counter.
    package func decrement(_ key: String) async throws(StoreError) { try await base.decrement(key) }

    /// Reads a counter.
    package func counter(_ key: String) async throws(StoreError) -> CounterReading { try await base.counter(key) }

    /// Reads a value and removes it.
    package func take(_ key: String) async -> StoreReply<[UInt8]> { await base.take(key) }

    /// Removes the value if it still equals `value`.
    package func remove(_ key: String, ifEqualTo value: [UInt8]) async throws(StoreError) {
        try await base.remove(key, ifEqualTo: value)
    }

    /// Removes the value.
    package func remove(_ key: String) async throws(StoreError) { try await base.remove(key) }

    /// Removes several values.
    package func remove(_ keys: [String]) async throws(StoreError) { try await base.remove(keys) }

    /// Whether some of the keys are available.
    package var isPartlyAvailable: Bool { base.isPartlyAvailable }
}
