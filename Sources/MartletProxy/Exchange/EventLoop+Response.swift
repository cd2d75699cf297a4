internal import MartletConfig
internal import MartletCore
internal import MartletHTTP
internal import MartletRouter

/// Forwards a response from the upstream to the client.
extension EventLoop {
    /// Interim responses (1xx) allowed per request.
    private static let interimLimit = 16

    /// Consumes received bytes of a response as far as possible.
    /// - Returns: how many were consumed; the rest is buffered until more is received.
    mutating func consumeResponse(_ bytes: UnsafeBufferPointer<UInt8>, from upstream: Int32) -> Int {
        let generation = upstreams[upstream].generation
        var offset = 0
        staging.removeAll()
        while offset < bytes.count, upstreams.contains(upstream, generation) {
            let rest = unsafe UnsafeBufferPointer(rebasing: bytes[offset...])
            var used = 0
            switch upstreams[upstream].phase {
            case .awaitingHead: used = unsafe parseResponseHead(rest, from: upstream)
            case .body: used = unsafe consumeResponseBody(rest, from: upstream)
            case .connecting, .handshake, .idle, .frames: return offset
            }
            if used == 0 { break }
            offset &+= used
        }
        guard upstreams.contains(upstream, generation), upstreams[upstream].exchange >= 0 else { return offset }
        sendStaging(upstreams[upstream].exchange)
        // Everything was consumed and the response continues: wait for the next byte.
        if upstreams.contains(upstream, generation), upstreams[upstream].phase == .body {
            armResponseIdle(upstream, upstreams[upstream].exchange)
        }
        return offset
    }

    // MARK: Head

    @inline(__always)
    private mutating func parseResponseHead(_ bytes: UnsafeBufferPointer<UInt8>, from upstream: Int32) -> Int {
        let exchange = upstreams[upstream].exchange
        let method = exchanges[exchange].method
        var parser = upstreams[upstream].parser
        let outcome = unsafe parser.parse(bytes.span, requestMethod: method, into: &response)
        upstreams[upstream].parser = parser
        switch outcome {
        case .needMore: return 0
        case .failure(let failure):
            rejectResponse(upstream, failure.code)
            return bytes.count
        case .complete(let count):
            let head = unsafe UnsafeBufferPointer(rebasing: bytes[..<count])
            if response.status == 101, exchanges[exchange].tunnel >= 0 {
                unsafe openTunnel(head, upstream)
            } else {
                if response.framing.isChunked, unsafe rejectsChunks(bytes, from: count, upstream) { return bytes.count }
                unsafe response.status < 200 ? forwardInterim(head, upstream) : startResponse(head, upstream)
            }
            return count
        }
    }

    /// Forwards 100 and 103 to a client that understands them (RFC 9110 §15.2); an unrequested 101 is an error.
    private mutating func forwardInterim(_ bytes: UnsafeBufferPointer<UInt8>, _ upstream: Int32) {
        let exchange = upstreams[upstream].exchange
        upstreams[upstream].interimResponses &+= 1
        guard response.status != 101, upstreams[upstream].interimResponses <= EventLoop.interimLimit else {
            return rejectResponse(upstream, "upstream.unexpected_interim_answer")
        }
        guard !exchanges[exchange].isHTTP10 else { return }
        if response.status == 100 {
            guard exchanges[exchange].expectsContinue, !exchanges[exchange].hasContinued else { return }
            exchanges[exchange].hasContinued = true
        }
        unsafe writeStatusLine(bytes)
        unsafe copyFields(bytes, isStrict: isStrict(exchange), isInterim: true)
        staging.append("\r\n")
        sendStreamHead(exchange, ends: false)
    }

