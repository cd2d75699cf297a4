extension ForwardAuthConfiguration: ConfigurationDecodable {
    package static var grammar: ConfigurationGrammar? {
        .init([
            .optional(
                "deny", .integer(403...403),
                "403: checks have it instead of 400, 429 and 503, for proxies that pass on no other status."),
            .optional(
                "browser", .boolean, default: "false",
                "Whether a check of a navigation without a credential gets a redirect to the sign-in page."),
        ])
    }

    package init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        self.init()
        isPresent = true
        if let deny = reader.optional("deny", as: Located<Int>.self) {
            if deny.value != 403 {
                reader.error(.configBadValue, at: deny.location, "deny: must be 403, not \(deny.value)")
            }
            deniesAlike = true
        }
        redirectsBrowsers = reader.optional("browser", default: redirectsBrowsers)
    }
}

extension GatewayConfiguration {
    /// Records an error for every route without an upstream, and without a response of its own, where there can be no
    /// checks.
    static func checkRoutesForChecks(_ reader: inout ConfigurationReader, _ server: ServerConfiguration) {
        guard !server.trustsProxies else { return }
        for (index, route) in (reader.node("routes")?.elements ?? []).enumerated() {
            guard let entries = route.entries,
                !entries.contains(where: { RouteResponseConfiguration.keys.contains($0.key.value) }),
                // A misspelled key is reported already.
                !entries.contains(where: { Suggestion.nearest(to: $0.key.value, among: ["upstream"]) != nil })
            else { continue }
            let title = (try? route["name"]?.text()).map { "route \(quoted($0))" } ?? "routes[\(index)]"
            reader.error(.configMissingKey, at: route.location, "missing key 'upstream' in \(title)")
        }
    }
}
