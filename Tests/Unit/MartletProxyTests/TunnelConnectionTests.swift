import MartletConfig
import MartletCore
import MartletHTTP
import MartletIO
import MartletResponder
import MartletTesting
import Testing

@testable import MartletDecisions
@testable import MartletProxy

/// Tunnels with their two connections.
@Suite struct TunnelConnectionTests {
    private static let endpoint = "upstream=unix:/nonexistent/martlet-1"

    // MARK: Opening

    @Test func `a 101 that matches the request opens a tunnel without deadlines`() throws {
        let bench = try LoopBench()
        let forwarded = bench.forward(BenchText.upgrade)
        let before = bench.run { $0.exchanges.isTunnel(forwarded.exchange) }
        forwarded.server.end.send(TunnelText.accepted)
        bench.event(forwarded.upstream)
        let text = forwarded.client.end.text()
        let after = bench.run { $0.exchanges.isTunnel(forwarded.exchange) }
        #expect(!before && after && text == TunnelText.switched)
        #expect(bench.counted().tunnels.open == 1 && bench.counted().tunnels.opened == 1)
        #expect(bench.ready() == ["downstream 0"] && bench.phase(forwarded.upstream) == .body)
        #expect(bench.due(forwarded.downstream) == nil)
        if bench.due(forwarded.upstream) != nil { bench.expire(forwarded.upstream) }
        bench.run { RequestForwarder.exchangeTimedOut(forwarded.exchange, &$0) }
        #expect(bench.isAlive(forwarded.exchange) && bench.isAlive(forwarded.upstream))
    }

    @Test(arguments: [
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: chat\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n",
    ])
    func `another 101 is rejected`(_ head: String) throws {
        let bench = try LoopBench()
        let forwarded = bench.forward(BenchText.upgrade)
        bench.read(forwarded, Array(head.utf8))
        let text = forwarded.client.end.text()
        #expect(text == BenchText.problem(502, "Bad Gateway", "upstream_invalid"))
        #expect(bench.counted().reasons == ["upstream.unexpected_upgrade": 1] && bench.failures() == 1)
        let left = bench.run { $0.exchanges.tunnels.count }
        #expect(bench.counted().tunnels.opened == 0 && left == 0)
    }

    @Test func `another response is an ordinary one, and frees the tunnel`() throws {
        let bench = try LoopBench()
        let forwarded = bench.forward(BenchText.upgrade)
        bench.read(forwarded, Array("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n".utf8))
        let text = forwarded.client.end.text()
        let left = bench.run { $0.exchanges.tunnels.count }
        #expect(text == BenchText.head("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n"))
        #expect(left == 0 && bench.counted().tunnels.open == 0 && bench.requests() == ["api 403 1"])
        #expect(bench.counted().tunnels.ends.isEmpty)
    }

    // MARK: Bytes

    @Test func `bytes pass in both directions`() throws {
        let bench = try LoopBench()
        let forwarded = bench.openTunnel()
        let used = bench.receive(WSFrame.twoClientTexts, for: forwarded.exchange)
        bench.read(forwarded, WSFrame.serverText)
        let (up, down) = (forwarded.server.end.bytes(), forwarded.client.end.bytes())
        #expect(used == 16 && up == WSFrame.twoClientTexts && down == WSFrame.serverText)
        let (bytesIn, bytesOut) = bench.run {
            ($0.exchanges[forwarded.exchange].record.bytesIn, $0.exchanges[forwarded.exchange].record.bytesOut)
        }
        #expect(bytesIn == 16 && bytesOut == 4)
    }

    @Test func `a header that arrives in parts passes when it is complete`() throws {
        let bench = try LoopBench()
        let forwarded = bench.openTunnel()
        bench.receive([WSFrame.clientText[0]], for: forwarded.exchange)
        bench.read(forwarded, [WSFrame.serverText[0]])
        let early = forwarded.server.end.bytes() + forwarded.client.end.bytes()
        bench.receive(WSFrame.clientTextRest, for: forwarded.exchange)
        bench.read(forwarded, WSFrame.serverTextRest)
        let (up, down) = (forwarded.server.end.bytes(), forwarded.client.end.bytes())
        #expect(early.isEmpty && up == WSFrame.clientText && down == WSFrame.serverText)
    }

    @Test func `bytes that came with the 101 follow it`() throws {
        let bench = try LoopBench()
        let forwarded = bench.forward(BenchText.upgrade)
        bench.read(forwarded, Array(TunnelText.accepted.utf8) + WSFrame.serverText)
        let down = forwarded.client.end.bytes()
        #expect(down == Array(TunnelText.switched.utf8) + WSFrame.serverText)
    }

