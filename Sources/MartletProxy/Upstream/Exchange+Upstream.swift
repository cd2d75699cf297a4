internal import MartletConfig
internal import MartletCore
internal import MartletHTTP
internal import MartletHTTP2
internal import MartletIO
internal import MartletTLS

/// An exchange and its upstream connection.
extension Exchange {
    /// Whether the chosen endpoint supports upgrades.
    @inline(never)
    mutating func carriesUpgrades(_ upstreams: inout UpstreamConnections) -> Bool {
        switch upstreams.directory.endpoints[Int(forwarding.endpoint)].address {
        case .http: true
        case .https, .unix:
            upstreams.directory.clusters[Int(forwarding.cluster)].upstream.carriesUpgrades
        case .h2c, .echo: false
        }
    }

    /// Fills in `Host` where it is the endpoint's name.
    mutating func fillInHost(
        _ endpoint: EndpointIndex, _ upstreams: inout UpstreamConnections, _ context: inout LoopContext
    ) {
        guard forwarding.head.hostLine.end > 0 else { return }
        forwarding.head.fillInHost(
            upstreams.directory.endpoints[Int(endpoint)].hostValue, scratch: &context.scratch.rewrittenHead)
    }

    /// The attempt of a request that has just failed.
    mutating func failedAttempt(
        _ progress: FailedAttempt.Progress, _ upstreams: inout UpstreamConnections
    ) -> FailedAttempt {
        let cluster = Int(forwarding.cluster)
        return FailedAttempt(
            progress: progress, endpoint: forwarding.endpoint,
            attempts: forwarding.attempts,
            endpoints: upstreams.directory.clusters[cluster].members.count,
            isRepeatable: isRepeatable, hasBodyBytes: body.count > 0,
            hasResponseStarted: response.hasStarted,
            policy: upstreams.directory.clusters[cluster].upstream.traffic.retries)
    }
}

extension UpstreamConnections {
    /// Writes the client that the connection is for; it carries no other client's requests.
    mutating func writeProxyHeader(
        _ upstream: Handle<UpstreamConnection>, _ downstreams: inout DownstreamConnections, _ exchanges: inout Exchanges
    ) {
        let exchange = self[upstream].exchange
        guard !exchange.isNone else {
            return ProxyHeader.write(client: nil, server: nil, into: &self[upstream].transport.output)
        }
        let downstream = exchanges[exchange].downstream
        let address = downstreams[downstream].origin.address
        // The destination is the address that the client connected to.
        let socket = downstreams[
            downstreams[downstream].isStream ? downstreams[downstream].stream.connection : downstream
        ].transport.fd
        let server = Socket.localAddress(socket)
        ProxyHeader.write(
            client: address.isUnix ? nil : ProxyHeader.Address(bytes: address.bytes, port: address.port),
            server: server.flatMap { address in
                address.isUnix ? nil : ProxyHeader.Address(bytes: address.addressBytes, port: address.port)
            }, into: &self[upstream].transport.output)
    }

    /// Whether there may be something to send: most "writable" events of an edge-triggered socket are redundant.
    @inline(__always)
    mutating func mayHaveUnsent(_ upstream: Handle<UpstreamConnection>, _ exchanges: inout Exchanges) -> Bool {
        if self[upstream].kind != .http1 || self[upstream].transport.isSecure
            || !self[upstream].output.isEmpty
        {
            return true
        }
        let exchange = self[upstream].exchange
        return !exchange.isNone && !exchanges[exchange].forwarding.head.isSent
    }

    /// Encrypts the head first, then the body.
    mutating func encryptRequest(
        _ upstream: Handle<UpstreamConnection>, _ exchanges: inout Exchanges, _ context: inout LoopContext
    ) -> Bool {
        // While the kernel accepts nothing, nothing more is encrypted.
        guard self[upstream].transport.output.count < Watermark.high else { return true }
        let exchange = self[upstream].exchange
        let head = unsafe exchanges[exchange].forwarding.head.unsent
        do throws(TLSError) {
            if head.count > 0 { try unsafe self[upstream].transport.engine?.send(head) }
            if !self[upstream].output.isEmpty {
                let body = unsafe self[upstream].output.bytes
                try unsafe self[upstream].transport.engine?.send(body)
            }
        } catch {
            sendFailed(upstream, &exchanges, &context)
            return false
        }
        exchanges[exchange].forwarding.head.sent = exchanges[exchange].forwarding.head.count
        self[upstream].output.release()
        self[upstream].transport.takeCiphertext()
        return true
    }

    /// Submits the available part of a request's body to its stream.
    mutating func flushStream(
        _ upstream: Handle<UpstreamConnection>, _ downstreams: inout DownstreamConnections,
        _ exchanges: inout Exchanges, _ context: inout LoopContext
    ) {
        let exchange = self[upstream].exchange
        guard !exchange.isNone, self[upstream].isUp, !self[upstream].stream.isClosed,
            let session = session(of: upstream)
        else { return }
        if !self[upstream].output.isEmpty {
            unsafe session.send(self[upstream].stream.id, self[upstream].output.bytes)
            self[upstream].output.release()
        }
        if exchanges[exchange].body.isComplete, !self[upstream].stream.hasEndedRequest {
            self[upstream].stream.hasEndedRequest = true
            unsafe session.end(self[upstream].stream.id, trailers: exchanges[exchange].trailers.forwarded.bytes)
        }
        markDirty(self[upstream].stream.connection, &context)
        if !exchanges[exchange].body.isComplete { exchanges[exchange].armResponseTimeout(upstream, &self, &context) }
        if session.unsent(self[upstream].stream.id) > Watermark.streamHigh {
            downstreams[exchanges[exchange].downstream].isPaused = true
        }
    }

    /// Sending to the upstream failed; its response, if any, is read first.
    mutating func sendFailed(
        _ upstream: Handle<UpstreamConnection>, _ exchanges: inout Exchanges, _ context: inout LoopContext
    ) {
        self[upstream].output.removeAll()
        self[upstream].transport.isReadClosed = true
        let exchange = self[upstream].exchange
        exchanges[exchange].forwarding.head.sent = exchanges[exchange].forwarding.head.count
        markReady(upstream, &context)
    }

    /// Detaches the upstream connection from the exchange, and returns it to the pool if it can be reused.
    @inline(__always)
    mutating func detach(
        _ upstream: Handle<UpstreamConnection>, of exchange: Handle<Exchange>, _ exchanges: inout Exchanges,
        _ context: inout LoopContext
    ) {
        exchanges[exchange].upstream = .none
        exchanges[exchange].forwarding.stopCarrying()
        self[upstream].exchange = .none
        self[upstream].served &+= 1
        directory.ended(self[upstream].endpoint)
        // A stream carries one request.
        let isReusable =
            self[upstream].kind == .http1
            && self[upstream].response.canBeReused(
                isBodyComplete: exchanges[exchange].body.isComplete,
                isHeadSent: exchanges[exchange].forwarding.head.isSent,
                unsent: unsent(upstream), isReadClosed: self[upstream].transport.isReadClosed)
        if isReusable { returnToPool(upstream, &context) } else { close(upstream, &context) }
    }
}
