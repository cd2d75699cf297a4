internal import MartletCore
private import Synchronization

/// Asks the store for tokens on behalf of all limits of a process, as long as it responds.
package final class StoreClient: Sendable {
    /// How long a request waits for the store, in nanoseconds.
    package static let longestWait: Int64 = 75_000_000
    /// Asks in progress; a request that needs another one is decided without the store.
    private static let maximumAsks = SharedBound.limitRequests.total

    private let store: any SharedTokenStoring
    private let clock: @Sendable () -> Int64
    private let breaker = Lock(StoreBreaker())
    private let asks = Atomic<Int>(0)
    private let failures = Atomic<Int>(0)

    /// - Parameter clock: the monotonic clock, in nanoseconds.
    package init(_ store: any SharedTokenStoring, clock: @escaping @Sendable () -> Int64) {
        self.store = store
        self.clock = clock
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
        store.ask(ask) { [self] grant in
            asks.subtract(1, ordering: .relaxed)
            let now = clock()
            if grant == nil { recordFailure(at: now) } else { breaker.withLock { $0.succeeded() } }
            completion(grant, now)
        }
    }

    private func recordFailure(at now: Int64) {
        failures.add(1, ordering: .relaxed)
        breaker.withLock { $0.failed(at: now) }
    }
}
