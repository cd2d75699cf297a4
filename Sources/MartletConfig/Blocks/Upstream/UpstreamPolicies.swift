/// How an upstream's endpoints are watched, and what is done about failures.
@frozen package struct UpstreamPolicies: Sendable, Hashable {
    package var resolution = ResolutionConfiguration()
    package var healthCheck: HealthCheckConfiguration?
    package var outlier: OutlierConfiguration?
    package var slowStart: Duration?
    package var breaker: BreakerConfiguration?
    package var retries: RetryConfiguration?
    package var panicThreshold: Percentage?
    package var drain = Duration.seconds(30)

    /// The keys of an upstream that set them.
    static let keys: [ConfigurationKey<UpstreamConfiguration>] = [
        .block("dns", \.policies.resolution, default: nil, "How host names are resolved."),
        .block(
            "health_check", \.policies.healthCheck,
            "Requests that find out whether an endpoint works; none if absent."),
        .block("outlier", \.policies.outlier, "When endpoints that fail requests are taken out of use for a while."),
        .key(
            "slow_start", \.policies.slowStart, in: .seconds(1) ... .seconds(3600),
            "How long the share of an endpoint grows that has become healthy or was added."),
        .block(
            "breaker", \.policies.breaker, "Bounds on connections and requests, over all event loops; none if absent."),
        .block("retries", \.policies.retries, "When a request is sent again."),
        .key(
            "panic_threshold", \.policies.panicThreshold, in: Percentage(0)...Percentage(100), default: .text("50%"),
            "The share of usable endpoints below which all are used; `0%` is never. "
                + "Without this key, `health_check` and `outlier`, never."),
        .key(
            "drain", \.policies.drain, in: .zero ... .seconds(86_400),
            "How long an endpoint that has left the file finishes its requests; then they are cut off."),
    ]

    /// Records contradictions between `health_check` and the endpoints.
    func checkProbes(
        of endpoints: [EndpointConfiguration], _ transport: UpstreamTransport, _ reader: inout ConfigurationReader
    ) {
        guard let check = healthCheck, let node = reader.node("health_check") else { return }
        let speaksHTTP2 = transport.version == .h2
        if transport.sendsProxyProtocol {
            reader.error(
                .configConflictingKeys, at: reader.node("proxy_protocol")?.location ?? node.location,
                "health_check: probes cannot begin with a PROXY protocol header of version 2; "
                    + "without proxy_protocol, or without health_check")
        }
        for endpoint in endpoints {
            switch endpoint.address.value {
            case .echo:
                reader.error(
                    .configConflictingKeys, at: endpoint.address.location,
                    "health_check: builtin:echo cannot be probed")
            case .http where check.isGRPC, .unix where check.isGRPC && !speaksHTTP2,
                .https where check.isGRPC && !speaksHTTP2:
                reader.error(
                    .configConflictingKeys, at: node["grpc"]?.location ?? node.location,
                    "health_check: grpc: needs HTTP/2: write h2c://, or https:// and protocol: h2")
                return
            case .unix where check.port != nil:
                reader.error(
                    .configConflictingKeys, at: node["port"]?.location ?? node.location,
                    "health_check: port: a Unix socket has no port")
                return
            case .http, .https, .h2c, .unix: break
            }
        }
    }
}

/// `dns:` of an upstream.
@frozen package struct ResolutionConfiguration: KeyedBlock, Hashable {
    /// Which addresses of a name are used.
    @frozen package enum Family: String, ConfigurationChoice { case any, ipv4, ipv6 }

    package var refresh = Duration.seconds(30)
    package var family = Family.any
    package var usesAllAddresses = true

    static let keys: [ConfigurationKey<Self>] = [
        .key(
            "refresh", \.refresh, in: .seconds(1) ... .seconds(86_400),
            "The longest time between two lookups of a name; the TTL of its records if that is shorter."),
        .key("family", \.family, "Which addresses are used."),
        .key(
            "all_addresses", \.usesAllAddresses,
            "Whether every address of a name is an endpoint of its own, or the first one alone."),
    ]
}

