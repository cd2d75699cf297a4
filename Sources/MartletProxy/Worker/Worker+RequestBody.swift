private import CLinux
internal import MartletConfig
internal import MartletCore
internal import MartletHTTP
internal import MartletRouter

/// The request's body: streamed to whoever answers, with back-pressure, limits and deadlines.
extension Worker {
    private static let lastChunk: StaticString = "0\r\n"
    /// Less than this is copied to go with what comes next.
    private static let worthSending = 4 * 1024
    /// How long a rate is averaged over (`body_min_rate`).
    private static let rateWindow: Int64 = 30_000_000_000

    /// Takes bytes of a request's body as far as they can go.
    /// - Returns: how many were used; 0 when more are needed first or the other side is slow.
    mutating func takeBody(_ bytes: UnsafeBufferPointer<UInt8>, for exchange: Int32) -> Int {
        if isTunnel(exchange) {
            if exchanges[exchange].isStream { creditStream(exchanges[exchange].client, bytes.count) }
            return unsafe tunnelUp(bytes, exchange)
        }
        let generation = exchanges[exchange].generation
        let used: Int
        switch exchanges[exchange].framing {
        case .length: used = unsafe takeLength(bytes, exchange)
        case .chunked:
            used = unsafe exchanges[exchange].isStream ? takeStreamed(bytes, exchange) : takeChunks(bytes, exchange)
        case .none, .untilClose: used = 0
        }
        guard exchanges.holds(exchange, generation) else { return bytes.count }
        if exchanges[exchange].isStream { creditStream(exchanges[exchange].client, used) }
        if exchanges[exchange].link >= 0 { flush(link: exchanges[exchange].link) }
        guard exchanges.holds(exchange, generation) else { return bytes.count }
        if exchanges[exchange].isRequestComplete { requestComplete(exchange) } else { armBody(exchange) }
        return used
    }

    private mutating func takeLength(_ bytes: UnsafeBufferPointer<UInt8>, _ exchange: Int32) -> Int {
        let count = min(bytes.count, exchanges[exchange].remaining)
        exchanges[exchange].remaining &-= count
        // Behind the last byte of a stream there may be trailers.
        let mayHaveTrailers = exchanges[exchange].isStream && goesOverStream(exchange)
        if exchanges[exchange].remaining == 0, !mayHaveTrailers { exchanges[exchange].isRequestComplete = true }
        exchanges[exchange].bodyBytes &+= count
        unsafe pass(unsafe UnsafeBufferPointer(rebasing: bytes[..<count]), of: exchange)
        return count
    }

    private mutating func takeChunks(_ bytes: UnsafeBufferPointer<UInt8>, _ exchange: Int32) -> Int {
        var offset = 0
        while true {
            switch unsafe exchanges[exchange].decoder.next(bytes.span, from: &offset) {
            case .data(let range):
                exchanges[exchange].bodyBytes &+= Int(range.count)
                guard exchanges[exchange].bodyBytes <= exchanges[exchange].bodyLimit else {
                    fail(exchange, .bodyTooLarge)
                    return bytes.count
                }
                unsafe passChunk(bytes[range], of: exchange)
            case .trailer(let field): unsafe keepTrailer(field, bytes, of: exchange)
            case .end:
                exchanges[exchange].isRequestComplete = true
                endChunks(of: exchange)
                return offset
            case .needMore: return offset
            case .failure(let failure):
                fail(exchange, .head(failure))
                return bytes.count
            }
        }
    }

    /// The frames of a stream say themselves how long they are, and which is the last.
    private mutating func takeStreamed(_ bytes: UnsafeBufferPointer<UInt8>, _ exchange: Int32) -> Int {
        exchanges[exchange].bodyBytes &+= bytes.count
        guard exchanges[exchange].bodyBytes <= exchanges[exchange].bodyLimit else {
            fail(exchange, .bodyTooLarge)
            return bytes.count
        }
        unsafe passChunk(bytes, of: exchange)
        return bytes.count
    }

    /// The last frame of a stream's body has been used.
    mutating func endStreamed(_ exchange: Int32) {
        let generation = exchanges[exchange].generation
        exchanges[exchange].isRequestComplete = true
        // Only now it is known which of them the upstream can have.
        var lines = ByteBuffer()
        swap(&lines, &exchanges[exchange].streamTrailers)
        unsafe keepTrailers(lines.bytes, of: exchange)
        endChunks(of: exchange)
        if exchanges[exchange].link >= 0 { flush(link: exchanges[exchange].link) }
        if exchanges.holds(exchange, generation) { requestComplete(exchange) }
    }

