internal import MartletCore
private import Synchronization

/// Asks the store for tokens on behalf of all limits of a process, as long as it responds.
package final class StoreClient: Sendable {
    /// After this time without a request that tries again, an outage is over, in nanoseconds.
    private static let memory: Int64 = 60_000_000_000
    /// Asks in progress; a request that needs another one is decided without the store.
    private static let maximumAsks = SharedBound.limitRequests.total

    /// How long a request waits for the store, in nanoseconds.
    package let longestWait: Int64
    private let store: any SharedTokenStoring
    private let onChange: @Sendable (_ isAway: Bool) -> Void
    private let clock: @Sendable () -> Int64
    private let breaker = Lock(StoreBreaker())
    private let asks = Atomic<Int>(0)
    private let failures = Atomic<Int>(0)

    /// - Parameters:
    ///   - longestWait: how long a request waits for the store, in nanoseconds.
    ///   - clock: the monotonic clock, in nanoseconds.
    ///   - onChange: called when the store is unavailable for limits from now on, or no longer is.
    package init(
        _ store: any SharedTokenStoring, longestWait: Int64 = 75_000_000, clock: @escaping @Sendable () -> Int64,
        onChange: @escaping @Sendable (_ isAway: Bool) -> Void = { _ in }
    ) {
        self.store = store
        self.longestWait = longestWait
        self.clock = clock
        self.onChange = onChange
    }

    /// Whether limits count without the store: it does not respond, or later than requests wait.
    package var isAway: Bool {
        let now = clock()
        return breaker.withLock { !$0.isClosed && $0.hasFailed(within: Self.memory, at: now) }
    }

    /// How many asks had no response, or not in time.
    package var failureCount: Int { failures.load(ordering: .relaxed) }

    /// A request has waited as long as it may.
    package func timedOut(at now: Int64) { recordFailure(at: now) }

    func step(at now: Int64) -> StoreBreaker.Step {
        guard asks.load(ordering: .relaxed) < Self.maximumAsks else { return .skip }
        return breaker.withLock { $0.step(at: now) }
    }

    func ask(_ ask: TokenAsk, _ completion: @escaping @Sendable (TokenGrant?, Int64) -> Void) {
        asks.add(1, ordering: .relaxed)
        let start = clock()
        store.ask(ask) { [self] grant in
            asks.subtract(1, ordering: .relaxed)
            let now = clock()
            // A reply that nothing waits for any more was no reply: its request has counted the failure.
            let isLate = now &- start > longestWait
            if grant == nil { recordFailure(at: now) } else { change { isLate ? $0.failed(at: now) : $0.succeeded() } }
            completion(grant, now)
        }
    }

    private func recordFailure(at now: Int64) {
        failures.add(1, ordering: .relaxed)
        change { $0.failed(at: now) }
    }

    private func change(_ body: (inout StoreBreaker) -> Void) {
        let isAway: Bool? = breaker.withLock { breaker in
            let before = breaker.isClosed
            body(&breaker)
            return breaker.isClosed == before ? nil : before
        }
        if let isAway { onChange(isAway) }
    }
}
