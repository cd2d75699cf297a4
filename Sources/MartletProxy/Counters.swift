internal import MartletCore
internal import MartletProvider

/// What one loop counted since it began; plain numbers, read by message.
package struct LoopReport: Sendable {
    /// One row of requests: route, status, how many.
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
    /// How requests that the gateway answered itself were refused, by reason.
    package var reasons: [String: Int] = [:]
    /// Per route: requests per latency bucket, the sum in microseconds.
    package var latency: [(route: String, buckets: [Int], sumMicroseconds: Int)] = []
    package var tokenHits = 0
    package var tokenMisses = 0
    package var tokenEntries = 0
    package var openConnections = 0
    package var acceptedConnections = 0
    package var refusedConnections = 0
    /// Connections that were closed because their places were needed.
    package var displacedConnections = 0
    /// Connections that went over to HTTP/2, and those that ended because the peer broke its rules or bounds.
    package var http2Connections = 0
    package var http2Refusals = 0
    package var openHTTP2Connections = 0
    /// Requests that came as streams of HTTP/2, and those of them that the client took back.
    package var http2Streams = 0
    package var http2Resets = 0
    package var openStreams = 0
    /// Connections closed for want of a PROXY protocol header, by reason.
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

/// How one endpoint of an upstream is, as one loop sees it.
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

/// The counters of one loop.
struct Counters: ~Copyable {
    /// A place for every status there can be.
    private static let statusLimit = 600
    private static let buckets = latencyBounds.count + 1
    /// Far more than the members of all endpoints' bodies.
    private static let mostMembers = 1024

    /// A reason and the member that it is about.
    private struct MemberReason: Hashable {
        let code: ErrorCode
        let pointer: String
    }

    private(set) var routeNames: [String] = ["-"]
    /// The same as bytes, for the log.
    private(set) var routeTexts: [[UInt8]] = [Array("-".utf8)]
    private var slots: [String: Int32] = [:]
    private var statuses = FlatList(repeating: 0, count: Counters.statusLimit)
    private var histogram = FlatList(repeating: 0, count: Counters.buckets)
    private var sums = FlatList(repeating: 0, count: 1)
    private(set) var reasons: [ErrorCode] = ["ok"]
    private(set) var reasonTexts: [[UInt8]] = [Array("ok".utf8)]
    /// The member of a body that a reason is about, for the log; empty for most.
    private(set) var memberTexts: [[UInt8]] = [[]]
    private var reasonCounts = FlatList(repeating: 0, count: 1)
    private var reasonIndex: [ErrorCode: Int32] = [:]
    private var memberIndex: [MemberReason: Int32] = [:]
    var tokenHits = 0
    var tokenMisses = 0
    var accepted = 0
    var refused = 0
    var displaced = 0
    var tunnelsOpen = 0
    var tunnelsOpened = 0
    var upgradesRefused = 0
    private var tunnelEnds: [Int32: Int] = [:]
    /// Connections that went over to HTTP/2.
    var http2Connections = 0
    /// Of these, the ones that ended because the peer broke the protocol or its bounds.
    var http2Refusals = 0
    var http2Streams = 0
    var http2Resets = 0
    private var proxyHeaderRefusals: [String: Int] = [:]
    /// TLS handshakes by how they ended: the version, the version and `resumed`, or a `tls.` code.
    private(set) var handshakes: [String: Int] = [:]

    /// The place of a route's counts; stable across reloads because it goes by name.
    mutating func slot(of route: String) -> Int32 {
        if let known = slots[route] { return known }
        let slot = Int32(routeNames.count)
        routeNames.append(route)
        routeTexts.append(Array(route.utf8))
        slots[route] = slot
        statuses.append(0, times: Counters.statusLimit)
        histogram.append(0, times: Counters.buckets)
        sums.append(0)
        return slot
    }

    /// The number of a reason, made on first sight.
    mutating func reason(_ code: ErrorCode) -> Int32 {
        if let known = reasonIndex[code] { return known }
        let index = addReason(code, member: [])
        reasonIndex[code] = index
        return index
    }

    /// The number of why a request was refused: one for each member of a body, so that the log can name it.
    mutating func reason(_ failure: Failure) -> Int32 {
        guard let pointer = failure.bodyErrors.first?.pointer, pointer.utf8.count > 1 else {
            return reason(failure.reason)
        }
        let key = MemberReason(code: failure.reason, pointer: pointer)
        if let known = memberIndex[key] { return known }
        guard memberIndex.count < Counters.mostMembers else { return reason(failure.reason) }
        // Names of members are ours or a provider's; the log takes them as they are.
        let member = pointer.utf8.dropFirst().prefix(64).map { byte in
            (0x21...0x7E).contains(byte) && byte != 0x22 && byte != 0x5C ? byte : 0x3F
        }
        let index = addReason(failure.reason, member: member)
        memberIndex[key] = index
        return index
    }

    private mutating func addReason(_ code: ErrorCode, member: [UInt8]) -> Int32 {
        let index = Int32(reasons.count)
        reasons.append(code)
        reasonTexts.append(Array(code.rawValue.utf8))
        memberTexts.append(member)
        reasonCounts.append(0)
        return index
    }

    /// Counts one finished request.
    mutating func count(route: Int32, status: Int, reason: Int32, microseconds: Int) {
        let slot = Int(route)
        statuses[slot &* Counters.statusLimit &+ min(max(status, 0), Counters.statusLimit &- 1)] &+= 1
        var bucket = 0
        while bucket < latencyBounds.count, microseconds > latencyBounds[bucket] { bucket &+= 1 }
        histogram[slot &* Counters.buckets &+ bucket] &+= 1
        sums[slot] &+= microseconds
        if reason != 0 { reasonCounts[Int(reason)] &+= 1 }
    }

    /// Counts a tunnel that ended, by the number of its reason.
    mutating func countTunnelEnd(reason: Int32) { tunnelEnds[reason, default: 0] &+= 1 }

    /// Counts a TLS handshake that is through.
    mutating func handshakeDone(_ version: String, isResumed: Bool) {
        handshakes[isResumed ? "\(version) resumed" : version, default: 0] += 1
    }

    /// Counts a TLS handshake that failed.
    mutating func handshakeFailed(_ code: ErrorCode) { handshakes[code.rawValue, default: 0] += 1 }

    /// Counts a connection that did not begin with the PROXY protocol header that it had to begin with.
    mutating func proxyHeaderRefused(_ code: ErrorCode) { proxyHeaderRefusals[code.rawValue, default: 0] += 1 }

    /// Everything counted so far.
    func report() -> LoopReport {
        var report = LoopReport()
        for (slot, name) in routeNames.enumerated() {
            let first = slot * Counters.statusLimit
            for status in 0..<Counters.statusLimit where statuses[first + status] > 0 {
                report.requests.append(.init(route: name, status: status, count: statuses[first + status]))
            }
            var row: [Int] = []
            for bucket in slot * Counters.buckets..<(slot + 1) * Counters.buckets { row.append(histogram[bucket]) }
            if row.contains(where: { $0 > 0 }) { report.latency.append((name, row, sums[slot])) }
        }
        for (index, code) in reasons.enumerated() where reasonCounts[index] > 0 {
            report.reasons[code.rawValue, default: 0] &+= reasonCounts[index]
        }
        report.tokenHits = tokenHits
        report.tokenMisses = tokenMisses
        report.acceptedConnections = accepted
        report.refusedConnections = refused
        report.displacedConnections = displaced
        report.openTunnels = tunnelsOpen
        report.openedTunnels = tunnelsOpened
        report.refusedUpgrades = upgradesRefused
        for (reason, count) in tunnelEnds { report.tunnelEnds[reasons[Int(reason)].rawValue] = count }
        report.http2Connections = http2Connections
        report.http2Refusals = http2Refusals
        report.http2Streams = http2Streams
        report.http2Resets = http2Resets
        report.proxyHeaderRefusals = proxyHeaderRefusals
        report.handshakes = handshakes
        return report
    }
}
