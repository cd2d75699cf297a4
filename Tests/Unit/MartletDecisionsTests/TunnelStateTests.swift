import MartletConfig
import MartletCore
import MartletHTTP
import MartletTesting
import Testing

@testable import MartletDecisions

private let millisecond: Int64 = 1_000_000

@Suite struct TunnelSideTests {
    @Test func `a side is done when it has disconnected, or when both Close frames were sent`() {
        for number in 0..<8 {
            let (isReadClosed, isCloseSent, hasClosed) = (number & 1 != 0, number & 2 != 0, number & 4 != 0)
            let side = Tunnel.Side(isReadClosed: isReadClosed, isCloseSent: isCloseSent)
            #expect(side.isDone(hasClosed: hasClosed) == (isReadClosed || (isCloseSent && hasClosed)), "\(number)")
        }
    }

    @Test(
        arguments: [
            (false, false, true, false), (true, false, false, true), (false, true, false, true),
            (true, true, false, true),
        ])
    func `a Close is due unless it was sent or can no longer be sent`(
        _ hasReceivedClose: Bool, _ isWriteClosed: Bool, _ isPending: Bool, _ isSent: Bool
    ) {
        var side = Tunnel.Side(isWriteClosed: isWriteClosed)
        side.requestClose(hasReceivedClose: hasReceivedClose)
        #expect(side.isClosePending == isPending && side.isCloseSent == isSent)
        side.closeSent()
        #expect(!side.isClosePending && side.isCloseSent)
    }
}

@Suite struct TunnelStateTests {
    /// A tunnel that was opened at 0.
    private func opened(
        _ name: String = "websocket", idle: Duration = .seconds(60), age: Duration? = nil, at now: Int64 = 0
    ) -> Tunnel {
        var tunnel = requested(name, idle: idle, age: age)
        tunnel.open(now: now, hasExtensions: false, upstreamIdleTimeout: .max)
        return tunnel
    }

    private func requested(
        _ name: String = "websocket", idle: Duration = .seconds(60), age: Duration? = nil
    ) -> Tunnel {
        var configuration = UpgradeConfiguration()
        configuration.idle = idle
        configuration.maximumConnectionAge = age
        let bytes = Array(name.utf8)
        let accepted = UpgradeOffer.Accepted(
            name: ByteRange(from: 0, to: bytes.count), isWebSocket: name == "websocket", accept: "")
        var tunnel = Tunnel()
        tunnel.request(accepted, bytes.span, TunnelLimits(configuration))
        return tunnel
    }

    /// The first millisecond at which a tunnel is overdue, up to 5 s.
    private func overdue(_ tunnel: borrowing Tunnel) -> Int64? {
        for time in Int64(0)...5000 where tunnel.isOverdue(at: time * millisecond) {
            return tunnel.isOverdue(at: time * millisecond - 1) ? nil : time
        }
        return nil
    }

    // MARK: Phases

    @Test func `only an open tunnel can be ended, and once`() {
        var tunnel = requested()
        let early = tunnel.end(.idle, now: 0)
        tunnel.open(now: 0, hasExtensions: false, upstreamIdleTimeout: .max)
        let first = tunnel.end(.expired, now: 0)
        let second = tunnel.end(.idle, now: 0)
        let (phase, reason) = (tunnel.phase, tunnel.closeReason)
        #expect(early == .ignored && first == .close && second == .ignored)
        #expect(phase == .closing && reason == .expired)
    }

    @Test func `another protocol ends by a reset, without Close frames`() {
        var tunnel = opened("chat/2")
        let ending = tunnel.end(.idle, now: 0)
        let closes = [tunnel.dequeueClose(for: .upstream), tunnel.dequeueClose(for: .downstream)]
        let (reason, time) = (tunnel.closeReason, overdue(tunnel))
        #expect(ending == .abort && closes == [false, false] && reason == .idle && time == nil)
    }

    @Test func `its memory is freed at the end`() {
        var tunnel = opened("chat/2")
        let before = tunnel.offer.name.array
        tunnel.close()
        let after = tunnel.offer.name.array
        #expect(before == Array("chat/2".utf8) && after == [])
    }

    // MARK: Close frames

