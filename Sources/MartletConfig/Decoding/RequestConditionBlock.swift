private import MartletCore

/// One entry of `match.headers` or `match.query`.
struct RequestConditionBlock: ConfigurationDecodable {
    private static let tests = ["equals", "prefix", "matches", "present"]
    private static let maximumNameBytes = 256

    let name: Located<String>
    let test: RequestConditionConfiguration.Test

    static var grammar: ConfigurationGrammar? {
        ConfigurationGrammar([
            .required("name", .text, "The name of the header, without case, or of the parameter."),
            .optional("equals", .text, "The value is this."),
            .optional("prefix", .text, "The value begins with this."),
            .optional("matches", .text, "The whole value matches this regular expression."),
            .optional("present", .boolean, "Whether there is a value."),
        ])
        .withOneOf(tests)
    }

    init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        let name = reader.expected("name", as: Located<String>.self)
        let given = reader.keys.filter { Self.tests.contains($0.value) }
        guard let key = given.first, given.count == 1 else {
            let location = given.dropFirst().first?.location ?? reader.location
            throw ConfigurationError(
                given.isEmpty ? .configMissingKey : .configConflictingKeys, at: location,
                "\(reader.title) must have exactly one of \(Self.tests.joined(separator: ", "))")
        }
        guard let name, let test = Self.test(key.value, &reader) else { throw .alreadyReported }
        (self.name, self.test) = (name, test)
    }

    private static func test(
        _ key: String, _ reader: inout ConfigurationReader
    ) -> RequestConditionConfiguration.Test? {
        switch key {
        case "equals": reader.expected(key, as: String.self).map { .equals($0) }
        case "prefix": reader.expected(key, as: String.self).map { .prefix($0) }
        case "matches": reader.expected(key, as: Located<String>.self).map { .matches($0) }
        default: reader.expected(key, as: Bool.self).map { .present($0) }
        }
    }

    /// Reads the list under a key; errors are recorded.
    static func read(
        _ source: RequestConditionConfiguration.Source, _ key: String, _ reader: inout ConfigurationReader
    ) -> [RequestConditionConfiguration] {
        reader.blocks(key, as: RequestConditionBlock.self).map { entry in
            let name = entry.value.name
            if source == .header, !FieldNameSyntax.isValid(name.value) {
                reader.error(.configBadHeader, at: name.location, "\(quoted(name.value)) is not a header name")
            } else if source == .query, !(1...maximumNameBytes).contains(name.value.utf8.count) {
                reader.error(.configBadValue, at: name.location, "name: must be 1 to \(maximumNameBytes) bytes")
            }
            return RequestConditionConfiguration(source, name, entry.value.test)
        }
    }
}
