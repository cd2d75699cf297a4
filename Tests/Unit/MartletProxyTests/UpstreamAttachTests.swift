import MartletConfig
import MartletCore
import MartletDecisionsTesting
import MartletHTTP
import MartletResponder
import MartletTesting
import Testing

@testable import MartletDecisions
@testable import MartletProxy

/// An exchange and its connection to an endpoint.
@Suite struct UpstreamAttachTests {
    private static let first = EndpointIndex(rawValue: 0)

    private func head(_ bench: LoopBench, _ exchange: Handle<Exchange>) -> String {
        String(decoding: bench.run { unsafe Array($0.exchanges[exchange].forwarding.head.bytes) }, as: UTF8.self)
    }

    // MARK: Attaching

    @Test func `a request is sent over a pooled connection`() throws {
        let bench = try LoopBench()
        let forwarded = bench.forward()
        let (responder, current, carried) = bench.run {
            (
                $0.exchanges[forwarded.exchange].responder, $0.exchanges[forwarded.exchange].upstream,
                $0.upstreams[forwarded.upstream].exchange
            )
        }
        #expect(responder == .upstream && current == forwarded.upstream && carried == forwarded.exchange)
        #expect(forwarded.sent == head(bench, forwarded.exchange))
        #expect(forwarded.sent.hasPrefix("GET /api/x HTTP/1.1\r\nHost: a\r\n") && forwarded.sent.hasSuffix("\r\n\r\n"))
        #expect(bench.phase(forwarded.upstream) == .awaitingHead && bench.due(forwarded.upstream) == 20_000)
        #expect(bench.active() == 1 && bench.idle().isEmpty && bench.due(forwarded.downstream) == nil)
    }

    @Test func `while the body arrives, silence has a timeout instead of the response`() throws {
        let bench = try LoopBench()
        let forwarded = bench.forward(BenchText.post(5))
        #expect(bench.due(forwarded.upstream) == 60_000 && bench.due(forwarded.downstream) == 30_000)
    }

    @Test func `a connection that is not established has the timeout to connect`() throws {
        let bench = try LoopBench()
        let client = bench.openClient()
        let exchange = bench.admit(BenchText.get, on: client.downstream)
        let upstream = bench.run { $0.exchanges[exchange].upstream }
        let headSent = bench.run { $0.exchanges[exchange].forwarding.head.sent }
        #expect(bench.phase(upstream) == .connecting && bench.due(upstream) == 2_000)
        #expect(headSent == 0 && bench.active() == 1)
    }

    @Test func `a connection that was paused for its last client is read again`() throws {
        let bench = try LoopBench()
        let (server, client) = (bench.pool(), bench.openClient())
        bench.run { $0.upstreams[server.upstream].isPaused = true }
        bench.admit(BenchText.get, on: client.downstream)
        let isPaused = bench.run { $0.upstreams[server.upstream].isPaused }
        #expect(!isPaused)
    }

    // MARK: Sending

    @Test func `the head is sent before the body`() throws {
        let bench = try LoopBench()
        let server = bench.openServer(connected: false)
        let client = bench.openClient()
        let exchange = bench.admit(BenchText.post(5), on: client.downstream)
        bench.run { loop in
            loop.exchanges.dropUpstream(of: exchange, &loop.upstreams, &loop.context)
            loop.attach(exchange, to: server.upstream)
        }
        bench.receive("hello", for: exchange)
        let early = server.end.text()
        bench.run { loop in
            RequestForwarder.upstreamReady(server.upstream, &loop)
        }
        let text = server.end.text()
        #expect(early.isEmpty && text == head(bench, exchange) + "hello")
        #expect(bench.phase(server.upstream) == .awaitingHead && bench.due(server.upstream) == 20_000)
    }

    @Test func `what the kernel does not accept of a head is sent later`() throws {
        let bench = try LoopBench()
        let (server, client) = (bench.openServer(), bench.openClient())
        let exchange = bench.admit(BenchText.get, on: client.downstream)
        let payload = Payload.bytes(300_000)
        bench.run { loop in
            loop.exchanges.dropUpstream(of: exchange, &loop.upstreams, &loop.context)
            loop.exchanges[exchange].forwarding.head = UpstreamHead(payload)
            loop.upstreams[server.upstream].output.append("body")
            loop.attach(exchange, to: server.upstream)
        }
        let sent = bench.run { $0.exchanges[exchange].forwarding.head.sent }
        #expect(sent > 0 && sent < payload.count && bench.output(server.upstream) == "body")
        var received = server.end.bytes()
        for _ in 0..<1000 where received.count < payload.count + 4 {
            bench.run { $0.flush(upstream: server.upstream) }
            received += server.end.bytes()
        }
        #expect(received == payload + Array("body".utf8) && bench.output(server.upstream).isEmpty)
    }

