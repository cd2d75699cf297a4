package import MartletHTTP2

/// What it means that an upstream has closed its sending side.
package enum UpstreamEnd: Equatable {
    /// One direction of a tunnel has ended.
    case tunnelSide
    /// The response is complete.
    case complete
    /// The response is not.
    case truncated
    /// There is no response.
    case closedEarly

    /// - Parameters:
    ///   - isUntilClose: the response's body ends with the connection.
    ///   - hasResponse: bytes of the response were received.
    ///   - isSecure: the connection uses TLS.
    ///   - hasCloseNotify: close_notify was received.
    package init(
        in phase: UpstreamPhase, isTunnel: Bool, isUntilClose: Bool, hasResponse: Bool, isSecure: Bool,
        hasCloseNotify: Bool
    ) {
        // RFC 9112 §9.8: under TLS an end without close_notify may be a truncation.
        let isAnnounced = !isSecure || hasCloseNotify
        if isTunnel {
            self = .tunnelSide
        } else if phase == .body, isUntilClose, isAnnounced {
            self = .complete
        } else {
            self = hasResponse ? .truncated : .closedEarly
        }
    }
}

/// What the deadline of an upstream connection means.
package enum UpstreamTimeout: Equatable {
    /// Tunnels have deadlines of their own.
    case ignore
    /// An idle connection.
    case close
    /// An HTTP/2 connection, which is closed if it has no streams.
    case closeFrames
    case notEstablished
    /// A large request is still being sent.
    case extendSending
    /// No response has come.
    /// - Parameter blamesEndpoint: an upstream that waits for the rest of a request has not failed.
    case noResponse(blamesEndpoint: Bool)
    /// The client is slower than the response.
    case extendPause
    /// The response has stalled.
    case stalled

    /// How long a paused response waits for the next check, in nanoseconds.
    package static let pauseCheck: Int64 = 1_000_000_000

    /// - Parameters:
    ///   - isSending: bytes of the request were sent since the last check, and more are to be sent.
    ///   - isResponseDue: the request is complete, or the upstream does not accept what there is of it.
    ///   - isPaused: reading is paused because the client is slower.
    package init(in phase: UpstreamPhase, isTunnel: Bool, isSending: Bool, isResponseDue: Bool, isPaused: Bool) {
        guard !isTunnel else {
            self = .ignore
            return
        }
        switch phase {
        case .idle: self = .close
        case .frames: self = .closeFrames
        case .connecting, .handshake: self = .notEstablished
        case .awaitingHead: self = isSending ? .extendSending : .noResponse(blamesEndpoint: isResponseDue)
        case .body: self = isPaused ? .extendPause : .stalled
        }
    }
}

/// What it means that a stream was reset by the upstream, or is closed in both directions.
package enum UpstreamStreamEnd: Equatable {
    /// It carries no request any more.
    case close
    /// The whole response was received and waits for a slow client.
    case keep
    /// The response was malformed, or the upstream found the request to be: a retry changes neither.
    case malformed
    /// The request was not processed (RFC 9113 §8.7).
    case refused
    case reset

    /// - Parameters:
    ///   - isEnded: the response's last frame was received.
    ///   - hasResponseStarted: a part of the response was sent to the client.
    package init(_ code: HTTP2Code, carriesRequest: Bool, isEnded: Bool, hasResponseStarted: Bool) {
        if !carriesRequest {
            self = .close
        } else if isEnded {
            self = .keep
        } else if hasResponseStarted {
            self = .reset
        } else if code == .protocolError {
            self = .malformed
        } else {
            self = code == .refusedStream ? .refused : .reset
        }
    }
}
