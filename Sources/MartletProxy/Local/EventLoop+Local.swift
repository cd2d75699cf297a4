internal import MartletConfig
internal import MartletCore
internal import MartletHTTP
internal import MartletIO
internal import MartletResponder

/// Requests handled in this process: on a listener with its own handler, or by the echo upstream.
extension EventLoop {
    /// Hands the request in `bytes` to a handler, once its body is complete.
    mutating func respondLocally(
        _ exchange: Handle<Exchange>, _ bytes: UnsafeBufferPointer<UInt8>, _ handler: @escaping LocalHandler
    ) {
        unsafe exchanges[exchange].record.texts.set(path: bytes[head.path])
        exchanges[exchange].forwarding.head.removeAll()
        unsafe exchanges[exchange].forwarding.head.append(bytes)
        guard exchanges[exchange].body.restrict(to: LocalLimits.bodyBytes) else {
            return reject(exchange, .bodyTooLarge)
        }
        beginLocal(exchange, handler)
    }

    /// The gateway's own endpoints; path and body limit are those of the route.
    mutating func respondAtMount(_ exchange: Handle<Exchange>, _ bytes: UnsafeBufferPointer<UInt8>, at mount: Int) {
        exchanges[exchange].forwarding.head.removeAll()
        unsafe exchanges[exchange].forwarding.head.append(bytes)
        beginLocal(exchange, snapshot.handlers[mount])
    }

    /// `builtin:echo` shows the head that was written for the upstream.
    mutating func echo(_ exchange: Handle<Exchange>) { beginLocal(exchange, EchoHandler.respond) }

    private mutating func beginLocal(_ exchange: Handle<Exchange>, _ handler: @escaping LocalHandler) {
        exchanges[exchange].responder = .local
        exchanges[exchange].local.handler = handler
        if exchanges[exchange].body.isComplete { return startLocal(exchange) }
        guard exchanges[exchange].request.expectsContinue else { return }
        sendContinue(exchange)
    }

    /// Runs the handler off the loop, now that the request is complete.
    mutating func startLocal(_ exchange: Handle<Exchange>) {
        guard let handler = exchanges[exchange].local.handler, exchanges[exchange].local.task == nil,
            let request = localRequest(exchange)
        else { return fail(exchange, .localFailed) }
        arm(downstream: exchanges[exchange].downstream, at: now &+ LocalLimits.timeout.boundedNanoseconds)
        exchanges[exchange].local.task = Task { [mailbox] in
            mailbox.post(.localResponse(exchange: exchange, await handler(request)))
        }
    }

    /// Parses the stored head again.
    private mutating func localRequest(_ exchange: Handle<Exchange>) -> LocalRequest? {
        let bytes = unsafe exchanges[exchange].forwarding.head.bytes
        var parser = RequestParser(maximumHeadBytes: max(bytes.count + 1, 64 * 1024))
        var parsed = RequestHead(maximumFields: max(512, snapshot.limits.headerFields &+ LocalLimits.ownFields))
        guard case .complete = unsafe parser.parse(bytes.span, into: &parsed) else { return nil }
        func text(_ range: ByteRange) -> String { unsafe String(decoding: bytes[range], as: UTF8.self) }
        var fields: [(name: String, value: String)] = []
        for index in 0..<parsed.fields.count {
            fields.append((text(parsed.fields[index].name), text(parsed.fields[index].value)))
        }
        let (peer, forwarded) = (
            downstreams[exchanges[exchange].downstream].origin.address.text.array,
            exchanges[exchange].record.forwardedClient
        )
        return LocalRequest(
            // The echo shows what an upstream gets; all other handlers see the path as it was matched.
            method: text(parsed.methodText),
            path: exchanges[exchange].forwarding.cluster.isNone
                ? unsafe String(decoding: exchanges[exchange].record.texts.path, as: UTF8.self) : text(parsed.path),
            query: String(text(parsed.query).dropFirst()),
            fields: fields, body: exchanges[exchange].heldBody.array, bodyBytes: exchanges[exchange].body.count,
            client: String(decoding: forwarded.isEmpty ? peer : forwarded, as: UTF8.self),
            network: network(of: exchange), address: address(of: exchange),
            requestID: unsafe String(decoding: exchanges[exchange].record.texts.requestID, as: UTF8.self),
            local: localAddress(of: exchanges[exchange].downstream))
    }

    /// The local address of a connection to a listener with its own handler.
    private func localAddress(of downstream: Handle<DownstreamConnection>) -> SocketEndpoint? {
        guard downstreams[downstream].origin.handler != nil else { return nil }
        let connection = downstreams[downstream].isStream ? downstreams[downstream].stream.connection : downstream
        return Socket.localAddress(downstreams[connection].transport.fd)
    }

    /// Sends the handler's response.
    mutating func localResponded(_ exchange: Handle<Exchange>, _ response: LocalResponse) {
        guard exchanges[exchange].responder == .local, !exchanges[exchange].response.hasStarted else { return }
        exchanges[exchange].local.task = nil
        if let failure = response.failure { return reject(exchange, failure) }
        if let reason = response.reason { exchanges[exchange].record.reason = counters.reason(reason) }
        exchanges[exchange].response.start(
            status: response.status, closes: !exchanges[exchange].request.keepsAlive || isDraining)
        staging.removeAll()
        unsafe headWriter(exchange).writeLocal(
            response, date: clock.dateText, requestID: exchanges[exchange].record.texts.requestID, into: &staging)
        if exchanges[exchange].request.method != .head {
            staging.append(response.body)
            exchanges[exchange].record.bytesOut = response.body.count
        }
        sendCompleteResponse(exchange)
        if exchanges[exchange].isAlive { complete(exchange) }
    }

    /// Hands a request to the listener's own handler, if that accepts the path.
    @inline(never)
    mutating func handToListenerHandler(_ exchange: Handle<Exchange>, _ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        guard let handler = downstreams[exchanges[exchange].downstream].origin.handler,
            unsafe handler.handles(bytes[head.path])
        else { return false }
        unsafe respondLocally(exchange, bytes, handler.respond)
        return true
    }
}
