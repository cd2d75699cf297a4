private import CLinux
internal import MartletConfig
internal import MartletCore
internal import MartletHTTP
internal import MartletHTTP2
internal import MartletTLS

/// HTTP/2 downstream: writing frames, and the deadlines of the connection.
extension EventLoop {
    /// Schedules the connection's frames to be written at the end of the iteration.
    mutating func markDirty(downstream: Int32) {
        guard !downstreams[downstream].isDirty else { return }
        downstreams[downstream].isDirty = true
        dirty.append(EventToken(.downstream, index: downstream, generation: downstreams[downstream].generation))
    }

    /// Writes the frames of every dirty connection.
    mutating func writeAllFrames() {
        while !dirty.isEmpty {
            let turn = dirty
            dirty.removeAll(keepingCapacity: true)
            for token in turn {
                switch token.kind {
                case .downstream where downstreams.contains(token.index, token.generation):
                    writeFrames(downstream: token.index)
                case .upstream where upstreams.contains(token.index, token.generation):
                    writeFrames(upstream: token.index)
                default: break
                }
            }
        }
    }

    mutating func writeFrames(downstream: Int32) {
        downstreams[downstream].isDirty = false
        guard let streams = downstreams[downstream].streams else { return }
        let generation = downstreams[downstream].generation
        while downstreams[downstream].output.count < EventLoop.frameBatchBytes, streams.session.hasOutput {
            if downstreams[downstream].rules.isSecure {
                plaintext.removeAll()
                streams.session.takeOutput(into: &plaintext, upTo: EventLoop.frameBatchBytes)
                guard !plaintext.isEmpty, encryptFrames(downstream) else { break }
                flush(downstream: downstream)
            } else {
                plaintext.removeAll()
                streams.session.takeOutput(into: &plaintext, upTo: EventLoop.frameBatchBytes)
                if plaintext.isEmpty { break }
                sendFrames(to: downstream)
            }
            guard downstreams.contains(downstream, generation) else { return }
        }
        unsafe serveDownstreamEvents(of: downstream, streams, UnsafeBufferPointer(start: nil, count: 0))
        if counters.tunnelsOpen > 0 { advanceTunnels(streams) }
        guard downstreams.contains(downstream, generation), downstreams[downstream].output.isEmpty else { return }
        if downstreams[downstream].closesAfterFlush { return endConnection(downstream) }
        closeIfFinished(downstream, streams)
    }

    /// Sends the frames in `plaintext`; bytes that the kernel does not accept are buffered in `output`.
    private mutating func sendFrames(to downstream: Int32) {
        guard downstreams[downstream].output.isEmpty else {
            unsafe downstreams[downstream].output.append(plaintext.bytes)
            return flush(downstream: downstream)
        }
        let sent = unsafe martlet_send(
            downstreams[downstream].fd, plaintext.bytes.baseAddress, plaintext.count, Int32(MSG_NOSIGNAL))
        if sent < 0 {
            let reason = martlet_errno()
            guard reason == EAGAIN || reason == EINTR else { return abandon(downstream) }
        } else {
            plaintext.consume(sent)
            downstreams[downstream].lastWriteAt = now
        }
        if !plaintext.isEmpty { unsafe downstreams[downstream].output.append(plaintext.bytes) }
        if sent >= 0 { framesWritten(downstream) }
    }

    /// Releases the sessions of connections that were closed in this iteration: nothing refers to them any more.
    mutating func freeClosedSessions() {
        while let session = closedSessions.popLast() { session.free() }
    }

    /// Advances tunnels that may have waited for these frames to be written.
    mutating func advanceTunnels(_ streams: DownstreamHTTP2State) {
        for stream in Array(streams.slots.values)
        where downstreams[stream].isAlive && isTunnel(downstreams[stream].exchange) {
            advanceTunnel(downstreams[stream].exchange)
        }
    }

    /// Encrypts `plaintext`.
    mutating func encryptFrames(_ downstream: Int32) -> Bool {
        do {
            try unsafe downstreams[downstream].engine?.send(plaintext.bytes)
        } catch {
            abandon(downstream)
            return false
        }
        downstreams[downstream].engine?.dequeueCiphertext(into: &downstreams[downstream].output)
        return true
    }

    /// The kernel accepted frames that had been buffered.
    mutating func framesWritten(_ downstream: Int32) {
        guard downstreams[downstream].output.isEmpty else { return armWrite(downstream) }
        downstreams[downstream].output.release()
        if downstreams[downstream].closesAfterFlush { return endConnection(downstream) }
        guard let streams = downstreams[downstream].streams else { return }
        armFrames(downstream, streams)
        if streams.session.hasOutput { markDirty(downstream: downstream) }
        if downstreams[downstream].mayHaveUnread { markReady(downstream: downstream) }
    }

    /// Closes a connection that has sent GOAWAY and has no open streams.
    mutating func closeIfFinished(_ downstream: Int32, _ streams: DownstreamHTTP2State) {
        guard streams.slots.isEmpty, streams.session.isFinished else { return }
        endConnection(downstream)
    }

    /// Sets the deadline of the connection itself; its streams have their own.
    mutating func armFrames(_ downstream: Int32, _ streams: DownstreamHTTP2State) {
        if !streams.session.isReceivingHead {
            streams.headStartedAt = .max
        } else if streams.headStartedAt == .max {
            streams.headStartedAt = now
        }
        if !downstreams[downstream].output.isEmpty {
            // Unsent output has its own deadline, which other frames of a client that reads nothing do not extend.
            if downstreams[downstream].deadline == .max { armWrite(downstream) }
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
    mutating func framesTimedOut(_ downstream: Int32) {
        guard let streams = downstreams[downstream].streams, downstreams[downstream].output.isEmpty else {
            return abandon(downstream)
        }
        if streams.headStartedAt != .max {
            streams.session.terminate(.enhanceYourCalm)
            abandonStreams(of: downstream)
        } else {
            streams.session.goAway()
            streams.session.goAway()
        }
        downstreams[downstream].closesAfterFlush = true
        markDirty(downstream: downstream)
    }
}
