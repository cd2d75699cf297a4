private import CLinux
internal import MartletConfig
internal import MartletCore
internal import MartletHTTP
internal import MartletRouter

/// The response: from an upstream's bytes to the client's.
extension Worker {
    /// Interim answers (1xx) that one request may have.
    private static let interimLimit = 16
    /// Body pieces up to this size travel in one write with what goes before them.
    private static let copySize = 16 * 1024

    /// Uses received bytes of an answer as far as they go.
    /// - Returns: how many were used; the rest is kept until more has come.
    mutating func useAnswer(_ bytes: UnsafeBufferPointer<UInt8>, from link: Int32) -> Int {
        let generation = links[link].generation
        var offset = 0
        staging.removeAll()
        while offset < bytes.count, links.holds(link, generation) {
            let rest = unsafe UnsafeBufferPointer(rebasing: bytes[offset...])
            var used = 0
            switch links[link].phase {
            case .awaitingHead: used = unsafe useAnswerHead(rest, from: link)
            case .body: used = unsafe useAnswerBody(rest, from: link)
            case .connecting, .handshake, .idle, .frames: return offset
            }
            if used == 0 { break }
            offset &+= used
        }
        guard links.holds(link, generation), links[link].exchange >= 0 else { return offset }
        sendStaging(links[link].exchange)
        // Everything was used, and the answer goes on: the next byte is waited for.
        if links.holds(link, generation), links[link].phase == .body { armIdle(link, links[link].exchange) }
        return offset
    }

    // MARK: Head

    @inline(__always)
    private mutating func useAnswerHead(_ bytes: UnsafeBufferPointer<UInt8>, from link: Int32) -> Int {
        let exchange = links[link].exchange
        let method = exchanges[exchange].method
        var parser = links[link].parser
        let outcome = unsafe parser.parse(bytes.span, requestMethod: method, into: &answer)
        links[link].parser = parser
        switch outcome {
        case .needMore: return 0
        case .failure(let failure):
            answerInvalid(link, failure.code)
            return bytes.count
        case .complete(let count):
            let head = unsafe UnsafeBufferPointer(rebasing: bytes[..<count])
            if answer.status == 101, exchanges[exchange].tunnel >= 0 {
                unsafe openTunnel(head, link)
            } else {
                if answer.framing.isChunked, unsafe refusesChunks(bytes, from: count, link) { return bytes.count }
                unsafe answer.status < 200 ? passInterim(head, link) : beginAnswer(head, link)
            }
            return count
        }
    }

    /// 100 and 103 go on to a client that can understand them (RFC 9110 §15.2); a 101 that nobody asked for is an error.
    private mutating func passInterim(_ bytes: UnsafeBufferPointer<UInt8>, _ link: Int32) {
        let exchange = links[link].exchange
        links[link].interimAnswers &+= 1
        guard answer.status != 101, links[link].interimAnswers <= Worker.interimLimit else {
            return answerInvalid(link, "upstream.unexpected_interim_answer")
        }
        guard !exchanges[exchange].isHTTP10 else { return }
        if answer.status == 100 {
            guard exchanges[exchange].expectsContinue, !exchanges[exchange].hasContinued else { return }
            exchanges[exchange].hasContinued = true
        }
        unsafe writeStatusLine(bytes)
        unsafe copyEach(bytes, isStrict: isStrict(exchange), isInterim: true)
        staging.append("\r\n")
        sendHead(exchange, ends: false)
    }

    @inline(__always)
    private mutating func beginAnswer(_ bytes: UnsafeBufferPointer<UInt8>, _ link: Int32) {
        let exchange = links[link].exchange
        upstreams.succeeded(links[link].endpoint)
        exchanges[exchange].status = answer.status
        exchanges[exchange].hasResponseStarted = true
        links[link].keepsAlive = answer.keepsAlive
        let framing = answerFraming(link, exchange)
        links[link].framing = framing
        if case .length(let count) = framing { links[link].remaining = count }
        if framing.isChunked { links[link].decoder = ChunkedDecoder(isUpstream: true) }
        // A stream whose head has no body may still have trailers.
        let isWhole = framing.isEmpty && (links[link].kind != .stream || links[link].endsWithHead)
        unsafe writeAnswerHead(bytes, exchange, framing, ends: isWhole)
        if isWhole {
            endAnswer(link)
        } else {
            links[link].phase = .body
        }
    }

