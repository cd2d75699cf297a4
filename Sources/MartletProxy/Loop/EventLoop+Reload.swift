private import CLinux
internal import MartletAuthenticator
internal import MartletConfig
internal import MartletCore
internal import MartletHTTP
internal import MartletHTTP2
internal import MartletIO
internal import MartletProvider
internal import MartletRouter
internal import MartletTLS

/// Applies a new configuration, and opens and closes listeners.
extension EventLoop {
    /// Adopts a new configuration: requests in progress finish under the old one, unless they are long ones that the
    /// new one would reject.
    mutating func adopt(_ next: Snapshot, _ sockets: [ListenerSocket]) {
        guard !isDraining else {
            for socket in sockets { _ = CLinux.close(socket.fd) }
            return
        }
        renumberProviders(next)
        retainSnapshotForTrailers(snapshot)
        retainTokens()
        snapshot = next
        authenticator.adopt(next.authentication)
        logs.access.configurationChanged()
        counters.assignSlots(toRoutes: snapshot.routes.routes.map(\.name))
        reevaluateExchanges()
        if head.fields.capacity != next.limits.headerFields {
            head = RequestHead(maximumFields: next.limits.headerFields)
        }
        for retired in directory.adopt(next, resolved: []) { closeIdleConnections(of: retired) }
        let kept = Set(sockets.map(\.id))
        for listener in acceptor.listeners where !kept.contains(listener.id) { acceptPendingThenClose(listener) }
        acceptor.listeners.removeAll { !kept.contains($0.id) }
        drainDownstreams(of: { !kept.contains($0) })
        for socket in sockets {
            if let index = acceptor.listeners.firstIndex(where: { $0.id == socket.id }) {
                _ = CLinux.close(socket.fd)
                acceptor.listeners[index] = socket.keeping(acceptor.listeners[index].fd)
            } else {
                try? listen(socket)
            }
        }
    }

    /// Requests in progress are logged with the provider that verified them.
    mutating func renumberProviders(_ next: Snapshot) {
        let indices = snapshot.providers.map { old in next.providers.firstIndex { $0.name == old.name } ?? -1 }
        for index in 0..<exchanges.end {
            guard let exchange = exchanges.handle(at: index), exchanges[exchange].credential.provider >= 0 else {
                continue
            }
            exchanges[exchange].credential.provider =
                Int32(indices[Int(exchanges[exchange].credential.provider)])
        }
    }

    /// Requests whose trailers are still to come keep the header rules that their heads were forwarded with.
    mutating func retainSnapshotForTrailers(_ former: Snapshot) {
        for index in 0..<exchanges.end {
            guard let exchange = exchanges.handle(at: index), exchanges[exchange].responder == .upstream,
                !exchanges[exchange].body.isComplete, exchanges[exchange].tunnel.isNone
            else { continue }
            exchanges[exchange].headerRules.retain(former: former)
        }
    }

    /// Starts accepting from a listener; the loop now owns its descriptor.
    mutating func listen(_ listener: ListenerSocket) throws(IOError) {
        try listener.register(with: poller)
        acceptor.listeners.append(listener)
    }

    /// Accepts what is queued and closes the listener.
    mutating func acceptPendingThenClose(_ listener: ListenerSocket) {
        for _ in 0..<64 { accept(listener.id) }
        stopAccepting(listener)
    }

    mutating func stopAccepting(_ listener: ListenerSocket) {
        poller.remove(listener.fd)
        // Whoever accepts from the socket next finds its options unchanged.
        if acceptor.deferAccept.isActive { Socket.setDeferAccept(listener.fd, false) }
        _ = CLinux.close(listener.fd)
    }
}
