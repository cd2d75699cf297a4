/// A strict reader of the Prometheus text format 0.0.4, as far as the gateway writes it.
struct PrometheusText {
    struct Sample: Equatable {
        let name: String
        let labels: [String: String]
        let value: Double
    }

    struct Problem: Error { let text: String }

    private(set) var samples: [Sample] = []
    private(set) var kinds: [String: String] = [:]
    private var helps: Set<String> = []
    private var finished: Set<String> = []
    private var current = ""

    init(_ text: String) throws {
        guard text.isEmpty || text.hasSuffix("\n") else { throw Problem(text: "the last line is not ended") }
        for line in text.split(separator: "\n", omittingEmptySubsequences: true) {
            if line.hasPrefix("# HELP ") {
                try begin(String(line.dropFirst(7)))
            } else if line.hasPrefix("# TYPE ") {
                let words = line.dropFirst(7).split(separator: " ")
                guard words.count == 2, words[0] == current, kinds[current] == nil,
                    ["counter", "gauge", "histogram"].contains(words[1])
                else { throw Problem(text: "type: \(line)") }
                kinds[current] = String(words[1])
            } else {
                let sample = try Self.sample(line)
                try check(sample, line)
                samples.append(sample)
            }
        }
        guard helps == Set(kinds.keys) else { throw Problem(text: "families without type") }
    }

    /// The value of the one sample with that name and those labels.
    func value(_ name: String, _ labels: [String: String] = [:]) -> Double? {
        let found = samples.filter { $0.name == name && $0.labels == labels }
        return found.count == 1 ? found[0].value : nil
    }

    private mutating func begin(_ rest: String) throws {
        let name = String(rest.prefix { $0 != " " })
        guard Self.isName(name), rest.count > name.count + 1, helps.insert(name).inserted else {
            throw Problem(text: "help: \(rest)")
        }
        current = name
    }

    private func check(_ sample: Sample, _ line: Substring) throws {
        guard let kind = kinds[current] else { throw Problem(text: "no type before \(line)") }
        let suffixes = kind == "histogram" ? ["_bucket", "_sum", "_count"] : [""]
        guard suffixes.contains(where: { sample.name == current + $0 }) else { throw Problem(text: "strays: \(line)") }
        guard kind != "counter" || (current.hasSuffix("_total") && sample.value >= 0) else {
            throw Problem(text: "counter: \(line)")
        }
        guard !samples.contains(where: { $0.name == sample.name && $0.labels == sample.labels }) else {
            throw Problem(text: "twice: \(line)")
        }
    }

    private static func isName(_ text: String) -> Bool {
        !text.isEmpty
            && text.utf8.allSatisfy { $0 == 0x5F || (0x30...0x39).contains($0) || (0x61...0x7A).contains($0 | 0x20) }
    }

    private static func sample(_ line: Substring) throws -> Sample {
        var rest = Array(line.unicodeScalars)[...]
        var name = ""
        while let scalar = rest.first, scalar != "{", scalar != " " {
            name.unicodeScalars.append(scalar)
            rest.removeFirst()
        }
        var labels: [String: String] = [:]
        if rest.first == "{" {
            rest.removeFirst()
            repeat {
                let (label, value) = try pair(&rest)
                guard labels.updateValue(value, forKey: label) == nil else {
                    throw Problem(text: "label twice: \(line)")
                }
            } while rest.popFirst() == ","
            guard rest.startIndex > 0, Array(line.unicodeScalars)[rest.startIndex - 1] == "}" else {
                throw Problem(text: "labels: \(line)")
            }
        }
        guard isName(name), rest.popFirst() == " " else { throw Problem(text: "name: \(line)") }
        let number = String(String.UnicodeScalarView(rest))
        let special = ["+Inf": Double.infinity, "-Inf": -.infinity, "NaN": .nan]
        let plain = number.utf8.allSatisfy { "0123456789+-.e".utf8.contains($0) } ? Double(number) : nil
        guard let value = special[number] ?? plain else { throw Problem(text: "value: \(line)") }
        return Sample(name: name, labels: labels, value: value)
    }

    private static func pair(_ rest: inout ArraySlice<Unicode.Scalar>) throws -> (String, String) {
        var label = ""
        while let scalar = rest.popFirst(), scalar != "=" { label.unicodeScalars.append(scalar) }
        guard isName(label), rest.popFirst() == "\"" else { throw Problem(text: "label \(label)") }
        var value = ""
        while let scalar = rest.popFirst() {
            if scalar == "\"" { return (label, value) }
            guard scalar == "\\" else {
                value.unicodeScalars.append(scalar)
                continue
            }
            switch rest.popFirst() {
            case "\\": value += "\\"
            case "\"": value += "\""
            case "n": value += "\n"
            default: throw Problem(text: "escape in \(label)")
            }
        }
        throw Problem(text: "value of \(label) has no end")
    }
}