    @Test func `no request overtakes what is left of a PROXY header`() throws {
        let bench = try LoopBench()
        let (server, client) = (bench.openServer(connected: false), bench.openClient())
        let exchange = bench.admit(BenchText.get, on: client.downstream)
        // More than the kernel accepts.
        let header = Payload.bytes(300_000)
        bench.run { loop in
            loop.exchanges.dropUpstream(of: exchange, &loop.upstreams, &loop.context)
            loop.attach(exchange, to: server.upstream)
            loop.upstreams[server.upstream].transport.output.append(header)
        }
        bench.withResponses { $0.startPreamble(server.upstream, &$1) }
        let early = bench.run { $0.exchanges[exchange].forwarding.head.sent }
        #expect(early == 0 && bench.phase(server.upstream) == .connecting)
        var received = server.end.bytes()
        for _ in 0..<1000 where bench.phase(server.upstream) == .connecting {
            bench.withResponses { $0.startPreamble(server.upstream, &$1) }
            received += server.end.bytes()
        }
        #expect(received == header + Array(head(bench, exchange).utf8))
    }

    @Test func `nothing is sent without a request, or before the connection is established`() throws {
        let bench = try LoopBench()
        let server = bench.openServer(connected: false)
        bench.run { loop in
            loop.upstreams[server.upstream].output.append("left")
            loop.flush(upstream: server.upstream)
        }
        #expect(server.end.state == .open && bench.output(server.upstream) == "left")
    }

    @Test func `bytes in both directions extend the timeout of a body`() throws {
        let bench = try LoopBench()
        let forwarded = bench.forward(BenchText.post(5))
        bench.advance(milliseconds: 1_000)
        bench.run { loop in
            loop.flush(upstream: forwarded.upstream)
        }
        let unchanged = bench.due(forwarded.upstream)
        bench.receive("he", for: forwarded.exchange)
        #expect(unchanged == 60_000 && bench.due(forwarded.upstream) == 61_000)
    }

    @Test func `after a failed write the response is read`() throws {
        let bench = try LoopBench()
        let forwarded = bench.forward(BenchText.post(5))
        forwarded.server.end.leave()
        bench.receive("hello", for: forwarded.exchange)
        let (isReadClosed, isSent) = bench.run {
            ($0.upstreams[forwarded.upstream].transport.isReadClosed, $0.exchanges[forwarded.exchange].hasSentHead)
        }
        #expect(bench.isAlive(forwarded.upstream) && isReadClosed && isSent)
        #expect(bench.output(forwarded.upstream).isEmpty && bench.ready() == ["upstream 0"])
    }

    // MARK: Detaching

    /// Why a connection carries no further request.
    enum Leftover: CaseIterable, Sendable {
        case none, closing, body, head, unsent, end

        func apply(to forwarded: BenchExchange, _ loop: inout LoopState) {
            loop.upstreams[forwarded.upstream].response.keepsAlive = self != .closing
            switch self {
            case .none, .closing: break
            case .body: loop.exchanges[forwarded.exchange].body.isComplete = false
            case .head: loop.exchanges[forwarded.exchange].forwarding.head.sent = 0
            case .unsent: loop.upstreams[forwarded.upstream].output.append("left")
            case .end: loop.upstreams[forwarded.upstream].transport.isReadClosed = true
            }
        }
    }

    @Test(arguments: Leftover.allCases)
    func `a connection returns to the pool if nothing of its request is left`(_ leftover: Leftover) throws {
        let bench = try LoopBench()
        let forwarded = bench.forward(served: 3)
        let (served, upstream) = bench.run { loop in
            leftover.apply(to: forwarded, &loop)
            loop.upstreams.detach(forwarded.upstream, of: forwarded.exchange, &loop.exchanges, &loop.context)
            return (loop.upstreams[forwarded.upstream].served, loop.exchanges[forwarded.exchange].upstream)
        }
        #expect(served == 4 && upstream == .none && bench.active() == 0)
        #expect(bench.isAlive(forwarded.upstream) == (leftover == .none))
        #expect(bench.idle() == (leftover == .none ? [forwarded.upstream] : []))
    }

    @Test func `a connection whose response is incomplete is closed`() throws {
        let bench = try LoopBench()
        let forwarded = bench.forward()
        let upstream = bench.run { loop in
            loop.upstreams[forwarded.upstream].response.keepsAlive = true
            loop.exchanges.dropUpstream(of: forwarded.exchange, &loop.upstreams, &loop.context)
            loop.exchanges.dropUpstream(of: forwarded.exchange, &loop.upstreams, &loop.context)
            return loop.exchanges[forwarded.exchange].upstream
        }
        #expect(upstream == .none && !bench.isAlive(forwarded.upstream) && bench.active() == 0)
        #expect(forwarded.server.end.state == .closed)
    }

