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
        // First, so that connections accepted below are closed after their response.
        guard schedule.drain(until: deadline) else { return }
        for listener in acceptor.listeners { hasSuccessor ? stopAccepting(listener) : acceptPendingThenClose(listener) }
        acceptor.listeners.removeAll()
        drainDownstreams(of: { _ in true })
    }

    /// Sends GOAWAY on the HTTP/2 connections of some listeners (RFC 9113 §6.8), and closes idle HTTP/1 connections
    /// after a moment, for requests in flight.
    mutating func drainDownstreams(of isClosing: (Int32) -> Bool) {
        for index in 0..<downstreams.end {
            guard let downstream = downstreams.handle(at: index), isClosing(downstreams[downstream].origin.listener)
            else {
                continue
            }
            if let streams = downstreams[downstream].streams {
                streams.session.goAway()
                markDirty(downstream: downstream)
                if streams.slots.isEmpty { arm(downstream: downstream, at: now &+ EventLoop.drainIdleTimeout) }
            } else if downstreams[downstream].phase == .head, !downstreams[downstream].isStream,
                !downstreams[downstream].reader.isReceivingHead,
                downstreams[downstream].transport.output.isEmpty
            {
                let timeout =
                    downstreams[downstream].reader.requests == 0
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
        for index in 0..<downstreams.end {
            guard let downstream = downstreams.handle(at: index), !downstreams[downstream].isStream else { continue }
            abandon(downstream)
        }
    }
}
