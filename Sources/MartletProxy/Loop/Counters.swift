internal import MartletCore
internal import MartletProvider
internal import MartletResponder

/// Where the counters of a route are.
struct RouteSlot: Sendable, BitwiseCopyable {
    let rawValue: Int32

    @inline(__always)
    static var noRoute: RouteSlot { RouteSlot(rawValue: 0) }
}

/// The counters of one loop.
struct Counters: ~Copyable {
    /// A counter for every possible status.
    private static let statusLimit = 600
    private static let buckets = latencyBounds.count + 1
    /// Far more than the members of all endpoints' request bodies.
    private static let maximumMembers = 1024

    /// A reason and the body member that it is about.
    private struct MemberReason: Hashable {
        let code: ErrorCode
        let pointer: String
    }

    /// The loop's number.
    private let loop: Int
    private(set) var routeNames: [String] = ["-"]
    /// The same as bytes, for the log.
    private(set) var routeTexts: [[UInt8]] = [Array("-".utf8)]
    private var slots: [String: RouteSlot] = [:]
    /// For each route of the configuration, its slot.
    private(set) var routeSlots: [RouteSlot] = []
    private var statuses = FlatList(repeating: 0, count: Counters.statusLimit)
    private var histogram = FlatList(repeating: 0, count: Counters.buckets)
    private var sums = FlatList(repeating: 0, count: 1)
    private(set) var reasons: [ErrorCode] = ["ok"]
    private(set) var reasonTexts: [[UInt8]] = [Array("ok".utf8)]
    /// The body member that a reason is about, for the log; empty for most.
    private(set) var memberTexts: [[UInt8]] = [[]]
    private var reasonCounts = FlatList(repeating: 0, count: 1)
    private var reasonIndex: [ErrorCode: Int32] = [:]
    private var memberIndex: [MemberReason: Int32] = [:]
    var accepted = 0
    var refused = 0
    var displaced = 0
    var tunnelsOpen = 0
    var tunnelsOpened = 0
    var upgradesRefused = 0
    private var tunnelEnds: [Int32: Int] = [:]
    /// Connections that switched to HTTP/2.
    var http2Connections = 0
    /// Those that ended because the peer violated the protocol or a limit.
    var http2Refusals = 0
    var http2Streams = 0
    var http2Resets = 0
    private var proxyHeaderRefusals: [String: Int] = [:]
    /// TLS handshakes by outcome: the version, the version and `resumed`, or a `tls.` code.
    private(set) var handshakes: [String: Int] = [:]

    init(loop: Int = 0) { self.loop = loop }

    /// Assigns every route of a configuration its slot.
    mutating func assignSlots(toRoutes names: [String]) {
        routeSlots.removeAll()
        for name in names { routeSlots.append(slot(of: name)) }
    }

    /// The slot of a route's counters; stable across reloads because it is assigned by name.
    mutating func slot(of route: String) -> RouteSlot {
        if let known = slots[route] { return known }
        let slot = RouteSlot(rawValue: Int32(routeNames.count))
        routeNames.append(route)
        routeTexts.append(Array(route.utf8))
        slots[route] = slot
        statuses.append(0, times: Counters.statusLimit)
        histogram.append(0, times: Counters.buckets)
        sums.append(0)
        return slot
    }

    /// Index of a reason, assigned on first use.
    mutating func reason(_ code: ErrorCode) -> Int32 {
        if let known = reasonIndex[code] { return known }
        let index = addReason(code, member: [])
        reasonIndex[code] = index
        return index
    }

    /// Index of a failure's reason: one for each body member, so that the log can name it.
    mutating func reason(_ failure: Failure) -> Int32 {
        guard let pointer = failure.bodyErrors.first?.pointer, pointer.utf8.count > 1 else {
            return reason(failure.reason)
        }
        let key = MemberReason(code: failure.reason, pointer: pointer)
        if let known = memberIndex[key] { return known }
        guard memberIndex.count < Counters.maximumMembers else { return reason(failure.reason) }
        // Member names are the gateway's or a provider's; the log writes them unescaped.
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
    mutating func count(route: RouteSlot, status: Int, reason: Int32, microseconds: Int) {
        let slot = Int(route.rawValue)
        statuses[slot &* Counters.statusLimit &+ min(max(status, 0), Counters.statusLimit &- 1)] &+= 1
        var bucket = 0
        while bucket < latencyBounds.count, microseconds > latencyBounds[bucket] { bucket &+= 1 }
        histogram[slot &* Counters.buckets &+ bucket] &+= 1
        sums[slot] &+= microseconds
        if reason != 0 { reasonCounts[Int(reason)] &+= 1 }
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
    mutating func proxyHeaderRejected(_ code: ErrorCode) { proxyHeaderRefusals[code.rawValue, default: 0] += 1 }

    /// All counters.
    func report() -> LoopReport {
        var report = LoopReport()
        report.loop = loop
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
