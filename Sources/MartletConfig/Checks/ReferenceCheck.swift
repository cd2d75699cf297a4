private import MartletCore

/// Checks that the providers and upstreams that routes name are defined.
///
/// It reads the nodes rather than decoded values, so that an error elsewhere in a route or a provider neither hides an
/// undefined name nor reports a defined one.
struct ReferenceCheck {
    /// The defined names, and which of them routes use.
    private struct Names {
        let noun: String
        let unknown: ErrorCode
        let defined: [Located<String>]
        private let known: Set<String>
        private let candidates: [String]
        private var used: Set<String> = []
        private var unknownCount = 0
        var areAllUsed = false

        init(_ node: ConfigurationNode?, _ noun: String, unknown: ErrorCode) {
            self.noun = noun
            self.unknown = unknown
            defined = node?.entries?.map(\.key) ?? []
            known = Set(defined.map(\.value))
            candidates = defined.prefix(Suggestion.maximumCandidates).map(\.value)
        }

        mutating func use(_ name: Located<String>, in route: String, _ diagnostics: inout Diagnostics) {
            used.insert(name.value)
            if known.contains(name.value) { return }
            unknownCount += 1
            let hint =
                unknownCount <= Suggestion.maximumSuggestions
                ? Suggestion.phrase(for: name.value, among: candidates) : ""
            diagnostics.error(
                unknown, at: name.location, "\(route) names \(noun) \(quoted(name.value)), which is not defined\(hint)")
        }

        func warnOfUnused(_ diagnostics: inout Diagnostics) {
            for name in defined where !areAllUsed && !used.contains(name.value) {
                diagnostics.warning(.configUnused, at: name.location, "no route uses \(noun) \(quoted(name.value))")
            }
        }
    }

    private var providers: Names
    private var upstreams: Names
    private let routes: [ConfigurationNode]

    init(_ reader: inout ConfigurationReader) {
        providers = Names(reader.node("providers"), "provider", unknown: .configUnknownProvider)
        upstreams = Names(reader.node("upstreams"), "upstream", unknown: .configUnknownUpstream)
        routes = reader.node("routes")?.elements ?? []
    }

    mutating func run(_ diagnostics: inout Diagnostics) {
        for (index, route) in routes.enumerated() where route.entries != nil {
            let title = "route \((try? route["name"]?.text()).map { quoted($0) } ?? "number \(index + 1)")"
            let split = (route["split"]?.elements ?? []).map { $0["upstream"] }
            let nodes = [route["upstream"]] + split + [route["mirror"]?["upstream"]]
            for case let upstream? in nodes.map({ Self.name($0) }) {
                upstreams.use(upstream, in: title, &diagnostics)
            }
            checkProviders(of: route, title, &diagnostics)
        }
    }

    func warnOfUnused(_ diagnostics: inout Diagnostics) {
        upstreams.warnOfUnused(&diagnostics)
        providers.warnOfUnused(&diagnostics)
    }

    private mutating func checkProviders(
        of route: ConfigurationNode, _ title: String, _ diagnostics: inout Diagnostics
    ) {
        let auth = route["auth"]
        if let auth, auth.entries == nil { return }
        guard let list = auth?["providers"] else {
            providers.areAllUsed = true
            guard providers.defined.isEmpty else { return }
            diagnostics.error(
                .configNoProvider, at: auth?.location ?? route.location,
                "\(title) asks for authentication, but no provider is configured; for a public route write 'auth: none'"
            )
            return
        }
        var seen: Set<String> = []
        for name in (list.elements ?? []).compactMap({ Self.name($0) }) {
            providers.use(name, in: title, &diagnostics)
            if !seen.insert(name.value).inserted {
                diagnostics.error(
                    .configDuplicateName, at: name.location, "\(title) names provider \(quoted(name.value)) twice")
            }
        }
    }

    private static func name(_ node: ConfigurationNode?) -> Located<String>? {
        node.flatMap { try? Located<String>(decoding: $0) }
    }
}
