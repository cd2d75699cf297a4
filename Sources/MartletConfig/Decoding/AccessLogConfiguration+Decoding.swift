extension AccessLogConfiguration: KeyedBlock {
    static let keys: [ConfigurationKey<Self>] = [
        .key(
            "sample", \.sample, as: SampleShare.self,
            "How many of the lines of successful requests are written, chosen at random; rejections and 5xx always are."
        ),
        .key(
            "fields", \.fields, as: AccessFieldNames.self,
            "What a line has, in this order; `default` is what it has without this key."),
        .key("file", \.file, "Where lines go instead of standard output; SIGUSR1 opens it again."),
        .key("rotate", \.rotation, "Who renames the file: `external`, a program such as logrotate."),
        .key(
            "probes", \.logsProbes,
            "Whether successful requests for health, metrics and the pages of the admin listener have lines."),
        .check { $1.checkWritable($0.file, "file") },
    ]
}

/// `fields`: names of fields, or `default` for those of a line without the key.
private struct AccessFieldNames: Spelling {
    private static let standard = "default"
    private static let all = [standard] + AccessField.allCases.map(\.rawValue)

    static let shape = ConfigurationGrammar.Shape.list(.choice(all), nonEmpty: true)
    static func text(of fields: [AccessField]) -> String? { fields == AccessField.standard ? "[\(standard)]" : nil }
    let content: [AccessField]

    init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        content = try [Name](decoding: node).flatMap(\.fields)
        guard !content.isEmpty else { throw node.error(.configBadValue, "must have at least one name") }
        var known: Set<AccessField> = []
        for field in content where !known.insert(field).inserted {
            throw node.error(.configBadValue, "'\(field.rawValue)' is there twice")
        }
    }

    private struct Name: ConfigurationValue {
        let fields: [AccessField]

        init(decoding node: ConfigurationNode) throws(ConfigurationError) {
            let text = try node.text()
            if text == standard {
                fields = AccessField.standard
            } else if let field = AccessField(rawValue: text) {
                fields = [field]
            } else {
                let suggestion = Suggestion.phrase(for: text, among: all)
                throw node.error(
                    .configBadValue,
                    suggestion.isEmpty ? notOneOf(all, text) : "\(quoted(text)) is no field\(suggestion)")
            }
        }
    }
}
