/// Decides whether the store is asked, so that one that does not respond delays only the first requests.
struct StoreBreaker {
    enum Step: Equatable {
        case ask
        /// Whether the store responds again is tried, but the request does not wait for it.
        case probe
        case skip
    }

    /// Consecutive failures after which it is not asked for a while.
    static let maximumFailures = 3
    /// How long it is not asked.
    static let pause: Int64 = 500_000_000

    private var failures = 0
    private var pausedUntil = Int64.min
    private var failedAt = Int64.min

    /// Whether requests wait for the store.
    var isClosed: Bool { failures < Self.maximumFailures }

    /// Whether there was a failure not longer ago than that, in nanoseconds.
    func hasFailed(within span: Int64, at now: Int64) -> Bool { now <= failedAt.saturatingSum(span) }

    /// What a request does that needs the store.
    mutating func step(at now: Int64) -> Step {
        if isClosed { return .ask }
        guard now >= pausedUntil else { return .skip }
        pausedUntil = now.saturatingSum(Self.pause)
        return .probe
    }

    /// The store has responded.
    mutating func succeeded() { failures = 0 }

    /// It has not, or not in time.
    mutating func failed(at now: Int64) {
        failures = min(failures + 1, Self.maximumFailures)
        failedAt = now
        if !isClosed { pausedUntil = now.saturatingSum(Self.pause) }
    }
}
