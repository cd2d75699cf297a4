internal import MartletAuthenticator
internal import MartletConfig
internal import MartletCore
internal import MartletDecisions
internal import MartletHTTP
internal import MartletResponder
internal import MartletRouter

/// Finds the route of a request, and applies its limits before any of the body is read.
extension RequestRouter {
    /// Begins an exchange for the head that was just parsed from `bytes`.
    @inline(__always)
    mutating func beginExchange(
        _ downstream: Handle<DownstreamConnection>, _ bytes: UnsafeBufferPointer<UInt8>, _ exchanges: inout Exchanges,
        _ downstreams: inout DownstreamConnections, _ context: inout LoopContext
    ) -> Handle<Exchange> {
        let exchange = exchanges.allocateExchange(for: downstream, &downstreams, &context)
        exchanges[exchange].request.method = head.method
        exchanges[exchange].request.isHTTP10 = head.isHTTP10
        exchanges[exchange].request.keepsAlive = head.keepsAlive
        exchanges[exchange].request.expectsContinue = head.expectsContinue && !head.isHTTP10
        exchanges[exchange].body.framing = head.framing
        if head.framing.isEmpty {
            exchanges[exchange].body.isComplete = true
        } else {
            exchanges[exchange].expectBody(&downstreams, &context)
        }
        if exchanges[exchange].isStream {
            let lent = unsafe exchanges.all.address(of: exchange)
            // A stream has no fields about its connection: this is an extended CONNECT, whose 200 opens a tunnel.
            if head.upgrade.isEmpty {
                unsafe lent.pointee.request.detectGRPC(in: &head, bytes)
            } else {
                unsafe lent.pointee.request.isConnect = true
            }
        } else if head.fields.has(.contentType), head.method == .post {
            let lent = unsafe exchanges.all.address(of: exchange)
            unsafe lent.pointee.request.detectGRPCWeb(in: &head, bytes)
        }
        if downstreams[downstream].origin.address.isTrusted || context.logs.access.needsNotes {
            unsafe readHead(exchange, bytes, &exchanges, &downstreams, &context)
        }
        if head.fields.hasForwarding, !downstreams[downstream].origin.address.isTrusted {
            warnOfForwarding(downstream, &downstreams, &context)
        }
        unsafe exchanges[exchange].record.texts.add(method: bytes[head.methodText], host: bytes[head.authority])
        return exchange
    }

    /// Reads what access lines have of a head, and what a trusted proxy says in it.
    @inline(never)
    private mutating func readHead(
        _ exchange: Handle<Exchange>, _ bytes: UnsafeBufferPointer<UInt8>, _ exchanges: inout Exchanges,
        _ downstreams: inout DownstreamConnections, _ context: inout LoopContext
    ) {
        if context.logs.access.needsNotes { unsafe exchanges[exchange].record.notes = AccessNotes(head, bytes) }
        guard downstreams[exchanges[exchange].downstream].origin.address.isTrusted else { return }
        unsafe applyProxyFields(exchange, bytes, &exchanges, &downstreams, &context)
    }

    /// Logs once for a connection that forwarding fields of its peer are ignored: its requests count as the peer's own.
    @inline(never)
    private func warnOfForwarding(
        _ downstream: Handle<DownstreamConnection>, _ downstreams: inout DownstreamConnections,
        _ context: inout LoopContext
    ) {
        let connection =
            downstreams[downstream].isStream ? downstreams[downstream].stream.connection : downstream
        guard !downstreams[connection].origin.address.isReported else { return }
        downstreams[connection].origin.address.isReported = true
        let known: [KnownField] = [.xForwardedFor, .forwarded, .xForwardedProto, .xForwardedHost]
        guard let field = known.first(where: { head.fields.has($0) }) else { return }
        context.debug.warnings.ignoredField(
            field.name.description, of: downstreams[connection].origin.address.text.description, at: context.now)
    }

    // Not inlined: a proxy's fields are read where the peer is a trusted one.
    @inline(never)
    mutating func applyProxyFields(
        _ exchange: Handle<Exchange>, _ bytes: UnsafeBufferPointer<UInt8>, _ exchanges: inout Exchanges,
        _ downstreams: inout DownstreamConnections, _ context: inout LoopContext
    ) {
        let peer = downstreams[exchanges[exchange].downstream].origin.address.text
        unsafe exchanges[exchange].record.applyProxyFields(
            of: head, bytes, from: peer, trusting: context.snapshot.trustedProxies)
        if context.tracing.isOn { unsafe RequestTracing.noteParent(of: exchange, head, bytes, &context) }
    }

