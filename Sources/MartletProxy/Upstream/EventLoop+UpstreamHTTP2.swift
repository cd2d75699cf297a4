internal import MartletCore
internal import MartletHTTP
internal import MartletHTTP2
internal import MartletResponder
internal import MartletTLS

/// HTTP/2 upstream: few connections with many streams, each in a slot of its own that carries one request.
extension EventLoop {
    /// Streams that may wait for a connection to be established.
    private static let waitingLimit = 100

    // MARK: Finding a connection

    /// Sends the request over a connection with capacity, or a new one.
    mutating func sendOverHTTP2(_ exchange: Handle<Exchange>, to endpoint: EndpointIndex) {
        let found = directory.endpoints[Int(endpoint)].connections.first { hasStreamCapacity($0) }
        let connection: Handle<UpstreamConnection>
        if let found {
            connection = found
        } else {
            switch connect(to: endpoint, .http2) {
            case .success(let upstream):
                connection = upstream
                directory.endpoints[Int(endpoint)].connections.append(upstream)
                guard openSession(upstream) else {
                    closeUpstream(upstream)
                    return retryOrReject(exchange, .upstreamUnavailable("http2.set_up_failed"), nothingSent: true)
                }
                let group = Int(exchanges[exchange].forwarding.cluster)
                arm(upstream: upstream, at: now &+ directory.clusters[group].upstream.connectTimeout)
                upstreams[upstream].idleTimeout = directory.clusters[group].upstream.idleTimeout
            case .failure(let failure): return retryOrReject(exchange, failure, nothingSent: true)
            }
        }
        let upstream = upstreams.allocate()
        upstreams[upstream].open(fd: -1, kind: .stream, endpoint: endpoint, connected: false)
        upstreams[upstream].stream.connection = connection
        upstreams[connection].streams?.waiting.append(upstream)
        attach(exchange, to: upstream)
        if upstreams[connection].phase == .frames { startWaitingStreams(connection) }
    }

    private func hasStreamCapacity(_ connection: Handle<UpstreamConnection>) -> Bool {
        guard let streams = upstreams[connection].streams else { return false }
        guard upstreams[connection].phase == .frames else { return streams.waiting.count < EventLoop.waitingLimit }
        return streams.session.canOpenStream
    }

    private mutating func openSession(_ connection: Handle<UpstreamConnection>) -> Bool {
        do throws(HTTP2Error) {
            var options = HTTP2Options()
            options.headerBytes = 64 * 1024
            options.headerFields = 256
            options.initialWindow = 256 * 1024
            upstreams[connection].streams = UpstreamHTTP2State(
                try HTTP2Session.client(options, pool: scratch.http2Memory))
            return true
        } catch {
            return false
        }
    }

    /// The connection is established: starts the waiting streams.
    mutating func startUpstreamFrames(_ connection: Handle<UpstreamConnection>) {
        upstreams[connection].phase = .frames
        // The streams it was opened for may be gone.
        arm(upstream: connection, at: now &+ upstreams[connection].idleTimeout)
        startWaitingStreams(connection)
        markDirty(upstream: connection)
    }

    private mutating func startWaitingStreams(_ connection: Handle<UpstreamConnection>) {
        guard let streams = upstreams[connection].streams else { return }
        let waiting = streams.waiting
        streams.waiting = []
        for upstream in waiting where upstreams[upstream].isAlive { submitStream(upstream, on: connection, streams) }
    }

    private mutating func submitStream(
        _ upstream: Handle<UpstreamConnection>, on connection: Handle<UpstreamConnection>, _ streams: UpstreamHTTP2State
    ) {
        let exchange = upstreams[upstream].exchange
        let ends = exchanges[exchange].body.isComplete && exchanges[exchange].body.framing.isEmpty
        guard
            let streamID = unsafe streams.session.submitRequest(
                exchanges[exchange].forwarding.head.bytes, isSecure: upstreams[connection].transport.isSecure,
                ends: ends,
                acceptsTrailers: exchanges[exchange].request.acceptsTrailers)
        else {
            return connectFailed(upstream, .upstreamUnavailable("upstream.no_stream"))
        }
        streams.slots[streamID] = upstream.index
        upstreams[upstream].stream.id = streamID
        upstreams[upstream].stream.hasEndedRequest = ends
        exchanges[exchange].forwarding.headSent = exchanges[exchange].forwarding.head.count
        arm(upstream: connection, at: .max)
        upstreams[upstream].expectResponse()
        armResponseTimeout(upstream)
        flushStream(upstream)
    }

    // MARK: Sending

