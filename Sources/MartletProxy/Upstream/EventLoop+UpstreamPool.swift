private import CLinux
internal import MartletConfig
internal import MartletCore
internal import MartletHTTP
internal import MartletIO
internal import MartletRouter

/// Upstream connections: use by an exchange, the idle pool, and closing.
extension EventLoop {
    /// Idle connections kept per endpoint.
    static let idleLimit = 256

    /// Attaches the exchange to an upstream connection and sends what is available.
    mutating func attach(_ exchange: Int32, to upstream: Int32) {
        exchanges[exchange].upstream = upstream
        exchanges[exchange].responder = .upstream
        exchanges[exchange].headSent = 0
        upstreams[upstream].exchange = exchange
        directory.began(upstreams[upstream].endpoint)
        let group = Int(exchanges[exchange].cluster)
        exchanges[exchange].responseTimeout = directory.clusters[group].upstream.responseTimeout
        exchanges[exchange].idleTimeout = directory.clusters[group].upstream.idleTimeout
        upstreams[upstream].idleTimeout = exchanges[exchange].idleTimeout
        if !exchanges[exchange].framing.isEmpty { forwardHeldBody(of: exchange) }
        if !exchanges[exchange].isRequestComplete { armBody(exchange) }
        if !upstreams[upstream].isUp {
            arm(upstream: upstream, at: now &+ directory.clusters[group].upstream.connectTimeout)
        } else {
            upstreams[upstream].expectResponse()
            armResponseTimeout(upstream)
            flush(upstream: upstream)
        }
    }

    /// Sets the response timeout, which starts when the request is complete; until then the idle timeout counts.
    mutating func armResponseTimeout(_ upstream: Int32) {
        let exchange = upstreams[upstream].exchange
        let timeout =
            exchanges[exchange].isRequestComplete
            ? exchanges[exchange].responseTimeout : exchanges[exchange].idleTimeout
        arm(upstream: upstream, at: now &+ timeout)
    }

    /// Returns an idle connection to its endpoint's pool, or closes it if the pool is full.
    mutating func returnToPool(_ upstream: Int32) {
        let endpoint = Int(upstreams[upstream].endpoint)
        guard !isDraining, !directory.endpoints[endpoint].isRetired,
            !directory.endpoints[endpoint].transport.sendsProxyHeader,
            directory.endpoints[endpoint].idle.count < EventLoop.idleLimit
        else { return closeUpstream(upstream) }
        upstreams[upstream].phase = .idle
        directory.endpoints[endpoint].idle.append(upstream)
        arm(upstream: upstream, at: now &+ upstreams[upstream].idleTimeout)
    }

    /// Closes the idle connections of an endpoint that is not used any more.
    mutating func closeIdleConnections(of endpoint: Int32) {
        let idle = directory.endpoints[Int(endpoint)].idle
        directory.endpoints[Int(endpoint)].idle = []
        for upstream in idle { closeUpstream(upstream) }
        retireConnections(of: endpoint)
    }

    /// Closes an upstream connection and frees its slot.
    mutating func closeUpstream(_ upstream: Int32) {
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
        if upstreams[upstream].fd >= 0 { _ = CLinux.close(upstreams[upstream].fd) }
        upstreams[upstream].close()
        upstreams.free(upstream)
    }

    /// Drops the upstream connection of an exchange that ends without a complete response; it cannot be reused.
    mutating func dropUpstream(of exchange: Int32) {
        exchanges[exchange].task?.cancel()
        exchanges[exchange].task = nil
        let upstream = exchanges[exchange].upstream
        guard upstream >= 0 else { return }
        exchanges[exchange].upstream = -1
        directory.ended(upstreams[upstream].endpoint)
        closeUpstream(upstream)
    }
}
