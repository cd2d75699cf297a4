internal import MartletAuthenticator
internal import MartletConfig
internal import MartletCore
internal import MartletHTTP
internal import MartletHTTP2
internal import MartletIO
internal import MartletProvider
internal import MartletResponder

/// Completes an exchange: error responses, the access log (always), and the reuse of the connection.
extension EventLoop {
    /// Responds with a failure if no response has started; otherwise the response is truncated.
    mutating func fail(_ exchange: Handle<Exchange>, _ failure: Failure) {
        dropUpstream(of: exchange)
        guard exchanges[exchange].response.hasStarted else { return reject(exchange, failure) }
        exchanges[exchange].record.reason = counters.reason(failure.reason)
        let downstream = exchanges[exchange].downstream
        finish(exchange)
        if downstreams[downstream].isStream {
            resetStream(downstream, .internalError)
            return close(downstream: downstream)
        }
        // A reset, not an orderly close: a response that ends with its connection would look complete.
        Socket.resetOnClose(downstreams[downstream].transport.fd)
        close(downstream: downstream)
    }

    /// Responds to a request that goes no further.
    mutating func reject(_ exchange: Handle<Exchange>, _ failure: Failure) {
        let downstream = exchanges[exchange].downstream
        let isComplete = exchanges[exchange].body.isComplete && !failure.closes
        exchanges[exchange].response.start(
            status: failure.status, closes: !isComplete || !exchanges[exchange].request.keepsAlive || isDraining)
        exchanges[exchange].record.reason = counters.reason(failure)
        staging.removeAll()
        var bodyBytes = 0
        if exchanges[exchange].request.isGRPC {
            unsafe failure.writeStatus(
                into: &staging, requestID: exchanges[exchange].record.texts.requestID, date: clock.dateText)
        } else {
            unsafe bodyBytes = failure.write(
                into: &staging, requestID: exchanges[exchange].record.texts.requestID, date: clock.dateText,
                isHead: exchanges[exchange].request.method == .head,
                close: exchanges[exchange].response.closesDownstream && !exchanges[exchange].isStream,
                offersBasic: exchanges[exchange].credential.offersBasic,
                strictTransportSeconds: downstreams[downstream].origin.rules.strictTransportSeconds)
        }
        exchanges[exchange].record.bytesOut = bodyBytes
        sendCompleteResponse(exchange)
        guard exchanges[exchange].isAlive else { return }
        dropUpstream(of: exchange)
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
            if !hasOutput { awaitRequest(downstream) }
            if downstreams[downstream].transport.isReadClosed || downstreams[downstream].transport.mayHaveUnread
                || !downstreams[downstream].reader.input.isEmpty
            {
                markReady(downstream: downstream)
            }
        case .closeAfterFlush: arm(downstream: downstream, at: now &+ snapshot.loopTimeouts.bodyIdle)
        case .close: endConnection(downstream)
        }
    }

    /// Starts the idle timeout of a connection without a request.
    mutating func awaitRequest(_ downstream: Handle<DownstreamConnection>) { awaitRequest(downstream, since: now) }

    /// The same, counted from an earlier moment.
    mutating func awaitRequest(_ downstream: Handle<DownstreamConnection>, since: Int64) {
        arm(downstream: downstream, at: since &+ (isDraining ? EventLoop.drainIdleTimeout : snapshot.loopTimeouts.idle))
    }

    /// Logs and counts the exchange and frees its slot.
    mutating func finish(_ exchange: Handle<Exchange>) {
        let downstream = exchanges[exchange].downstream
        let microseconds = Int((now &- exchanges[exchange].record.started) / 1000)
        let reason = exchanges[exchange].record.reason
        counters.count(
            route: exchanges[exchange].record.routeSlot, status: exchanges[exchange].response.status, reason: reason,
            microseconds: isTunnel(exchange) ? handshakeMicroseconds(ofTunnel: exchange) : microseconds)
        log(exchange, microseconds: microseconds)
        if !exchanges[exchange].tunnel.isNone { releaseTunnel(of: exchange) }
        if exchanges[exchange].credential.retainsToken { authenticator.releaseToken(of: ExchangeID(exchange)) }
        dropPipe(ofDownstream: downstream)
        exchanges[exchange].end()
        exchanges.free(exchange)
        downstreams[downstream].exchange = .none
    }

    /// Writes the access record of an exchange.
    @inline(__always)
    private mutating func log(_ exchange: Handle<Exchange>, microseconds: Int) {
        let key = AccessKey(
            route: exchanges[exchange].record.routeSlot.rawValue,
            endpoint: exchanges[exchange].forwarding.endpoint.rawValue,
            status: exchanges[exchange].response.status, reason: exchanges[exchange].record.reason,
            provider: exchanges[exchange].credential.provider, epoch: logs.access.epoch)
        if !logs.access.isPrepared(for: key) { prepare(key, exchange) }
        let line = unsafe AccessLine(
            unixTime: unixTime, requestID: exchanges[exchange].record.texts.requestID,
            client: exchanges[exchange].record.forwardedClient.isEmpty
                ? downstreams[exchanges[exchange].downstream].origin.address.text
                : AddressText(exchanges[exchange].record.forwardedClient),
            method: exchanges[exchange].record.texts.method, host: exchanges[exchange].record.texts.host,
            path: exchanges[exchange].record.texts.path, bytesIn: exchanges[exchange].record.bytesIn,
            bytesOut: exchanges[exchange].record.bytesOut, microseconds: microseconds)
        logs.access.append(line, key)
    }

    /// Prepares the texts that the log uses for all exchanges with this key.
    @inline(never)
    private mutating func prepare(_ key: AccessKey, _ exchange: Handle<Exchange>) {
        let provider = Int(exchanges[exchange].credential.provider)
        let endpoint = exchanges[exchange].forwarding.endpoint
        logs.access.prepare(
            key, route: counters.routes.texts[Int(exchanges[exchange].record.routeSlot.rawValue)],
            reason: counters.reasons.texts[Int(exchanges[exchange].record.reason)],
            member: counters.reasons.members[Int(exchanges[exchange].record.reason)],
            provider: provider >= 0 && provider < snapshot.providerTexts.count ? snapshot.providerTexts[provider] : [],
            upstream: endpoint.isNone ? [] : directory.endpoints[Int(endpoint)].text)
    }
}
