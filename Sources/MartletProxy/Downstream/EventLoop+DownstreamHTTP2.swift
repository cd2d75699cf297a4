internal import MartletConfig
internal import MartletCore
internal import MartletHTTP
internal import MartletHTTP2
internal import MartletTLS

/// HTTP/2 downstream: one connection with many streams, each in a slot of its own that carries one request.
extension EventLoop {
    /// Above this much unsent output of all streams, the largest ones are paused.
    private static let connectionHighWatermark = 1024 * 1024
    /// The limit for one stream.
    static let streamHighWatermark = 64 * 1024
    static let streamLowWatermark = 16 * 1024
    /// Bytes of frames per write.
    static let frameBatchBytes = 64 * 1024

    // MARK: The connection

    /// Whether the connection may start HTTP/2 with prior knowledge: on its first bytes, in clear text.
    func mayBecomeHTTP2(_ downstream: Int32) -> Bool {
        downstreams[downstream].requests == 0 && downstreams[downstream].rules.offersHTTP2
            && !downstreams[downstream].rules.isSecure
            && !downstreams[downstream].isStream
    }

    /// Switches the connection to HTTP/2.
    mutating func startHTTP2(_ downstream: Int32) {
        do throws(HTTP2Error) {
            downstreams[downstream].streams = DownstreamHTTP2State(
                try HTTP2Session.server(snapshot.http2, pool: http2Memory))
        } catch {
            return
        }
        counters.http2Connections &+= 1
        downstreams[downstream].kind = .http2
        downstreams[downstream].phase = .frames
        downstreams[downstream].isReceivingHead = false
        if isDraining { downstreams[downstream].streams?.session.goAway() }
        markDirty(downstream: downstream)
    }

    /// Handles received frames.
    mutating func receiveFrames(_ bytes: UnsafeBufferPointer<UInt8>, from downstream: Int32) {
        // The session could not be created.
        guard let streams = downstreams[downstream].streams else { return close(downstream: downstream) }
        let generation = downstreams[downstream].generation
        let isIntact = unsafe streams.session.receive(bytes, now: now)
        unsafe serveDownstreamEvents(of: downstream, streams, bytes)
        guard downstreams.contains(downstream, generation) else { return }
        markDirty(downstream: downstream)
        guard !isIntact else { return armFrames(downstream, streams) }
        counters.http2Refusals &+= 1
        abandonStreams(of: downstream)
        downstreams[downstream].closesAfterFlush = true
        downstreams[downstream].hasUnreadRequest = true
    }

    mutating func serveDownstreamEvents(
        of downstream: Int32, _ streams: DownstreamHTTP2State, _ bytes: UnsafeBufferPointer<UInt8>
    ) {
        let generation = downstreams[downstream].generation
        while let event = streams.session.nextEvent() {
            switch event {
            case .head(let streamID, let ends): startStream(streamID, of: downstream, streams, ends: ends)
            case .data(let streamID, let start, let count):
                let data = unsafe UnsafeBufferPointer(rebasing: bytes[start..<start &+ count])
                guard let stream = streams.slots[streamID] else { continue }
                unsafe streamReceived(stream, data)
            case .trailers(let streamID):
                staging.removeAll()
                streams.session.takeHead(streamID, into: &staging)
                if let stream = streams.slots[streamID] { bufferStreamTrailers(stream) }
            case .end(let streamID):
                guard let stream = streams.slots[streamID] else { continue }
                downstreams[stream].isStreamEnded = true
                finishStreamInput(stream)
            case .closed(let streamID, _):
                if let stream = streams.slots[streamID] { downstreamStreamClosed(stream) }
            case .drained(let streamID):
                if let stream = streams.slots[streamID] { streamDrained(stream) }
            case .refused(let streamID, let failure):
                startRejectedStream(streamID, of: downstream, streams, rejected: failure)
            case .interim, .goAway: break
            }
            guard downstreams.contains(downstream, generation) else { return }
        }
    }

    // MARK: Streams

    /// Allocates a slot for a new stream.
    private mutating func allocateStream(
        _ streamID: Int32, of downstream: Int32, _ streams: DownstreamHTTP2State
    ) -> Int32 {
        let stream = downstreams.allocate()
        // The session has limited the head; as text it is a little longer.
        let headBytes = snapshot.limits.headerBytes &+ 1024
        if downstreams[stream].wasStream(of: downstream, downstreams[downstream].generation) {
            downstreams[stream].reset(fd: -1, kind: .stream, maximumHeadBytes: headBytes)
        } else {
            downstreams[stream].open(
                fd: -1, kind: .stream, rules: downstreams[downstream].rules, address: downstreams[downstream].address,
                maximumHeadBytes: headBytes)
            downstreams[stream].connectionGeneration = downstreams[downstream].generation
        }
        if downstreams[downstream].handler != nil { downstreams[stream].handler = downstreams[downstream].handler }
        downstreams[stream].connection = downstream
        downstreams[stream].streamID = streamID
        streams.slots[streamID] = stream
        streams.idleSince = .max
        downstreams[downstream].requests &+= 1
        counters.http2Streams &+= 1
        return stream
    }

