package import MartletHTTP

/// The upgrade of an exchange: from the offer in its request to the end of the upgraded connection.
///
/// It knows no socket: it is given the bytes of each side, what was sent, and the time in nanoseconds, and returns what
/// to do.
package struct Tunnel: ~Copyable {
    /// How far its upgrade has come.
    package enum Phase: UInt8 {
        /// The upstream has not responded yet: nothing after the request's head is forwarded.
        case requested
        /// Bytes pass in both directions.
        case open
        /// Closing: each side is sent Close, where its protocol has it.
        case closing
    }

    /// One of its two sides.
    package struct Side {
        /// The peer has closed its sending side.
        package var isReadClosed = false
        /// Close has to be sent after the current frame.
        var isClosePending = false
        /// Close was sent: everything else for this side is discarded.
        var isCloseSent = false
        /// The writing direction was closed.
        var isWriteClosed = false

        /// Close has to be sent, unless it was sent or can no longer be sent.
        mutating func requestClose(hasReceivedClose: Bool) {
            isCloseSent = hasReceivedClose || isWriteClosed
            isClosePending = !isCloseSent
        }

        mutating func closeSent() {
            isClosePending = false
            isCloseSent = true
        }

        /// Whether nothing more is expected from the side, which has sent Close or has not.
        package func isDone(hasClosed: Bool) -> Bool { isReadClosed || (isCloseSent && hasClosed) }
    }

    /// How long to wait for the end of a frame in progress, in nanoseconds.
    static let frameTimeout: Int64 = 200_000_000
    /// How long both sides may take to end a tunnel that the gateway ends, the frame in progress included: with the
    /// checks of ``CredentialWatch``, and the poll for what other processes have changed, less than a second.
    static let endTimeout: Int64 = 400_000_000
    /// How long to wait for the rest of a side whose peer has ended.
    static let closeTimeout: Int64 = 1_000_000_000
    /// How long to wait for an upstream whose client has disconnected.
    static let departureTimeout: Int64 = 500_000_000
    /// How many tunnels a drain ends at a time, at least.
    static let minimumDrainBatch = 64

    package var generation: UInt32 = 0
    package var isAlive = false

    package private(set) var phase = Phase.requested
    package private(set) var offer = UpgradeOffer()
    package private(set) var fromDownstream = WebSocketFrameTracker(from: .client)
    package private(set) var fromUpstream = WebSocketFrameTracker(from: .server)
    private var downstream = Side()
    private var upstream = Side()
    package private(set) var closeReason = CloseReason.none
    package private(set) var openedAt: Int64 = 0
    /// When bytes were last received, from either side.
    private var usedAt: Int64 = 0
    private var idleTimeout: Int64 = 0
    /// When the maximum age is reached; before the tunnel opens, that age.
    private var endsAt = Int64.max
    /// When closing times out.
    private var deadline = Int64.max
    /// When the end times out that the gateway has begun.
    private var endsBy = Int64.max

    package init() {}

    @inline(__always)
    private var isWebSocket: Bool { offer.isWebSocket }

    // MARK: Begin

    /// Begins with what was accepted of the offer in the head in `bytes`.
    package mutating func request(_ accepted: UpgradeOffer.Accepted, _ bytes: Span<UInt8>, _ limits: TunnelLimits) {
        phase = .requested
        offer.set(accepted, bytes)
        fromDownstream = WebSocketFrameTracker(from: .client)
        fromUpstream = WebSocketFrameTracker(from: .server)
        downstream = Side()
        upstream = Side()
        closeReason = .none
        idleTimeout = limits.idleTimeout
        endsAt = limits.maximumAge
        deadline = .max
    }

    /// The upstream has switched: from now on bytes pass in both directions.
    ///
    /// - Parameter upstreamIdleTimeout: a limit for the route's timeout, in nanoseconds.
    package mutating func open(now: Int64, hasExtensions: Bool, upstreamIdleTimeout: Int64) {
        fromDownstream.hasExtensions = hasExtensions
        fromUpstream.hasExtensions = hasExtensions
        phase = .open
        openedAt = now
        usedAt = now
        endsAt = now &+ endsAt
        idleTimeout = min(idleTimeout, upstreamIdleTimeout)
    }

    /// Frees the memory.
    package mutating func close() { offer.release() }

    // MARK: Bytes

    /// Inspects what the client has sent, from `offset` on, and advances it past the bytes that the step covers.
    ///
    /// Call until it returns `done` or `violation`.
    @inline(__always)
    package mutating func nextFromDownstream(_ bytes: Span<UInt8>, _ offset: inout Int, now: Int64) -> Step {
        usedAt = now
        guard isWebSocket else { return Tunnel.passAll(bytes, &offset) }
        if dequeueClose(for: .upstream) { return .sendClose }
        while true {
            switch fromDownstream.next(bytes, from: &offset, stopsBetweenFrames: upstream.isClosePending) {
            case .pass(let range): if !upstream.isCloseSent { return .pass(range) }
            case .passHeader: if !upstream.isCloseSent { return .passHeader }
            case .needMore, .closed: return .done
            case .violation: return phase == .open ? .violation : .done
            }
        }
    }

    /// The same for the upstream.
    ///
    /// Call until it returns `sendClose`, `done` or `violation`: nothing after Close is for the client.
    @inline(__always)
    package mutating func nextFromUpstream(_ bytes: Span<UInt8>, _ offset: inout Int, now: Int64) -> Step {
        usedAt = now
        guard isWebSocket else { return Tunnel.passAll(bytes, &offset) }
        if dequeueClose(for: .downstream) {
            discardFromUpstream(bytes, &offset)
            return .sendClose
        }
        while true {
            switch fromUpstream.next(bytes, from: &offset, stopsBetweenFrames: downstream.isClosePending) {
            case .pass(let range): if !downstream.isCloseSent { return .pass(range) }
            case .passHeader: if !downstream.isCloseSent { return .passHeader }
            case .needMore, .closed: return .done
            case .violation: return phase == .open ? .violation : .done
            }
        }
    }

    /// Follows what is not for the client any more: the upstream's own Close may be in it.
    @inline(never)
    private mutating func discardFromUpstream(_ bytes: Span<UInt8>, _ offset: inout Int) {
        while true {
            switch fromUpstream.next(bytes, from: &offset) {
            case .pass, .passHeader: continue
            case .needMore, .closed, .violation: return
            }
        }
    }

    /// Other protocols have no frames.
    @inline(__always)
    private static func passAll(_ bytes: Span<UInt8>, _ offset: inout Int) -> Step {
        guard offset < bytes.count else { return .done }
        let range = ByteRange(from: offset, to: bytes.count)
        offset = bytes.count
        return .pass(range)
    }

    // MARK: Ends

    /// Starts closing a tunnel; a WebSocket's Close frames are due when ``dequeueClose(for:)`` says so.
    package mutating func end(_ reason: CloseReason, now: Int64) -> Ending {
        guard phase == .open else { return .ignored }
        phase = .closing
        closeReason = reason
        guard isWebSocket else { return .abort }
        // A side that has received a Close frame from the other gets no second one.
        downstream.requestClose(hasReceivedClose: fromUpstream.hasClosed)
        upstream.requestClose(hasReceivedClose: fromDownstream.hasClosed)
        deadline = now &+ Tunnel.frameTimeout
        endsBy = now &+ Tunnel.endTimeout
        return .close
    }

    /// Whether a Close frame is to be sent to a side now: it is pending, and the last frame for that side is complete.
    /// It counts as sent.
    ///
    /// Where that last frame was the other side's Close, it was sent: a side gets only one (RFC 6455 §5.5.1).
    @inline(__always)
    package mutating func dequeueClose(for peer: Peer) -> Bool {
        let hasReceivedClose: Bool
        switch peer {
        case .downstream:
            guard downstream.isClosePending, fromUpstream.isBetweenFrames else { return false }
            downstream.closeSent()
            hasReceivedClose = fromUpstream.hasClosed
        case .upstream:
            guard upstream.isClosePending, fromDownstream.isBetweenFrames else { return false }
            upstream.closeSent()
            hasReceivedClose = fromDownstream.hasClosed
        }
        // Once Close was sent to both sides, their replies have a timeout.
        if !downstream.isClosePending, !upstream.isClosePending { deadline = endsBy }
        return !hasReceivedClose
    }

    /// A side has closed its sending direction; what it sent before was consumed.
    package mutating func peerClosed(_ peer: Peer, now: Int64) -> PeerEnd {
        switch peer {
        case .downstream:
            guard !downstream.isReadClosed else { return .known }
            downstream.isReadClosed = true
            shortenDeadline(to: now &+ Tunnel.departureTimeout)
        case .upstream:
            guard !upstream.isReadClosed else { return .known }
            upstream.isReadClosed = true
            shortenDeadline(to: now &+ Tunnel.closeTimeout)
        }
        let isAbrupt = isWebSocket && phase == .open && !fromDownstream.hasClosed && !fromUpstream.hasClosed
        return isAbrupt ? .abrupt : .orderly
    }

    /// When one side of a WebSocket has disconnected, the other is not waited for long.
    private mutating func shortenDeadline(to limit: Int64) {
        if isWebSocket { deadline = min(deadline, limit) }
    }

    /// Advances the end after a side has closed or was flushed: forwards closed directions, and finishes when both
    /// sides are done.
    @inline(__always)
    package mutating func advance(now: Int64, isDownstreamFlushed: Bool, isUpstreamFlushed: Bool) -> Actions {
        if fromDownstream.hasClosed, fromUpstream.hasClosed {
            // Both sides have sent Close; the upstream should end the connection (RFC 6455 §7.1.1).
            phase = .closing
            shortenDeadline(to: now &+ Tunnel.closeTimeout)
        }
        let isDownstreamDone = downstream.isDone(hasClosed: fromDownstream.hasClosed)
        let isUpstreamDone = upstream.isDone(hasClosed: fromUpstream.hasClosed)
        var actions: Actions = []
        if isUpstreamFlushed, !upstream.isWriteClosed,
            downstream.isReadClosed || (upstream.isCloseSent && isUpstreamDone)
        {
            upstream.isWriteClosed = true
            actions.insert(.closeWriteUpstream)
        }
        if isDownstreamFlushed, !downstream.isWriteClosed,
            upstream.isReadClosed || (downstream.isCloseSent && isDownstreamDone)
        {
            downstream.isWriteClosed = true
            actions.insert(.closeWriteDownstream)
        }
        if isDownstreamDone, isUpstreamDone, isUpstreamFlushed, isDownstreamFlushed { actions.insert(.finish) }
        return actions
    }

    // MARK: Time

    /// Whether the deadline of closing has passed.
    package func isOverdue(at now: Int64) -> Bool { now >= deadline }

    /// Checks the deadline of closing, the age, and the idle timeout.
    ///
    /// - Parameters:
    ///   - isDownstreamFlushed: only read when the tunnel is overdue.
    ///   - lastWriteAt: when the client last accepted bytes.
    ///   - isDraining: the gateway is stopping, and it is this tunnel's turn.
    package func check(now: Int64, isDownstreamFlushed: Bool, lastWriteAt: Int64, isDraining: Bool) -> Check {
        guard !isOverdue(at: now) else {
            if isDownstreamFlushed { return downstream.isClosePending ? .abort : .finish }
            // A client that still reads gets the rest of what its upstream sent before it disconnected.
            let isReading = now &- lastWriteAt < Tunnel.closeTimeout
            return isReading && phase == .open ? .none : .abort
        }
        guard phase == .open else { return .none }
        if now >= endsAt { return .end(.aged) }
        if now &- usedAt >= idleTimeout { return .end(.idle) }
        return isDraining && isWebSocket ? .end(.draining) : .none
    }

    /// How many WebSockets a drain ends in one check: few enough that their clients do not all reconnect at the same
    /// time, enough to finish in the first half of the drain.
    ///
    /// - Parameters:
    ///   - timeLeft: until the drain aborts what is left, in nanoseconds.
    ///   - interval: between two checks.
    package static func drainBatch(open: Int, timeLeft: Int64, interval: Int64) -> Int {
        let checks = max(timeLeft / (2 &* interval), 1)
        return max(minimumDrainBatch, Int(Int64(open) / checks))
    }
}
