internal import MartletConfig
internal import MartletCore
internal import MartletHTTP
internal import MartletHTTP2
internal import MartletReports
internal import MartletResponder
internal import MartletTLS

/// The streams of an HTTP/2 connection downstream, each in a slot of its own that carries one request.
extension EventLoop {
    /// Above this much unsent output of all streams, the largest ones are paused.
    private static let connectionHighWatermark = 1024 * 1024
    /// The limit for one stream.
    static let streamHighWatermark = 64 * 1024
    static let streamLowWatermark = 16 * 1024

    // MARK: Requests

    /// An open stream, by its ID.
    @inline(__always)
    func stream(_ streamID: Int32, of streams: DownstreamHTTP2State) -> Handle<DownstreamConnection>? {
        guard let index = streams.slots[streamID] else { return nil }
        return downstreams.handle(at: index)
    }

    /// Allocates a slot for a new stream.
    private mutating func allocateStream(
        _ streamID: Int32, of downstream: Handle<DownstreamConnection>, _ streams: DownstreamHTTP2State
    ) -> Handle<DownstreamConnection> {
        let stream = downstreams.allocate()
        // The session has limited the head; as text it is a little longer.
        let headBytes = snapshot.limits.headerBytes &+ 1024
        if downstreams[stream].wasStream(of: downstream) {
            downstreams[stream].reset(fd: -1, kind: .stream, maximumHeadBytes: headBytes)
        } else {
            downstreams[stream].open(
                fd: -1, kind: .stream, rules: downstreams[downstream].origin.rules,
                address: downstreams[downstream].origin.address,
                maximumHeadBytes: headBytes)
        }
        if downstreams[downstream].origin.handler != nil {
            downstreams[stream].origin.handler = downstreams[downstream].origin.handler
        }
        downstreams[stream].stream.connection = downstream
        downstreams[stream].stream.id = streamID
        streams.slots[streamID] = stream.index
        streams.idleSince = .max
        downstreams[downstream].reader.requests &+= 1
        counters.http2.streams &+= 1
        return stream
    }

    mutating func startStream(
        _ streamID: Int32, of downstream: Handle<DownstreamConnection>, _ streams: DownstreamHTTP2State, ends: Bool
    ) {
        let stream = allocateStream(streamID, of: downstream, streams)
        downstreams[stream].stream.isEnded = ends
        let text = unsafe streams.session.headText
        // A malformed request is not forwarded.
        if let code = streams.session.pendingErrorCode(streamID) {
            return unsafe rejectBrokenStream(stream, code, text)
        }
        var parser = downstreams[stream].reader.parser
        switch streams.session.fill(&head, &parser) {
        case .complete:
            let exchange = unsafe beginExchange(stream, text)
            unsafe admit(exchange, text, verification: nil)
            // A head whose credential has to be verified is parsed again when the result is there.
            guard downstreams[stream].isAlive, downstreams[stream].phase == .authenticating else { return }
            unsafe downstreams[stream].reader.input.append(text)
        case .failure(let failure):
            let exchange = beginUnparsed(stream)
            unsafe exchanges[exchange].record.texts.set(unreadable: text)
            reject(exchange, .head(failure))
        case .needMore: reject(beginUnparsed(stream), .head(.badRequestLine))
        }
    }

    /// A malformed stream that the session has already reset; the log records why.
    private mutating func rejectBrokenStream(
        _ stream: Handle<DownstreamConnection>, _ code: HTTP2Code, _ text: UnsafeBufferPointer<UInt8>
    ) {
        let exchange = beginUnparsed(stream)
        unsafe exchanges[exchange].record.texts.set(unreadable: text)
        guard code == .protocolError else { return downstreamStreamClosed(stream) }
        reject(exchange, .head(.badContentLength))
    }

    mutating func startRejectedStream(
        _ streamID: Int32, of downstream: Handle<DownstreamConnection>, _ streams: DownstreamHTTP2State,
        rejected failure: HeadError
    ) {
        let stream = allocateStream(streamID, of: downstream, streams)
        downstreams[stream].stream.isEnded = true
        let exchange = beginUnparsed(stream)
        exchanges[exchange].request.isGRPC = streams.session.isRejectedGRPC(streamID)
        reject(exchange, .head(failure))
    }

    /// Handles bytes of a stream's request body.
    mutating func streamReceived(_ stream: Handle<DownstreamConnection>, _ bytes: UnsafeBufferPointer<UInt8>) {
        // Already answered: discard and return flow-control credit.
        guard !downstreams[stream].stream.isResponseComplete else { return creditStream(stream, bytes.count) }
        guard downstreams[stream].reader.input.isEmpty, !downstreams[stream].isPaused,
            downstreams[stream].phase == .exchange
        else {
            return unsafe downstreams[stream].reader.input.append(bytes)
        }
        unsafe receivedPlaintext(stream, bytes)
    }

    /// Completes the request once all frames of the stream are consumed.
    mutating func finishStreamInput(_ stream: Handle<DownstreamConnection>) {
        let exchange = downstreams[stream].exchange
        guard downstreams[stream].stream.isEnded, downstreams[stream].reader.input.isEmpty,
            downstreams[stream].phase == .exchange,
            !exchange.isNone, !exchanges[exchange].body.isComplete
        else { return }
        if isTunnel(exchange) {
            downstreams[stream].transport.isReadClosed = true
            return tunnelDownstreamEnded(exchange)
        }
        guard exchanges[exchange].body.framing.isChunked || exchanges[exchange].body.remaining == 0 else {
            return abandon(stream)
        }
        finishStreamedBody(exchange)
    }

