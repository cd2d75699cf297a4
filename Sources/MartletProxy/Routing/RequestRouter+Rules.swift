internal import MartletHTTP
internal import MartletRouter

/// What only some routes have: conditions on headers and parameters, fields of responses, and a timeout.
extension RequestRouter {
    /// Finds the first route whose conditions hold, and applies its rules to the exchange.
    /// - Returns: `nil` if the request was rejected, because its time has passed.
    @inline(never)
    mutating func resolve(
        _ found: RouteMatch, of exchange: Handle<Exchange>, _ bytes: UnsafeBufferPointer<UInt8>,
        _ loop: inout LoopState
    ) -> RouteMatch? {
        let path = unsafe loop.exchanges[exchange].record.texts.path
        let resolved = unsafe loop.context.snapshot.routes.resolve(found, &head, bytes.span, path: path.span)
        guard case .route(let index) = resolved else { return resolved }
        let route = loop.context.snapshot.compiledRoutes[index]
        guard !route.extras.isDisjoint(with: [.responseFields, .timeout]) else { return resolved }
        let started = loop.exchanges[exchange].record.started
        // The time of a route is that of its response, which the proxy that sends a check gets itself.
        let timeout = loop.exchanges[exchange].request.check.isEmpty ? route.timeout : .max
        loop.exchanges[exchange].response.rules.set(
            loop.context.snapshot.responseFields[index], started: started, timeout: timeout)
        // A request that had to wait for a verification is routed again.
        guard loop.exchanges[exchange].response.rules.deadline <= loop.now else { return resolved }
        loop.exchanges[exchange].record.routeSlot = loop.context.counters.routes.configured[index]
        loop.reject(exchange, ExchangeRouteRules.timeout)
        return nil
    }
}