/// `health_check:` of an upstream.
@frozen package struct HealthCheckConfiguration: KeyedBlock, Hashable {
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

    static let keys: [ConfigurationKey<Self>] = [
        .key("path", \.path, shape: .pattern("^/"), where: pathRule, "Path and query of the probe."),
        .key(
            "interval", \.interval, in: .milliseconds(100) ... .seconds(3600),
            "From one probe of an endpoint to the next, at most."),
        .key(
            "timeout", \.timeout,
            "For a whole probe; at most `interval`, which is also the default where it is shorter."),
        .key("healthy", \.healthy, in: 1...100, "Successes in a row after which an unhealthy endpoint is used again."),
        .key("unhealthy", \.unhealthy, in: 1...100, "Failures in a row after which an endpoint is not used any more."),
        .key("expect", \.expected, as: NonEmpty<StatusRange>.self, "Status codes of a success, or ranges."),
        .key(
            "host", \.host, where: hostRule,
            "`Host` of the probe; without it the endpoint's name, and the port that is probed."),
        .key("port", \.port, "The port to probe; the endpoint's if absent."),
        .key("grpc", \.isGRPC, "Calls `grpc.health.v1.Health/Check` instead of a GET of `path`."),
        .key(
            "jitter", \.jitter, in: Percentage(0)...Percentage(50),
            "By how much an interval is shortened at random, at most."),
        .check { $0.check(&$1) },
    ]

    private static let pathRule = TextRule(
        .configBadValue,
        { $0.hasPrefix("/") && $0.utf8.allSatisfy { (0x21...0x7E).contains($0) && $0 != 0x23 } },
        { "must begin with / and have no spaces, fragment or other characters than ASCII, not \(quoted($0))" })

    private static let hostRule = TextRule(
        .configBadValue, { HostAndPort.parse(Array($0.utf8)) != nil },
        { "must be a host name, with or without a port, not \(quoted($0))" })

    private mutating func check(_ reader: inout ConfigurationReader) {
        if reader.given("timeout") == nil {
            timeout = min(timeout, interval)
        } else if !(.milliseconds(1)...interval).contains(timeout) {
            reader.reject(
                "timeout", .configBadDuration,
                "must be between 1ms and interval, \(interval.configurationText), not \(timeout.configurationText)")
        }
        for key in ["path", "expect"] where isGRPC {
            reader.reject(key, .configConflictingKeys, "grpc decides by its own status")
        }
    }

    /// `204` or `200-399`.
    private struct StatusRange: ConfigurationValue, Spelling {
        static func text(of range: ClosedRange<Int>) -> String? { "\(range.lowerBound)-\(range.upperBound)" }
        let content: ClosedRange<Int>

        init(decoding node: ConfigurationNode) throws(ConfigurationError) {
            let text = try node.scalar(expecting: "a status code").text
            let parts = text.split(separator: "-", omittingEmptySubsequences: false).map { part in
                part.utf8.count == 3 && part.utf8.allSatisfy { (0x30...0x39).contains($0) } ? Int(part) ?? 0 : 0
            }
            guard (1...2).contains(parts.count), let first = parts.first, let last = parts.last, first <= last,
                (200...599).contains(first), (200...599).contains(last)
            else {
                throw node.error(
                    .configBadValue, "\(quoted(text)) is not a status code or range between 200 and 599: 204, 200-399")
            }
            content = first...last
        }
    }
}

