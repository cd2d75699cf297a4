internal import MartletConfig
internal import MartletCore
internal import MartletHTTP
internal import MartletHTTP2
internal import MartletIO
internal import MartletTLS

/// An exchange and its upstream connection.
extension Exchanges {
    /// Whether the chosen endpoint supports upgrades.
    @inline(never)
    mutating func carriesUpgrades(_ exchange: Handle<Exchange>, _ upstreams: inout UpstreamConnections) -> Bool {
        switch upstreams.directory.endpoints[Int(self[exchange].forwarding.endpoint)].address {
        case .http: true
        case .https, .unix:
            upstreams.directory.clusters[Int(self[exchange].forwarding.cluster)].upstream.carriesUpgrades
        case .h2c, .echo: false
        }
    }

    /// Fills in `Host` where it is the endpoint's name.
    mutating func fillInHost(
        _ exchange: Handle<Exchange>, _ endpoint: EndpointIndex, _ upstreams: inout UpstreamConnections,
        _ context: inout LoopContext
    ) {
        guard self[exchange].forwarding.head.hostLine.end > 0 else { return }
        let lent = unsafe all.address(of: exchange)
        unsafe lent.pointee.forwarding.head.fillInHost(
            upstreams.directory.endpoints[Int(endpoint)].hostValue, scratch: &context.scratch.rewrittenHead)
    }

    /// The attempt of a request that has just failed.
    mutating func failedAttempt(
        _ exchange: Handle<Exchange>, _ progress: FailedAttempt.Progress, _ upstreams: inout UpstreamConnections
    ) -> FailedAttempt {
        let cluster = Int(self[exchange].forwarding.cluster)
        return FailedAttempt(
            progress: progress, endpoint: self[exchange].forwarding.endpoint,
            attempts: self[exchange].forwarding.attempts,
            endpoints: upstreams.directory.clusters[cluster].members.count,
            isRepeatable: self[exchange].isRepeatable, hasBodyBytes: self[exchange].body.count > 0,
            hasResponseStarted: self[exchange].response.hasStarted,
            policy: upstreams.directory.clusters[cluster].upstream.traffic.retries)
    }

