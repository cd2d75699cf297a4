/// The result of matching a request's method, host and path.
package enum RouteMatch: Sendable, Equatable {
    /// The index of the first matching route.
    case route(Int)
    /// Routes match the host and path, but allow only these methods; see ``RouteTable/allowValue(_:)``.
    case methodNotAllowed(MethodSet)
    /// The expression of this route exceeded its match limit: it is unknown whether the route matches, so the request
    /// must be rejected.
    case failed(Int)
    /// No route matches the host and path.
    case none
}

/// Why a route before the matching one did not match a request, for `martlet explain`.
package struct RouteMiss: Sendable, Equatable {
    /// The parts of a pattern, in the order in which they are tested.
    package enum Reason: String, Sendable { case host, path, method, header, query }

    /// The route's index.
    package let route: Int
    /// The first that did not match.
    package let reason: Reason
}
