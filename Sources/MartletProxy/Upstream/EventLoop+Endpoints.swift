internal import MartletConfig
internal import MartletCore
internal import MartletHTTP
internal import MartletIO
internal import MartletRouter

/// Chooses an endpoint, connects to it, and retries with another one.
extension EventLoop {
    /// Sends the request to an endpoint: over an idle connection, or a new one.
    mutating func sendToEndpoint(_ exchange: Int32, avoiding: Int32, reusing: Bool) {
        exchanges[exchange].attempts &+= 1
        guard
            let endpoint = directory.choose(
                exchanges[exchange].cluster, hash: exchanges[exchange].hash, avoiding: avoiding, now: now)
        else { return reject(exchange, .upstreamUnavailable("upstream.no_endpoint")) }
        exchanges[exchange].endpoint = endpoint
        if exchanges[exchange].tunnel >= 0, !carriesUpgrades(exchange) { return reject(exchange, .upgradeNotCarried) }
        if case .echo = directory.endpoints[Int(endpoint)].address { return echo(exchange) }
        fillInHost(exchange, endpoint)
        if directory.endpoints[Int(endpoint)].transport.isHTTP2 { return sendOverHTTP2(exchange, to: endpoint) }
        if reusing, let upstream = directory.endpoints[Int(endpoint)].idle.popLast() {
            return attach(exchange, to: upstream)
        }
        connectAndAttach(exchange, to: endpoint)
    }

    /// Fills in `Host` where it is the endpoint's name.
    mutating func fillInHost(_ exchange: Int32, _ endpoint: Int32) {
        guard case .endpoint = directory.clusters[Int(exchanges[exchange].cluster)].upstream.host else { return }
        let line = exchanges[exchange].hostLine
        staging.removeAll()
        let old = unsafe exchanges[exchange].head.bytes
        unsafe staging.append(unsafe UnsafeBufferPointer(rebasing: old[..<line.start]))
        staging.append("Host: ")
        staging.append(directory.endpoints[Int(endpoint)].hostValue)
        staging.append("\r\n")
        let end = staging.count
        unsafe staging.append(unsafe UnsafeBufferPointer(rebasing: old[line.end...]))
        exchanges[exchange].hostLine = (line.start, end)
        exchanges[exchange].head.removeAll()
        unsafe exchanges[exchange].head.append(unsafe staging.bytes)
    }

    mutating func connectAndAttach(_ exchange: Int32, to endpoint: Int32) {
        switch connect(to: endpoint, .http1) {
        case .success(let upstream): attach(exchange, to: upstream)
        case .failure(let failure): retryOrReject(exchange, failure, nothingSent: true)
        }
    }

    /// Starts connecting to an endpoint.
    mutating func connect(to endpoint: Int32, _ kind: UpstreamConnection.Kind) -> Result<Int32, Failure> {
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
        upstreams[upstream].isSecure = transport.isSecure
        let token = EventToken(.upstream, index: upstream, generation: upstreams[upstream].generation)
        do {
            try poller.add(fd, .connection, token: token.raw)
        } catch {
            closeUpstream(upstream)
            return .failure(.upstreamUnavailable("upstream.no_descriptor"))
        }
        return .success(upstream)
    }

    /// Retries with another endpoint where that is safe, otherwise responds with the failure: with each of them while
    /// nothing was sent, and once for an idempotent request without a response.
    mutating func retryOrReject(_ exchange: Int32, _ failure: Failure, nothingSent: Bool) {
        let choices = directory.clusters[Int(exchanges[exchange].cluster)].members.count
        guard !exchanges[exchange].hasResponseStarted,
            exchanges[exchange].attempts < (nothingSent ? choices : 2),
            nothingSent || exchanges[exchange].isRepeatable
        else { return fail(exchange, failure) }
        if debug.isOn { logRetry(exchange, failure) }
        sendToEndpoint(exchange, avoiding: exchanges[exchange].endpoint, reusing: false)
    }

    func logRetry(_ exchange: Int32, _ failure: Failure) {
        let endpoint = Int(exchanges[exchange].endpoint)
        debug.retry(
            requestID: unsafe String(decoding: exchanges[exchange].texts.requestID, as: UTF8.self),
            upstream: endpoint >= 0 ? String(decoding: directory.endpoints[endpoint].text, as: UTF8.self) : "",
            reason: failure.reason)
    }
}