    /// Hands body bytes to whoever answers.
    private mutating func pass(_ bytes: UnsafeBufferPointer<UInt8>, of exchange: Int32) {
        exchanges[exchange].bytesIn &+= bytes.count
        exchanges[exchange].windowBytes &+= bytes.count
        switch exchanges[exchange].responder {
        case .local:
            let room = LocalLimits.bodyBytes - exchanges[exchange].body.count
            let part = unsafe UnsafeBufferPointer(rebasing: bytes[..<min(max(room, 0), bytes.count)])
            unsafe exchanges[exchange].body.append(part)
        case .upstream:
            let link = exchanges[exchange].link
            guard link >= 0 else { return }
            let sent = unsafe sendAtOnce(bytes, of: exchange)
            unsafe links[link].output.append(unsafe UnsafeBufferPointer(rebasing: bytes[sent...]))
            if links[link].output.count > Worker.highWater { clients[exchanges[exchange].client].isPaused = true }
        case .none: break
        }
    }

    /// Sends much of a body from where it was received, where nothing waits to go before it.
    /// - Returns: how much the kernel took.
    private mutating func sendAtOnce(_ bytes: UnsafeBufferPointer<UInt8>, of exchange: Int32) -> Int {
        let link = exchanges[exchange].link
        guard bytes.count >= Worker.worthSending, links[link].kind == .http1, !links[link].isSecure, links[link].isUp,
            links[link].output.isEmpty, exchanges[exchange].headSent == exchanges[exchange].head.count
        else { return 0 }
        let sent = unsafe CLinux.send(links[link].fd, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
        // What went wrong will go wrong again when it is flushed.
        guard sent > 0 else { return 0 }
        if !exchanges[exchange].isRequestComplete { armAnswer(link) }
        return sent
    }

    private mutating func passChunk(_ bytes: UnsafeBufferPointer<UInt8>, of exchange: Int32) {
        let link = exchanges[exchange].link
        let isChunk = exchanges[exchange].responder == .upstream && link >= 0 && links[link].kind != .stream
        if isChunk {
            links[link].output.append(hexadecimal: UInt(bytes.count))
            links[link].output.append("\r\n")
        }
        unsafe pass(bytes, of: exchange)
        if isChunk { links[link].output.append("\r\n") }
    }

    /// Takes from a link what it could not send, so that another one can, whatever its wire.
    mutating func takeBackBody(_ exchange: Int32) {
        let link = exchanges[exchange].link
        guard link >= 0, !links[link].output.isEmpty else { return }
        var waiting = ByteBuffer()
        swap(&waiting, &links[link].output)
        guard isChunked(exchange, on: link) else { return unsafe exchanges[exchange].body.append(waiting.bytes) }
        var decoder = ChunkedDecoder()
        var offset = 0
        while true {
            switch unsafe decoder.next(waiting.bytes.span, from: &offset) {
            case .data(let range): unsafe exchanges[exchange].body.append(waiting.bytes[range])
            case .trailer: continue
            case .end, .needMore, .failure: return
            }
        }
    }

    /// Gives a link what another one could not send, and the body's end where that has come.
    mutating func passHeldBody(of exchange: Int32) {
        guard exchanges[exchange].isRequestComplete || !exchanges[exchange].body.isEmpty else { return }
        let link = exchanges[exchange].link
        var held = ByteBuffer()
        swap(&held, &exchanges[exchange].body)
        if !held.isEmpty {
            let isChunk = isChunked(exchange, on: link)
            if isChunk {
                links[link].output.append(hexadecimal: UInt(held.count))
                links[link].output.append("\r\n")
            }
            unsafe links[link].output.append(held.bytes)
            if isChunk { links[link].output.append("\r\n") }
        }
        if exchanges[exchange].isRequestComplete { endChunks(of: exchange) }
    }

    /// Whether the body goes over a link in chunks.
    private func isChunked(_ exchange: Int32, on link: Int32) -> Bool {
        exchanges[exchange].framing.isChunked && links[link].kind != .stream
    }

    private mutating func endChunks(of exchange: Int32) {
        let link = exchanges[exchange].link
        guard exchanges[exchange].responder == .upstream, link >= 0, isChunked(exchange, on: link) else { return }
        links[link].output.append(Worker.lastChunk)
        unsafe links[link].output.append(unsafe exchanges[exchange].requestTrailers.bytes)
        links[link].output.append("\r\n")
    }

    mutating func requestComplete(_ exchange: Int32) {
        arm(client: exchanges[exchange].client, at: .max)
        if exchanges[exchange].responder == .local { return startLocal(exchange) }
        let link = exchanges[exchange].link
        guard link >= 0, links[link].phase == .awaitingHead else { return }
        armAnswer(link)
    }

    /// A body must go on: some byte within `body_idle`, and `body_min_rate` on average.
    mutating func armBody(_ exchange: Int32) {
        exchanges[exchange].receivedAt = now
        armNextCheck(exchange)
    }

    private mutating func armNextCheck(_ exchange: Int32) {
        if awaitsContinue(exchange) {
            return arm(client: exchanges[exchange].client, at: now &+ Worker.continuePatience)
        }
        let rateCheck = exchanges[exchange].windowStart &+ Worker.rateWindow
        let idle = exchanges[exchange].receivedAt &+ snapshot.patience.bodyIdle
        arm(client: exchanges[exchange].client, at: snapshot.limits.bodyMinimumRate > 0 ? min(rateCheck, idle) : idle)
    }

    /// How long an upstream may take to say 100 (Continue) before the gateway says it: an upstream that never does would
    /// have a waiting client wait for ever (RFC 9110 §10.1.1).
    private static let continuePatience: Int64 = 1_000_000_000

    private func awaitsContinue(_ exchange: Int32) -> Bool {
        exchanges[exchange].expectsContinue && !exchanges[exchange].hasContinued && exchanges[exchange].bodyBytes == 0
            && exchanges[exchange].responder == .upstream && !exchanges[exchange].hasResponseStarted
    }

    private mutating func sayContinue(_ exchange: Int32) {
        exchanges[exchange].hasContinued = true
        armBody(exchange)
        sendContinue(exchange)
    }

    /// The deadline of a client with a request under way has passed.
    mutating func exchangeTimedOut(_ exchange: Int32) {
        let client = exchanges[exchange].client
        if isTunnel(exchange) { return }
        if clients[client].awaitsProbe {
            clients[client].awaitsProbe = false
            return probe(client)
        }
        if exchanges[exchange].isRequestComplete {
            if exchanges[exchange].responder == .local, !exchanges[exchange].hasResponseStarted {
                return fail(exchange, .localFailed)
            }
            return hasTakenEverything(client) ? () : takenTooSlowly(client)
        }
        if awaitsContinue(exchange) { return sayContinue(exchange) }
        if clients[client].isPaused { return pausedTimedOut(exchange) }
        if exchanges[exchange].isGRPC, exchanges[exchange].link >= 0 { return callTimedOut(exchange) }
        let window = now &- exchanges[exchange].windowStart
        let isWindowOver = window >= Worker.rateWindow
        let wanted = Int(window / 1_000_000_000) &* snapshot.limits.bodyMinimumRate
        let isIdle = now &- exchanges[exchange].receivedAt >= snapshot.patience.bodyIdle
        guard !isIdle, !isWindowOver || exchanges[exchange].windowBytes >= wanted else {
            return fail(exchange, .requestTimeout)
        }
        if isWindowOver { beginRateWindow(exchange) }
        armNextCheck(exchange)
    }

    /// A call of gRPC may be silent for as long as its upstream is patient (`timeouts.idle`), which counts bytes either way; only
    /// what it is sent must be taken.
    private mutating func callTimedOut(_ exchange: Int32) {
        let client = exchanges[exchange].client
        let isTaking = hasTakenEverything(client) || now &- clients[client].takenAt < snapshot.patience.bodyIdle
        isTaking ? armBody(exchange) : takenTooSlowly(client)
    }

    private mutating func beginRateWindow(_ exchange: Int32) {
        exchanges[exchange].windowStart = now
        exchanges[exchange].windowBytes = 0
    }

    /// A client that is not read from need not send.
    ///
    /// One that takes nothing either may be what its upstream waits for.
    private mutating func pausedTimedOut(_ exchange: Int32) {
        let client = exchanges[exchange].client
        let link = exchanges[exchange].link
        let isTakingNothing =
            clients[client].isStream
            ? !hasTakenMore(client) : now &- clients[client].takenAt >= snapshot.patience.bodyIdle
        if link >= 0, links[link].isPaused, isTakingNothing { return abandon(client) }
        beginRateWindow(exchange)
        armBody(exchange)
    }
}
