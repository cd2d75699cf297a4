package import MartletCore

/// How many results in a row change the state of an endpoint.
package struct HealthThresholds: Sendable, Hashable {
    /// Successes after which an unhealthy endpoint is healthy.
    package let healthy: Int
    /// Failures after which a healthy endpoint is unhealthy.
    package let unhealthy: Int

    package init(healthy: Int, unhealthy: Int) { (self.healthy, self.unhealthy) = (healthy, unhealthy) }
}

/// Whether an endpoint is healthy, by the results of its probes; before the first it is.
package struct HealthTally: Sendable, Equatable {
    package private(set) var isHealthy = true
    /// Results in a row that contradict the state.
    private var contradictions = 0
    private var since: MonotonicTime

    /// - Parameter now: when the endpoint became known.
    package init(at now: MonotonicTime) { since = now }

    /// Notes the result of a probe.
    /// - Returns: how long the endpoint was in its former state, if this result has changed it.
    package mutating func note(
        success: Bool, _ thresholds: HealthThresholds, at now: MonotonicTime
    ) -> Duration? {
        guard success != isHealthy else {
            contradictions = 0
            return nil
        }
        contradictions &+= 1
        guard contradictions >= (isHealthy ? thresholds.unhealthy : thresholds.healthy) else { return nil }
        defer { since = now }
        contradictions = 0
        isHealthy = success
        return now.since(since)
    }
}
