internal import MartletCore
internal import MartletDecisions
internal import MartletHTTP2

/// HTTP/2: streams are slots of their own, which refer to their connection.
extension UpstreamConnections {
    mutating func openSession(_ connection: Handle<UpstreamConnection>, _ context: inout LoopContext) -> Bool {
        do throws(HTTP2Error) {
            var options = HTTP2Options()
            options.headerBytes = 64 * 1024
            options.headerFields = 256
            options.initialWindow = 256 * 1024
            self[connection].streams = UpstreamHTTP2State(
                try HTTP2Session.client(options, pool: context.scratch.http2Memory))
            return true
        } catch {
            return false
        }
    }

    /// The framing of a stream's connection; `nil` after that has failed.
    mutating func session(of stream: Handle<UpstreamConnection>) -> HTTP2Session? {
        let connection = self[stream].stream.connection
        return connection.isNone ? nil : self[connection].streams?.session
    }

    /// An open stream, by its ID.
    @inline(__always)
    mutating func stream(_ streamID: Int32, of streams: UpstreamHTTP2State) -> Handle<UpstreamConnection>? {
        guard let index = streams.slots[streamID] else { return nil }
        return all.handle(at: index)
    }

    mutating func hasStreamCapacity(_ connection: Handle<UpstreamConnection>) -> Bool {
        guard let streams = self[connection].streams else { return false }
        guard self[connection].phase == .frames else { return streams.waiting.count < UpstreamConnections.waitingLimit }
        return streams.session.canOpenStream
    }

    /// How many requests a connection of HTTP/2 to an upstream carries at a time: the most that an endpoint permits.
    mutating func streamsPerConnection(of cluster: ClusterIndex) -> Int {
        var most = 1
        for member in directory.clusters[Int(cluster)].members
        where directory.endpoints[Int(member)].transport.isHTTP2 {
            let open = directory.endpoints[Int(member)].connections.first { self[$0].phase == .frames }
            most = max(most, open.flatMap { self[$0].streams?.session.streamLimit } ?? UpstreamConnections.waitingLimit)
        }
        return most
    }

    /// The socket is writable again.
    mutating func flushFrames(_ upstream: Handle<UpstreamConnection>, _ context: inout LoopContext) {
        flushTransport(upstream, &context)
        if self[upstream].transport.output.isEmpty, self[upstream].streams?.session.hasOutput == true {
            markDirty(upstream, &context)
        }
    }

    /// Returns flow-control credit for consumed bytes.
    mutating func credit(_ stream: Handle<UpstreamConnection>, _ count: Int, _ context: inout LoopContext) {
        // Bytes received before the connection failed are still used.
        guard let session = session(of: stream) else { return }
        session.consume(self[stream].stream.id, count)
        markDirty(self[stream].stream.connection, &context)
    }

    /// Whether a stream's request is still being sent, and has progressed since the last check.
    mutating func isRequestProgressing(_ upstream: Handle<UpstreamConnection>) -> Bool {
        guard self[upstream].kind == .stream, let session = session(of: upstream) else { return false }
        let sent = session.sent(self[upstream].stream.id)
        defer { self[upstream].stream.sentAtCheck = sent }
        return sent > self[upstream].stream.sentAtCheck && unsent(upstream) > 0
    }

    /// A stream timed out: if the whole connection was silent as long, it may be dead, and other requests use a new
    /// one.
    mutating func suspectConnection(
        of upstream: Handle<UpstreamConnection>, silentFor timeout: Int64, _ context: inout LoopContext
    ) {
        let connection = self[upstream].stream.connection
        guard !connection.isNone, let streams = self[connection].streams, self[connection].phase == .frames,
            context.now &- streams.lastFrameAt >= timeout
        else { return }
        removeFromEndpoint(connection)
    }

    /// Removes a stream from its connection, and resets it if it is not finished.
    mutating func leaveConnection(_ upstream: Handle<UpstreamConnection>, _ context: inout LoopContext) {
        let connection = self[upstream].stream.connection
        guard !connection.isNone, let streams = self[connection].streams else { return }
        streams.waiting.removeAll { $0 == upstream }
        guard self[upstream].stream.id != 0 else { return }
        streams.slots[self[upstream].stream.id] = nil
        let hasSentRequest =
            self[upstream].stream.hasEndedRequest
            && streams.session.unsent(self[upstream].stream.id) == 0
        let isOver = self[upstream].stream.isClosed || self[upstream].stream.isEnded && hasSentRequest
        if !isOver { streams.session.reset(self[upstream].stream.id, .cancel) }
        markDirty(connection, &context)
        if streams.slots.isEmpty, streams.waiting.isEmpty {
            arm(connection, at: context.now &+ self[connection].idleTimeout, &context)
        }
    }

    /// A connection of an upstream that carries no request: the one that has been idle for longest at its endpoint, or
    /// one of HTTP/2 without streams.
    mutating func idleConnection(of cluster: ClusterIndex) -> Handle<UpstreamConnection>? {
        if let idle = directory.oldestIdle(of: cluster) { return idle }
        guard directory.clusters[Int(cluster)].hasStreams else { return nil }
        for member in directory.clusters[Int(cluster)].members {
            for connection in directory.endpoints[Int(member)].connections
            where self[connection].phase == .frames && isWithoutStreams(connection) { return connection }
        }
        return nil
    }

    private mutating func isWithoutStreams(_ connection: Handle<UpstreamConnection>) -> Bool {
        guard let streams = self[connection].streams else { return false }
        return streams.slots.isEmpty && streams.waiting.isEmpty
    }

    /// Takes the connection out of its endpoint's pool: it is idle, or has failed.
    mutating func removeFromEndpoint(_ upstream: Handle<UpstreamConnection>) {
        directory.endpoints[Int(self[upstream].endpoint)].connections.removeAll { $0 == upstream }
    }

    /// Retires the connections of an endpoint that is not used any more; they close with their last streams.
    mutating func retireConnections(of endpoint: EndpointIndex, _ context: inout LoopContext) {
        let connections = directory.endpoints[Int(endpoint)].connections
        directory.endpoints[Int(endpoint)].connections = []
        for connection in connections {
            guard let streams = self[connection].streams, streams.slots.isEmpty, streams.waiting.isEmpty else {
                continue
            }
            close(connection, &context)
        }
    }
}
