internal import MartletBalancing
internal import MartletCore
internal import MartletLimits
internal import MartletResponder

/// Requests that are counted, and those that wait: for the time before a retry, or for a connection.
extension RequestForwarder {
    /// Counts a request where its upstream counts requests.
    /// - Returns: whether it may go on; it is rejected otherwise.
    @inline(never)
    static func admit(_ exchange: Handle<Exchange>, to cluster: ClusterIndex, _ loop: inout LoopState) -> Bool {
        guard let counters = loop.upstreams.directory.clusters[Int(cluster)].upstream.counters else { return true }
        let traffic = loop.upstreams.directory.clusters[Int(cluster)].upstream.traffic
        if let breaker = traffic.breaker,
            !loop.exchanges[exchange].forwarding.enter(counters.requests, maximum: breaker.requests)
        {
            loop.reject(exchange, .breakerOpen("upstream.too_many_requests"))
            return false
        }
        if traffic.retries != nil { counters.budget.countRequest(at: loop.now) }
        return true
    }

    /// Whether a connection may be opened for a request. If not, it waits for one, or is rejected.
    @inline(never)
    static func mayConnect(
        _ exchange: Handle<Exchange>, to endpoint: EndpointIndex, _ avoiding: EndpointIndex, _ loop: inout LoopState
    ) -> Bool {
        let cluster = loop.exchanges[exchange].forwarding.cluster
        guard let breaker = loop.upstreams.directory.clusters[Int(cluster)].upstream.traffic.breaker,
            let counters = loop.upstreams.directory.clusters[Int(cluster)].upstream.counters
        else { return true }
        if counters.connections.current < breaker.connections { return true }
        // An idle connection to another endpoint makes room.
        if let idle = loop.upstreams.directory.oldestIdle(of: cluster) {
            loop.upstreams.close(idle, &loop.context)
            if counters.connections.current < breaker.connections { return true }
        }
        // It was not sent.
        loop.exchanges[exchange].forwarding.attempts &-= 1
        guard
            loop.exchanges[exchange].forwarding.isPending
                || loop.exchanges[exchange].forwarding.pend(
                    counters.pending, maximum: breaker.pending, until: loop.now &+ breaker.queueTimeout)
        else {
            loop.reject(exchange, .breakerOpen("upstream.too_many_pending"))
            return false
        }
        let deadline = loop.exchanges[exchange].forwarding.pendingUntil
        wait(exchange, .connection, until: deadline, avoiding: avoiding, &loop)
        return false
    }

    /// Has a request wait; its body is not read meanwhile.
    static func wait(
        _ exchange: Handle<Exchange>, _ reason: DelayedRequests.Reason, until deadline: Int64,
        avoiding: EndpointIndex, _ loop: inout LoopState
    ) {
        loop.exchanges[exchange].forwarding.isWaiting = true
        loop.exchanges[exchange].responder = .upstream
        if !loop.exchanges[exchange].body.isComplete {
            loop.downstreams[loop.exchanges[exchange].downstream].isPaused = true
        }
        loop.waiting.add(
            DelayedRequests.Entry(
                exchange: exchange, cluster: loop.exchanges[exchange].forwarding.cluster, avoiding: avoiding,
                reason: reason, deadline: deadline))
    }

    /// Sends the requests whose time to wait is over, and those for which there is a connection now.
    static func resumeWaiting(_ loop: inout LoopState) {
        for entry in loop.waiting.takeDue(at: loop.now) where loop.exchanges.all.contains(entry.exchange) {
            loop.exchanges[entry.exchange].forwarding.isWaiting = false
            switch entry.reason {
            case .backoff: sendToEndpoint(entry.exchange, avoiding: entry.avoiding, reusing: true, &loop)
            case .connection: loop.reject(entry.exchange, .breakerOpen("upstream.queue_timed_out"))
            }
        }
        for entry in loop.waiting.takePending() where loop.exchanges.all.contains(entry.exchange) {
            loop.exchanges[entry.exchange].forwarding.isWaiting = false
            sendToEndpoint(entry.exchange, avoiding: entry.avoiding, reusing: true, &loop)
        }
    }

    /// Ends the requests of endpoints that have left the configuration and whose time to finish is over (`drain`).
    static func cutOverdue(_ loop: inout LoopState) {
        let overdue = loop.upstreams.directory.takeOverdue(loop.now)
        guard !overdue.isEmpty else { return }
        for index in 0..<loop.exchanges.all.end {
            guard let exchange = loop.exchanges.all.handle(at: index), !loop.exchanges[exchange].upstream.isNone,
                overdue.contains(loop.upstreams[loop.exchanges[exchange].upstream].endpoint)
            else { continue }
            loop.fail(exchange, .upstreamUnavailable("upstream.endpoint_removed"))
        }
    }
}
