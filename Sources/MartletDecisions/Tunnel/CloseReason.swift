package import MartletCore
package import MartletHTTP

/// Why the gateway ends a tunnel: decides the status and text of its Close frames, and the reason in the log.
package enum CloseReason: UInt8 {
    /// The sides end it themselves.
    case none
    /// The credential has expired.
    case expired
    /// The credential was revoked.
    case revoked
    /// No side has sent anything for too long.
    case idle
    /// The maximum age was reached.
    case aged
    /// The gateway is stopping.
    case draining
    case clientViolation
    case upstreamViolation

    /// The status for the client.
    package var status: WebSocketStatus {
        switch self {
        case .none, .idle, .aged, .draining: .goingAway
        case .expired, .revoked: .credentialEnded
        case .clientViolation, .upstreamViolation: .protocolError
        }
    }

    /// The status for the upstream: "going away", unless it is a protocol error.
    package var upstreamStatus: WebSocketStatus { status == .protocolError ? .protocolError : .goingAway }

    /// The text of the Close frame.
    package var text: StaticString {
        switch self {
        case .none: ""
        case .expired: "credential expired"
        case .revoked: "session revoked"
        case .idle: "idle"
        case .aged: "connection too old"
        case .draining: "gateway is stopping"
        case .clientViolation, .upstreamViolation: "protocol error"
        }
    }

    /// For the log and the metrics; `nil` for a normal end.
    package var reason: ErrorCode? {
        switch self {
        case .none: nil
        case .expired: "auth.credential_expired"
        case .revoked: "auth.credential_revoked"
        case .idle: "tunnel.idle"
        case .aged: "tunnel.too_old"
        case .draining: "tunnel.gateway_stopping"
        case .clientViolation: "tunnel.client_broke_protocol"
        case .upstreamViolation: "tunnel.upstream_broke_protocol"
        }
    }
}
