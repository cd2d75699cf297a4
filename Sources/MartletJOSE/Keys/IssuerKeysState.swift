internal import MartletCore

/// The cached keys of an issuer and the state of their refresh, without I/O and without a clock.
struct IssuerKeysState {
    /// The maximum number of cached absent IDs. More do no harm, because the cooldown limits fetches anyway.
    static let maximumAbsent = 256
    /// How long another instance's result is not polled for again.
    private static let storePause = Duration.seconds(2)
    /// The backoff after failures: doubles from the first delay up to a maximum, with or without cached keys.
    private static let firstRetry = Duration.milliseconds(500)
    private static let longestRetry = Duration.seconds(60)
    private static let longestRetryWithoutKeys = Duration.seconds(5)

    /// A refresh in progress and its waiters.
    struct ActiveRefresh {
        let number: Int
        let cause: Cause
        var waiters: [CheckedContinuation<IssuerKeys.RefreshResult, Never>] = []
        var tasks: [Task<Void, Never>] = []
    }

    /// Why a refresh is performed.
    enum Cause: Sendable, Equatable {
        case due
        case unknownKey(KeyID)
        /// An operator wants keys that are not older than the request.
        case requested(at: MonotonicTime)
    }

    let policy: IssuerKeysPolicy
    private(set) var cached: CachedKeys?
    private var absent: [KeyID: MonotonicTime] = [:]
    private var cooldownEnds: MonotonicTime?
    /// The last fetch for an unknown ID got no response, nor has the issuer responded since.
    private var hasNoResponse = false
    var active: ActiveRefresh?
    private var lastNumber = 0
    private var failuresInARow = 0
    private var retryAt: MonotonicTime?
    private var refreshAt: MonotonicTime?
    private(set) var isStopped = false
    private var users = 0
    var background: Task<Void, Never>?

    var fetches = 0
    private(set) var failures = 0
    private(set) var lastError: ErrorCode?

    init(policy: IssuerKeysPolicy) { self.policy = policy }
}

// MARK: - Lookup

extension IssuerKeysState {
    /// The keys, unless they exceed the maximum age.
    func usable(at now: MonotonicTime) -> CachedKeys? {
        guard let cached, now < cached.obtained + policy.maximumStale else { return nil }
        return cached
    }

    func lookup(_ id: KeyID, now: MonotonicTime) -> IssuerKeys.Lookup {
        guard let cached = usable(at: now) else { return lookupWithoutKeys(now: now) }
        if let key = cached.set.keys[id] { return .key(key) }
        if cached.set.skipped.contains(where: { $0.id == id }) { return .unusable }
        if let until = absent[id], now < until { return .unknown }
        if isStopped { return .unavailable }
        if active == nil, let cooldownEnds, now < cooldownEnds { return hasNoResponse ? .unavailable : .unknown }
        return .undecided
    }

    /// The key of an issuer that has no other.
    func onlyKey(now: MonotonicTime) -> IssuerKeys.Lookup {
        guard let cached = usable(at: now) else { return lookupWithoutKeys(now: now) }
        return cached.set.onlyKey.map { .key($0) } ?? .unknown
    }

    private func lookupWithoutKeys(now: MonotonicTime) -> IssuerKeys.Lookup {
        if isStopped { return .unavailable }
        if active == nil, let retryAt, now < retryAt { return .unavailable }
        return .undecided
    }

    /// The result when no further refresh is possible now; `unknown` only if the issuer has responded.
    /// - Parameter hasResponse: whether the issuer has just returned its keys.
    func finalLookup(_ id: KeyID, hasResponse: Bool, now: MonotonicTime) -> IssuerKeys.Lookup {
        let found = lookup(id, now: now)
        guard case .undecided = found else { return found }
        return hasResponse && usable(at: now) != nil ? .unknown : .unavailable
    }

