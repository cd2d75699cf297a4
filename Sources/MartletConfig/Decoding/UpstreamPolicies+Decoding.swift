extension UpstreamPolicies {
    /// The keys of an upstream that they are read from.
    static var keys: [ConfigurationGrammar.Key] {
        [
            .optional("dns", .block(of: ResolutionConfiguration.self), "How host names are resolved."),
            .optional(
                "health_check", .block(of: HealthCheckConfiguration.self),
                "Requests that find out whether an endpoint works; none if absent."),
            .optional(
                "outlier", .block(of: OutlierConfiguration.self),
                "When endpoints that fail requests are taken out of use for a while."),
            .optional(
                "slow_start", .duration,
                "How long the share of an endpoint grows that has become healthy or was added."),
            .optional(
                "breaker", .block(of: BreakerConfiguration.self),
                "Bounds on connections and requests, over all event loops; none if absent."),
            .optional("retries", .block(of: RetryConfiguration.self), "When a request is sent again."),
            .optional(
                "panic_threshold", Percentage.shape, default: "50%",
                "The share of usable endpoints below which all are used; `0%` is never. "
                    + "Without this key, `health_check` and `outlier`, never."),
            .optional(
                "drain", .duration, default: "30s",
                "How long an endpoint that has left the file finishes its requests; then they are cut off."),
        ]
    }

    init(
        from reader: inout ConfigurationReader, endpoints: [EndpointConfiguration], transport: UpstreamTransport
    ) {
        self.init()
        resolution = reader.block("dns") ?? resolution
        healthCheck = reader.block("health_check")
        outlier = reader.block("outlier")
        slowStart = reader.optional("slow_start", in: Duration.seconds(1)...Duration.seconds(3600))
        breaker = reader.block("breaker")
        retries = reader.block("retries")
        panicThreshold = reader.optional("panic_threshold", in: Percentage(0)...Percentage(100))
        drain = reader.optional("drain", default: drain, in: Duration.zero...Duration.seconds(86_400))
        checkProbes(of: endpoints, transport, &reader)
    }

    /// Records contradictions between `health_check` and the endpoints.
    private func checkProbes(
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

extension EndpointConfiguration: ConfigurationValue {
    /// A URL, or a block of `url`, `weight` and `backup`.
    package init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        guard node.entries != nil else {
            self.init(try Located<EndpointAddress>(decoding: node))
            return
        }
        var diagnostics = Diagnostics()
        guard let block = node.decode(Block.self, title: "an endpoint", into: &diagnostics) else {
            throw ConfigurationError(diagnostics.errors)
        }
        self = block.endpoint
    }

    /// An endpoint with more than its URL.
    struct Block: ConfigurationDecodable {
        let endpoint: EndpointConfiguration

        static var grammar: ConfigurationGrammar? {
            .init([
                .required("url", .text, "As an endpoint that is only a URL."),
                .optional(
                    "weight", .integer(0...EndpointConfiguration.maximumWeight), default: "1",
                    "Its share of the requests, in relation to the others; `0` gets none and is still probed."),
                .optional("backup", .boolean, default: "false", "Whether it is used only while no other is usable."),
            ])
        }

        init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
            let weight = reader.optional("weight", default: 1, in: 0...EndpointConfiguration.maximumWeight)
            let isBackup = reader.optional("backup", default: false)
            var endpoint = EndpointConfiguration(try reader.required("url"))
            (endpoint.weight, endpoint.isBackup) = (weight, isBackup)
            self.endpoint = endpoint
        }
    }
}

extension ResolutionConfiguration: ConfigurationDecodable {
    package static var grammar: ConfigurationGrammar? {
        .init([
            .optional(
                "refresh", .duration, default: "30s",
                "The longest time between two lookups of a name; the TTL of its records if that is shorter."),
            .optional(
                "family", .choice(Family.allCases.map(\.rawValue)), default: "any", "Which addresses are used."),
            .optional(
                "all_addresses", .boolean, default: "true",
                "Whether every address of a name is an endpoint of its own, or the first one alone."),
        ])
    }

    package init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        self.init()
        refresh = reader.optional("refresh", default: refresh, in: Duration.seconds(1)...Duration.seconds(86_400))
        family = reader.optional("family", default: family)
        usesAllAddresses = reader.optional("all_addresses", default: true)
    }
}

extension ResolutionConfiguration.Family: ConfigurationValue {}

