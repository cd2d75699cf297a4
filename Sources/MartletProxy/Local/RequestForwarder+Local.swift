internal import MartletAuthenticator
internal import MartletConfig
internal import MartletCore
internal import MartletDecisions
internal import MartletHTTP
internal import MartletProvider
internal import MartletResponder
internal import MartletTracing

/// Requests handled in this process: by the gateway's own endpoints, on a listener with its own handler, or by the echo
/// upstream.
extension RequestForwarder {
    /// The gateway's own endpoints; path and body limit are those of the route.
    static func respondAtMount(
        _ exchange: Handle<Exchange>, _ bytes: UnsafeBufferPointer<UInt8>, _ loop: inout LoopState
    ) {
        let network = loop.exchanges[exchange].clientNetwork(&loop.downstreams)
        if let failure = loop.context.snapshot.rejection(network) { return loop.reject(exchange, failure) }
        unsafe beginLocal(exchange, bytes, loop.context.snapshot.handler, &loop)
    }

    /// Has a handler respond to a request, once that is complete.
    /// - Parameter bytes: the client's head; empty for the echo, which gets the one for the upstream.
    @inline(never)
    static func beginLocal(
        _ exchange: Handle<Exchange>, _ bytes: UnsafeBufferPointer<UInt8>, _ handler: @escaping LocalHandler,
        _ loop: inout LoopState
    ) {
        loop.exchanges[exchange].responder = .local
        loop.exchanges[exchange].local.head = unsafe Array(bytes)
        loop.exchanges[exchange].local.isEcho = bytes.isEmpty
        loop.exchanges[exchange].local.handler = handler
        if loop.exchanges[exchange].body.isComplete { return startLocal(exchange, &loop) }
        guard loop.exchanges[exchange].request.expectsContinue else { return }
        loop.sendContinue(exchange)
    }

    /// Runs the handler off the loop, now that the request is complete.
    static func startLocal(_ exchange: Handle<Exchange>, _ loop: inout LoopState) {
        guard let handler = loop.exchanges[exchange].local.handler, loop.exchanges[exchange].local.task == nil,
            let request = receivedRequest(exchange, &loop.exchanges, &loop.downstreams, &loop.context)
        else { return loop.fail(exchange, .localFailed) }
        loop.downstreams.arm(
            loop.exchanges[exchange].downstream, at: loop.now &+ LocalLimits.timeout.boundedNanoseconds, &loop.context)
        let trace =
            loop.context.tracing.isOn ? RequestTracing.parent(of: exchange, &loop.exchanges, &loop.context) : nil
        let owner = request.network?.workOwner ?? .anonymous
        let lane = TaskLane(loop.context.threads.purpose, of: owner)
        loop.exchanges[exchange].local.task = Task(executorPreference: lane) { [mailbox = loop.mailbox] in
            let response = await WorkOwner.$current.withValue(owner) {
                await TraceScope.within(trace) { await handler(request) }
            }
            mailbox.post(.localResponse(exchange: exchange, response))
        }
    }

    /// The request with the client's head, or with the one for the upstream, which the echo shows.
    private static func receivedRequest(
        _ exchange: Handle<Exchange>, _ exchanges: inout Exchanges, _ downstreams: inout DownstreamConnections,
        _ context: inout LoopContext
    ) -> LocalRequest? {
        guard exchanges[exchange].local.isEcho else {
            let head = exchanges[exchange].local.head
            return unsafe head.withUnsafeBufferPointer {
                unsafe localRequest(exchange, $0, isEcho: false, &exchanges, &downstreams, &context)
            }
        }
        return unsafe localRequest(
            exchange, exchanges[exchange].forwarding.head.bytes, isEcho: true, &exchanges, &downstreams, &context)
    }

