internal import MartletCore
internal import MartletDecisions
internal import MartletIO

/// Watches the turns of a loop where an overload is configured.
enum OverloadControl {
    /// Connections that did nothing yet and are closed in one turn.
    private static let connectionBatch = 16

    /// Measures the turn; in an overload, closes connections that did nothing yet, the oldest first.
    @inline(never)
    static func end(_ loop: inout LoopState, events: Int) {
        let now = loop.context.clock.source.monotonicTime.nanoseconds
        loop.context.overload.end(from: loop.now, to: now, isPartial: events == Poller.batch)
        if loop.context.overload.isActive { closeSilent(&loop) }
        loop.context.overload.ended(at: loop.context.clock.source.monotonicTime.nanoseconds)
    }

    private static func closeSilent(_ loop: inout LoopState) {
        for _ in 0..<connectionBatch {
            guard closeOldestSilent(&loop) else { return }
        }
    }

    /// Closes the oldest connection on which nothing complete was received, and where nothing waits to be read.
    ///
    /// Uploads go on: an overload needs time, not places.
    /// - Returns: whether there was one.
    private static func closeOldestSilent(_ loop: inout LoopState) -> Bool {
        for _ in 0..<min(loop.downstreams.acceptor.order.count, ConnectionOrder.searchLimit) {
            guard let downstream = loop.downstreams.acceptor.order.popOldest() else { return false }
            guard loop.downstreams.all.contains(downstream) else { continue }
            let isSilent =
                loop.downstreams[downstream].phase != .exchange && loop.downstreams[downstream].phase != .frames
            if isSilent, loop.downstreams.isEvictable(downstream, &loop.exchanges, &loop.context),
                !Socket.hasUnread(loop.downstreams[downstream].transport.fd)
            {
                loop.displace(downstream)
                return true
            }
            loop.downstreams.acceptor.order.requeue(downstream)
        }
        return false
    }
}