    /// Writes the client that the connection is for; it carries no other client's requests.
    mutating func writeProxyHeader(
        _ upstream: Handle<UpstreamConnection>, _ downstreams: inout DownstreamConnections,
        _ upstreams: inout UpstreamConnections
    ) {
        let exchange = upstreams[upstream].exchange
        guard !exchange.isNone else {
            return ProxyHeader.write(client: nil, server: nil, into: &upstreams[upstream].transport.output)
        }
        let downstream = self[exchange].downstream
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
            }, into: &upstreams[upstream].transport.output)
    }

    /// Whether there may be something to send: most "writable" events of an edge-triggered socket are redundant.
    @inline(__always)
    mutating func mayHaveUnsent(_ upstream: Handle<UpstreamConnection>, _ upstreams: inout UpstreamConnections) -> Bool
    {
        if upstreams[upstream].kind != .http1 || upstreams[upstream].transport.isSecure
            || !upstreams[upstream].output.isEmpty
        {
            return true
        }
        let exchange = upstreams[upstream].exchange
        return !exchange.isNone && !self[exchange].forwarding.head.isSent
    }

    /// Encrypts the head first, then the body.
    mutating func encryptRequest(
        _ upstream: Handle<UpstreamConnection>, _ upstreams: inout UpstreamConnections, _ context: inout LoopContext
    ) -> Bool {
        // While the kernel accepts nothing, nothing more is encrypted.
        guard upstreams[upstream].transport.output.count < Watermark.high else { return true }
        let exchange = upstreams[upstream].exchange
        let head = unsafe self[exchange].forwarding.head.unsent
        do throws(TLSError) {
            if head.count > 0 { try unsafe upstreams[upstream].transport.engine?.send(head) }
            if !upstreams[upstream].output.isEmpty {
                try unsafe upstreams[upstream].transport.engine?.send(upstreams[upstream].output.bytes)
            }
        } catch {
            sendFailed(upstream, &upstreams, &context)
            return false
        }
        self[exchange].forwarding.head.sent = self[exchange].forwarding.head.count
        upstreams[upstream].output.release()
        upstreams[upstream].transport.engine?.dequeueCiphertext(into: &upstreams[upstream].transport.output)
        return true
    }

    /// Submits the available part of a request's body to its stream.
    mutating func flushStream(
        _ upstream: Handle<UpstreamConnection>, _ downstreams: inout DownstreamConnections,
        _ upstreams: inout UpstreamConnections, _ context: inout LoopContext
    ) {
        let exchange = upstreams[upstream].exchange
        guard !exchange.isNone, upstreams[upstream].isUp, !upstreams[upstream].stream.isClosed,
            let session = upstreams.session(of: upstream)
        else { return }
        if !upstreams[upstream].output.isEmpty {
            unsafe session.send(upstreams[upstream].stream.id, upstreams[upstream].output.bytes)
            upstreams[upstream].output.release()
        }
        if self[exchange].body.isComplete, !upstreams[upstream].stream.hasEndedRequest {
            upstreams[upstream].stream.hasEndedRequest = true
            unsafe session.end(upstreams[upstream].stream.id, trailers: self[exchange].trailers.forwarded.bytes)
        }
        upstreams.markDirty(upstreams[upstream].stream.connection, &context)
        if !self[exchange].body.isComplete { armResponseTimeout(upstream, &upstreams, &context) }
        if session.unsent(upstreams[upstream].stream.id) > Watermark.streamHigh {
            downstreams[self[exchange].downstream].isPaused = true
        }
    }

    /// Sending to the upstream failed; its response, if any, is read first.
    mutating func sendFailed(
        _ upstream: Handle<UpstreamConnection>, _ upstreams: inout UpstreamConnections, _ context: inout LoopContext
    ) {
        upstreams[upstream].output.removeAll()
        upstreams[upstream].transport.isReadClosed = true
        let exchange = upstreams[upstream].exchange
        self[exchange].forwarding.head.sent = self[exchange].forwarding.head.count
        upstreams.markReady(upstream, &context)
    }

    /// Detaches the upstream connection from the exchange, and returns it to the pool if it can be reused.
    @inline(__always)
    mutating func detach(
        _ upstream: Handle<UpstreamConnection>, of exchange: Handle<Exchange>, _ upstreams: inout UpstreamConnections,
        _ context: inout LoopContext
    ) {
        self[exchange].upstream = .none
        self[exchange].forwarding.stopCarrying()
        upstreams[upstream].exchange = .none
        upstreams[upstream].served &+= 1
        upstreams.directory.ended(upstreams[upstream].endpoint)
        // A stream carries one request.
        let isReusable =
            upstreams[upstream].kind == .http1
            && upstreams[upstream].response.canBeReused(
                isBodyComplete: self[exchange].body.isComplete,
                isHeadSent: self[exchange].forwarding.head.isSent,
                unsent: upstreams.unsent(upstream), isReadClosed: upstreams[upstream].transport.isReadClosed)
        if isReusable { upstreams.returnToPool(upstream, &context) } else { upstreams.close(upstream, &context) }
    }

    /// Drops the upstream connection of an exchange that ends without a complete response; it cannot be reused.
    ///
    /// A connection of its own is reset: one that is closed keeps its port for a minute, and clients that leave could
    /// take every port towards an endpoint.
    mutating func dropUpstream(
        of exchange: Handle<Exchange>, _ upstreams: inout UpstreamConnections, _ context: inout LoopContext
    ) {
        self[exchange].local.task?.cancel()
        self[exchange].local.task = nil
        let upstream = self[exchange].upstream
        guard !upstream.isNone else { return }
        self[exchange].upstream = .none
        self[exchange].forwarding.stopCarrying()
        upstreams.directory.ended(upstreams[upstream].endpoint)
        if upstreams[upstream].kind == .http1, !isTunnel(exchange) {
            Socket.resetOnClose(upstreams[upstream].transport.fd)
        }
        upstreams.close(upstream, &context)
    }
}
