internal import MartletCore
internal import MartletHTTP

/// The upgrade of an exchange: from the offer in its request to the end of the upgraded connection.
struct Tunnel: ~Copyable, SlabElement {
    enum Phase: UInt8 {
        /// The upstream has not responded yet: nothing after the request's head is forwarded.
        case requested
        /// Bytes pass in both directions.
        case open
        /// Closing: each side is sent Close, where its protocol has it.
        case closing
    }

    /// One of its two sides.
    struct Side {
        /// The peer has closed its sending side.
        var isReadClosed = false
        /// Close has to be sent after the current frame.
        var isClosePending = false
        /// Close was sent: everything else for this side is discarded.
        var isCloseSent = false
        /// The writing direction was closed.
        var isWriteClosed = false
    }

    var generation: UInt32 = 0
    var isAlive = false

    var phase = Phase.requested
    var isWebSocket = false
    /// The protocol as the client spelled it.
    var name = ByteBuffer()
    /// The `Sec-WebSocket-Accept` value that the upstream must send.
    var accept = ByteBuffer()

    var fromDownstream = WebSocketFrameTracker(from: .client)
    var fromUpstream = WebSocketFrameTracker(from: .server)
    var downstream = Side()
    var upstream = Side()
    var closeReason = CloseReason.none
    var openedAt: Int64 = 0
    /// When bytes were last received, from either side.
    var usedAt: Int64 = 0
    var idleTimeout: Int64 = 0
    /// When the maximum age is reached; before the tunnel opens, that age.
    var endsAt = Int64.max
    /// When closing times out.
    var deadline = Int64.max

    mutating func begin() {
        phase = .requested
        isWebSocket = false
        name.removeAll()
        accept.removeAll()
        fromDownstream = WebSocketFrameTracker(from: .client)
        fromUpstream = WebSocketFrameTracker(from: .server)
        downstream = Side()
        upstream = Side()
        closeReason = .none
        endsAt = .max
        deadline = .max
    }

    mutating func close() {
        name.release()
        accept.release()
    }
}

/// Why the gateway ends a tunnel, and the status and text of its Close frame.
struct CloseReason: Sendable {
    /// For the client; the upstream gets "going away", unless it is a protocol error.
    let status: WebSocketStatus
    let upstreamStatus: WebSocketStatus
    let text: StaticString
    /// For the log and the metrics; `nil` for a normal end.
    let reason: ErrorCode?

    private init(_ status: WebSocketStatus, upstream: WebSocketStatus, _ text: StaticString, _ reason: ErrorCode?) {
        self.status = status
        upstreamStatus = upstream
        self.text = text
        self.reason = reason
    }

    /// The sides end it themselves.
    static let none = CloseReason(.goingAway, upstream: .goingAway, "", nil)
    static let expired = CloseReason(
        .credentialEnded, upstream: .goingAway, "credential expired", "auth.credential_expired")
    static let revoked = CloseReason(
        .credentialEnded, upstream: .goingAway, "session revoked", "auth.credential_revoked")
    static let idle = CloseReason(.goingAway, upstream: .goingAway, "idle", "tunnel.idle")
    static let aged = CloseReason(.goingAway, upstream: .goingAway, "connection too old", "tunnel.too_old")
    static let draining = CloseReason(
        .goingAway, upstream: .goingAway, "gateway is stopping", "tunnel.gateway_stopping")
    static let clientViolation = CloseReason(
        .protocolError, upstream: .protocolError, "protocol error", "tunnel.client_broke_protocol")
    static let upstreamViolation = CloseReason(
        .protocolError, upstream: .protocolError, "protocol error", "tunnel.upstream_broke_protocol")
}
