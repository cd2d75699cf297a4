private import CLinux
internal import MartletConfig
internal import MartletCore
internal import MartletHTTP
internal import MartletRouter

/// The request's body: streamed to the upstream or a local handler, with back-pressure, limits and deadlines.
extension EventLoop {
    private static let lastChunk: StaticString = "0\r\n"
    /// Smaller pieces are buffered and sent with what comes next.
    private static let directSendThreshold = 4 * 1024

    /// Consumes bytes of a request's body as far as possible.
    /// - Returns: how many were consumed; 0 when more are needed first or the other side is slow.
    mutating func consumeBody(_ bytes: UnsafeBufferPointer<UInt8>, for exchange: Int32) -> Int {
        if isTunnel(exchange) {
            if exchanges[exchange].isStream { creditStream(exchanges[exchange].downstream, bytes.count) }
            return unsafe tunnelFromDownstream(bytes, exchange)
        }
        let generation = exchanges[exchange].generation
        let used: Int
        switch exchanges[exchange].framing {
        case .length: used = unsafe consumeLength(bytes, exchange)
        case .chunked:
            used =
                unsafe exchanges[exchange].isStream
                ? consumeStreamed(bytes, exchange)
                : consumeChunks(bytes, exchange)
        case .none, .untilClose: used = 0
        }
        guard exchanges.contains(exchange, generation) else { return bytes.count }
        if exchanges[exchange].isStream { creditStream(exchanges[exchange].downstream, used) }
        if exchanges[exchange].upstream >= 0 { flush(upstream: exchanges[exchange].upstream) }
        guard exchanges.contains(exchange, generation) else { return bytes.count }
        if exchanges[exchange].isRequestComplete { requestCompleted(exchange) } else { armBody(exchange) }
        return used
    }

    private mutating func consumeLength(_ bytes: UnsafeBufferPointer<UInt8>, _ exchange: Int32) -> Int {
        let count = min(bytes.count, exchanges[exchange].remaining)
        exchanges[exchange].remaining &-= count
        // The last byte of a stream's body may be followed by trailers.
        let mayHaveTrailers = exchanges[exchange].isStream && goesOverStream(exchange)
        if exchanges[exchange].remaining == 0, !mayHaveTrailers { exchanges[exchange].isRequestComplete = true }
        exchanges[exchange].bodyBytes &+= count
        unsafe forwardBody(unsafe UnsafeBufferPointer(rebasing: bytes[..<count]), of: exchange)
        return count
    }

    private mutating func consumeChunks(_ bytes: UnsafeBufferPointer<UInt8>, _ exchange: Int32) -> Int {
        var offset = 0
        while true {
            switch unsafe exchanges[exchange].decoder.next(bytes.span, from: &offset) {
            case .data(let range):
                exchanges[exchange].bodyBytes &+= Int(range.count)
                guard exchanges[exchange].bodyBytes <= exchanges[exchange].bodyLimit else {
                    fail(exchange, .bodyTooLarge)
                    return bytes.count
                }
                unsafe forwardChunk(bytes[range], of: exchange)
            case .trailer(let field): unsafe collectTrailer(field, bytes, of: exchange)
            case .end:
                exchanges[exchange].isRequestComplete = true
                writeLastChunk(of: exchange)
                return offset
            case .needMore: return offset
            case .failure(let failure):
                fail(exchange, .head(failure))
                return bytes.count
            }
        }
    }

    /// A stream's frames delimit the body.
    private mutating func consumeStreamed(_ bytes: UnsafeBufferPointer<UInt8>, _ exchange: Int32) -> Int {
        exchanges[exchange].bodyBytes &+= bytes.count
        guard exchanges[exchange].bodyBytes <= exchanges[exchange].bodyLimit else {
            fail(exchange, .bodyTooLarge)
            return bytes.count
        }
        unsafe forwardChunk(bytes, of: exchange)
        return bytes.count
    }

    /// The last frame of a stream's body was consumed.
    mutating func finishStreamedBody(_ exchange: Int32) {
        let generation = exchanges[exchange].generation
        exchanges[exchange].isRequestComplete = true
        // Only now it is known which of them the upstream may get.
        var lines = ByteBuffer()
        swap(&lines, &exchanges[exchange].streamTrailers)
        unsafe collectTrailers(lines.bytes, of: exchange)
        writeLastChunk(of: exchange)
        if exchanges[exchange].upstream >= 0 { flush(upstream: exchanges[exchange].upstream) }
        if exchanges.contains(exchange, generation) { requestCompleted(exchange) }
    }

