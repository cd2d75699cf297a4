internal import MartletCore
internal import MartletHTTP
internal import MartletHTTP2
internal import MartletTLS

/// HTTP/2 upstream: few connections with many streams, each in a slot of its own that carries one request.
extension EventLoop {
    /// Streams that may wait for a connection to be established.
    private static let waitingLimit = 100

    // MARK: Finding a connection

    /// Sends the request over a connection with capacity, or a new one.
    mutating func sendOverHTTP2(_ exchange: Int32, to endpoint: Int32) {
        let found = directory.endpoints[Int(endpoint)].connections.first { hasStreamCapacity($0) }
        let connection: Int32
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
                let group = Int(exchanges[exchange].cluster)
                arm(upstream: upstream, at: now &+ directory.clusters[group].upstream.connectTimeout)
                upstreams[upstream].idleTimeout = directory.clusters[group].upstream.idleTimeout
            case .failure(let failure): return retryOrReject(exchange, failure, nothingSent: true)
            }
        }
        let upstream = upstreams.allocate()
        upstreams[upstream].open(fd: -1, kind: .stream, endpoint: endpoint, connected: false)
        upstreams[upstream].connection = connection
        upstreams[connection].streams?.waiting.append(upstream)
        attach(exchange, to: upstream)
        if upstreams[connection].phase == .frames { startWaitingStreams(connection) }
    }

    private func hasStreamCapacity(_ connection: Int32) -> Bool {
        guard let streams = upstreams[connection].streams else { return false }
        guard upstreams[connection].phase == .frames else { return streams.waiting.count < EventLoop.waitingLimit }
        return streams.session.canOpenStream
    }

    private mutating func openSession(_ connection: Int32) -> Bool {
        do throws(HTTP2Error) {
            var options = HTTP2Options()
            options.headerBytes = 64 * 1024
            options.headerFields = 256
            options.initialWindow = 256 * 1024
            upstreams[connection].streams = UpstreamHTTP2State(try HTTP2Session.client(options, pool: http2Memory))
            return true
        } catch {
            return false
        }
    }

    /// The connection is established: starts the waiting streams.
    mutating func startUpstreamFrames(_ connection: Int32) {
        upstreams[connection].phase = .frames
        // The streams it was opened for may be gone.
        arm(upstream: connection, at: now &+ upstreams[connection].idleTimeout)
        startWaitingStreams(connection)
        markDirty(upstream: connection)
    }

    private mutating func startWaitingStreams(_ connection: Int32) {
        guard let streams = upstreams[connection].streams else { return }
        let waiting = streams.waiting
        streams.waiting = []
        for upstream in waiting where upstreams[upstream].isAlive { submitStream(upstream, on: connection, streams) }
    }

    private mutating func submitStream(_ upstream: Int32, on connection: Int32, _ streams: UpstreamHTTP2State) {
        let exchange = upstreams[upstream].exchange
        let ends = exchanges[exchange].isRequestComplete && exchanges[exchange].framing.isEmpty
        guard
            let streamID = unsafe streams.session.submitRequest(
                exchanges[exchange].head.bytes, isSecure: upstreams[connection].isSecure, ends: ends,
                acceptsTrailers: exchanges[exchange].acceptsTrailers)
        else {
            return connectFailed(upstream, .upstreamUnavailable("upstream.no_stream"))
        }
        streams.slots[streamID] = upstream
        upstreams[upstream].streamID = streamID
        upstreams[upstream].hasEndedRequest = ends
        exchanges[exchange].headSent = exchanges[exchange].head.count
        arm(upstream: connection, at: .max)
        upstreams[upstream].expectResponse()
        armResponseTimeout(upstream)
        flushStream(upstream)
    }

    // MARK: Sending

    /// Submits the available part of a request's body to its stream.
    mutating func flushStream(_ upstream: Int32) {
        let exchange = upstreams[upstream].exchange
        guard exchange >= 0, upstreams[upstream].isUp,
            let session = session(
                of: upstream), !upstreams[upstream].isStreamClosed
        else { return }
        if !upstreams[upstream].output.isEmpty {
            unsafe session.send(upstreams[upstream].streamID, upstreams[upstream].output.bytes)
            upstreams[upstream].output.release()
        }
        if exchanges[exchange].isRequestComplete, !upstreams[upstream].hasEndedRequest {
            upstreams[upstream].hasEndedRequest = true
            unsafe session.end(upstreams[upstream].streamID, trailers: exchanges[exchange].requestTrailers.bytes)
        }
        markDirty(upstream: upstreams[upstream].connection)
        if !exchanges[exchange].isRequestComplete { armResponseTimeout(upstream) }
        if session.unsent(upstreams[upstream].streamID) > EventLoop.streamHighWatermark {
            downstreams[exchanges[exchange].downstream].isPaused = true
        }
    }

    /// The framing of a stream's connection; `nil` after that has failed.
    func session(of stream: Int32) -> HTTP2Session? {
        let connection = upstreams[stream].connection
        return connection < 0 ? nil : upstreams[connection].streams?.session
    }

    /// Schedules the connection's frames to be written at the end of the iteration.
    mutating func markDirty(upstream: Int32) {
        guard !upstreams[upstream].isDirty else { return }
        upstreams[upstream].isDirty = true
        dirty.append(EventToken(.upstream, index: upstream, generation: upstreams[upstream].generation))
    }

    /// Writes the pending frames of a connection.
    mutating func writeFrames(upstream: Int32) {
        upstreams[upstream].isDirty = false
        guard let streams = upstreams[upstream].streams, upstreams[upstream].phase == .frames else { return }
        let generation = upstreams[upstream].generation
        while upstreams[upstream].transportOutput.count < EventLoop.frameBatchBytes, streams.session.hasOutput {
            let before = upstreams[upstream].transportOutput.count
            if upstreams[upstream].isSecure {
                plaintext.removeAll()
                streams.session.takeOutput(into: &plaintext, upTo: EventLoop.frameBatchBytes)
                do {
                    try unsafe upstreams[upstream].engine?.send(plaintext.bytes)
                } catch {
                    return connectionBroke(upstream, "upstream.reset")
                }
                upstreams[upstream].engine?.dequeueCiphertext(into: &upstreams[upstream].transportOutput)
            } else {
                streams.session.takeOutput(into: &upstreams[upstream].transportOutput, upTo: EventLoop.frameBatchBytes)
            }
            if upstreams[upstream].transportOutput.count == before { break }
            flushTransport(upstream)
        }
        unsafe serveUpstreamEvents(of: upstream, streams, UnsafeBufferPointer(start: nil, count: 0))
        guard upstreams.contains(upstream, generation) else { return }
        if streams.session.isFinished, streams.slots.isEmpty { closeUpstream(upstream) }
    }

    /// The socket is writable again.
    mutating func flushUpstreamFrames(_ upstream: Int32) {
        flushTransport(upstream)
        if upstreams[upstream].transportOutput.isEmpty, upstreams[upstream].streams?.session.hasOutput == true {
            markDirty(upstream: upstream)
        }
    }

    // MARK: Responses

    /// Handles received frames.
    mutating func receiveResponseFrames(_ upstream: Int32, _ bytes: UnsafeBufferPointer<UInt8>) {
        guard let streams = upstreams[upstream].streams else { return }
        let generation = upstreams[upstream].generation
        streams.lastFrameAt = now
        let isIntact = unsafe streams.session.receive(bytes, now: now)
        unsafe serveUpstreamEvents(of: upstream, streams, bytes)
        guard upstreams.contains(upstream, generation) else { return }
        markDirty(upstream: upstream)
        if !isIntact { connectionBroke(upstream, "upstream.broke_http2") }
    }

    private mutating func serveUpstreamEvents(
        of upstream: Int32, _ streams: UpstreamHTTP2State, _ bytes: UnsafeBufferPointer<UInt8>
    ) {
        let generation = upstreams[upstream].generation
        while let event = streams.session.nextEvent() {
            switch event {
            case .head(let streamID, let ends): responseHeadReceived(streamID, streams, ends: ends)
            case .interim(let streamID): responseHeadReceived(streamID, streams, ends: false)
            case .data(let streamID, let start, let count):
                guard let stream = streams.slots[streamID] else { continue }
                unsafe responseDataReceived(stream, UnsafeBufferPointer(rebasing: bytes[start..<start &+ count]))
            case .trailers(let streamID):
                staging.removeAll()
                streams.session.takeHead(streamID, into: &staging)
                if let stream = streams.slots[streamID] { collectStreamTrailers(stream) }
            case .end(let streamID):
                guard let stream = streams.slots[streamID] else { continue }
                upstreams[stream].isStreamEnded = true
                finishStreamResponse(stream)
            case .closed(let streamID, let code):
                if let stream = streams.slots[streamID] { upstreamStreamClosed(stream, code) }
            case .drained(let streamID):
                guard let stream = streams.slots[streamID], upstreams[stream].exchange >= 0 else { continue }
                resumeDownstream(of: upstreams[stream].exchange)
            case .refused(let streamID, let failure):
                guard let stream = streams.slots[streamID], upstreams[stream].exchange >= 0 else { continue }
                rejectResponse(stream, failure.upstream.code)
            case .goAway:
                directory.endpoints[Int(upstreams[upstream].endpoint)].connections.removeAll {
                    $0 == upstream
                }
            }
            guard upstreams.contains(upstream, generation) else { return }
        }
    }

    private mutating func responseHeadReceived(_ streamID: Int32, _ streams: UpstreamHTTP2State, ends: Bool) {
        guard let stream = streams.slots[streamID] else { return }
        // The frames after the head show that the response is malformed: reject it while nothing was sent to the
        // client.
        if streams.session.pendingErrorCode(streamID) == .protocolError {
            return upstreamStreamClosed(stream, .protocolError)
        }
        upstreams[stream].endsWithHead = ends
        upstreams[stream].isStreamEnded = ends
        streams.session.takeHead(streamID, into: &upstreams[stream].input)
        consumeStreamInput(stream)
    }

    /// Handles bytes of a response's body.
    private mutating func responseDataReceived(_ stream: Int32, _ bytes: UnsafeBufferPointer<UInt8>) {
        guard upstreams[stream].input.isEmpty, !upstreams[stream].isPaused, upstreams[stream].phase == .body else {
            return unsafe upstreams[stream].input.append(bytes)
        }
        let generation = upstreams[stream].generation
        let used = unsafe consumeResponse(bytes, from: stream)
        guard upstreams.contains(stream, generation) else { return }
        credit(stream, used)
        if used < bytes.count { unsafe upstreams[stream].input.append(UnsafeBufferPointer(rebasing: bytes[used...])) }
    }

    /// Consumes what was buffered on a stream.
    private mutating func consumeStreamInput(_ stream: Int32) {
        guard !upstreams[stream].input.isEmpty else { return }
        let generation = upstreams[stream].generation
        let isBody = upstreams[stream].phase == .body
        var waiting = ByteBuffer()
        swap(&waiting, &upstreams[stream].input)
        upstreams[stream].hasResponded = true
        let used = unsafe consumeResponse(waiting.bytes, from: stream)
        guard upstreams.contains(stream, generation) else { return }
        waiting.consume(used)
        if isBody { credit(stream, used) }
        unsafe upstreams[stream].input.append(waiting.bytes)
    }

    /// Resumes a stream whose client was slow.
    mutating func resumeResponse(_ stream: Int32) {
        guard !upstreams[stream].isPaused else { return }
        let generation = upstreams[stream].generation
        consumeStreamInput(stream)
        if upstreams.contains(stream, generation) { finishStreamResponse(stream) }
    }

    /// Completes the response once all frames of the stream are consumed.
    private mutating func finishStreamResponse(_ stream: Int32) {
        guard upstreams[stream].isStreamEnded, upstreams[stream].input.isEmpty, upstreams[stream].phase == .body else {
            return
        }
        if case .length = upstreams[stream].framing, upstreams[stream].remaining > 0 {
            return upstreamBroke(stream, "upstream.truncated")
        }
        staging.removeAll()
        finishResponse(stream)
    }

    private mutating func collectStreamTrailers(_ stream: Int32) {
        let exchange = upstreams[stream].exchange
        guard exchange >= 0 else { return }
        var lines = ByteBuffer()
        swap(&lines, &staging)
        unsafe collectResponseTrailers(lines.bytes, exchange)
        lines.removeAll()
        swap(&lines, &staging)
    }

    /// Returns flow-control credit for consumed bytes.
    private mutating func credit(_ stream: Int32, _ count: Int) {
        // Bytes received before the connection failed are still used.
        guard let session = session(of: stream) else { return }
        session.consume(upstreams[stream].streamID, count)
        markDirty(upstream: upstreams[stream].connection)
    }
}