    @inline(__always)
    private mutating func startResponse(_ bytes: UnsafeBufferPointer<UInt8>, _ upstream: Int32) {
        let exchange = upstreams[upstream].exchange
        directory.succeeded(upstreams[upstream].endpoint)
        exchanges[exchange].status = response.status
        exchanges[exchange].hasResponseStarted = true
        upstreams[upstream].keepsAlive = response.keepsAlive
        let framing = responseFraming(upstream, exchange)
        upstreams[upstream].framing = framing
        if case .length(let count) = framing { upstreams[upstream].remaining = count }
        if framing.isChunked { upstreams[upstream].decoder = ChunkedDecoder(isUpstream: true) }
        // On a stream, a head without a body may still be followed by trailers.
        let isWhole = framing.isEmpty && (upstreams[upstream].kind != .stream || upstreams[upstream].endsWithHead)
        unsafe writeResponseHead(bytes, exchange, framing, ends: isWhole)
        if isWhole {
            finishResponse(upstream)
        } else {
            upstreams[upstream].phase = .body
        }
    }

    /// Rejects a response whose chunks are invalid as far as they came together with its head, as long as nothing was
    /// sent to the client.
    @inline(never)
    private mutating func rejectsChunks(
        _ bytes: UnsafeBufferPointer<UInt8>, from start: Int, _ upstream: Int32
    ) -> Bool {
        guard upstreams[upstream].kind == .http1 else { return false }
        var decoder = ChunkedDecoder(isUpstream: true)
        var offset = start
        while true {
            switch unsafe decoder.next(bytes.span, from: &offset) {
            case .data, .trailer: continue
            case .needMore, .end: return false
            case .failure(let failure):
                rejectResponse(upstream, failure.code, closes: true)
                return true
            }
        }
    }

    /// How a response's body is framed.
    ///
    /// A stream's frames say that there is none; an HTTP/1 client has to be told by a length of 0.
    @inline(__always)
    private func responseFraming(_ upstream: Int32, _ exchange: Int32) -> BodyFraming {
        guard upstreams[upstream].endsWithHead, !response.framing.isNone else { return response.framing }
        return response.framing.isUnbounded && exchanges[exchange].isStream ? .none : .length(0)
    }

    @inline(__always)
    private mutating func writeResponseHead(
        _ bytes: UnsafeBufferPointer<UInt8>, _ exchange: Int32, _ framing: BodyFraming, ends: Bool
    ) {
        let isHTTP10 = exchanges[exchange].isHTTP10
        let isUnbounded = framing.isUnbounded
        exchanges[exchange].isResponseChunked = isUnbounded && !isHTTP10 && !exchanges[exchange].isStream
        exchanges[exchange].closesDownstream =
            !exchanges[exchange].keepsAlive || isDraining || !exchanges[exchange].isRequestComplete
            || (isUnbounded && isHTTP10)
        let (hasDate, hasLength) = unsafe copyResponseHead(bytes, exchange, framing)
        if !hasDate {
            staging.append("Date: ")
            unsafe staging.append(unsafe dateText.bytes)
            staging.append("\r\n")
        }
        if case .length(let count) = framing, !hasLength {
            staging.append("Content-Length: ")
            staging.append(decimal: count)
            staging.append("\r\n")
        } else if exchanges[exchange].isResponseChunked {
            staging.append("Transfer-Encoding: chunked\r\n")
        }
        writeConnection(exchange)
        staging.append("X-Request-Id: ")
        unsafe staging.append(unsafe exchanges[exchange].texts.requestID)
        staging.append("\r\n\r\n")
        sendStreamHead(exchange, ends: ends)
    }

    /// Writes the `Connection` field where it differs from the version's default, and `Strict-Transport-Security` where
    /// the listener sends it.
    mutating func writeConnection(_ exchange: Int32) {
        let downstream = exchanges[exchange].downstream
        if downstreams[downstream].rules.strictTransportSeconds > 0 {
            staging.append("Strict-Transport-Security: max-age=")
            staging.append(decimal: Int(downstreams[downstream].rules.strictTransportSeconds))
            staging.append("\r\n")
        }
        if exchanges[exchange].isStream { return }
        if exchanges[exchange].closesDownstream {
            staging.append("Connection: close\r\n")
        } else if exchanges[exchange].isHTTP10 {
            staging.append("Connection: keep-alive\r\n")
        }
    }

    /// Writes the status line of the response in `bytes`.
    mutating func writeStatusLine(_ bytes: UnsafeBufferPointer<UInt8>) {
        staging.append("HTTP/1.1 ")
        staging.append(decimal: response.status)
        staging.append(" ")
        unsafe staging.append(bytes[response.reason])
        staging.append("\r\n")
    }