extension HealthCheckConfiguration: ConfigurationDecodable {
    package static var grammar: ConfigurationGrammar? {
        .init([
            .optional("path", .pattern("^/"), default: "/", "Path and query of the probe."),
            .optional("interval", .duration, default: "5s", "From one probe of an endpoint to the next, at most."),
            .optional(
                "timeout", .duration, default: "1s",
                "For a whole probe; at most `interval`, which is also the default where it is shorter."),
            .optional(
                "healthy", .integer(1...100), default: "2",
                "Successes in a row after which an unhealthy endpoint is used again."),
            .optional(
                "unhealthy", .integer(1...100), default: "3",
                "Failures in a row after which an endpoint is not used any more."),
            .optional(
                "expect", .list(.text, nonEmpty: true), default: "[200-399]", "Status codes of a success, or ranges."),
            .optional(
                "host", .text, "`Host` of the probe; without it the endpoint's name, and the port that is probed."),
            .optional("port", .integer(1...65535), "The port to probe; the endpoint's if absent."),
            .optional(
                "grpc", .boolean, default: "false", "Calls `grpc.health.v1.Health/Check` instead of a GET of `path`."),
            .optional(
                "jitter", Percentage.shape, default: "20%", "By how much an interval is shortened at random, at most."),
        ])
    }

    package init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        self.init()
        let range = Duration.milliseconds(100)...Duration.seconds(3600)
        interval = reader.optional("interval", default: interval, in: range)
        let timeout = reader.optional("timeout", as: Located<Duration>.self)
        self.timeout = timeout?.value ?? min(self.timeout, interval)
        if let timeout, !(Duration.milliseconds(1)...interval).contains(timeout.value) {
            reader.error(
                .configBadDuration, at: timeout.location,
                "timeout: must be between 1ms and interval, \(interval.configurationText), "
                    + "not \(timeout.value.configurationText)")
        }
        healthy = reader.optional("healthy", default: healthy, in: 1...100)
        unhealthy = reader.optional("unhealthy", default: unhealthy, in: 1...100)
        if let ranges = reader.optional("expect", as: NonEmpty<StatusRange>.self) { expected = ranges.map(\.range) }
        host = reader.optional("host", as: HostText.self)?.text
        port = reader.optional("port", in: 1...65535).map { UInt16($0) }
        isGRPC = reader.optional("grpc", default: false)
        jitter = reader.optional("jitter", default: jitter, in: Percentage(0)...Percentage(50))
        if let text = reader.optional("path", as: Located<String>.self) { path = checked(text, &reader) }
        if isGRPC {
            for key in ["path", "expect"] {
                guard let node = reader.node(key) else { continue }
                reader.error(.configConflictingKeys, at: node.location, "\(key): grpc decides by its own status")
            }
        }
    }

    private func checked(_ path: Located<String>, _ reader: inout ConfigurationReader) -> String {
        if !path.value.hasPrefix("/") || !path.value.utf8.allSatisfy({ (0x21...0x7E).contains($0) && $0 != 0x23 }) {
            reader.error(
                .configBadValue, at: path.location,
                "path: must begin with / and have no spaces, fragment or other characters than ASCII, "
                    + "not \(quoted(path.value))")
        }
        return path.value
    }

    /// `204` or `200-399`.
    private struct StatusRange: ConfigurationValue {
        let range: ClosedRange<Int>

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
            range = first...last
        }
    }

    /// A host with or without a port.
    private struct HostText: ConfigurationValue {
        let text: String

        init(decoding node: ConfigurationNode) throws(ConfigurationError) {
            text = try node.text()
            guard HostAndPort.parse(Array(text.utf8)) != nil else {
                throw node.error(.configBadValue, "must be a host name, with or without a port, not \(quoted(text))")
            }
        }
    }
}

extension OutlierConfiguration: ConfigurationDecodable {
    package static var grammar: ConfigurationGrammar? {
        .init([
            .optional(
                "consecutive_failures", .integer(1...1000), default: "5",
                "Failures in a row after which an endpoint is ejected; a refused connection ejects it immediately."),
            .optional(
                "error_rate", Percentage.shape, default: "50%",
                "The share of failures in a window from which an endpoint is ejected."),
            .optional(
                "minimum_requests", .integer(1...1_000_000), default: "100",
                "Requests in a window below which its error rate decides nothing."),
            .optional("window", .duration, default: "30s", "How long failures count for the error rate."),
            .optional(
                "base_ejection", .duration, default: "1s", "The first ejection; each further one is twice as long."),
            .optional("max_ejection", .duration, default: "60s", "The longest ejection; at least `base_ejection`."),
            .optional(
                "max_ejected", Percentage.shape, default: "50%",
                "The largest share of endpoints that are out of use at a time, unhealthy and drained ones included; "
                    + "of two or more, one may always be ejected."),
        ])
    }

