internal import MartletCore
internal import MartletHTTP
internal import MartletHTTP2
internal import MartletRouter

/// The body and the trailers of a response, and back-pressure between the two connections.
extension Exchanges {
    /// Sets the response timeout, which starts when the request is complete; until then the idle timeout counts.
    mutating func armResponseTimeout(
        _ upstream: Handle<UpstreamConnection>, _ upstreams: inout UpstreamConnections, _ context: inout LoopContext
    ) {
        let exchange = upstreams[upstream].exchange
        let timeout =
            self[exchange].body.isComplete
            ? self[exchange].forwarding.responseTimeout : self[exchange].forwarding.idleTimeout
        self[exchange].forwarding.sentAt = context.now
        upstreams.arm(upstream, at: context.now &+ timeout, &context)
    }

    mutating func armResponseIdle(
        _ upstream: Handle<UpstreamConnection>, _ exchange: Handle<Exchange>, _ upstreams: inout UpstreamConnections,
        _ context: inout LoopContext
    ) {
        upstreams.arm(upstream, at: context.now &+ self[exchange].forwarding.idleTimeout, &context)
    }

    /// Whether the upstream does not wait for the rest of its request: that is complete, or not accepted.
    mutating func isResponseDue(
        _ upstream: Handle<UpstreamConnection>, _ downstreams: inout DownstreamConnections,
        _ upstreams: inout UpstreamConnections
    ) -> Bool {
        self[upstreams[upstream].exchange].body.isComplete || !upstreams[upstream].output.isEmpty
            || hasRequestInPipe(upstream, &downstreams, &upstreams)
    }

    /// Stores a trailer for forwarding, unless it concerns framing, routing, credentials or identity.
    mutating func collectResponseTrailer(
        _ field: HeadField, _ bytes: UnsafeBufferPointer<UInt8>, _ exchange: Handle<Exchange>,
        _ context: inout LoopContext
    ) {
        guard
            unsafe ResponseState.forwards(
                trailer: field, in: bytes.span, reserved: context.snapshot.routes.reservedNames)
        else { return }
        let isStream = self[exchange].isStream
        unsafe self[exchange].response.append(trailer: field, in: bytes, isStream: isStream)
    }

    /// The same for the trailers of a stream, given as lines.
    mutating func collectResponseTrailers(
        _ lines: UnsafeBufferPointer<UInt8>, _ exchange: Handle<Exchange>, _ context: inout LoopContext
    ) {
        guard !exchange.isNone else { return }
        var index = 0
        while let field = unsafe TrailerLines.next(lines.span, from: &index) {
            unsafe collectResponseTrailer(field, lines, exchange, &context)
        }
    }

    mutating func canSpliceResponse(
        _ upstream: Handle<UpstreamConnection>, _ downstreams: inout DownstreamConnections,
        _ upstreams: inout UpstreamConnections
    ) -> Bool {
        guard upstreams[upstream].canSpliceResponse else { return false }
        let exchange = upstreams[upstream].exchange
        guard !exchange.isNone, !isTunnel(exchange) else { return false }
        return downstreams[self[exchange].downstream].acceptsSplicedResponse
    }

    /// Whether a part of the response for a client is in a pipe.
    mutating func hasResponseInPipe(
        _ downstream: Handle<DownstreamConnection>, _ downstreams: inout DownstreamConnections,
        _ upstreams: inout UpstreamConnections
    ) -> Bool {
        let exchange = downstreams[downstream].exchange
        guard !exchange.isNone, !self[exchange].upstream.isNone else { return false }
        return !upstreams[self[exchange].upstream].pipe.isNone
    }

    /// Whether all output was read by the client.
    mutating func hasDrainedOutput(
        _ downstream: Handle<DownstreamConnection>, _ downstreams: inout DownstreamConnections,
        _ upstreams: inout UpstreamConnections
    ) -> Bool {
        guard downstreams[downstream].isStream else {
            return downstreams[downstream].transport.output.isEmpty
                && !hasResponseInPipe(downstream, &downstreams, &upstreams)
        }
        return downstreams[downstreams[downstream].stream.connection].streams?.session.unsent(
            downstreams[downstream].stream.id) ?? 0 == 0
    }

    /// Pauses the upstream of a slow client, which has to keep reading.
    mutating func applyBackPressure(
        _ downstream: Handle<DownstreamConnection>, _ downstreams: inout DownstreamConnections,
        _ upstreams: inout UpstreamConnections, _ context: inout LoopContext
    ) {
        let exchange = downstreams[downstream].exchange
        if exchange.isNone || self[exchange].body.isComplete { downstreams.armWrite(downstream, &context) }
        guard !exchange.isNone, !self[exchange].upstream.isNone else { return }
        if downstreams[downstream].transport.output.count > Watermark.high {
            upstreams[self[exchange].upstream].isPaused = true
        }
    }

    mutating func resumeDownstream(
        of exchange: Handle<Exchange>, _ downstreams: inout DownstreamConnections,
        _ upstreams: inout UpstreamConnections, _ context: inout LoopContext
    ) {
        let downstream = self[exchange].downstream
        let upstream = self[exchange].upstream
        guard downstreams[downstream].isPaused, upstreams.unsent(upstream) < Watermark.low else { return }
        downstreams[downstream].isPaused = false
        if !self[exchange].body.isComplete {
            // The time in which the client was not read does not count.
            self[exchange].pace.begin(now: context.now)
            armBody(exchange, &downstreams, &context)
        }
        downstreams.markReady(downstream, &context)
    }

    /// Whether a request is the only one of an HTTP/1.0 connection, which ends with its client.
    func isLast(_ exchange: Handle<Exchange>) -> Bool {
        !exchange.isNone && self[exchange].request.isHTTP10 && !self[exchange].request.keepsAlive
    }

    /// A client that half-closed still gets its response; one that disconnected does not need it.
    ///
    /// Only sending something tells the two apart, so a waiting HTTP/1.1 client is sent bytes without effect
    /// (``PeerProbe/Message``).
    mutating func handleHalfClose(
        _ downstream: Handle<DownstreamConnection>, _ downstreams: inout DownstreamConnections,
        _ context: inout LoopContext
    ) {
        guard downstreams[downstream].phase == .exchange,
            self[downstreams[downstream].exchange].body.isComplete,
            downstreams[downstream].probe.schedule(restoring: downstreams[downstream].timer.deadline)
        else { return }
        downstreams.arm(downstream, at: context.now &+ PeerProbe.delay, &context)
    }
}
