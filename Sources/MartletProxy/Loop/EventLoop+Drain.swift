internal import MartletConfig
internal import MartletCore
internal import MartletHTTP
internal import MartletHTTP2
internal import MartletIO
internal import MartletProvider
internal import MartletTLS

/// Draining: listeners close, connections end with their current requests.
extension EventLoop {
    mutating func drain(until deadline: Int64, hasSuccessor: Bool) {
        guard !isDraining else {
            drainDeadline = min(drainDeadline, deadline)
            return
        }
        // First, so that connections accepted below are closed after their response.
        drainDeadline = deadline
        for listener in listeners { hasSuccessor ? stopAccepting(listener) : acceptPendingThenClose(listener) }
        listeners.removeAll()
        drainDownstreams(of: { _ in true })
    }

    /// Sends GOAWAY on the HTTP/2 connections of some listeners (RFC 9113 §6.8), and closes idle HTTP/1 connections
    /// after a moment, for requests in flight.
    mutating func drainDownstreams(of isClosing: (Int32) -> Bool) {
        for downstream in 0..<downstreams.end
        where downstreams[downstream].isAlive && isClosing(downstreams[downstream].listener) {
            if let streams = downstreams[downstream].streams {
                streams.session.goAway()
                markDirty(downstream: downstream)
                if streams.slots.isEmpty { arm(downstream: downstream, at: now &+ EventLoop.drainIdleTimeout) }
            } else if downstreams[downstream].phase == .head, !downstreams[downstream].isStream,
                !downstreams[downstream].isReceivingHead,
                downstreams[downstream].output.isEmpty
            {
                let timeout =
                    downstreams[downstream].requests == 0
                    ? EventLoop.drainFreshTimeout
                    : EventLoop.drainIdleTimeout
                arm(downstream: downstream, at: now &+ timeout)
            }
        }
    }

    /// Whether every connection is closed.
    var isDrained: Bool { downstreams.count == 0 }

    /// The drain deadline has passed: aborts what is left.
    mutating func abortAll() {
        // Closing a connection closes its streams.
        for downstream in 0..<downstreams.end
        where downstreams[downstream].isAlive && !downstreams[downstream].isStream {
            abandon(downstream)
        }
    }
}