    /// Caches that the issuer has no key with this ID.
    mutating func cacheAbsence(of id: KeyID, now: MonotonicTime) {
        if absent.count >= Self.maximumAbsent { absent = absent.filter { now < $0.value } }
        guard absent.count < Self.maximumAbsent else { return }
        absent[id] = now + policy.negativeTTL
    }
}

// MARK: - Refreshing

extension IssuerKeysState {
    /// Begins a refresh, to be run by the caller.
    /// - Returns: its number; `nil` when a refresh is active or the keys are stopped.
    mutating func begin(_ cause: Cause, now: MonotonicTime) -> Int? {
        guard active == nil, !isStopped else { return nil }
        if case .unknownKey = cause { cooldownEnds = now + policy.unknownKeyCooldown }
        lastNumber &+= 1
        active = ActiveRefresh(number: lastNumber, cause: cause)
        return lastNumber
    }

    /// Ends a refresh and returns it with its waiters; `nil` when it has ended already.
    mutating func end(_ number: Int, _ result: IssuerKeys.RefreshResult, now: MonotonicTime) -> ActiveRefresh? {
        guard let ended = active, ended.number == number else { return nil }
        active = nil
        note(result, of: ended.cause, now: now)
        switch result {
        case .failed(let failure):
            failures &+= 1
            failuresInARow &+= 1
            lastError = failure.code
            retryAt = now + backOff(now: now)
        case .fetched, .shared:
            failuresInARow = 0
            lastError = nil
            retryAt = nil
        case .noResponse: break
        }
        return ended
    }

    /// Updates whether the issuer has responded since the last unknown ID.
    private mutating func note(_ result: IssuerKeys.RefreshResult, of cause: Cause, now: MonotonicTime) {
        switch (result, cause) {
        case (.fetched, _), (.shared, .unknownKey): hasNoResponse = false
        case (.failed, .unknownKey): hasNoResponse = true
        case (.noResponse, .unknownKey):
            hasNoResponse = true
            // Reading the store again does not cost the issuer a request.
            cooldownEnds = cooldownEnds.map { min($0, now + Self.storePause) }
        case (.shared, .due), (.failed, .due), (.noResponse, .due), (_, .requested): break
        }
    }

    private func backOff(now: MonotonicTime) -> Duration {
        let doubled = Self.firstRetry * (1 << min(failuresInARow &- 1, 16))
        let longest = usable(at: now) == nil ? Self.longestRetryWithoutKeys : Self.longestRetry
        return min(doubled, longest) * Double.random(in: 0.8...1)
    }

    /// Replaces the keys if these are newer.
    /// - Returns: what has changed; `nil` for the first keys.
    mutating func install(_ keys: CachedKeys) -> IssuerKeyRotation? {
        guard keys.isNewer(than: cached) || keys.source == .issuer else { return nil }
        let rotation = cached.map { IssuerKeyRotation(from: $0, to: keys) }
        cached = keys
        // Before the ttl, and with jitter, so that instances do not refresh at the same time.
        refreshAt = keys.obtained + policy.ttl * Double.random(in: 0.8...0.9)
        return rotation
    }

    /// Removes keys that exceed the maximum age.
    /// - Returns: their IDs.
    mutating func expireKeys(now: MonotonicTime) -> [KeyID] {
        guard let old = cached, usable(at: now) == nil else { return [] }
        cached = nil
        return old.missing(from: nil)
    }

    /// When the background refresh is due next.
    func nextDue(now: MonotonicTime) -> MonotonicTime {
        guard let cached else { return retryAt ?? now }
        let refresh = failuresInARow > 0 ? max(retryAt ?? now, refreshAt ?? now) : refreshAt ?? now
        return min(refresh, cached.obtained + policy.maximumStale)
    }

    /// Adds a user of the background refresh.
    mutating func addUser() {
        users += 1
        isStopped = false
    }

    /// Removes a user; without users no refresh begins.
    /// - Returns: `false` while there are other users.
    mutating func removeUser() -> Bool {
        users = max(users - 1, 0)
        isStopped = users == 0
        return isStopped
    }
}
