package import MartletConfig

extension RouteTable {
    /// Compiles the routes of a configuration.
    ///
    /// - Parameters:
    ///   - routes: in file order.
    ///   - upstreams: the names of the configured upstreams; ``Route/upstream`` is an index of this list.
    ///   - providers: the names of the configured providers; ``Route/providers`` are indices of this list.
    ///   - paths: how request paths, and therefore patterns, are normalized.
    ///   - limits: the defaults of routes.
    ///   - assertionHeader: the header of the signed assertion, if any; it is reserved.
    ///   - diagnostics: receives every error with its position.
    /// - Returns: `nil` if there were errors.
    package static func compile(
        _ routes: [RouteConfiguration], mounts: [RouteMount], upstreams: [String], providers: [String],
        paths: PathOptions, limits: Limits, assertionHeader: Located<String>? = nil, into diagnostics: inout Diagnostics
    ) -> RouteTable? {
        var compiler = RouteCompiler(upstreams: upstreams, providers: providers, paths: paths, limits: limits)
        if let assertionHeader { compiler.reserve(assertionHeader) }
        for (number, mount) in mounts.enumerated() { compiler.add(mount, number: number) }
        for route in routes { compiler.add(route) }
        compiler.checkConditions(of: routes)
        let hasErrors = compiler.diagnostics.hasErrors
        let table = hasErrors ? nil : compiler.build()
        diagnostics.add(compiler.diagnostics)
        return table
    }
}
