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
        loop.downstreams.acceptor.listeners.removeAll()
        loop.downstreams.drain(of: { _ in true }, &loop.context)
    }

    /// Whether every connection is closed.
    var isDrained: Bool { loop.downstreams.all.count == 0 }
}
