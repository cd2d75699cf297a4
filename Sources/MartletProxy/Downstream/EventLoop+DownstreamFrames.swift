internal import MartletConfig
internal import MartletCore
internal import MartletHTTP
internal import MartletHTTP2
internal import MartletReports
internal import MartletTLS

/// HTTP/2 downstream: writing frames, and the deadlines of the connection.
extension EventLoop {
    /// Schedules the connection's frames to be written at the end of the iteration.
    mutating func markDirty(downstream: Handle<DownstreamConnection>) {
        guard !downstreams[downstream].isDirty else { return }
        downstreams[downstream].isDirty = true
        schedule.dirty.append(EventToken(downstream: downstream))
    }

    /// Writes the frames of every dirty connection.
    mutating func writeAllFrames() {
        while !schedule.dirty.isEmpty {
            let turn = schedule.dirty
            schedule.dirty.removeAll(keepingCapacity: true)
            for token in turn {
                switch token.kind {
                case .downstream where downstreams.contains(token.downstream):
                    writeFrames(downstream: token.downstream)
                case .upstream where upstreams.contains(token.upstream): writeFrames(upstream: token.upstream)
                default: break
                }
            }
        }
    }

    mutating func writeFrames(downstream: Handle<DownstreamConnection>) {
        downstreams[downstream].isDirty = false
        guard let streams = downstreams[downstream].streams else { return }
        let lent = unsafe downstreams.address(of: downstream)
        switch unsafe lent.pointee.transport.sendFrames(of: streams.session, by: &plaintext, now: now) {
        case .failed: return abandon(downstream)
        case .sent, .buffered: framesWritten(downstream)
        case .blocked, nil: break
        }
        guard downstreams[downstream].isAlive else { return }
        unsafe serveDownstreamEvents(of: downstream, streams, UnsafeBufferPointer(start: nil, count: 0))
        if counters.tunnels.open > 0 { advanceTunnels(streams) }
        guard downstreams[downstream].isAlive, downstreams[downstream].transport.output.isEmpty else { return }
        if downstreams[downstream].ending.closesAfterFlush { return endConnection(downstream) }
        closeIfFinished(downstream, streams)
    }

    /// Releases the sessions of connections that were closed in this iteration: nothing refers to them any more.
    mutating func freeClosedSessions() {
        while let session = schedule.closedSessions.popLast() { session.free() }
    }

    /// Advances tunnels that may have waited for these frames to be written.
    mutating func advanceTunnels(_ streams: DownstreamHTTP2State) {
        for index in streams.slots.values {
            guard let stream = downstreams.handle(at: index), isTunnel(downstreams[stream].exchange) else { continue }
            advanceTunnel(downstreams[stream].exchange)
        }
    }

    /// The kernel accepted frames that had been buffered.
    mutating func framesWritten(_ downstream: Handle<DownstreamConnection>) {
        guard downstreams[downstream].transport.output.isEmpty else { return armWrite(downstream) }
        if downstreams[downstream].ending.closesAfterFlush { return endConnection(downstream) }
        guard let streams = downstreams[downstream].streams else { return }
        armFrames(downstream, streams)
        if streams.session.hasOutput { markDirty(downstream: downstream) }
        if downstreams[downstream].transport.mayHaveUnread { markReady(downstream: downstream) }
    }

    /// Closes a connection that has sent GOAWAY and has no open streams.
    mutating func closeIfFinished(_ downstream: Handle<DownstreamConnection>, _ streams: DownstreamHTTP2State) {
        guard streams.slots.isEmpty, streams.session.isFinished else { return }
        endConnection(downstream)
    }

    /// Sets the deadline of the connection itself; its streams have their own.
    mutating func armFrames(_ downstream: Handle<DownstreamConnection>, _ streams: DownstreamHTTP2State) {
        if !streams.session.isReceivingHead {
            streams.headStartedAt = .max
        } else if streams.headStartedAt == .max {
            streams.headStartedAt = now
        }
        if !downstreams[downstream].transport.output.isEmpty {
            // Unsent output has its own deadline, which other frames of a client that reads nothing do not extend.
            if downstreams[downstream].timer.deadline == .max { armWrite(downstream) }
            return
        }
        if streams.headStartedAt != .max {
            arm(downstream: downstream, at: streams.headStartedAt &+ snapshot.loopTimeouts.requestHead)
        } else if streams.slots.isEmpty {
            // After GOAWAY a connection stays open briefly for requests in flight.
            if streams.session.isGoingAway { return arm(downstream: downstream, at: now &+ EventLoop.drainIdleTimeout) }
            if streams.idleSince == .max { streams.idleSince = now }
            awaitRequest(downstream, since: streams.idleSince)
        } else {
            arm(downstream: downstream, at: .max)
        }
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
        markDirty(downstream: downstream)
    }
}
