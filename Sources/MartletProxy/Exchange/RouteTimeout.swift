/// Ends exchanges whose route's `timeout` has passed.
enum RouteTimeout {
    /// Ends an exchange, unless its response has begun.
    /// - Returns: whether it ends; its handle must not be used then.
    static func ends(_ exchange: Handle<Exchange>, _ events: inout EventLoop) -> Bool {
        let downstream = events.loop.exchanges[exchange].downstream
        let hasBegun = events.loop.exchanges[exchange].response.hasStarted || events.loop.exchanges.isTunnel(exchange)
        switch events.loop.exchanges[exchange].response.rules.action(
            hasResponseStarted: hasBegun,
            isAuthenticating: events.loop.downstreams[downstream].phase == .authenticating, at: events.loop.now)
        {
        case .ignore: return false
        case .reroute: events.resumeRequest(downstream, with: nil)
        case .fail: events.loop.fail(exchange, ExchangeRouteRules.timeout)
        }
        return true
    }
}
