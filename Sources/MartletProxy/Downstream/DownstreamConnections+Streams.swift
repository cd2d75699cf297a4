internal import MartletConfig
internal import MartletCore
internal import MartletDecisions
internal import MartletHTTP2
internal import MartletResponder

/// HTTP/2: streams are slots of their own, which refer to their connection.
extension DownstreamConnections {
    /// Whether the connection may start HTTP/2 with prior knowledge: on its first bytes, in clear text.
    mutating func mayBecomeHTTP2(_ downstream: Handle<DownstreamConnection>) -> Bool {
        self[downstream].reader.requests == 0 && self[downstream].origin.rules.offersHTTP2
            && !self[downstream].origin.rules.isSecure
            && !self[downstream].isStream
    }

    /// Switches the connection to HTTP/2.
    mutating func startHTTP2(_ downstream: Handle<DownstreamConnection>, _ context: inout LoopContext) {
        do throws(HTTP2Error) {
            self[downstream].streams = DownstreamHTTP2State(
                try HTTP2Session.server(context.snapshot.http2, pool: context.scratch.http2Memory))
        } catch {
            return
        }
        context.counters.http2.connections &+= 1
        self[downstream].kind = .http2
        self[downstream].phase = .frames
        self[downstream].reader.isReceivingHead = false
        if context.isDraining { self[downstream].streams?.session.goAway() }
        markDirty(downstream, &context)
    }

    /// An open stream, by its ID.
    @inline(__always)
    mutating func stream(_ streamID: Int32, of streams: DownstreamHTTP2State) -> Handle<DownstreamConnection>? {
        guard let index = streams.slots[streamID] else { return nil }
        return all.handle(at: index)
    }

    /// Allocates a slot for a new stream.
    mutating func allocateStream(
        _ streamID: Int32, of downstream: Handle<DownstreamConnection>, _ streams: DownstreamHTTP2State,
        _ context: inout LoopContext
    ) -> Handle<DownstreamConnection> {
        let stream = all.allocate()
        // The session has limited the head; as text it is a little longer.
        let headBytes = context.snapshot.limits.headerBytes &+ 1024
        if self[stream].wasStream(of: downstream) {
            self[stream].reset(fd: -1, kind: .stream, maximumHeadBytes: headBytes)
        } else {
            self[stream].open(
                fd: -1, kind: .stream, rules: self[downstream].origin.rules,
                address: self[downstream].origin.address,
                maximumHeadBytes: headBytes)
        }
        if self[downstream].origin.handler != nil {
            self[stream].origin.handler = self[downstream].origin.handler
        }
        self[stream].stream.connection = downstream
        self[stream].stream.id = streamID
        streams.slots[streamID] = stream.index
        streams.idleSince = .max
        self[downstream].reader.requests &+= 1
        context.counters.http2.streams &+= 1
        return stream
    }

    /// Removes a stream from its connection.
    mutating func removeStream(_ stream: Handle<DownstreamConnection>, _ context: inout LoopContext) {
        let connection = self[stream].stream.connection
        guard let streams = self[connection].streams else { return }
        streams.slots[self[stream].stream.id] = nil
        armFrames(connection, streams, &context)
    }

    /// Resets a stream.
    mutating func resetStream(_ stream: Handle<DownstreamConnection>, _ code: HTTP2Code, _ context: inout LoopContext) {
        let connection = self[stream].stream.connection
        self[connection].streams?.session.reset(self[stream].stream.id, code)
        markDirty(connection, &context)
    }

    /// Returns flow-control credit for consumed bytes.
    mutating func creditStream(_ stream: Handle<DownstreamConnection>, _ count: Int, _ context: inout LoopContext) {
        let connection = self[stream].stream.connection
        self[connection].streams?.session.consume(self[stream].stream.id, count)
        markDirty(connection, &context)
    }

    /// Whether bytes were sent on a stream since the last check.
    mutating func hasSentMore(_ stream: Handle<DownstreamConnection>) -> Bool {
        let sent =
            self[self[stream].stream.connection].streams?.session.sent(self[stream].stream.id) ?? 0
        defer { self[stream].stream.sentAtCheck = sent }
        return sent > self[stream].stream.sentAtCheck
    }

    /// Sets the deadline of the connection itself; its streams have their own.
    mutating func armFrames(
        _ downstream: Handle<DownstreamConnection>, _ streams: DownstreamHTTP2State, _ context: inout LoopContext
    ) {
        if !streams.session.isReceivingHead {
            streams.headStartedAt = .max
        } else if streams.headStartedAt == .max {
            streams.headStartedAt = context.now
        }
        if !self[downstream].transport.output.isEmpty {
            // Unsent output has its own deadline, which other frames of a client that reads nothing do not extend.
            if self[downstream].timer.deadline == .max { armWrite(downstream, &context) }
            return
        }
        if streams.headStartedAt != .max {
            arm(downstream, at: streams.headStartedAt &+ context.snapshot.loopTimeouts.requestHead, &context)
        } else if streams.slots.isEmpty {
            // After GOAWAY a connection stays open briefly for requests in flight.
            if streams.session.isGoingAway {
                return arm(downstream, at: context.now &+ DownstreamConnections.drainIdleTimeout, &context)
            }
            if streams.idleSince == .max { streams.idleSince = context.now }
            awaitRequest(downstream, since: streams.idleSince, &context)
        } else {
            arm(downstream, at: .max, &context)
        }
    }
}
