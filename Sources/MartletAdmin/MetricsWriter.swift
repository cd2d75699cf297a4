internal import MartletResponder

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

    private let format: MetricsFormat
    private(set) var text = ""
    private var names: Set<String> = []

    init(_ format: MetricsFormat = .prometheus) { self.format = format }

    /// The whole text; OpenMetrics has a mark at its end.
    var whole: String { format == .openMetrics ? text + "# EOF\n" : text }

    /// Writes a family, unless there is already one of that name.
    ///
    /// The names of counters are compared without `_total`, as OpenMetrics compares them: with both families, a scraper
    /// would reject the whole page.
    mutating func write(_ family: MetricFamily, _ samples: [MetricSample]) {
        let isCounter = family.kind == .counter && family.name.hasSuffix("_total")
        let base = isCounter ? String(family.name.dropLast(6)) : family.name
        guard names.insert(base).inserted else { return }
        // In OpenMetrics, the family of a counter has the name without the suffix of its samples.
        let name = format == .openMetrics ? base : family.name
        let help = MetricsWriter.escape(family.help, quotes: format == .openMetrics)
        text += "# HELP \(name) \(help)\n# TYPE \(name) \(family.kind.rawValue)\n"
        for sample in samples { write(sample, of: family) }
    }

    private mutating func write(_ sample: MetricSample, of family: MetricFamily) {
        text += family.name + sample.suffix
        var labels = zip(family.labels, sample.labels).compactMap { name, value in
            value.map { "\(name)=\"\(MetricsWriter.escape($0, quotes: true))\"" }
        }
        if let bound = sample.bound { labels.append("le=\"\(self.bound(bound))\"") }
        if !labels.isEmpty { text += "{\(labels.joined(separator: ","))}" }
        text += " \(sample.value)"
        if let exemplar = sample.exemplar, format == .openMetrics {
            let seconds = MetricsWriter.number(Double(exemplar.microseconds) / 1e6)
            let time = MetricsWriter.decimal(milliseconds: exemplar.unixMilliseconds)
            text += " # {trace_id=\"\(exemplar.trace)\"} \(seconds) \(time)"
        }
        text += "\n"
    }

    /// The upper bound of a bucket: OpenMetrics wants a decimal point.
    private func bound(_ value: Double) -> String {
        let text = MetricsWriter.number(value)
        return format == .openMetrics && value.isFinite && !text.contains(".") ? text + ".0" : text
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
