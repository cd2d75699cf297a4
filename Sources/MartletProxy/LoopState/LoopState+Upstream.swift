internal import MartletCore
internal import MartletDecisions
internal import MartletHTTP
internal import MartletResponder

/// Writing to upstream connections: the head first, then the body.
extension LoopState {
    /// Attaches the exchange to an upstream connection and sends what is available.
    mutating func attach(_ exchange: Handle<Exchange>, to upstream: Handle<UpstreamConnection>) {
        exchanges[exchange].upstream = upstream
        exchanges[exchange].responder = .upstream
        exchanges[exchange].forwarding.head.sent = 0
        exchanges[exchange].forwarding.stopPending()
        upstreams[upstream].exchange = exchange
        upstreams.directory.began(upstreams[upstream].endpoint)
        let group = Int(exchanges[exchange].forwarding.cluster)
        exchanges[exchange].forwarding.responseTimeout = upstreams.directory.clusters[group].upstream.responseTimeout
        exchanges[exchange].forwarding.idleTimeout = upstreams.directory.clusters[group].upstream.idleTimeout
        upstreams[upstream].idleTimeout = exchanges[exchange].forwarding.idleTimeout
        if !exchanges[exchange].body.framing.isEmpty { exchanges[exchange].forwardHeldBody(&upstreams) }
        if !exchanges[exchange].body.isComplete { exchanges[exchange].armBody(&downstreams, &context) }
        if !upstreams[upstream].isUp {
            upstreams.arm(upstream, at: now &+ upstreams.directory.clusters[group].upstream.connectTimeout, &context)
        } else {
            upstreams[upstream].expectResponse()
            exchanges[upstreams[upstream].exchange].armResponseTimeout(upstream, &upstreams, &context)
            flush(upstream: upstream)
        }
    }

    /// Sends buffered output: the head first, then the body.
    mutating func flush(upstream: Handle<UpstreamConnection>) {
        if upstreams[upstream].kind != .http1 || upstreams[upstream].transport.isSecure {
            return flushEncoded(upstream)
        }
        let exchange = upstreams[upstream].exchange
        guard !exchange.isNone, upstreams[upstream].phase != .connecting else { return }
        let head = unsafe exchanges[exchange].forwarding.head.unsent
        guard head.count > 0 || !upstreams[upstream].output.isEmpty else { return }
        let body = unsafe upstreams[upstream].output.bytes
        guard let sent = unsafe upstreams[upstream].transport.send(head, body) else {
            return upstreams.sendFailed(upstream, &exchanges, &context)
        }
        if sent == 0 { return }
        let ofHead = min(sent, head.count)
        exchanges[exchange].forwarding.head.sent &+= ofHead
        upstreams[upstream].output.consume(sent &- ofHead)
        if upstreams[upstream].output.isEmpty { upstreams[upstream].output.release() }
        if !exchanges[exchange].body.isComplete {
            exchanges[upstreams[upstream].exchange].armResponseTimeout(upstream, &upstreams, &context)
        }
        exchanges[exchange].resumeDownstream(&downstreams, &upstreams, &context)
        if exchanges.isTunnel(exchange), upstreams[upstream].output.isEmpty { advanceTunnel(exchange) }
    }

    /// Flushes a connection that is not clear-text HTTP/1.
    private mutating func flushEncoded(_ upstream: Handle<UpstreamConnection>) {
        switch upstreams[upstream].kind {
        case .stream: upstreams.flushStream(upstream, &downstreams, &exchanges, &context)
        case .http2: upstreams.flushFrames(upstream, &context)
        case .http1:
            let exchange = upstreams[upstream].exchange
            guard upstreams[upstream].isUp, !exchange.isNone else {
                return upstreams.flushTransport(upstream, &context)
            }
            // When the kernel has accepted everything, no event will ask for what is not encrypted yet.
            repeat {
                guard upstreams.encryptRequest(upstream, &exchanges, &context) else { return }
                upstreams.flushTransport(upstream, &context)
            } while upstreams[upstream].transport.output.isEmpty && !upstreams[upstream].output.isEmpty
            if exchanges.isTunnel(exchange), upstreams.unsent(upstream) == 0 { advanceTunnel(exchange) }
            guard upstreams[upstream].isAlive, upstreams[upstream].exchange == exchange else { return }
            if !exchanges[exchange].body.isComplete {
                exchanges[upstreams[upstream].exchange].armResponseTimeout(upstream, &upstreams, &context)
            }
            exchanges[exchange].resumeDownstream(&downstreams, &upstreams, &context)
        }
    }

    /// The upstream's response is malformed or not allowed.
    ///
    /// - Parameter closes: the client's connection is closed, as if the response had started.
    mutating func rejectResponse(_ upstream: Handle<UpstreamConnection>, _ reason: ErrorCode, closes: Bool = false) {
        let exchange = upstreams[upstream].exchange
        upstreams.directory.failed(upstreams[upstream].endpoint, refused: false, now: now)
        exchanges.dropUpstream(of: exchange, &upstreams, &context)
        var failure = Failure.upstreamInvalid(reason)
        failure.closes = closes
        fail(exchange, failure)
    }
}
