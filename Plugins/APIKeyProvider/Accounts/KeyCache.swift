internal import MartletCore
internal import MartletProvider

/// What an instance knows of the keys in the account store, and for how long it may rely on it.
///
/// It follows the changes of the store from a version on. What was read before a change was applied is not cached
/// after it.
struct KeyCache {
    /// Limits of what is cached.
    struct Limits {
        var keys = 16_384
        /// Ids without a key are kept apart, so that made-up ones push out no keys.
        var unknown = 4_096
        var unknownLifetime = Duration.seconds(5)
    }

    /// What is known about an id.
    enum Finding {
        /// - Parameter reusable: for how long a decision by it may be reused.
        case known(APIKeyRecord, reusable: Duration)
        /// The store has no such key.
        case unknown
        /// The store has to be asked.
        case ask(Lookup)
        /// The store has not responded for too long.
        case stale
    }

    /// A question to the store that was begun.
    struct Lookup {
        /// The state of the cache at that time; `nil` if the result is not cached.
        fileprivate let generation: UInt64?
    }

    /// What a change means for decisions.
    struct Effect {
        var changed: [APIKeyRecord] = []
        /// Whether the store was restored, so that everything may have changed.
        var isReset = false
    }

    private let limits: Limits
    private let maximumStale: Duration
    private var known: RecentTable<APIKeyRecord>
    private var unknown: RecentTable<MonotonicTime>
    private var uses: [String: UnixTime] = [:]
    private var generation: UInt64 = 0
    /// Whether the store was asked for changes at all.
    private var isFollowing = false
    /// Until when it is relied on; `nil` before the first response.
    private var freshUntil: MonotonicTime?
    private(set) var version: Int64?

    init(maximumStale: Duration, limits: Limits = Limits()) {
        self.maximumStale = maximumStale
        self.limits = limits
        known = RecentTable(capacity: limits.keys)
        unknown = RecentTable(capacity: limits.unknown)
    }

    var count: Int { known.count }

    /// Whether the store has not responded for too long.
    func isStale(at now: MonotonicTime) -> Bool { isFollowing && freshUntil.map { now >= $0 } ?? true }

    mutating func find(_ id: String, at now: MonotonicTime) -> Finding {
        guard isFollowing else { return .ask(Lookup(generation: nil)) }
        guard let freshUntil, now < freshUntil else { return .stale }
        if let record = known.value(for: id) { return .known(record, reusable: freshUntil.since(now)) }
        if let end = unknown.value(for: id) {
            if now < end { return .unknown }
            unknown.remove(id)
        }
        return .ask(Lookup(generation: generation))
    }

    /// Caches what the store has returned.
    /// - Returns: for how long a decision by it may be reused.
    mutating func add(_ record: APIKeyRecord?, for id: String, _ lookup: Lookup, at now: MonotonicTime) -> Duration {
        guard lookup.generation == generation, let freshUntil, now < freshUntil else { return .zero }
        if let record {
            known.set(record, for: id)
        } else {
            unknown.set(now + limits.unknownLifetime, for: id)
        }
        return freshUntil.since(now)
    }

    /// Applies what has changed.
    /// - Parameter asked: when the store was asked: everything before is covered.
    mutating func apply(_ changes: APIKeyChanges, asked: MonotonicTime) -> Effect {
        isFollowing = true
        defer {
            version = changes.version
            if changes.isComplete { freshUntil = asked + maximumStale }
        }
        // What was cached without a version, or by one that the store does not know, cannot be followed.
        guard let version, changes.version >= version else {
            let isReset = version != nil
            generation &+= 1
            known.removeAll()
            unknown.removeAll()
            return Effect(isReset: isReset)
        }
        guard !changes.keys.isEmpty else { return Effect() }
        generation &+= 1
        for record in changes.keys {
            unknown.remove(record.id)
            if known.contains(record.id) { known.set(record, for: record.id) }
        }
        return Effect(changed: changes.keys)
    }

    /// Notes that the store did not respond.
    mutating func failed() { isFollowing = true }

    /// Notes a use; beyond the capacity for keys, those of further keys are lost.
    mutating func noteUse(of id: String, at now: UnixTime) {
        if let last = uses[id] {
            uses[id] = max(last, now)
        } else if uses.count < limits.keys {
            uses[id] = now
        }
    }

    /// Returns and forgets the noted uses.
    mutating func takeUses() -> [(id: String, at: UnixTime)] {
        defer { uses = [:] }
        return uses.map { ($0.key, $0.value) }
    }
}
