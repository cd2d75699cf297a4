internal import MartletCore
internal import MartletHTTP
internal import MartletHTTP2
internal import MartletResponder
internal import MartletTLS

/// HTTP/2 upstream: how streams and connections end.
extension EventLoop {
    /// The stream was reset by the upstream, or is closed in both directions.
    mutating func upstreamStreamClosed(_ stream: Handle<UpstreamConnection>, _ code: HTTP2Code) {
        upstreams[stream].stream.isClosed = true
        let exchange = upstreams[stream].exchange
        let end = UpstreamStreamEnd(
            code, carriesRequest: !exchange.isNone, isEnded: upstreams[stream].stream.isEnded,
            hasResponseStarted: !exchange.isNone && exchanges[exchange].response.hasStarted)
        switch end {
        case .close: closeUpstream(stream)
        case .keep: break
        case .malformed: rejectResponse(stream, "upstream.stream_malformed")
        case .reset: upstreamBroke(stream, "upstream.stream_reset")
        case .refused:
            dropUpstream(of: exchange)
            switch failedAttempt(exchange, .refused).decision {
            case .fail: fail(exchange, .upstreamUnavailable("upstream.stream_refused"))
            case .retry(let avoiding, let reusing): sendToEndpoint(exchange, avoiding: avoiding, reusing: reusing)
            }
        }
    }

    /// Removes a stream from its connection, and resets it if it is not finished.
    mutating func leaveHTTP2Connection(_ upstream: Handle<UpstreamConnection>) {
        let connection = upstreams[upstream].stream.connection
        guard !connection.isNone, let streams = upstreams[connection].streams else { return }
        streams.waiting.removeAll { $0 == upstream }
        guard upstreams[upstream].stream.id != 0 else { return }
        streams.slots[upstreams[upstream].stream.id] = nil
        let hasSentRequest =
            upstreams[upstream].stream.hasEndedRequest
            && streams.session.unsent(upstreams[upstream].stream.id) == 0
        let isOver = upstreams[upstream].stream.isClosed || upstreams[upstream].stream.isEnded && hasSentRequest
        if !isOver { streams.session.reset(upstreams[upstream].stream.id, .cancel) }
        markDirty(upstream: connection)
        if streams.slots.isEmpty, streams.waiting.isEmpty {
            arm(upstream: connection, at: now &+ upstreams[connection].idleTimeout)
        }
    }

    /// Takes the connection out of its endpoint's pool: it is idle, or has failed.
    mutating func removeFromEndpoint(_ upstream: Handle<UpstreamConnection>) {
        directory.endpoints[Int(upstreams[upstream].endpoint)].connections.removeAll { $0 == upstream }
    }

    /// The connection was never established: its waiting streams are retried elsewhere.
    mutating func connectionFailed(_ connection: Handle<UpstreamConnection>, _ failure: Failure) {
        let waiting = upstreams[connection].streams?.waiting ?? []
        for upstream in waiting { upstreams[upstream].stream.connection = .none }
        closeUpstream(connection)
        for upstream in waiting where upstreams[upstream].isAlive { connectFailed(upstream, failure) }
    }

    /// A connection failed with streams on it.
    mutating func connectionBroke(_ connection: Handle<UpstreamConnection>, _ reason: ErrorCode) {
        guard upstreams[connection].phase == .frames else {
            return connectionFailed(connection, .upstreamUnavailable(reason))
        }
        var affected: [Handle<UpstreamConnection>] = []
        if let streams = upstreams[connection].streams {
            for index in streams.slots.values {
                if let upstream = upstreams.handle(at: index) { affected.append(upstream) }
            }
        }
        for upstream in affected {
            upstreams[upstream].stream.connection = .none
            upstreams[upstream].stream.isClosed = true
        }
        closeUpstream(connection)
        for upstream in affected
        where upstreams[upstream].isAlive && !upstreams[upstream].exchange.isNone
            && !upstreams[upstream].stream.isEnded
        {
            upstreamBroke(upstream, reason)
        }
    }

    /// Whether a stream's request is still being sent, and has progressed since the last check.
    mutating func isRequestProgressing(_ upstream: Handle<UpstreamConnection>) -> Bool {
        guard upstreams[upstream].kind == .stream, let session = session(of: upstream) else { return false }
        let sent = session.sent(upstreams[upstream].stream.id)
        defer { upstreams[upstream].stream.sentAtCheck = sent }
        return sent > upstreams[upstream].stream.sentAtCheck && unsent(upstream) > 0
    }

    /// A stream timed out: if the whole connection was silent as long, it may be dead, and other requests use a new
    /// one.
    mutating func suspectConnection(of upstream: Handle<UpstreamConnection>, silentFor timeout: Int64) {
        let connection = upstreams[upstream].stream.connection
        guard !connection.isNone, let streams = upstreams[connection].streams, upstreams[connection].phase == .frames,
            now &- streams.lastFrameAt >= timeout
        else { return }
        removeFromEndpoint(connection)
    }

    /// Closes a connection that had no streams for a while.
    mutating func closeIdleHTTP2(_ upstream: Handle<UpstreamConnection>) {
        guard let streams = upstreams[upstream].streams, streams.slots.isEmpty, streams.waiting.isEmpty else { return }
        directory.endpoints[Int(upstreams[upstream].endpoint)].connections.removeAll { $0 == upstream }
        streams.session.terminate(.noError)
        writeFrames(upstream: upstream)
        closeUpstream(upstream)
    }

    /// Retires the connections of an endpoint that is not used any more; they close with their last streams.
    mutating func retireConnections(of endpoint: EndpointIndex) {
        let connections = directory.endpoints[Int(endpoint)].connections
        directory.endpoints[Int(endpoint)].connections = []
        for connection in connections {
            guard let streams = upstreams[connection].streams, streams.slots.isEmpty, streams.waiting.isEmpty else {
                continue
            }
            closeUpstream(connection)
        }
    }
}
