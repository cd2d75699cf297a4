private import CLinux
internal import MartletCore
internal import MartletDecisions
internal import MartletHTTP
internal import MartletResponder

/// The body and the trailers of a request, on their way to an upstream.
extension Exchange {
    /// Smaller pieces are buffered and sent with what comes next.
    static let directSendThreshold = 4 * 1024

    @inline(__always)
    private mutating func bodyEncoder(
        on upstream: Handle<UpstreamConnection>, _ upstreams: inout UpstreamConnections
    ) -> UpstreamBodyEncoder {
        UpstreamBodyEncoder(body.framing, on: upstreams[upstream].kind)
    }

    /// Sends a large piece of the body from the receive buffer, if nothing is buffered before it.
    /// - Returns: how much the kernel accepted.
    private mutating func sendDirectly(
        _ bytes: UnsafeBufferPointer<UInt8>, _ upstreams: inout UpstreamConnections, _ context: inout LoopContext
    ) -> Int {
        guard bytes.count >= Self.directSendThreshold, upstreams[upstream].acceptsDirectBody,
            hasSentHead
        else { return 0 }
        let sent = unsafe CLinux.send(
            upstreams[upstream].transport.fd, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
        // An error will occur again on the next flush.
        guard sent > 0 else { return 0 }
        if !body.isComplete { armResponseTimeout(upstream, &upstreams, &context) }
        return sent
    }

    /// Forwards a piece of the body to the upstream or a local handler.
    mutating func forwardPiece(
        _ piece: UnsafeBufferPointer<UInt8>, _ downstreams: inout DownstreamConnections,
        _ upstreams: inout UpstreamConnections, _ context: inout LoopContext
    ) {
        record.bytesIn &+= piece.count
        pace.add(piece.count)
        switch responder {
        case .local, .call: unsafe heldBody.append(piece, upTo: LocalLimits.bodyBytes)
        case .upstream:
            guard !upstream.isNone else { return unsafe holdPiece(piece) }
            let encoder = bodyEncoder(on: upstream, &upstreams)
            let sent = unsafe encoder.isChunked ? 0 : sendDirectly(piece, &upstreams, &context)
            let rest = unsafe UnsafeBufferPointer(rebasing: piece[sent...])
            unsafe encoder.append(rest, to: &upstreams[upstream].output)
            if upstreams[upstream].output.count > Watermark.high {
                downstreams[downstream].isPaused = true
            }
        case .none, .route: break
        }
    }

    /// Keeps a piece of a request that waits for an endpoint: what was received before reading was paused.
    @inline(never)
    private mutating func holdPiece(_ piece: UnsafeBufferPointer<UInt8>) {
        guard forwarding.isWaiting else { return }
        unsafe heldBody.append(piece, upTo: .max)
    }

    /// Forwards the end of the body, where the upstream cannot tell it from the bytes.
    mutating func forwardEnd(_ upstreams: inout UpstreamConnections) {
        guard responder == .upstream, !upstream.isNone else { return }
        let encoder = bodyEncoder(on: upstream, &upstreams)
        unsafe encoder.appendEnd(
            trailers: trailers.forwarded.bytes, to: &upstreams[upstream].output)
    }

    /// Reclaims the body bytes that an upstream connection could not send, in a form that any other can send.
    mutating func reclaimBody(_ upstreams: inout UpstreamConnections) {
        guard !upstream.isNone, !upstreams[upstream].output.isEmpty else { return }
        let encoder = bodyEncoder(on: upstream, &upstreams)
        heldBody.reclaim(&upstreams[upstream].output, from: encoder)
    }

    /// Gives an upstream connection the body bytes that were reclaimed, and the body's end where it was received.
    mutating func forwardHeldBody(_ upstreams: inout UpstreamConnections) {
        guard body.isComplete || !heldBody.isEmpty else { return }
        let encoder = bodyEncoder(on: upstream, &upstreams)
        heldBody.forward(to: &upstreams[upstream].output, with: encoder)
        if body.isComplete { forwardEnd(&upstreams) }
    }

    /// Whether the request is sent in HTTP/2 frames, where trailers need no announcement.
    mutating func goesOverStream(_ upstreams: inout UpstreamConnections) -> Bool {
        !upstream.isNone && upstreams[upstream].kind == .stream
    }

    /// Stores a request's trailer for forwarding, if it may be forwarded.
    @inline(never)
    mutating func collectTrailer(
        _ field: HeadField, _ bytes: UnsafeBufferPointer<UInt8>, _ upstreams: inout UpstreamConnections,
        _ context: inout LoopContext
    ) {
        let announcedOnly = !goesOverStream(&upstreams)
        unsafe trailers.collect(
            field, bytes, forwarding.headerRules, context.snapshot, announcedOnly: announcedOnly)
    }

    /// The same for the trailers of a stream, given as lines.
    mutating func collectTrailers(
        _ lines: UnsafeBufferPointer<UInt8>, _ upstreams: inout UpstreamConnections, _ context: inout LoopContext
    ) {
        let announcedOnly = !goesOverStream(&upstreams)
        unsafe trailers.collect(
            lines: lines, forwarding.headerRules, context.snapshot, announcedOnly: announcedOnly)
    }
}
