private import MartletCore

/// Checks that the names which routes use exist.
///
/// It looks at the file rather than at decoded values, so that a mistake
/// elsewhere in a route or a provider does not hide a wrong name, nor make one.
struct ReferenceCheck {
    private let providers: [Located<String>]
    private let upstreams: [Located<String>]
    private let routes: [ConfigurationNode]
    private var usedProviders: Set<String> = []
    private var usedUpstreams: Set<String> = []

    init(_ reader: inout ConfigurationReader) {
        providers = reader.node("providers")?.entries?.map(\.key) ?? []
        upstreams = reader.node("upstreams")?.entries?.map(\.key) ?? []
        routes = reader.node("routes")?.elements ?? []
    }

    /// Records every name that does not exist.
    mutating func run(_ diagnostics: inout Diagnostics) {
        for (index, route) in routes.enumerated() where route.entries != nil {
            let title = "route \((try? route["name"]?.text()).map { quoted($0) } ?? "number \(index + 1)")"
            if let upstream = Self.name(route["upstream"]) {
                usedUpstreams.insert(upstream.value)
                check(upstream, among: upstreams, "upstream", .configUnknownUpstream, title, &diagnostics)
            }
            usedProviders.formUnion(checkProviders(of: route, title, &diagnostics))
        }
    }

    /// Warns of what no route names.
    func warnOfUnused(_ diagnostics: inout Diagnostics) {
        warn(of: upstreams.filter { !usedUpstreams.contains($0.value) }, "upstream", &diagnostics)
        warn(of: providers.filter { !usedProviders.contains($0.value) }, "provider", &diagnostics)
    }

    /// The names of the providers that a route uses.
    private func checkProviders(
        of route: ConfigurationNode, _ title: String, _ diagnostics: inout Diagnostics
    ) -> [String] {
        let auth = route["auth"]
        if let auth, auth.entries == nil { return [] }
        guard let list = auth?["providers"] else {
            if providers.isEmpty {
                diagnostics.error(
                    .configNoProvider, at: auth?.location ?? route.location,
                    "\(title) asks for authentication, but no provider is configured; for a public route write 'auth: none'"
                )
            }
            return providers.map(\.value)
        }
        let names = (list.elements ?? []).compactMap { Self.name($0) }
        for (index, name) in names.enumerated() {
            check(name, among: providers, "provider", .configUnknownProvider, title, &diagnostics)
            if names[..<index].contains(where: { $0.value == name.value }) {
                diagnostics.error(
                    .configDuplicateName, at: name.location, "\(title) names provider \(quoted(name.value)) twice")
            }
        }
        return names.map(\.value)
    }

    private func check(
        _ name: Located<String>, among known: [Located<String>], _ noun: String, _ code: ErrorCode, _ title: String,
        _ diagnostics: inout Diagnostics
    ) {
        if known.contains(where: { $0.value == name.value }) { return }
        let hint = Suggestion.phrase(for: name.value, among: known.map(\.value))
        diagnostics.error(
            code, at: name.location, "\(title) names \(noun) \(quoted(name.value)), which is not defined\(hint)")
    }

    private func warn(of unused: [Located<String>], _ noun: String, _ diagnostics: inout Diagnostics) {
        for name in unused {
            diagnostics.warning(.configUnused, at: name.location, "no route uses \(noun) \(quoted(name.value))")
        }
    }

    private static func name(_ node: ConfigurationNode?) -> Located<String>? {
        node.flatMap { try? Located<String>(decoding: $0) }
    }
}
