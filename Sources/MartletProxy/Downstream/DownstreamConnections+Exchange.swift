internal import MartletCore
internal import MartletDecisions
internal import MartletHTTP2

/// What concerns a client's connection together with its exchange.
extension DownstreamConnections {
    mutating func canSpliceRequest(
        _ downstream: Handle<DownstreamConnection>, _ exchanges: inout Exchanges, _ upstreams: inout UpstreamConnections
    ) -> Bool {
        guard self[downstream].canSpliceRequest else { return false }
        let exchange = self[downstream].exchange
        guard exchanges[exchange].hasSpliceableBody, !exchanges.isTunnel(exchange) else { return false }
        let upstream = exchanges[exchange].upstream
        return !upstream.isNone && upstreams[upstream].acceptsSplicedRequest
    }

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

    /// Sends body bytes on a stream.
    mutating func sendOnStream(
        _ bytes: UnsafeBufferPointer<UInt8>, on stream: Handle<DownstreamConnection>, _ exchanges: inout Exchanges,
        _ upstreams: inout UpstreamConnections, _ context: inout LoopContext
    ) {
        let connection = self[stream].stream.connection
        guard let session = self[connection].streams?.session else { return }
        unsafe session.send(self[stream].stream.id, bytes)
        markDirty(connection, &context)
        let exchange = self[stream].exchange
        if exchange.isNone || exchanges[exchange].body.isComplete { armWrite(stream, &context) }
        guard !exchange.isNone, !exchanges[exchange].upstream.isNone else { return }
        let unsent = session.unsent(self[stream].stream.id)
        if Watermark.pauses(stream: unsent, ofConnection: session.unsentTotal) {
            upstreams[exchanges[exchange].upstream].isPaused = true
        }
    }

    /// The client has read the buffered output: resume the upstream.
    mutating func streamDrained(
        _ stream: Handle<DownstreamConnection>, _ exchanges: inout Exchanges, _ upstreams: inout UpstreamConnections,
        _ context: inout LoopContext
    ) {
        self[stream].transport.lastWriteAt = context.now
        let exchange = self[stream].exchange
        guard !exchange.isNone, !exchanges[exchange].upstream.isNone else { return }
        let upstream = exchanges[exchange].upstream
        guard upstreams[upstream].isPaused else { return }
        upstreams[upstream].isPaused = false
        upstreams.markReady(upstream, &context)
    }

    /// Closes the writing direction to the client.
    mutating func closeWrite(
        _ downstream: Handle<DownstreamConnection>, _ exchanges: inout Exchanges, _ context: inout LoopContext
    ) {
        if self[downstream].isStream {
            return exchanges[self[downstream].exchange].finishStream(&self, &context)
        }
        self[downstream].transport.closeWrite()
    }

    /// Buffers the trailers of a request on a stream, given as lines.
    mutating func bufferTrailers(
        _ lines: UnsafeBufferPointer<UInt8>, of stream: Handle<DownstreamConnection>, _ exchanges: inout Exchanges
    ) {
        let exchange = self[stream].exchange
        guard !exchange.isNone, !exchanges[exchange].body.isComplete else { return }
        exchanges[exchange].trailers.received.removeAll()
        unsafe exchanges[exchange].trailers.received.append(lines)
    }

    /// Whether input from the client can be used now.
    mutating func wantsInput(_ downstream: Handle<DownstreamConnection>, _ exchanges: inout Exchanges) -> Bool {
        switch self[downstream].phase {
        case .head: return acceptsHead(downstream)
        case .lingering, .proxyHeader: return true
        case .handshake: return !self[downstream].handshake.isOffloaded
        // A peer that reads no frames may not send more of its own.
        case .frames: return acceptsHead(downstream)
        case .waiting: return false
        case .exchange:
            return !self[downstream].isPaused && self[downstream].pipe.isNone
                && !exchanges[self[downstream].exchange].body.isComplete
        }
    }

    /// Whether all that is left to do for a connection is the response to its final request.
    mutating func isFinalRequest(_ downstream: Handle<DownstreamConnection>, _ exchanges: inout Exchanges) -> Bool {
        let exchange = self[downstream].exchange
        return !exchange.isNone && self[downstream].kind == .http1
            && self[downstream].transport.output.isEmpty
            && exchanges[exchange].body.isComplete && !exchanges[exchange].request.keepsAlive
            && exchanges[exchange].tunnel.isNone
    }
}
