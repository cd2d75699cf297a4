import Glibc
import MartletConfig
import MartletCore
import MartletHTTP
import MartletIO
import MartletResponder
import MartletTesting
import Testing

@testable import MartletDecisions
@testable import MartletDecisionsTesting
@testable import MartletProxy

/// Connections to endpoints that fail, close early or do not respond.
@Suite struct ResponseFailureTests {
    private static let unavailable = BenchText.problem(502, "Bad Gateway", "upstream_unavailable")
    private static let invalid = BenchText.problem(502, "Bad Gateway", "upstream_invalid")
    private static let timedOut = BenchText.problem(504, "Gateway Timeout", "upstream_timeout")
    private static let post = "POST /api/x HTTP/1.1\r\nHost: a\r\n\r\n"
    private static let head = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"

    private func finish(_ bench: LoopBench, _ forwarded: BenchExchange) {
        forwarded.server.end.finish()
        bench.event(forwarded.upstream, [.readable, .readClosed])
    }

    private func attached(_ bench: LoopBench, _ exchange: Handle<Exchange>) -> Handle<UpstreamConnection> {
        bench.run { $0.exchanges[exchange].upstream }
    }

    // MARK: Ends

    @Test func `an endpoint that closes before it responds gets a request without effects again`() throws {
        let bench = try LoopBench()
        let forwarded = bench.forward()
        finish(bench, forwarded)
        let second = attached(bench, forwarded.exchange)
        #expect(!bench.isAlive(forwarded.upstream) && bench.phase(second) == .connecting && bench.failures() == 1)
        #expect(bench.recorder.lines.count == 1 && forwarded.client.end.state == .open)
    }

    @Test func `an endpoint that closes before it responds fails a request with effects`() throws {
        let bench = try LoopBench()
        let forwarded = bench.forward(Self.post)
        finish(bench, forwarded)
        let text = forwarded.client.end.text()
        #expect(text == Self.unavailable && bench.counted().reasons == ["upstream.closed_early": 1])
        #expect(bench.failures() == 1 && bench.isAlive(forwarded.downstream))
    }

    @Test func `an endpoint is not blamed for closing a connection that was idle`() throws {
        let bench = try LoopBench()
        let forwarded = bench.forward(served: 1)
        finish(bench, forwarded)
        let second = attached(bench, forwarded.exchange)
        #expect(bench.phase(second) == .connecting && bench.failures() == 0)
    }

    @Test func `a truncated head is a failure of the endpoint`() throws {
        let bench = try LoopBench()
        let forwarded = bench.forward()
        forwarded.server.end.send("HTTP/1.1 200 OK\r\n")
        finish(bench, forwarded)
        let text = forwarded.client.end.text()
        #expect(text == Self.invalid && bench.counted().reasons == ["upstream.truncated": 1])
        #expect(bench.failures() == 1 && bench.requests() == ["api 502 1"])
    }

    @Test func `a truncated body resets the client's connection`() throws {
        let bench = try LoopBench()
        let forwarded = bench.forward()
        forwarded.server.end.send(Self.head + "hell")
        finish(bench, forwarded)
        let text = forwarded.client.end.text()
        #expect(text.hasSuffix("\r\n\r\nhell") && !bench.isAlive(forwarded.downstream))
        #expect(bench.counted().reasons == ["upstream.truncated": 1] && bench.requests() == ["api 200 1"])
        #expect(bench.failures() == 1)
    }

    @Test func `an idle connection that the endpoint closes leaves the pool`() throws {
        let bench = try LoopBench()
        let server = bench.pool()
        server.end.finish()
        bench.event(server.upstream, [.readable, .readClosed])
        #expect(!bench.isAlive(server.upstream) && bench.idle().isEmpty && bench.failures() == 0)
    }

