package import MartletHTTP

/// The compiled routes of a configuration: immutable, so that every event loop may read it without a lock.
///
/// Matching: the first route in file order whose hosts, path and methods all fit. A route that lists
/// `GET` takes `HEAD` too (RFC 9110 §9.3.2: a server that supports one supports the other). Paths must be normalised.
package final class RouteTable: Sendable {
    package let routes: ContiguousArray<Route>
    /// The routes of the configuration: those behind the mounts.
    package var configured: ContiguousArray<Route>.SubSequence { routes.drop { $0.mount >= 0 } }
    /// The header templates that routes refer to by ``Route/injection``.
    package let injections: ContiguousArray<HeaderInjection>
    /// The names that only the gateway may write: `X-Auth-*` and every name in any route's `headers.set`.
    ///
    /// A client's field with the letters and digits of one of them is removed on every route, from trailers too.
    package let reservedNames: FieldNameSet
    let methods: MethodNames
    let index: RouteIndex
    /// Whether any route names methods.
    package let judgesMethods: Bool

    init(
        routes: ContiguousArray<Route>, injections: ContiguousArray<HeaderInjection>, reservedNames: FieldNameSet,
        methods: MethodNames
    ) {
        self.routes = routes
        self.injections = injections
        self.reservedNames = reservedNames
        self.methods = methods
        judgesMethods = routes.contains { $0.pattern.methods != .any }
        var builder = RouteIndexBuilder()
        for route in routes { builder.add(route.pattern, route: route.index) }
        index = builder.build()
    }

    /// Finds the route of a request.
    ///
    /// - Parameters:
    ///   - method: as sent; compared byte by byte.
    ///   - authority: the value of `Host` or `:authority`: any case, with or without port and final dot.
    ///   - path: normalised, without the query.
    package func match(method: Span<UInt8>, authority: Span<UInt8>, path: Span<UInt8>) -> RouteMatch {
        var search = RouteIndex.Search(methods.set(of: method))
        index.search(authority: authority, path: path, &search)
        if search.best != .max { return search.failed ? .failed(Int(search.best)) : .route(Int(search.best)) }
        return refusal(authority, path, &search)
    }

    /// What there is to say of a request that no route takes.
    @inline(never)
    private func refusal(_ authority: Span<UInt8>, _ path: Span<UInt8>, _ search: inout RouteIndex.Search) -> RouteMatch
    {
        search.collectsMethods = true
        index.search(authority: authority, path: path, &search)
        return search.allowed.isEmpty ? .none : .methodNotAllowed(search.allowed)
    }

    /// Whether a method is one that a route names, in another letter case: an upstream could take it for that one.
    package func hasMethodInOtherCase(_ method: Span<UInt8>) -> Bool { methods.hasInOtherCase(method) }

    /// Whether a route for a host and path, no matter which one takes the request, names methods.
    ///
    /// An expression that gives up counts as a match.
    @inline(never)
    package func judgesMethods(authority: Span<UInt8>, path: Span<UInt8>) -> Bool {
        guard judgesMethods else { return false }
        var search = RouteIndex.Search(.any)
        search.collectsMethods = true
        index.search(authority: authority, path: path, &search)
        return search.namesMethods
    }

    /// The value of an `Allow` field for a set of methods.
    package func allowValue(_ methods: MethodSet) -> String { self.methods.list(methods) }

    /// Why each route before the matching one (or each of all, when none matches) did not take a request.
    ///
    /// Asks every route in turn by its own pattern, so it also checks what the index of ``match(method:authority:path:)`` says.
    package func misses(method: Span<UInt8>, authority: Span<UInt8>, path: Span<UInt8>) -> [RouteMiss] {
        let asked = methods.set(of: method)
        var misses: [RouteMiss] = []
        for route in routes {
            guard let reason = route.pattern.miss(asked, authority: authority, path: path) else { return misses }
            // What the gateway answers itself is no route of anybody's file.
            if route.mount < 0 { misses.append(RouteMiss(route: route.index, reason: reason)) }
        }
        return misses
    }
}
