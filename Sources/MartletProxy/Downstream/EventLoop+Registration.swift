internal import MartletConfig
internal import MartletCore
internal import MartletIO

/// When downstream sockets are registered with the poller.
extension EventLoop {
    /// Registers a downstream socket with the poller, if it is not yet.
    /// - Returns: whether it is registered.
    @discardableResult
    mutating func register(_ downstream: Int32) -> Bool {
        if downstreams[downstream].isRegistered { return true }
        let token = EventToken(.downstream, index: downstream, generation: downstreams[downstream].generation)
        downstreams[downstream].isRegistered =
            (try? poller.add(downstreams[downstream].fd, .connection, token: token.raw)) != nil
        return downstreams[downstream].isRegistered
    }

    /// Registers connections whose responses take long, to notice disconnects.
    mutating func registerOverdue() {
        while let first = deferredRegistrations.first, now &- first.since >= EventLoop.deferredRegistrationTime {
            _ = deferredRegistrations.popFirst()
            let downstream = first.downstream.index
            if downstreams.contains(downstream, first.downstream.generation), !register(downstream) {
                abandon(downstream)
            }
        }
    }

    /// How long the loop may sleep before the next deferred registration, in milliseconds.
    var deferredRegistrationWait: Int32 {
        guard let first = deferredRegistrations.first else { return .max }
        return Int32(clamping: max(first.since &+ EventLoop.deferredRegistrationTime &- now, 0) / 1_000_000 &+ 1)
    }

    /// Updates listeners when the accept policy has changed, or may have.
    mutating func updateDeferAccept() {
        guard deferAccept.evaluate(at: now) else { return }
        for listener in listeners { Socket.setDeferAccept(listener.fd, deferAccept.isActive) }
    }
}
