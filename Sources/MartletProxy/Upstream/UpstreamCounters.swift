internal import MartletBalancing
package import MartletConfig
internal import MartletCore
internal import MartletLimits

/// What is counted of an upstream over all event loops, for `breaker` and `retries`.
package final class UpstreamCounters: Sendable {
    let budget = RetryBudget()
    /// Requests under way.
    let requests = ConcurrencyCounter()
    /// Open connections.
    let connections = ConcurrencyCounter()
    /// Requests that wait for a connection.
    let pending = ConcurrencyCounter()

    init() {}
}

extension UpstreamCounters {
    /// The counters of an upstream; `nil` if it needs none.
    ///
    /// A reload keeps them. They are never released: connections and requests refer to them unretained.
    /// - Parameter previous: the upstreams of the configuration that is replaced.
    package static func of(_ upstream: UpstreamConfiguration, previous: [Upstream]) -> UpstreamCounters? {
        guard upstream.policies.breaker != nil || upstream.policies.retries != nil else { return nil }
        if let known = previous.first(where: { $0.name == upstream.name.value })?.counters { return known }
        return unsafe Unmanaged.passRetained(UpstreamCounters()).takeUnretainedValue()
    }
}

/// `breaker:` of an upstream, for the loops.
struct BreakerPolicy: Sendable, Equatable {
    let connections: Int
    let requests: Int
    let pending: Int
    /// Nanoseconds.
    let queueTimeout: Int64

    init(_ configuration: BreakerConfiguration) {
        connections = configuration.maximumConnections
        requests = configuration.maximumRequests
        pending = configuration.maximumPending
        queueTimeout = configuration.queueTimeout.boundedNanoseconds
    }
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
