internal import MartletConfig
internal import MartletCore
internal import MartletHTTP
internal import MartletIO
internal import MartletResponder
internal import MartletRouter

/// Chooses an endpoint, connects to it, and retries with another one.
extension EventLoop {
    /// Sends the request to an endpoint: over an idle connection, or a new one.
    mutating func sendToEndpoint(_ exchange: Handle<Exchange>, avoiding: EndpointIndex, reusing: Bool) {
        exchanges[exchange].forwarding.attempts &+= 1
        guard
            let endpoint = directory.choose(
                exchanges[exchange].forwarding.cluster, hash: exchanges[exchange].forwarding.hash, avoiding: avoiding,
                now: now)
        else { return reject(exchange, .upstreamUnavailable("upstream.no_endpoint")) }
        exchanges[exchange].forwarding.endpoint = endpoint
        if !exchanges[exchange].tunnel.isNone, !carriesUpgrades(exchange) {
            return reject(exchange, .upgradeNotCarried)
        }
        if case .echo = directory.endpoints[Int(endpoint)].address { return echo(exchange) }
        fillInHost(exchange, endpoint)
        if directory.endpoints[Int(endpoint)].transport.isHTTP2 { return sendOverHTTP2(exchange, to: endpoint) }
        if reusing, let upstream = directory.endpoints[Int(endpoint)].idle.popLast() {
            return attach(exchange, to: upstream)
        }
        connectAndAttach(exchange, to: endpoint)
    }

    /// Fills in `Host` where it is the endpoint's name.
    mutating func fillInHost(_ exchange: Handle<Exchange>, _ endpoint: EndpointIndex) {
        guard case .endpoint = directory.clusters[Int(exchanges[exchange].forwarding.cluster)].upstream.host else {
            return
        }
        let lent = unsafe exchanges.address(of: exchange)
        unsafe lent.pointee.forwarding.fillInHost(directory.endpoints[Int(endpoint)].hostValue, scratch: &staging)
    }

    mutating func connectAndAttach(_ exchange: Handle<Exchange>, to endpoint: EndpointIndex) {
        switch connect(to: endpoint, .http1) {
        case .success(let upstream): attach(exchange, to: upstream)
        case .failure(let failure): retryOrReject(exchange, failure, nothingSent: true)
        }
    }

    /// Starts connecting to an endpoint.
    mutating func connect(
        to endpoint: EndpointIndex, _ kind: UpstreamConnection.Kind
    ) -> Result<Handle<UpstreamConnection>, Failure> {
        guard let address = directory.nextAddress(of: endpoint) else {
            return .failure(.upstreamUnavailable("upstream.name_not_resolved"))
        }
        let (fd, pending): (Int32, Bool)
        do {
            (fd, pending) = try Socket.connect(to: address)
        } catch {
            if !error.isShortage { directory.failed(endpoint, refused: true, now: now) }
            return .failure(.upstreamUnavailable(error.isShortage ? "upstream.no_descriptor" : "upstream.refused"))
        }
        let transport = directory.endpoints[Int(endpoint)].transport
        let upstream = upstreams.allocate()
        // A preamble before the first request waits for the event that reports the connection.
        let isBare = !transport.isSecure && !transport.sendsProxyHeader && kind == .http1
        upstreams[upstream].open(fd: fd, kind: kind, endpoint: endpoint, connected: !pending && isBare)
        upstreams[upstream].transport.isSecure = transport.isSecure
        let token = EventToken(upstream: upstream)
        do {
            try poller.add(fd, .connection, token: token.raw)
        } catch {
            closeUpstream(upstream)
            return .failure(.upstreamUnavailable("upstream.no_descriptor"))
        }
        return .success(upstream)
    }

    /// Retries with another endpoint where that is safe, otherwise responds with the failure.
    mutating func retryOrReject(_ exchange: Handle<Exchange>, _ failure: Failure, nothingSent: Bool) {
        switch failedAttempt(exchange, nothingSent ? .nothingSent : .requestSent).decision {
        case .fail: fail(exchange, failure)
        case .retry(let avoiding, let reusing):
            if debug.isOn { logRetry(exchange, failure) }
            sendToEndpoint(exchange, avoiding: avoiding, reusing: reusing)
        }
    }

    /// The attempt of a request that has just failed.
    func failedAttempt(_ exchange: Handle<Exchange>, _ progress: FailedAttempt.Progress) -> FailedAttempt {
        FailedAttempt(
            progress: progress, endpoint: exchanges[exchange].forwarding.endpoint,
            attempts: exchanges[exchange].forwarding.attempts,
            endpoints: directory.clusters[Int(exchanges[exchange].forwarding.cluster)].members.count,
            isRepeatable: exchanges[exchange].isRepeatable, hasBodyBytes: exchanges[exchange].body.count > 0,
            hasResponseStarted: exchanges[exchange].response.hasStarted)
    }

    func logRetry(_ exchange: Handle<Exchange>, _ failure: Failure) {
        let endpoint = exchanges[exchange].forwarding.endpoint
        debug.retry(
            requestID: unsafe String(decoding: exchanges[exchange].record.texts.requestID, as: UTF8.self),
            upstream: endpoint.isNone ? "" : String(decoding: directory.endpoints[Int(endpoint)].text, as: UTF8.self),
            reason: failure.reason)
    }
}
