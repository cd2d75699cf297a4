internal import MartletAuthenticator
internal import MartletConfig
internal import MartletCore
internal import MartletDecisions
internal import MartletResponder
internal import MartletRouter
internal import MartletTraffic

/// Header injection: forwards a request with the head that ``UpstreamHeadWriter`` writes.
extension RequestRouter {
    /// Writes the upstream's head and sends it to an endpoint.
    mutating func forward(
        _ request: consuming AuthorizedRequest, _ bytes: UnsafeBufferPointer<UInt8>, _ loop: inout LoopState
    ) {
        let exchange = Handle(request.exchange)
        let route = Int(request.route)
        var upstream = loop.context.snapshot.compiledRoutes[route].upstream
        let hasSeveral = upstream < 0
        if hasSeveral {
            guard upstream == CompiledRoute.several else {
                return unsafe respond(exchange, route: route, bytes, &loop)
            }
            let only = loop.context.snapshot.compiledRoutes[route].onlyUpstream
            upstream =
                only < 0
                ? chosenUpstream(of: exchange, route: route, &loop.exchanges, &loop.downstreams, &loop.context) : only
        }
        let cluster = loop.upstreams.directory.clusterOfUpstream[upstream]
        loop.exchanges[exchange].forwarding.cluster = cluster
        if loop.upstreams.directory.clusters[Int(cluster)].upstream.isCounted {
            guard RequestForwarder.admit(exchange, to: cluster, &loop) else { return }
        }
        if case .hash = loop.upstreams.directory.clusters[Int(cluster)].upstream.traffic.balance {
            unsafe setHash(of: exchange, cluster, bytes, &loop.exchanges, &loop.downstreams, &loop.upstreams)
        }
        switch unsafe writeHead(
            exchange, request, for: upstream, bytes, &loop.exchanges, &loop.downstreams, &loop.context)
        {
        case .written: break
        case .badPath: return loop.reject(exchange, .malformed(.rewriteRejected))
        case .loop: return loop.reject(exchange, .loopDetected)
        }
        if hasSeveral {
            if loop.context.tracing.isOn {
                unsafe RequestTracing.writeFields(
                    exchange, head, bytes, &loop.exchanges, &loop.downstreams, &loop.context)
            }
        }
        if hasSeveral, loop.context.snapshot.compiledRoutes[route].hasMirror {
            unsafe mirror(exchange, route: route, bytes, &loop.exchanges, &loop.context)
        }
        RequestForwarder.sendToEndpoint(exchange, avoiding: .none, reusing: true, &loop)
    }

    /// Stores what the request is balanced by.
    @inline(never)
    private mutating func setHash(
        of exchange: Handle<Exchange>, _ cluster: ClusterIndex, _ bytes: UnsafeBufferPointer<UInt8>,
        _ exchanges: inout Exchanges, _ downstreams: inout DownstreamConnections, _ upstreams: inout UpstreamConnections
    ) {
        switch upstreams.directory.clusters[Int(cluster)].upstream.balance {
        case .hash(let header): unsafe exchanges[exchange].forwarding.setHash(of: header, in: head, bytes)
        case .hashSubject:
            let subject = exchanges[exchange].credential.subject
            exchanges[exchange].forwarding.hash = UInt64(truncatingIfNeeded: subject)
        case .hashAddress:
            let address = exchanges[exchange].clientAddress(&downstreams)
            exchanges[exchange].forwarding.setHash(ofAddress: address)
        case .leastRequests, .roundRobin: break
        }
    }

    /// Picks the split upstream: by subject, or by address for anonymous callers.
    @inline(never)
    private func chosenUpstream(
        of exchange: Handle<Exchange>, route: Int, _ exchanges: inout Exchanges,
        _ downstreams: inout DownstreamConnections, _ context: inout LoopContext
    ) -> Int {
        guard let split = context.snapshot.routeRules[route].split else {
            return context.snapshot.routes.routes[route].upstream
        }
        let subject = UInt64(truncatingIfNeeded: exchanges[exchange].credential.subject)
        let key =
            subject == 0
            ? RouteSplit.key(ofAddress: exchanges[exchange].clientAddress(&downstreams)) : subject
        return split.upstream(for: key)
    }

    /// The outcome of writing a head for an upstream.
    private enum WrittenHead: UInt8 {
        case written
        /// The rewritten path is none that an upstream may get.
        case badPath
        /// The request has been here already.
        case loop
    }

    /// Writes the upstream's head, and stores what will be needed of it.
    @inline(__always)
    private mutating func writeHead(
        _ exchange: Handle<Exchange>, _ authorized: consuming AuthorizedRequest, for upstream: Int,
        _ bytes: UnsafeBufferPointer<UInt8>, _ exchanges: inout Exchanges, _ downstreams: inout DownstreamConnections,
        _ context: inout LoopContext
    ) -> WrittenHead {
        let lent = unsafe exchanges.all.address(of: exchange)
        let downstream = unsafe lent.pointee.downstream
        let tunnel = unsafe lent.pointee.tunnel
        let request = unsafe ForwardedRequest(
            route: Int(authorized.route), upstream: upstream, consumesCredential: authorized.consumedCredential,
            expectsContinue: lent.pointee.request.expectsContinue, hasCookie: lent.pointee.credential.hasCookie,
            isStream: lent.pointee.isStream,
            isPathUnchanged: context.scratch.normalizedPath.isEmpty, framing: lent.pointee.body.framing,
            path: lent.pointee.record.texts.path, requestID: lent.pointee.record.texts.requestID,
            upgrade: tunnel.isNone
                ? UnsafeBufferPointer(start: nil, count: 0) : exchanges.tunnels[tunnel].offer.name.bytes,
            identity: authorized.headers)
        if request.isStream { unsafe lent.pointee.request.detectTrailerSupport(in: &head, bytes) }
        let connection = unsafe downstreams.all.address(of: downstream)
        // The loop retains the snapshot: no need to retain it again for the call.
        let written = unsafe Unmanaged.passUnretained(context.snapshot)._withUnsafeGuaranteedRef {
            unsafe UpstreamHeadWriter.write(
                request, &head, bytes, from: &connection.pointee.origin, $0, trailers: &lent.pointee.trailers,
                into: &lent.pointee.forwarding.head)
        }
        if written.isRejected { return .badPath }
        if written.isLoop { return .loop }
        unsafe lent.pointee.forwarding.headerRules.begin(route: request.route, rules: written.rules)
        return .written
    }
}
