/// `rewrite:` of a route, without `strip_prefix`.
@frozen package struct RewriteConfiguration: Sendable {
    /// Applied to the path after its prefix was stripped.
    package var expression: Located<String>?
    package var replacement: Located<String>?
    package var addPrefix: Located<String>?
    package var host: String?

    /// Whether the path, beyond a stripped prefix, or the host changes.
    package var isEmpty: Bool { expression == nil && addPrefix == nil && host == nil }
}

/// `rewrite:` of a route.
struct RouteRewrite: KeyedBlock {
    var stripPrefix: Located<String>?
    var value = RewriteConfiguration()

    static let keys: [ConfigurationKey<Self>] = [
        .key(
            "strip_prefix", \.stripPrefix, as: Located<PathPrefix>?.self,
            "Leading segments that are removed for the upstream: `/v1`."),
        .key("regex", \.value.expression, "A regular expression for the whole rest of the path."),
        .key("to", \.value.replacement, "What the path becomes where `regex` matches; `$1` to `$9` are its groups."),
        .key(
            "add_prefix", \.value.addPrefix, as: Located<PathPrefix>?.self,
            "Segments that are put before the path: `/api`."),
        .key(
            "host", \.value.host, as: RewrittenHost?.self,
            "The `Host` that the upstream gets, instead of that of its own `host`."),
        .check { rewrite, reader in
            if rewrite.value.expression?.value.isEmpty == true {
                reader.reject("regex", .configBadPattern, "must not be empty")
            }
            if let alone = reader.has("regex") ? nil : rewrite.value.replacement {
                reader.error(
                    .configMissingKey, at: alone.location, "missing key 'regex' in \(reader.title), for which is 'to'")
            }
            if let alone = reader.has("to") ? nil : rewrite.value.expression {
                reader.error(.configMissingKey, at: alone.location, "missing key 'to' in \(reader.title), for 'regex'")
            }
        },
    ]
}

/// A host, perhaps with a port, that upstreams get.
private struct RewrittenHost: TextSpelling {
    let text: String

    init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        text = try node.text().lowercased()
        guard HostAndPort.parse(Array(text.utf8)) != nil else {
            throw node.error(
                .configBadValue, "\(quoted(text)) is not a host such as internal.example or localhost:8080")
        }
    }
}
