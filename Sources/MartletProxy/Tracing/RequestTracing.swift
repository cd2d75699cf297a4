internal import MartletAuthenticator
internal import MartletConfig
internal import MartletCore
internal import MartletDecisions
internal import MartletHTTP
internal import MartletProvider
internal import MartletResponder
internal import MartletTracing

/// Records the spans of sampled requests, and writes trace contexts for upstreams. Nothing of it is called while
/// ``LoopTracing/isOn`` is false.
enum RequestTracing {
    /// Notes what a trusted proxy says about a request's trace. A context that is invalid is none.
    @inline(never)
    static func noteParent(
        of exchange: Handle<Exchange>, _ head: borrowing RequestHead, _ bytes: UnsafeBufferPointer<UInt8>,
        _ context: inout LoopContext
    ) {
        guard head.fields.has(.traceparent) else { return }
        let values = unsafe head.values(of: "traceparent", bytes)
        guard values.count == 1, let value = values.first, let parent = TraceContext(traceparent: value) else { return }
        let state = TraceState.joined(unsafe head.values(of: "tracestate", bytes))
        context.tracing.note(parent, state: state, of: exchange)
    }

    /// Adds the context of its trace to the head for an upstream.
    @inline(never)
    static func writeFields(
        _ exchange: Handle<Exchange>, _ head: borrowing RequestHead, _ bytes: UnsafeBufferPointer<UInt8>,
        _ exchanges: inout Exchanges, _ downstreams: inout DownstreamConnections, _ context: inout LoopContext
    ) {
        let lent = unsafe exchanges.all.address(of: exchange)
        let started = unsafe lent.pointee.record.started
        guard let identity = context.tracing.identity(of: exchange, started: started) else { return }
        if context.tracing.isKept(exchange) {
            unsafe lent.pointee.forwarding.head.append(traceState: context.tracing.state(of: exchange))
        }
        unsafe lent.pointee.forwarding.head.append(identity)
        guard identity.isSampled else { return }
        unsafe noteHead(of: exchange, head, bytes, &exchanges, &downstreams, &context)
    }

    /// Notes what the head of a request says about its client, if it is sampled; its bytes are gone when it ends.
    @inline(never)
    static func noteHead(
        of exchange: Handle<Exchange>, _ head: borrowing RequestHead, _ bytes: UnsafeBufferPointer<UInt8>,
        _ exchanges: inout Exchanges, _ downstreams: inout DownstreamConnections, _ context: inout LoopContext
    ) {
        guard trace(of: exchange, &exchanges, &context) != nil else { return }
        var client = LoopTracing.ClientHead()
        client.userAgent = unsafe head.values(of: "user-agent", bytes).first.map { String(decoding: $0, as: UTF8.self) }
        if exchanges[exchange].request.method.name.utf8CodeUnitCount == 0 {
            client.method = unsafe String(decoding: bytes[head.methodText], as: UTF8.self)
        }
        let check = exchanges[exchange].request.check
        let origin = downstreams[exchanges[exchange].downstream].origin
        if check.contains(.isSecure) || check.contains(.isInsecure) {
            client.scheme = check.contains(.isSecure) ? "https" : "http"
        } else if check.isEmpty, origin.address.isTrusted {
            let url = unsafe ClientURL(
                head, bytes, from: downstreams.clientSide(of: exchange, &exchanges),
                trusting: context.snapshot.trustedProxies)
            let scheme = url.scheme.lowercased()
            if scheme == "http" || scheme == "https" { client.scheme = scheme }
            client.authority = url.authority
        }
        context.tracing.change(exchange) { $0.client = client }
    }

    /// The spans of a request; `nil` if it is not sampled.
    static func trace(
        of exchange: Handle<Exchange>, _ exchanges: inout Exchanges, _ context: inout LoopContext
    ) -> RequestTrace? {
        context.tracing.trace(of: exchange, started: exchanges[exchange].record.started)
    }

    /// The span of a request, as the parent of what is done for it elsewhere; `nil` if it is not sampled.
    @inline(never)
    static func parent(
        of exchange: Handle<Exchange>, _ exchanges: inout Exchanges, _ context: inout LoopContext
    ) -> TraceParent? {
        trace(of: exchange, &exchanges, &context).map { TraceParent($0, $0.server) }
    }
}

// MARK: - Verification

extension RequestTracing {
    /// A request begins to wait for the verification of its credential.
    /// - Returns: the span of the verification; `nil` if the request is not sampled.
    @inline(never)
    static func beginVerification(
        of exchange: Handle<Exchange>, _ exchanges: inout Exchanges, _ context: inout LoopContext
    ) -> TraceParent? {
        guard let trace = trace(of: exchange, &exchanges, &context) else { return nil }
        let id = trace.nextSpan()
        let now = context.now
        context.tracing.change(exchange) { $0.verification = (id, now) }
        return TraceParent(trace, id)
    }

