/// The counters of one loop since it started, as plain numbers.
package struct LoopReport: Sendable {
    /// One row of requests: route, status, count.
    package struct Requests: Sendable {
        package let route: String
        package let status: Int
        package let count: Int

        package init(route: String, status: Int, count: Int) {
            self.route = route
            self.status = status
            self.count = count
        }
    }

    package var loop = 0
    package var requests: [Requests] = []
    /// Rejections by the gateway, by reason.
    package var reasons: [String: Int] = [:]
    /// Per route: requests per latency bucket, the sum in microseconds.
    package var latency: [(route: String, buckets: [Int], sumMicroseconds: Int)] = []
    package var tokenHits = 0
    package var tokenMisses = 0
    package var tokenEntries = 0
    package var openConnections = 0
    package var acceptedConnections = 0
    package var refusedConnections = 0
    /// Connections that were closed for others at the connection limit.
    package var displacedConnections = 0
    /// Connections that switched to HTTP/2, and those that ended because the peer violated the protocol or a limit.
    package var http2Connections = 0
    package var http2Refusals = 0
    package var openHTTP2Connections = 0
    /// Requests on HTTP/2 streams, and those of them that the client reset.
    package var http2Streams = 0
    package var http2Resets = 0
    package var openStreams = 0
    /// Connections closed because of a missing or invalid PROXY protocol header, by reason.
    package var proxyHeaderRefusals: [String: Int] = [:]
    /// TLS handshakes with clients: by version, by version and `resumed`, or by the `tls.` code of a failure.
    package var handshakes: [String: Int] = [:]
    package var openExchanges = 0
    package var openTunnels = 0
    package var openedTunnels = 0
    package var refusedUpgrades = 0
    /// How tunnels ended, by reason.
    package var tunnelEnds: [String: Int] = [:]
    /// Per upstream endpoint.
    package var endpoints: [EndpointReport] = []

    package init() {}
}

/// The state of one upstream endpoint in one loop.
package struct EndpointReport: Sendable {
    package let upstream: String
    package let endpoint: String
    package let idle: Int
    package let active: Int
    package let failures: Int
    package let isEjected: Bool

    package init(upstream: String, endpoint: String, idle: Int, active: Int, failures: Int, isEjected: Bool) {
        self.upstream = upstream
        self.endpoint = endpoint
        self.idle = idle
        self.active = active
        self.failures = failures
        self.isEjected = isEjected
    }
}

/// The upper bounds of the latency histogram, in microseconds; the last bucket is open.
package let latencyBounds: [Int] = [
    100, 250, 500, 1000, 2500, 5000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000, 5_000_000,
    10_000_000,
]
