private import CLinux
internal import MartletConfig
internal import MartletCore
internal import MartletHTTP
internal import MartletHTTP2
internal import MartletIO
internal import MartletProvider

/// Completes an exchange: error responses, the access log (always), and the reuse of the connection.
extension EventLoop {
    /// Responds with a failure if no response has started; otherwise the response is truncated.
    mutating func fail(_ exchange: Int32, _ failure: Failure) {
        dropUpstream(of: exchange)
        guard exchanges[exchange].hasResponseStarted else { return reject(exchange, failure) }
        exchanges[exchange].reason = counters.reason(failure.reason)
        let downstream = exchanges[exchange].downstream
        finish(exchange)
        if downstreams[downstream].isStream {
            resetStream(downstream, .internalError)
            return close(downstream: downstream)
        }
        // A reset, not an orderly close: a response that ends with its connection would look complete.
        Socket.resetOnClose(downstreams[downstream].fd)
        close(downstream: downstream)
    }

    /// Responds to a request that goes no further.
    mutating func reject(_ exchange: Int32, _ failure: Failure) {
        let downstream = exchanges[exchange].downstream
        let isComplete = exchanges[exchange].isRequestComplete && !failure.closes
        exchanges[exchange].closesDownstream = !isComplete || !exchanges[exchange].keepsAlive || isDraining
        exchanges[exchange].status = failure.status
        exchanges[exchange].reason = counters.reason(failure)
        exchanges[exchange].hasResponseStarted = true
        staging.removeAll()
        var bodyBytes = 0
        if exchanges[exchange].isGRPC {
            unsafe failure.writeStatus(
                into: &staging, requestID: exchanges[exchange].texts.requestID, date: dateText)
        } else {
            unsafe bodyBytes = failure.write(
                into: &staging, requestID: exchanges[exchange].texts.requestID, date: dateText,
                isHead: exchanges[exchange].method == .head,
                close: exchanges[exchange].closesDownstream && !exchanges[exchange].isStream,
                offersBasic: exchanges[exchange].credential.offersBasic,
                strictTransportSeconds: downstreams[downstream].rules.strictTransportSeconds)
        }
        exchanges[exchange].bytesOut = bodyBytes
        let generation = exchanges[exchange].generation
        sendCompleteResponse(exchange)
        guard exchanges.contains(exchange, generation) else { return }
        dropUpstream(of: exchange)
        complete(exchange)
    }

    /// Ends an exchange whose response was handed over; its connection waits for the next request or closes.
    mutating func complete(_ exchange: Int32) {
        let downstream = exchanges[exchange].downstream
        if exchanges[exchange].isStream { return completeStream(exchange) }
        let closes = exchanges[exchange].closesDownstream
        downstreams[downstream].hasUnreadRequest = !exchanges[exchange].isRequestComplete
        finish(exchange)
        downstreams[downstream].isPaused = false
        if closes { return closeAfterFlush(downstream) }
        downstreams[downstream].phase = .head
        if downstreams[downstream].output.isEmpty { awaitRequest(downstream) }
        if downstreams[downstream].isReadClosed || downstreams[downstream].mayHaveUnread
            || !downstreams[downstream].input.isEmpty
        {
            markReady(downstream: downstream)
        }
    }

    /// Starts the idle timeout of a connection without a request.
    mutating func awaitRequest(_ downstream: Int32) { awaitRequest(downstream, since: now) }

    /// The same, counted from an earlier moment.
    mutating func awaitRequest(_ downstream: Int32, since: Int64) {
        arm(downstream: downstream, at: since &+ (isDraining ? EventLoop.drainIdleTimeout : snapshot.loopTimeouts.idle))
    }

    /// Closes the connection as soon as its output is sent.
    mutating func closeAfterFlush(_ downstream: Int32) {
        downstreams[downstream].phase = .head
        downstreams[downstream].closesAfterFlush = true
        if downstreams[downstream].output.isEmpty { return endConnection(downstream) }
        arm(downstream: downstream, at: now &+ snapshot.loopTimeouts.bodyIdle)
    }

    /// Closes a connection whose output is sent; a client that may still be sending could otherwise lose the response.
    mutating func endConnection(_ downstream: Int32) {
        // The poller may have bytes for this iteration that were not dispatched yet: the kernel knows.
        let mayBeSending =
            downstreams[downstream].hasUnreadRequest || downstreams[downstream].mayHaveUnread
            || !downstreams[downstream].input.isEmpty || Socket.hasUnread(downstreams[downstream].fd)
        if mayBeSending { return startLinger(downstream) }
        sendCloseNotify(downstream)
        // See `startLinger`: there may be unread input.
        _ = shutdown(downstreams[downstream].fd, Int32(SHUT_WR))
        close(downstream: downstream)
    }

    /// Logs and counts the exchange and frees its slot.
    mutating func finish(_ exchange: Int32) {
        let downstream = exchanges[exchange].downstream
        let microseconds = Int((now &- exchanges[exchange].started) / 1000)
        let reason = exchanges[exchange].reason
        counters.count(
            route: exchanges[exchange].routeSlot, status: exchanges[exchange].status, reason: reason,
            microseconds: isTunnel(exchange) ? handshakeMicroseconds(ofTunnel: exchange) : microseconds)
        log(exchange, microseconds: microseconds)
        if exchanges[exchange].tunnel >= 0 { releaseTunnel(of: exchange) }
        if exchanges[exchange].credential.retainsToken { authenticator.releaseToken(of: exchange) }
        dropPipe(ofDownstream: downstream)
        exchanges[exchange].end()
        exchanges.free(exchange)
        downstreams[downstream].exchange = -1
    }

    /// Writes the access record of an exchange.
    @inline(__always)
    private mutating func log(_ exchange: Int32, microseconds: Int) {
        let key = AccessKey(
            route: exchanges[exchange].routeSlot, endpoint: exchanges[exchange].endpoint,
            status: exchanges[exchange].status, reason: exchanges[exchange].reason,
            provider: exchanges[exchange].credential.provider, epoch: textEpoch)
        if !records.isPrepared(for: key) { prepare(key, exchange) }
        let line = unsafe AccessLine(
            unixTime: unixTime, requestID: exchanges[exchange].texts.requestID,
            client: exchanges[exchange].forwardedClient.isEmpty

                ? downstreams[exchanges[exchange].downstream].address.text
                : AddressText(exchanges[exchange].forwardedClient),
            method: exchanges[exchange].texts.method, host: exchanges[exchange].texts.host,
            path: exchanges[exchange].texts.path, bytesIn: exchanges[exchange].bytesIn,
            bytesOut: exchanges[exchange].bytesOut, microseconds: microseconds)
        records.append(line, key, format: logFormat)
    }

    /// Prepares the texts that the log uses for all exchanges with this key.
    @inline(never)
    private mutating func prepare(_ key: AccessKey, _ exchange: Int32) {
        let provider = Int(exchanges[exchange].credential.provider)
        let endpoint = exchanges[exchange].endpoint
        records.prepare(
            key, route: counters.routeTexts[Int(exchanges[exchange].routeSlot)],
            reason: counters.reasonTexts[Int(exchanges[exchange].reason)],
            member: counters.memberTexts[Int(exchanges[exchange].reason)],
            provider: provider >= 0 && provider < snapshot.providerTexts.count ? snapshot.providerTexts[provider] : [],
            upstream: endpoint >= 0 ? directory.endpoints[Int(endpoint)].text : [], format: logFormat)
    }
}