    /// Parses a head again.
    private static func localRequest(
        _ exchange: Handle<Exchange>, _ bytes: UnsafeBufferPointer<UInt8>, isEcho: Bool, _ exchanges: inout Exchanges,
        _ downstreams: inout DownstreamConnections, _ context: inout LoopContext
    ) -> LocalRequest? {
        var parser = RequestParser(maximumHeadBytes: max(bytes.count + 1, 64 * 1024))
        var parsed = RequestHead(
            maximumFields: max(512, context.snapshot.limits.headerFields &+ LocalLimits.ownFields))
        guard case .complete = unsafe parser.parse(bytes.span, into: &parsed) else { return nil }
        // That for an upstream was noted as the client sent it.
        if context.tracing.isOn, !isEcho {
            unsafe RequestTracing.noteHead(of: exchange, parsed, bytes, &exchanges, &downstreams, &context)
        }
        func text(_ range: ByteRange) -> String { unsafe String(decoding: bytes[range], as: UTF8.self) }
        var fields: [(name: String, value: String)] = []
        for index in 0..<parsed.fields.count {
            fields.append((text(parsed.fields[index].name), text(parsed.fields[index].value)))
        }
        // Only those who prove a key need the URL.
        var clientURL: ClientURL?
        if fields.contains(where: { $0.name.count == 4 && $0.name.lowercased() == "dpop" }) {
            clientURL = unsafe ClientURL(
                parsed, bytes, from: downstreams.clientSide(of: exchange, &exchanges),
                trusting: context.snapshot.trustedProxies)
        }
        let (peer, forwarded) = (
            downstreams[exchanges[exchange].downstream].origin.address.text.array,
            exchanges[exchange].record.forwardedClient
        )
        var request = LocalRequest(
            // The echo shows what an upstream gets; all other handlers see the path as it was matched.
            method: text(parsed.methodText),
            path: isEcho
                ? text(parsed.path)
                : unsafe String(decoding: exchanges[exchange].record.texts.path, as: UTF8.self),
            query: String(text(parsed.query).dropFirst()),
            fields: fields, body: exchanges[exchange].heldBody.array,
            bodyBytes: exchanges[exchange].body.count,
            client: String(decoding: forwarded.isEmpty ? peer : forwarded, as: UTF8.self),
            network: exchanges[exchange].clientNetwork(&downstreams),
            address: exchanges[exchange].clientAddress(&downstreams),
            requestID: unsafe String(decoding: exchanges[exchange].record.texts.requestID, as: UTF8.self),
            local: downstreams.localAddress(of: exchanges[exchange].downstream))
        request.clientCertificate = downstreams.clientCertificate(exchanges[exchange].downstream)
        request.clientURL = clientURL
        return request
    }

    /// Sends the handler's response.
    static func localResponded(_ exchange: Handle<Exchange>, _ response: LocalResponse, _ loop: inout LoopState) {
        guard loop.exchanges[exchange].responder == .local, !loop.exchanges[exchange].response.hasStarted else {
            return
        }
        loop.exchanges[exchange].local.task = nil
        if let caller = response.caller {
            var names = ByteBuffer()
            loop.context.snapshot.authentication.names.write(
                subject: caller.subject, sessionID: caller.sessionID, into: &names)
            unsafe loop.exchanges[exchange].record.texts.add(names: names.bytes)
        }
        if let provider = response.provider { note(provider: provider, exchange, &loop.exchanges, &loop.context) }
        if response.isAborted { return loop.abandon(loop.exchanges[exchange].downstream) }
        if let failure = response.failure { return loop.reject(exchange, failure) }
        if let reason = response.reason {
            loop.exchanges[exchange].record.reason = loop.context.counters.reason(reason)
        }
        if let parts = response.parts, !loop.exchanges[exchange].isStream {
            return LocalParts.begin(parts, of: response, exchange, &loop)
        }
        send(response, of: exchange, &loop)
    }

    /// Notes the provider of a sign-in for the access line and the span; the provider itself counts logins.
    @inline(never)
    private static func note(
        provider name: String, _ exchange: Handle<Exchange>, _ exchanges: inout Exchanges, _ context: inout LoopContext
    ) {
        guard exchanges[exchange].credential.provider < 0,
            let number = context.snapshot.providerTexts.firstIndex(where: { $0.elementsEqual(name.utf8) })
        else { return }
        exchanges[exchange].credential.provider = Int32(clamping: number)
        context.counters.peers.discount(provider: number)
    }

    /// Sends a complete response in this process; the connection is kept only if the request is complete.
    static func send(_ response: LocalResponse, of exchange: Handle<Exchange>, _ loop: inout LoopState) {
        let isComplete = loop.exchanges[exchange].body.isComplete
        loop.exchanges[exchange].response.start(
            status: response.status,
            closes: response.closes || !isComplete || !loop.exchanges[exchange].request.keepsAlive || loop.isDraining)
        loop.context.scratch.pending[exchange].removeAll()
        unsafe loop.exchanges[exchange].headWriter(&loop.downstreams).writeLocal(
            response, date: loop.context.clock.dateText, requestID: loop.exchanges[exchange].record.texts.requestID,
            into: &loop.context.scratch.pending[exchange])
        loop.exchanges.completeHead(
            of: exchange, loop.exchanges[exchange].local.isEcho ? .upstream : .own, &loop.context)
        if loop.exchanges[exchange].request.method != .head {
            loop.context.scratch.pending[exchange].append(response.body)
            loop.exchanges[exchange].record.bytesOut = response.body.count
        }
        loop.sendCompleteResponse(exchange)
        if loop.exchanges[exchange].isAlive { loop.complete(exchange) }
    }
}
