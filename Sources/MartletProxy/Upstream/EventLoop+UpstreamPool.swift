private import CLinux
internal import MartletConfig
internal import MartletCore
internal import MartletHTTP
internal import MartletIO
internal import MartletRouter

/// Upstream connections: use by an exchange, the idle pool, and closing.
extension EventLoop {
    /// Attaches the exchange to an upstream connection and sends what is available.
    mutating func attach(_ exchange: Handle<Exchange>, to upstream: Handle<UpstreamConnection>) {
        exchanges[exchange].upstream = upstream
        exchanges[exchange].responder = .upstream
        exchanges[exchange].forwarding.headSent = 0
        upstreams[upstream].exchange = exchange
        directory.began(upstreams[upstream].endpoint)
        let group = Int(exchanges[exchange].forwarding.cluster)
        exchanges[exchange].forwarding.responseTimeout = directory.clusters[group].upstream.responseTimeout
        exchanges[exchange].forwarding.idleTimeout = directory.clusters[group].upstream.idleTimeout
        upstreams[upstream].idleTimeout = exchanges[exchange].forwarding.idleTimeout
        if !exchanges[exchange].body.framing.isEmpty { forwardHeldBody(of: exchange) }
        if !exchanges[exchange].body.isComplete { armBody(exchange) }
        if !upstreams[upstream].isUp {
            arm(upstream: upstream, at: now &+ directory.clusters[group].upstream.connectTimeout)
        } else {
            upstreams[upstream].expectResponse()
            armResponseTimeout(upstream)
            flush(upstream: upstream)
        }
    }

    /// Sets the response timeout, which starts when the request is complete; until then the idle timeout counts.
    mutating func armResponseTimeout(_ upstream: Handle<UpstreamConnection>) {
        let exchange = upstreams[upstream].exchange
        let timeout =
            exchanges[exchange].body.isComplete
            ? exchanges[exchange].forwarding.responseTimeout : exchanges[exchange].forwarding.idleTimeout
        arm(upstream: upstream, at: now &+ timeout)
    }

    /// Returns an idle connection to its endpoint's pool, or closes it if the pool is full.
    mutating func returnToPool(_ upstream: Handle<UpstreamConnection>) {
        let endpoint = upstreams[upstream].endpoint
        guard !isDraining, directory.keepsIdle(endpoint) else { return closeUpstream(upstream) }
        upstreams[upstream].phase = .idle
        directory.endpoints[Int(endpoint)].idle.append(upstream)
        arm(upstream: upstream, at: now &+ upstreams[upstream].idleTimeout)
    }

    /// Closes the idle connections of an endpoint that is not used any more.
    mutating func closeIdleConnections(of endpoint: EndpointIndex) {
        let idle = directory.endpoints[Int(endpoint)].idle
        directory.endpoints[Int(endpoint)].idle = []
        for upstream in idle { closeUpstream(upstream) }
        retireConnections(of: endpoint)
    }

    /// Closes an upstream connection and frees its slot.
    mutating func closeUpstream(_ upstream: Handle<UpstreamConnection>) {
        guard upstreams[upstream].isAlive else { return }
        if upstreams[upstream].phase == .idle {
            directory.endpoints[Int(upstreams[upstream].endpoint)].idle.removeAll { $0 == upstream }
        }
        switch upstreams[upstream].kind {
        case .stream: leaveHTTP2Connection(upstream)
        case .http2: removeFromEndpoint(upstream)
        case .http1: break
        }
        dropPipe(ofUpstream: upstream)
        if upstreams[upstream].transport.fd >= 0 { _ = CLinux.close(upstreams[upstream].transport.fd) }
        upstreams[upstream].close()
        upstreams.free(upstream)
    }

    /// Drops the upstream connection of an exchange that ends without a complete response; it cannot be reused.
    mutating func dropUpstream(of exchange: Handle<Exchange>) {
        exchanges[exchange].local.task?.cancel()
        exchanges[exchange].local.task = nil
        let upstream = exchanges[exchange].upstream
        guard !upstream.isNone else { return }
        exchanges[exchange].upstream = .none
        directory.ended(upstreams[upstream].endpoint)
        closeUpstream(upstream)
    }
}
