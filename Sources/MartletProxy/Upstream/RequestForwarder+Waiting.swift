internal import MartletCore
internal import MartletDecisions
internal import MartletProvider
internal import MartletResponder
internal import MartletTraffic

/// Requests that are counted, and those that wait: for the time before a retry, or for a connection.
extension RequestForwarder {
    /// Counts a request where its upstream counts requests.
    /// - Returns: whether it may go on; it is rejected otherwise.
    @inline(never)
    static func admit(_ exchange: Handle<Exchange>, to cluster: ClusterIndex, _ loop: inout LoopState) -> Bool {
        if let breaker = loop.upstreams.directory.clusters[Int(cluster)].upstream.breaker {
            let isDivided = breaker.requests.isDivided(of: breaker.maximumRequests)
            let network = isDivided ? loop.exchanges[exchange].clientNetwork(&loop.downstreams) : nil
            guard loop.exchanges[exchange].forwarding.enter(breaker, for: network) else {
                loop.reject(exchange, .breakerOpen("upstream.too_many_requests"))
                return false
            }
        }
        let budget = unsafe loop.upstreams.directory.clusters[Int(cluster)].upstream.retryBudget
        unsafe budget?._withUnsafeGuaranteedRef { $0.countRequest(at: loop.now) }
        return true
    }

    /// Whether the connections of an upstream may carry a request, for its network. If not, it waits for one, or is
    /// rejected.
    @inline(never)
    static func mayCarry(_ exchange: Handle<Exchange>, _ avoiding: EndpointIndex, _ loop: inout LoopState) -> Bool {
        let cluster = loop.exchanges[exchange].forwarding.cluster
        guard !loop.exchanges[exchange].forwarding.isCarried,
            let breaker = loop.upstreams.directory.clusters[Int(cluster)].upstream.breaker
        else { return true }
        var maximum = breaker.maximumConnections
        if loop.upstreams.directory.clusters[Int(cluster)].hasStreams {
            maximum *= loop.upstreams.streamsPerConnection(of: cluster)
        }
        let isDivided = breaker.carried.isDivided(of: maximum)
        let network = isDivided ? loop.exchanges[exchange].clientNetwork(&loop.downstreams) : nil
        if loop.exchanges[exchange].forwarding.carry(breaker, maximum: maximum, for: network) { return true }
        waitForConnection(exchange, breaker, avoiding, &loop)
        return false
    }

    /// Whether a connection may be opened for a request. If not, it waits for one, or is rejected.
    @inline(never)
    static func mayConnect(
        _ exchange: Handle<Exchange>, to endpoint: EndpointIndex, _ avoiding: EndpointIndex, _ loop: inout LoopState
    ) -> Bool {
        let cluster = loop.exchanges[exchange].forwarding.cluster
        guard let breaker = loop.upstreams.directory.clusters[Int(cluster)].upstream.breaker else { return true }
        if breaker.hasConnection { return true }
        // An idle connection to another endpoint makes room.
        if let idle = loop.upstreams.idleConnection(of: cluster) {
            loop.upstreams.close(idle, &loop.context)
            if breaker.hasConnection { return true }
        }
        waitForConnection(exchange, breaker, avoiding, &loop)
        return false
    }

    /// Has a request wait until a connection can carry it, or rejects it.
    private static func waitForConnection(
        _ exchange: Handle<Exchange>, _ breaker: Breaker, _ avoiding: EndpointIndex, _ loop: inout LoopState
    ) {
        // It was not sent.
        loop.exchanges[exchange].forwarding.attempts &-= 1
        let network = loop.exchanges[exchange].clientNetwork(&loop.downstreams)
        guard
            loop.exchanges[exchange].forwarding.isPending
                || loop.exchanges[exchange].forwarding.pend(breaker, for: network, at: loop.now)
        else { return loop.reject(exchange, .breakerOpen("upstream.too_many_pending")) }
        let deadline = loop.exchanges[exchange].forwarding.pendingUntil
        loop.upstreams.directory.clusters[Int(loop.exchanges[exchange].forwarding.cluster)].isWaitedFor = true
        wait(
            exchange, .connection, until: deadline, avoiding: avoiding, for: network, &loop.exchanges,
            &loop.downstreams, &loop.waiting)
    }

    /// Has a request wait; its body is not read meanwhile.
    static func wait(
        _ exchange: Handle<Exchange>, _ reason: DelayedRequests.Reason, until deadline: Int64,
        avoiding: EndpointIndex, for network: ClientNetwork? = nil, _ exchanges: inout Exchanges,
        _ downstreams: inout DownstreamConnections, _ waiting: inout DelayedRequests
    ) {
        exchanges[exchange].forwarding.stopCarrying()
        exchanges[exchange].forwarding.isWaiting = true
        exchanges[exchange].responder = .upstream
        if !exchanges[exchange].body.isComplete {
            downstreams[exchanges[exchange].downstream].isPaused = true
        }
        waiting.add(
            DelayedRequests.Entry(
                exchange: exchange, cluster: exchanges[exchange].forwarding.cluster, avoiding: avoiding,
                reason: reason, deadline: deadline, network: network))
    }