    @Test func `a client is paused when too much is unsent`() throws {
        let bench = try LoopBench()
        let forwarded = bench.openTunnel()
        // The header of a masked frame of a mebibyte (RFC 6455 §5.2).
        let header: [UInt8] = [0x82, 0xFF, 0, 0, 0, 0, 0, 0x10, 0, 0, 1, 2, 3, 4]
        bench.receive(header + [UInt8](repeating: 7, count: 600_000), for: forwarded.exchange)
        let isPaused = bench.run { $0.downstreams[forwarded.downstream].isPaused }
        let unsent = bench.run { $0.upstreams.unsent(forwarded.upstream) }
        #expect(isPaused && unsent > Watermark.high)
    }

    // MARK: Ends

    @Test func `Close in both directions, and then the ends of both connections, end a tunnel`() throws {
        let bench = try LoopBench()
        let forwarded = bench.openTunnel()
        bench.advance(milliseconds: 3)
        bench.receive(WSFrame.clientClose, for: forwarded.exchange)
        bench.read(forwarded, WSFrame.serverClose)
        let (up, down) = (forwarded.server.end.bytes(), forwarded.client.end.bytes())
        #expect(up == WSFrame.clientClose && down == WSFrame.serverClose && bench.isAlive(forwarded.exchange))
        forwarded.server.end.finish()
        bench.event(forwarded.upstream, [.readable, .readClosed])
        #expect(forwarded.client.end.state == .closed && bench.isAlive(forwarded.exchange))
        bench.run { loop in
            loop.downstreams[forwarded.downstream].transport.isReadClosed = true
            loop.downstreamReadClosed(forwarded.downstream)
        }
        #expect(!bench.isAlive(forwarded.downstream) && !bench.isAlive(forwarded.upstream))
        #expect(bench.log() == ["192.0.2.1 GET a/api/x 101 ok route=api \(Self.endpoint) in=8 out=4 us=3000"])
        #expect(bench.counted().tunnels.open == 0 && bench.counted().tunnels.ends == ["ok": 1])
        // Its duration is that of the handshake.
        #expect(bench.counted().latency.map { $0.sumMicroseconds } == [0])
    }

    @Test func `an endpoint that leaves without Close is logged`() throws {
        let bench = try LoopBench()
        let forwarded = bench.openTunnel()
        forwarded.server.end.finish()
        bench.event(forwarded.upstream, [.readable, .readClosed])
        #expect(forwarded.client.end.state == .closed && bench.isAlive(forwarded.exchange))
        bench.advance(milliseconds: 1_000)
        bench.checkTunnel(forwarded)
        #expect(!bench.isAlive(forwarded.exchange) && bench.phase(forwarded.downstream) == .lingering)
        #expect(bench.counted().tunnels.ends == ["tunnel.upstream_left": 1])
        #expect(bench.counted().reasons == ["tunnel.upstream_left": 1])
    }

    @Test func `a client that leaves without Close is logged`() throws {
        let bench = try LoopBench()
        let forwarded = bench.openTunnel()
        bench.run { loop in
            loop.downstreams[forwarded.downstream].transport.isReadClosed = true
            loop.downstreamReadClosed(forwarded.downstream)
            loop.downstreamReadClosed(forwarded.downstream)
        }
        #expect(forwarded.server.end.state == .closed && bench.isAlive(forwarded.exchange))
        bench.advance(milliseconds: 500)
        bench.checkTunnel(forwarded)
        #expect(!bench.isAlive(forwarded.exchange) && !bench.isAlive(forwarded.downstream))
        #expect(bench.counted().tunnels.ends == ["tunnel.client_left": 1])
    }

    @Test func `a client that breaks the protocol ends the tunnel`() throws {
        let bench = try LoopBench()
        let forwarded = bench.openTunnel()
        let used = bench.receive(WSFrame.clientTextAndServerText, for: forwarded.exchange)
        let (up, down) = (forwarded.server.end.bytes(), forwarded.client.end.bytes())
        let close = TunnelText.close(.protocolError, "protocol error")
        #expect(used == 12 && down == close)
        #expect(Array(up.prefix(8)) == WSFrame.clientText && Array(up.dropFirst(8).prefix(2)) == [0x88, 0x90])
        #expect(TunnelText.unmasked(Array(up.dropFirst(8))) == Array(close[2...]))
        #expect(bench.reason(of: forwarded.exchange) == "tunnel.client_broke_protocol")
        #expect(bench.isAlive(forwarded.exchange))
    }

    @Test func `an endpoint that breaks the protocol ends the tunnel`() throws {
        let bench = try LoopBench()
        let forwarded = bench.openTunnel()
        bench.read(forwarded, WSFrame.serverTextAndClientText)
        let down = forwarded.client.end.bytes()
        #expect(down == WSFrame.serverText + TunnelText.close(.protocolError, "protocol error"))
        bench.advance(milliseconds: 1_000)
        bench.checkTunnel(forwarded)
        #expect(bench.counted().tunnels.ends == ["tunnel.upstream_broke_protocol": 1])
    }
}
