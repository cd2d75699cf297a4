private import CLinux
internal import MartletConfig
internal import MartletCore
internal import MartletHTTP
internal import MartletHTTP2
internal import MartletIO
internal import MartletProvider
internal import MartletResponder
internal import MartletTLS

/// How downstream connections end.
extension EventLoop {
    /// The client has closed its sending side.
    mutating func downstreamReadClosed(_ downstream: Handle<DownstreamConnection>) {
        let exchange = downstreams[downstream].exchange
        let halfClose = HalfClose(
            in: downstreams[downstream].phase, isTunnel: isTunnel(exchange),
            isRequestComplete: !exchange.isNone && exchanges[exchange].body.isComplete,
            hasOutput: !downstreams[downstream].transport.output.isEmpty)
        switch halfClose {
        case .close: close(downstream: downstream)
        case .closeAfterFlush: closeAfterFlush(downstream)
        case .abandon: abandon(downstream)
        case .probe: handleHalfClose(downstream)
        case .endTunnelSide: tunnelDownstreamEnded(exchange)
        case .wait: break
        }
    }

    /// A client that half-closed still gets its response; one that disconnected does not need it.
    ///
    /// Only sending something tells the two apart, so a waiting HTTP/1.1 client is sent bytes without effect
    /// (``PeerProbe/Message``).
    mutating func handleHalfClose(_ downstream: Handle<DownstreamConnection>) {
        guard downstreams[downstream].phase == .exchange,
            exchanges[downstreams[downstream].exchange].body.isComplete,
            downstreams[downstream].probe.schedule(restoring: downstreams[downstream].timer.deadline)
        else { return }
        arm(downstream: downstream, at: now &+ PeerProbe.delay)
    }

    /// Sends the probe of ``handleHalfClose(_:)``, unless unsent output serves as one.
    mutating func probePeer(_ downstream: Handle<DownstreamConnection>) {
        let exchange = downstreams[downstream].exchange
        guard downstreams[downstream].transport.output.isEmpty, !hasResponseInPipe(downstream) else {
            return arm(downstream: downstream, at: now &+ snapshot.loopTimeouts.bodyIdle)
        }
        arm(downstream: downstream, at: downstreams[downstream].probe.deadlineAfterwards)
        guard !exchange.isNone else { return }
        let message = PeerProbe.Message(
            isHTTP10: exchanges[exchange].request.isHTTP10,
            hasResponseStarted: exchanges[exchange].response.hasStarted,
            isChunked: exchanges[exchange].response.isChunked)
        guard message != .none else { return }
        staging.removeAll()
        switch message {
        case .none: break
        case .interimResponse: staging.append("HTTP/1.1 100 Continue\r\n\r\n")
        case .leadingZero: staging.append("0")
        }
        sendStaging(exchange)
    }

    /// Keeps reading what a rejected client still sends, so that it sees the response and not a reset.
    mutating func linger(_ downstream: Handle<DownstreamConnection>, received: Int) {
        if !downstreams[downstream].ending.discard(received) { close(downstream: downstream) }
    }

    /// Discards what the client of a connection that is closed for writing still sends.
    private mutating func startLinger(_ downstream: Handle<DownstreamConnection>) {
        downstreams[downstream].phase = .lingering
        register(downstream)
        downstreams[downstream].ending.startLinger()
        downstreams[downstream].reader.input.release()
        arm(downstream: downstream, at: now &+ ConnectionEnding.lingerTime)
        markReady(downstream: downstream)
    }

    /// Closes the connection as soon as its output is sent.
    mutating func closeAfterFlush(_ downstream: Handle<DownstreamConnection>) {
        downstreams[downstream].phase = .head
        let hasOutput = !downstreams[downstream].transport.output.isEmpty
        switch downstreams[downstream].ending.responseEnded(closes: true, hasOutput: hasOutput) {
        case .keep: break
        case .closeAfterFlush: arm(downstream: downstream, at: now &+ snapshot.loopTimeouts.bodyIdle)
        case .close: endConnection(downstream)
        }
    }

    /// Closes a connection whose output is sent.
    mutating func endConnection(_ downstream: Handle<DownstreamConnection>) {
        // The poller may have bytes for this iteration that were not dispatched yet: the kernel knows.
        let mayBeSending =
            downstreams[downstream].ending.hasUnreadRequest || downstreams[downstream].transport.mayHaveUnread
            || !downstreams[downstream].reader.input.isEmpty || Socket.hasUnread(downstreams[downstream].transport.fd)
        // The last bytes may wait in the kernel for the FIN: closing with unread input would discard them.
        downstreams[downstream].transport.closeWrite()
        let isReadClosed = downstreams[downstream].transport.isReadClosed
        switch downstreams[downstream].ending.outputSent(mayBeSending: mayBeSending, isReadClosed: isReadClosed) {
        case .linger: startLinger(downstream)
        case .close: close(downstream: downstream)
        }
    }

    /// Closes a downstream connection and frees its slot.
    mutating func close(downstream: Handle<DownstreamConnection>) {
        guard downstreams[downstream].isAlive else { return }
        if downstreams[downstream].kind == .http2 {
            abandonStreams(of: downstream)
            if let streams = downstreams[downstream].streams { schedule.closedSessions.append(streams.session) }
        }
        dropPipe(ofDownstream: downstream)
        if downstreams[downstream].isStream {
            removeStream(downstream)
        } else {
            if downstreams[downstream].reader.requests == 1 { acceptor.deferAccept.recordSingleUse() }
            _ = CLinux.close(downstreams[downstream].transport.fd)
            acceptor.release(downstreams[downstream].origin.peerBytes, downstreams[downstream].origin.admission)
        }
        downstreams[downstream].close()
        downstreams.free(downstream)
    }

    /// The client disconnected: its exchange ends here and upstream.
    mutating func abandon(_ downstream: Handle<DownstreamConnection>) {
        guard downstreams[downstream].isAlive else { return }
        let exchange = downstreams[downstream].exchange
        if !exchange.isNone {
            dropUpstream(of: exchange)
            if exchanges[exchange].response.status == 0 { exchanges[exchange].response.status = 499 }
            exchanges[exchange].record.reason = counters.reason("request.client_left")
            finish(exchange)
        }
        if downstreams[downstream].isStream { resetStream(downstream, .cancel) }
        close(downstream: downstream)
    }

    /// The deadline of a downstream connection has passed.
    mutating func downstreamTimedOut(_ downstream: Handle<DownstreamConnection>) {
        let timeout = DownstreamTimeout(
            in: downstreams[downstream].phase, isStream: downstreams[downstream].isStream,
            isReceivingHead: downstreams[downstream].reader.isReceivingHead)
        switch timeout {
        case .close: close(downstream: downstream)
        case .failHandshake: handshakeTimedOut(downstream)
        case .closeFrames: framesTimedOut(downstream)
        case .checkWriting: writeTimedOut(downstream)
        case .rejectHead:
            downstreams[downstream].reader.isReceivingHead = false
            reject(beginUnparsed(downstream), .requestTimeout)
        case .failVerification: resumeRequest(downstream, with: .failure(.unavailable("auth.timed_out")))
        case .checkExchange: exchangeTimedOut(downstreams[downstream].exchange)
        }
    }
}
