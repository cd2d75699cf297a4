internal import MartletProxy

/// The counters of all loops, summed.
struct Traffic {
    /// How often a route answered with a status.
    struct Row: Hashable {
        let route: String
        let status: Int
    }

    /// One endpoint of an upstream.
    struct Place: Hashable {
        let upstream: String
        let endpoint: String
    }

    /// How an endpoint is, over all loops.
    struct Endpoint {
        var idle = 0
        var active = 0
        var failures = 0
        /// Loops that leave it out for now.
        var ejectingLoops = 0
    }

    private(set) var requests = Tally<Row, Int>()
    private(set) var refusals: [(reason: String, count: Int)] = []
    private(set) var latency = Tally<String, LatencyHistogram>()
    private(set) var endpoints = Tally<Place, Endpoint>()
    private(set) var tokenHits = 0
    private(set) var tokenMisses = 0
    private(set) var tokenEntries = 0
    private(set) var openConnections = 0
    private(set) var acceptedConnections = 0
    private(set) var refusedConnections = 0
    private(set) var displacedConnections = 0
    private(set) var openExchanges = 0
    /// Of the open connections, those that speak HTTP/2, and the requests on them.
    private(set) var openHTTP2Connections = 0
    private(set) var openStreams = 0
    private(set) var http2Connections = 0
    private(set) var http2Refusals = 0
    private(set) var http2Streams = 0
    private(set) var http2Resets = 0
    private(set) var handshakes = HandshakeTally()
    private(set) var proxyHeaderRefusals: [String: Int] = [:]
    private(set) var openTunnels = 0
    private(set) var openedTunnels = 0
    private(set) var refusedUpgrades = 0
    private(set) var tunnelEnds: [String: Int] = [:]

    init(_ loops: [LoopReport]) {
        var reasons: [String: Int] = [:]
        for loop in loops {
            for row in loop.requests { requests[Row(route: row.route, status: row.status), default: 0] += row.count }
            for (reason, count) in loop.reasons { reasons[reason, default: 0] += count }
            for row in loop.latency {
                latency[row.route, default: LatencyHistogram()].add(row.buckets, sumMicroseconds: row.sumMicroseconds)
            }
            add(loop.endpoints)
            tokenHits += loop.tokenHits
            tokenMisses += loop.tokenMisses
            tokenEntries += loop.tokenEntries
            openConnections += loop.openConnections
            acceptedConnections += loop.acceptedConnections
            refusedConnections += loop.refusedConnections
            displacedConnections += loop.displacedConnections
            openExchanges += loop.openExchanges
            addWire(loop)
            openTunnels += loop.openTunnels
            openedTunnels += loop.openedTunnels
            refusedUpgrades += loop.refusedUpgrades
            tunnelEnds.merge(loop.tunnelEnds, uniquingKeysWith: +)
        }
        refusals = reasons.map { ($0.key, $0.value) }
            .sorted { ($1.count, $0.reason) < ($0.count, $1.reason) }
    }

    private mutating func addWire(_ loop: LoopReport) {
        openHTTP2Connections += loop.openHTTP2Connections
        openStreams += loop.openStreams
        http2Connections += loop.http2Connections
        http2Refusals += loop.http2Refusals
        http2Streams += loop.http2Streams
        http2Resets += loop.http2Resets
        handshakes.add(loop.handshakes)
        proxyHeaderRefusals.merge(loop.proxyHeaderRefusals, uniquingKeysWith: +)
    }

    private mutating func add(_ reports: [EndpointReport]) {
        var seen: Set<Place> = []
        for report in reports {
            let place = Place(upstream: report.upstream, endpoint: report.endpoint)
            // An endpoint that an upstream names twice is one all the same.
            guard seen.insert(place).inserted else { continue }
            endpoints[place, default: Endpoint()].idle += report.idle
            endpoints[place, default: Endpoint()].active += report.active
            endpoints[place, default: Endpoint()].failures += report.failures
            endpoints[place, default: Endpoint()].ejectingLoops += report.isEjected ? 1 : 0
        }
    }
}

extension Traffic {
    /// Requests of a route, or of all, whose status begins with a digit.
    func count(route: String? = nil, class digit: Int? = nil) -> Int {
        requests.reduce(0) { sum, row in
            let fits = (route == nil || row.key.route == route) && (digit == nil || row.key.status / 100 == digit)
            return fits ? sum + row.value : sum
        }
    }
}

/// A dictionary that keeps the order in which its keys came.
struct Tally<Key: Hashable, Value>: Sequence {
    private var keys: [Key] = []
    private var values: [Key: Value] = [:]

    subscript(key: Key) -> Value? { values[key] }

    subscript(key: Key, default initial: @autoclosure () -> Value) -> Value {
        get { values[key] ?? initial() }
        set {
            if values.updateValue(newValue, forKey: key) == nil { keys.append(key) }
        }
    }

    var isEmpty: Bool { keys.isEmpty }

    func makeIterator() -> AnyIterator<(key: Key, value: Value)> {
        var rest = keys.makeIterator()
        return AnyIterator { rest.next().flatMap { key in values[key].map { (key, $0) } } }
    }
}
