internal import MartletAuthenticator
internal import MartletCore
internal import MartletDecisions
internal import MartletHTTP
internal import MartletHTTP2
internal import MartletIO
internal import MartletResponder

/// Completes an exchange: the access log (always), and the reuse of the connection.
extension LoopState {
    /// Finishes a response: its last bytes are sent, the upstream connection goes back to the pool, the exchange ends.
    mutating func finishResponse(_ upstream: Handle<UpstreamConnection>) {
        let exchange = upstreams[upstream].exchange
        if exchanges[exchange].response.isChunked, !upstreams[upstream].response.framing.isNone {
            let lent = unsafe exchanges.all.address(of: exchange)
            unsafe lent.pointee.response.writeLastChunk(into: &context.scratch.pending[exchange])
        }
        sendPending(exchange, isLast: exchanges[exchange].response.closesDownstream)
        guard exchanges[exchange].isAlive else { return }
        exchanges[exchange].finishStream(&downstreams, &context)
        upstreams.detach(upstream, of: exchange, &exchanges, &context)
        complete(exchange)
    }

    /// Ends an exchange whose response was handed over; its connection waits for the next request or closes.
    mutating func complete(_ exchange: Handle<Exchange>) {
        let downstream = exchanges[exchange].downstream
        if exchanges[exchange].isStream { return completeStream(exchange) }
        let closes = exchanges[exchange].response.closesDownstream
        downstreams[downstream].ending.hasUnreadRequest = !exchanges[exchange].body.isComplete
        finish(exchange)
        downstreams[downstream].isPaused = false
        downstreams[downstream].phase = .head
        let hasOutput = !downstreams[downstream].transport.output.isEmpty
        switch downstreams[downstream].ending.responseEnded(closes: closes, hasOutput: hasOutput) {
        case .keep:
            if !hasOutput { downstreams.awaitRequest(downstream, &context) }
            if downstreams[downstream].transport.isReadClosed || downstreams[downstream].transport.mayHaveUnread
                || !downstreams[downstream].reader.input.isEmpty
            {
                downstreams.markReady(downstream, &context)
            }
        case .closeAfterFlush: downstreams.arm(downstream, at: now &+ context.snapshot.loopTimeouts.bodyIdle, &context)
        case .close: endConnection(downstream)
        }
    }

    /// Logs and counts the exchange and frees its slot.
    mutating func finish(_ exchange: Handle<Exchange>) {
        let downstream = exchanges[exchange].downstream
        let microseconds = Int((now &- exchanges[exchange].record.started) / 1000)
        let reason = exchanges[exchange].record.reason
        context.counters.count(
            route: exchanges[exchange].record.routeSlot, status: exchanges[exchange].response.status, reason: reason,
            microseconds: exchanges.isTunnel(exchange)
                ? exchanges.handshakeMicroseconds(ofTunnel: exchange) : microseconds,
            upstream: Int(exchanges[exchange].forwarding.cluster.rawValue),
            provider: Int(exchanges[exchange].credential.provider))
        if context.tracing.isOn {
            RequestTracing.finish(exchange, microseconds: microseconds, &exchanges, &downstreams, &context)
        }
        AccessRecords.write(
            exchange, microseconds: microseconds, &exchanges, &downstreams, &upstreams.directory, &context)
        if context.logs.isWatched {
            AccessRecords.show(exchange, &exchanges, &downstreams, &upstreams.directory, &context)
        }
        if !exchanges[exchange].tunnel.isNone { exchanges.releaseTunnel(of: exchange, &context) }
        if exchanges[exchange].credential.retainsToken { exchanges.endedWithToken.append(exchange) }
        if exchanges[exchange].credential.setsCookie { exchanges.cookies.remove(exchange) }
        downstreams.dropPipe(of: downstream, &context)
        exchanges[exchange].end()
        exchanges.all.free(exchange)
        downstreams[downstream].exchange = .none
    }
}
