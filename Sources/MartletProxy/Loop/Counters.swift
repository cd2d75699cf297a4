internal import MartletCore
internal import MartletDecisions
internal import MartletResponder

/// The counters of one loop.
struct Counters: ~Copyable {
    /// The loop's number.
    private let loop: Int
    var routes = RouteCounters()
    private(set) var reasons = ReasonCounters()
    var peers = PeerCounters()
    // Counted as they are reported; of HTTP/2 and of connections the loop adds how many are open.
    var connections = LoopReport.Connections()
    var http2 = LoopReport.HTTP2()
    var tunnels = LoopReport.Tunnels()
    /// How tunnels ended, by the index of the reason.
    private var tunnelEnds: [Int32: Int] = [:]
    /// TLS handshakes by outcome: the version, the version and `resumed`, or a `tls.` code.
    private(set) var handshakes: [String: Int] = [:]

    init(loop: Int = 0) { self.loop = loop }

    /// Assigns every route of a configuration its slot.
    mutating func assignSlots(toRoutes names: [String]) { routes.assignSlots(toRoutes: names) }

    /// Index of a reason, assigned on first use.
    mutating func reason(_ code: ErrorCode) -> Int32 { reasons.index(of: code) }

    /// Index of a failure's reason: one for each body member, so that the log can name it.
    mutating func reason(_ failure: Failure) -> Int32 { reasons.index(of: failure) }

    /// Counts one finished request.
    /// - Parameters:
    ///   - upstream: the index of the upstream; negative for none.
    ///   - provider: the number of the provider; negative for none.
    mutating func count(
        route: RouteSlot, status: Int, reason: Int32, microseconds: Int, upstream: Int = -1, provider: Int = -1
    ) {
        let bucket = routes.count(route, status: status, microseconds: microseconds)
        reasons.count(reason)
        peers.count(upstream: upstream, provider: provider, status: status, bucket: bucket, microseconds: microseconds)
    }

    /// Counts a tunnel that ended, by the index of its reason.
    mutating func countClosedTunnel(reason: Int32) { tunnelEnds[reason, default: 0] &+= 1 }

    /// Counts a completed TLS handshake.
    mutating func handshakeCompleted(_ version: String, isResumed: Bool) {
        handshakes[isResumed ? "\(version) resumed" : version, default: 0] += 1
    }

    /// Counts a TLS handshake that failed.
    mutating func handshakeFailed(_ code: ErrorCode) { handshakes[code.rawValue, default: 0] += 1 }

    /// Counts a connection whose PROXY protocol header was missing or invalid.
    mutating func proxyHeaderRejected(_ code: ErrorCode) {
        connections.proxyHeaderRejections[code.rawValue, default: 0] += 1
    }

    /// All counters.
    func report() -> LoopReport {
        var report = LoopReport()
        report.loop = loop
        routes.add(to: &report)
        reasons.add(to: &report)
        report.connections = connections
        report.http2 = http2
        report.tunnels = tunnels
        for (reason, count) in tunnelEnds { report.tunnels.ends[reasons.codes[Int(reason)].rawValue] = count }
        report.handshakes = handshakes
        return report
    }
}