    // MARK: Endpoints

    @Test(
        arguments: [(.keep, "a"), (.endpoint, "localhost"), (.fixed("b:1"), "b:1")]
            as [(UpstreamConfiguration.HostPolicy, String)])
    func `Host is the client's, the endpoint's or a fixed one`(
        _ policy: UpstreamConfiguration.HostPolicy, _ host: String
    ) throws {
        let bench = try LoopBench { $0.host = policy }
        let forwarded = bench.forward()
        let hosts = forwarded.sent.split(separator: "\r\n" as Character).filter { $0.hasPrefix("Host:") }
        #expect(hosts == ["Host: \(host)"])
    }

    @Test(
        arguments: [
            (.http(host: "a", port: 80), .http1, true), (.http(host: "a", port: 80), .h2, true),
            (.https(host: "a", port: 443), .http1, true), (.https(host: "a", port: 443), .h2, false),
            (.unix(path: "/a"), .http1, true), (.unix(path: "/a"), .h2, false), (.echo, .http1, false),
            (.h2c(host: "a", port: 80), .http1, false),
        ] as [(EndpointAddress, UpstreamTransport.Version, Bool)])
    func `upgrades need a connection of their own`(
        _ address: EndpointAddress, _ version: UpstreamTransport.Version, _ expected: Bool
    ) throws {
        let bench = try LoopBench {
            $0.endpoints = [address]
            $0.transport.version = version
        }
        let client = bench.openClient()
        let exchange = bench.begin(BenchText.get, on: client.downstream)
        let carries = bench.run { loop in
            loop.exchanges[exchange].forwarding.cluster = ClusterIndex(rawValue: 0)
            loop.exchanges[exchange].forwarding.endpoint = Self.first
            return loop.exchanges[exchange].carriesUpgrades(&loop.upstreams)
        }
        #expect(carries == expected)
    }

    @Test func `an attempt is described by its exchange`() throws {
        let bench = try LoopBench { $0.endpoints = [SampleSettings.first, SampleSettings.second] }
        let client = bench.openClient()
        let exchange = bench.admit(BenchText.post(5), on: client.downstream)
        bench.receive("he", for: exchange)
        let attempt = bench.run { $0.exchanges[exchange].failedAttempt(.requestSent, &$0.upstreams) }
        #expect(attempt.progress == .requestSent && attempt.endpoint.rawValue == 1 && attempt.attempts == 1)
        #expect(attempt.endpoints == 2 && !attempt.isRepeatable && attempt.hasBodyBytes && !attempt.hasResponseStarted)
    }

    @Test(arguments: [(false, false, false), (true, false, true), (false, true, true)])
    func `most events of a writable socket are redundant`(
        _ hasBody: Bool, _ hasHead: Bool, _ expected: Bool
    ) throws {
        let bench = try LoopBench()
        let forwarded = bench.forward()
        let mayHave = bench.run { loop in
            if hasBody { loop.upstreams[forwarded.upstream].output.append("left") }
            if hasHead { loop.exchanges[forwarded.exchange].forwarding.head.sent &-= 1 }
            return loop.upstreams.mayHaveUnsent(forwarded.upstream, &loop.exchanges)
        }
        #expect(mayHave == expected)
    }

    @Test func `an idle connection has nothing unsent, one with TLS or frames may have`() throws {
        let bench = try LoopBench()
        let server = bench.pool()
        let results = bench.run { loop in
            var results = [loop.upstreams.mayHaveUnsent(server.upstream, &loop.exchanges)]
            loop.upstreams[server.upstream].transport.isSecure = true
            results.append(loop.upstreams.mayHaveUnsent(server.upstream, &loop.exchanges))
            loop.upstreams[server.upstream].transport.isSecure = false
            loop.upstreams[server.upstream].kind = .http2
            results.append(loop.upstreams.mayHaveUnsent(server.upstream, &loop.exchanges))
            loop.upstreams[server.upstream].kind = .http1
            return results
        }
        #expect(results == [false, true, true])
    }

    @Test(arguments: [false, true])
    func `a rejected response blames the endpoint`(_ closes: Bool) throws {
        let bench = try LoopBench()
        let forwarded = bench.forward()
        bench.run { $0.rejectResponse(forwarded.upstream, "upstream.bad_chunk", closes: closes) }
        let text = forwarded.client.end.text()
        #expect(text == BenchText.problem(502, "Bad Gateway", "upstream_invalid", closes: closes))
        #expect(bench.failures() == 1 && bench.active() == 0 && !bench.isAlive(forwarded.upstream))
        #expect(bench.isAlive(forwarded.downstream) == !closes)
        #expect(bench.counted().reasons == ["upstream.bad_chunk": 1])
    }
}
