internal import MartletDecisions
internal import MartletHTTP
internal import MartletResponder
internal import MartletRouter

/// What only some routes have: conditions on headers and parameters, fields of responses, and a timeout.
extension RequestRouter {
    /// Finds the first route whose conditions hold, and applies its rules to the exchange.
    /// - Throws: where the request's time has passed.
    @inline(never)
    mutating func resolve(
        _ found: RouteMatch, of exchange: Handle<Exchange>, _ bytes: UnsafeBufferPointer<UInt8>,
        _ exchanges: inout Exchanges, _ context: inout LoopContext
    ) throws(Failure) -> RouteMatch {
        var resolved = found
        if case .route(let index) = found, context.snapshot.compiledRoutes[index].extras.contains(.conditions) {
            let path = unsafe exchanges[exchange].record.texts.path
            resolved = unsafe context.snapshot.routes.resolve(found, &head, bytes.span, path: path.span)
        }
        guard case .route(let index) = resolved else { return resolved }
        guard unsafe keepRules(of: index, exchange, bytes, &exchanges, &context) else { return resolved }
        // A request that had to wait for a verification is routed again.
        guard exchanges[exchange].response.rules.deadline <= context.now else { return resolved }
        exchanges[exchange].record.routeSlot = context.counters.routes.configured[index]
        throw ExchangeRouteRules.timeout
    }

    /// Has the exchange keep what its route says about the response.
    /// - Returns: whether the route says anything.
    @inline(never)
    func keepRules(
        of route: Int, _ exchange: Handle<Exchange>, _ bytes: UnsafeBufferPointer<UInt8>, _ exchanges: inout Exchanges,
        _ context: inout LoopContext
    ) -> Bool {
        let extras = context.snapshot.compiledRoutes[route].extras
        guard !extras.isDisjoint(with: .kept) else { return false }
        let started = exchanges[exchange].record.started
        // The time of a route is that of its response, which the proxy that sends a check gets itself.
        let timeout =
            exchanges[exchange].request.check.isEmpty ? context.snapshot.compiledRoutes[route].timeout : .max
        // The loop retains the snapshot: no need to retain it again for the call.
        unsafe Unmanaged.passUnretained(context.snapshot)._withUnsafeGuaranteedRef { snapshot in
            exchanges[exchange].response.rules.set(started: started, timeout: timeout)
            if extras.contains(.responseFields) {
                exchanges[exchange].response.rules.set(snapshot.routeRules[route].responseFields)
            }
            guard extras.contains(.crossOrigin) else { return }
            unsafe snapshot.routeRules[route].lentCrossOrigin?._withUnsafeGuaranteedRef {
                unsafe $0.withFields(for: head.fields, bytes.span) {
                    exchanges[exchange].response.rules.set(crossOrigin: $0)
                }
            }
        }
        return true
    }
}
