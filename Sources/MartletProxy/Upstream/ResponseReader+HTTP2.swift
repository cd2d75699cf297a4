internal import MartletCore
internal import MartletDecisions
internal import MartletHTTP
internal import MartletHTTP2
internal import MartletResponder
internal import MartletTLS

/// HTTP/2 upstream: frames, and the responses on streams.
extension ResponseReader {
    /// Writes the pending frames of a connection.
    mutating func writeFrames(upstream: Handle<UpstreamConnection>, _ loop: inout LoopState) {
        loop.upstreams[upstream].isDirty = false
        guard let streams = loop.upstreams[upstream].streams, loop.upstreams[upstream].phase == .frames else { return }
        let lent = unsafe loop.upstreams.all.address(of: upstream)
        if unsafe lent.pointee.transport.sendFrames(
            of: streams.session, by: &loop.context.scratch.plaintext, now: loop.now)
            == .failed
        {
            // Where only encrypting failed, no read would notice it.
            if loop.upstreams[upstream].transport.engine?.hasFailed == true {
                return connectionBroke(upstream, "upstream.reset", &loop)
            }
            loop.upstreams.transportFailed(upstream, &loop.context)
        }
        unsafe serveUpstreamEvents(of: upstream, streams, UnsafeBufferPointer(start: nil, count: 0), &loop)
        guard loop.upstreams[upstream].isAlive else { return }
        if streams.session.isFinished, streams.slots.isEmpty { loop.upstreams.close(upstream, &loop.context) }
    }

    /// Handles received frames.
    mutating func receiveResponseFrames(
        _ upstream: Handle<UpstreamConnection>, _ bytes: UnsafeBufferPointer<UInt8>, _ loop: inout LoopState
    ) {
        guard let streams = loop.upstreams[upstream].streams else { return }
        streams.lastFrameAt = loop.now
        let isIntact = unsafe streams.session.receive(bytes, now: loop.now)
        unsafe serveUpstreamEvents(of: upstream, streams, bytes, &loop)
        guard loop.upstreams[upstream].isAlive else { return }
        loop.upstreams.markDirty(upstream, &loop.context)
        if !isIntact { connectionBroke(upstream, "upstream.broke_http2", &loop) }
    }

    private mutating func serveUpstreamEvents(
        of upstream: Handle<UpstreamConnection>, _ streams: UpstreamHTTP2State, _ bytes: UnsafeBufferPointer<UInt8>,
        _ loop: inout LoopState
    ) {
        while let event = streams.session.nextEvent() {
            switch event {
            case .head(let streamID, let ends): responseHeadReceived(streamID, streams, ends: ends, &loop)
            case .interim(let streamID): responseHeadReceived(streamID, streams, ends: false, &loop)
            case .data(let streamID, let start, let count):
                guard let stream = loop.upstreams.stream(streamID, of: streams) else { continue }
                unsafe responseDataReceived(stream, UnsafeBufferPointer(rebasing: bytes[start..<start &+ count]), &loop)
            case .trailers(let streamID):
                if let stream = loop.upstreams.stream(streamID, of: streams) {
                    unsafe loop.exchanges.collectResponseTrailers(
                        streams.session.headText, loop.upstreams[stream].exchange, &loop.context)
                }
            case .end(let streamID):
                guard let stream = loop.upstreams.stream(streamID, of: streams) else { continue }
                loop.upstreams[stream].stream.isEnded = true
                finishStreamResponse(stream, &loop)
            case .closed(let streamID, let code):
                if let stream = loop.upstreams.stream(streamID, of: streams) {
                    upstreamStreamClosed(stream, code, &loop)
                }
            case .drained(let streamID):
                guard let stream = loop.upstreams.stream(streamID, of: streams), !loop.upstreams[stream].exchange.isNone
                else {
                    continue
                }
                loop.exchanges[loop.upstreams[stream].exchange].resumeDownstream(
                    &loop.downstreams, &loop.upstreams, &loop.context)
            case .refused(let streamID, let failure):
                guard let stream = loop.upstreams.stream(streamID, of: streams), !loop.upstreams[stream].exchange.isNone
                else {
                    continue
                }
                loop.rejectResponse(stream, failure.upstream.code)
            case .goAway: loop.upstreams.removeFromEndpoint(upstream)
            }
            guard loop.upstreams[upstream].isAlive else { return }
        }
    }

    private mutating func responseHeadReceived(
        _ streamID: Int32, _ streams: UpstreamHTTP2State, ends: Bool, _ loop: inout LoopState
    ) {
        guard let stream = loop.upstreams.stream(streamID, of: streams) else { return }
        // The frames after the head show that the response is malformed: reject it while nothing was sent to the
        // client.
        if streams.session.pendingErrorCode(streamID) == .protocolError {
            return upstreamStreamClosed(stream, .protocolError, &loop)
        }
        loop.upstreams[stream].stream.endsWithHead = ends
        loop.upstreams[stream].stream.isEnded = ends
        streams.session.takeHead(streamID, into: &loop.upstreams[stream].input)
        consumeStreamInput(stream, &loop)
    }

