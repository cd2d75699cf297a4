internal import MartletCore
internal import MartletHTTP

/// What an exchange upgrades to: from the offer in its request to the end of the connection that came of it.
struct Tunnel: ~Copyable, SlabElement {
    enum Phase: UInt8 {
        /// The upstream has not answered yet: nothing behind the request's head is passed on.
        case asked
        /// Bytes pass both ways.
        case open
        /// It is ending: each side is told, where its protocol has words for that.
        case closing
    }

    /// One of its two sides.
    struct Side {
        /// It will send no more.
        var hasEnded = false
        /// It is to be told of the end at the next place where that can be said.
        var isOwedClose = false
        /// It was told: what else was meant for it is thrown away.
        var isTold = false
        /// It was sent the end of the stream.
        var isShut = false
    }

    var generation: UInt32 = 0
    var isAlive = false

    var phase = Phase.asked
    var isWebSocket = false
    /// The protocol as the client wrote it.
    var name = ByteBuffer()
    /// What the upstream must answer to the key.
    var accept = ByteBuffer()

    var fromClient = WebSocketFrameTracker(from: .client)
    var fromUpstream = WebSocketFrameTracker(from: .server)
    var client = Side()
    var upstream = Side()
    var farewell = Farewell.none
    var openedAt: Int64 = 0
    /// When bytes came last, from either side.
    var usedAt: Int64 = 0
    var idlePatience: Int64 = 0
    /// When it is too old.
    var endsAt = Int64.max
    /// When an end that was begun is made.
    var deadline = Int64.max

    mutating func ask() {
        phase = .asked
        isWebSocket = false
        name.removeAll()
        accept.removeAll()
        fromClient = WebSocketFrameTracker(from: .client)
        fromUpstream = WebSocketFrameTracker(from: .server)
        client = Side()
        upstream = Side()
        farewell = .none
        endsAt = .max
        deadline = .max
    }

    mutating func close() {
        name.release()
        accept.release()
    }
}

/// Why the gateway ends a tunnel, and how it says so in a Close frame.
struct Farewell: Sendable {
    /// For the client; the upstream is told that the client is going away, unless the protocol was broken.
    let status: WebSocketStatus
    let upstreamStatus: WebSocketStatus
    let text: StaticString
    /// For the log and the metrics; `nil` where nothing is wrong.
    let reason: ErrorCode?

    private init(_ status: WebSocketStatus, upstream: WebSocketStatus, _ text: StaticString, _ reason: ErrorCode?) {
        self.status = status
        upstreamStatus = upstream
        self.text = text
        self.reason = reason
    }

    /// The sides end it themselves.
    static let none = Farewell(.goingAway, upstream: .goingAway, "", nil)
    static let expired = Farewell(
        .credentialEnded, upstream: .goingAway, "credential expired", "auth.credential_expired")
    static let revoked = Farewell(.credentialEnded, upstream: .goingAway, "session revoked", "auth.credential_revoked")
    static let idle = Farewell(.goingAway, upstream: .goingAway, "idle", "tunnel.idle")
    static let aged = Farewell(.goingAway, upstream: .goingAway, "connection too old", "tunnel.too_old")
    static let draining = Farewell(.goingAway, upstream: .goingAway, "gateway is stopping", "tunnel.gateway_stopping")
    static let clientViolation = Farewell(
        .protocolError, upstream: .protocolError, "protocol error", "tunnel.client_broke_protocol")
    static let upstreamViolation = Farewell(
        .protocolError, upstream: .protocolError, "protocol error", "tunnel.upstream_broke_protocol")
}
