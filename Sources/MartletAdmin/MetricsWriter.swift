/// Writes the Prometheus text format, version 0.0.4: each family is a HELP line, a TYPE line and its samples.
struct MetricsWriter {
    enum Kind: String { case counter, gauge, histogram }

    /// Names and values of labels, in order.
    typealias Labels = KeyValuePairs<String, String>

    private(set) var text = ""
    private var names: Set<String> = []
    private var current = ""

    /// Begins a family.
    /// - Returns: `false`, with nothing written, if there is already a family of that name.
    @discardableResult
    mutating func family(_ name: String, _ kind: Kind, _ help: String) -> Bool {
        guard names.insert(name).inserted else { return false }
        current = name
        text += "# HELP \(name) \(MetricsWriter.escape(help, quotes: false))\n# TYPE \(name) \(kind.rawValue)\n"
        return true
    }

    /// Adds a sample to the current family; a suffix is `_bucket`, `_sum` or `_count` of a histogram.
    mutating func sample(_ labels: Labels, suffix: String = "", _ value: Int) {
        write(labels, suffix, String(value))
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

    private mutating func write(_ labels: Labels, _ suffix: String, _ value: String) {
        text += current + suffix
        if !labels.isEmpty {
            let pairs = labels.map { "\($0.key)=\"\(MetricsWriter.escape($0.value, quotes: true))\"" }
            text += "{\(pairs.joined(separator: ","))}"
        }
        text += " \(value)\n"
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
