/// What happens to a downstream connection whose client has closed its sending side.
package enum HalfClose: Equatable {
    /// Nothing is in progress.
    case close
    /// The rest of a response is sent first.
    case closeAfterFlush
    /// What is in progress can never be complete.
    case abandon
    /// The client gets its response, if it is still connected.
    case probe
    /// One direction of a tunnel has ended.
    case endTunnelSide
    /// It counts later, when the request in progress is forwarded.
    case wait

    /// - Parameters:
    ///   - isTunnel: the exchange in progress is an open tunnel.
    ///   - isRequestComplete: the request in progress was received completely.
    ///   - isLast: its client uses HTTP/1.0 and does not keep the connection: it can do nothing else with it, and no
    ///     probe could find out whether it is still there.
    package init(
        in phase: DownstreamPhase, isTunnel: Bool, isRequestComplete: Bool, isLast: Bool = false,
        hasOutput: Bool
    ) {
        switch phase {
        case .proxyHeader, .handshake, .lingering: self = .close
        case .frames: self = .abandon
        case .head: self = hasOutput ? .closeAfterFlush : .close
        case .waiting: self = .wait
        case .exchange where isTunnel: self = .endTunnelSide
        case .exchange: self = isRequestComplete && !isLast ? .probe : .abandon
        }
    }
}
