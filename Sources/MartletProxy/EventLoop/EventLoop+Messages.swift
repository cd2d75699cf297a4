private import CLinux
internal import MartletAuthenticator
internal import MartletConfig
internal import MartletCore
internal import MartletDecisions
internal import MartletHTTP
internal import MartletIO
internal import MartletResponder
internal import MartletRouter

/// Handles messages from other threads.
extension EventLoop {
    mutating func drainMailbox() {
        for entry in loop.mailbox.drain() {
            switch entry {
            case .verificationFinished(let finished):
                completeVerification(Handle(finished.exchange), epoch: finished.epoch, finished.result)
            case .limitsDecided(let exchange, let wait): resume(exchange, .decided(wait))
            case .localResponse(let exchange, let response):
                if loop.exchanges.all.contains(exchange) { RequestForwarder.localResponded(exchange, response, &loop) }
            case .localPart(let exchange, let part):
                if loop.exchanges.all.contains(exchange) { LocalParts.received(part, of: exchange, &loop) }
            case .handshake(let downstream, let step):
                loop.context.threads.handshakeQueue.append(
                    .finished(step), of: downstream, from: loop.downstreams.network(of: downstream))
            case .connectionsWanted(let upstreams, let mailbox):
                for upstream in upstreams { loop.upstreams.share(upstream, with: mailbox, &loop.context) }
            case .connection(let handed): loop.upstreams.take(handed, &loop.context)
            case .descriptorsWanted: loop.upstreams.closeOldest(&loop.context)
            case .message(.adopt(let next, let sockets)): adopt(next, sockets)
            case .message(.resolved(let names)):
                loop.upstreams.retire(loop.upstreams.directory.resolve(names, now: loop.now), &loop.context)
                // An endpoint may have the index of another one that is gone.
                loop.context.logs.access.reset()
            case .message(.health(let endpoints)): loop.upstreams.directory.note(endpoints, now: loop.now)
            case .message(.drained(let endpoints)): loop.upstreams.directory.setDrained(endpoints, now: loop.now)
            case .message(.invalidateCaches):
                // Verifications in flight may rest on what is invalidated: they are repeated.
                CredentialWatch.revalidateSessions(&loop.exchanges, &authenticator, &loop.context)
                authenticator.invalidate()
            case .message(.credentials(let change, let acknowledgement)):
                authenticator.note(change, acknowledgement, at: loop.time)
            case .message(.rejectSessions(let rejects)): authenticator.rejectSessions(rejects)
            case .message(.watch(let watcher)): loop.context.logs.watch(watcher)
            case .message(.logFormatChanged): loop.context.logs.access.reset()
            case .message(.accessLog(let plan)): loop.context.logs.access.adopt(plan)
            case .message(.report(let withEndpoints, let reply)):
                reply(LoopReport(of: self, withEndpoints: withEndpoints))
            case .message(.drain(let deadline, let hasSuccessor)):
                drain(until: deadline.nanoseconds, hasSuccessor: hasSuccessor)
            }
        }
    }
}

