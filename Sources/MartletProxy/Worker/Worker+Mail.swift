private import CLinux
internal import MartletConfig
internal import MartletCore
internal import MartletHTTP
internal import MartletHTTP2
internal import MartletIO
internal import MartletProvider
internal import MartletTLS

/// Messages from other threads, and the life of listeners.
extension Worker {
    mutating func readMail() {
        for message in mailbox.drain() {
            switch message {
            case .verdict(let exchange, let generation, let judged, let verdict):
                settle(exchange, generation, epoch: judged, verdict)
            case .answer(let exchange, let generation, let response):
                guard exchanges.holds(exchange, generation) else { continue }
                localAnswered(exchange, response)
            case .handshake(let client, let generation, let step):
                let token = EventToken(.client, index: client, generation: generation)
                handshaking.append(.finished(step), of: token, from: network(of: token))
            case .adopt(let next, let sockets): adopt(next, sockets)
            case .resolved(let names): upstreams.resolve(names)
            case .forget:
                // Verdicts on their way may rest on what is forgotten: they are asked for again.
                epoch += 1
                doubtTokens()
                forgetTokens()
            case .revoked(let numbers, let acknowledgement): revoke(numbers, acknowledgement)
            case .refuseSessions(let refuses):
                sessionsAreRefused = refuses
                if refuses { forgetTokens() }
            case .logFormatChanged:
                // Texts of records are kept as they were written, under the epoch.
                epoch += 1
                logFormat = accessLog.format
            case .collect(let reply): reply(report())
            case .drain(let deadline, let hasHeir): drain(until: deadline, hasHeir: hasHeir)
            }
        }
    }

    /// Goes on with what waited for a verdict.
    mutating func settle(_ exchange: Int32, _ generation: UInt32, epoch judged: Int, _ verdict: Verdict) {
        guard exchanges.holds(exchange, generation) else { return }
        let client = exchanges[exchange].client
        guard clients[client].phase == .authenticating else {
            return judgedAgain(exchange, epoch: judged, verdict)
        }
        // A verdict of providers that a reload has replaced is not one: the credential is judged anew.
        resume(client, with: judged == epoch ? verdict : nil)
    }

    // MARK: Reload

    /// Goes on with a new configuration: requests under way finish on what they began with, unless they are long ones that it
    /// would refuse.
    private mutating func adopt(_ next: Snapshot, _ sockets: [ListenerSocket]) {
        guard !isDraining else {
            for socket in sockets { _ = CLinux.close(socket.fd) }
            return
        }
        renumberProviders(next)
        keepForTrailers(snapshot)
        holdTokens()
        snapshot = next
        epoch += 1
        forgetTokens()
        rememberRoutes()
        reconsiderExchanges()
        if head.fields.capacity != next.limits.headerFields {
            head = RequestHead(maximumFields: next.limits.headerFields)
        }
        for retired in upstreams.adopt(next, resolved: []) { closeIdle(of: retired) }
        let kept = Set(sockets.map(\.id))
        for listener in listeners where !kept.contains(listener.id) { acceptAllThenClose(listener) }
        listeners.removeAll { !kept.contains($0.id) }
        dismissClients(of: { !kept.contains($0) })
        for socket in sockets {
            if let place = listeners.firstIndex(where: { $0.id == socket.id }) {
                _ = CLinux.close(socket.fd)
                listeners[place] = socket.keeping(listeners[place].fd)
            } else {
                try? listen(socket)
            }
        }
    }

    /// Requests under way are logged with the provider that judged them.
    private mutating func renumberProviders(_ next: Snapshot) {
        let places = snapshot.providers.map { old in next.providers.firstIndex { $0.name == old.name } ?? -1 }
        for exchange in 0..<exchanges.end where exchanges[exchange].isAlive && exchanges[exchange].provider >= 0 {
            exchanges[exchange].provider = Int32(places[Int(exchanges[exchange].provider)])
        }
    }

    /// Requests whose trailers are still to come go on by the rules that their heads went by.
    private mutating func keepForTrailers(_ former: Snapshot) {
        for exchange in 0..<exchanges.end
        where exchanges[exchange].isAlive && exchanges[exchange].responder == .upstream
            && !exchanges[exchange].isRequestComplete && exchanges[exchange].tunnel < 0
        {
            exchanges[exchange].keep(former: former)
        }
    }

    /// Begins to accept from a listener; the loop owns its descriptor from here.
    mutating func listen(_ listener: ListenerSocket) throws(IOError) {
        try listener.register(with: poller)
        listeners.append(listener)
    }

    /// Serves the accept queue once more and closes the listener.
    private mutating func acceptAllThenClose(_ listener: ListenerSocket) {
        for _ in 0..<64 { accept(listener.id) }
        stopAccepting(listener)
    }

    private mutating func stopAccepting(_ listener: ListenerSocket) {
        poller.remove(listener.fd)
        // Whoever goes on with the socket finds it as it was.
        if singleUse.isHigh { Socket.acceptReadable(listener.fd, false) }
        _ = CLinux.close(listener.fd)
    }

    // MARK: Drain

    private mutating func drain(until deadline: Int64, hasHeir: Bool) {
        guard !isDraining else {
            drainDeadline = min(drainDeadline, deadline)
            return
        }
        // First: those that are accepted now are told that their connections end.
        drainDeadline = deadline
        for listener in listeners { hasHeir ? stopAccepting(listener) : acceptAllThenClose(listener) }
        listeners.removeAll()
        dismissClients(of: { _ in true })
    }

    /// Tells clients of some listeners to go elsewhere with what they ask next (RFC 9113 §6.8); idle ones are left a
    /// moment for a request that is on its way.
    private mutating func dismissClients(of isGone: (Int32) -> Bool) {
        for client in 0..<clients.end where clients[client].isAlive && isGone(clients[client].listener) {
            if let streams = clients[client].streams {
                streams.session.goAway()
                markDirty(client: client)
                if streams.places.isEmpty { arm(client: client, at: now &+ Worker.drainIdle) }
            } else if clients[client].phase == .head, !clients[client].isStream, !clients[client].isReceivingHead,
                clients[client].output.isEmpty
            {
                let patience = clients[client].requests == 0 ? Worker.drainFresh : Worker.drainIdle
                arm(client: client, at: now &+ patience)
            }
        }
    }

    /// Whether every client has been served.
    var isDrained: Bool { clients.count == 0 }

    /// The drain is over: what is left is cut.
    mutating func cutEverything() {
        // Connections take their streams with them.
        for client in 0..<clients.end where clients[client].isAlive && !clients[client].isStream { abandon(client) }
    }

    // MARK: Counters

    private func report() -> LoopReport {
        var report = counters.report()
        report.loop = id
        report.tokenEntries = grants.count
        for client in 0..<clients.end where clients[client].isAlive {
            switch clients[client].kind {
            case .stream: report.openStreams += 1
            case .http2: report.openHTTP2Connections += 1
            default: break
            }
        }
        report.openConnections = clients.count - report.openStreams
        report.openExchanges = exchanges.count
        report.endpoints = upstreams.report(now: now)
        return report
    }
}
