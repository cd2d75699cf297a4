internal import MartletCore
internal import MartletRedis
internal import MartletResponder

/// A row of the table of metrics: everything about one, but where it is counted.
struct MetricFamily: Sendable {
    enum Count: Sendable {
        case number(any WritableKeyPath<LoopReport, Int> & Sendable)
        case byLabel(any WritableKeyPath<LoopReport, [String: Int]> & Sendable)

        func add(_ loop: LoopReport, to sum: inout LoopReport) {
            switch self {
            case .number(let path): sum[keyPath: path] += loop[keyPath: path]
            case .byLabel(let path): sum[keyPath: path].merge(loop[keyPath: path], uniquingKeysWith: +)
            }
        }
    }

    typealias Samples = @Sendable (MetricsSource) -> [MetricSample]?

    let name: String
    let help: String
    /// A counter if its name ends in `_total`, as those of counters do.
    let kind: MetricsWriter.Kind
    let labels: [String]
    /// What is to be added up over the loops for it.
    let count: Count?
    /// `nil` where it is not on the page.
    let samples: Samples

    /// Samples with labels, whose values are in the order of their names.
    init(
        _ name: String, _ help: String, _ kind: MetricsWriter.Kind? = nil, by labels: [String], of count: Count? = nil,
        _ samples: @escaping Samples
    ) {
        (self.name, self.help, self.labels) = (name, help, labels)
        self.kind = kind ?? (name.hasSuffix("_total") ? .counter : .gauge)
        (self.count, self.samples) = (count, samples)
    }

    /// A number of the process; not on the page where it is `nil`.
    init(_ name: String, _ help: String, _ value: @escaping @Sendable (MetricsSource) -> Int?) {
        self.init(name, help, by: []) { source in value(source).map { [MetricSample($0)] } }
    }

    /// A number that each loop counts.
    init(_ name: String, _ help: String, loops path: any WritableKeyPath<LoopReport, Int> & Sendable) {
        self.init(name, help, by: [], of: .number(path)) { [MetricSample($0.loops[keyPath: path])] }
    }

    /// What each loop counts by a label.
    init(
        _ name: String, _ help: String, by label: String,
        loops path: any WritableKeyPath<LoopReport, [String: Int]> & Sendable
    ) {
        self.init(name, help, by: [label], of: .byLabel(path)) { MetricSample.all($0.loops[keyPath: path]) }
    }

    /// Durations by one label, or by none.
    static func histogram(
        _ name: String, _ help: String, by label: String? = nil,
        _ histograms: @escaping @Sendable (MetricsSource) -> [MetricHistogram]?
    ) -> MetricFamily {
        MetricFamily(name, help, .histogram, by: label.map { [$0] } ?? []) { histograms($0)?.flatMap(\.samples) }
    }
}

/// What the metrics are read from.
@dynamicMemberLookup
struct MetricsSource {
    let report: AdminReport
    let traffic: Traffic

    init(_ report: AdminReport) { (self.report, traffic) = (report, Traffic(report.loops)) }

    subscript<Value>(dynamicMember path: KeyPath<AdminReport, Value>) -> Value { report[keyPath: path] }

    var loops: LoopReport { traffic.counts }

    var redis: RedisStatus? {
        guard case .redis(let status) = report.store else { return nil }
        return status
    }
}

/// One value of a family.
struct MetricSample {
    /// The values of the labels; `nil` is left out.
    let labels: [String?]
    let value: String
    /// `_bucket`, `_sum` or `_count` of a histogram.
    var suffix = ""
    /// The upper bound of a bucket.
    var bound: Double?
    /// A request that the value counts.
    var exemplar: LoopReport.Exemplar?

    init(_ value: Int, _ labels: String?...) { (self.value, self.labels) = (String(value), labels) }

    init(_ value: Double, _ labels: String?...) { (self.value, self.labels) = (MetricsWriter.number(value), labels) }

    /// 1 for a state, 0 for the others.
    static func state<State: RawRepresentable<String>>(_ state: State, of all: [State]) -> [MetricSample] {
        all.map { MetricSample(state == $0 ? 1 : 0, $0.rawValue) }
    }

    /// Counts by a label, sorted by its values.
    static func all(_ counts: [String: Int]) -> [MetricSample] {
        counts.sorted { $0.key < $1.key }.map { MetricSample($0.value, $0.key) }
    }

    static func all(_ counts: [ErrorCode: Int]) -> [MetricSample] {
        counts.sorted { $0.key.rawValue < $1.key.rawValue }.map { MetricSample($0.value, $0.key.rawValue) }
    }
}

/// Durations of one label.
struct MetricHistogram {
    let label: String?
    let durations: LatencyHistogram
    /// A request of each bucket.
    var exemplars: [Int: LoopReport.Exemplar] = [:]

    init(_ durations: LatencyHistogram, _ label: String? = nil, exemplars: [Int: LoopReport.Exemplar] = [:]) {
        (self.durations, self.label, self.exemplars) = (durations, label, exemplars)
    }

    var samples: [MetricSample] {
        var samples = durations.cumulative.enumerated().map { index, count in
            var sample = MetricSample(count, label)
            sample.suffix = "_bucket"
            sample.bound = index < latencyBounds.count ? Double(latencyBounds[index]) / 1e6 : .infinity
            sample.exemplar = exemplars[index]
            return sample
        }
        samples.append(MetricSample(Double(durations.sumMicroseconds) / 1e6, label))
        samples[samples.count - 1].suffix = "_sum"
        samples.append(MetricSample(durations.count, label))
        samples[samples.count - 1].suffix = "_count"
        return samples
    }
}
