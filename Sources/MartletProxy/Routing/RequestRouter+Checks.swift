internal import MartletAuthenticator
internal import MartletConfig
internal import MartletCore
internal import MartletDecisions
internal import MartletHTTP
internal import MartletResponder

/// Checks: a proxy asks whether it may forward a client's request, which the head of the check describes.
///
/// The head is made that of the request in place, and the router, the authenticator and the policy decide as if it had
/// come in itself.
extension RequestRouter {
    /// Continues a request whose route leads to no upstream: a check, one of the gateway's own endpoints, or a request
    /// for a route that serves checks alone.
    ///
    /// - Parameter isDescribed: whether the head is already that of the request which a check describes.
    @inline(never)
    mutating func routeWithoutUpstream(
        _ exchange: Handle<Exchange>, route index: Int, mount: Int, isDescribed: Bool,
        _ bytes: UnsafeBufferPointer<UInt8>, _ loop: inout LoopState
    ) throws(Failure) -> RoutedRequest? {
        // The head is described already where a proof was found to be valid without waiting. One that is parsed again has
        // the path of the endpoint.
        if mount == CompiledRoute.checksOnly, loop.exchanges[exchange].request.check.contains(.isDescribed) {
            return RoutedRequest(exchange: ExchangeID(exchange), route: index, mount: -1)
        }
        if isDescribed { throw .noRoute("check.own_path") }
        if mount == loop.context.snapshot.checkMount {
            unsafe try beginCheck(exchange, bytes, &loop.exchanges, &loop.downstreams, &loop.context)
            return unsafe route(exchange, bytes, &loop, isDescribed: true)
        }
        if mount == CompiledRoute.checksOnly { throw .noRoute("router.checks_only") }
        if mount == loop.context.snapshot.checks?.callMount {
            try beginCall(exchange, &loop.exchanges, &loop.downstreams)
            if loop.exchanges[exchange].request.expectsContinue { loop.sendContinue(exchange) }
        } else {
            unsafe RequestForwarder.respondAtMount(exchange, bytes, &loop)
        }
        return nil
    }

    /// Makes the head of a check that of the request that it describes.
    private mutating func beginCheck(
        _ exchange: Handle<Exchange>, _ bytes: UnsafeBufferPointer<UInt8>, _ exchanges: inout Exchanges,
        _ downstreams: inout DownstreamConnections, _ context: inout LoopContext
    ) throws(Failure) {
        // Its caller is a proxy, whatever the type of the client's body; status 200 would let the request in.
        exchanges[exchange].request.isGRPC = false
        guard downstreams[exchanges[exchange].downstream].origin.address.isTrusted,
            let rules = context.snapshot.checks
        else {
            throw .checkFromUntrustedPeer
        }
        var marks = rules.marks
        let call = exchanges[exchange].request.check
        if call.contains(.isCall) {
            marks.formUnion(call.intersection(.ofCall))
            // The client of the described request, not that of the call.
            unsafe applyProxyFields(exchange, bytes, &exchanges, &downstreams, &context)
        }
        // Behind a longer path the query is the client's.
        if head.path.count == rules.endpoint.count {
            let query = unsafe bytes[head.query]
            marks.formUnion(unsafe CheckMarks(query: query.span))
        }
        exchanges[exchange].request.check = marks
        let endpoint = rules.endpoint
        do throws(CheckError) {
            let described = unsafe try CheckedRequest(describedBy: head, bytes.span, at: endpoint.span)
            unsafe head.describe(described, in: bytes.span)
            marks.add(described, method: head.method)
            marks.insert(.isDescribed)
        } catch {
            throw .check(error)
        }
        exchanges[exchange].request.check = marks
        exchanges[exchange].record.routeSlot = .noRoute
        unsafe exchanges[exchange].record.texts.add(method: bytes[head.methodText], host: bytes[head.authority])
    }

    /// Responds to a check whose request may pass.
    @inline(never)
    mutating func respondToCheck(
        _ request: consuming AuthorizedRequest, _ bytes: UnsafeBufferPointer<UInt8>, _ loop: inout LoopState
    ) {
        let exchange = Handle<Exchange>(request.exchange)
        // A reload that moves the endpoint while a credential is verified: nothing was decided about the request.
        guard loop.exchanges[exchange].request.check.contains(.isDescribed) else {
            return loop.reject(exchange, .noRoute("check.own_path"))
        }
        CheckExchanges.count(exchange, &loop.exchanges, &loop.context)
        let isComplete = loop.exchanges[exchange].body.isComplete
        loop.exchanges[exchange].response.start(
            status: 200, closes: !isComplete || !loop.exchanges[exchange].request.keepsAlive || loop.isDraining)
        loop.context.scratch.pending[exchange].removeAll()
        unsafe loop.exchanges[exchange].headWriter(&loop.downstreams).writeLocal(
            LocalResponse(status: 200, fields: [], body: []), date: loop.context.clock.dateText,
            requestID: loop.exchanges[exchange].record.texts.requestID, into: &loop.context.scratch.pending[exchange])
        loop.context.scratch.pending[exchange].openHead()
        loop.context.scratch.pending[exchange].append("Cache-Control: no-store\r\n")
        unsafe loop.context.scratch.pending[exchange].append(request.headers)
        unsafe loop.context.snapshot.checks?.appendMissing(
            request.headers.span, to: &loop.context.scratch.pending[exchange])
        if loop.exchanges[exchange].request.check.contains(.isCall) {
            unsafe appendWithheld(
                bytes, route: Int(request.route), consumesCredential: request.consumedCredential, of: exchange,
                &loop.context)
        }
        loop.context.scratch.pending[exchange].append("\r\n")
        // The rules of the route are for the API's response.
        loop.exchanges[exchange].response.rules.end()
        loop.exchanges.completeHead(of: exchange, .uncached, &loop.context)
        loop.sendCompleteResponse(exchange)
        if loop.exchanges[exchange].isAlive { loop.complete(exchange) }
    }

    /// Appends an empty field, which a call names in `headers_to_remove`, for each field of the client that is
    /// a credential that the gateway itself would not forward, or an identity header in another spelling.
    private func appendWithheld(
        _ bytes: UnsafeBufferPointer<UInt8>, route: Int, consumesCredential: Bool, of exchange: Handle<Exchange>,
        _ context: inout LoopContext
    ) {
        let snapshot = context.snapshot
        var rules = snapshot.compiledRoutes[route].rewriting
        if !consumesCredential { rules.remove(.dropsAuthorization) }
        for index in 0..<head.fields.count {
            let field = head.fields[index]
            var filter = RequestFieldFilter(rules)
            guard unsafe filter.isForNoAPI(field, bytes, snapshot, route) else { continue }
            var line = ByteBuffer()
            unsafe line.append(bytes[field.name])
            line.append(":")
            // With its usual name it is in the response already.
            if unsafe snapshot.checks?.isReserved(line.bytes.span) == true { continue }
            line.append("\r\n")
            unsafe context.scratch.pending[exchange].append(line.bytes)
        }
    }

    /// Receives the message of a check by gRPC.
    @inline(never)
    private func beginCall(
        _ exchange: Handle<Exchange>, _ exchanges: inout Exchanges, _ downstreams: inout DownstreamConnections
    ) throws(Failure) {
        guard exchanges[exchange].request.isGRPC, head.method == .post else {
            throw .noRoute("check.no_call")
        }
        guard downstreams[exchanges[exchange].downstream].origin.address.isTrusted else {
            throw .callFromUntrustedPeer
        }
        guard !exchanges[exchange].body.isComplete else { throw .check(.message) }
        exchanges[exchange].responder = .call
    }
}
