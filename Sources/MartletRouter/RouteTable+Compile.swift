package import MartletConfig

extension RouteTable {
    /// Compiles the routes of a configuration.
    ///
    /// - Parameters:
    ///   - routes: in file order.
    ///   - upstreams: the names of the configured upstreams; ``Route/upstream`` is a place in this list.
    ///   - providers: the names of the configured providers; ``Route/providers`` are places in this list.
    ///   - paths: how request paths are normalised, which patterns must follow.
    ///   - limits: what routes inherit.
    ///   - assertionHeader: the header of the signed assertion, where there is one; it is reserved too.
    ///   - diagnostics: gets every mistake, at the place in the file.
    /// - Returns: `nil` if there was an error.
    package static func compile(
        _ routes: [RouteConfiguration], mounts: [RouteMount], upstreams: [String], providers: [String],
        paths: PathOptions, limits: Limits, assertionHeader: Located<String>? = nil, into diagnostics: inout Diagnostics
    ) -> RouteTable? {
        var compiler = RouteCompiler(upstreams: upstreams, providers: providers, paths: paths, limits: limits)
        if let assertionHeader { compiler.reserve(assertionHeader) }
        for (number, mount) in mounts.enumerated() { compiler.add(mount, number: number) }
        for route in routes { compiler.add(route) }
        let hasErrors = compiler.diagnostics.hasErrors
        let table = hasErrors ? nil : compiler.build()
        diagnostics.add(compiler.diagnostics)
        return table
    }
}