    @Test func `a connection that breaks before a response is logged as reset`() throws {
        let bench = try LoopBench()
        let forwarded = bench.forward(Self.post)
        let fd = bench.run { loop in
            let fd = loop.upstreams[forwarded.upstream].transport.fd
            // No descriptor: reading it fails.
            loop.upstreams[forwarded.upstream].transport.fd = .max
            return fd
        }
        bench.event(forwarded.upstream, .failed)
        let text = forwarded.client.end.text()
        Glibc.close(fd)
        #expect(text == Self.unavailable && bench.counted().reasons == ["upstream.reset": 1])
        #expect(bench.failures() == 1 && !bench.isAlive(forwarded.upstream))
    }

    // MARK: Connecting

    @Test(arguments: [.failed, .hungUp, [.writable, .hungUp]] as [Readiness])
    func `a connection that is not established fails its request`(_ readiness: Readiness) throws {
        let bench = try LoopBench()
        let client = bench.openClient()
        let exchange = bench.admit(BenchText.get, on: client.downstream)
        let upstream = attached(bench, exchange)
        bench.event(upstream, readiness)
        let text = client.end.text()
        #expect(text == Self.unavailable && bench.counted().reasons == ["upstream.refused": 1])
        #expect(!bench.isAlive(upstream) && bench.failures() == 1)
    }

    @Test func `a connection that is established sends its request`() throws {
        let bench = try LoopBench()
        let client = bench.openClient()
        let exchange = bench.admit(BenchText.get, on: client.downstream)
        let server = bench.openServer(connected: false)
        bench.run { loop in
            loop.exchanges.dropUpstream(of: exchange, &loop.upstreams, &loop.context)
            loop.attach(exchange, to: server.upstream)
        }
        bench.event(server.upstream, .readable)
        let early = (bench.phase(server.upstream), bench.due(server.upstream))
        server.end.send(Self.head + "hello")
        bench.event(server.upstream, [.readable, .writable])
        let (sent, text) = (server.end.text(), client.end.text())
        #expect(early.0 == .connecting && early.1 == 2_000)
        #expect(sent.hasPrefix("GET /api/x HTTP/1.1\r\n") && text.hasSuffix("\r\n\r\nhello"))
        #expect(bench.idle() == [server.upstream])
    }

    @Test func `an event of a connection that is gone is ignored`() throws {
        let bench = try LoopBench()
        let forwarded = bench.forward()
        bench.run { $0.abandon(forwarded.downstream) }
        bench.event(forwarded.upstream, [.readable, .writable, .failed])
        #expect(bench.requests() == ["api 499 1"] && bench.failures() == 0)
    }

    // MARK: Timeouts

    @Test func `a connection is given up when it is not established in time`() throws {
        let bench = try LoopBench()
        let client = bench.openClient()
        let exchange = bench.admit(BenchText.get, on: client.downstream)
        let upstream = attached(bench, exchange)
        bench.expire(upstream)
        let text = client.end.text()
        #expect(text == Self.timedOut && bench.counted().reasons == ["upstream.connect_timed_out": 1])
        #expect(!bench.isAlive(upstream) && bench.failures() == 1)
        #expect(bench.now == LoopBench.start + 2_000_000_000)
    }

    @Test func `an endpoint that does not respond in time is to blame`() throws {
        let bench = try LoopBench()
        let forwarded = bench.forward()
        bench.expire(forwarded.upstream)
        let text = forwarded.client.end.text()
        #expect(text == Self.timedOut && bench.counted().reasons == ["upstream.answer_timed_out": 1])
        #expect(bench.failures() == 1 && !bench.isAlive(forwarded.upstream))
        #expect(bench.now == LoopBench.start + 20_000_000_000)
    }

    @Test func `an endpoint that waits for the rest of a request is not to blame`() throws {
        let bench = try LoopBench()
        let forwarded = bench.forward(BenchText.post(5))
        bench.expire(forwarded.upstream)
        let text = forwarded.client.end.text()
        #expect(text == BenchText.problem(504, "Gateway Timeout", "upstream_timeout", closes: true))
        #expect(bench.failures() == 0 && bench.now == LoopBench.start + 60_000_000_000)
    }