    /// Refuses an answer whose chunks are bad as far as they have come together with its head: as long as nothing has gone to
    /// the client, it can be told.
    @inline(never)
    private mutating func refusesChunks(_ bytes: UnsafeBufferPointer<UInt8>, from start: Int, _ link: Int32) -> Bool {
        guard links[link].kind == .http1 else { return false }
        var decoder = ChunkedDecoder(isUpstream: true)
        var offset = start
        while true {
            switch unsafe decoder.next(bytes.span, from: &offset) {
            case .data, .trailer: continue
            case .needMore, .end: return false
            case .failure(let failure):
                answerInvalid(link, failure.code, closes: true)
                return true
            }
        }
    }

    /// How an answer's body is framed.
    ///
    /// A stream's frames say that there is none; an HTTP/1 client has to be told, or it would wait for it.
    @inline(__always)
    private func answerFraming(_ link: Int32, _ exchange: Int32) -> BodyFraming {
        guard links[link].endsWithHead, !answer.framing.isNone else { return answer.framing }
        return answer.framing.isUnbounded && exchanges[exchange].isStream ? .none : .length(0)
    }

    @inline(__always)
    private mutating func writeAnswerHead(
        _ bytes: UnsafeBufferPointer<UInt8>, _ exchange: Int32, _ framing: BodyFraming, ends: Bool
    ) {
        let isHTTP10 = exchanges[exchange].isHTTP10
        let isUnbounded = framing.isUnbounded
        exchanges[exchange].isResponseChunked = isUnbounded && !isHTTP10 && !exchanges[exchange].isStream
        exchanges[exchange].closesClient =
            !exchanges[exchange].keepsAlive || isDraining || !exchanges[exchange].isRequestComplete
            || (isUnbounded && isHTTP10)
        let (hasDate, hasLength) = unsafe copyAnswer(bytes, exchange, framing)
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
        sendHead(exchange, ends: ends)
    }

    /// Says whether the client's connection stays open, where that is not what its version implies.
    ///
    /// Under TLS it also says that the host is to be asked that way only, where the listener has it said.
    mutating func writeConnection(_ exchange: Int32) {
        let client = exchanges[exchange].client
        if clients[client].rules.strictTransportSeconds > 0 {
            staging.append("Strict-Transport-Security: max-age=")
            staging.append(decimal: Int(clients[client].rules.strictTransportSeconds))
            staging.append("\r\n")
        }
        if exchanges[exchange].isStream { return }
        if exchanges[exchange].closesClient {
            staging.append("Connection: close\r\n")
        } else if exchanges[exchange].isHTTP10 {
            staging.append("Connection: keep-alive\r\n")
        }
    }

    /// Writes the status line of the answer that stands in `bytes`.
    mutating func writeStatusLine(_ bytes: UnsafeBufferPointer<UInt8>) {
        staging.append("HTTP/1.1 ")
        staging.append(decimal: answer.status)
        staging.append(" ")
        unsafe staging.append(bytes[answer.reason])
        staging.append("\r\n")
    }

    /// Copies the status line and the fields that may pass to the client, runs of them at once.
    /// - Returns: whether there are a `Date` and a `Content-Length` among them.
    @inline(__always)
    private mutating func copyAnswer(
        _ bytes: UnsafeBufferPointer<UInt8>, _ exchange: Int32, _ framing: BodyFraming
    ) -> (hasDate: Bool, hasLength: Bool) {
        let hasLength = answer.kept.hasLength
        let isUsual =
            answer.kept.count >= 0 && !answer.framing.isNone && (!hasLength || framing == answer.framing)
            && !(answer.fields.has(.strictTransportSecurity) && isStrict(exchange))
        guard isUsual else {
            unsafe writeStatusLine(bytes)
            return unsafe (copyEach(bytes, isStrict: isStrict(exchange), isInterim: false), false)
        }
        if !answer.kept.hasStatusLine { unsafe writeStatusLine(bytes) }
        for index in 0..<answer.kept.count { unsafe staging.append(bytes[answer.kept[index]]) }
        return (answer.fields.has(.date), hasLength)
    }

    /// Whether the listener says that the host is to be asked under TLS only.
    func isStrict(_ exchange: Int32) -> Bool {
        clients[exchanges[exchange].client].rules.strictTransportSeconds > 0
    }

