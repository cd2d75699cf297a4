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

    /// Finds the route of the request in the head; one that has none, or exceeds its limits, is rejected here.
    /// - Parameter isDescribed: whether a check describes it, and the exchange is that of the check.
    @inline(__always)
    mutating func route(
        _ exchange: Handle<Exchange>, _ bytes: UnsafeBufferPointer<UInt8>, _ loop: inout LoopState,
        isDescribed: Bool = false
    ) -> RoutedRequest? {
        do throws(Failure) {
            if head.method.isUncommon || head.isAsteriskForm {
                switch unsafe try unusual(exchange, bytes, &loop.exchanges, &loop.downstreams, &loop.context) {
                case .none: break
                case .waits: return nil
                case .response(let response):
                    RequestForwarder.respond(exchange, response, &loop)
                    return nil
                }
            }
            unsafe try normalizePath(exchange, bytes, &loop.exchanges, &loop.downstreams, &loop.context)
            let path = unsafe loop.exchanges[exchange].record.texts.path
            // The snapshot retains the table: no need to retain it again for the call.
            var found = unsafe Unmanaged.passUnretained(loop.context.snapshot.routes)._withUnsafeGuaranteedRef {
                unsafe $0.match(
                    method: bytes[head.methodText].span, authority: bytes[head.authority].span, path: path.span)
            }
            if case .route(let index) = found, !loop.context.snapshot.compiledRoutes[index].extras.isEmpty {
                found = unsafe try resolve(found, of: exchange, bytes, &loop.exchanges, &loop.context)
            }
            guard case .route(let index) = found else {
                throw unsafe unmatched(found, exchange, bytes, &loop.exchanges, &loop.downstreams, &loop.context)
            }
            loop.exchanges[exchange].record.routeSlot = loop.context.counters.routes.configured[index]
            guard
                unsafe try applyLimits(
                    exchange, route: index, bytes, &loop.exchanges, &loop.downstreams, &loop.context)
            else { return nil }
            let mount = loop.context.snapshot.compiledRoutes[index].mount
            if isDescribed, loop.context.snapshot.routes.routes[index].response != nil {
                throw .noRoute("check.own_response")
            }
            if let routed = RoutedRequest(exchange: ExchangeID(exchange), route: index, mount: mount) { return routed }
            return unsafe try routeWithoutUpstream(
                exchange, route: index, mount: mount, isDescribed: isDescribed, bytes, &loop)
        } catch {
            loop.reject(exchange, error)
            return nil
        }
    }

    /// Why a request without a route is rejected.
    @inline(never)
    private mutating func unmatched(
        _ found: RouteMatch, _ exchange: Handle<Exchange>, _ bytes: UnsafeBufferPointer<UInt8>,
        _ exchanges: inout Exchanges, _ downstreams: inout DownstreamConnections, _ context: inout LoopContext
    ) -> Failure {
        unsafe noteHead(exchange, bytes, &exchanges, &downstreams, &context)
        return switch found {
        case .methodNotAllowed(let allowed): .methodNotAllowed(context.snapshot.routes.allowValue(allowed))
        case .failed: .matchFailed
        case .none, .route: .noRoute
        }
    }

    /// The redirect to the same target on https, with the same method (RFC 9110 §15.4.9), or why there is none.
    mutating func redirectToHTTPS(
        _ exchange: Handle<Exchange>, _ bytes: UnsafeBufferPointer<UInt8>, _ exchanges: inout Exchanges,
        _ downstreams: inout DownstreamConnections, _ context: inout LoopContext
    ) -> Failure {
        unsafe noteHead(exchange, bytes, &exchanges, &downstreams, &context)
        guard head.method != .connect, !head.isAsteriskForm else { return .noRoute }
        do throws(Failure) {
            unsafe try normalizePath(exchange, bytes, &exchanges, &downstreams, &context)
        } catch {
            return error
        }
        guard !head.authority.isEmpty else { return .head(.hostMissing) }
        let port = downstreams[exchanges[exchange].downstream].origin.rules.redirectPort
        return unsafe .movedToHTTPS(
            authority: Array(bytes[head.authority]), path: Array(exchanges[exchange].record.texts.path),
            query: Array(bytes[head.query]), port: port)
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
            unsafe loop.exchanges[exchange].record.texts.set(path: bytes[head.path])
            if loop.exchanges[exchange].body.restrict(to: LocalLimits.bodyBytes) {
                unsafe RequestForwarder.beginLocal(exchange, bytes, handler.respond, &loop)
            } else {
                loop.reject(exchange, .bodyTooLarge)
            }
        }
        return true
    }
}