    /// The verification has ended.
    @inline(never)
    static func endVerification(
        of exchange: Handle<Exchange>, _ result: VerificationResult, _ context: inout LoopContext
    ) {
        guard let entry = context.tracing.owned(exchange), let trace = entry.trace,
            let verification = entry.verification
        else { return }
        context.tracing.change(exchange) { $0.verification = nil }
        var span = TraceSpan(
            id: verification.id, parent: trace.server, name: "authenticate", kind: .work, start: verification.start,
            end: context.now)
        switch result {
        case .success(let verified):
            span.attributes.append(SpanAttribute("martlet.provider", verified.principal.provider))
        case .failure(let error):
            span.hasFailed = true
            span.attributes.append(SpanAttribute("error.type", error.code.rawValue))
        }
        trace.add(span)
    }
}

// MARK: - Upstream

extension RequestTracing {
    /// A request is about to be sent to an endpoint: its head names the span of the attempt.
    @inline(never)
    static func beginAttempt(
        of exchange: Handle<Exchange>, to endpoint: EndpointIndex, _ exchanges: inout Exchanges,
        _ upstreams: inout UpstreamConnections, _ context: inout LoopContext
    ) {
        guard let trace = context.tracing.traceOfWritten(exchange) else { return }
        let number = exchanges[exchange].forwarding.attempts
        let id = trace.nextSpan()
        let lent = unsafe exchanges.all.address(of: exchange)
        guard unsafe lent.pointee.forwarding.head.replaceSpan(by: id) else { return }
        // Of the endpoint and its upstream only what is named here is copied.
        let (index, cluster) = (Int(endpoint), Int(exchanges[exchange].forwarding.cluster))
        let transport = upstreams.directory.endpoints[index].transport
        var attributes: [SpanAttribute] = []
        attributes.reserveCapacity(8)
        attributes.append(SpanAttribute("http.request.method", method(of: exchange, &exchanges)))
        attributes.append(SpanAttribute("martlet.upstream", upstreams.directory.clusters[cluster].upstream.name))
        if let original = context.tracing.client(of: exchange)?.method {
            attributes.append(SpanAttribute("http.request.method_original", original))
        }
        let scheme = transport.isSecure ? "https" : "http"
        if let (host, port) = upstreams.directory.endpoints[index].address.hostAndPort {
            attributes.append(SpanAttribute("server.address", host))
            attributes.append(SpanAttribute("server.port", Int(port)))
            let name = host.utf8.contains(UInt8(ascii: ":")) ? "[\(host)]" : host
            let path = unsafe lent.pointee.forwarding.head.path
            attributes.append(SpanAttribute("url.full", OwnToken.masked("\(scheme)://\(name):\(port)\(path)")))
        } else {
            let text = String(decoding: upstreams.directory.endpoints[index].text, as: UTF8.self)
            attributes.append(SpanAttribute("server.address", text))
        }
        attributes.append(SpanAttribute("network.protocol.version", transport.isHTTP2 ? "2" : "1.1"))
        if number > 1 { attributes.append(SpanAttribute("http.request.resend_count", number - 1)) }
        let attempt = LoopTracing.Attempt(id: id, number: number, start: context.now, attributes: attributes)
        context.tracing.change(exchange) { $0.attempt = attempt }
    }

    /// An attempt has failed, and another one follows.
    @inline(never)
    static func attemptFailed(
        of exchange: Handle<Exchange>, _ reason: ErrorCode, _ exchanges: inout Exchanges, _ context: inout LoopContext
    ) {
        guard let entry = context.tracing.owned(exchange), let trace = entry.trace, let attempt = entry.attempt
        else { return }
        context.tracing.change(exchange) { $0.attempt = nil }
        trace.add(
            span(of: attempt, trace, error: reason.rawValue, status: nil, name(of: exchange, &exchanges), context.now))
    }

    /// The span of an attempt.
    static func span(
        of attempt: LoopTracing.Attempt, _ trace: RequestTrace, error: String?, status: Int?, _ name: String,
        _ end: Int64
    ) -> TraceSpan {
        var span = TraceSpan(
            id: attempt.id, parent: trace.server, name: name, kind: .client, start: attempt.start, end: end,
            attributes: attempt.attributes)
        if let status { span.attributes.append(SpanAttribute("http.response.status_code", status)) }
        if let error { span.attributes.append(SpanAttribute("error.type", error)) }
        span.hasFailed = error != nil
        return span
    }

    /// The method, as far as it is a known one.
    static func method(of exchange: Handle<Exchange>, _ exchanges: inout Exchanges) -> String {
        let name = exchanges[exchange].request.method.name
        return name.utf8CodeUnitCount == 0 ? "_OTHER" : "\(name)"
    }

    /// How spans name a method.
    static func name(of exchange: Handle<Exchange>, _ exchanges: inout Exchanges) -> String {
        let name = exchanges[exchange].request.method.name
        return name.utf8CodeUnitCount == 0 ? "HTTP" : "\(name)"
    }
}
