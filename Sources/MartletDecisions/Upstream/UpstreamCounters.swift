package import MartletConfig
internal import MartletCore
package import MartletTraffic

/// What is counted of an upstream over all event loops, for `breaker` and `retries`.
package final class UpstreamCounters: Sendable {
    package let budget = RetryBudget()
    /// Requests under way.
    package let requests = DividedCounter(.upstreamRequests)
    /// Open connections.
    package let connections = ConcurrencyCounter()
    /// Requests that have a connection.
    package let carried = DividedCounter(.upstreamUse)
    /// Requests that wait for a connection.
    package let pending = DividedCounter(.upstreamQueue)

    package init() {}
}

/// `breaker:` of an upstream, with what it bounds, for the loops: plain values.
@safe package struct Breaker: Sendable {
    package let maximumConnections: Int
    package let maximumRequests: Int
    package let maximumPending: Int
    /// Nanoseconds.
    package let queueTimeout: Int64
    package let requests: DividedCounter
    package let carried: DividedCounter
    package let pending: DividedCounter
    private let connections: Unmanaged<ConcurrencyCounter>

    package init(_ configuration: BreakerConfiguration, _ counters: UpstreamCounters) {
        maximumConnections = configuration.maximumConnections
        maximumRequests = configuration.maximumRequests
        maximumPending = configuration.maximumPending
        queueTimeout = configuration.queueTimeout.boundedNanoseconds
        (requests, carried, pending) = (counters.requests, counters.carried, counters.pending)
        unsafe connections = .passUnretained(counters.connections)
    }

    /// Whether another connection may be opened.
    package var hasConnection: Bool { unsafe connections._withUnsafeGuaranteedRef { $0.current } < maximumConnections }
}

extension RetryPolicy {
    package init(_ configuration: RetryConfiguration) {
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
