internal import MartletConfig
internal import MartletCore
internal import MartletHTTP
internal import MartletIO

/// Requests that are answered in this process: on a listener of its own, or by the echo upstream.
extension Worker {
    /// Hands the request that stands in `bytes` to a handler, once its body is there.
    mutating func answerLocally(
        _ exchange: Int32, _ bytes: UnsafeBufferPointer<UInt8>, _ handler: @escaping LocalHandler
    ) {
        unsafe exchanges[exchange].texts.set(path: bytes[head.path])
        exchanges[exchange].head.removeAll()
        unsafe exchanges[exchange].head.append(bytes)
        exchanges[exchange].bodyLimit = LocalLimits.bodyBytes
        if exchanges[exchange].remaining > LocalLimits.bodyBytes { return refuse(exchange, .bodyTooLarge) }
        begin(local: exchange, handler)
    }

    /// The gateway's own endpoints; the path and the body's limit are the route's.
    mutating func answer(_ exchange: Int32, _ bytes: UnsafeBufferPointer<UInt8>, at mount: Int) {
        exchanges[exchange].head.removeAll()
        unsafe exchanges[exchange].head.append(bytes)
        begin(local: exchange, snapshot.signIn.handlers[mount])
    }

    /// `builtin:echo`: the upstream's head is already written; it is what the echo shows.
    mutating func echo(_ exchange: Int32) { begin(local: exchange, EchoHandler.answer) }

    private mutating func begin(local exchange: Int32, _ handler: @escaping LocalHandler) {
        exchanges[exchange].responder = .local
        exchanges[exchange].handler = handler
        if exchanges[exchange].isRequestComplete { return startLocal(exchange) }
        guard exchanges[exchange].expectsContinue else { return }
        sendContinue(exchange)
    }

    /// The request is whole: the handler is asked, off the loop.
    mutating func startLocal(_ exchange: Int32) {
        guard let handler = exchanges[exchange].handler, exchanges[exchange].task == nil,
            let request = localRequest(exchange)
        else { return fail(exchange, .localFailed) }
        let generation = exchanges[exchange].generation
        arm(client: exchanges[exchange].client, at: now &+ LocalLimits.patience.boundedNanoseconds)
        exchanges[exchange].task = Task { [mailbox] in
            mailbox.post(.answer(exchange: exchange, generation: generation, await handler(request)))
        }
    }

    /// Reads the stored head as an upstream would.
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
            clients[exchanges[exchange].client].address.text.array, exchanges[exchange].forwardedClient
        )
        return LocalRequest(
            // The echo shows what an upstream gets; all others see the path as it was matched.
            method: text(parsed.methodText),
            path: exchanges[exchange].upstream >= 0
                ? text(parsed.path) : unsafe String(decoding: exchanges[exchange].texts.path, as: UTF8.self),
            query: String(text(parsed.query).dropFirst()),
            fields: fields, body: exchanges[exchange].body.array, bodyBytes: exchanges[exchange].bodyBytes,
            client: String(decoding: forwarded.isEmpty ? peer : forwarded, as: UTF8.self),
            network: network(of: exchange), address: address(of: exchange),
            requestID: unsafe String(decoding: exchanges[exchange].texts.requestID, as: UTF8.self),
            local: localAddress(of: exchanges[exchange].client))
    }

    /// The address at which a client of a listener with a handler of its own has connected.
    private func localAddress(of client: Int32) -> SocketEndpoint? {
        guard clients[client].handler != nil else { return nil }
        let connection = clients[client].isStream ? clients[client].connection : client
        return Socket.localAddress(clients[connection].fd)
    }

    /// The handler has answered.
    mutating func localAnswered(_ exchange: Int32, _ response: LocalResponse) {
        guard exchanges[exchange].responder == .local, !exchanges[exchange].hasResponseStarted else { return }
        exchanges[exchange].task = nil
        if let failure = response.failure { return refuse(exchange, failure) }
        if let reason = response.reason { exchanges[exchange].reason = counters.reason(reason) }
        exchanges[exchange].status = response.status
        exchanges[exchange].hasResponseStarted = true
        exchanges[exchange].closesClient = !exchanges[exchange].keepsAlive || isDraining
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
        // A 204 has no length to tell (RFC 9110 §8.6).
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
        sendWhole(exchange)
        if exchanges.holds(exchange, generation) { complete(exchange) }
    }
}
