/// One element of `endpoints:`.
@frozen package struct EndpointConfiguration: Sendable, Hashable {
    package static let maximumWeight = 1000

    package var address: Located<EndpointAddress>
    package var weight = 1
    package var isBackup = false

    package init(_ address: Located<EndpointAddress>) { self.address = address }
}

/// `dns:` of an upstream.
@frozen package struct ResolutionConfiguration: Sendable, Hashable {
    /// Which addresses of a name are used.
    @frozen package enum Family: String, ConfigurationChoice { case any, ipv4, ipv6 }

    package var refresh = Duration.seconds(30)
    package var family = Family.any
    package var usesAllAddresses = true

    package init() {}
}

/// `health_check:` of an upstream.
@frozen package struct HealthCheckConfiguration: Sendable, Hashable {
    package var path = "/"
    package var interval = Duration.seconds(5)
    package var timeout = Duration.seconds(1)
    package var healthy = 2
    package var unhealthy = 3
    package var expected: [ClosedRange<Int>] = [200...399]
    package var host: String?
    package var port: UInt16?
    package var isGRPC = false
    package var jitter = Percentage(20)

    package init() {}
}

/// `outlier:` of an upstream.
@frozen package struct OutlierConfiguration: Sendable, Hashable {
    package var consecutiveFailures = 5
    package var errorRate = Percentage(50)
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

    package var attempts = 2
    package var conditions = Set(Condition.allCases)
    /// From the end of the request to the head of the response; `response_head` if absent.
    package var perTryTimeout: Duration?
    package var budget = Percentage(20)
    package var minimumPerSecond = 3
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
