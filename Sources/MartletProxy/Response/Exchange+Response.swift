internal import MartletCore
internal import MartletHTTP
internal import MartletHTTP2
internal import MartletRouter

/// The body and the trailers of a response, and back-pressure between the two connections.
extension Exchange {
    /// Sets the response timeout, which starts when the request is complete; until then the idle timeout counts.
    mutating func armResponseTimeout(
        _ upstream: Handle<UpstreamConnection>, _ upstreams: inout UpstreamConnections, _ context: inout LoopContext
    ) {
        let timeout =
            body.isComplete
            ? forwarding.responseTimeout : forwarding.idleTimeout
        forwarding.sentAt = context.now
        upstreams.arm(upstream, at: context.now &+ timeout, &context)
    }

    mutating func armResponseIdle(
        _ upstream: Handle<UpstreamConnection>, _ upstreams: inout UpstreamConnections, _ context: inout LoopContext
    ) {
        upstreams.arm(upstream, at: context.now &+ forwarding.idleTimeout, &context)
    }

    /// Stores a trailer for forwarding, unless it concerns framing, routing, credentials or identity.
    mutating func collectResponseTrailer(
        _ field: HeadField, _ bytes: UnsafeBufferPointer<UInt8>, _ context: inout LoopContext
    ) {
        guard
            unsafe ResponseState.forwards(
                trailer: field, in: bytes.span, reserved: context.snapshot.routes.reservedNames)
        else { return }
        unsafe response.append(trailer: field, in: bytes, isStream: isStream)
    }

    mutating func resumeDownstream(
        _ downstreams: inout DownstreamConnections, _ upstreams: inout UpstreamConnections, _ context: inout LoopContext
    ) {
        guard downstreams[downstream].isPaused, upstreams.unsent(upstream) < Watermark.low else { return }
        downstreams[downstream].isPaused = false
        if !body.isComplete {
            // The time in which the client was not read does not count.
            pace.begin(now: context.now)
            armBody(&downstreams, &context)
        }
        downstreams.markReady(downstream, &context)
    }
}

extension DownstreamConnections {
    /// Whether a part of the response for a client is in a pipe.
    mutating func hasResponseInPipe(
        _ downstream: Handle<DownstreamConnection>, _ exchanges: inout Exchanges, _ upstreams: inout UpstreamConnections
    ) -> Bool {
        let exchange = self[downstream].exchange
        guard !exchange.isNone, !exchanges[exchange].upstream.isNone else { return false }
        return !upstreams[exchanges[exchange].upstream].pipe.isNone
    }

    /// Whether all output was read by the client.
    mutating func hasDrainedOutput(
        _ downstream: Handle<DownstreamConnection>, _ exchanges: inout Exchanges, _ upstreams: inout UpstreamConnections
    ) -> Bool {
        guard self[downstream].isStream else {
            return self[downstream].transport.output.isEmpty
                && !hasResponseInPipe(downstream, &exchanges, &upstreams)
        }
        return self[self[downstream].stream.connection].streams?.session.unsent(
            self[downstream].stream.id) ?? 0 == 0
    }

    /// Pauses the upstream of a slow client, which has to keep reading.
    mutating func applyBackPressure(
        _ downstream: Handle<DownstreamConnection>, _ exchanges: inout Exchanges,
        _ upstreams: inout UpstreamConnections, _ context: inout LoopContext
    ) {
        let exchange = self[downstream].exchange
        if exchange.isNone || exchanges[exchange].body.isComplete { armWrite(downstream, &context) }
        guard !exchange.isNone, !exchanges[exchange].upstream.isNone else { return }
        if self[downstream].transport.output.count > Watermark.high {
            upstreams[exchanges[exchange].upstream].isPaused = true
        }
    }

    /// A client that half-closed still gets its response; one that disconnected does not need it.
    ///
    /// Only sending something tells the two apart, so a waiting HTTP/1.1 client is sent bytes without effect
    /// (``PeerProbe/Message``).
    mutating func handleHalfClose(
        _ downstream: Handle<DownstreamConnection>, _ exchanges: inout Exchanges, _ context: inout LoopContext
    ) {
        guard self[downstream].phase == .exchange,
            exchanges[self[downstream].exchange].body.isComplete,
            self[downstream].probe.schedule(restoring: self[downstream].timer.deadline)
        else { return }
        arm(downstream, at: context.now &+ PeerProbe.delay, &context)
    }
}

extension UpstreamConnections {
    /// Whether the upstream does not wait for the rest of its request: that is complete, or not accepted.
    mutating func isResponseDue(
        _ upstream: Handle<UpstreamConnection>, _ downstreams: inout DownstreamConnections, _ exchanges: inout Exchanges
    ) -> Bool {
        exchanges[self[upstream].exchange].body.isComplete || !self[upstream].output.isEmpty
            || hasRequestInPipe(upstream, &downstreams, &exchanges)
    }

    mutating func canSpliceResponse(
        _ upstream: Handle<UpstreamConnection>, _ downstreams: inout DownstreamConnections, _ exchanges: inout Exchanges
    ) -> Bool {
        guard self[upstream].canSpliceResponse else { return false }
        let exchange = self[upstream].exchange
        guard !exchange.isNone, !exchanges.isTunnel(exchange) else { return false }
        return downstreams[exchanges[exchange].downstream].acceptsSplicedResponse
    }
}
