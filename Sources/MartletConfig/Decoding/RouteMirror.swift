extension MirrorConfiguration: KeyedBlock {
    package init() { self.init(upstream: Located("", at: .none)) }

    package static let keys: [ConfigurationKey<Self>] = [
        .required("upstream", \.upstream, "A name in `upstreams`."),
        .key(
            "percent", \.percentage,
            "How many of the requests are copied, chosen at random: 0 to 100, with at most four decimals."),
    ]

    /// Reads the block; errors are recorded.
    /// - Parameters:
    ///   - upstreams: those that get the route's requests.
    ///   - hasResponse: whether the gateway responds itself, which excludes all keys that concern an upstream.
    static func read(
        _ reader: inout ConfigurationReader, beside upstreams: [Located<String>], hasResponse: Bool
    ) -> MirrorConfiguration? {
        guard let mirror = reader.block("mirror", as: Self.self) else { return nil }
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