/// `outlier:` of an upstream.
@frozen package struct OutlierConfiguration: KeyedBlock, Hashable {
    package var consecutiveFailures = 5
    package var errorRate = Percentage(50)
    package var minimumRequests = 100
    package var window = Duration.seconds(30)
    package var baseEjection = Duration.seconds(1)
    package var maximumEjection = Duration.seconds(60)
    package var maximumEjected = Percentage(50)

    package init() {}

    static let keys: [ConfigurationKey<Self>] = [
        .key(
            "consecutive_failures", \.consecutiveFailures, in: 1...1000,
            "Failures in a row after which an endpoint is ejected; a refused connection ejects it immediately."),
        .key(
            "error_rate", \.errorRate, in: Percentage(1)...Percentage(100),
            "The share of failures in a window from which an endpoint is ejected."),
        .key(
            "minimum_requests", \.minimumRequests, in: 1...1_000_000,
            "Requests in a window below which its error rate decides nothing."),
        .key("window", \.window, in: .seconds(1) ... .seconds(3600), "How long failures count for the error rate."),
        .key(
            "base_ejection", \.baseEjection, in: .milliseconds(10)...longestEjection,
            "The first ejection; each further one is twice as long."),
        .key("max_ejection", \.maximumEjection, "The longest ejection; at least `base_ejection`."),
        .key(
            "max_ejected", \.maximumEjected, in: Percentage(0)...Percentage(100),
            "The largest share of endpoints that are out of use at a time, unhealthy and drained ones included; "
                + "of two or more, one may always be ejected."),
        .check { block, reader in
            if reader.given("max_ejection") == nil {
                block.maximumEjection = max(block.maximumEjection, block.baseEjection)
            } else if !(block.baseEjection...longestEjection).contains(block.maximumEjection) {
                reader.reject(
                    "max_ejection", .configBadDuration,
                    "must be between base_ejection, \(block.baseEjection.configurationText), and 1d, "
                        + "not \(block.maximumEjection.configurationText)")
            }
        },
    ]

    private static let longestEjection = Duration.seconds(86_400)
}

/// `breaker:` of an upstream: bounds over all event loops of a process.
@frozen package struct BreakerConfiguration: KeyedBlock, Hashable {
    package var maximumConnections = 1000
    package var maximumRequests = 10_000
    package var maximumPending = 1000
    package var queueTimeout = Duration.seconds(1)

    package init() {}

    static let keys: [ConfigurationKey<Self>] = [
        .key("max_connections", \.maximumConnections, in: 1...1_000_000, "Open connections to the upstream."),
        .key("max_requests", \.maximumRequests, in: 1...1_000_000, "Requests under way; over it, 503 `overloaded`."),
        .key(
            "max_pending", \.maximumPending, in: 0...1_000_000,
            "Requests that wait for a connection; over it, 503 `overloaded`."),
        .key(
            "queue_timeout", \.queueTimeout, in: .milliseconds(1) ... .seconds(60),
            "How long a request waits for a connection at most."),
    ]
}

/// `retries:` of an upstream.
@frozen package struct RetryConfiguration: KeyedBlock, Hashable {
    /// What a request is sent again after.
    @frozen package enum Condition: String, Sendable, CaseIterable {
        case connect, reset
        case badGateway = "502"
        case serviceUnavailable = "503"
        case gatewayTimeout = "504"
    }

    package var attempts = 2
    package var conditions = Set(Condition.allCases)
    package var perTryTimeout: Duration?
    package var budget = Percentage(20)
    package var minimumPerSecond = 3
    package var backoff = Duration.milliseconds(25)

    static let keys: [ConfigurationKey<Self>] = [
        .key("attempts", \.attempts, in: 0...10, "How often a request is sent again; `0` is never."),
        .key(
            "retry_on", \.conditions.listed, as: NonEmpty<Condition>.self,
            "After what: no connection, a connection that ended without a response, or a status."),
        .key(
            "per_try_timeout", \.perTryTimeout, in: Duration.positive,
            "From the end of the request to the head of the response, for each attempt; what it cuts off counts as `reset`."
        ),
        .key(
            "budget", \.budget, in: Percentage(0)...Percentage(100),
            "Retries in relation to the requests of the last second, over all event loops."),
        .key("min_per_second", \.minimumPerSecond, in: 0...100_000, "Retries that each second may have in any case."),
        .key(
            "backoff", \.backoff, in: .zero ... .seconds(10),
            "Before the first retry of a request, at random between half and all of it; it doubles with each."),
    ]
}

extension Set<RetryConfiguration.Condition> {
    /// In the order of the cases.
    fileprivate var listed: [Element] {
        get { Element.allCases.filter(contains) }
        set { self = Set(newValue) }
    }
}

extension RetryConfiguration.Condition: ConfigurationValue, Spelling {
    /// A word, or a status code.
    package init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        let text = try node.scalar(expecting: "a condition").text
        guard let value = Self(rawValue: text) else {
            throw node.error(.configBadValue, notOneOf(Self.allCases.map(\.rawValue), text))
        }
        self = value
    }
}
