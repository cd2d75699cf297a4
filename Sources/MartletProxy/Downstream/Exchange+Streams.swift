internal import MartletCore
internal import MartletHTTP2

/// Responses on streams of HTTP/2.
extension Exchange {
    /// Ends the response on a stream, with its trailers.
    mutating func finishStream(_ downstreams: inout DownstreamConnections, _ context: inout LoopContext) {
        guard isStream, !response.hasEndedStream else { return }
        response.hasEndedStream = true
        let stream = downstream
        let connection = downstreams[stream].stream.connection
        unsafe downstreams[connection].streams?.session.end(
            downstreams[stream].stream.id, trailers: response.trailers.bytes)
        downstreams.markDirty(connection, &context)
    }
}

extension DownstreamConnections {
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
        if unsent > Watermark.streamHigh
            || unsent > Watermark.streamLow && session.unsentTotal > Watermark.connectionHigh
        {
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
}