    mutating func bufferStreamTrailers(_ stream: Handle<DownstreamConnection>) {
        let exchange = downstreams[stream].exchange
        guard !exchange.isNone, !exchanges[exchange].body.isComplete else { return }
        exchanges[exchange].trailers.received.removeAll()
        unsafe exchanges[exchange].trailers.received.append(staging.bytes)
        staging.removeAll()
    }

    /// Returns flow-control credit for consumed bytes.
    mutating func creditStream(_ stream: Handle<DownstreamConnection>, _ count: Int) {
        let connection = downstreams[stream].stream.connection
        downstreams[connection].streams?.session.consume(downstreams[stream].stream.id, count)
        markDirty(downstream: connection)
    }

    /// The stream is closed in both directions, or was reset.
    mutating func downstreamStreamClosed(_ stream: Handle<DownstreamConnection>) {
        let exchange = downstreams[stream].exchange
        if !exchange.isNone {
            counters.http2.resets &+= 1
            dropUpstream(of: exchange)
            if exchanges[exchange].response.status == 0 { exchanges[exchange].response.status = 499 }
            exchanges[exchange].record.reason = counters.reason("request.client_left")
            finish(exchange)
        }
        close(downstream: stream)
    }

    /// The client has read the buffered output: resume the upstream.
    mutating func streamDrained(_ stream: Handle<DownstreamConnection>) {
        downstreams[stream].transport.lastWriteAt = now
        let exchange = downstreams[stream].exchange
        guard !exchange.isNone, !exchanges[exchange].upstream.isNone else { return }
        let upstream = exchanges[exchange].upstream
        guard upstreams[upstream].isPaused else { return }
        upstreams[upstream].isPaused = false
        markReady(upstream: upstream)
    }

    /// Removes a stream from its connection.
    mutating func removeStream(_ stream: Handle<DownstreamConnection>) {
        let connection = downstreams[stream].stream.connection
        guard let streams = downstreams[connection].streams else { return }
        streams.slots[downstreams[stream].stream.id] = nil
        armFrames(connection, streams)
    }

    /// Resets a stream.
    mutating func resetStream(_ stream: Handle<DownstreamConnection>, _ code: HTTP2Code) {
        let connection = downstreams[stream].stream.connection
        downstreams[connection].streams?.session.reset(downstreams[stream].stream.id, code)
        markDirty(downstream: connection)
    }

    // MARK: Responses

    /// Sends a complete head in `staging` as HEADERS frames on a stream; on HTTP/1 it is sent with what follows.
    mutating func sendStreamHead(_ exchange: Handle<Exchange>, ends: Bool) {
        guard exchanges[exchange].isStream else { return }
        let stream = exchanges[exchange].downstream
        let connection = downstreams[stream].stream.connection
        unsafe downstreams[connection].streams?.session.submitHead(
            downstreams[stream].stream.id, staging.bytes, ends: ends)
        if ends { exchanges[exchange].response.hasEndedStream = true }
        staging.removeAll()
        markDirty(downstream: connection)
    }

    /// Sends body bytes on a stream.
    mutating func sendOnStream(_ bytes: UnsafeBufferPointer<UInt8>, on stream: Handle<DownstreamConnection>) {
        let connection = downstreams[stream].stream.connection
        guard let session = downstreams[connection].streams?.session else { return }
        unsafe session.send(downstreams[stream].stream.id, bytes)
        markDirty(downstream: connection)
        let exchange = downstreams[stream].exchange
        if exchange.isNone || exchanges[exchange].body.isComplete { armWrite(stream) }
        guard !exchange.isNone, !exchanges[exchange].upstream.isNone else { return }
        let unsent = session.unsent(downstreams[stream].stream.id)
        if unsent > EventLoop.streamHighWatermark
            || unsent > EventLoop.streamLowWatermark && session.unsentTotal > EventLoop.connectionHighWatermark
        {
            upstreams[exchanges[exchange].upstream].isPaused = true
        }
    }

    /// Ends the response on a stream, with its trailers.
    mutating func finishStream(_ exchange: Handle<Exchange>) {
        guard exchanges[exchange].isStream, !exchanges[exchange].response.hasEndedStream else { return }
        exchanges[exchange].response.hasEndedStream = true
        let stream = exchanges[exchange].downstream
        let connection = downstreams[stream].stream.connection
        unsafe downstreams[connection].streams?.session.end(
            downstreams[stream].stream.id, trailers: exchanges[exchange].response.trailers.bytes)
        markDirty(downstream: connection)
    }

    /// The response was handed over: the exchange ends, and its stream when the client has read everything.
    mutating func completeStream(_ exchange: Handle<Exchange>) {
        let stream = exchanges[exchange].downstream
        let connection = downstreams[stream].stream.connection
        let isWhole = exchanges[exchange].body.isComplete
        finish(exchange)
        downstreams[stream].stream.isResponseComplete = true
        downstreams[stream].phase = .head
        markDirty(downstream: connection)
        if !isWhole, downstreams[connection].streams?.session.resetAtEnd(downstreams[stream].stream.id) != true {
            downstreams[connection].streams?.session.reset(downstreams[stream].stream.id, .noError)
            return close(downstream: stream)
        }
        arm(downstream: stream, at: now &+ snapshot.loopTimeouts.bodyIdle)
    }
}
