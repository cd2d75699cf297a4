extension MirrorConfiguration: KeyedBlock {
    package init() { self.init(upstream: Located("", at: .none)) }

    static let keys: [ConfigurationKey<Self>] = [
        .required("upstream", \.upstream, "A name in `upstreams`."),
        .key(
            "percent", \.percentage,
            "How many of the requests are copied, chosen at random: 0 to 100, with at most four decimals."),
    ]

    /// Records an error if there is nothing to copy, or if the upstream gets the requests anyway.
    /// - Parameter upstreams: those that get the route's requests.
    func check(beside upstreams: [Located<String>], _ reader: inout ConfigurationReader) {
        if upstreams.isEmpty, !reader.has("redirect"), !reader.has("respond"), let node = reader.node("mirror") {
            reader.error(
                .configMissingKey, at: node.location,
                "mirror of \(reader.title) copies requests for an upstream: 'upstream' or 'split' is missing")
        }
        if upstreams.contains(upstream) {
            reader.error(
                .configBadValue, at: upstream.location,
                "mirror of \(reader.title) names upstream \(quoted(upstream.value)), which gets its requests already")
        }
    }
}
