internal import MartletCore
internal import MartletProvider

/// The keys in the account store, most of which are known without asking it.
final class AccountKeys: Sendable {
    /// The result of following the store once.
    enum Poll: Equatable {
        case unchanged
        /// Decisions about these keys have to be made again.
        case changed([APIKeyRecord])
        /// All decisions have to be made again.
        case reset
        case failed(StoreError)

        static func == (left: Poll, right: Poll) -> Bool {
            switch (left, right) {
            case (.unchanged, .unchanged), (.reset, .reset): true
            case (.changed(let one), .changed(let other)): one == other
            case (.failed(let one), .failed(let other)): one.code == other.code
            default: false
            }
        }
    }

    /// How many lookups run concurrently, so that made-up keys leave the account store to others.
    private static let concurrentLookups = 32

    let store: any APIKeyStoring
    private let clock: Clock
    private let cache: Lock<KeyCache>
    private let lookups = FairSemaphore(.keyLookups, permits: concurrentLookups)

    init(_ store: any APIKeyStoring, clock: Clock, maximumStale: Duration, limits: KeyCache.Limits = KeyCache.Limits())
    {
        self.store = store
        self.clock = clock
        cache = Lock(KeyCache(maximumStale: maximumStale, limits: limits))
    }

    var count: Int { cache.withLock { $0.count } }
    var isStale: Bool { cache.withLock { $0.isStale(at: clock.monotonicTime) } }

    /// A key as far as it is known; `nil` if the store has to be asked.
    func known(_ id: String) throws(AuthenticationError) -> FoundKey? {
        switch cache.withLock({ $0.find(id, at: clock.monotonicTime) }) {
        case .known(let record, let reusable): return FoundKey(record: record, reusable: reusable)
        case .unknown: return FoundKey(record: nil, reusable: .zero)
        case .ask: return nil
        case .stale: throw Self.unavailable()
        }
    }

    /// A key, from the store if it is not known.
    func find(_ id: String, for owner: WorkOwner) async throws(AuthenticationError) -> FoundKey {
        if let found = try known(id) { return found }
        guard await lookups.acquire(as: owner) else {
            throw .unavailable("api_key.overloaded", retryAfter: .seconds(1))
        }
        defer { lookups.release() }
        let lookup: KeyCache.Lookup
        // Another request may have asked for it meanwhile.
        switch cache.withLock({ $0.find(id, at: clock.monotonicTime) }) {
        case .known(let record, let reusable): return FoundKey(record: record, reusable: reusable)
        case .unknown: return FoundKey(record: nil, reusable: .zero)
        case .stale: throw Self.unavailable()
        case .ask(let begun): lookup = begun
        }
        do throws(StoreError) {
            let record = try await store.key(id)
            let reusable = cache.withLock { $0.add(record, for: id, lookup, at: clock.monotonicTime) }
            return FoundKey(record: record, reusable: reusable)
        } catch {
            throw Self.unavailable(error)
        }
    }

    private static func unavailable(_ cause: StoreError? = nil) -> AuthenticationError {
        .unavailable("api_key.store_unavailable", retryAfter: .seconds(1), cause: cause)
    }

    func noteUse(of id: String, at now: UnixTime) { cache.withLock { $0.noteUse(of: id, at: now) } }

    /// Stores the uses that were noted; those that cannot be stored are lost.
    func storeUses() async throws(StoreError) {
        let uses = cache.withLock { $0.takeUses() }
        if !uses.isEmpty { try await store.noteUses(uses) }
    }

    /// Asks the store what has changed; not to be called concurrently.
    func poll() async -> Poll {
        var changed: [APIKeyRecord] = []
        while true {
            let asked = clock.monotonicTime
            let version = cache.withLock { $0.version }
            let changes: APIKeyChanges
            do throws(StoreError) { changes = try await store.changes(since: version) } catch {
                cache.withLock { $0.failed() }
                // What was applied before counts, and the failure shows again the next time.
                return changed.isEmpty ? .failed(error) : .changed(changed)
            }
            let effect = cache.withLock { $0.apply(changes, asked: asked) }
            if effect.isReset { return .reset }
            changed += effect.changed
            if changes.isComplete { return changed.isEmpty ? .unchanged : .changed(changed) }
        }
    }
}

/// The result of looking for a key.
struct FoundKey: Sendable {
    /// `nil` if there is none.
    let record: APIKeyRecord?
    /// For how long a decision by it may be reused.
    let reusable: Duration
}
