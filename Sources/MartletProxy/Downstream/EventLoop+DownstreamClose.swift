private import CLinux
internal import MartletConfig
internal import MartletCore
internal import MartletHTTP
internal import MartletHTTP2
internal import MartletIO
internal import MartletProvider
internal import MartletTLS

/// How downstream connections end.
extension EventLoop {
    /// The client has closed its sending side.
    mutating func downstreamReadClosed(_ downstream: Int32) {
        switch downstreams[downstream].phase {
        case .proxyHeader, .handshake: close(downstream: downstream)
        case .frames: abandon(downstream)
        case .head: downstreams[downstream].output.isEmpty ? close(downstream: downstream) : closeAfterFlush(downstream)
        case .lingering: close(downstream: downstream)
        case .authenticating: handleHalfClose(downstream)
        case .exchange where isTunnel(downstreams[downstream].exchange):
            tunnelDownstreamEnded(downstreams[downstream].exchange)
        case .exchange:
            exchanges[downstreams[downstream].exchange].isRequestComplete
                ? handleHalfClose(downstream)
                : abandon(downstream)
        }
    }

    /// A client that half-closed still gets its response; one that disconnected does not need it.
    ///
    /// Only sending something tells the two apart, so a waiting HTTP/1.1 client is sent bytes without effect: a 100
    /// (Continue), which it must expect (RFC 9110 §15.2), or a leading zero of the next chunk's size (RFC 9112 §7.1).
    mutating func handleHalfClose(_ downstream: Int32) {
        guard downstreams[downstream].phase == .exchange, !downstreams[downstream].hasProbed,
            exchanges[downstreams[downstream].exchange].isRequestComplete
        else { return }
        downstreams[downstream].hasProbed = true
        downstreams[downstream].isProbePending = true
        downstreams[downstream].deadlineAfterProbe = downstreams[downstream].deadline
        arm(downstream: downstream, at: now &+ 400_000_000)
    }

    /// Sends the probe of ``handleHalfClose(_:)``, unless unsent output serves as one.
    mutating func probePeer(_ downstream: Int32) {
        let exchange = downstreams[downstream].exchange
        guard downstreams[downstream].output.isEmpty, !hasResponseInPipe(downstream) else {
            return arm(downstream: downstream, at: now &+ snapshot.loopTimeouts.bodyIdle)
        }
        arm(downstream: downstream, at: downstreams[downstream].deadlineAfterProbe)
        guard exchange >= 0, !exchanges[exchange].isHTTP10 else { return }
        staging.removeAll()
        if !exchanges[exchange].hasResponseStarted {
            staging.append("HTTP/1.1 100 Continue\r\n\r\n")
        } else if exchanges[exchange].isResponseChunked {
            staging.append("0")
        }
        sendStaging(exchange)
    }

    /// Keeps reading what a rejected client still sends, so that it sees the response and not a reset.
    mutating func linger(_ downstream: Int32, received: Int) {
        downstreams[downstream].lingerBudget -= received
        if downstreams[downstream].lingerBudget < 0 { close(downstream: downstream) }
    }

    /// Shuts down writing and starts to linger.
    mutating func startLinger(_ downstream: Int32) {
        sendCloseNotify(downstream)
        // The last bytes may wait in the kernel for the FIN: closing with unread input would discard them.
        _ = shutdown(downstreams[downstream].fd, Int32(SHUT_WR))
        guard !downstreams[downstream].isReadClosed else { return close(downstream: downstream) }
        downstreams[downstream].phase = .lingering
        register(downstream)
        downstreams[downstream].closesAfterFlush = false
        downstreams[downstream].lingerBudget = EventLoop.lingerBytes
        downstreams[downstream].input.release()
        arm(downstream: downstream, at: now &+ EventLoop.lingerTime)
        markReady(downstream: downstream)
    }

    /// Closes a downstream connection and frees its slot.
    mutating func close(downstream: Int32) {
        guard downstreams[downstream].isAlive else { return }
        if downstreams[downstream].kind == .http2 {
            abandonStreams(of: downstream)
            if let streams = downstreams[downstream].streams { closedSessions.append(streams.session) }
        }
        dropPipe(ofDownstream: downstream)
        if downstreams[downstream].isStream {
            removeStream(downstream)
        } else {
            if downstreams[downstream].requests == 1 { deferAccept.recordSingleUse() }
            _ = CLinux.close(downstreams[downstream].fd)
            connections.leave(downstreams[downstream].peerBytes, downstreams[downstream].admission)
        }
        downstreams[downstream].close()
        downstreams.free(downstream)
    }

    /// The client disconnected: its exchange ends here and upstream.
    mutating func abandon(_ downstream: Int32) {
        guard downstreams[downstream].isAlive else { return }
        let exchange = downstreams[downstream].exchange
        if exchange >= 0 {
            dropUpstream(of: exchange)
            if exchanges[exchange].status == 0 { exchanges[exchange].status = 499 }
            exchanges[exchange].reason = counters.reason("request.client_left")
            finish(exchange)
        }
        if downstreams[downstream].isStream { resetStream(downstream, .cancel) }
        close(downstream: downstream)
    }

    /// The deadline of a downstream connection has passed.
    mutating func downstreamTimedOut(_ downstream: Int32) {
        switch downstreams[downstream].phase {
        case .lingering, .proxyHeader: close(downstream: downstream)
        case .handshake: handshakeTimedOut(downstream)
        case .frames: framesTimedOut(downstream)
        case .head:
            if downstreams[downstream].isStream { return writeTimedOut(downstream) }
            guard downstreams[downstream].isReceivingHead else { return close(downstream: downstream) }
            downstreams[downstream].isReceivingHead = false
            reject(beginUnparsed(downstream), .requestTimeout)
        case .authenticating: resumeRequest(downstream, with: .failure(.unavailable("auth.timed_out")))
        case .exchange: exchangeTimedOut(downstreams[downstream].exchange)
        }
    }

    /// How long, and how much, is read from a client that was already answered and closed.
    static let lingerTime: Int64 = 2_000_000_000

    static let lingerBytes = 1024 * 1024
}
