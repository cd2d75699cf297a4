/// What the route table says of a request's method, host and path.
package enum RouteMatch: Sendable, Equatable {
    /// The first route that takes the request, by its index.
    case route(Int)
    /// Routes take this host and path but not the method; these they take. ``RouteTable/allowValue(_:)`` lists them.
    case methodNotAllowed(MethodSet)
    /// The expression of this route gave up on the path (``MartletCore/ErrorCode/routerMatchLimit``): whether the request
    /// is the route's cannot be told, so it must be refused.
    case failed(Int)
    /// No route takes this host and path.
    case none
}

/// Why a route that comes before the matching one did not take a request; for `martlet explain`.
package struct RouteMiss: Sendable, Equatable {
    /// What a request can fail at, in the order in which it is asked.
    package enum Reason: String, Sendable { case host, path, method }

    /// The route's index.
    package let route: Int
    /// The first of host, path and method that did not fit.
    package let reason: Reason
}
