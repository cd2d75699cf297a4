private import CLinux
internal import MartletCore
internal import MartletDecisions
internal import MartletHTTP2
internal import MartletIO

/// How downstream connections end.
///
/// A connection that is closed while it has unread bytes is reset, and the client may lose the response. So whatever
/// ends a connection orderly closes it for writing first, and discards what still arrives (``ConnectionEnding``).
extension LoopState {
    /// The client has disconnected, or nothing reaches it: its exchange ends here and upstream.
    mutating func abandon(_ downstream: Handle<DownstreamConnection>) {
        guard downstreams[downstream].isAlive else { return }
        let exchange = downstreams[downstream].exchange
        if !exchange.isNone {
            exchanges.dropUpstream(of: exchange, &upstreams, &context)
            if exchanges[exchange].response.status == 0 { exchanges[exchange].response.status = 499 }
            exchanges[exchange].record.reason = context.counters.reason("request.client_left")
            if !exchanges[exchange].request.check.isEmpty { CheckExchanges.count(exchange, &exchanges, &context) }
            // Whoever still reads must not take a part for the whole: a response may end with its connection.
            if exchanges[exchange].response.hasStarted, downstreams[downstream].kind == .http1 {
                Socket.resetOnClose(downstreams[downstream].transport.fd)
            }
            finish(exchange)
        }
        if downstreams[downstream].isStream { downstreams.resetStream(downstream, .cancel, &context) }
        close(downstream: downstream)
    }

    /// Closes a downstream connection and frees its slot.
    mutating func close(downstream: Handle<DownstreamConnection>) {
        guard downstreams[downstream].isAlive else { return }
        if downstreams[downstream].kind == .http2 {
            abandonStreams(of: downstream)
            if let streams = downstreams[downstream].streams { context.schedule.closedSessions.append(streams.session) }
        }
        downstreams.dropPipe(of: downstream, &context)
        if downstreams[downstream].isStream {
            downstreams.removeStream(downstream, &context)
        } else {
            if downstreams[downstream].reader.requests == 1 { downstreams.acceptor.deferAccept.recordSingleUse() }
            _ = CLinux.close(downstreams[downstream].transport.fd)
            downstreams.acceptor.release(
                downstreams[downstream].origin.peerBytes, downstreams[downstream].origin.admission)
        }
        downstreams[downstream].close()
        downstreams.all.free(downstream)
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
        case .linger: downstreams.startLinger(downstream, &context)
        case .close: close(downstream: downstream)
        }
    }

    /// Closes the connection as soon as its output is sent.
    private mutating func closeAfterFlush(_ downstream: Handle<DownstreamConnection>) {
        downstreams[downstream].phase = .head
        let hasOutput = !downstreams[downstream].transport.output.isEmpty
        switch downstreams[downstream].ending.responseEnded(closes: true, hasOutput: hasOutput) {
        case .keep: break
        case .closeAfterFlush: downstreams.arm(downstream, at: now &+ context.snapshot.loopTimeouts.bodyIdle, &context)
        case .close: endConnection(downstream)
        }
    }

    /// Keeps reading what a rejected client still sends, so that it sees the response and not a reset.
    mutating func linger(_ downstream: Handle<DownstreamConnection>, received: Int) {
        if !downstreams[downstream].ending.discard(received) { close(downstream: downstream) }
    }

    /// The client has closed its sending side, and nothing is read from it at the moment.
    mutating func halfClosed(_ downstream: Handle<DownstreamConnection>) {
        let exchange = downstreams[downstream].exchange
        guard downstreams[downstream].phase == .exchange, exchanges.isLast(exchange),
            exchanges[exchange].body.isComplete
        else {
            return downstreams.handleHalfClose(downstream, &exchanges, &context)
        }
        abandon(downstream)
    }

    /// The client has closed its sending side.
    mutating func downstreamReadClosed(_ downstream: Handle<DownstreamConnection>) {
        let exchange = downstreams[downstream].exchange
        let halfClose = HalfClose(
            in: downstreams[downstream].phase, isTunnel: exchanges.isTunnel(exchange),
            isRequestComplete: !exchange.isNone && exchanges[exchange].body.isComplete,
            isLast: exchanges.isLast(exchange),
            hasOutput: !downstreams[downstream].transport.output.isEmpty)
        switch halfClose {
        case .close: close(downstream: downstream)
        case .closeAfterFlush: closeAfterFlush(downstream)
        case .abandon: abandon(downstream)
        case .probe: downstreams.handleHalfClose(downstream, &exchanges, &context)
        case .endTunnelSide: tunnelDownstreamEnded(exchange)
        case .wait: break
        }
    }

    /// Sends the probe of ``Exchanges/handleHalfClose(_:_:_:)``, unless unsent output serves as one.
    mutating func probePeer(_ downstream: Handle<DownstreamConnection>) {
        let exchange = downstreams[downstream].exchange
        guard downstreams[downstream].transport.output.isEmpty,
            !downstreams.hasResponseInPipe(downstream, &exchanges, &upstreams)
        else {
            return downstreams.arm(downstream, at: now &+ context.snapshot.loopTimeouts.bodyIdle, &context)
        }
        downstreams.arm(downstream, at: downstreams[downstream].probe.deadlineAfterwards, &context)
        guard !exchange.isNone else { return }
        let message = PeerProbe.Message(
            isHTTP10: exchanges[exchange].request.isHTTP10,
            hasResponseStarted: exchanges[exchange].response.hasStarted,
            isChunked: exchanges[exchange].response.isChunked)
        guard message != .none else { return }
        context.scratch.pending[exchange].removeAll()
        switch message {
        case .none: break
        case .interimResponse: context.scratch.pending[exchange].append("HTTP/1.1 100 Continue\r\n\r\n")
        case .leadingZero: context.scratch.pending[exchange].append("0")
        }
        sendPending(exchange)
    }
}
