/// How the requests of an upstream are divided among its endpoints.
package enum BalancePolicy: Sendable, Equatable {
    /// To the one with the fewest requests under way, in relation to its weight.
    case leastRequests
    /// To each in turn, as often as its weight.
    case roundRobin
    /// By the hash of a key.
    case hash
}

/// What the choice of an endpoint knows of one of them.
package struct EndpointCandidate: Sendable, Equatable {
    /// How the health checks and the operator see an endpoint.
    package enum Condition: Sendable, Equatable {
        case healthy, unhealthy
        /// Taken out by the operator, or without a weight: never used.
        case drained
    }

    package var condition = Condition.healthy
    /// Used only while no other is.
    package var isBackup = false
    /// Failed requests have ejected it.
    package var isEjected = false
    /// Its weight, scaled (``SlowStart/scale``).
    package var weight = SlowStart.scale
    /// Requests under way.
    package var active = 0
    /// The hash of its URL.
    package var hash: UInt64 = 0

    package init() {}

    var isUsable: Bool { condition == .healthy && !isEjected }
}