    /// Submits the available part of a request's body to its stream.
    mutating func flushStream(_ upstream: Handle<UpstreamConnection>) {
        let exchange = upstreams[upstream].exchange
        guard !exchange.isNone, upstreams[upstream].isUp, !upstreams[upstream].stream.isClosed,
            let session = session(of: upstream)
        else { return }
        if !upstreams[upstream].output.isEmpty {
            unsafe session.send(upstreams[upstream].stream.id, upstreams[upstream].output.bytes)
            upstreams[upstream].output.release()
        }
        if exchanges[exchange].body.isComplete, !upstreams[upstream].stream.hasEndedRequest {
            upstreams[upstream].stream.hasEndedRequest = true
            unsafe session.end(upstreams[upstream].stream.id, trailers: exchanges[exchange].trailers.forwarded.bytes)
        }
        markDirty(upstream: upstreams[upstream].stream.connection)
        if !exchanges[exchange].body.isComplete { armResponseTimeout(upstream) }
        if session.unsent(upstreams[upstream].stream.id) > EventLoop.streamHighWatermark {
            downstreams[exchanges[exchange].downstream].isPaused = true
        }
    }

    /// The framing of a stream's connection; `nil` after that has failed.
    func session(of stream: Handle<UpstreamConnection>) -> HTTP2Session? {
        let connection = upstreams[stream].stream.connection
        return connection.isNone ? nil : upstreams[connection].streams?.session
    }

    /// Schedules the connection's frames to be written at the end of the iteration.
    mutating func markDirty(upstream: Handle<UpstreamConnection>) {
        guard !upstreams[upstream].isDirty else { return }
        upstreams[upstream].isDirty = true
        schedule.dirty.append(EventToken(upstream: upstream))
    }

    /// Writes the pending frames of a connection.
    mutating func writeFrames(upstream: Handle<UpstreamConnection>) {
        upstreams[upstream].isDirty = false
        guard let streams = upstreams[upstream].streams, upstreams[upstream].phase == .frames else { return }
        let lent = unsafe upstreams.address(of: upstream)
        if unsafe lent.pointee.transport.sendFrames(of: streams.session, by: &plaintext, now: now) == .failed {
            // Where only encrypting failed, no read would notice it.
            if upstreams[upstream].transport.engine?.hasFailed == true {
                return connectionBroke(upstream, "upstream.reset")
            }
            transportFailed(upstream)
        }
        unsafe serveUpstreamEvents(of: upstream, streams, UnsafeBufferPointer(start: nil, count: 0))
        guard upstreams[upstream].isAlive else { return }
        if streams.session.isFinished, streams.slots.isEmpty { closeUpstream(upstream) }
    }

    /// The socket is writable again.
    mutating func flushUpstreamFrames(_ upstream: Handle<UpstreamConnection>) {
        flushTransport(upstream)
        if upstreams[upstream].transport.output.isEmpty, upstreams[upstream].streams?.session.hasOutput == true {
            markDirty(upstream: upstream)
        }
    }

    // MARK: Responses

    /// An open stream, by its ID.
    @inline(__always)
    private func stream(_ streamID: Int32, of streams: UpstreamHTTP2State) -> Handle<UpstreamConnection>? {
        guard let index = streams.slots[streamID] else { return nil }
        return upstreams.handle(at: index)
    }

    /// Handles received frames.
    mutating func receiveResponseFrames(_ upstream: Handle<UpstreamConnection>, _ bytes: UnsafeBufferPointer<UInt8>) {
        guard let streams = upstreams[upstream].streams else { return }
        streams.lastFrameAt = now
        let isIntact = unsafe streams.session.receive(bytes, now: now)
        unsafe serveUpstreamEvents(of: upstream, streams, bytes)
        guard upstreams[upstream].isAlive else { return }
        markDirty(upstream: upstream)
        if !isIntact { connectionBroke(upstream, "upstream.broke_http2") }
    }

