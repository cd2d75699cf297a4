private import CLinux
internal import MartletConfig
internal import MartletCore
internal import MartletHTTP
internal import MartletHTTP2
internal import MartletIO
internal import MartletProvider

/// The end of an exchange: refusals, the access log (always), and what becomes of the connection.
extension Worker {
    /// Answers with a failure where nothing was answered yet; else the answer cannot be made whole and is cut.
    mutating func fail(_ exchange: Int32, _ failure: Failure) {
        dropLink(of: exchange)
        guard exchanges[exchange].hasResponseStarted else { return refuse(exchange, failure) }
        exchanges[exchange].reason = counters.reason(failure.reason)
        let client = exchanges[exchange].client
        finish(exchange)
        if clients[client].isStream {
            resetStream(client, .internalError)
            return close(client: client)
        }
        // A reset, not an orderly end: an answer that ends with its connection would look complete.
        Socket.resetOnClose(clients[client].fd)
        close(client: client)
    }

    /// Answers a request that goes no further.
    mutating func refuse(_ exchange: Int32, _ failure: Failure) {
        let client = exchanges[exchange].client
        let isComplete = exchanges[exchange].isRequestComplete && !failure.closes
        exchanges[exchange].closesClient = !isComplete || !exchanges[exchange].keepsAlive || isDraining
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
                close: exchanges[exchange].closesClient && !exchanges[exchange].isStream,
                offersBasic: exchanges[exchange].offersBasic,
                strictTransportSeconds: clients[client].rules.strictTransportSeconds)
        }
        exchanges[exchange].bytesOut = bodyBytes
        let generation = exchanges[exchange].generation
        sendWhole(exchange)
        guard exchanges.holds(exchange, generation) else { return }
        dropLink(of: exchange)
        complete(exchange)
    }

    /// The answer has been handed over: the exchange ends, and its connection waits for the next request or closes.
    mutating func complete(_ exchange: Int32) {
        let client = exchanges[exchange].client
        if exchanges[exchange].isStream { return completeStream(exchange) }
        let closes = exchanges[exchange].closesClient
        clients[client].hasUnreadRequest = !exchanges[exchange].isRequestComplete
        finish(exchange)
        clients[client].isPaused = false
        if closes { return closeAfterFlush(client) }
        clients[client].phase = .head
        if clients[client].output.isEmpty { awaitRequest(client) }
        if clients[client].hasEnded || clients[client].mayHaveMore || !clients[client].input.isEmpty {
            markReady(client: client)
        }
    }

    /// A connection without a request may be idle for a while.
    mutating func awaitRequest(_ client: Int32) { awaitRequest(client, since: now) }

    /// The same for one that has been without a request for some time.
    mutating func awaitRequest(_ client: Int32, since: Int64) {
        arm(client: client, at: since &+ (isDraining ? Worker.drainIdle : snapshot.patience.idle))
    }

    /// Closes the connection as soon as what waits is sent.
    mutating func closeAfterFlush(_ client: Int32) {
        clients[client].phase = .head
        clients[client].closesAfterFlush = true
        if clients[client].output.isEmpty { return endConnection(client) }
        arm(client: client, at: now &+ snapshot.patience.bodyIdle)
    }

    /// Everything is sent.
    ///
    /// Where the client may still be sending, closing at once could cost it the answer.
    mutating func endConnection(_ client: Int32) {
        let mayBeSending =
            clients[client].hasUnreadRequest || clients[client].mayHaveMore || !clients[client].input.isEmpty
            || (!clients[client].isWatched && Socket.hasUnread(clients[client].fd))
        if mayBeSending { return beginLinger(client) }
        sayGoodbye(client)
        // See `beginLinger`: more may have come that nobody has looked at yet.
        _ = shutdown(clients[client].fd, Int32(SHUT_WR))
        close(client: client)
    }

    /// Logs and counts the exchange and gives its place back.
    mutating func finish(_ exchange: Int32) {
        let client = exchanges[exchange].client
        let microseconds = Int((now &- exchanges[exchange].started) / 1000)
        let reason = exchanges[exchange].reason
        counters.count(
            route: exchanges[exchange].routeSlot, status: exchanges[exchange].status, reason: reason,
            microseconds: isTunnel(exchange) ? openingTime(ofTunnel: exchange) : microseconds)
        log(exchange, microseconds: microseconds)
        if exchanges[exchange].tunnel >= 0 { releaseTunnel(of: exchange) }
        if exchanges[exchange].holdsToken { dropToken(of: exchange) }
        dropPipe(ofClient: client)
        exchanges[exchange].end()
        exchanges.give(exchange)
        clients[client].exchange = -1
    }

    /// Writes the access record of an exchange.
    @inline(__always)
    private mutating func log(_ exchange: Int32, microseconds: Int) {
        let key = AccessKey(
            route: exchanges[exchange].routeSlot, endpoint: exchanges[exchange].endpoint,
            status: exchanges[exchange].status, reason: exchanges[exchange].reason,
            provider: exchanges[exchange].provider, epoch: epoch)
        if !records.isPrepared(for: key) { prepare(key, exchange) }
        let line = unsafe AccessLine(
            unixTime: unixTime, requestID: exchanges[exchange].texts.requestID,
            client: exchanges[exchange].forwardedClient.isEmpty
                ? clients[exchanges[exchange].client].address.text : AddressText(exchanges[exchange].forwardedClient),
            method: exchanges[exchange].texts.method, host: exchanges[exchange].texts.host,
            path: exchanges[exchange].texts.path, bytesIn: exchanges[exchange].bytesIn,
            bytesOut: exchanges[exchange].bytesOut, microseconds: microseconds)
        records.append(line, key, format: logFormat)
    }

    /// Has the log write down what it says of all exchanges like this one.
    @inline(never)
    private mutating func prepare(_ key: AccessKey, _ exchange: Int32) {
        let provider = Int(exchanges[exchange].provider)
        let endpoint = exchanges[exchange].endpoint
        records.prepare(
            key, route: counters.routeTexts[Int(exchanges[exchange].routeSlot)],
            reason: counters.reasonTexts[Int(exchanges[exchange].reason)],
            member: counters.memberTexts[Int(exchanges[exchange].reason)],
            provider: provider >= 0 && provider < snapshot.providerTexts.count ? snapshot.providerTexts[provider] : [],
            upstream: endpoint >= 0 ? upstreams.endpoints[Int(endpoint)].text : [], format: logFormat)
    }
}