    /// Finds the route of the request in the head.
    /// - Parameter isDescribed: whether a check describes it, and the exchange is that of the check.
    @inline(__always)
    mutating func route(
        _ exchange: Handle<Exchange>, _ bytes: UnsafeBufferPointer<UInt8>, _ loop: inout LoopState,
        isDescribed: Bool = false
    ) -> RoutedRequest? {
        if head.method.isUncommon || head.isAsteriskForm, unsafe respondsToUnusual(exchange, bytes, &loop) {
            return nil
        }
        guard unsafe normalizePath(exchange, bytes, &loop) else { return nil }
        let path = unsafe loop.exchanges[exchange].record.texts.path
        // The snapshot retains the table: no need to retain it again for the call.
        var found = unsafe Unmanaged.passUnretained(loop.context.snapshot.routes)._withUnsafeGuaranteedRef {
            unsafe $0.match(
                method: bytes[head.methodText].span, authority: bytes[head.authority].span, path: path.span)
        }
        if case .route(let index) = found, !loop.context.snapshot.compiledRoutes[index].extras.isEmpty {
            guard let resolved = unsafe resolve(found, of: exchange, bytes, &loop) else { return nil }
            found = resolved
        }
        switch found {
        case .route(let index):
            loop.exchanges[exchange].record.routeSlot = loop.context.counters.routes.configured[index]
            guard unsafe applyLimits(exchange, route: index, bytes, &loop) else { return nil }
            let mount = loop.context.snapshot.compiledRoutes[index].mount
            if isDescribed, loop.context.snapshot.routes.routes[index].response != nil {
                loop.reject(exchange, .noRoute("check.own_response"))
                return nil
            }
            if let routed = RoutedRequest(exchange: ExchangeID(exchange), route: index, mount: mount) { return routed }
            return unsafe routeWithoutUpstream(
                exchange, route: index, mount: mount, isDescribed: isDescribed, bytes, &loop)
        case .methodNotAllowed, .none, .failed: unsafe reject(exchange, unmatched: found, bytes, &loop)
        }
        return nil
    }

    /// Rejects a request that has no route.
    @inline(never)
    private mutating func reject(
        _ exchange: Handle<Exchange>, unmatched found: RouteMatch, _ bytes: UnsafeBufferPointer<UInt8>,
        _ loop: inout LoopState
    ) {
        unsafe noteHead(exchange, bytes, &loop.exchanges, &loop.downstreams, &loop.context)
        switch found {
        case .methodNotAllowed(let allowed):
            loop.reject(exchange, .methodNotAllowed(loop.context.snapshot.routes.allowValue(allowed)))
        case .failed: loop.reject(exchange, .matchFailed)
        case .none, .route: loop.reject(exchange, .noRoute)
        }
    }

    /// Rejects a request with an uncommon method or target form, or responds to it as a preflight.
    /// - Returns: `false` if it continues as any other.
    @inline(never)
    private mutating func respondsToUnusual(
        _ exchange: Handle<Exchange>, _ bytes: UnsafeBufferPointer<UInt8>, _ loop: inout LoopState
    ) -> Bool {
        if let failure = unsafe loop.context.snapshot.routes.rejection(ofUnusual: head, bytes.span) {
            unsafe reject(exchange, failure, target: bytes, &loop)
            return true
        }
        guard head.method == .options, loop.context.snapshot.routes.hasCrossOrigin else { return false }
        return unsafe respondsToPreflight(exchange, bytes, &loop)
    }

    /// Responds to a request if it is a preflight of a route with `cors`, before authentication.
    ///
    /// The limits that need no caller count it: there is no caller yet.
    ///
    /// - Returns: whether it did, or rejected the request; otherwise it is one as any other.
    private mutating func respondsToPreflight(
        _ exchange: Handle<Exchange>, _ bytes: UnsafeBufferPointer<UInt8>, _ loop: inout LoopState
    ) -> Bool {
        guard let method = unsafe CrossOriginRules.requestedMethod(head.fields, bytes.span) else { return false }
        guard unsafe normalizePath(exchange, bytes, &loop) else { return true }
        let path = unsafe loop.exchanges[exchange].record.texts.path
        guard
            let index = unsafe loop.context.snapshot.routes.preflightRoute(
                method: bytes[method].span, &head, bytes.span, path: path.span),
            let rules = loop.context.snapshot.routeRules[index].crossOrigin
        else { return false }
        unsafe noteHead(exchange, bytes, &loop.exchanges, &loop.downstreams, &loop.context)
        loop.exchanges[exchange].record.routeSlot = loop.context.counters.routes.configured[index]
        _ = unsafe keepRules(of: index, exchange, bytes, &loop.exchanges, &loop.context)
        guard unsafe applyLimits(exchange, route: index, bytes, &loop) else { return true }
        let isAllowed = loop.exchanges[exchange].response.rules.crossOrigin?.isAllowed ?? false
        RequestForwarder.respond(
            exchange, LocalResponse(status: 204, fields: rules.preflightFields(isAllowed: isAllowed), body: []), &loop)
        return true
    }

    /// Rejects a request whose path was not normalized, logging it as received.
    @inline(never)
    mutating func reject(
        _ exchange: Handle<Exchange>, _ failure: Failure, target bytes: UnsafeBufferPointer<UInt8>,
        _ loop: inout LoopState
    ) {
        unsafe noteHead(exchange, bytes, &loop.exchanges, &loop.downstreams, &loop.context)
        unsafe loop.exchanges[exchange].record.texts.set(rejected: bytes[head.target])
        loop.reject(exchange, failure)
    }

