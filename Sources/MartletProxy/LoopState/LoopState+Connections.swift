internal import MartletAuthenticator
internal import MartletCore
internal import MartletDecisions
internal import MartletHTTP2
internal import MartletProvider
internal import MartletResponder
internal import MartletTLS

/// Connections that have not proven anything yet: the PROXY header, failed handshakes, and which one gives way when all
/// places are taken.
extension LoopState {
    mutating func startConnection(_ downstream: Handle<DownstreamConnection>) {
        downstreams[downstream].origin.rules.expectsProxyHeader
            ? awaitProxyHeader(downstream) : downstreams.startTransport(downstream, &context)
    }

    /// Waits for the PROXY protocol header.
    private mutating func awaitProxyHeader(_ downstream: Handle<DownstreamConnection>) {
        // Any other peer could claim any address: closed without a response. A Unix socket is protected by its
        // permissions.
        guard downstreams[downstream].origin.address.isTrusted || downstreams[downstream].origin.address.isUnix else {
            return rejectProxyHeader(downstream, "proxy_protocol.untrusted_peer")
        }
        downstreams[downstream].phase = .proxyHeader
        downstreams.arm(downstream, at: now &+ context.snapshot.loopTimeouts.requestHead, &context)
    }

    mutating func rejectProxyHeader(_ downstream: Handle<DownstreamConnection>, _ code: ErrorCode) {
        context.counters.proxyHeaderRejected(code)
        debug.warnings.rejectedProxyHeader(
            code, of: downstreams[downstream].origin.address.text.description, at: now)
        close(downstream: downstream)
    }

    mutating func rejectHandshake(_ downstream: Handle<DownstreamConnection>, _ code: ErrorCode) {
        context.counters.handshakeFailed(code)
        if debug.isOn {
            debug.connection(
                "TLS handshake failed", code, client: downstreams[downstream].origin.address.text.description)
        }
        if code == .tlsHTTPRequest { downstreams[downstream].transport.rejectClearText() }
        close(downstream: downstream)
    }

    /// The handshake timed out.
    mutating func handshakeTimedOut(_ downstream: Handle<DownstreamConnection>) {
        rejectHandshake(downstream, "tls.handshake_timed_out")
    }

    /// Registers connections whose responses take long, to notice disconnects.
    mutating func registerOverdue() {
        while let downstream = downstreams.acceptor.nextOverdue(at: now) {
            if downstreams.all.contains(downstream), !downstreams.register(downstream, &context) { abandon(downstream) }
        }
    }

    /// Closes one evictable connection (``UnprovenConnection``), if there is one.
    /// - Parameter network: whose it has to be; `nil` for any.
    /// - Returns: whether there is capacity now.
    mutating func freeCapacity(of network: ClientNetwork? = nil) -> Bool {
        for _ in 0..<min(downstreams.acceptor.order.count, ConnectionOrder.searchLimit) {
            guard let downstream = downstreams.acceptor.order.popOldest() else { return false }
            guard downstreams.all.contains(downstream) else { continue }
            if network == nil || downstreams.network(of: downstream) == network,
                downstreams.isEvictable(downstream, &exchanges, &context)
            {
                displace(downstream)
                return true
            }
            downstreams.acceptor.order.requeue(downstream)
        }
        return false
    }

    /// Closes a connection that gives way.
    mutating func displace(_ downstream: Handle<DownstreamConnection>) {
        context.counters.connections.displaced &+= 1
        if downstreams[downstream].kind == .http1, !downstreams[downstream].exchange.isNone {
            // The response is sent as far as the socket accepts it: the capacity is needed now.
            reject(downstreams[downstream].exchange, .displaced)
            guard downstreams[downstream].isAlive else { return }
        }
        abandon(downstream)
    }

    /// The drain deadline has passed: ends the requests that are left, with a response as far as sockets accept it.
    /// - Parameter isLast: whether connections are closed, and with them their streams, after what was sent on them.
    mutating func abortAll(isLast: Bool) {
        for index in 0..<downstreams.all.end {
            guard let downstream = downstreams.all.handle(at: index) else { continue }
            let exchange = downstreams[downstream].exchange
            if !exchange.isNone { fail(exchange, .drainOver) }
            guard isLast, downstreams[downstream].isAlive, !downstreams[downstream].isStream else { continue }
            abandon(downstream)
        }
    }
}

extension DownstreamConnections {
    /// Whether a connection gives way where capacity is needed.
    mutating func isEvictable(
        _ downstream: Handle<DownstreamConnection>, _ exchanges: inout Exchanges, _ context: inout LoopContext
    ) -> Bool {
        switch self[downstream].phase {
        case .frames: return areStreamsEvictable(downstream, &exchanges, &context)
        case .exchange: return Self.isUploadEvictable(self[downstream].exchange, &exchanges, &context)
        default: break
        }
        let state = UnprovenConnection.Wait(
            phase: self[downstream].phase, deadline: self[downstream].timer.deadline,
            requests: self[downstream].reader.requests,
            isReceivingHead: self[downstream].reader.isReceivingHead,
            hasOutput: !self[downstream].transport.output.isEmpty)
        return UnprovenConnection(waiting: state, timeouts: context.snapshot.loopTimeouts)?.isEvictable(at: context.now)
            ?? false
    }

    /// An HTTP/2 connection is evictable before its first request, or when all its streams are evictable uploads.
    private mutating func areStreamsEvictable(
        _ downstream: Handle<DownstreamConnection>, _ exchanges: inout Exchanges, _ context: inout LoopContext
    ) -> Bool {
        guard let streams = self[downstream].streams else { return false }
        guard !streams.slots.isEmpty else {
            let connection = UnprovenConnection(
                withoutStreams: self[downstream].reader.requests, headStartedAt: streams.headStartedAt,
                idleSince: streams.idleSince, now: context.now)
            return connection?.isEvictable(at: context.now) ?? false
        }
        return streams.slots.values.allSatisfy { index in
            guard let stream = all.handle(at: index) else { return true }
            return self[stream].phase == .exchange
                && Self.isUploadEvictable(self[stream].exchange, &exchanges, &context)
        }
    }

    private static func isUploadEvictable(
        _ exchange: Handle<Exchange>, _ exchanges: inout Exchanges, _ context: inout LoopContext
    ) -> Bool {
        guard !exchange.isNone else { return false }
        let upload = UnprovenConnection.Upload(
            isAnonymous: exchanges[exchange].credential.provider < 0,
            isRequestComplete: exchanges[exchange].body.isComplete,
            hasResponseStarted: exchanges[exchange].response.hasStarted,
            isUpgrade: !exchanges[exchange].tunnel.isNone,
            started: exchanges[exchange].record.started, bytes: exchanges[exchange].record.bytesIn)
        return UnprovenConnection(upload)?.isEvictable(at: context.now) ?? false
    }
}
