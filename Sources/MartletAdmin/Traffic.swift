internal import MartletResponder

/// The counters of all loops, summed.
struct Traffic {
    /// A route, a response status, and whether a proxy asked.
    struct Row: Hashable {
        let route: String
        let status: Int
        let isCheck: Bool
    }

    struct EndpointKey: Hashable {
        let upstream: String
        let endpoint: String
        /// Of a host name with an endpoint for each address.
        var address: String?
    }

    /// The state of an endpoint, summed over all loops.
    struct Endpoint {
        var idle = 0
        var active = 0
        var failures = 0
        var ejectingLoops = 0
        /// The worst state that a loop knows, why, and for how long in nanoseconds.
        var state = EndpointReport.State.healthy
        var reason = ""
        var age: Int64?
        var weight = 1
        var isBackup = false
        /// A loop uses all endpoints of the upstream, since too few are usable.
        var isPanicking = false

        mutating func add(_ report: EndpointReport) {
            idle += report.idle
            active += report.active
            failures += report.failures
            ejectingLoops += report.isEjected ? 1 : 0
            (weight, isBackup) = (report.weight, report.isBackup)
            isPanicking = isPanicking || report.isPanicking
            guard report.state > state || reason.isEmpty else { return }
            (state, reason, age) = (max(state, report.state), report.reason, report.age)
        }
    }

    /// Requests that were forwarded to an upstream.
    struct Upstream {
        var requests = 0
        var errors = 0
        var latency = LatencyHistogram()
    }

    private(set) var requests = OrderedDictionary<Row, Int>()
    private(set) var rejections: [(reason: String, count: Int)] = []
    private(set) var latency = OrderedDictionary<String, LatencyHistogram>()
    /// The latest example of each bucket of a route.
    private(set) var exemplars: [String: [Int: LoopReport.Exemplar]] = [:]
    private(set) var endpoints = OrderedDictionary<EndpointKey, Endpoint>()
    private(set) var upstreams = OrderedDictionary<String, Upstream>()
    /// Requests with a credential of each provider.
    private(set) var providers: [String: Int] = [:]
    /// What the table of metrics names: those sums, and nothing else.
    private(set) var counts = LoopReport()

    init(_ loops: [LoopReport]) {
        var reasons: [String: Int] = [:]
        for loop in loops {
            for row in loop.requests {
                requests[Row(route: row.route, status: row.status, isCheck: row.isCheck), default: 0] += row.count
            }
            for (reason, count) in loop.reasons { reasons[reason, default: 0] += count }
            for row in loop.latency {
                latency[row.route, default: LatencyHistogram()].add(row.buckets, sumMicroseconds: row.sumMicroseconds)
            }
            for row in loop.upstreams {
                upstreams[row.name, default: Upstream()].requests += row.requests
                upstreams[row.name, default: Upstream()].errors += row.errors
                upstreams[row.name, default: Upstream()].latency.add(
                    row.buckets, sumMicroseconds: row.sumMicroseconds)
            }
            providers.merge(loop.providers, uniquingKeysWith: +)
            for exemplar in loop.exemplars {
                let known = exemplars[exemplar.route]?[exemplar.bucket]
                if known.map({ $0.unixMilliseconds < exemplar.unixMilliseconds }) ?? true {
                    exemplars[exemplar.route, default: [:]][exemplar.bucket] = exemplar
                }
            }
            add(loop.endpoints)
            for family in MetricFamily.all { family.count?.add(loop, to: &counts) }
        }
        rejections = reasons.map { ($0.key, $0.value) }
            .sorted { ($1.count, $0.reason) < ($0.count, $1.reason) }
    }

    private mutating func add(_ reports: [EndpointReport]) {
        var seen: Set<EndpointKey> = []
        for report in reports {
            let key = EndpointKey(upstream: report.upstream, endpoint: report.endpoint, address: report.address)
            // An endpoint that an upstream lists twice counts once.
            guard seen.insert(key).inserted else { continue }
            endpoints[key, default: Endpoint()].add(report)
        }
    }
}

/// A dictionary that keeps the insertion order of its keys.
struct OrderedDictionary<Key: Hashable, Value>: Sequence {
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
