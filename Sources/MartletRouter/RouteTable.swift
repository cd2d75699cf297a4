import MartletConfig
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
    /// Whether any route has rules for pages of other origins.
    package let hasCrossOrigin: Bool

    init(
        routes: ContiguousArray<Route>, injections: ContiguousArray<HeaderInjection>, reservedNames: FieldNameSet,
        methods: MethodNames
    ) {
        self.routes = routes
        self.injections = injections
        self.reservedNames = reservedNames
        self.methods = methods
        restrictsMethods = routes.contains { $0.pattern.methods != .any }
        hasCrossOrigin = routes.contains { $0.crossOrigin != nil }
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

    /// Finds the route of a request after one whose conditions do not hold.
    @inline(never)
    package func match(
        after route: Int, method: Span<UInt8>, authority: Span<UInt8>, path: Span<UInt8>
    ) -> RouteMatch {
        match(after: route, methods: methods.set(of: method), authority: authority, path: path)
    }

    func match(
        after route: Int, methods: MethodSet, authority: Span<UInt8>, path: Span<UInt8>
    ) -> RouteMatch {
        var search = RouteIndex.Search(methods, after: route)
        index.search(authority: authority, path: path, &search)
        if search.best != .max { return search.failed ? .failed(Int(search.best)) : .route(Int(search.best)) }
        var mismatch = RouteIndex.Search(methods)
        return self.mismatch(authority, path, &mismatch)
    }

    /// The first route of those that a request's method, host and path match whose conditions hold.
    ///
    /// - Parameters:
    ///   - found: the result for the method, the host and the path.
    ///   - head: lent `inout`, though it is only read: one that a function borrows is copied for it.
    ///   - bytes: those that the head was parsed from.
    ///   - path: normalized.
    package func resolve(
        _ found: RouteMatch, _ head: inout RequestHead, _ bytes: Span<UInt8>, path: Span<UInt8>
    ) -> RouteMatch {
        let method = methods.set(of: bytes.extracting(head.methodText.bounds))
        return resolve(found, methods: method, &head, bytes, path: path)
    }

    /// The first route of those that a set of methods, the host and the path match whose conditions hold.
    func resolve(
        _ found: RouteMatch, methods: MethodSet, _ head: inout RequestHead, _ bytes: Span<UInt8>, path: Span<UInt8>
    ) -> RouteMatch {
        var found = found
        while case .route(let index) = found {
            switch routes[index].pattern.test(&head, bytes).outcome {
            case .matched: return found
            case .failed: return .failed(index)
            case .unmatched: break
            }
            found = match(
                after: index, methods: methods, authority: bytes.extracting(head.authority.bounds), path: path)
        }
        return found
    }

    /// The result for a request that no route matches.
    @inline(never)
    private func mismatch(
        _ authority: Span<UInt8>, _ path: Span<UInt8>, _ search: inout RouteIndex.Search
    ) -> RouteMatch {
        search.collectMethods()
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
        search.collectMethods()
        index.search(authority: authority, path: path, &search)
        return search.namesMethods
    }

    /// The value of an `Allow` field for a set of methods.
    package func allowValue(_ methods: MethodSet) -> String { self.methods.list(methods) }

    /// Why each route before the matching one (or every route, if none matches) did not match a request.
    ///
    /// Tests each route's pattern directly, so that it also verifies the index behind
    /// ``match(method:authority:path:)``.
    ///
    /// - Parameter unmet: the condition of a route that does not hold, if there is one (``unmetCondition(of:_:_:)``).
    package func misses(
        method: Span<UInt8>, authority: Span<UInt8>, path: Span<UInt8>,
        unmet: (Int) -> RouteMiss.Reason? = { _ in nil }
    ) -> [RouteMiss] {
        let methodSet = methods.set(of: method)
        var misses: [RouteMiss] = []
        for route in routes {
            let miss = route.pattern.miss(methodSet, authority: authority, path: path)
            guard let reason = miss ?? unmet(route.index) else { return misses }
            // Mounts are not routes of the configuration.
            if route.mount < 0 { misses.append(RouteMiss(route: route.index, reason: reason)) }
        }
        return misses
    }

    /// The condition of a route on a request's own headers and parameters that does not hold.
    package func unmetCondition(
        of route: Int, _ head: inout RequestHead, _ bytes: Span<UInt8>
    ) -> RouteMiss.Reason? {
        let (outcome, source) = routes[route].pattern.test(&head, bytes)
        guard outcome == .unmatched else { return nil }
        return source == .header ? .header : .query
    }
}