/// Applies a new configuration, and opens and closes listeners.
extension EventLoop {
    /// Adopts a new configuration: requests in progress finish under the old one, unless they are long ones that the
    /// new one would reject.
    mutating func adopt(_ next: Snapshot, _ sockets: [ListenerSocket]) {
        guard !loop.isDraining else {
            for socket in sockets { _ = CLinux.close(socket.fd) }
            return
        }
        loop.exchanges.renumberProviders(next, &loop.context)
        loop.exchanges.retainSnapshotForTrailers(loop.context.snapshot)
        CredentialWatch.retainTokens(&loop.exchanges, &authenticator)
        loop.context.snapshot = next
        loop.context.tracing.adopt(next.tracing)
        // Without a descriptor left, this loop watches nothing until the next reload.
        try? loop.context.overload.adopt(next.overload, loop.context.poller)
        authenticator.adopt(next.authentication)
        loop.context.logs.access.adopt(next.accessLog)
        loop.context.counters.assignSlots(toRoutes: loop.context.snapshot.routes.routes.map(\.name))
        credentialWatch.reevaluateExchanges(&loop.exchanges, &authenticator, &loop.context)
        if router.head.fields.capacity != next.limits.headerFields {
            router.head = RequestHead(maximumFields: next.limits.headerFields)
        }
        loop.upstreams.retire(loop.upstreams.directory.adopt(next, resolved: [], now: loop.now), &loop.context)
        loop.context.counters.peers.adopt(loop.upstreams.directory, next)
        let kept = Set(sockets.map(\.id))
        for listener in loop.downstreams.acceptor.listeners where !kept.contains(listener.id) {
            // A successor that is starting may have the socket.
            acceptPendingThenClose(listener, isFinal: false)
        }
        loop.downstreams.drain(of: { !kept.contains($0) }, &loop.context)
        for socket in sockets {
            if let index = loop.downstreams.acceptor.listeners.firstIndex(where: { $0.id == socket.id }) {
                _ = CLinux.close(socket.fd)
                loop.downstreams.acceptor.listeners[index] = socket.keeping(
                    loop.downstreams.acceptor.listeners[index])
            } else {
                try? loop.downstreams.listen(socket, &loop.context)
            }
        }
    }

    /// Accepts what is queued and closes the listener.
    /// - Parameter isFinal: whether no process uses the socket any more.
    mutating func acceptPendingThenClose(_ listener: ListenerSocket, isFinal: Bool) {
        // From here on the kernel drops the first segment of a handshake; the client repeats it, and reaches the other
        // process. Without this, a connection that is established between the last accept and the close is reset.
        if isFinal, listener.sharesPort { Socket.dropHandshakes(listener.fd) }
        for _ in 0..<64 { accept(listener.id) }
        loop.downstreams.stopAccepting(listener, &loop.context)
    }
}

/// Draining: listeners close, connections end with their current requests.
extension EventLoop {
    mutating func drain(until deadline: Int64, hasSuccessor: Bool) {
        // First, so that connections accepted below are closed after their response.
        guard loop.context.schedule.drain(until: deadline) else { return }
        for listener in loop.downstreams.acceptor.listeners {
            if hasSuccessor {
                loop.downstreams.stopAccepting(listener, &loop.context)
            } else {
                acceptPendingThenClose(listener, isFinal: true)
            }
        }
        loop.downstreams.drain(of: { _ in true }, &loop.context)
    }

    /// Whether every connection is closed.
    var isDrained: Bool { loop.downstreams.all.count == 0 }
}

extension LoopReport {
    /// The counters of a loop.
    /// - Parameter withEndpoints: whether the state of every endpoint is in it, which takes as long as there are many.
    init(of events: borrowing EventLoop, withEndpoints: Bool) {
        self = events.loop.context.counters.report()
        tokens.entries = events.authenticator.decisionCount
        tokens.hits = events.authenticator.hits
        tokens.misses = events.authenticator.misses
        for index in 0..<events.loop.downstreams.all.end {
            guard let downstream = events.loop.downstreams.all.handle(at: index) else { continue }
            switch events.loop.downstreams[downstream].kind {
            case .stream: http2.openStreams += 1
            case .http2: http2.openConnections += 1
            default: break
            }
        }
        connections.open = events.loop.downstreams.all.count - http2.openStreams
        overload.slowTurns = events.loop.context.overload.load.slowTurns
        overload.overloadedLoops = events.loop.context.overload.load.isOverloaded ? 1 : 0
        openExchanges = events.loop.exchanges.all.count
        events.loop.context.counters.peers.add(
            to: &self,
            upstreams: events.loop.upstreams.directory.clusterOfUpstream.map {
                (events.loop.upstreams.directory.clusters[Int($0)].upstream.name, Int($0))
            })
        if withEndpoints { endpoints = events.loop.upstreams.directory.report(now: events.loop.now) }
        exemplars = events.loop.context.tracing.report
    }
}
