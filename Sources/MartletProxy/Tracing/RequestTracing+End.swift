internal import MartletAuthenticator
internal import MartletCore
internal import MartletDecisions
internal import MartletHTTP
internal import MartletResponder
internal import MartletTracing

/// The end of a sampled request: its own span, its access record, and the example in the metrics.
extension RequestTracing {
    /// Ends the spans of a request, before its access record is written.
    @inline(never)
    static func finish(
        _ exchange: Handle<Exchange>, microseconds: Int, _ exchanges: inout Exchanges,
        _ downstreams: inout DownstreamConnections, _ context: inout LoopContext
    ) {
        // What was sent to an upstream had its trace by then.
        let wasSent = exchanges[exchange].forwarding.attempts > 0
        if wasSent && !context.tracing.isKept(exchange) { return }
        defer { context.tracing.release(exchange) }
        guard let trace = trace(of: exchange, &exchanges, &context) else { return }
        let (attempt, client) = (context.tracing.attempt(of: exchange), context.tracing.client(of: exchange))
        let (now, status) = (context.now, exchanges[exchange].response.status)
        let reason = reason(of: exchange, &exchanges, &context)
        if let attempt {
            // Of a tunnel the upstream has responded, whatever has ended it.
            let hasResponded = reason == nil || exchanges.isTunnel(exchange)
            trace.add(
                span(
                    of: attempt, trace, error: reason ?? (status >= 400 ? String(status) : nil),
                    status: hasResponded ? status : nil, name(of: exchange, &exchanges), now))
        }
        let route = context.counters.routes.names[Int(exchanges[exchange].record.routeSlot.rawValue)]
        let hasRoute = exchanges[exchange].record.routeSlot != .noRoute
        var attributes = attributes(of: exchange, &exchanges, &downstreams, &context, client: client)
        if hasRoute { attributes.append(SpanAttribute("http.route", route)) }
        if let reason { attributes.append(SpanAttribute("martlet.reason", reason)) }
        if status >= 500 { attributes.append(SpanAttribute("error.type", reason ?? String(status))) }
        var span = TraceSpan(
            id: trace.server, parent: trace.parent,
            name: name(of: exchange, &exchanges) + (hasRoute ? " \(route)" : ""), kind: .server,
            start: exchanges[exchange].record.started, end: now,
            attributes: attributes)
        span.hasFailed = status >= 500
        context.tracing.add(trace.finish(span))
        let id = trace.trace.text
        exchanges[exchange].record.texts.add(trace: id)
        let exemplar = LoopReport.Exemplar(
            route: route, bucket: RouteCounters.bucket(of: microseconds), trace: id, microseconds: microseconds,
            unixMilliseconds: context.clock.unixMilliseconds)
        // A tunnel is counted with the time of its handshake.
        guard !exchanges.isTunnel(exchange) else { return }
        context.tracing.note(exemplar, route: exchanges[exchange].record.routeSlot)
    }

    /// Why the gateway has rejected a request, or could not complete it.
    private static func reason(
        of exchange: Handle<Exchange>, _ exchanges: inout Exchanges, _ context: inout LoopContext
    ) -> String? {
        let reason = exchanges[exchange].record.reason
        return reason == 0 ? nil : context.counters.reasons.codes[Int(reason)].rawValue
    }

    /// What the request says of itself, without query and credentials.
    private static func attributes(
        of exchange: Handle<Exchange>, _ exchanges: inout Exchanges, _ downstreams: inout DownstreamConnections,
        _ context: inout LoopContext, client: LoopTracing.ClientHead?
    ) -> [SpanAttribute] {
        let lent = unsafe exchanges.all.address(of: exchange)
        let downstream = unsafe lent.pointee.downstream
        let isSecure = downstreams[downstream].origin.rules.isSecure
        let named = unsafe client?.authority ?? String(decoding: lent.pointee.record.texts.host, as: UTF8.self)
        let (host, port) = hostAndPort(named)
        var attributes: [SpanAttribute] = []
        // As many as most requests have, those of the caller included.
        attributes.reserveCapacity(16)
        func add(_ name: String, _ value: String) { attributes.append(SpanAttribute(name, value)) }
        add("http.request.method", method(of: exchange, &exchanges))
        add("url.path", OwnToken.masked(unsafe String(decoding: lent.pointee.record.texts.path, as: UTF8.self)))
        add("url.scheme", client?.scheme ?? (isSecure ? "https" : "http"))
        add("server.address", host)
        add("client.address", unsafe String(decoding: lent.pointee.record.texts.client, as: UTF8.self))
        let version = unsafe lent.pointee.isStream ? "2" : lent.pointee.request.isHTTP10 ? "1.0" : "1.1"
        add("network.protocol.version", version)
        attributes.append(SpanAttribute("http.response.status_code", unsafe lent.pointee.response.status))
        add("martlet.request_id", unsafe String(decoding: lent.pointee.record.texts.requestID, as: UTF8.self))
        if let port { attributes.append(SpanAttribute("server.port", port)) }
        if let agent = client?.userAgent { attributes.append(SpanAttribute("user_agent.original", agent)) }
        if let method = client?.method { attributes.append(SpanAttribute("http.request.method_original", method)) }
        if unsafe !lent.pointee.request.check.isEmpty { attributes.append(SpanAttribute("martlet.check", .flag(true))) }
        let provider = Int(unsafe lent.pointee.credential.provider)
        if context.snapshot.providerTexts.indices.contains(provider) {
            let name = String(decoding: context.snapshot.providerTexts[provider], as: UTF8.self)
            attributes.append(SpanAttribute("martlet.provider", name))
        }
        if let names = unsafe CallerNames.parts(of: lent.pointee.record.texts.names),
            let hash = unsafe context.tracing.rules?.hash(
                ofLogged: Array(lent.pointee.record.texts.names[names.subject]),
                isHashed: context.snapshot.authentication.names.areHashed)
        {
            attributes.append(SpanAttribute("user.hash", hash))
        }
        return attributes
    }

    /// The host, without the brackets of an IPv6 address, and the port of an authority.
    static func hostAndPort(_ authority: String) -> (host: String, port: Int?) {
        var (host, port) = (authority.utf8[...], Int?.none)
        if host.last != UInt8(ascii: "]"), let colon = host.lastIndex(of: UInt8(ascii: ":")),
            let number = Int(authority[authority.utf8.index(after: colon)...])
        {
            (host, port) = (host[..<colon], number)
        }
        if host.first == UInt8(ascii: "["), host.last == UInt8(ascii: "]") { host = host.dropFirst().dropLast() }
        return (String(Substring(host)), port)
    }
}
