private import CLinux
internal import MartletCore
internal import MartletHTTP
internal import MartletResponder

/// The body and the trailers of a request, on their way to an upstream.
extension Exchanges {
    /// Requires progress of a body: some byte within `body_idle`, and `body_min_rate` on average.
    mutating func armBody(
        _ exchange: Handle<Exchange>, _ downstreams: inout DownstreamConnections, _ context: inout LoopContext
    ) {
        self[exchange].pace.restart(now: context.now)
        armNextCheck(exchange, &downstreams, &context)
    }

    mutating func armNextCheck(
        _ exchange: Handle<Exchange>, _ downstreams: inout DownstreamConnections, _ context: inout LoopContext
    ) {
        let deadline = self[exchange].pace.nextCheck(
            now: context.now, context.paceRules, awaitsContinue: self[exchange].awaitsContinue)
        downstreams.arm(self[exchange].downstream, at: deadline, &context)
    }

    mutating func requestDeadline(
        of exchange: Handle<Exchange>, _ downstreams: inout DownstreamConnections
    ) -> RequestDeadline {
        let downstream = self[exchange].downstream
        return RequestDeadline(
            isTunnel: isTunnel(exchange),
            isProbePending: downstreams[downstream].probe.isPending,
            isComplete: self[exchange].body.isComplete,
            isLocal: self[exchange].responder == .local,
            hasResponseStarted: self[exchange].response.hasStarted,
            awaitsContinue: self[exchange].awaitsContinue,
            isPaused: downstreams[downstream].isPaused,
            isCall: self[exchange].request.isGRPC && !self[exchange].upstream.isNone)
    }

    @inline(__always)
    private mutating func bodyEncoder(
        of exchange: Handle<Exchange>, on upstream: Handle<UpstreamConnection>,
        _ upstreams: inout UpstreamConnections
    ) -> UpstreamBodyEncoder {
        UpstreamBodyEncoder(self[exchange].body.framing, on: upstreams[upstream].kind)
    }