    /// Handles bytes of a response's body.
    private mutating func responseDataReceived(
        _ stream: Handle<UpstreamConnection>, _ bytes: UnsafeBufferPointer<UInt8>, _ loop: inout LoopState
    ) {
        guard loop.upstreams[stream].input.isEmpty, !loop.upstreams[stream].isPaused,
            loop.upstreams[stream].phase == .body
        else {
            return unsafe loop.upstreams[stream].input.append(bytes)
        }
        let used = unsafe consumeResponse(bytes, from: stream, &loop)
        guard loop.upstreams[stream].isAlive else { return }
        loop.upstreams.credit(stream, used, &loop.context)
        if used < bytes.count {
            unsafe loop.upstreams[stream].input.append(UnsafeBufferPointer(rebasing: bytes[used...]))
        }
    }

    /// Consumes what was buffered on a stream.
    private mutating func consumeStreamInput(_ stream: Handle<UpstreamConnection>, _ loop: inout LoopState) {
        guard !loop.upstreams[stream].input.isEmpty else { return }
        let isBody = loop.upstreams[stream].phase == .body
        var waiting = ByteBuffer()
        swap(&waiting, &loop.upstreams[stream].input)
        loop.upstreams[stream].response.hasBegun = true
        let used = unsafe consumeResponse(waiting.bytes, from: stream, &loop)
        guard loop.upstreams[stream].isAlive else { return }
        waiting.consume(used)
        if isBody { loop.upstreams.credit(stream, used, &loop.context) }
        unsafe loop.upstreams[stream].input.append(waiting.bytes)
    }

    /// Resumes a stream whose client was slow.
    mutating func resumeResponse(_ stream: Handle<UpstreamConnection>, _ loop: inout LoopState) {
        guard !loop.upstreams[stream].isPaused else { return }
        consumeStreamInput(stream, &loop)
        if loop.upstreams[stream].isAlive { finishStreamResponse(stream, &loop) }
    }

    /// Completes the response once all frames of the stream are consumed.
    private mutating func finishStreamResponse(_ stream: Handle<UpstreamConnection>, _ loop: inout LoopState) {
        guard loop.upstreams[stream].stream.isEnded, loop.upstreams[stream].input.isEmpty,
            loop.upstreams[stream].phase == .body
        else {
            return
        }
        if case .length = loop.upstreams[stream].response.framing, loop.upstreams[stream].response.remaining > 0 {
            return upstreamBroke(stream, "upstream.truncated", &loop)
        }
        loop.finishResponse(stream)
    }

    /// The stream was reset by the upstream, or is closed in both directions.
    private mutating func upstreamStreamClosed(
        _ stream: Handle<UpstreamConnection>, _ code: HTTP2Code, _ loop: inout LoopState
    ) {
        loop.upstreams[stream].stream.isClosed = true
        let exchange = loop.upstreams[stream].exchange
        let end = UpstreamStreamEnd(
            code, carriesRequest: !exchange.isNone, isEnded: loop.upstreams[stream].stream.isEnded,
            hasResponseStarted: !exchange.isNone && loop.exchanges[exchange].response.hasStarted)
        switch end {
        case .close: loop.upstreams.close(stream, &loop.context)
        case .keep: break
        case .malformed: loop.rejectResponse(stream, "upstream.stream_malformed")
        case .reset: upstreamBroke(stream, "upstream.stream_reset", &loop)
        case .refused:
            loop.exchanges.dropUpstream(of: exchange, &loop.upstreams, &loop.context)
            RequestForwarder.retryOrReject(
                exchange, .upstreamUnavailable("upstream.stream_refused"), .refused, &loop)
        }
    }

    /// A connection failed with streams on it.
    mutating func connectionBroke(
        _ connection: Handle<UpstreamConnection>, _ reason: ErrorCode, _ loop: inout LoopState
    ) {
        guard loop.upstreams[connection].phase == .frames else {
            return RequestForwarder.connectionFailed(connection, .upstreamUnavailable(reason), &loop)
        }
        var affected: [Handle<UpstreamConnection>] = []
        if let streams = loop.upstreams[connection].streams {
            for index in streams.slots.values {
                if let upstream = loop.upstreams.all.handle(at: index) { affected.append(upstream) }
            }
        }
        for upstream in affected {
            loop.upstreams[upstream].stream.connection = .none
            loop.upstreams[upstream].stream.isClosed = true
        }
        loop.upstreams.close(connection, &loop.context)
        for upstream in affected
        where loop.upstreams[upstream].isAlive && !loop.upstreams[upstream].exchange.isNone
            && !loop.upstreams[upstream].stream.isEnded
        {
            upstreamBroke(upstream, reason, &loop)
        }
    }

    /// Closes a connection that had no streams for a while.
    mutating func closeIdleHTTP2(_ upstream: Handle<UpstreamConnection>, _ loop: inout LoopState) {
        guard let streams = loop.upstreams[upstream].streams, streams.slots.isEmpty, streams.waiting.isEmpty else {
            return
        }
        loop.upstreams.directory.endpoints[Int(loop.upstreams[upstream].endpoint)].connections.removeAll {
            $0 == upstream
        }
        streams.session.terminate(.noError)
        writeFrames(upstream: upstream, &loop)
        loop.upstreams.close(upstream, &loop.context)
    }
}
