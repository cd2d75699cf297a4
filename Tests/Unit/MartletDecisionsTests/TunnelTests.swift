import MartletCore
import MartletHTTP
import MartletTesting
import Testing

@testable import MartletDecisions

@Suite struct TunnelTests {
    @Test(arguments: TunnelCase.bytes + TunnelCase.handshakes + TunnelCase.ends + TunnelCase.disconnects)
    func `a WebSocket`(example: TunnelCase) {
        var bench = TunnelBench()
        example.run(&bench)
    }

    @Test(arguments: TunnelCase.endsWithinClose + TunnelCase.closesAfterClose)
    func `a WebSocket that the gateway ends while a side closes it`(example: TunnelCase) {
        var bench = TunnelBench()
        example.run(&bench)
    }

    @Test(arguments: TunnelCase.others)
    func `another protocol`(example: TunnelCase) {
        var bench = TunnelBench("chat/2")
        example.run(&bench)
    }

    // MARK: Time

    @Test func `bytes of either side extend the idle timeout`() {
        var bench = TunnelBench()
        TunnelCase(
            "idle",
            [
                (.wait(59_999), []), (.client(WSFrame.clientText), ["up 8"]), (.wait(59_999), []),
                (.upstream(WSFrame.serverText), ["down 4"]), (.wait(59_999), []), (.upstream([]), []),
                (.wait(59_999), []),
                (.wait(1), ["end idle", "close up 1001", "close down 1001"]), (.wait(398), []),
            ]
        ).run(&bench)
    }

    @Test func `the shorter of the two idle timeouts counts`() {
        var bench = TunnelBench(idle: 60, upstreamIdle: 5)
        TunnelCase(
            "idle",
            [(.wait(4999), []), (.wait(1), ["end idle", "close up 1001", "close down 1001"])]
        ).run(&bench)
    }

    @Test func `the maximum age counts from the switch, and before other reasons`() {
        var bench = TunnelBench(idle: 30, age: 30)
        TunnelCase(
            "aged",
            [(.wait(29_999), []), (.wait(1), ["end aged", "close up 1001", "close down 1001"])]
        ).run(&bench)
        bench = TunnelBench(idle: 60, age: 30)
        TunnelCase(
            "aged",
            [
                (.wait(20_000), []), (.client(WSFrame.clientText), ["up 8"]), (.wait(9999), []),
                (.wait(1), ["end aged", "close up 1001", "close down 1001"]),
            ]
        ).run(&bench)
    }

    @Test func `a drain ends a WebSocket once`() {
        var bench = TunnelBench()
        TunnelCase("drain", [(.drain, ["end draining", "close up 1001", "close down 1001"]), (.drain, [])]).run(&bench)
    }

    @Test func `a tunnel that is not open yet has no deadline and no end`() {
        var bench = TunnelBench()
        _ = bench.perform(.end(.idle))
        bench.request("websocket")
        let (phase, isWebSocket) = (bench.tunnel.phase, bench.tunnel.offer.isWebSocket)
        let (name, reason) = (bench.tunnel.offer.name.array, bench.tunnel.closeReason)
        let isOverdue = bench.tunnel.isOverdue(at: .max - 1)
        #expect(phase == .requested && isWebSocket && name == Array("websocket".utf8))
        #expect(reason == .none && !isOverdue)
        let actions = bench.perform(.end(.idle))
        #expect(actions.isEmpty)
    }

    @Test func `the next tunnel in a slot begins anew`() {
        var bench = TunnelBench()
        _ = bench.perform(.client(WSFrame.clientTextStart))
        _ = bench.perform(.upstreamCloses)
        _ = bench.perform(.end(.revoked))
        bench.request("websocket")
        bench.tunnel.open(now: 5, hasExtensions: true, upstreamIdleTimeout: .max)
        let openedAt = bench.tunnel.openedAt
        #expect(openedAt == 5)
        // An extension was negotiated: its bits are no violation.
        let first = bench.perform(.client([0xC1, 0x80, 1, 2, 3, 4]))
        let second = bench.perform(.upstream([0xC1, 0]))
        #expect(first == ["up 6"] && second == ["down 2"])
        bench.tunnel.close()
        let name = bench.tunnel.offer.name.array
        #expect(name.isEmpty)
    }

    @Test(
        arguments: [
            // Open tunnels, seconds left, tunnels that one check ends.
            (0, 30, 64), (1000, 30, 64), (100_000, 30, 1333), (100_000, 1, 50_000), (1000, 0, 1000), (1000, -5, 1000),
        ] as [(Int, Int64, Int)])
    func `a drain ends all tunnels in the first half of its time`(open: Int, seconds: Int64, expected: Int) {
        let batch = Tunnel.drainBatch(open: open, timeLeft: seconds * 1_000_000_000, interval: 200_000_000)
        #expect(batch == expected)
    }
}

@Suite struct CloseReasonTests {
    @Test(
        arguments: [
            (CloseReason.none, 1001, 1001, "", ""),
            (.expired, 4401, 1001, "credential expired", "auth.credential_expired"),
            (.revoked, 4401, 1001, "session revoked", "auth.credential_revoked"),
            (.idle, 1001, 1001, "idle", "tunnel.idle"),
            (.aged, 1001, 1001, "connection too old", "tunnel.too_old"),
            (.draining, 1001, 1001, "gateway is stopping", "tunnel.gateway_stopping"),
            (.clientViolation, 1002, 1002, "protocol error", "tunnel.client_broke_protocol"),
            (.upstreamViolation, 1002, 1002, "protocol error", "tunnel.upstream_broke_protocol"),
        ] as [(CloseReason, Int, Int, String, String)])
    func `decides the Close frames and the reason in the log`(
        reason: CloseReason, status: Int, upstreamStatus: Int, text: String, code: String
    ) {
        #expect(Int(reason.status.code) == status && Int(reason.upstreamStatus.code) == upstreamStatus)
        #expect("\(reason.text)" == text && (reason.reason?.rawValue ?? "") == code)
    }
}
