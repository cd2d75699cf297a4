/// `forward_auth:` — how checks of a proxy are responded to.
@frozen package struct ForwardAuthConfiguration: KeyedBlock, Equatable {
    /// Whether there is the block.
    package var isPresent = false
    /// Whether every rejection has a status that proxies pass on: 401 or 403.
    package var deniesAlike = false
    package var redirectsBrowsers = false

    static let keys: [ConfigurationKey<Self>] = [
        .key(
            "deny", \.deniesAlike, as: DenialStatus.self,
            "403: checks have it instead of 400, 429 and 503, for proxies that pass on no other status."),
        .key(
            "browser", \.redirectsBrowsers,
            "Whether a check of a navigation without a credential gets a redirect to the sign-in page."),
        .check { block, _ in block.isPresent = true },
    ]

    /// The only status of `deny`.
    private struct DenialStatus: Spelling {
        private static let status = 403
        static let shape = ConfigurationGrammar.Shape.integer(status...status)
        static func text(of isGiven: Bool) -> String? { nil }
        let content = true

        init(decoding node: ConfigurationNode) throws(ConfigurationError) {
            let number = try Int(decoding: node)
            guard number == Self.status else {
                throw node.error(.configBadValue, "must be \(Self.status), not \(number)")
            }
        }
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