    /// Copies the fields one by one, where the parser's runs do not say it all.
    /// - Returns: whether there is a `Date` among them.
    @inline(never)
    @discardableResult
    mutating func copyEach(_ bytes: UnsafeBufferPointer<UInt8>, isStrict: Bool, isInterim: Bool) -> Bool {
        var hasDate = false
        // Without a body of its own (HEAD, 304) an answer's Content-Length tells of another answer's: it passes.
        let keepsLength =
            answer.framing.isNone && (answer.status == 304 || answer.status >= 200 && answer.status != 204)
        for index in 0..<answer.fields.count {
            let field = answer.fields[index]
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

    @inline(__always)
    private mutating func useAnswerBody(_ bytes: UnsafeBufferPointer<UInt8>, from link: Int32) -> Int {
        let exchange = links[link].exchange
        if isTunnel(exchange) { return unsafe tunnelDown(bytes, exchange) }
        switch links[link].framing {
        case .length:
            let count = min(bytes.count, links[link].remaining)
            links[link].remaining &-= count
            unsafe passAnswer(unsafe UnsafeBufferPointer(rebasing: bytes[..<count]), exchange)
            if links[link].isAlive, links[link].exchange == exchange, links[link].remaining == 0,
                links[link].kind != .stream
            {
                endAnswer(link)
            }
            return count
        case .untilClose:
            unsafe passAnswer(bytes, exchange)
            return bytes.count
        case .chunked where links[link].kind == .stream:
            unsafe passAnswer(bytes, exchange)
            return bytes.count
        case .chunked: return unsafe useAnswerChunks(bytes, from: link)
        case .none: return 0
        }
    }

    private mutating func useAnswerChunks(_ bytes: UnsafeBufferPointer<UInt8>, from link: Int32) -> Int {
        let exchange = links[link].exchange
        let generation = links[link].generation
        var offset = 0
        while links.holds(link, generation) {
            switch unsafe links[link].decoder.next(bytes.span, from: &offset) {
            case .data(let range): unsafe passAnswer(bytes[range], exchange)
            case .trailer(let field): unsafe keepAnswerTrailer(field, bytes, exchange)
            case .end:
                endAnswer(link)
                return offset
            case .needMore: return offset
            case .failure(let failure):
                answerInvalid(link, failure.code)
                return bytes.count
            }
        }
        return bytes.count
    }

    /// A trailer passes if it says nothing about framing, routing, credentials or identity.
    mutating func keepAnswerTrailer(_ field: HeadField, _ bytes: UnsafeBufferPointer<UInt8>, _ exchange: Int32) {
        guard field.known == .other, unsafe KnownField.lookAlike(bytes.span, field.name) == .other,
            unsafe !snapshot.routes.reservedNames.contains(field, in: bytes.span),
            exchanges[exchange].isResponseChunked || exchanges[exchange].isStream
        else { return }
        unsafe exchanges[exchange].answerTrailers.append(bytes[field.name])
        exchanges[exchange].answerTrailers.append(": ")
        unsafe exchanges[exchange].answerTrailers.append(bytes[field.value])
        exchanges[exchange].answerTrailers.append("\r\n")
    }

    /// The same for the trailers of a stream, lines of text.
    mutating func keepAnswerTrailers(_ lines: UnsafeBufferPointer<UInt8>, _ exchange: Int32) {
        var index = 0
        while let field = unsafe TrailerLines.next(lines.span, from: &index) {
            unsafe keepAnswerTrailer(field, lines, exchange)
        }
    }

    /// Hands body bytes of the answer to the client.
    mutating func passAnswer(_ bytes: UnsafeBufferPointer<UInt8>, _ exchange: Int32) {
        guard bytes.count > 0 else { return }
        exchanges[exchange].bytesOut &+= bytes.count
        if exchanges[exchange].isResponseChunked {
            staging.append(hexadecimal: UInt(bytes.count))
            staging.append("\r\n")
            unsafe staging.append(bytes)
            staging.append("\r\n")
        } else if bytes.count <= Worker.copySize || !staging.isEmpty {
            unsafe staging.append(bytes)
        } else {
            unsafe write(bytes, to: exchanges[exchange].client)
        }
    }

    /// The answer is complete: its last bytes are sent, the link is parked, the exchange ends.
    mutating func endAnswer(_ link: Int32) {
        let exchange = links[link].exchange
        if exchanges[exchange].isResponseChunked, !links[link].framing.isNone {
            staging.append("0\r\n")
            unsafe staging.append(unsafe exchanges[exchange].answerTrailers.bytes)
            staging.append("\r\n")
        }
        let generation = exchanges[exchange].generation
        sendStaging(exchange, isLast: exchanges[exchange].closesClient)
        guard exchanges.holds(exchange, generation) else { return }
        endStream(exchange)
        release(link, of: exchange)
        complete(exchange)
    }

    /// Takes the link from the exchange and keeps it if it can carry another.
    @inline(__always)
    private mutating func release(_ link: Int32, of exchange: Int32) {
        exchanges[exchange].link = -1
        links[link].exchange = -1
        links[link].served &+= 1
        upstreams.ended(links[link].endpoint)
        let isReusable =
            links[link].kind == .http1 && links[link].keepsAlive && exchanges[exchange].isRequestComplete
            && unsent(link) == 0
            && !links[link].hasEnded && exchanges[exchange].headSent == exchanges[exchange].head.count
        if isReusable { park(link) } else { closeLink(link) }
    }

    private mutating func armIdle(_ link: Int32, _ exchange: Int32) {
        arm(link: link, at: now &+ exchanges[exchange].idlePatience)
    }

    // MARK: Writing to the client

    /// Sends what stands in `staging`.
    ///
    /// The last bytes before an end wait for it in the kernel: both then go as one packet. The end must follow at once.
    @inline(__always)
    mutating func sendStaging(_ exchange: Int32, isLast: Bool = false) {
        guard !staging.isEmpty else { return }
        unsafe write(unsafe staging.bytes, to: exchanges[exchange].client, isLast: isLast)
        staging.removeAll()
    }

    /// Sends bytes to a client at once, or keeps what the kernel does not take.
    mutating func write(_ bytes: UnsafeBufferPointer<UInt8>, to client: Int32, isLast: Bool = false) {
        if clients[client].rules.isSecure || clients[client].isStream {
            return unsafe clients[client].isStream ? send(bytes, on: client) : encrypt(bytes, to: client)
        }
        var sent = 0
        if clients[client].output.isEmpty {
            let flags = isLast ? martlet_more_follows : Int32(MSG_NOSIGNAL)
            sent = unsafe martlet_send(clients[client].fd, bytes.baseAddress, bytes.count, flags)
            if sent == bytes.count { return }
            if sent < 0 {
                let reason = martlet_errno()
                guard reason == EAGAIN || reason == EINTR else { return abandon(client) }
                sent = 0
            }
            clients[client].takenAt = now
        }
        unsafe clients[client].output.append(unsafe UnsafeBufferPointer(rebasing: bytes[sent...]))
        holdBack(client)
    }

    /// A client that is slow holds its upstream back, and must go on taking bytes.
    mutating func holdBack(_ client: Int32) {
        let exchange = clients[client].exchange
        if exchange < 0 || exchanges[exchange].isRequestComplete { armWrite(client) }
        guard exchange >= 0, exchanges[exchange].link >= 0 else { return }
        if clients[client].output.count > Worker.highWater { links[exchanges[exchange].link].isPaused = true }
    }

    mutating func armWrite(_ client: Int32) {
        // Where it cannot be watched now, that is tried once more: see `watchOverdue`.
        watch(client)
        guard !clients[client].awaitsProbe, clients[client].phase != .authenticating else { return }
        arm(client: client, at: now &+ snapshot.patience.bodyIdle)
    }

    /// Sends what was kept.
    mutating func flush(client: Int32) {
        let bytes = unsafe clients[client].output.bytes
        guard bytes.count > 0 else { return }
        let sent = unsafe martlet_send(clients[client].fd, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
        if sent < 0 {
            let reason = martlet_errno()
            if reason != EAGAIN && reason != EINTR { abandon(client) }
            return
        }
        clients[client].output.consume(sent)
        clients[client].takenAt = now
        // What is written in a handshake gives the client no more time for it.
        if clients[client].phase == .handshake {
            if clients[client].output.isEmpty { clients[client].output.release() }
            return
        }
        let exchange = clients[client].exchange
        if exchange >= 0, exchanges[exchange].link >= 0, clients[client].output.count < Worker.lowWater {
            let link = exchanges[exchange].link
            if links[link].isPaused {
                links[link].isPaused = false
                armIdle(link, exchange)
                markReady(link: link)
            }
        }
        if clients[client].kind == .http2 { return framesWritten(client) }
        let isInputLeft = clients[client].mayHaveMore || !clients[client].input.isEmpty
        if exchange < 0, isInputLeft, clients[client].output.count < Worker.lowWater { markReady(client: client) }
        guard clients[client].output.isEmpty else { return armWrite(client) }
        clients[client].output.release()
        if isTunnel(exchange) { return settleTunnel(exchange) }
        if clients[client].closesAfterFlush { return endConnection(client) }
        if exchange < 0 {
            if !clients[client].isReceivingHead { awaitRequest(client) }
        } else if exchanges[exchange].responder == .upstream, exchanges[exchange].isRequestComplete,
            !clients[client].awaitsProbe
        {
            // The rest is up to the upstream, whose link has a deadline of its own.
            arm(client: client, at: .max)
        }
    }
}
