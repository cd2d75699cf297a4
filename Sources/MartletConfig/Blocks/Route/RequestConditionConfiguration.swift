private import MartletCore

/// One entry of `match.headers` or `match.query`: a condition on a request's own header or parameter.
@frozen package struct RequestConditionConfiguration: Sendable {
    /// Where the value is.
    @frozen package enum Source: String, Sendable { case header, query }

    /// The test of the value.
    @frozen package enum Test: Sendable {
        case equals(String)
        case prefix(String)
        case matches(Located<String>)
        case present(Bool)
    }

    package var source: Source
    package var name: Located<String>
    package var test: Test

    package init(_ source: Source, _ name: Located<String>, _ test: Test) {
        self.source = source
        self.name = name
        self.test = test
    }
}

/// One entry of `match.headers` or `match.query`.
struct RequestConditionBlock: KeyedBlock {
    typealias Test = RequestConditionConfiguration.Test

    private static let maximumNameBytes = 256

    var name = Located<String>.unread
    var test = Test.present(true)

    static let keys: [ConfigurationKey<Self>] = [
        .required("name", \.name, "The name of the header, without case, or of the parameter."),
        .one(
            of: [
                .init("equals", as: String.self, Test.equals, "The value is this."),
                .init("prefix", as: String.self, Test.prefix, "The value begins with this."),
                .init(
                    "matches", as: Located<String>.self, Test.matches,
                    "The whole value matches this regular expression."),
                .init("present", as: Bool.self, Test.present, "Whether there is a value."),
            ], \.test),
    ]

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