    private mutating func serveUpstreamEvents(
        of upstream: Handle<UpstreamConnection>, _ streams: UpstreamHTTP2State, _ bytes: UnsafeBufferPointer<UInt8>
    ) {
        while let event = streams.session.nextEvent() {
            switch event {
            case .head(let streamID, let ends): responseHeadReceived(streamID, streams, ends: ends)
            case .interim(let streamID): responseHeadReceived(streamID, streams, ends: false)
            case .data(let streamID, let start, let count):
                guard let stream = stream(streamID, of: streams) else { continue }
                unsafe responseDataReceived(stream, UnsafeBufferPointer(rebasing: bytes[start..<start &+ count]))
            case .trailers(let streamID):
                staging.removeAll()
                streams.session.takeHead(streamID, into: &staging)
                if let stream = stream(streamID, of: streams) { collectStreamTrailers(stream) }
            case .end(let streamID):
                guard let stream = stream(streamID, of: streams) else { continue }
                upstreams[stream].stream.isEnded = true
                finishStreamResponse(stream)
            case .closed(let streamID, let code):
                if let stream = stream(streamID, of: streams) { upstreamStreamClosed(stream, code) }
            case .drained(let streamID):
                guard let stream = stream(streamID, of: streams), !upstreams[stream].exchange.isNone else { continue }
                resumeDownstream(of: upstreams[stream].exchange)
            case .refused(let streamID, let failure):
                guard let stream = stream(streamID, of: streams), !upstreams[stream].exchange.isNone else { continue }
                rejectResponse(stream, failure.upstream.code)
            case .goAway: removeFromEndpoint(upstream)
            }
            guard upstreams[upstream].isAlive else { return }
        }
    }

    private mutating func responseHeadReceived(_ streamID: Int32, _ streams: UpstreamHTTP2State, ends: Bool) {
        guard let stream = stream(streamID, of: streams) else { return }
        // The frames after the head show that the response is malformed: reject it while nothing was sent to the
        // client.
        if streams.session.pendingErrorCode(streamID) == .protocolError {
            return upstreamStreamClosed(stream, .protocolError)
        }
        upstreams[stream].stream.endsWithHead = ends
        upstreams[stream].stream.isEnded = ends
        streams.session.takeHead(streamID, into: &upstreams[stream].input)
        consumeStreamInput(stream)
    }

    /// Handles bytes of a response's body.
    private mutating func responseDataReceived(
        _ stream: Handle<UpstreamConnection>, _ bytes: UnsafeBufferPointer<UInt8>
    ) {
        guard upstreams[stream].input.isEmpty, !upstreams[stream].isPaused, upstreams[stream].phase == .body else {
            return unsafe upstreams[stream].input.append(bytes)
        }
        let used = unsafe consumeResponse(bytes, from: stream)
        guard upstreams[stream].isAlive else { return }
        credit(stream, used)
        if used < bytes.count { unsafe upstreams[stream].input.append(UnsafeBufferPointer(rebasing: bytes[used...])) }
    }

    /// Consumes what was buffered on a stream.
    private mutating func consumeStreamInput(_ stream: Handle<UpstreamConnection>) {
        guard !upstreams[stream].input.isEmpty else { return }
        let isBody = upstreams[stream].phase == .body
        var waiting = ByteBuffer()
        swap(&waiting, &upstreams[stream].input)
        upstreams[stream].response.hasBegun = true
        let used = unsafe consumeResponse(waiting.bytes, from: stream)
        guard upstreams[stream].isAlive else { return }
        waiting.consume(used)
        if isBody { credit(stream, used) }
        unsafe upstreams[stream].input.append(waiting.bytes)
    }

    /// Resumes a stream whose client was slow.
    mutating func resumeResponse(_ stream: Handle<UpstreamConnection>) {
        guard !upstreams[stream].isPaused else { return }
        consumeStreamInput(stream)
        if upstreams[stream].isAlive { finishStreamResponse(stream) }
    }

    /// Completes the response once all frames of the stream are consumed.
    private mutating func finishStreamResponse(_ stream: Handle<UpstreamConnection>) {
        guard upstreams[stream].stream.isEnded, upstreams[stream].input.isEmpty, upstreams[stream].phase == .body else {
            return
        }
        if case .length = upstreams[stream].response.framing, upstreams[stream].response.remaining > 0 {
            return upstreamBroke(stream, "upstream.truncated")
        }
        staging.removeAll()
        finishResponse(stream)
    }

    private mutating func collectStreamTrailers(_ stream: Handle<UpstreamConnection>) {
        let exchange = upstreams[stream].exchange
        guard !exchange.isNone else { return }
        var lines = ByteBuffer()
        swap(&lines, &staging)
        unsafe collectResponseTrailers(lines.bytes, exchange)
        lines.removeAll()
        swap(&lines, &staging)
    }

    /// Returns flow-control credit for consumed bytes.
    private mutating func credit(_ stream: Handle<UpstreamConnection>, _ count: Int) {
        // Bytes received before the connection failed are still used.
        guard let session = session(of: stream) else { return }
        session.consume(upstreams[stream].stream.id, count)
        markDirty(upstream: upstreams[stream].stream.connection)
    }
}
