internal import MartletRouter

/// A request whose route was found: what the authenticator decides about.
struct RoutedRequest: ~Copyable {
    /// Identifies the exchange for whoever receives the outcome.
    let exchange: Int32
    let route: Int

    /// - Returns: `nil` without a route to an upstream: the gateway responds to other requests itself.
    @inline(__always)
    init?(_ match: RouteMatch, exchange: Int32, in snapshot: Snapshot) {
        guard case .route(let route) = match, snapshot.compiledRoutes[route].mount < 0 else { return nil }
        self.exchange = exchange
        self.route = route
    }
}
