internal import MartletCore
internal import MartletDecisions
internal import MartletHTTP
internal import MartletHTTP2
internal import MartletResponder

/// HTTP/2 downstream: reading and writing frames, and the requests on streams.
extension EventLoop {
    /// Handles received frames.
    mutating func receiveFrames(_ bytes: UnsafeBufferPointer<UInt8>, from downstream: Handle<DownstreamConnection>) {
        // The session could not be created.
        guard let streams = loop.downstreams[downstream].streams else { return loop.close(downstream: downstream) }
        let isIntact = unsafe streams.session.receive(bytes, now: loop.now)
        unsafe serveDownstreamEvents(of: downstream, streams, bytes)
        guard loop.downstreams[downstream].isAlive else { return }
        loop.downstreams.markDirty(downstream, &loop.context)
        guard !isIntact else { return loop.downstreams.armFrames(downstream, streams, &loop.context) }
        loop.context.counters.http2.errors &+= 1
        loop.abandonStreams(of: downstream)
        loop.downstreams[downstream].ending.closesAfterFlush = true
        loop.downstreams[downstream].ending.hasUnreadRequest = true
    }

    mutating func serveDownstreamEvents(
        of downstream: Handle<DownstreamConnection>, _ streams: DownstreamHTTP2State,
        _ bytes: UnsafeBufferPointer<UInt8>
    ) {
        while let event = streams.session.nextEvent() {
            switch event {
            case .head(let streamID, let ends): startStream(streamID, of: downstream, streams, ends: ends)
            case .data(let streamID, let start, let count):
                let data = unsafe UnsafeBufferPointer(rebasing: bytes[start..<start &+ count])
                guard let stream = loop.downstreams.stream(streamID, of: streams) else { continue }
                unsafe streamReceived(stream, data)
            case .trailers(let streamID):
                if let stream = loop.downstreams.stream(streamID, of: streams) {
                    unsafe loop.downstreams.bufferTrailers(streams.session.headText, of: stream, &loop.exchanges)
                }
            case .end(let streamID):
                guard let stream = loop.downstreams.stream(streamID, of: streams) else { continue }
                loop.downstreams[stream].stream.isEnded = true
                RequestForwarder.finishStreamInput(stream, &loop)
            case .closed(let streamID, _):
                if let stream = loop.downstreams.stream(streamID, of: streams) { loop.downstreamStreamClosed(stream) }
            case .drained(let streamID):
                if let stream = loop.downstreams.stream(streamID, of: streams) {
                    loop.downstreams.streamDrained(stream, &loop.exchanges, &loop.upstreams, &loop.context)
                }
            case .refused(let streamID, let failure):
                loop.startRejectedStream(streamID, of: downstream, streams, rejected: failure)
            case .interim, .goAway: break
            }
            guard loop.downstreams[downstream].isAlive else { return }
        }
    }

    mutating func startStream(
        _ streamID: Int32, of downstream: Handle<DownstreamConnection>, _ streams: DownstreamHTTP2State, ends: Bool
    ) {
        let stream = loop.downstreams.allocateStream(streamID, of: downstream, streams, &loop.context)
        loop.downstreams[stream].stream.isEnded = ends
        let text = unsafe streams.session.headText
        // A malformed request is not forwarded.
        if let code = streams.session.pendingErrorCode(streamID) {
            return unsafe loop.rejectBrokenStream(stream, code, text)
        }
        var parser = loop.downstreams[stream].reader.parser
        switch streams.session.fill(&router.head, &parser) {
        case .complete:
            let exchange = unsafe router.beginExchange(stream, text, &loop.exchanges, &loop.downstreams, &loop.context)
            unsafe RequestAdmission.begin(exchange, text, &self)
            // A head whose credential has to be verified is parsed again when the result is there.
            guard loop.downstreams[stream].isAlive, loop.downstreams[stream].phase == .waiting else { return }
            unsafe loop.downstreams[stream].reader.input.append(text)
        case .failure(let failure):
            let exchange = loop.exchanges.beginUnparsed(stream, &loop.downstreams, &loop.context)
            unsafe loop.exchanges[exchange].record.texts.set(unreadable: text)
            loop.exchanges[exchange].request.grpc = unsafe GRPCKind(unreadableHead: text)
            loop.reject(exchange, .head(failure))
        case .needMore:
            loop.reject(loop.exchanges.beginUnparsed(stream, &loop.downstreams, &loop.context), .head(.badRequestLine))
        }
    }

    /// Handles bytes of a stream's request body.
    mutating func streamReceived(_ stream: Handle<DownstreamConnection>, _ bytes: UnsafeBufferPointer<UInt8>) {
        // Already answered: discard and return flow-control credit.
        guard !loop.downstreams[stream].stream.isResponseComplete else {
            return loop.downstreams.creditStream(stream, bytes.count, &loop.context)
        }
        guard loop.downstreams[stream].reader.input.isEmpty, !loop.downstreams[stream].isPaused,
            loop.downstreams[stream].phase == .exchange
        else {
            return unsafe loop.downstreams[stream].reader.input.append(bytes)
        }
        unsafe receivedPlaintext(stream, bytes)
    }

    /// Writes the frames of every dirty connection.
    mutating func writeAllFrames() {
        while !loop.context.schedule.dirty.isEmpty {
            for index in 0..<loop.context.schedule.dirty.start() {
                let token = loop.context.schedule.dirty[index]
                switch token.kind {
                case .downstream where loop.downstreams.all.contains(token.downstream):
                    writeFrames(downstream: token.downstream)
                case .upstream where loop.upstreams.all.contains(token.upstream):
                    responses.writeFrames(upstream: token.upstream, &loop)
                default: break
                }
            }
        }
    }

    mutating func writeFrames(downstream: Handle<DownstreamConnection>) {
        loop.downstreams[downstream].isDirty = false
        guard let streams = loop.downstreams[downstream].streams else { return }
        let lent = unsafe loop.downstreams.all.address(of: downstream)
        switch unsafe lent.pointee.transport.sendFrames(
            of: streams.session, by: &loop.context.scratch.plaintext, now: loop.now)
        {
        case .failed: return loop.abandon(downstream)
        case .sent, .buffered: loop.framesWritten(downstream)
        case .blocked, nil: break
        }
        guard loop.downstreams[downstream].isAlive else { return }
        unsafe serveDownstreamEvents(of: downstream, streams, UnsafeBufferPointer(start: nil, count: 0))
        if loop.context.counters.tunnels.open > 0 { loop.advanceTunnels(streams) }
        guard loop.downstreams[downstream].isAlive, loop.downstreams[downstream].transport.output.isEmpty else {
            return
        }
        if loop.downstreams[downstream].ending.closesAfterFlush { return loop.endConnection(downstream) }
        loop.closeIfFinished(downstream, streams)
    }
}
