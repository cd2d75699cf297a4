/// A request whose route was found: what the authenticator decides about.
@usableFromInline
package struct RoutedRequest: ~Copyable {
    @usableFromInline package let exchange: ExchangeID
    @usableFromInline package let route: Int

    /// - Parameter mount: the handler of the route in this process; negative for a route to an upstream.
    /// - Returns: `nil` without a route to an upstream: the gateway responds to other requests itself.
    @inlinable @inline(__always)
    package init?(exchange: ExchangeID, route: Int, mount: Int) {
        guard mount < 0 else { return nil }
        self.exchange = exchange
        self.route = route
    }
}