    /// Sends the requests whose time to wait is over, and those for which there is a connection now.
    static func resumeWaiting(_ loop: inout LoopState) {
        for entry in loop.waiting.takeDue(at: loop.now) where loop.exchanges.all.contains(entry.exchange) {
            loop.exchanges[entry.exchange].forwarding.isWaiting = false
            switch entry.reason {
            case .backoff: sendToEndpoint(entry.exchange, avoiding: entry.avoiding, reusing: true, &loop)
            case .connection: loop.reject(entry.exchange, .breakerOpen("upstream.queue_timed_out"))
            case .descriptor: loop.reject(entry.exchange, .tooManyUpstreamConnections)
            }
        }
        var full: [ClusterIndex] = []
        for cluster in loop.waiting.pendingClusters {
            if hasRoom(cluster, &loop.upstreams, &loop.waiting, &loop.context) {
                resumePending(of: cluster, &loop)
            } else if loop.upstreams.directory.clusters[Int(cluster)].upstream.breaker?.hasConnection == false {
                full.append(cluster)
            }
        }
        if loop.waiting.waitsForDescriptors, !loop.upstreams.descriptors.isFull {
            for entry in loop.waiting.takeForDescriptors() where loop.exchanges.all.contains(entry.exchange) {
                guard !loop.upstreams.descriptors.isFull else {
                    loop.waiting.add(entry)
                    continue
                }
                loop.exchanges[entry.exchange].forwarding.isWaiting = false
                sendToEndpoint(entry.exchange, avoiding: entry.avoiding, reusing: true, &loop)
            }
        }
        askSiblings(full, loop.upstreams.directory, &loop.waiting, &loop.context)
    }

    /// Asks the other loops for what may idle there.
    private static func askSiblings(
        _ full: [ClusterIndex], _ directory: borrowing UpstreamDirectory, _ waiting: inout DelayedRequests,
        _ context: inout LoopContext
    ) {
        let needsDescriptor = waiting.waitsForDescriptors
        guard !full.isEmpty || needsDescriptor, waiting.mayAsk(at: context.now) else { return }
        var names: [String] = []
        for cluster in full { names.append(directory.clusters[Int(cluster)].upstream.name) }
        for sibling in context.threads.siblings {
            if needsDescriptor { sibling.post(.descriptorsWanted) }
            sibling.post(.connectionsWanted(upstreams: names, by: context.threads.mailbox))
        }
    }

    /// Whether a request that waits for a connection of an upstream may find one. Few that wait would cost a turn of the
    /// loop little; many of one client must not cost it much.
    private static func hasRoom(
        _ cluster: ClusterIndex, _ upstreams: inout UpstreamConnections, _ waiting: inout DelayedRequests,
        _ context: inout LoopContext
    ) -> Bool {
        guard let breaker = upstreams.directory.clusters[Int(cluster)].upstream.breaker else { return true }
        guard waiting.mayCarryMore(cluster, carried: breaker.carried.current, at: context.now) else { return false }
        return breaker.hasConnection || upstreams.idleConnection(of: cluster) != nil
            || upstreams.directory.clusters[Int(cluster)].hasStreams
    }

    /// Sends the requests of each network until one has to wait again, and leaves the others where they were.
    private static func resumePending(of cluster: ClusterIndex, _ loop: inout LoopState) {
        var full: Set<ClientNetwork?> = []
        for entry in loop.waiting.takePending(of: cluster) where loop.exchanges.all.contains(entry.exchange) {
            guard !full.contains(entry.network) else {
                loop.waiting.add(entry)
                continue
            }
            loop.exchanges[entry.exchange].forwarding.isWaiting = false
            sendToEndpoint(entry.exchange, avoiding: entry.avoiding, reusing: true, &loop)
            if loop.exchanges.all.contains(entry.exchange), loop.exchanges[entry.exchange].forwarding.isWaiting {
                full.insert(entry.network)
            }
        }
        let breaker = loop.upstreams.directory.clusters[Int(cluster)].upstream.breaker
        loop.waiting.tried(cluster, carried: full.isEmpty ? nil : breaker?.carried.current, at: loop.now)
        loop.upstreams.directory.clusters[Int(cluster)].isWaitedFor = !full.isEmpty
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

/// Whose connections to upstreams they are, where descriptors get scarce.
extension RequestForwarder {
    /// Takes the descriptor of a new connection for a request, has the request wait for one, or rejects it.
    static func takeDescriptor(for exchange: Handle<Exchange>, _ loop: inout LoopState) -> DescriptorCharge? {
        let network = loop.exchanges[exchange].clientNetwork(&loop.downstreams)
        if let charge = loop.upstreams.descriptors.take(for: network) { return charge }
        // An idle connection, to whatever endpoint, makes room.
        if loop.upstreams.descriptors.isFull, let idle = loop.upstreams.directory.anyIdle() {
            loop.upstreams.close(idle, &loop.context)
            if let charge = loop.upstreams.descriptors.take(for: network) { return charge }
        }
        if loop.upstreams.descriptors.isFull, !loop.context.threads.siblings.isEmpty {
            // It was not sent.
            loop.exchanges[exchange].forwarding.attempts &-= 1
            wait(
                exchange, .descriptor, until: loop.now &+ DelayedRequests.descriptorWait, avoiding: .none,
                &loop.exchanges, &loop.downstreams, &loop.waiting)
            return nil
        }
        loop.reject(exchange, .tooManyUpstreamConnections)
        return nil
    }

    /// Counts an idle connection for the network of a request, or leaves it idle and rejects the request.
    @inline(never)
    static func mayReuse(
        _ upstream: Handle<UpstreamConnection>, for exchange: Handle<Exchange>, _ loop: inout LoopState
    ) -> Bool {
        let network = loop.exchanges[exchange].clientNetwork(&loop.downstreams)
        let lent = unsafe loop.upstreams.all.address(of: upstream)
        if unsafe loop.upstreams.descriptors.use(&lent.pointee.descriptor, by: network) { return true }
        loop.upstreams.directory.endpoints[Int(loop.upstreams[upstream].endpoint)].idle.append(upstream)
        loop.reject(exchange, .tooManyUpstreamConnections)
        return false
    }
}