    /// Sets the exchange's normalized path: the one spelling that is matched, forwarded and logged.
    @inline(__always)
    private mutating func normalizePath(
        _ exchange: Handle<Exchange>, _ bytes: UnsafeBufferPointer<UInt8>, _ loop: inout LoopState
    ) -> Bool {
        loop.context.scratch.normalizedPath.removeAll()
        let received = unsafe bytes[head.path]
        switch unsafe PathNormalizer.normalize(
            received.span, keepsEncodedSlash: loop.context.snapshot.paths.keepsEncodedSlash,
            keepsEncodedPercent: loop.context.snapshot.paths.keepsEncodedPercent,
            mergesSlashes: loop.context.snapshot.paths.mergesSlashes,
            into: &loop.context.scratch.normalizedPath)
        {
        case .unchanged: unsafe loop.exchanges[exchange].record.texts.set(path: received)
        case .rewritten:
            unsafe loop.exchanges[exchange].record.texts.set(path: unsafe loop.context.scratch.normalizedPath.bytes)
        case .failure(let failure):
            unsafe reject(exchange, .head(failure), target: bytes, &loop)
            return false
        }
        return true
    }

    /// Applies the route's limits before any of the body is read.
    @inline(__always)
    private mutating func applyLimits(
        _ exchange: Handle<Exchange>, route: Int, _ bytes: UnsafeBufferPointer<UInt8>, _ loop: inout LoopState
    ) -> Bool {
        let limit =
            loop.exchanges[exchange].request.isGRPC
            ? loop.context.snapshot.compiledRoutes[route].streamLimit
            : loop.context.snapshot.compiledRoutes[route].bodyLimit
        // A check is not the request that its route's limit is for, and its own body is not read.
        guard loop.exchanges[exchange].body.restrict(to: limit) || !loop.exchanges[exchange].request.check.isEmpty
        else {
            unsafe noteHead(exchange, bytes, &loop.exchanges, &loop.downstreams, &loop.context)
            loop.reject(exchange, .bodyTooLarge)
            return false
        }
        if loop.context.snapshot.compiledRoutes[route].limitPlan >= 0,
            unsafe !admit(exchange, route: route, bytes, &loop)
        {
            return false
        }
        // What a check offers is the client's, for another connection.
        let isForwarded = loop.context.snapshot.compiledRoutes[route].mount == loop.context.snapshot.checkMount
        return unsafe head.upgrade.isEmpty || isForwarded && !loop.exchanges[exchange].request.isConnect
            || checkUpgrade(exchange, route: route, bytes, &loop)
    }

    /// Redirects the client to the same target on https, with the same method (RFC 9110 §15.4.9).
    mutating func redirectToHTTPS(
        _ exchange: Handle<Exchange>, _ bytes: UnsafeBufferPointer<UInt8>, _ loop: inout LoopState
    ) {
        unsafe noteHead(exchange, bytes, &loop.exchanges, &loop.downstreams, &loop.context)
        guard head.method != .connect, !head.isAsteriskForm else { return loop.reject(exchange, .noRoute) }
        guard unsafe normalizePath(exchange, bytes, &loop) else { return }
        guard !head.authority.isEmpty else { return loop.reject(exchange, .head(.hostMissing)) }
        let port = loop.downstreams[loop.exchanges[exchange].downstream].origin.rules.redirectPort
        loop.reject(
            exchange,
            unsafe .movedToHTTPS(
                authority: Array(bytes[head.authority]), path: Array(loop.exchanges[exchange].record.texts.path),
                query: Array(bytes[head.query]), port: port))
    }

    /// Hands a request to the listener's own handler, if that accepts the path.
    @inline(never)
    mutating func handToListenerHandler(
        _ exchange: Handle<Exchange>, _ bytes: UnsafeBufferPointer<UInt8>, _ loop: inout LoopState
    ) -> Bool {
        guard let handler = loop.downstreams[loop.exchanges[exchange].downstream].origin.handler,
            unsafe handler.handles(bytes[head.path])
        else { return false }
        if loop.exchanges[exchange].request.isConnect {
            loop.reject(exchange, .protocolUnknown)
        } else if let response = handler.responseWithoutTask {
            unsafe loop.exchanges[exchange].record.texts.set(path: bytes[head.path])
            loop.exchanges[exchange].responder = .local
            RequestForwarder.send(response, of: exchange, &loop)
        } else {
            unsafe respondLocally(exchange, bytes, handler.respond, &loop)
        }
        return true
    }

    /// Hands the request in `bytes` to a handler, once its body is complete.
    private mutating func respondLocally(
        _ exchange: Handle<Exchange>, _ bytes: UnsafeBufferPointer<UInt8>, _ handler: @escaping LocalHandler,
        _ loop: inout LoopState
    ) {
        unsafe loop.exchanges[exchange].record.texts.set(path: bytes[head.path])
        guard loop.exchanges[exchange].body.restrict(to: LocalLimits.bodyBytes) else {
            return loop.reject(exchange, .bodyTooLarge)
        }
        unsafe RequestForwarder.beginLocal(exchange, bytes, handler, &loop)
    }
}
