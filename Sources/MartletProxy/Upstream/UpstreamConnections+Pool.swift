private import CLinux
internal import MartletCore
internal import MartletDecisions
internal import MartletIO

/// The pool of idle connections.
extension UpstreamConnections {
    /// Returns an idle connection to its endpoint's pool, or closes it where that keeps none.
    mutating func returnToPool(_ upstream: Handle<UpstreamConnection>, _ context: inout LoopContext) {
        let endpoint = self[upstream].endpoint
        if self[upstream].descriptor.network != nil {
            let lent = unsafe all.address(of: upstream)
            unsafe descriptors.endUse(&lent.pointee.descriptor)
        }
        guard !context.isDraining else { return close(upstream, &context) }
        guard directory.keepsIdle(endpoint) || isKept(upstream, &context) else { return }
        self[upstream].phase = .idle
        directory.endpoints[Int(endpoint)].idle.append(upstream)
        arm(upstream, at: context.now &+ self[upstream].idleTimeout, &context)
    }

    /// After a full read, an idle connection may have unsolicited bytes: close it then.
    mutating func checkIdle(_ upstream: Handle<UpstreamConnection>, received: Int, _ context: inout LoopContext) {
        guard received == ReceiveBuffer.size else { return }
        if context.receiveBuffer.receive(from: self[upstream].transport.fd) >= 0 || martlet_errno() != EAGAIN {
            close(upstream, &context)
        }
    }

    /// Closes a share of the idle connections, as another loop finds no descriptor: an eighth of each endpoint's, those
    /// that have been idle for longest.
    mutating func closeOldest(_ context: inout LoopContext) {
        guard descriptors.isFull else { return }
        for endpoint in directory.endpoints.indices {
            let idle = directory.endpoints[endpoint].idle
            for upstream in idle.prefix((idle.count + 7) / 8) { close(upstream, &context) }
        }
    }

    /// Closes what is idle of endpoints that are not used any more.
    mutating func retire(_ endpoints: [EndpointIndex], _ context: inout LoopContext) {
        for endpoint in endpoints { closeIdleConnections(of: endpoint, &context) }
    }

    /// Closes the idle connections of an endpoint that is not used any more.
    mutating func closeIdleConnections(of endpoint: EndpointIndex, _ context: inout LoopContext) {
        let idle = directory.endpoints[Int(endpoint)].idle
        directory.endpoints[Int(endpoint)].idle = []
        for upstream in idle { close(upstream, &context) }
        retireConnections(of: endpoint, &context)
    }
}

/// Connections that idle in one loop while requests of another one wait for them.
extension UpstreamConnections {
    /// Hands idle connections of an upstream to another loop, of which requests wait; without one, those that become
    /// idle next are for it.
    mutating func share(_ name: String, with mailbox: Mailbox, _ context: inout LoopContext) {
        guard let cluster = directory.clusterOfName[name],
            let breaker = directory.clusters[Int(cluster)].upstream.breaker,
            breaker.pending.current > 0, !breaker.hasConnection
        else { return }
        if directory.clusters[Int(cluster)].isWaitedFor || !handIdle(of: cluster, to: mailbox, &context) {
            directory.setWanted(cluster, by: mailbox)
        }
    }

    /// - Returns: whether there is an idle one.
    private mutating func handIdle(
        of cluster: ClusterIndex, to mailbox: Mailbox, _ context: inout LoopContext
    ) -> Bool {
        guard let idle = idleConnection(of: cluster) else { return false }
        // One of HTTP/2 has this loop's memory, and one with unsent bytes of TLS waits for the kernel here: they are
        // closed, and the other loop opens its own.
        let isHanded = self[idle].kind == .http1 && self[idle].transport.output.isEmpty
        isHanded ? hand(idle, to: mailbox, &context) : close(idle, &context)
        return true
    }

    /// A connection has become idle that is not simply kept.
    /// - Returns: whether it is kept all the same.
    @inline(never)
    mutating func isKept(_ upstream: Handle<UpstreamConnection>, _ context: inout LoopContext) -> Bool {
        let endpoint = self[upstream].endpoint
        guard directory.endpoints[Int(endpoint)].mayIdle else {
            close(upstream, &context)
            return false
        }
        let cluster = directory.endpoints[Int(endpoint)].cluster
        guard let mailbox = directory.nextTaker(of: cluster) else { return true }
        self[upstream].phase = .idle
        arm(upstream, at: context.now &+ self[upstream].idleTimeout, &context)
        hand(upstream, to: mailbox, &context)
        return false
    }

    private mutating func hand(
        _ upstream: Handle<UpstreamConnection>, to mailbox: Mailbox, _ context: inout LoopContext
    ) {
        let endpoint = Int(self[upstream].endpoint)
        context.poller.remove(self[upstream].transport.fd)
        let parts = self[upstream].letGo()
        let handed = HandedConnection(parts, of: directory.key(of: endpoint), descriptors)
        close(upstream, &context)
        mailbox.post(.connection(handed))
    }

    /// Takes a connection that another loop has handed over; it is idle here.
    mutating func take(_ handed: HandedConnection, _ context: inout LoopContext) {
        guard !context.isDraining, let endpoint = directory.endpoint(of: handed.endpoint), let parts = handed.take()
        else { return }
        let (fd, deadline) = (parts.fd, parts.deadline)
        let upstream = all.allocate()
        self[upstream].open(parts, endpoint)
        do {
            try context.poller.add(fd, .connection, token: EventToken(upstream: upstream).raw)
        } catch {
            return close(upstream, &context)
        }
        directory.endpoints[Int(endpoint)].idle.append(upstream)
        arm(upstream, at: deadline, &context)
    }
}

extension UpstreamConnection {
    /// Takes what the connection consists of out of its slot.
    fileprivate mutating func letGo() -> HandedConnection.Parts {
        let parts = HandedConnection.Parts(
            fd: transport.fd, isSecure: transport.isSecure, engine: transport.engine.take(), served: served,
            deadline: timer.deadline, idleTimeout: idleTimeout, counter: counter, descriptor: descriptor)
        counter = CounterEntry()
        descriptor = DescriptorCharge()
        transport.fd = -1
        return parts
    }

    fileprivate mutating func open(_ parts: consuming HandedConnection.Parts, _ endpoint: EndpointIndex) {
        open(fd: parts.fd, kind: .http1, endpoint: endpoint, connected: true)
        transport.isSecure = parts.isSecure
        transport.engine = parts.engine.take()
        served = parts.served
        idleTimeout = parts.idleTimeout
        counter = parts.counter
        descriptor = parts.descriptor
    }
}
