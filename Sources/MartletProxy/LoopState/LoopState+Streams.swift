internal import MartletCore
internal import MartletDecisions
internal import MartletHTTP
internal import MartletHTTP2
internal import MartletResponder

/// Streams and connections of HTTP/2 that end.
extension LoopState {
    mutating func startRejectedStream(
        _ streamID: Int32, of downstream: Handle<DownstreamConnection>, _ streams: DownstreamHTTP2State,
        rejected failure: HeadError
    ) {
        let stream = downstreams.allocateStream(streamID, of: downstream, streams, &context)
        downstreams[stream].stream.isEnded = true
        let exchange = exchanges.beginUnparsed(stream, &downstreams, &context)
        exchanges[exchange].request.grpc = streams.session.rejectedKind(streamID)
        reject(exchange, .head(failure))
    }

    /// A malformed stream that the session has already reset; the log records why.
    mutating func rejectBrokenStream(
        _ stream: Handle<DownstreamConnection>, _ code: HTTP2Code, _ text: UnsafeBufferPointer<UInt8>
    ) {
        let exchange = exchanges.beginUnparsed(stream, &downstreams, &context)
        unsafe exchanges[exchange].record.texts.set(unreadable: text)
        exchanges[exchange].request.grpc = unsafe GRPCKind(unreadableHead: text)
        guard code == .protocolError else { return downstreamStreamClosed(stream) }
        reject(exchange, .head(.badContentLength))
    }

    /// The response was handed over: the exchange ends, and its stream when the client has read everything.
    mutating func completeStream(_ exchange: Handle<Exchange>) {
        let stream = exchanges[exchange].downstream
        let connection = downstreams[stream].stream.connection
        let isWhole = exchanges[exchange].body.isComplete
        finish(exchange)
        downstreams[stream].stream.isResponseComplete = true
        downstreams[stream].phase = .head
        downstreams.markDirty(connection, &context)
        if !isWhole, downstreams[connection].streams?.session.resetAtEnd(downstreams[stream].stream.id) != true {
            downstreams[connection].streams?.session.reset(downstreams[stream].stream.id, .noError)
            return close(downstream: stream)
        }
        downstreams.arm(stream, at: now &+ context.snapshot.loopTimeouts.bodyIdle, &context)
    }

    /// The stream is closed in both directions, or was reset.
    mutating func downstreamStreamClosed(_ stream: Handle<DownstreamConnection>) {
        let exchange = downstreams[stream].exchange
        if !exchange.isNone {
            context.counters.http2.resets &+= 1
            exchanges.dropUpstream(of: exchange, &upstreams, &context)
            if exchanges[exchange].response.status == 0 { exchanges[exchange].response.status = 499 }
            exchanges[exchange].record.reason = context.counters.reason("request.client_left")
            finish(exchange)
        }
        close(downstream: stream)
    }

    /// Abandons all streams of a connection that ends.
    mutating func abandonStreams(of downstream: Handle<DownstreamConnection>) {
        guard let streams = downstreams[downstream].streams else { return }
        for index in streams.slots.values {
            if let stream = downstreams.all.handle(at: index) { abandon(stream) }
        }
    }

    /// The kernel accepted frames that had been buffered.
    mutating func framesWritten(_ downstream: Handle<DownstreamConnection>) {
        guard downstreams[downstream].transport.output.isEmpty else {
            return downstreams.armWrite(downstream, &context)
        }
        if downstreams[downstream].ending.closesAfterFlush { return endConnection(downstream) }
        guard let streams = downstreams[downstream].streams else { return }
        downstreams.armFrames(downstream, streams, &context)
        if streams.session.hasOutput { downstreams.markDirty(downstream, &context) }
        if downstreams[downstream].transport.mayHaveUnread { downstreams.markReady(downstream, &context) }
    }

    /// Closes a connection that has sent GOAWAY and has no open streams.
    mutating func closeIfFinished(_ downstream: Handle<DownstreamConnection>, _ streams: DownstreamHTTP2State) {
        guard streams.slots.isEmpty, streams.session.isFinished else { return }
        endConnection(downstream)
    }

    /// The connection's deadline has passed.
    mutating func framesTimedOut(_ downstream: Handle<DownstreamConnection>) {
        guard let streams = downstreams[downstream].streams, downstreams[downstream].transport.output.isEmpty else {
            return abandon(downstream)
        }
        if streams.headStartedAt != .max {
            streams.session.terminate(.enhanceYourCalm)
            abandonStreams(of: downstream)
        } else {
            streams.session.goAway()
            streams.session.goAway()
        }
        downstreams[downstream].ending.closesAfterFlush = true
        downstreams.markDirty(downstream, &context)
    }

    /// Advances tunnels that may have waited for these frames to be written.
    mutating func advanceTunnels(_ streams: DownstreamHTTP2State) {
        for index in streams.slots.values {
            guard let stream = downstreams.all.handle(at: index), exchanges.isTunnel(downstreams[stream].exchange)
            else { continue }
            advanceTunnel(downstreams[stream].exchange)
        }
    }
}
