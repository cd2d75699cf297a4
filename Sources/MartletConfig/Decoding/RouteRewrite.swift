/// `rewrite:` of a route.
struct RouteRewrite: ConfigurationDecodable {
    var stripPrefix: Located<String>?
    var value = RewriteConfiguration()

    init() {}

    static var grammar: ConfigurationGrammar? {
        .init([
            .optional("strip_prefix", .text, "Leading segments that are removed for the upstream: `/v1`."),
            .optional("regex", .text, "A regular expression for the whole rest of the path."),
            .optional("to", .text, "What the path becomes where `regex` matches; `$1` to `$9` are its groups."),
            .optional("add_prefix", .text, "Segments that are put before the path: `/api`."),
            .optional("host", .text, "The `Host` that the upstream gets, instead of that of its own `host`."),
        ])
    }

    init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        stripPrefix = Self.prefix("strip_prefix", &reader)
        value.addPrefix = Self.prefix("add_prefix", &reader)
        value.expression = reader.optional("regex")
        value.replacement = reader.optional("to")
        if let expression = value.expression, expression.value.isEmpty {
            reader.error(.configBadPattern, at: expression.location, "regex: must not be empty")
        }
        if let alone = reader.has("regex") ? nil : value.replacement {
            reader.error(
                .configMissingKey, at: alone.location, "missing key 'regex' in \(reader.title), for which is 'to'")
        }
        if let alone = reader.has("to") ? nil : value.expression {
            reader.error(.configMissingKey, at: alone.location, "missing key 'to' in \(reader.title), for 'regex'")
        }
        value.host = reader.optional("host", as: RewrittenHost.self)?.text
    }

    private static func prefix(_ key: String, _ reader: inout ConfigurationReader) -> Located<String>? {
        reader.optional(key, as: Located<PathPrefix>.self).map { Located($0.value.text, at: $0.location) }
    }
}

/// A host, perhaps with a port, that upstreams get.
private struct RewrittenHost: ConfigurationValue {
    let text: String

    init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        text = try node.text().lowercased()
        guard HostAndPort.parse(Array(text.utf8)) != nil else {
            throw node.error(
                .configBadValue, "\(quoted(text)) is not a host such as internal.example or localhost:8080")
        }
    }
}
