internal import MartletCore
internal import MartletJSON

/// What something has counted since the start.
struct CounterSample: Sendable, Equatable {
    var count = 0
    var errors = 0
    /// Those that a cache served; `nil` if nothing is cached.
    var hits: Int?
    /// By duration, as ``LatencyHistogram`` counts them; empty if durations are not known.
    var buckets: [Int] = []

    init(count: Int = 0, errors: Int = 0, hits: Int? = nil, buckets: [Int] = []) {
        (self.count, self.errors, self.hits, self.buckets) = (count, errors, hits, buckets)
    }

    init(_ calls: CallCounts) {
        self.init(count: calls.calls, errors: calls.failures, buckets: calls.buckets)
    }

    /// What was counted since an earlier sample; all of it if the counters have begun again.
    func since(_ earlier: CounterSample?) -> CounterSample {
        guard let earlier, earlier.count <= count, earlier.errors <= errors, earlier.buckets.count == buckets.count,
            zip(earlier.buckets, buckets).allSatisfy({ $0 <= $1 })
        else { return self }
        var difference = self
        difference.count -= earlier.count
        difference.errors -= earlier.errors
        difference.hits = hits.map { max($0 - (earlier.hits ?? 0), 0) }
        difference.buckets = zip(buckets, earlier.buckets).map { $0 - $1 }
        return difference
    }

    mutating func add(_ other: CounterSample) {
        count += other.count
        errors += other.errors
        if let more = other.hits { hits = (hits ?? 0) + more }
        guard buckets.count == other.buckets.count else {
            if buckets.isEmpty { buckets = other.buckets }
            return
        }
        for (index, count) in other.buckets.enumerated() { buckets[index] += count }
    }
}

/// What counters belong to.
enum CounterKey: Hashable, Sendable {
    case all
    case route(String)
    case upstream(String)
    case provider(String)
    case store, accounts
}

/// The counters of the last ten minutes: samples every 2 s, of which older ones are farther apart.
///
/// It gets the time, so that tests can let it pass.
struct CounterHistory: Sendable {
    static let interval = Duration.seconds(2)
    static let windows: [(name: String, length: Duration)] = [
        ("10s", .seconds(10)), ("1m", .seconds(60)), ("10m", .seconds(600)),
    ]

    private typealias Samples = [CounterKey: CounterSample]

    /// The newest samples of one window, at least a step apart.
    private struct Ring: Sendable {
        let step: Duration
        let length: Duration
        private(set) var entries: [(at: MonotonicTime, samples: Samples)] = []

        init(step: Duration, length: Duration) { (self.step, self.length) = (step, length) }

        mutating func record(_ samples: Samples, at now: MonotonicTime) {
            // A sample is a moment late, never early.
            if let last = entries.last, now.since(last.at) + .milliseconds(500) < step { return }
            entries.append((now, samples))
            // The first one that is old enough begins the window.
            while entries.count > 1, now.since(entries[1].at) >= length { entries.removeFirst() }
        }
    }

    private var rings = [
        Ring(step: .seconds(2), length: .seconds(10)), Ring(step: .seconds(10), length: .seconds(60)),
        Ring(step: .seconds(60), length: .seconds(600)),
    ]

    /// How many samples it holds, over all windows.
    var sampleCount: Int { rings.reduce(0) { $0 + $1.entries.count } }

    /// Records what everything has counted by now.
    mutating func record(_ samples: [CounterKey: CounterSample], at now: MonotonicTime) {
        for index in rings.indices { rings[index].record(samples, at: now) }
    }

    /// What something has counted in every window, whose value is `current`.
    func last(_ key: CounterKey, current: CounterSample, at now: MonotonicTime) -> JSONObject {
        var document = JSONObject()
        for (window, ring) in zip(Self.windows, rings) {
            let start = ring.entries.last { now.since($0.at) >= window.length } ?? ring.entries.first
            let seconds = start.map { Double(now.since($0.at).wholeMilliseconds) / 1000 } ?? 0
            document[window.name] = .object(
                Self.summary(of: current.since(start.map { $0.samples[key] ?? CounterSample() } ?? nil), seconds))
        }
        return document
    }

    /// - Parameter seconds: how long it was counted; 0 if there is no sample before it.
    private static func summary(of counted: CounterSample, _ seconds: Double) -> JSONObject {
        var histogram = LatencyHistogram()
        histogram.add(counted.buckets, sumMicroseconds: 0)
        func milliseconds(_ share: Double) -> JSONValue {
            histogram.quantile(share).map { number($0 / 1000) } ?? .null
        }
        return [
            "rate": number(seconds > 0 ? Double(counted.count) / seconds : 0),
            "errors": .integer(Int64(counted.errors)), "p50_ms": milliseconds(0.5), "p99_ms": milliseconds(0.99),
            "hits": counted.hits.map { .integer(Int64($0)) } ?? .null,
        ]
    }

    private static func number(_ value: Double) -> JSONValue {
        JSONNumber((value * 1000).rounded() / 1000).map { .number($0) } ?? .null
    }
}
