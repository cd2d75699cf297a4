import Glibc
import MartletCore
import MartletHTTP
import MartletIO
import MartletResponder
import Testing

@testable import MartletDecisions
@testable import MartletProxy

/// Tunnels and long exchanges that the gateway ends.
@Suite struct TunnelEndTests {
    /// Closes that both sides got, and what was recorded.
    private func expectClose(
        _ bench: LoopBench, _ forwarded: BenchExchange, _ status: WebSocketStatus, _ text: String, _ reason: ErrorCode,
        upstream: WebSocketStatus = .goingAway
    ) {
        let (up, down) = (forwarded.server.end.bytes(), forwarded.client.end.bytes())
        #expect(down == TunnelText.close(status, text))
        #expect(TunnelText.unmasked(up) == Array(TunnelText.close(upstream, text).dropFirst(2)))
        #expect(bench.reason(of: forwarded.exchange) == reason && bench.isAlive(forwarded.exchange))
    }

    private func terminate(_ bench: LoopBench, _ exchange: Handle<Exchange>, isRevoked: Bool = false) {
        bench.run { loop in
            loop.exchanges[exchange].endCredential(isRevoked: isRevoked, &loop.context)
            RequestForwarder.terminate(exchange, &loop)
        }
    }

    // MARK: Checks

    @Test func `a tunnel that is idle is closed`() throws {
        let bench = try LoopBench()
        let forwarded = bench.openTunnel()
        bench.advance(milliseconds: 59_999)
        bench.checkTunnel(forwarded)
        #expect(forwarded.client.end.state == .open)
        bench.advance(milliseconds: 1)
        bench.checkTunnel(forwarded)
        expectClose(bench, forwarded, .goingAway, "idle", "tunnel.idle")
        // Neither side replies.
        bench.advance(milliseconds: 399)
        bench.checkTunnel(forwarded)
        let isAlive = bench.isAlive(forwarded.exchange)
        bench.advance(milliseconds: 1)
        bench.checkTunnel(forwarded)
        #expect(isAlive && !bench.isAlive(forwarded.exchange) && !bench.isAlive(forwarded.upstream))
        #expect(bench.counted().tunnels.ends == ["tunnel.idle": 1])
    }

    @Test func `a drain ends as many tunnels as it may`() throws {
        let bench = try LoopBench()
        let (first, second) = (bench.openTunnel(), bench.openTunnel())
        var left = bench.checkTunnel(first, draining: 1)
        left = bench.checkTunnel(second, draining: left)
        #expect(left == 0 && second.client.end.state == .open)
        expectClose(bench, first, .goingAway, "gateway is stopping", "tunnel.gateway_stopping")
    }

    @Test func `a tunnel that closes is not closed again`() throws {
        let bench = try LoopBench()
        let forwarded = bench.openTunnel()
        bench.checkTunnel(forwarded, draining: 1)
        _ = (forwarded.client.end.bytes(), forwarded.server.end.bytes())
        let left = bench.checkTunnel(forwarded, draining: 1)
        terminate(bench, forwarded.exchange)
        #expect(left == 1 && forwarded.client.end.state == .open && forwarded.server.end.state == .open)
        #expect(bench.reason(of: forwarded.exchange) == "tunnel.gateway_stopping")
    }

    @Test func `another protocol is reset`() throws {
        let bench = try LoopBench()
        let forwarded = bench.openTunnel(TunnelText.chatUpgrade, TunnelText.chatAccepted)
        bench.receive("up", for: forwarded.exchange)
        bench.read(forwarded, Array("down".utf8))
        let (up, down) = (forwarded.server.end.text(), forwarded.client.end.text())
        #expect(up == "up" && down == "down")
        let copy = try Socket.duplicate(bench.run { $0.downstreams[forwarded.downstream].transport.fd })
        defer { Glibc.close(copy) }
        bench.advance(milliseconds: 60_000)
        bench.checkTunnel(forwarded)
        #expect(!bench.isAlive(forwarded.downstream) && !bench.isAlive(forwarded.upstream))
        #expect(BenchEnd.isResetOnClose(copy) && bench.counted().tunnels.ends == ["tunnel.idle": 1])
    }

    @Test func `a client that reads nothing is reset`() throws {
        let bench = try LoopBench()
        let forwarded = bench.openTunnel()
        bench.run { $0.downstreams[forwarded.downstream].transport.output.append("left") }
        bench.run { $0.tunnelUpstreamEnded(forwarded.exchange) }
        bench.advance(milliseconds: 1_000)
        bench.checkTunnel(forwarded)
        #expect(!bench.isAlive(forwarded.downstream) && !bench.isAlive(forwarded.upstream))
        #expect(bench.counted().tunnels.ends == ["tunnel.cut": 1])
    }

    @Test func `the rest of what the endpoint sent is flushed before the client's side is closed`() throws {
        let bench = try LoopBench()
        let forwarded = bench.openTunnel()
        bench.run { loop in
            loop.downstreams[forwarded.downstream].transport.output.append("left")
            loop.tunnelUpstreamEnded(forwarded.exchange)
        }
        #expect(forwarded.client.end.state == .open)
        bench.run { $0.flush(downstream: forwarded.downstream) }
        let text = forwarded.client.end.text()
        #expect(text == "left" && forwarded.client.end.state == .closed && bench.isAlive(forwarded.exchange))
    }

