internal import MartletCore
internal import MartletHTTP2

/// Responses on streams of HTTP/2.
extension Exchanges {
    /// Sends the pending bytes, a complete head, as HEADERS frames on a stream; on HTTP/1 it is sent with what follows.
    mutating func sendStreamHead(
        _ exchange: Handle<Exchange>, ends: Bool, _ downstreams: inout DownstreamConnections,
        _ context: inout LoopContext
    ) {
        guard self[exchange].isStream else { return }
        let stream = self[exchange].downstream
        let connection = downstreams[stream].stream.connection
        unsafe downstreams[connection].streams?.session.submitHead(
            downstreams[stream].stream.id, context.scratch.pending.take(exchange), ends: ends)
        if ends { self[exchange].response.hasEndedStream = true }
        downstreams.markDirty(connection, &context)
    }

    /// Sends body bytes on a stream.
    mutating func sendOnStream(
        _ bytes: UnsafeBufferPointer<UInt8>, on stream: Handle<DownstreamConnection>,
        _ downstreams: inout DownstreamConnections, _ upstreams: inout UpstreamConnections, _ context: inout LoopContext
    ) {
        let connection = downstreams[stream].stream.connection
        guard let session = downstreams[connection].streams?.session else { return }
        unsafe session.send(downstreams[stream].stream.id, bytes)
        downstreams.markDirty(connection, &context)
        let exchange = downstreams[stream].exchange
        if exchange.isNone || self[exchange].body.isComplete { downstreams.armWrite(stream, &context) }
        guard !exchange.isNone, !self[exchange].upstream.isNone else { return }
        let unsent = session.unsent(downstreams[stream].stream.id)
        if unsent > Watermark.streamHigh
            || unsent > Watermark.streamLow && session.unsentTotal > Watermark.connectionHigh
        {
            upstreams[self[exchange].upstream].isPaused = true
        }
    }

    /// The client has read the buffered output: resume the upstream.
    mutating func streamDrained(
        _ stream: Handle<DownstreamConnection>, _ downstreams: inout DownstreamConnections,
        _ upstreams: inout UpstreamConnections, _ context: inout LoopContext
    ) {
        downstreams[stream].transport.lastWriteAt = context.now
        let exchange = downstreams[stream].exchange
        guard !exchange.isNone, !self[exchange].upstream.isNone else { return }
        let upstream = self[exchange].upstream
        guard upstreams[upstream].isPaused else { return }
        upstreams[upstream].isPaused = false
        upstreams.markReady(upstream, &context)
    }

    /// Ends the response on a stream, with its trailers.
    mutating func finishStream(
        _ exchange: Handle<Exchange>, _ downstreams: inout DownstreamConnections, _ context: inout LoopContext
    ) {
        guard self[exchange].isStream, !self[exchange].response.hasEndedStream else { return }
        self[exchange].response.hasEndedStream = true
        let stream = self[exchange].downstream
        let connection = downstreams[stream].stream.connection
        unsafe downstreams[connection].streams?.session.end(
            downstreams[stream].stream.id, trailers: self[exchange].response.trailers.bytes)
        downstreams.markDirty(connection, &context)
    }

    /// Closes the writing direction to the client.
    mutating func closeWrite(
        _ downstream: Handle<DownstreamConnection>, _ downstreams: inout DownstreamConnections,
        _ context: inout LoopContext
    ) {
        if downstreams[downstream].isStream {
            return finishStream(downstreams[downstream].exchange, &downstreams, &context)
        }
        downstreams[downstream].transport.closeWrite()
    }

    /// Buffers the trailers of a request on a stream, given as lines.
    mutating func bufferTrailers(
        _ lines: UnsafeBufferPointer<UInt8>, of stream: Handle<DownstreamConnection>,
        _ downstreams: inout DownstreamConnections
    ) {
        let exchange = downstreams[stream].exchange
        guard !exchange.isNone, !self[exchange].body.isComplete else { return }
        self[exchange].trailers.received.removeAll()
        unsafe self[exchange].trailers.received.append(lines)
    }
}
