internal import MartletCore
internal import MartletHTTP
internal import MartletHTTP2
internal import MartletTLS

/// HTTP/2 upstream: how streams and connections end.
extension EventLoop {
    /// The stream was reset by the upstream, or is closed in both directions.
    mutating func upstreamStreamClosed(_ stream: Int32, _ code: HTTP2Code) {
        upstreams[stream].isStreamClosed = true
        guard upstreams[stream].exchange >= 0 else { return closeUpstream(stream) }
        // The whole response was received and waits for a slow client.
        if upstreams[stream].isStreamEnded { return }
        let exchange = upstreams[stream].exchange
        // The response was malformed, or the upstream found our request to be: a retry changes neither.
        if code == .protocolError, !exchanges[exchange].hasResponseStarted {
            return rejectResponse(stream, "upstream.stream_malformed")
        }
        guard code == .refusedStream, !exchanges[exchange].hasResponseStarted else {
            return upstreamBroke(stream, "upstream.stream_reset")
        }
        // RFC 9113 §8.7: the request was not processed. The body is lost as far as it was sent.
        dropUpstream(of: exchange)
        guard exchanges[exchange].attempts < EventLoop.refusedStreamLimit, exchanges[exchange].bodyBytes == 0 else {
            return fail(exchange, .upstreamUnavailable("upstream.stream_refused"))
        }
        sendToEndpoint(exchange, avoiding: -1, reusing: true)
    }

    /// Removes a stream from its connection, and resets it if it is not finished.
    mutating func leaveHTTP2Connection(_ upstream: Int32) {
        let connection = upstreams[upstream].connection
        guard connection >= 0, let streams = upstreams[connection].streams else { return }
        streams.waiting.removeAll { $0 == upstream }
        guard upstreams[upstream].streamID != 0 else { return }
        streams.slots[upstreams[upstream].streamID] = nil
        let hasSentRequest =
            upstreams[upstream].hasEndedRequest
            && streams.session.unsent(upstreams[upstream].streamID) == 0
        let isOver = upstreams[upstream].isStreamClosed || upstreams[upstream].isStreamEnded && hasSentRequest
        if !isOver { streams.session.reset(upstreams[upstream].streamID, .cancel) }
        markDirty(upstream: connection)
        if streams.slots.isEmpty, streams.waiting.isEmpty {
            arm(upstream: connection, at: now &+ upstreams[connection].idleTimeout)
        }
    }

    /// Takes the connection out of its endpoint's pool: it is idle, or has failed.
    mutating func removeFromEndpoint(_ upstream: Int32) {
        directory.endpoints[Int(upstreams[upstream].endpoint)].connections.removeAll { $0 == upstream }
    }

    /// The connection was never established: its waiting streams are retried elsewhere.
    mutating func connectionFailed(_ connection: Int32, _ failure: Failure) {
        let waiting = upstreams[connection].streams?.waiting ?? []
        for upstream in waiting { upstreams[upstream].connection = -1 }
        closeUpstream(connection)
        for upstream in waiting where upstreams[upstream].isAlive { connectFailed(upstream, failure) }
    }

    /// A connection failed with streams on it.
    mutating func connectionBroke(_ connection: Int32, _ reason: ErrorCode) {
        guard upstreams[connection].phase == .frames else {
            return connectionFailed(connection, .upstreamUnavailable(reason))
        }
        let streams = upstreams[connection].streams
        let slots = streams.map { Array($0.slots.values) } ?? []
        for upstream in slots {
            upstreams[upstream].connection = -1
            upstreams[upstream].isStreamClosed = true
        }
        closeUpstream(connection)
        for upstream in slots
        where upstreams[upstream].isAlive && upstreams[upstream].exchange >= 0
            && !upstreams[upstream].isStreamEnded
        {
            upstreamBroke(upstream, reason)
        }
    }

    /// Whether a stream's request is still being sent, and has progressed since the last check.
    mutating func isRequestProgressing(_ upstream: Int32) -> Bool {
        guard upstreams[upstream].kind == .stream, let session = session(of: upstream) else { return false }
        let sent = session.sent(upstreams[upstream].streamID)
        defer { upstreams[upstream].sentAtCheck = sent }
        return sent > upstreams[upstream].sentAtCheck && unsent(upstream) > 0
    }

    /// A stream timed out: if the whole connection was silent as long, it may be dead, and other requests use a new
    /// one.
    mutating func suspectConnection(of upstream: Int32, silentFor timeout: Int64) {
        let connection = upstreams[upstream].connection
        guard connection >= 0, let streams = upstreams[connection].streams, upstreams[connection].phase == .frames,
            now &- streams.lastFrameAt >= timeout
        else { return }
        removeFromEndpoint(connection)
    }

    /// Closes a connection that had no streams for a while.
    mutating func closeIdleHTTP2(_ upstream: Int32) {
        guard let streams = upstreams[upstream].streams, streams.slots.isEmpty, streams.waiting.isEmpty else { return }
        directory.endpoints[Int(upstreams[upstream].endpoint)].connections.removeAll { $0 == upstream }
        streams.session.terminate(.noError)
        writeFrames(upstream: upstream)
        closeUpstream(upstream)
    }

    /// Retires the connections of an endpoint that is not used any more; they close with their last streams.
    mutating func retireConnections(of endpoint: Int32) {
        let connections = directory.endpoints[Int(endpoint)].connections
        directory.endpoints[Int(endpoint)].connections = []
        for connection in connections {
            guard let streams = upstreams[connection].streams, streams.slots.isEmpty, streams.waiting.isEmpty else {
                continue
            }
            closeUpstream(connection)
        }
    }

    /// How often a request is retried that an upstream refused to process.
    static let refusedStreamLimit = 4
}