    package init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        self.init()
        let range = Duration.milliseconds(10)...Duration.seconds(86_400)
        consecutiveFailures = reader.optional("consecutive_failures", default: consecutiveFailures, in: 1...1000)
        errorRate = reader.optional("error_rate", default: errorRate, in: Percentage(1)...Percentage(100))
        minimumRequests = reader.optional("minimum_requests", default: minimumRequests, in: 1...1_000_000)
        window = reader.optional("window", default: window, in: Duration.seconds(1)...Duration.seconds(3600))
        baseEjection = reader.optional("base_ejection", default: baseEjection, in: range)
        let longest = reader.optional("max_ejection", as: Located<Duration>.self)
        maximumEjection = longest?.value ?? max(maximumEjection, baseEjection)
        if let longest, !(baseEjection...range.upperBound).contains(longest.value) {
            reader.error(
                .configBadDuration, at: longest.location,
                "max_ejection: must be between base_ejection, \(baseEjection.configurationText), and 1d, "
                    + "not \(longest.value.configurationText)")
        }
        maximumEjected = reader.optional("max_ejected", default: maximumEjected, in: Percentage(0)...Percentage(100))
    }
}

extension BreakerConfiguration: ConfigurationDecodable {
    package static var grammar: ConfigurationGrammar? {
        .init([
            .optional("max_connections", .integer(1...1_000_000), default: "1000", "Open connections to the upstream."),
            .optional(
                "max_requests", .integer(1...1_000_000), default: "10000",
                "Requests under way; over it, 503 `overloaded`."),
            .optional(
                "max_pending", .integer(0...1_000_000), default: "1000",
                "Requests that wait for a connection; over it, 503 `overloaded`."),
            .optional(
                "queue_timeout", .duration, default: "1s", "How long a request waits for a connection at most."),
        ])
    }

    package init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        self.init()
        maximumConnections = reader.optional("max_connections", default: maximumConnections, in: 1...1_000_000)
        maximumRequests = reader.optional("max_requests", default: maximumRequests, in: 1...1_000_000)
        maximumPending = reader.optional("max_pending", default: maximumPending, in: 0...1_000_000)
        queueTimeout = reader.optional(
            "queue_timeout", default: queueTimeout, in: Duration.milliseconds(1)...Duration.seconds(60))
    }
}

extension RetryConfiguration: ConfigurationDecodable {
    package static var grammar: ConfigurationGrammar? {
        .init([
            .optional("attempts", .integer(0...10), default: "2", "How often a request is sent again; `0` is never."),
            .optional(
                "retry_on", .list(.choice(Condition.allCases.map(\.rawValue)), nonEmpty: true),
                default: "[connect, reset, 502, 503, 504]",
                "After what: no connection, a connection that ended without a response, or a status."),
            .optional(
                "per_try_timeout", .duration,
                "From the end of the request to the head of the response, for each attempt; what it cuts off counts as `reset`."
            ),
            .optional(
                "budget", Percentage.shape, default: "20%",
                "Retries in relation to the requests of the last second, over all event loops."),
            .optional(
                "min_per_second", .integer(0...100_000), default: "3", "Retries that each second may have in any case."),
            .optional(
                "backoff", .duration, default: "25ms",
                "Before the first retry of a request, at random between half and all of it; it doubles with each."),
        ])
    }

    package init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        self.init()
        attempts = reader.optional("attempts", default: attempts, in: 0...10)
        if let list = reader.optional("retry_on", as: NonEmpty<Condition>.self) { conditions = Set(list) }
        perTryTimeout = reader.optional("per_try_timeout", in: Duration.positive)
        budget = reader.optional("budget", default: budget, in: Percentage(0)...Percentage(100))
        minimumPerSecond = reader.optional("min_per_second", default: minimumPerSecond, in: 0...100_000)
        backoff = reader.optional("backoff", default: backoff, in: Duration.zero...Duration.seconds(10))
    }
}

extension RetryConfiguration.Condition: ConfigurationValue {
    /// A word, or a status code.
    package init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        let text = try node.scalar(expecting: "a condition").text
        guard let value = Self(rawValue: text) else {
            throw node.error(.configBadValue, notOneOf(Self.allCases.map(\.rawValue), text))
        }
        self = value
    }
}
