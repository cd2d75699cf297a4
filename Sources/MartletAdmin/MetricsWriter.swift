internal import MartletResponder

/// The formats of the metrics.
enum MetricsFormat {
    /// The text format of Prometheus, version 0.0.4.
    case prometheus
    /// OpenMetrics 1.0, which has examples of histogram buckets.
    case openMetrics

    /// The one that a request prefers; without a preference the text format of Prometheus, which all scrapers read.
    /// - Parameter accept: its `Accept` field.
    init(accept: String?) {
        let ranges = (accept ?? "").lowercased().split(separator: ",").map { range in
            range.split(separator: ";").map { $0.filter { $0 != " " && $0 != "\t" } }
        }
        func weight(_ type: String) -> Double? {
            guard let range = ranges.first(where: { $0.first == type }) else { return nil }
            return range.dropFirst().first { $0.hasPrefix("q=") }.map { Double($0.dropFirst(2)) ?? 0 } ?? 1
        }
        let open = weight("application/openmetrics-text") ?? 0
        self = open > 0 && open >= weight("text/plain") ?? 0 ? .openMetrics : .prometheus
    }

    var mediaType: String {
        switch self {
        case .prometheus: "text/plain; version=0.0.4; charset=utf-8"
        case .openMetrics: "application/openmetrics-text; version=1.0.0; charset=utf-8"
        }
    }
}

/// Writes metrics as text: each family is a HELP line, a TYPE line and its samples.
struct MetricsWriter {
    enum Kind: String { case counter, gauge, histogram }

    /// Names and values of labels, in order.
    typealias Labels = KeyValuePairs<String, String>

    private let format: MetricsFormat
    private(set) var text = ""
    private var names: Set<String> = []
    private var current = ""

    init(_ format: MetricsFormat = .prometheus) { self.format = format }

    /// The whole text; OpenMetrics has a mark at its end.
    var whole: String { format == .openMetrics ? text + "# EOF\n" : text }

    /// Begins a family.
    ///
    /// The names of counters are compared without `_total`, as OpenMetrics compares them: with both families, a scraper
    /// would reject the whole page.
    /// - Returns: `false`, with nothing written, if there is already a family of that name.
    @discardableResult
    mutating func family(_ name: String, _ kind: Kind, _ help: String) -> Bool {
        let base = kind == .counter && name.hasSuffix("_total") ? String(name.dropLast(6)) : name
        guard names.insert(base).inserted else { return false }
        current = name
        // In OpenMetrics, the family of a counter has the name without the suffix of its samples.
        let family = format == .openMetrics ? base : name
        let help = MetricsWriter.escape(help, quotes: format == .openMetrics)
        text += "# HELP \(family) \(help)\n# TYPE \(family) \(kind.rawValue)\n"
        return true
    }

    /// Adds a sample to the current family; a suffix is `_bucket`, `_sum` or `_count` of a histogram.
    /// - Parameter exemplar: a request that the value counts.
    mutating func sample(
        _ labels: Labels, suffix: String = "", _ value: Int, exemplar: LoopReport.Exemplar? = nil
    ) {
        write(labels, suffix, String(value), exemplar)
    }

    /// The upper bound of a bucket: OpenMetrics wants a decimal point.
    func bound(_ value: Double) -> String {
        let text = MetricsWriter.number(value)
        return format == .openMetrics && !text.contains(".") ? text + ".0" : text
    }

    mutating func sample(_ labels: Labels, suffix: String = "", _ value: Double) {
        write(labels, suffix, MetricsWriter.number(value))
    }

    /// A family with one sample.
    mutating func single(_ name: String, _ kind: Kind, _ help: String, _ value: Int?) {
        guard let value, family(name, kind, help) else { return }
        sample([:], value)
    }

    mutating func single(_ name: String, _ kind: Kind, _ help: String, _ value: Double?) {
        guard let value, family(name, kind, help) else { return }
        sample([:], value)
    }

    private mutating func write(
        _ labels: Labels, _ suffix: String, _ value: String, _ exemplar: LoopReport.Exemplar? = nil
    ) {
        text += current + suffix
        if !labels.isEmpty {
            let pairs = labels.map { "\($0.key)=\"\(MetricsWriter.escape($0.value, quotes: true))\"" }
            text += "{\(pairs.joined(separator: ","))}"
        }
        text += " \(value)"
        if let exemplar, format == .openMetrics {
            let seconds = MetricsWriter.number(Double(exemplar.microseconds) / 1e6)
            let time = MetricsWriter.decimal(milliseconds: exemplar.unixMilliseconds)
            text += " # {trace_id=\"\(exemplar.trace)\"} \(seconds) \(time)"
        }
        text += "\n"
    }

    private static func decimal(milliseconds: Int64) -> String {
        let rest = String(milliseconds % 1000)
        return "\(milliseconds / 1000).\(String(repeating: "0", count: 3 - rest.utf8.count))\(rest)"
    }

    static func number(_ value: Double) -> String {
        if value.isNaN { return "NaN" }
        if value.isInfinite { return value < 0 ? "-Inf" : "+Inf" }
        return value == value.rounded() && abs(value) < 1e15 ? String(Int64(value)) : value.description
    }

    /// Backslash and line feed are escaped everywhere, the quotation mark in label values only.
    static func escape(_ text: String, quotes: Bool) -> String {
        var escaped = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\\": escaped += "\\\\"
            case "\n": escaped += "\\n"
            case "\"" where quotes: escaped += "\\\""
            default: escaped.unicodeScalars.append(scalar)
            }
        }
        return escaped
    }

    /// Replaces the characters that are not allowed in a metric name by `_`.
    static func name(_ text: String) -> String {
        String(
            decoding: text.utf8.map { byte in
                switch byte {
                case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: byte
                default: UInt8(ascii: "_")
                }
            }, as: UTF8.self)
    }
}