    /// Forwards body bytes to the upstream or a local handler.
    private mutating func forwardBody(_ bytes: UnsafeBufferPointer<UInt8>, of exchange: Int32) {
        exchanges[exchange].bytesIn &+= bytes.count
        exchanges[exchange].windowBytes &+= bytes.count
        switch exchanges[exchange].responder {
        case .local:
            let room = LocalLimits.bodyBytes - exchanges[exchange].body.count
            let part = unsafe UnsafeBufferPointer(rebasing: bytes[..<min(max(room, 0), bytes.count)])
            unsafe exchanges[exchange].body.append(part)
        case .upstream:
            let upstream = exchanges[exchange].upstream
            guard upstream >= 0 else { return }
            let sent = unsafe sendDirectly(bytes, of: exchange)
            unsafe upstreams[upstream].output.append(unsafe UnsafeBufferPointer(rebasing: bytes[sent...]))
            if upstreams[upstream].output.count > EventLoop.highWatermark {
                downstreams[exchanges[exchange].downstream].isPaused = true
            }
        case .none: break
        }
    }

    /// Sends a large piece of the body from the receive buffer, if nothing is buffered before it.
    /// - Returns: how much the kernel accepted.
    private mutating func sendDirectly(_ bytes: UnsafeBufferPointer<UInt8>, of exchange: Int32) -> Int {
        let upstream = exchanges[exchange].upstream
        guard bytes.count >= EventLoop.directSendThreshold, upstreams[upstream].kind == .http1,
            !upstreams[upstream].isSecure,
            upstreams[upstream].isUp,
            upstreams[upstream].output.isEmpty, exchanges[exchange].headSent == exchanges[exchange].head.count
        else { return 0 }
        let sent = unsafe CLinux.send(upstreams[upstream].fd, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
        // An error will occur again on the next flush.
        guard sent > 0 else { return 0 }
        if !exchanges[exchange].isRequestComplete { armResponseTimeout(upstream) }
        return sent
    }

    private mutating func forwardChunk(_ bytes: UnsafeBufferPointer<UInt8>, of exchange: Int32) {
        let upstream = exchanges[exchange].upstream
        let isChunk = exchanges[exchange].responder == .upstream && upstream >= 0 && upstreams[upstream].kind != .stream
        if isChunk {
            upstreams[upstream].output.append(hexadecimal: UInt(bytes.count))
            upstreams[upstream].output.append("\r\n")
        }
        unsafe forwardBody(bytes, of: exchange)
        if isChunk { upstreams[upstream].output.append("\r\n") }
    }

    /// Reclaims the body bytes that an upstream connection could not send, in a form that any other can send.
    mutating func reclaimBody(_ exchange: Int32) {
        let upstream = exchanges[exchange].upstream
        guard upstream >= 0, !upstreams[upstream].output.isEmpty else { return }
        var waiting = ByteBuffer()
        swap(&waiting, &upstreams[upstream].output)
        guard isChunked(exchange, on: upstream) else { return unsafe exchanges[exchange].body.append(waiting.bytes) }
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

    /// Gives an upstream connection the body bytes that were reclaimed, and the body's end where it was received.
    mutating func forwardHeldBody(of exchange: Int32) {
        guard exchanges[exchange].isRequestComplete || !exchanges[exchange].body.isEmpty else { return }
        let upstream = exchanges[exchange].upstream
        var held = ByteBuffer()
        swap(&held, &exchanges[exchange].body)
        if !held.isEmpty {
            let isChunk = isChunked(exchange, on: upstream)
            if isChunk {
                upstreams[upstream].output.append(hexadecimal: UInt(held.count))
                upstreams[upstream].output.append("\r\n")
            }
            unsafe upstreams[upstream].output.append(held.bytes)
            if isChunk { upstreams[upstream].output.append("\r\n") }
        }
        if exchanges[exchange].isRequestComplete { writeLastChunk(of: exchange) }
    }

    /// Whether the body is sent in chunks.
    private func isChunked(_ exchange: Int32, on upstream: Int32) -> Bool {
        exchanges[exchange].framing.isChunked && upstreams[upstream].kind != .stream
    }

    private mutating func writeLastChunk(of exchange: Int32) {
        let upstream = exchanges[exchange].upstream
        guard exchanges[exchange].responder == .upstream, upstream >= 0, isChunked(exchange, on: upstream) else {
            return
        }
        upstreams[upstream].output.append(EventLoop.lastChunk)
        unsafe upstreams[upstream].output.append(unsafe exchanges[exchange].requestTrailers.bytes)
        upstreams[upstream].output.append("\r\n")
    }

    mutating func requestCompleted(_ exchange: Int32) {
        arm(downstream: exchanges[exchange].downstream, at: .max)
        if exchanges[exchange].responder == .local { return startLocal(exchange) }
        let upstream = exchanges[exchange].upstream
        guard upstream >= 0, upstreams[upstream].phase == .awaitingHead else { return }
        armResponseTimeout(upstream)
    }
}
