internal import MartletConfig
internal import MartletCore
internal import MartletIO

/// When downstream sockets are registered with the poller.
extension EventLoop {
    /// Registers a downstream socket with the poller, if it is not yet.
    /// - Returns: whether it is registered.
    @discardableResult
    mutating func register(_ downstream: Handle<DownstreamConnection>) -> Bool {
        if downstreams[downstream].transport.isRegistered { return true }
        let token = EventToken(downstream: downstream)
        downstreams[downstream].transport.isRegistered =
            (try? poller.add(downstreams[downstream].transport.fd, .connection, token: token.raw)) != nil
        return downstreams[downstream].transport.isRegistered
    }

    /// Registers connections whose responses take long, to notice disconnects.
    mutating func registerOverdue() {
        while let downstream = acceptor.nextOverdue(at: now) {
            if downstreams.contains(downstream), !register(downstream) { abandon(downstream) }
        }
    }

    /// Updates listeners when the accept policy has changed, or may have.
    mutating func updateDeferAccept() {
        guard acceptor.deferAccept.evaluate(at: now) else { return }
        for listener in acceptor.listeners { Socket.setDeferAccept(listener.fd, acceptor.deferAccept.isActive) }
    }
}
