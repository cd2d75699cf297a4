/// One entry of `split:` of a route.
@frozen package struct SplitShare: KeyedBlock {
    package var upstream: Located<String>
    package var weight: Int

    package init(upstream: Located<String>, weight: Int) {
        self.upstream = upstream
        self.weight = weight
    }

    init() { self.init(upstream: .unread, weight: 0) }

    static let keys: [ConfigurationKey<Self>] = [
        .required("upstream", \.upstream, "A name in `upstreams`."),
        .required(
            "weight", \.weight, as: Weight.self, endsBlock: true,
            "Its share of the requests, in relation to the others; 0 is none."),
    ]

    private struct Weight: Spelling {
        private static let range = 0...1_000_000
        static let shape = ConfigurationGrammar.Shape.integer(range)
        let content: Int

        init(decoding node: ConfigurationNode) throws(ConfigurationError) {
            content = try Int(decoding: node, in: Self.range)
        }
    }

    static func read(_ reader: inout ConfigurationReader) -> [SplitShare] {
        let shares = reader.blocks("split", as: Self.self).map(\.value)
        guard shares.count == reader.node("split")?.elements?.count else { return shares }
        if shares.isEmpty {
            reader.reject("split", .configBadValue, "must not be empty")
        } else if shares.allSatisfy({ $0.weight == 0 }) {
            reader.reject("split", .configBadValue, "one weight at least must not be 0")
        }
        var names: Set<String> = []
        for share in shares where !names.insert(share.upstream.value).inserted {
            reader.error(
                .configDuplicateName, at: share.upstream.location,
                "split of \(reader.title) names upstream \(quoted(share.upstream.value)) twice")
        }
        return shares
    }
}

/// `mirror:` of a route.
@frozen package struct MirrorConfiguration: KeyedBlock {
    package var upstream: Located<String>
    package var percentage = SamplePercentage.all

    package init(upstream: Located<String>) { self.upstream = upstream }

    init() { self.init(upstream: .unread) }

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
