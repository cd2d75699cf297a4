/// The counters of one loop since it started, as plain numbers.
package struct LoopReport: Sendable {
    /// One row of requests: route, status, whether they were checks of a proxy, count.
    package struct Requests: Sendable {
        package let route: String
        package let status: Int
        package let isCheck: Bool
        package let count: Int

        package init(route: String, status: Int, isCheck: Bool = false, count: Int) {
            self.route = route
            self.status = status
            self.isCheck = isCheck
            self.count = count
        }
    }

    /// Requests that were forwarded to an upstream.
    package struct Upstream: Sendable {
        package let name: String
        package let requests: Int
        package let errors: Int
        package let buckets: [Int]
        package let sumMicroseconds: Int

        package init(name: String, requests: Int, errors: Int, buckets: [Int], sumMicroseconds: Int) {
            (self.name, self.requests, self.errors) = (name, requests, errors)
            (self.buckets, self.sumMicroseconds) = (buckets, sumMicroseconds)
        }
    }

    package var loop = 0
    package var requests: [Requests] = []
    /// Rejections by the gateway, by reason.
    package var reasons: [String: Int] = [:]
    /// Per route: requests per latency bucket, the sum in microseconds.
    package var latency: [(route: String, buckets: [Int], sumMicroseconds: Int)] = []
    /// Per upstream: requests that were forwarded to it, those that got 5xx, and their durations.
    package var upstreams: [Upstream] = []
    /// Requests with a credential of each provider.
    package var providers: [String: Int] = [:]
    /// Sampled requests, as examples of latency buckets.
    package var exemplars: [Exemplar] = []
    package var openExchanges = 0
    package var tokens = Tokens()
    package var connections = Connections()
    /// TLS handshakes with clients: by version, by version and `resumed`, or by the `tls.` code of a failure.
    package var handshakes: [String: Int] = [:]
    package var http2 = HTTP2()
    package var tunnels = Tunnels()
    package var overload = Overload()
    /// Per upstream endpoint.
    package var endpoints: [EndpointReport] = []

    package init() {}
}

/// The groups of counters. Each counter has a row in the table of metrics (`MetricsTable.swift`), by which loops are
/// added up.
extension LoopReport {
    /// A sampled request, as an example of those in its bucket of the latency histogram.
    package struct Exemplar: Sendable, Equatable {
        package let route: String
        package let bucket: Int
        /// The ID of its trace.
        package let trace: String
        package let microseconds: Int
        /// When it ended.
        package let unixMilliseconds: Int64

        package init(route: String, bucket: Int, trace: String, microseconds: Int, unixMilliseconds: Int64) {
            (self.route, self.bucket, self.trace) = (route, bucket, trace)
            (self.microseconds, self.unixMilliseconds) = (microseconds, unixMilliseconds)
        }
    }

    /// Cached authentication decisions.
    package struct Tokens: Sendable {
        package var hits = 0
        package var misses = 0
        package var entries = 0

        package init() {}
    }

    /// Connections of clients.
    package struct Connections: Sendable {
        package var open = 0
        package var accepted = 0
        /// Connections that were closed immediately because a limit was reached.
        package var refused = 0
        /// Connections that were closed for others at the connection limit.
        package var displaced = 0
        /// Connections closed because of a missing or invalid PROXY protocol header, by reason.
        package var proxyHeaderRejections: [String: Int] = [:]

        package init() {}
    }

    /// Connections of clients with HTTP/2, and their streams.
    package struct HTTP2: Sendable {
        package var openConnections = 0
        /// Connections that switched to HTTP/2.
        package var connections = 0
        /// Those that ended because the peer violated the protocol or a limit.
        package var errors = 0
        package var openStreams = 0
        /// Requests on HTTP/2 streams, and those of them that the client reset.
        package var streams = 0
        package var resets = 0

        package init() {}
    }

    /// Events that waited too long.
    package struct Overload: Sendable {
        package var slowTurns = 0
        package var overloadedLoops = 0

        package init() {}
    }

    /// WebSockets and other upgraded connections.
    package struct Tunnels: Sendable {
        package var open = 0
        package var opened = 0
        /// Upgrade requests that were rejected.
        package var rejectedUpgrades = 0
        /// How tunnels ended, by reason.
        package var ends: [String: Int] = [:]

        package init() {}
    }
}

/// The state of one upstream endpoint in one loop.
package struct EndpointReport: Sendable {
    package let upstream: String
    package let endpoint: String
    package let idle: Int
    package let active: Int
    package let failures: Int
    package let isEjected: Bool
    /// The address of a host name that it is.
    package var address: String?
    package var weight = 1
    package var isBackup = false
    /// Whether all endpoints of its upstream are used, since too few are usable.
    package var isPanicking = false
    package var state = State.healthy
    /// Why it has its state, in words; may be empty.
    package var reason = ""
    /// For how long it has had its state, in nanoseconds; `nil` if that is not known.
    package var age: Int64?

    /// What an endpoint is used for.
    package enum State: String, Sendable, Comparable, CaseIterable {
        case healthy
        case slowStart = "slow_start"
        case ejected, unhealthy, draining

        /// Worse states are greater.
        package static func < (left: State, right: State) -> Bool {
            (allCases.firstIndex(of: left) ?? 0) < (allCases.firstIndex(of: right) ?? 0)
        }
    }

    package init(upstream: String, endpoint: String, idle: Int, active: Int, failures: Int, isEjected: Bool) {
        self.upstream = upstream
        self.endpoint = endpoint
        self.idle = idle
        self.active = active
        self.failures = failures
        self.isEjected = isEjected
    }
}

/// What one rate limit has counted since it was configured.
package struct LimitReport: Sendable {
    package let name: String
    /// Requests that it has let pass, and that it has rejected.
    package let admitted: Int
    package let limited: Int
    /// Keys that have a bucket, and buckets that were taken over by another key before they were full.
    package let entries: Int
    package let evictions: Int

    package init(name: String, admitted: Int, limited: Int, entries: Int, evictions: Int) {
        (self.name, self.admitted, self.limited) = (name, admitted, limited)
        (self.entries, self.evictions) = (entries, evictions)
    }
}