    @Test func `each side gets one Close, and none before the end`() {
        var tunnel = opened()
        var dequeued = [tunnel.dequeueClose(for: .upstream), tunnel.dequeueClose(for: .downstream)]
        _ = tunnel.end(.idle, now: 0)
        for peer in [Tunnel.Peer.downstream, .downstream, .upstream, .upstream] {
            dequeued.append(tunnel.dequeueClose(for: peer))
        }
        #expect(dequeued == [false, false, true, false, true, false])
    }

    @Test func `both sides have 400 ms from when the gateway ends it, and a frame in progress 200 of them`() {
        var tunnel = opened()
        let before = overdue(tunnel)
        _ = tunnel.end(.idle, now: 100 * millisecond)
        let pending = overdue(tunnel)
        _ = tunnel.dequeueClose(for: .upstream)
        let half = overdue(tunnel)
        _ = tunnel.dequeueClose(for: .downstream)
        let both = overdue(tunnel)
        #expect(before == nil && pending == 300 && half == 300 && both == 500)
    }

    // MARK: Disconnects

    @Test func `the other side of a WebSocket is not waited for long`() {
        var tunnel = opened()
        let first = tunnel.peerClosed(.upstream, now: 100 * millisecond)
        let long = overdue(tunnel)
        let second = tunnel.peerClosed(.downstream, now: 200 * millisecond)
        let short = overdue(tunnel)
        let again = [tunnel.peerClosed(.upstream, now: 0), tunnel.peerClosed(.downstream, now: 0)]
        let unchanged = overdue(tunnel)
        #expect(first == .abrupt && second == .abrupt && again == [.known, .known])
        #expect(long == 1100 && short == 700 && unchanged == 700)
    }

    @Test func `a later disconnect does not extend an earlier deadline`() {
        var tunnel = opened()
        _ = tunnel.peerClosed(.downstream, now: 100 * millisecond)
        let first = overdue(tunnel)
        _ = tunnel.peerClosed(.upstream, now: 500 * millisecond)
        let second = overdue(tunnel)
        #expect(first == 600 && second == 600)
    }

    @Test func `sides of another protocol may wait for each other`() {
        var tunnel = opened("chat/2")
        let first = tunnel.peerClosed(.downstream, now: 0)
        let again = tunnel.peerClosed(.downstream, now: 0)
        let second = tunnel.peerClosed(.upstream, now: 0)
        let time = overdue(tunnel)
        #expect(first == .orderly && again == .known && second == .orderly && time == nil)
    }

    @Test(arguments: [Tunnel.Peer.downstream, .upstream])
    func `a side that leaves is abrupt until a Close was sent, by any side`(peer: Tunnel.Peer) {
        let frames: [(client: [UInt8], upstream: [UInt8], expected: Tunnel.PeerEnd)] = [
            ([], [], .abrupt), (WSFrame.clientText, WSFrame.serverText, .abrupt), (WSFrame.clientClose, [], .orderly),
            ([], WSFrame.serverClose, .orderly), (WSFrame.clientCloseStart, [], .abrupt),
            ([], WSFrame.serverCloseStart, .abrupt), (WSFrame.clientTextStart, [], .abrupt),
        ]
        for row in frames {
            var tunnel = opened()
            let (client, upstream) = (row.client, row.upstream)
            var (up, down) = (0, 0)
            while tunnel.nextFromDownstream(client.span, &up, now: 0) != .done {}
            while tunnel.nextFromUpstream(upstream.span, &down, now: 0) != .done {}
            let end = tunnel.peerClosed(peer, now: 0)
            #expect(end == row.expected, "\(row)")
        }
        var ended = opened()
        _ = ended.end(.idle, now: 0)
        let end = ended.peerClosed(peer, now: 0)
        #expect(end == .orderly)
    }

    // MARK: Checks

    private static let limits = (idle: Duration.nanoseconds(10), age: Duration.nanoseconds(50))

    @Test(
        arguments: [
            ("websocket", 9, false, .none), ("websocket", 10, false, .end(.idle)),
            ("websocket", 9, true, .end(.draining)), ("websocket", 10, true, .end(.idle)),
            ("websocket", 49, false, .end(.idle)), ("websocket", 50, false, .end(.aged)),
            ("websocket", 50, true, .end(.aged)),
            ("chat/2", 9, true, .none), ("chat/2", 10, true, .end(.idle)), ("chat/2", 50, true, .end(.aged)),
        ] as [(String, Int64, Bool, Tunnel.Check)])
    func `age comes before silence, and silence before a drain`(
        _ name: String, _ after: Int64, _ isDraining: Bool, _ expected: Tunnel.Check
    ) {
        let tunnel = opened(name, idle: Self.limits.idle, age: Self.limits.age, at: 1000)
        let check = tunnel.check(
            now: 1000 + after, isDownstreamFlushed: true, lastWriteAt: 0, isDraining: isDraining)
        #expect(check == expected)
    }

