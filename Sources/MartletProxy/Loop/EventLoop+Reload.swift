private import CLinux
internal import MartletAuthenticator
internal import MartletConfig
internal import MartletHTTP
internal import MartletIO
internal import MartletRouter

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
        SelectedLines.adopt(next.accessLog, &loop.downstreams, &loop.context)
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
        loop.downstreams.acceptor.listeners.removeAll { !kept.contains($0.id) }
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
