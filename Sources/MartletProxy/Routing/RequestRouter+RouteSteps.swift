internal import MartletAuthenticator
internal import MartletConfig
internal import MartletCore
internal import MartletDecisions
internal import MartletHTTP
internal import MartletResponder
internal import MartletRouter

/// The steps of routing: what they reject is thrown.
extension RequestRouter {
    /// Notes the target of a request as received, whose path was not normalized.
    mutating func noteTarget(
        _ exchange: Handle<Exchange>, _ bytes: UnsafeBufferPointer<UInt8>, _ exchanges: inout Exchanges,
        _ downstreams: inout DownstreamConnections, _ context: inout LoopContext
    ) {
        unsafe noteHead(exchange, bytes, &exchanges, &downstreams, &context)
        unsafe exchanges[exchange].record.texts.set(rejected: bytes[head.target])
    }

    /// Sets the exchange's normalized path: the one spelling that is matched, forwarded and logged.
    @inline(__always)
    mutating func normalizePath(
        _ exchange: Handle<Exchange>, _ bytes: UnsafeBufferPointer<UInt8>, _ exchanges: inout Exchanges,
        _ downstreams: inout DownstreamConnections, _ context: inout LoopContext
    ) throws(Failure) {
        context.scratch.normalizedPath.removeAll()
        let received = unsafe bytes[head.path]
        switch unsafe PathNormalizer.normalize(
            received.span, keepsEncodedSlash: context.snapshot.paths.keepsEncodedSlash,
            keepsEncodedPercent: context.snapshot.paths.keepsEncodedPercent,
            mergesSlashes: context.snapshot.paths.mergesSlashes, into: &context.scratch.normalizedPath)
        {
        case .unchanged: unsafe exchanges[exchange].record.texts.set(path: received)
        case .rewritten: unsafe exchanges[exchange].record.texts.set(path: context.scratch.normalizedPath.bytes)
        case .failure(let failure):
            unsafe noteTarget(exchange, bytes, &exchanges, &downstreams, &context)
            throw .head(failure)
        }
    }

    /// Applies the route's limits before any of the body is read.
    /// - Returns: `false` if the request waits for the store.
    @inline(__always)
    mutating func applyLimits(
        _ exchange: Handle<Exchange>, route: Int, _ bytes: UnsafeBufferPointer<UInt8>, _ exchanges: inout Exchanges,
        _ downstreams: inout DownstreamConnections, _ context: inout LoopContext
    ) throws(Failure) -> Bool {
        let limit =
            exchanges[exchange].request.isGRPC
            ? context.snapshot.compiledRoutes[route].streamLimit : context.snapshot.compiledRoutes[route].bodyLimit
        // A check is not the request that its route's limit is for, and its own body is not read.
        guard exchanges[exchange].body.restrict(to: limit) || !exchanges[exchange].request.check.isEmpty else {
            unsafe noteHead(exchange, bytes, &exchanges, &downstreams, &context)
            throw .bodyTooLarge
        }
        if context.snapshot.compiledRoutes[route].limitPlan >= 0,
            unsafe try !admit(exchange, route: route, bytes, &exchanges, &downstreams, &context)
        {
            return false
        }
        // What a check offers is the client's, for another connection.
        let isForwarded = context.snapshot.compiledRoutes[route].mount == context.snapshot.checkMount
        if !head.upgrade.isEmpty, !isForwarded || exchanges[exchange].request.isConnect {
            unsafe try checkUpgrade(exchange, route: route, bytes, &exchanges, &context)
        }
        return true
    }

    /// Looks at a request with an uncommon method or target form.
    /// - Throws: why such a request is never forwarded.
    @inline(never)
    mutating func unusual(
        _ exchange: Handle<Exchange>, _ bytes: UnsafeBufferPointer<UInt8>, _ exchanges: inout Exchanges,
        _ downstreams: inout DownstreamConnections, _ context: inout LoopContext
    ) throws(Failure) -> Preflight {
        if let failure = unsafe context.snapshot.routes.rejection(ofUnusual: head, bytes.span) {
            unsafe noteTarget(exchange, bytes, &exchanges, &downstreams, &context)
            throw failure
        }
        guard head.method == .options, context.snapshot.routes.hasCrossOrigin else { return .none }
        return unsafe try preflight(exchange, bytes, &exchanges, &downstreams, &context)
    }

    /// What a request is that may be a preflight.
    enum Preflight {
        /// One as any other.
        case none
        /// It waits for the store's decisions about its limits.
        case waits
        case response(LocalResponse)
    }

    /// Makes the response to a request if it is a preflight of a route with `cors`, before authentication.
    ///
    /// The limits that need no caller count it: there is no caller yet.
    private mutating func preflight(
        _ exchange: Handle<Exchange>, _ bytes: UnsafeBufferPointer<UInt8>, _ exchanges: inout Exchanges,
        _ downstreams: inout DownstreamConnections, _ context: inout LoopContext
    ) throws(Failure) -> Preflight {
        guard let method = unsafe CrossOriginRules.requestedMethod(head.fields, bytes.span) else { return .none }
        unsafe try normalizePath(exchange, bytes, &exchanges, &downstreams, &context)
        let path = unsafe exchanges[exchange].record.texts.path
        guard
            let index = unsafe context.snapshot.routes.preflightRoute(
                method: bytes[method].span, &head, bytes.span, path: path.span),
            let rules = context.snapshot.routeRules[index].crossOrigin
        else { return .none }
        unsafe noteHead(exchange, bytes, &exchanges, &downstreams, &context)
        exchanges[exchange].record.routeSlot = context.counters.routes.configured[index]
        _ = unsafe keepRules(of: index, exchange, bytes, &exchanges, &context)
        guard unsafe try applyLimits(exchange, route: index, bytes, &exchanges, &downstreams, &context) else {
            return .waits
        }
        var isAllowed = false
        exchanges[exchange].response.rules.withCrossOrigin { isAllowed = $0.isAllowed }
        return .response(LocalResponse(status: 204, fields: rules.preflightFields(isAllowed: isAllowed), body: []))
    }
}