    @Test(
        arguments: [
            (.downstream, 15, 24, .none), (.downstream, 15, 25, .end(.idle)), (.upstream, 15, 24, .none),
            (.upstream, 15, 25, .end(.idle)), (.upstream, 49, 49, .none), (.upstream, 49, 50, .end(.aged)),
        ] as [(Tunnel.Peer, Int64, Int64, Tunnel.Check)])
    func `bytes of a side, even none, end the silence but not the age`(
        _ peer: Tunnel.Peer, _ at: Int64, _ now: Int64, _ expected: Tunnel.Check
    ) {
        var tunnel = opened(idle: Self.limits.idle, age: Self.limits.age)
        let bytes: [UInt8] = []
        var offset = 0
        switch peer {
        case .downstream: _ = tunnel.nextFromDownstream(bytes.span, &offset, now: at)
        case .upstream: _ = tunnel.nextFromUpstream(bytes.span, &offset, now: at)
        }
        let check = tunnel.check(now: now, isDownstreamFlushed: true, lastWriteAt: 0, isDraining: false)
        #expect(check == expected)
    }

    @Test(arguments: [(4, 4), (10, 10), (11, 10), (Int64.max, 10)] as [(Int64, Int64)])
    func `the idle timeout is the shorter of both`(_ ofUpstream: Int64, _ expected: Int64) {
        var tunnel = requested(idle: .nanoseconds(10))
        tunnel.open(now: 0, hasExtensions: false, upstreamIdleTimeout: ofUpstream)
        let early = tunnel.check(now: expected - 1, isDownstreamFlushed: true, lastWriteAt: 0, isDraining: false)
        let due = tunnel.check(now: expected, isDownstreamFlushed: true, lastWriteAt: 0, isDraining: false)
        #expect(early == .none && due == .end(.idle))
    }

    @Test func `without a maximum age a tunnel lives for a century`() {
        let tunnel = opened(idle: .seconds(Int64.max), at: 5)
        let year: Int64 = 31_557_600_000_000_000
        let checks = [4 + year, 4 + 100 * year, 5 + 100 * year].map { now in
            tunnel.check(now: now, isDownstreamFlushed: true, lastWriteAt: 0, isDraining: false)
        }
        #expect(checks == [.none, .none, .end(.aged)])
    }

    @Test(
        arguments: [
            // The client reads what is left of its upstream's bytes; it has accepted some of them so long ago.
            (false, false, 0, .none), (false, false, 999, .none), (false, false, 1000, .abort),
            (true, false, 0, .finish), (true, false, 5000, .finish),
            // The gateway ends it: a client that got no Close must not take the end for an orderly one.
            (false, true, 0, .abort), (true, true, 0, .abort),
        ] as [(Bool, Bool, Int64, Tunnel.Check)])
    func `an overdue tunnel ends, unless its client still reads`(
        _ isFlushed: Bool, _ isEnded: Bool, _ silence: Int64, _ expected: Tunnel.Check
    ) {
        var tunnel = opened()
        if isEnded { _ = tunnel.end(.idle, now: 0) }
        _ = tunnel.peerClosed(.upstream, now: 0)
        let now = 6000 * millisecond
        let check = tunnel.check(
            now: now, isDownstreamFlushed: isFlushed, lastWriteAt: now - silence * millisecond, isDraining: false)
        #expect(check == expected)
    }

    // MARK: Bytes of other protocols

    @Test func `bytes of another protocol pass from the offset on, in one range`() {
        var tunnel = opened("chat/2")
        let bytes: [UInt8] = [1, 2, 3, 4, 5]
        var offset = 2
        let first = tunnel.nextFromDownstream(bytes.span, &offset, now: 0)
        let second = tunnel.nextFromDownstream(bytes.span, &offset, now: 0)
        #expect(first == .pass(ByteRange(from: 2, to: 5)) && second == .done && offset == 5)
        offset = 4
        let third = tunnel.nextFromUpstream(bytes.span, &offset, now: 0)
        #expect(third == .pass(ByteRange(from: 4, to: 5)) && offset == 5)
    }
}