    private mutating func startStream(
        _ streamID: Int32, of downstream: Int32, _ streams: DownstreamHTTP2State, ends: Bool
    ) {
        let stream = allocateStream(streamID, of: downstream, streams)
        downstreams[stream].isStreamEnded = ends
        let text = unsafe streams.session.headText
        // A malformed request is not forwarded.
        if let code = streams.session.pendingErrorCode(streamID) {
            return unsafe rejectBrokenStream(stream, code, text)
        }
        var parser = downstreams[stream].parser
        switch streams.session.fill(&head, &parser) {
        case .complete:
            let generation = downstreams[stream].generation
            let exchange = unsafe beginExchange(stream, text)
            unsafe admit(exchange, text, verification: nil)
            // A head whose credential has to be verified is parsed again when the result is there.
            guard downstreams.contains(stream, generation), downstreams[stream].phase == .authenticating else { return }
            unsafe downstreams[stream].input.append(text)
        case .failure(let failure):
            let exchange = beginUnparsed(stream)
            unsafe exchanges[exchange].texts.set(unreadable: text)
            reject(exchange, .head(failure))
        case .needMore: reject(beginUnparsed(stream), .head(.badRequestLine))
        }
    }

    /// A malformed stream that the session has already reset; the log records why.
    private mutating func rejectBrokenStream(
        _ stream: Int32, _ code: HTTP2Code, _ text: UnsafeBufferPointer<UInt8>
    ) {
        let exchange = beginUnparsed(stream)
        unsafe exchanges[exchange].texts.set(unreadable: text)
        guard code == .protocolError else { return downstreamStreamClosed(stream) }
        reject(exchange, .head(.badContentLength))
    }

    private mutating func startRejectedStream(
        _ streamID: Int32, of downstream: Int32, _ streams: DownstreamHTTP2State, rejected failure: HeadError
    ) {
        let stream = allocateStream(streamID, of: downstream, streams)
        downstreams[stream].isStreamEnded = true
        let exchange = beginUnparsed(stream)
        exchanges[exchange].isGRPC = streams.session.isRejectedGRPC(streamID)
        reject(exchange, .head(failure))
    }

    /// Handles bytes of a stream's request body.
    private mutating func streamReceived(_ stream: Int32, _ bytes: UnsafeBufferPointer<UInt8>) {
        // Already answered: discard and return flow-control credit.
        guard !downstreams[stream].isResponseComplete else { return creditStream(stream, bytes.count) }
        guard downstreams[stream].input.isEmpty, !downstreams[stream].isPaused,
            downstreams[stream].phase == .exchange
        else {
            return unsafe downstreams[stream].input.append(bytes)
        }
        unsafe receivedPlaintext(stream, bytes)
    }

    /// Completes the request once all frames of the stream are consumed.
    mutating func finishStreamInput(_ stream: Int32) {
        let exchange = downstreams[stream].exchange
        guard downstreams[stream].isStreamEnded, downstreams[stream].input.isEmpty,
            downstreams[stream].phase == .exchange,
            exchange >= 0, !exchanges[exchange].isRequestComplete
        else { return }
        if isTunnel(exchange) {
            downstreams[stream].isReadClosed = true
            return tunnelDownstreamEnded(exchange)
        }
        guard exchanges[exchange].framing.isChunked || exchanges[exchange].remaining == 0 else {
            return abandon(stream)
        }
        finishStreamedBody(exchange)
    }

    private mutating func bufferStreamTrailers(_ stream: Int32) {
        let exchange = downstreams[stream].exchange
        guard exchange >= 0, !exchanges[exchange].isRequestComplete else { return }
        exchanges[exchange].streamTrailers.removeAll()
        unsafe exchanges[exchange].streamTrailers.append(staging.bytes)
        staging.removeAll()
    }

    /// Returns flow-control credit for consumed bytes.
    mutating func creditStream(_ stream: Int32, _ count: Int) {
        let connection = downstreams[stream].connection
        downstreams[connection].streams?.session.consume(downstreams[stream].streamID, count)
        markDirty(downstream: connection)
    }

