/// `mirror:` of a route.
struct RouteMirror: ConfigurationDecodable {
    let value: MirrorConfiguration

    static var grammar: ConfigurationGrammar? {
        ConfigurationGrammar([
            .required("upstream", .text, "A name in `upstreams`."),
            .optional(
                "percent", SamplePercentage.shape, default: "100",
                "How many of the requests are copied, chosen at random: 0 to 100, with at most four decimals."),
        ])
    }

    init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        let upstream = reader.expected("upstream", as: Located<String>.self)
        let percentage: SamplePercentage = reader.optional("percent", default: .all)
        guard let upstream else { throw .alreadyReported }
        var value = MirrorConfiguration(upstream: upstream)
        value.percentage = percentage
        self.value = value
    }

    /// Reads the block; errors are recorded.
    /// - Parameters:
    ///   - upstreams: those that get the route's requests.
    ///   - hasResponse: whether the gateway responds itself, which excludes all keys that concern an upstream.
    static func read(
        _ reader: inout ConfigurationReader, beside upstreams: [Located<String>], hasResponse: Bool
    ) -> MirrorConfiguration? {
        guard let mirror = reader.block("mirror", as: RouteMirror.self)?.value else { return nil }
        if upstreams.isEmpty, !hasResponse, let node = reader.node("mirror") {
            reader.error(
                .configMissingKey, at: node.location,
                "mirror of \(reader.title) copies requests for an upstream: 'upstream' or 'split' is missing")
        }
        if upstreams.contains(where: { $0.value == mirror.upstream.value }) {
            reader.error(
                .configBadValue, at: mirror.upstream.location,
                "mirror of \(reader.title) names upstream \(quoted(mirror.upstream.value)), which gets its"
                    + " requests already")
        }
        return mirror
    }
}
