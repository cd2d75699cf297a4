extension AccessLogConfiguration.Rotation: ConfigurationValue {}

extension AccessLogConfiguration: ConfigurationDecodable {
    package static var grammar: ConfigurationGrammar? {
        .init([
            .optional(
                "sample", SamplePercentage.shapeWithSign, default: "100%",
                "How many of the lines of successful requests are written, chosen at random; rejections and 5xx always are."
            ),
            .optional(
                "fields", .list(.choice(AccessFieldName.all), nonEmpty: true), default: "[default]",
                "What a line has, in this order; `default` is what it has without this key."),
            .optional("file", .path, "Where lines go instead of standard output; SIGUSR1 opens it again."),
            .optional(
                "rotate", .choice(Rotation.allCases.map(\.rawValue)), default: "external",
                "Who renames the file: `external`, a program such as logrotate."),
            .optional(
                "probes", .boolean, default: "true",
                "Whether successful requests for health, metrics and the pages of the admin listener have lines."),
        ])
    }

    package init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        self.init()
        sample = reader.optional("sample", as: SampleShare.self)?.value ?? sample
        if let node = reader.node("fields"), let names: [AccessFieldName] = reader.optional("fields") {
            fields = names.flatMap(\.fields)
            if let error = Self.error(in: fields) { reader.error(.configBadValue, at: node.location, error) }
        }
        file = reader.optional("file")
        reader.checkWritable(file, "file")
        rotation = reader.optional("rotate", default: rotation)
        logsProbes = reader.optional("probes", default: logsProbes)
    }

    private static func error(in fields: [AccessField]) -> String? {
        guard !fields.isEmpty else { return "fields: must have at least one name" }
        var known: Set<AccessField> = []
        return fields.first { !known.insert($0).inserted }.map { "fields: '\($0.rawValue)' is there twice" }
    }
}

/// An entry of `fields`: a field, or `default` for those of a line without the key.
private struct AccessFieldName: ConfigurationValue {
    private static let standard = "default"
    static let all = [standard] + AccessField.allCases.map(\.rawValue)

    let fields: [AccessField]

    init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        let text = try node.text()
        if text == Self.standard {
            fields = AccessField.standard
        } else if let field = AccessField(rawValue: text) {
            fields = [field]
        } else {
            let suggestion = Suggestion.phrase(for: text, among: Self.all)
            throw node.error(
                .configBadValue,
                suggestion.isEmpty ? notOneOf(Self.all, text) : "\(quoted(text)) is no field\(suggestion)")
        }
    }
}