    /// Sends a large piece of the body from the receive buffer, if nothing is buffered before it.
    /// - Returns: how much the kernel accepted.
    private mutating func sendDirectly(
        _ bytes: UnsafeBufferPointer<UInt8>, of exchange: Handle<Exchange>, _ upstreams: inout UpstreamConnections,
        _ context: inout LoopContext
    ) -> Int {
        let upstream = self[exchange].upstream
        guard bytes.count >= Exchanges.directSendThreshold, upstreams[upstream].acceptsDirectBody,
            self[exchange].hasSentHead
        else { return 0 }
        let sent = unsafe CLinux.send(
            upstreams[upstream].transport.fd, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
        // An error will occur again on the next flush.
        guard sent > 0 else { return 0 }
        if !self[exchange].body.isComplete { armResponseTimeout(upstream, &upstreams, &context) }
        return sent
    }

    /// Forwards a piece of the body to the upstream or a local handler.
    mutating func forwardPiece(
        _ piece: UnsafeBufferPointer<UInt8>, of exchange: Handle<Exchange>, _ downstreams: inout DownstreamConnections,
        _ upstreams: inout UpstreamConnections, _ context: inout LoopContext
    ) {
        self[exchange].record.bytesIn &+= piece.count
        self[exchange].pace.add(piece.count)
        switch self[exchange].responder {
        case .local, .call: unsafe self[exchange].heldBody.append(piece, upTo: LocalLimits.bodyBytes)
        case .upstream:
            let upstream = self[exchange].upstream
            guard !upstream.isNone else { return unsafe holdPiece(piece, of: exchange) }
            let encoder = bodyEncoder(of: exchange, on: upstream, &upstreams)
            let sent = unsafe encoder.isChunked ? 0 : sendDirectly(piece, of: exchange, &upstreams, &context)
            let rest = unsafe UnsafeBufferPointer(rebasing: piece[sent...])
            unsafe encoder.append(rest, to: &upstreams[upstream].output)
            if upstreams[upstream].output.count > Watermark.high {
                downstreams[self[exchange].downstream].isPaused = true
            }
        case .none, .route: break
        }
    }

    /// Keeps a piece of a request that waits for an endpoint: what was received before reading was paused.
    @inline(never)
    private mutating func holdPiece(_ piece: UnsafeBufferPointer<UInt8>, of exchange: Handle<Exchange>) {
        guard self[exchange].forwarding.isWaiting else { return }
        unsafe self[exchange].heldBody.append(piece, upTo: .max)
    }

    /// Forwards the end of the body, where the upstream cannot tell it from the bytes.
    mutating func forwardEnd(of exchange: Handle<Exchange>, _ upstreams: inout UpstreamConnections) {
        let upstream = self[exchange].upstream
        guard self[exchange].responder == .upstream, !upstream.isNone else { return }
        let encoder = bodyEncoder(of: exchange, on: upstream, &upstreams)
        unsafe encoder.appendEnd(
            trailers: self[exchange].trailers.forwarded.bytes, to: &upstreams[upstream].output)
    }

    /// Reclaims the body bytes that an upstream connection could not send, in a form that any other can send.
    mutating func reclaimBody(_ exchange: Handle<Exchange>, _ upstreams: inout UpstreamConnections) {
        let upstream = self[exchange].upstream
        guard !upstream.isNone, !upstreams[upstream].output.isEmpty else { return }
        let encoder = bodyEncoder(of: exchange, on: upstream, &upstreams)
        self[exchange].heldBody.reclaim(&upstreams[upstream].output, from: encoder)
    }

    /// Gives an upstream connection the body bytes that were reclaimed, and the body's end where it was received.
    mutating func forwardHeldBody(of exchange: Handle<Exchange>, _ upstreams: inout UpstreamConnections) {
        guard self[exchange].body.isComplete || !self[exchange].heldBody.isEmpty else { return }
        let upstream = self[exchange].upstream
        let encoder = bodyEncoder(of: exchange, on: upstream, &upstreams)
        self[exchange].heldBody.forward(to: &upstreams[upstream].output, with: encoder)
        if self[exchange].body.isComplete { forwardEnd(of: exchange, &upstreams) }
    }

    /// Whether the request is sent in HTTP/2 frames, where trailers need no announcement.
    mutating func goesOverStream(_ exchange: Handle<Exchange>, _ upstreams: inout UpstreamConnections) -> Bool {
        !self[exchange].upstream.isNone && upstreams[self[exchange].upstream].kind == .stream
    }

    /// Stores a request's trailer for forwarding, if it may be forwarded.
    @inline(never)
    mutating func collectTrailer(
        _ field: HeadField, _ bytes: UnsafeBufferPointer<UInt8>, of exchange: Handle<Exchange>,
        _ upstreams: inout UpstreamConnections, _ context: inout LoopContext
    ) {
        let announcedOnly = !goesOverStream(exchange, &upstreams)
        unsafe self[exchange].trailers.collect(
            field, bytes, self[exchange].headerRules, context.snapshot, announcedOnly: announcedOnly)
    }

    /// The same for the trailers of a stream, given as lines.
    mutating func collectTrailers(
        _ lines: UnsafeBufferPointer<UInt8>, of exchange: Handle<Exchange>, _ upstreams: inout UpstreamConnections,
        _ context: inout LoopContext
    ) {
        let announcedOnly = !goesOverStream(exchange, &upstreams)
        unsafe self[exchange].trailers.collect(
            lines: lines, self[exchange].headerRules, context.snapshot, announcedOnly: announcedOnly)
    }

    mutating func canSpliceRequest(
        _ downstream: Handle<DownstreamConnection>, _ downstreams: inout DownstreamConnections,
        _ upstreams: inout UpstreamConnections
    ) -> Bool {
        guard downstreams[downstream].canSpliceRequest else { return false }
        let exchange = downstreams[downstream].exchange
        guard self[exchange].hasSpliceableBody, !isTunnel(exchange) else { return false }
        let upstream = self[exchange].upstream
        return !upstream.isNone && upstreams[upstream].acceptsSplicedRequest
    }

    /// Whether a part of the request for an upstream is in a pipe.
    mutating func hasRequestInPipe(
        _ upstream: Handle<UpstreamConnection>, _ downstreams: inout DownstreamConnections,
        _ upstreams: inout UpstreamConnections
    ) -> Bool {
        let exchange = upstreams[upstream].exchange
        return !exchange.isNone && !downstreams[self[exchange].downstream].pipe.isNone
    }
}
