internal import MartletCore

extension TracingConfiguration.Parent: ConfigurationValue {}
extension TracingConfiguration.SubjectForm: ConfigurationValue {}

extension TracingConfiguration: ConfigurationDecodable {
    private static let maximumHeaders = 32

    package static var grammar: ConfigurationGrammar? {
        .init([
            .required("otlp", .url, "The base URL of an OTLP/HTTP collector; `/v1/traces` is added to it."),
            .optional(
                "sample", SamplePercentage.shapeWithSign, default: "1%",
                "How many of the requests without a parent are sampled: 0 to 100, with at most four decimals."),
            .optional(
                "parent", .choice(Parent.allCases.map(\.rawValue)), default: "trusted",
                "Whose trace contexts are continued: those of `trusted_proxies`, or `none`."),
            .optional(
                "subject", .choice(SubjectForm.allCases.map(\.rawValue)), default: "off",
                "How spans name the caller: `off`, or `hash` with the key of the log."),
            .optional(
                "headers_file", .path, "A file with fields of the requests to the collector, one `Name: value` a line."),
        ])
    }

    package init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        let collector = reader.expected("otlp", as: Located<URLText>.self)
        let sample = reader.optional("sample", as: SampleShare.self)?.value ?? SamplePercentage(millionths: 10_000)
        let parent = reader.optional("parent", default: Parent.trusted)
        let subject = reader.optional("subject", default: SubjectForm.off)
        let headers = Self.headers(&reader)
        guard let collector else { throw .alreadyReported }
        if collector.value.target.contains("?") {
            throw ConfigurationError(
                .configBadURL, at: collector.location, "otlp: must be the base URL of a collector, without a query")
        }
        self.init(collector: collector)
        (self.sample, self.parent, self.subject, self.headers) = (sample, parent, subject, headers)
        if !headers.isEmpty, !collector.value.isTrustworthy {
            reader.diagnostics.warning(
                .configInsecure, at: collector.location,
                "otlp: the fields of headers_file are sent to another machine in clear text")
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