    @Test func `a response that stops is reset`() throws {
        let bench = try LoopBench()
        let forwarded = bench.forward()
        bench.advance(milliseconds: 1_000)
        forwarded.server.end.send(Self.head + "he")
        bench.event(forwarded.upstream)
        #expect(bench.due(forwarded.upstream) == 61_000)
        bench.expire(forwarded.upstream)
        #expect(!bench.isAlive(forwarded.downstream) && !bench.isAlive(forwarded.upstream))
        #expect(bench.counted().reasons == ["upstream.answer_stalled": 1] && bench.failures() == 1)
        #expect(bench.requests() == ["api 200 1"])
    }

    @Test func `a response that waits for its client is checked again`() throws {
        let bench = try LoopBench()
        let forwarded = bench.forward()
        forwarded.server.end.send(Self.head + "he")
        bench.event(forwarded.upstream)
        bench.run { $0.upstreams[forwarded.upstream].isPaused = true }
        bench.expire(forwarded.upstream)
        #expect(bench.isAlive(forwarded.exchange) && bench.due(forwarded.upstream) == 61_000)
        #expect(bench.failures() == 0)
    }

    @Test func `an idle connection is closed after its timeout`() throws {
        let bench = try LoopBench()
        let server = bench.openServer()
        bench.run { $0.upstreams.returnToPool(server.upstream, &$0.context) }
        bench.expire(server.upstream)
        #expect(!bench.isAlive(server.upstream) && bench.idle().isEmpty && server.end.state == .closed)
    }

    @Test func `a deadline that was extended is waited for again`() throws {
        let bench = try LoopBench()
        let forwarded = bench.forward()
        let tick = bench.run { $0.upstreams[forwarded.upstream].timer.scheduled }
        bench.advance(milliseconds: 10_000)
        bench.run {
            $0.exchanges[forwarded.exchange].armResponseTimeout(forwarded.upstream, &$0.upstreams, &$0.context)
        }
        bench.advance(milliseconds: 10_016)
        bench.withResponses { $0.timerFired(upstream: forwarded.upstream, tick, &$1) }
        let next = bench.run { $0.upstreams[forwarded.upstream].timer.scheduled }
        bench.withResponses { $0.timerFired(upstream: forwarded.upstream, tick, &$1) }
        #expect(bench.isAlive(forwarded.exchange) && bench.due(forwarded.upstream) == 30_000)
        #expect(next == TimerWheel.tick(for: LoopBench.start + 30_000_000_000))
    }

    // MARK: PROXY protocol

    @Test func `a connection begins with a PROXY header that names the client`() throws {
        let bench = try LoopBench { $0.transport.sendsProxyProtocol = true }
        let client = bench.openClient()
        let exchange = bench.admit(BenchText.get, on: client.downstream)
        let server = bench.openServer(connected: false)
        bench.run { loop in
            loop.exchanges.dropUpstream(of: exchange, &loop.upstreams, &loop.context)
            loop.attach(exchange, to: server.upstream)
        }
        bench.event(server.upstream, .writable)
        let sent = server.end.bytes()
        let outcome = ProxyHeader.parse(sent.span)
        // The client's own connection has no address that could be named with it.
        #expect(outcome == .complete(count: 16, peer: .local))
        #expect(String(decoding: sent.dropFirst(16), as: UTF8.self).hasPrefix("GET /api/x HTTP/1.1\r\n"))
        #expect(bench.phase(server.upstream) == .awaitingHead)
    }

    @Test func `without a request the PROXY header names no client`() throws {
        let bench = try LoopBench { $0.transport.sendsProxyProtocol = true }
        let server = bench.openServer()
        let header = bench.run { loop in
            loop.upstreams.writeProxyHeader(server.upstream, &loop.downstreams, &loop.exchanges)
            return loop.upstreams[server.upstream].transport.output.array
        }
        let outcome = ProxyHeader.parse(header.span)
        #expect(outcome == .complete(count: 16, peer: .local))
    }
}
