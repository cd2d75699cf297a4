package import MartletHTTP

/// The compiled routes of a configuration: immutable, so that all event loops can read it without a lock.
///
/// The first route in file order whose hosts, path and methods match wins. A route that lists `GET` also matches `HEAD`
/// (RFC 9110 §9.3.2: a server that supports one supports the other). Paths must be normalized.
package final class RouteTable: Sendable {
    package let routes: ContiguousArray<Route>
    /// The routes of the configuration, without the mounts.
    package var configured: ContiguousArray<Route>.SubSequence { routes.drop { $0.mount >= 0 } }
    /// The header templates that routes refer to by ``Route/injection``.
    package let injections: ContiguousArray<HeaderInjection>
    /// The names that only the gateway may write: `X-Auth-*` and every name in any route's `headers.set`.
    ///
    /// A client field with the same letters and digits is removed on every route, also from trailers.
    package let reservedNames: FieldNameSet
    let methods: MethodNames
    let index: RouteIndex
    /// Whether any route names methods.
    package let restrictsMethods: Bool

    init(
        routes: ContiguousArray<Route>, injections: ContiguousArray<HeaderInjection>, reservedNames: FieldNameSet,
        methods: MethodNames
    ) {
        self.routes = routes
        self.injections = injections
        self.reservedNames = reservedNames
        self.methods = methods
        restrictsMethods = routes.contains { $0.pattern.methods != .any }
        var builder = RouteIndexBuilder()
        for route in routes { builder.add(route.pattern, route: route.index) }
        index = builder.build()
    }

    /// Finds the route of a request.
    ///
    /// - Parameters:
    ///   - method: as sent; compared byte by byte.
    ///   - authority: the value of `Host` or `:authority`, in any case, with or without port and trailing dot.
    ///   - path: normalized, without the query.
    package func match(method: Span<UInt8>, authority: Span<UInt8>, path: Span<UInt8>) -> RouteMatch {
        var search = RouteIndex.Search(methods.set(of: method))
        index.search(authority: authority, path: path, &search)
        if search.best != .max { return search.failed ? .failed(Int(search.best)) : .route(Int(search.best)) }
        return mismatch(authority, path, &search)
    }

    /// The result for a request that no route matches.
    @inline(never)
    private func mismatch(
        _ authority: Span<UInt8>, _ path: Span<UInt8>, _ search: inout RouteIndex.Search
    ) -> RouteMatch {
        search.collectsMethods = true
        index.search(authority: authority, path: path, &search)
        return search.allowed.isEmpty ? .none : .methodNotAllowed(search.allowed)
    }

    /// Whether a method equals one that a route names except for letter case, so that an upstream could confuse them.
    package func hasMethodInOtherCase(_ method: Span<UInt8>) -> Bool { methods.hasInOtherCase(method) }

    /// Whether any route that matches a host and path names methods.
    ///
    /// An expression that exceeds its match limit counts as a match.
    @inline(never)
    package func restrictsMethods(authority: Span<UInt8>, path: Span<UInt8>) -> Bool {
        guard restrictsMethods else { return false }
        var search = RouteIndex.Search(.any)
        search.collectsMethods = true
        index.search(authority: authority, path: path, &search)
        return search.namesMethods
    }

    /// The value of an `Allow` field for a set of methods.
    package func allowValue(_ methods: MethodSet) -> String { self.methods.list(methods) }

    /// Why each route before the matching one (or every route, if none matches) did not match a request.
    ///
    /// Tests each route's pattern directly, so that it also verifies the index behind
    /// ``match(method:authority:path:)``.
    package func misses(method: Span<UInt8>, authority: Span<UInt8>, path: Span<UInt8>) -> [RouteMiss] {
        let methodSet = methods.set(of: method)
        var misses: [RouteMiss] = []
        for route in routes {
            guard let reason = route.pattern.miss(methodSet, authority: authority, path: path) else { return misses }
            // Mounts are not routes of the configuration.
            if route.mount < 0 { misses.append(RouteMiss(route: route.index, reason: reason)) }
        }
        return misses
    }
}
