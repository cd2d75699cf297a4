/// One element of `endpoints:`.
@frozen package struct EndpointConfiguration: Sendable, Hashable {
    package static let maximumWeight = 1000

    package var address: Located<EndpointAddress>
    /// Its share of the requests, in relation to the weights of the others; 0 gets none.
    package var weight = 1
    /// Used only while no other endpoint is.
    package var isBackup = false

    package init(_ address: Located<EndpointAddress>) { self.address = address }
}

/// `dns:` of an upstream.
@frozen package struct ResolutionConfiguration: Sendable, Hashable {
    /// Which addresses of a name are used.
    @frozen package enum Family: String, ConfigurationChoice { case any, ipv4, ipv6 }

    /// The longest time between two lookups; the TTL of the records if that is shorter.
    package var refresh = Duration.seconds(30)
    package var family = Family.any
    /// Whether every address of a name is an endpoint, or the first one alone.
    package var usesAllAddresses = true

    package init() {}
}

/// `health_check:` of an upstream.
@frozen package struct HealthCheckConfiguration: Sendable, Hashable {
    package var path = "/"
    package var interval = Duration.seconds(5)
    package var timeout = Duration.seconds(1)
    /// Successes in a row after which an unhealthy endpoint is healthy.
    package var healthy = 2
    /// Failures in a row after which a healthy endpoint is unhealthy.
    package var unhealthy = 3
    /// Status codes of a success.
    package var expected: [ClosedRange<Int>] = [200...399]
    /// `Host` of the probe; the endpoint's name if absent.
    package var host: String?
    /// The port to probe; the endpoint's if absent.
    package var port: UInt16?
    /// Whether `grpc.health.v1.Health/Check` is called instead of a GET.
    package var isGRPC = false
    /// By how much an interval is shortened at random, at most.
    package var jitter = Percentage(20)

    package init() {}
}

/// `outlier:` of an upstream.
@frozen package struct OutlierConfiguration: Sendable, Hashable {
    package var consecutiveFailures = 5
    /// The share of failures in a window from which an endpoint is ejected.
    package var errorRate = Percentage(50)
    /// Requests in a window below which its rate decides nothing.
    package var minimumRequests = 100
    package var window = Duration.seconds(30)
    package var baseEjection = Duration.seconds(1)
    package var maximumEjection = Duration.seconds(60)
    /// The largest share of the endpoints that is out of use at a time; of two or more, one always may be.
    package var maximumEjected = Percentage(50)

    package init() {}
}

/// `breaker:` of an upstream: bounds over all event loops of a process.
@frozen package struct BreakerConfiguration: Sendable, Hashable {
    package var maximumConnections = 1000
    package var maximumRequests = 10_000
    /// Requests that wait for a connection.
    package var maximumPending = 1000
    package var queueTimeout = Duration.seconds(1)

    package init() {}
}

/// `retries:` of an upstream.
@frozen package struct RetryConfiguration: Sendable, Hashable {
    /// What a request is sent again after.
    @frozen package enum Condition: String, Sendable, CaseIterable {
        case connect, reset
        case badGateway = "502"
        case serviceUnavailable = "503"
        case gatewayTimeout = "504"
    }

    /// How often a request is sent again.
    package var attempts = 2
    package var conditions = Set(Condition.allCases)
    /// From the end of the request to the head of the response; `response_head` if absent.
    package var perTryTimeout: Duration?
    /// Retries in relation to the requests of the last second.
    package var budget = Percentage(20)
    /// Retries that each second may have in any case.
    package var minimumPerSecond = 3
    /// Before the first retry; it doubles with each.
    package var backoff = Duration.milliseconds(25)

    package init() {}
}

/// How an upstream's endpoints are watched, and what is done about failures.
@frozen package struct UpstreamPolicies: Sendable, Hashable {
    package var resolution = ResolutionConfiguration()
    package var healthCheck: HealthCheckConfiguration?
    package var outlier: OutlierConfiguration?
    /// How long the share of an endpoint grows that has become healthy or was added; `nil` is not at all.
    package var slowStart: Duration?
    package var breaker: BreakerConfiguration?
    package var retries: RetryConfiguration?
    /// The share of usable endpoints below which all are used; 0 % is never, `nil` the default.
    package var panicThreshold: Percentage?
    /// How long an endpoint that has left the file finishes its requests.
    package var drain = Duration.seconds(30)

    package init() {}
}
