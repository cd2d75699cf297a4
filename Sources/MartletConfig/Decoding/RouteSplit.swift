/// One entry of `split:` of a route.
struct RouteSplitShare: ConfigurationDecodable {
    private static let weights = 0...1_000_000

    let value: SplitShare

    static var grammar: ConfigurationGrammar? {
        ConfigurationGrammar([
            .required("upstream", .text, "A name in `upstreams`."),
            .required(
                "weight", .integer(weights), "Its share of the requests, in relation to the others; 0 is none."),
        ])
    }

    init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        let upstream = reader.expected("upstream", as: Located<String>.self)
        let weight = try reader.required("weight", as: Int.self, in: Self.weights)
        guard let upstream else { throw .alreadyReported }
        value = SplitShare(upstream: upstream, weight: weight)
    }

    /// Reads the list; errors are recorded.
    static func read(_ reader: inout ConfigurationReader) -> [SplitShare] {
        guard let node = reader.node("split") else { return [] }
        let shares = reader.blocks("split", as: RouteSplitShare.self).map(\.value.value)
        guard shares.count == node.elements?.count else { return shares }
        if shares.isEmpty {
            reader.error(.configBadValue, at: node.location, "split: must not be empty")
        } else if shares.allSatisfy({ $0.weight == 0 }) {
            reader.error(.configBadValue, at: node.location, "split: one weight at least must not be 0")
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
