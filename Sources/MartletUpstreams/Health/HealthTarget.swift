package import MartletFetch

/// How an endpoint is asked whether it works.
package struct ProbeRequest: Sendable, Hashable {
    /// `nil` for a host name without an address: the probe fails.
    package var destination: EndpointDestination?
    /// `nil` in clear text.
    package var tls: EndpointTLS?
    package var version = EndpointVersion.http1
    /// `Host` or `:authority`.
    package var host: String
    /// Path and query.
    package var path = "/"
    /// Status codes of a success.
    package var expected: [ClosedRange<Int>] = [200...399]
    /// Whether `grpc.health.v1.Health/Check` is called instead of a GET of `path`.
    package var isGRPC = false
    /// For the whole probe.
    package var timeout = Duration.seconds(1)

    package init(to destination: EndpointDestination?, host: String) {
        (self.destination, self.host) = (destination, host)
    }
}

/// An endpoint that is probed again and again.
package struct HealthTarget: Sendable, Hashable {
    /// A number that no other endpoint has, now or later.
    package let id: Int
    /// What its probes are counted under.
    package let upstream: String
    package let request: ProbeRequest
    /// From the start of one probe to the start of the next, at most.
    package let interval: Duration
    /// The largest share of an interval by which it is shortened at random, in percent.
    package let jitter: Int
    package let thresholds: HealthThresholds

    package init(
        id: Int, upstream: String, request: ProbeRequest, interval: Duration, jitter: Int, thresholds: HealthThresholds
    ) {
        (self.id, self.upstream, self.request) = (id, upstream, request)
        (self.interval, self.jitter, self.thresholds) = (interval, jitter, thresholds)
    }
}

/// The result of one probe.
package enum ProbeResult: Sendable, Equatable {
    /// Both with what was seen, in words: `status 200`, `connection refused`.
    case success(String)
    case failure(String)
}

/// An endpoint has become healthy or unhealthy.
package struct HealthChange: Sendable, Equatable {
    /// The number of its target.
    package let target: Int
    package let isHealthy: Bool
    /// What the probe saw that made the difference.
    package let reason: String
    /// How long it was in the other state.
    package let lasted: Duration

    package init(target: Int, isHealthy: Bool, reason: String, lasted: Duration) {
        (self.target, self.isHealthy, self.reason, self.lasted) = (target, isHealthy, reason, lasted)
    }
}

/// The probes of an upstream so far, and the state of its endpoints.
package struct HealthCounts: Sendable, Equatable {
    package var successes = 0
    package var failures = 0
    /// Probes that began more than an interval late, because too many others were in flight.
    package var delayed = 0
    /// Endpoints that are unhealthy now.
    package var unhealthy = 0
    /// Endpoints that are probed.
    package var endpoints = 0

    package init() {}
}
