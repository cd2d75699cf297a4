internal import MartletConfig
internal import MartletCore
internal import MartletHTTP
internal import MartletIO

/// Requests handled in this process: on a listener with its own handler, or by the echo upstream.
extension EventLoop {
    /// Hands the request in `bytes` to a handler, once its body is complete.
    mutating func respondLocally(
        _ exchange: Int32, _ bytes: UnsafeBufferPointer<UInt8>, _ handler: @escaping LocalHandler
    ) {
        unsafe exchanges[exchange].texts.set(path: bytes[head.path])
        exchanges[exchange].head.removeAll()
        unsafe exchanges[exchange].head.append(bytes)
        exchanges[exchange].bodyLimit = LocalLimits.bodyBytes
        if exchanges[exchange].remaining > LocalLimits.bodyBytes { return reject(exchange, .bodyTooLarge) }
        beginLocal(exchange, handler)
    }

    /// The gateway's own endpoints; path and body limit are those of the route.
    mutating func respondAtMount(_ exchange: Int32, _ bytes: UnsafeBufferPointer<UInt8>, at mount: Int) {
        exchanges[exchange].head.removeAll()
        unsafe exchanges[exchange].head.append(bytes)
        beginLocal(exchange, snapshot.signIn.handlers[mount])
    }

    /// `builtin:echo` shows the head that was written for the upstream.
    mutating func echo(_ exchange: Int32) { beginLocal(exchange, EchoHandler.answer) }

    private mutating func beginLocal(_ exchange: Int32, _ handler: @escaping LocalHandler) {
        exchanges[exchange].responder = .local
        exchanges[exchange].handler = handler
        if exchanges[exchange].isRequestComplete { return startLocal(exchange) }
        guard exchanges[exchange].expectsContinue else { return }
        sendContinue(exchange)
    }

    /// Runs the handler off the loop, now that the request is complete.
    mutating func startLocal(_ exchange: Int32) {
        guard let handler = exchanges[exchange].handler, exchanges[exchange].task == nil,
            let request = localRequest(exchange)
        else { return fail(exchange, .localFailed) }
        let generation = exchanges[exchange].generation
        arm(downstream: exchanges[exchange].downstream, at: now &+ LocalLimits.timeout.boundedNanoseconds)
        exchanges[exchange].task = Task { [mailbox] in
            mailbox.post(.localResponse(exchange: exchange, generation: generation, await handler(request)))
        }
    }

    /// Parses the stored head again.
    private mutating func localRequest(_ exchange: Int32) -> LocalRequest? {
        let bytes = unsafe exchanges[exchange].head.bytes
        var parser = RequestParser(maximumHeadBytes: max(bytes.count + 1, 64 * 1024))
        var parsed = RequestHead(maximumFields: max(512, snapshot.limits.headerFields &+ LocalLimits.ownFields))
        guard case .complete = unsafe parser.parse(bytes.span, into: &parsed) else { return nil }
        func text(_ range: ByteRange) -> String { unsafe String(decoding: bytes[range], as: UTF8.self) }
        var fields: [(name: String, value: String)] = []
        for index in 0..<parsed.fields.count {
            fields.append((text(parsed.fields[index].name), text(parsed.fields[index].value)))
        }
        let (peer, forwarded) = (
            downstreams[exchanges[exchange].downstream].address.text.array, exchanges[exchange].forwardedClient
        )
        return LocalRequest(
            // The echo shows what an upstream gets; all other handlers see the path as it was matched.
            method: text(parsed.methodText),
            path: exchanges[exchange].cluster >= 0
                ? text(parsed.path) : unsafe String(decoding: exchanges[exchange].texts.path, as: UTF8.self),
            query: String(text(parsed.query).dropFirst()),
            fields: fields, body: exchanges[exchange].body.array, bodyBytes: exchanges[exchange].bodyBytes,
            client: String(decoding: forwarded.isEmpty ? peer : forwarded, as: UTF8.self),
            network: network(of: exchange), address: address(of: exchange),
            requestID: unsafe String(decoding: exchanges[exchange].texts.requestID, as: UTF8.self),
            local: localAddress(of: exchanges[exchange].downstream))
    }

    /// The local address of a connection to a listener with its own handler.
    private func localAddress(of downstream: Int32) -> SocketEndpoint? {
        guard downstreams[downstream].handler != nil else { return nil }
        let connection = downstreams[downstream].isStream ? downstreams[downstream].connection : downstream
        return Socket.localAddress(downstreams[connection].fd)
    }

    /// Sends the handler's response.
    mutating func localResponded(_ exchange: Int32, _ response: LocalResponse) {
        guard exchanges[exchange].responder == .local, !exchanges[exchange].hasResponseStarted else { return }
        exchanges[exchange].task = nil
        if let failure = response.failure { return reject(exchange, failure) }
        if let reason = response.reason { exchanges[exchange].reason = counters.reason(reason) }
        exchanges[exchange].status = response.status
        exchanges[exchange].hasResponseStarted = true
        exchanges[exchange].closesDownstream = !exchanges[exchange].keepsAlive || isDraining
        staging.removeAll()
        staging.append("HTTP/1.1 ")
        staging.append(decimal: response.status)
        staging.append(" ")
        staging.append(HTTPStatus.reason(response.status))
        staging.append("\r\n")
        for field in response.fields {
            staging.append(text: field.name)
            staging.append(": ")
            staging.append(text: field.value)
            staging.append("\r\n")
        }
        staging.append("Date: ")
        unsafe staging.append(unsafe dateText.bytes)
        // A 204 has no Content-Length (RFC 9110 §8.6).
        if response.status != 204 {
            staging.append("\r\nContent-Length: ")
            staging.append(decimal: response.body.count)
        }
        staging.append("\r\n")
        writeConnection(exchange)
        staging.append("X-Request-Id: ")
        unsafe staging.append(unsafe exchanges[exchange].texts.requestID)
        staging.append("\r\n\r\n")
        if exchanges[exchange].method != .head {
            staging.append(response.body)
            exchanges[exchange].bytesOut = response.body.count
        }
        let generation = exchanges[exchange].generation
        sendCompleteResponse(exchange)
        if exchanges.contains(exchange, generation) { complete(exchange) }
    }

    /// Hands a request to the listener's own handler, if that accepts the path.
    @inline(never)
    mutating func handToListenerHandler(_ exchange: Int32, _ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        guard let handler = downstreams[exchanges[exchange].downstream].handler,
            unsafe handler.handles(bytes[head.path])
        else { return false }
        unsafe respondLocally(exchange, bytes, handler.respond)
        return true
    }
}
