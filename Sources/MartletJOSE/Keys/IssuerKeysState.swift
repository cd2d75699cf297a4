internal import MartletCore

/// What is known about an issuer's keys and what is under way to know more.
///
/// No I/O, no clock of its own.
struct IssuerKeysState {
    /// How many ids without a key are remembered; a flood of more changes nothing, because the cooldown bounds fetches anyway.
    static let maximumAbsent = 256
    /// How long another instance's answer is not looked for again.
    private static let storePause = Duration.seconds(2)
    /// Back-off after failures: doubled from the first, up to the longest with or without keys in hand.
    private static let firstRetry = Duration.milliseconds(500)
    private static let longestRetry = Duration.seconds(60)
    private static let longestRetryWithoutKeys = Duration.seconds(5)

    /// A refresh under way, and who waits for it.
    struct Flight {
        let number: Int
        let cause: Cause
        var waiters: [CheckedContinuation<IssuerKeys.RefreshResult, Never>] = []
        var tasks: [Task<Void, Never>] = []
    }

    /// Why a refresh is made.
    enum Cause: Sendable, Equatable {
        case due
        case unknownKey(KeyID)
    }

    let policy: IssuerKeysPolicy
    private(set) var held: HeldKeys?
    private var absent: [KeyID: MonotonicTime] = [:]
    private var cooldownEnds: MonotonicTime?
    /// The last fetch for an unknown id got no answer, nor has the issuer given one since: what it has is not known.
    private var isUnanswered = false
    var flight: Flight?
    private var flights = 0
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

// MARK: - Looking up

extension IssuerKeysState {
    /// The keys, unless they are older than anyone may rely on.
    func usable(at now: MonotonicTime) -> HeldKeys? {
        guard let held, now < held.obtained + policy.maximumStale else { return nil }
        return held
    }

    func lookup(_ id: KeyID, now: MonotonicTime) -> IssuerKeys.Lookup {
        guard let held = usable(at: now) else {
            if isStopped { return .unavailable }
            if flight == nil, let retryAt, now < retryAt { return .unavailable }
            return .undecided
        }
        if let key = held.set.keys[id] { return .key(key) }
        if held.set.skipped.contains(where: { $0.id == id }) { return .unusable }
        if let until = absent[id], now < until { return .unknown }
        if isStopped { return .unavailable }
        if flight == nil, let cooldownEnds, now < cooldownEnds { return isUnanswered ? .unavailable : .unknown }
        return .undecided
    }

    /// The answer when nothing more can be learnt now; an id that the issuer was not asked about is never `unknown`.
    /// - Parameter isAnswered: whether the issuer has just said which keys it has.
    func verdict(_ id: KeyID, isAnswered: Bool, now: MonotonicTime) -> IssuerKeys.Lookup {
        let answer = lookup(id, now: now)
        guard case .undecided = answer else { return answer }
        return isAnswered && usable(at: now) != nil ? .unknown : .unavailable
    }

    /// Remembers that the issuer, just asked, has no key of this name.
    mutating func remember(absent id: KeyID, now: MonotonicTime) {
        if absent.count >= Self.maximumAbsent { absent = absent.filter { now < $0.value } }
        guard absent.count < Self.maximumAbsent else { return }
        absent[id] = now + policy.negativeTTL
    }
}

// MARK: - Refreshing

extension IssuerKeysState {
    /// Begins a refresh; the caller runs it.
    ///
    /// `nil` when one is under way or nothing may begin any more.
    mutating func begin(_ cause: Cause, now: MonotonicTime) -> Int? {
        guard flight == nil, !isStopped else { return nil }
        if case .unknownKey = cause { cooldownEnds = now + policy.unknownKeyCooldown }
        flights &+= 1
        flight = Flight(number: flights, cause: cause)
        return flights
    }

    /// Ends a refresh and hands over who waited; `nil` when it has been ended already.
    mutating func end(_ number: Int, _ result: IssuerKeys.RefreshResult, now: MonotonicTime) -> Flight? {
        guard let ended = flight, ended.number == number else { return nil }
        flight = nil
        note(result, of: ended.cause, now: now)
        switch result {
        case .failed(let failure):
            failures &+= 1
            failuresInARow &+= 1
            lastError = failure.code
            retryAt = now + backOff(now: now)
        case .proven, .shared:
            failuresInARow = 0
            lastError = nil
            retryAt = nil
        case .unanswered: break
        }
        return ended
    }

    /// Keeps whether unknown ids are known to be unknown.
    private mutating func note(_ result: IssuerKeys.RefreshResult, of cause: Cause, now: MonotonicTime) {
        switch (result, cause) {
        case (.proven, _), (.shared, .unknownKey): isUnanswered = false
        case (.failed, .unknownKey): isUnanswered = true
        case (.unanswered, .unknownKey):
            isUnanswered = true
            // To look into the store again costs the issuer nothing.
            cooldownEnds = cooldownEnds.map { min($0, now + Self.storePause) }
        case (.shared, .due), (.failed, .due), (.unanswered, .due): break
        }
    }

    private func backOff(now: MonotonicTime) -> Duration {
        let doubled = Self.firstRetry * (1 << min(failuresInARow &- 1, 16))
        let longest = usable(at: now) == nil ? Self.longestRetryWithoutKeys : Self.longestRetry
        return min(doubled, longest) * Double.random(in: 0.8...1)
    }

    /// Takes over newer keys at once and answers which are gone.
    mutating func install(_ keys: HeldKeys) -> [KeyID] {
        guard keys.isNewer(than: held) || keys.source == .issuer else { return [] }
        let removed = held?.missing(from: keys) ?? []
        held = keys
        // Earlier than the ttl, and not at the same time as other instances.
        refreshAt = keys.obtained + policy.ttl * Double.random(in: 0.8...0.9)
        return removed
    }

    /// Lets go of keys that have become too old and answers which.
    mutating func lapse(now: MonotonicTime) -> [KeyID] {
        guard let old = held, usable(at: now) == nil else { return [] }
        held = nil
        return old.missing(from: nil)
    }

    /// When the background work has something to do next.
    func nextDue(now: MonotonicTime) -> MonotonicTime {
        guard let held else { return retryAt ?? now }
        let refresh = failuresInARow > 0 ? max(retryAt ?? now, refreshAt ?? now) : refreshAt ?? now
        return min(refresh, held.obtained + policy.maximumStale)
    }

    /// Counts in somebody who relies on the background work.
    mutating func enter() {
        users += 1
        isStopped = false
    }

    /// Counts somebody out; with the last one nothing begins any more.
    ///
    /// `false` while others rely on it.
    mutating func leave() -> Bool {
        users = max(users - 1, 0)
        isStopped = users == 0
        return isStopped
    }
}
