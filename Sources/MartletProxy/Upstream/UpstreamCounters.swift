internal import MartletConfig
internal import MartletCore
internal import MartletTraffic

/// What is counted of an upstream over all event loops, for `breaker` and `retries`.
package final class UpstreamCounters: Sendable {
    let budget = RetryBudget()
    /// Requests under way.
    let requests = DividedCounter(.upstreamRequests)
    /// Open connections.
    let connections = ConcurrencyCounter()
    /// Requests that have a connection.
    let carried = DividedCounter(.upstreamUse)
    /// Requests that wait for a connection.
    let pending = DividedCounter(.upstreamQueue)

    init() {}
}

/// `breaker:` of an upstream, with what it bounds, for the loops: plain values.
@safe struct Breaker: Sendable {
    let maximumConnections: Int
    let maximumRequests: Int
    let maximumPending: Int
    /// Nanoseconds.
    let queueTimeout: Int64
    let requests: DividedCounter
    let carried: DividedCounter
    let pending: DividedCounter
    private let connections: Unmanaged<ConcurrencyCounter>

    init(_ configuration: BreakerConfiguration, _ counters: UpstreamCounters) {
        maximumConnections = configuration.maximumConnections
        maximumRequests = configuration.maximumRequests
        maximumPending = configuration.maximumPending
        queueTimeout = configuration.queueTimeout.boundedNanoseconds
        (requests, carried, pending) = (counters.requests, counters.carried, counters.pending)
        unsafe connections = .passUnretained(counters.connections)
    }

    /// Whether another connection may be opened.
    var hasConnection: Bool { unsafe connections._withUnsafeGuaranteedRef { $0.current } < maximumConnections }
}

extension RetryPolicy {
    init(_ configuration: RetryConfiguration) {
        var conditions: Conditions = []
        for condition in configuration.conditions {
            switch condition {
            case .connect: conditions.insert(.connect)
            case .reset: conditions.insert(.reset)
            case .badGateway: conditions.insert(.badGateway)
            case .serviceUnavailable: conditions.insert(.serviceUnavailable)
            case .gatewayTimeout: conditions.insert(.gatewayTimeout)
            }
        }
        self.init(
            attempts: configuration.attempts, conditions: conditions,
            perTryTimeout: configuration.perTryTimeout?.boundedNanoseconds,
            backoff: configuration.backoff.boundedNanoseconds,
            budget: RetryBudgetPolicy(
                percent: configuration.budget.percent, minimumPerSecond: configuration.minimumPerSecond))
    }
}