    /// The stream is closed in both directions, or was reset.
    private mutating func downstreamStreamClosed(_ stream: Int32) {
        let exchange = downstreams[stream].exchange
        if exchange >= 0 {
            counters.http2Resets &+= 1
            dropUpstream(of: exchange)
            if exchanges[exchange].status == 0 { exchanges[exchange].status = 499 }
            exchanges[exchange].reason = counters.reason("request.client_left")
            finish(exchange)
        }
        close(downstream: stream)
    }

    /// The client has read the buffered output: resume the upstream.
    private mutating func streamDrained(_ stream: Int32) {
        downstreams[stream].lastWriteAt = now
        let exchange = downstreams[stream].exchange
        guard exchange >= 0, exchanges[exchange].upstream >= 0 else { return }
        let upstream = exchanges[exchange].upstream
        guard upstreams[upstream].isPaused else { return }
        upstreams[upstream].isPaused = false
        markReady(upstream: upstream)
    }

    /// Removes a stream from its connection.
    mutating func removeStream(_ stream: Int32) {
        let connection = downstreams[stream].connection
        guard let streams = downstreams[connection].streams else { return }
        streams.slots[downstreams[stream].streamID] = nil
        armFrames(connection, streams)
    }

    /// Resets a stream.
    mutating func resetStream(_ stream: Int32, _ code: HTTP2Code) {
        let connection = downstreams[stream].connection
        downstreams[connection].streams?.session.reset(downstreams[stream].streamID, code)
        markDirty(downstream: connection)
    }

    /// Abandons all streams of a connection that ends.
    mutating func abandonStreams(of downstream: Int32) {
        guard let streams = downstreams[downstream].streams else { return }
        for stream in Array(streams.slots.values) { abandon(stream) }
    }

    // MARK: Responses

    /// Sends a complete head in `staging` as HEADERS frames on a stream; on HTTP/1 it is sent with what follows.
    mutating func sendStreamHead(_ exchange: Int32, ends: Bool) {
        guard exchanges[exchange].isStream else { return }
        let stream = exchanges[exchange].downstream
        let connection = downstreams[stream].connection
        unsafe downstreams[connection].streams?.session.submitHead(
            downstreams[stream].streamID, staging.bytes, ends: ends)
        if ends { exchanges[exchange].hasEndedStream = true }
        staging.removeAll()
        markDirty(downstream: connection)
    }

    /// Sends body bytes on a stream.
    mutating func sendOnStream(_ bytes: UnsafeBufferPointer<UInt8>, on stream: Int32) {
        let connection = downstreams[stream].connection
        guard let session = downstreams[connection].streams?.session else { return }
        unsafe session.send(downstreams[stream].streamID, bytes)
        markDirty(downstream: connection)
        let exchange = downstreams[stream].exchange
        if exchange < 0 || exchanges[exchange].isRequestComplete { armWrite(stream) }
        guard exchange >= 0, exchanges[exchange].upstream >= 0 else { return }
        let unsent = session.unsent(downstreams[stream].streamID)
        if unsent > EventLoop.streamHighWatermark
            || unsent > EventLoop.streamLowWatermark && session.unsentTotal > EventLoop.connectionHighWatermark
        {
            upstreams[exchanges[exchange].upstream].isPaused = true
        }
    }

    /// Ends the response on a stream, with its trailers.
    mutating func finishStream(_ exchange: Int32) {
        guard exchanges[exchange].isStream, !exchanges[exchange].hasEndedStream else { return }
        exchanges[exchange].hasEndedStream = true
        let stream = exchanges[exchange].downstream
        let connection = downstreams[stream].connection
        unsafe downstreams[connection].streams?.session.end(
            downstreams[stream].streamID, trailers: exchanges[exchange].responseTrailers.bytes)
        markDirty(downstream: connection)
    }

    /// The response was handed over: the exchange ends, and its stream when the client has read everything.
    mutating func completeStream(_ exchange: Int32) {
        let stream = exchanges[exchange].downstream
        let connection = downstreams[stream].connection
        let isWhole = exchanges[exchange].isRequestComplete
        finish(exchange)
        downstreams[stream].isResponseComplete = true
        downstreams[stream].phase = .head
        markDirty(downstream: connection)
        if !isWhole, downstreams[connection].streams?.session.resetAtEnd(downstreams[stream].streamID) != true {
            downstreams[connection].streams?.session.reset(downstreams[stream].streamID, .noError)
            return close(downstream: stream)
        }
        arm(downstream: stream, at: now &+ snapshot.loopTimeouts.bodyIdle)
    }
}