    /// Copies the status line and the fields that are forwarded, in contiguous runs.
    /// - Returns: whether they include a `Date` and a `Content-Length`.
    @inline(__always)
    private mutating func copyResponseHead(
        _ bytes: UnsafeBufferPointer<UInt8>, _ exchange: Int32, _ framing: BodyFraming
    ) -> (hasDate: Bool, hasLength: Bool) {
        let hasLength = response.kept.hasLength
        let isUsual =
            response.kept.count >= 0 && !response.framing.isNone && (!hasLength || framing == response.framing)
            && !(response.fields.has(.strictTransportSecurity) && isStrict(exchange))
        guard isUsual else {
            unsafe writeStatusLine(bytes)
            return unsafe (copyFields(bytes, isStrict: isStrict(exchange), isInterim: false), false)
        }
        if !response.kept.hasStatusLine { unsafe writeStatusLine(bytes) }
        for index in 0..<response.kept.count { unsafe staging.append(bytes[response.kept[index]]) }
        return (response.fields.has(.date), hasLength)
    }

    /// Whether the listener sends `Strict-Transport-Security`.
    func isStrict(_ exchange: Int32) -> Bool {
        downstreams[exchanges[exchange].downstream].rules.strictTransportSeconds > 0
    }

    /// Copies the fields one by one, where the parser's runs do not suffice.
    /// - Returns: whether they include a `Date`.
    @inline(never)
    @discardableResult
    mutating func copyFields(_ bytes: UnsafeBufferPointer<UInt8>, isStrict: Bool, isInterim: Bool) -> Bool {
        var hasDate = false
        // Without a body (HEAD, 304), Content-Length describes another response's body: it is forwarded.
        let keepsLength =
            response.framing.isNone && (response.status == 304 || response.status >= 200 && response.status != 204)
        for index in 0..<response.fields.count {
            let field = response.fields[index]
            guard !field.isConnectionOption else { continue }
            switch field.known {
            case .connection, .keepAlive, .proxyConnection, .transferEncoding, .upgrade, .te, .xRequestID: continue
            case .contentLength where !keepsLength || isInterim: continue
            case .strictTransportSecurity where isStrict: continue
            case .date: hasDate = true
            default: break
            }
            unsafe staging.append(bytes[field.line])
        }
        return hasDate
    }

    // MARK: Body

    /// Finishes a response: its last bytes are sent, the upstream connection goes back to the pool, the exchange ends.
    mutating func finishResponse(_ upstream: Int32) {
        let exchange = upstreams[upstream].exchange
        if exchanges[exchange].isResponseChunked, !upstreams[upstream].framing.isNone {
            staging.append("0\r\n")
            unsafe staging.append(unsafe exchanges[exchange].responseTrailers.bytes)
            staging.append("\r\n")
        }
        let generation = exchanges[exchange].generation
        sendStaging(exchange, isLast: exchanges[exchange].closesDownstream)
        guard exchanges.contains(exchange, generation) else { return }
        finishStream(exchange)
        detach(upstream, of: exchange)
        complete(exchange)
    }

    /// Detaches the upstream connection from the exchange, and returns it to the pool if it can be reused.
    @inline(__always)
    private mutating func detach(_ upstream: Int32, of exchange: Int32) {
        exchanges[exchange].upstream = -1
        upstreams[upstream].exchange = -1
        upstreams[upstream].served &+= 1
        directory.ended(upstreams[upstream].endpoint)
        let isReusable =
            upstreams[upstream].kind == .http1 && upstreams[upstream].keepsAlive
            && exchanges[exchange].isRequestComplete
            && unsent(upstream) == 0
            && !upstreams[upstream].isReadClosed && exchanges[exchange].headSent == exchanges[exchange].head.count
        if isReusable { returnToPool(upstream) } else { closeUpstream(upstream) }
    }

    mutating func armResponseIdle(_ upstream: Int32, _ exchange: Int32) {
        arm(upstream: upstream, at: now &+ exchanges[exchange].idleTimeout)
    }
}
