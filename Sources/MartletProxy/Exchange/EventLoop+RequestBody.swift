private import CLinux
internal import MartletConfig
internal import MartletCore
internal import MartletHTTP
internal import MartletResponder
internal import MartletRouter

/// The request's body: streamed to the upstream or a local handler, with back-pressure, limits and deadlines.
extension EventLoop {
    /// Smaller pieces are buffered and sent with what comes next.
    private static let directSendThreshold = 4 * 1024

    /// Consumes bytes of a request's body as far as possible.
    /// - Returns: how many were consumed; 0 when more are needed first or the other side is slow.
    mutating func consumeBody(_ bytes: UnsafeBufferPointer<UInt8>, for exchange: Handle<Exchange>) -> Int {
        let isStream = exchanges[exchange].isStream
        if isTunnel(exchange) {
            if isStream { creditStream(exchanges[exchange].downstream, bytes.count) }
            return unsafe tunnelFromDownstream(bytes, exchange)
        }
        let used = unsafe forwardBody(bytes, of: exchange, isStream: isStream)
        guard exchanges[exchange].isAlive else { return bytes.count }
        if isStream { creditStream(exchanges[exchange].downstream, used) }
        if !exchanges[exchange].upstream.isNone { flush(upstream: exchanges[exchange].upstream) }
        guard exchanges[exchange].isAlive else { return bytes.count }
        if exchanges[exchange].body.isComplete { requestCompleted(exchange) } else { armBody(exchange) }
        return used
    }

    /// Forwards the elements of the body that `bytes` contain.
    /// - Returns: how many bytes were consumed; all of them where the exchange has failed.
    @inline(__always)
    private mutating func forwardBody(
        _ bytes: UnsafeBufferPointer<UInt8>, of exchange: Handle<Exchange>, isStream: Bool
    ) -> Int {
        // The last byte of a stream's body may be followed by trailers.
        let mayHaveTrailers = isStream && goesOverStream(exchange)
        var offset = 0
        while true {
            switch unsafe exchanges[exchange].body.next(
                bytes.span, from: &offset, isStream: isStream, mayHaveTrailers: mayHaveTrailers)
            {
            case .data(let range): unsafe forwardPiece(bytes[range], of: exchange)
            case .trailer(let field): unsafe collectTrailer(field, bytes, of: exchange)
            case .end:
                forwardEnd(of: exchange)
                return offset
            case .needMore: return offset
            case .tooLarge:
                fail(exchange, .bodyTooLarge)
                return bytes.count
            case .malformed(let failure):
                fail(exchange, .head(failure))
                return bytes.count
            }
        }
    }

    /// The last frame of a stream's body was consumed.
    mutating func finishStreamedBody(_ exchange: Handle<Exchange>) {
        exchanges[exchange].body.isComplete = true
        // Only now it is known which of them the upstream may get.
        var lines = ByteBuffer()
        swap(&lines, &exchanges[exchange].trailers.received)
        unsafe collectTrailers(lines.bytes, of: exchange)
        forwardEnd(of: exchange)
        if !exchanges[exchange].upstream.isNone { flush(upstream: exchanges[exchange].upstream) }
        if exchanges[exchange].isAlive { requestCompleted(exchange) }
    }

    /// Forwards a piece of the body to the upstream or a local handler.
    private mutating func forwardPiece(_ piece: UnsafeBufferPointer<UInt8>, of exchange: Handle<Exchange>) {
        exchanges[exchange].record.bytesIn &+= piece.count
        exchanges[exchange].progress.add(piece.count)
        switch exchanges[exchange].responder {
        case .local: unsafe exchanges[exchange].heldBody.append(piece, upTo: LocalLimits.bodyBytes)
        case .upstream:
            let upstream = exchanges[exchange].upstream
            guard !upstream.isNone else { return }
            let encoder = bodyEncoder(of: exchange, on: upstream)
            let sent = unsafe encoder.isChunked ? 0 : sendDirectly(piece, of: exchange)
            let rest = unsafe UnsafeBufferPointer(rebasing: piece[sent...])
            unsafe encoder.append(rest, to: &upstreams[upstream].output)
            if upstreams[upstream].output.count > EventLoop.highWatermark {
                downstreams[exchanges[exchange].downstream].isPaused = true
            }
        case .none: break
        }
    }

    /// Sends a large piece of the body from the receive buffer, if nothing is buffered before it.
    /// - Returns: how much the kernel accepted.
    private mutating func sendDirectly(_ bytes: UnsafeBufferPointer<UInt8>, of exchange: Handle<Exchange>) -> Int {
        let upstream = exchanges[exchange].upstream
        guard bytes.count >= EventLoop.directSendThreshold, upstreams[upstream].acceptsDirectBody,
            exchanges[exchange].hasSentHead
        else { return 0 }
        let sent = unsafe CLinux.send(
            upstreams[upstream].transport.fd, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
        // An error will occur again on the next flush.
        guard sent > 0 else { return 0 }
        if !exchanges[exchange].body.isComplete { armResponseTimeout(upstream) }
        return sent
    }

    /// Forwards the end of the body, where the upstream cannot tell it from the bytes.
    private mutating func forwardEnd(of exchange: Handle<Exchange>) {
        let upstream = exchanges[exchange].upstream
        guard exchanges[exchange].responder == .upstream, !upstream.isNone else { return }
        let encoder = bodyEncoder(of: exchange, on: upstream)
        unsafe encoder.appendEnd(
            trailers: exchanges[exchange].trailers.forwarded.bytes, to: &upstreams[upstream].output)
    }

    /// Reclaims the body bytes that an upstream connection could not send, in a form that any other can send.
    mutating func reclaimBody(_ exchange: Handle<Exchange>) {
        let upstream = exchanges[exchange].upstream
        guard !upstream.isNone, !upstreams[upstream].output.isEmpty else { return }
        let encoder = bodyEncoder(of: exchange, on: upstream)
        exchanges[exchange].heldBody.reclaim(&upstreams[upstream].output, from: encoder)
    }

    /// Gives an upstream connection the body bytes that were reclaimed, and the body's end where it was received.
    mutating func forwardHeldBody(of exchange: Handle<Exchange>) {
        guard exchanges[exchange].body.isComplete || !exchanges[exchange].heldBody.isEmpty else { return }
        let upstream = exchanges[exchange].upstream
        let encoder = bodyEncoder(of: exchange, on: upstream)
        exchanges[exchange].heldBody.forward(to: &upstreams[upstream].output, with: encoder)
        if exchanges[exchange].body.isComplete { forwardEnd(of: exchange) }
    }

    @inline(__always)
    private func bodyEncoder(
        of exchange: Handle<Exchange>, on upstream: Handle<UpstreamConnection>
    ) -> UpstreamBodyEncoder {
        UpstreamBodyEncoder(exchanges[exchange].body.framing, on: upstreams[upstream].kind)
    }

    mutating func requestCompleted(_ exchange: Handle<Exchange>) {
        arm(downstream: exchanges[exchange].downstream, at: .max)
        if exchanges[exchange].responder == .local { return startLocal(exchange) }
        let upstream = exchanges[exchange].upstream
        guard !upstream.isNone, upstreams[upstream].phase == .awaitingHead else { return }
        armResponseTimeout(upstream)
    }
}
