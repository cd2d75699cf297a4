extension SplitShare: KeyedBlock {
    package init() { self.init(upstream: Located("", at: .none), weight: 0) }

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

    /// Reads the list; errors are recorded.
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