    @Test func `what the client sent is flushed before the endpoint's side is closed`() throws {
        let bench = try LoopBench()
        let forwarded = bench.openTunnel()
        bench.run { loop in
            loop.upstreams[forwarded.upstream].output.append("left")
            loop.tunnelDownstreamEnded(forwarded.exchange)
        }
        #expect(forwarded.server.end.state == .open)
        bench.run { $0.flush(upstream: forwarded.upstream) }
        let text = forwarded.server.end.text()
        #expect(text == "left" && forwarded.server.end.state == .closed && bench.isAlive(forwarded.exchange))
    }

    @Test func `an endpoint that breaks the connection ends the tunnel with a reset`() throws {
        let bench = try LoopBench()
        let forwarded = bench.openTunnel()
        let copy = try Socket.duplicate(bench.run { $0.downstreams[forwarded.downstream].transport.fd })
        defer { Glibc.close(copy) }
        bench.withResponses { $0.upstreamBroke(forwarded.upstream, "upstream.reset", &$1) }
        #expect(!bench.isAlive(forwarded.downstream) && !bench.isAlive(forwarded.upstream))
        #expect(BenchEnd.isResetOnClose(copy) && bench.counted().tunnels.ends == ["tunnel.upstream_broke": 1])
        #expect(bench.requests() == ["api 101 1"])
    }

    @Test func `a client that leaves ends the tunnel on both sides`() throws {
        let bench = try LoopBench()
        let forwarded = bench.openTunnel()
        bench.run { $0.abandon(forwarded.downstream) }
        #expect(!bench.isAlive(forwarded.upstream) && forwarded.server.end.state == .closed)
        #expect(bench.counted().tunnels.ends == ["request.client_left": 1] && bench.counted().tunnels.open == 0)
    }

    // MARK: Credentials

    @Test(arguments: [
        (false, "credential expired", "auth.credential_expired"), (true, "session revoked", "auth.credential_revoked"),
    ])
    func `a tunnel is closed with its credential`(_ isRevoked: Bool, _ text: String, _ reason: String) throws {
        let bench = try LoopBench()
        let forwarded = bench.openTunnel()
        terminate(bench, forwarded.exchange, isRevoked: isRevoked)
        expectClose(bench, forwarded, .credentialEnded, text, ErrorCode(rawValue: reason))
        // It is closed once.
        bench.run { RequestForwarder.terminate(forwarded.exchange, &$0) }
        #expect(forwarded.client.end.state == .open)
    }

    @Test func `a short exchange may finish, a long response is cut`() throws {
        let bench = try LoopBench()
        let forwarded = bench.forward()
        bench.run { $0.exchanges[forwarded.exchange].response.start(status: 200, closes: false) }
        bench.advance(milliseconds: 699)
        terminate(bench, forwarded.exchange)
        let isAlive = bench.isAlive(forwarded.exchange)
        bench.advance(milliseconds: 1)
        bench.run { RequestForwarder.terminate(forwarded.exchange, &$0) }
        #expect(isAlive && !bench.isAlive(forwarded.downstream) && bench.requests() == ["api 200 1"])
        #expect(bench.counted().reasons == ["auth.credential_expired": 1])
    }

    @Test func `an upload gets 401 when its credential ends`() throws {
        let bench = try LoopBench()
        let forwarded = bench.forward(BenchText.post(5))
        bench.advance(milliseconds: 700)
        terminate(bench, forwarded.exchange, isRevoked: true)
        let text = forwarded.client.end.text()
        let challenge = "WWW-Authenticate: Bearer realm=\"martlet\", error=\"invalid_token\"\r\n"
        #expect(text == BenchText.problem(401, "Unauthorized", "credential_invalid", fields: challenge, closes: true))
        #expect(bench.counted().reasons == ["auth.credential_revoked": 1])
    }

    @Test func `a complete request that waits for its response is left alone`() throws {
        let bench = try LoopBench()
        let forwarded = bench.forward()
        bench.advance(milliseconds: 10_000)
        terminate(bench, forwarded.exchange)
        #expect(bench.isAlive(forwarded.exchange) && bench.isAlive(forwarded.upstream))
    }

    @Test func `a gRPC call ends with a status`() throws {
        let bench = try LoopBench()
        let forwarded = bench.forward()
        bench.run { loop in
            loop.exchanges[forwarded.exchange].request.isGRPC = true
            loop.exchanges[forwarded.exchange].response.start(status: 200, closes: false)
        }
        bench.advance(milliseconds: 700)
        terminate(bench, forwarded.exchange)
        let trailers = bench.run { $0.exchanges[forwarded.exchange].response.trailers.array }
        #expect(String(decoding: trailers, as: UTF8.self).hasPrefix("grpc-status: 16\r\n"))
        #expect(!bench.isAlive(forwarded.exchange) && bench.isAlive(forwarded.downstream))
    }
}
