package import MartletCore

/// `tracing:` — where traces of requests are sent, and of how many.
@frozen package struct TracingConfiguration: KeyedBlock {
    /// Whose trace contexts are continued.
    @frozen package enum Parent: String, ConfigurationChoice {
        /// Those of peers in `trusted_proxies`.
        case trusted
        case none
    }

    /// How spans name the caller.
    @frozen package enum SubjectForm: String, ConfigurationChoice { case off, hash }

    /// A field of the requests to the collector.
    @frozen package struct Header: Sendable {
        package let name: String
        package let value: Secret

        package init(name: String, value: Secret) { (self.name, self.value) = (name, value) }
    }

    package var collector: Located<URLText>
    package var sample = SamplePercentage(millionths: 10_000)
    package var parent = Parent.trusted
    package var subject = SubjectForm.off
    package var headers: [Header] = []

    package init(collector: Located<URLText>) { self.collector = collector }

    /// Where spans are sent to.
    package var url: String {
        var base = collector.value.text
        while base.utf8.last == 0x2F { base.removeLast() }
        return base + "/v1/traces"
    }

    private static let maximumHeaders = 32

    init() { self.init(collector: .unread) }

    static let keys: [ConfigurationKey<Self>] = [
        .required("otlp", \.collector, "The base URL of an OTLP/HTTP collector; `/v1/traces` is added to it."),
        .key(
            "sample", \.sample, as: SampleShare.self,
            "How many of the requests without a parent are sampled: 0 to 100, with at most four decimals."),
        .key("parent", \.parent, "Whose trace contexts are continued: those of `trusted_proxies`, or `none`."),
        .key("subject", \.subject, "How spans name the caller: `off`, or `hash` with the key of the log."),
        .row(
            .optional(
                "headers_file", .path,
                "A file with fields of the requests to the collector, one `Name: value` a line.")),
        .check(always: true) { $0.headers = headers(&$1) },
        .check { $0.check(&$1) },
    ]

    private func check(_ reader: inout ConfigurationReader) {
        if collector.value.target.contains("?") {
            reader.reject("otlp", .configBadURL, "must be the base URL of a collector, without a query")
        } else if !headers.isEmpty, !collector.value.isTrustworthy {
            reader.warn(
                "otlp", .configInsecure, "the fields of headers_file are sent to another machine in clear text")
        }
    }

    /// The fields in `headers_file`; errors are recorded without their values.
    private static func headers(_ reader: inout ConfigurationReader) -> [Header] {
        guard let file = reader.privateFile("headers_file") else { return [] }
        var headers: [Header] = []
        let lines = file.value.withBytes { Array($0).split(separator: 0x0A, omittingEmptySubsequences: false) }
        for (index, line) in lines.enumerated() {
            let line = trimmed(line)
            if line.isEmpty || line.first == 0x23 { continue }
            guard let header = header(line), headers.count < maximumHeaders else {
                reader.error(
                    .configBadHeader, at: file.location,
                    "headers_file: line \(index + 1) is not 'Name: value', or there are more than \(maximumHeaders)")
                return []
            }
            headers.append(header)
        }
        return headers
    }

    private static func header(_ line: ArraySlice<UInt8>) -> Header? {
        guard let colon = line.firstIndex(of: 0x3A) else { return nil }
        let name = String(decoding: line[..<colon], as: UTF8.self)
        let value = trimmed(line[(colon + 1)...])
        guard FieldNameSyntax.isValid(name), !value.isEmpty, value.allSatisfy({ (0x20...0x7E).contains($0) }) else {
            return nil
        }
        return Header(name: name, value: Secret(Array(value)))
    }

    private static func trimmed(_ text: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        var text = text.drop { $0 == 0x20 || $0 == 0x09 }
        while let last = text.last, last == 0x20 || last == 0x09 || last == 0x0D { text.removeLast() }
        return text
    }
}

extension GatewayConfiguration {
    /// Records an error if spans shall name callers by a hash that nothing can compute.
    func checkTracing(_ reader: inout ConfigurationReader) {
        guard let tracing, tracing.subject == .hash, log.subjectKey == nil || log.subject == .off else { return }
        reader.error(
            .configMissingKey, at: tracing.collector.location,
            "tracing: subject: 'hash' requires log.subject_key_file, and a log.subject other than 'off'")
    }
}
