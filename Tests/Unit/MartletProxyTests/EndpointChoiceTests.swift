import MartletConfig
import MartletCore
import MartletDecisionsTesting
import MartletIO
import MartletResponder
import MartletTesting
import Testing

@testable import MartletDecisions
@testable import MartletProxy

/// Which endpoint gets a request, and what follows when it fails.
@Suite struct EndpointChoiceTests {
    private static let both = [SampleSettings.first, SampleSettings.second]
    private static let unavailable = BenchText.problem(502, "Bad Gateway", "upstream_unavailable")

    private func forwarding(
        _ bench: LoopBench, _ exchange: Handle<Exchange>
    ) -> (endpoint: Int32, attempts: Int, upstream: Handle<UpstreamConnection>) {
        bench.run {
            (
                $0.exchanges[exchange].forwarding.endpoint.rawValue, $0.exchanges[exchange].forwarding.attempts,
                $0.exchanges[exchange].upstream
            )
        }
    }

    private func send(_ bench: LoopBench, _ exchange: Handle<Exchange>, avoiding: Int32, reusing: Bool) {
        bench.run {
            RequestForwarder.sendToEndpoint(
                exchange, avoiding: EndpointIndex(rawValue: avoiding), reusing: reusing, &$0)
        }
    }

    private func failConnecting(_ bench: LoopBench, _ exchange: Handle<Exchange>) {
        let upstream = forwarding(bench, exchange).upstream
        bench.run { RequestForwarder.connectFailed(upstream, .upstreamUnavailable("upstream.refused"), &$0) }
    }

    // MARK: The first attempt

    @Test func `the connection that was used last is used again`() throws {
        let bench = try LoopBench()
        let (first, second) = (bench.pool(), bench.pool())
        let client = bench.openClient()
        let exchange = bench.admit(BenchText.get, on: client.downstream)
        let chosen = forwarding(bench, exchange)
        #expect(chosen.upstream == second.upstream && chosen.attempts == 1 && chosen.endpoint == 0)
        #expect(bench.idle() == [first.upstream])
    }

    @Test func `a retry uses a new connection`() throws {
        let bench = try LoopBench()
        let client = bench.openClient()
        let exchange = bench.admit(BenchText.get, on: client.downstream)
        bench.run { $0.exchanges.dropUpstream(of: exchange, &$0.upstreams, &$0.context) }
        let pooled = bench.pool()
        send(bench, exchange, avoiding: -1, reusing: false)
        let retried = forwarding(bench, exchange)
        #expect(retried.attempts == 2 && retried.upstream != pooled.upstream)
        #expect(bench.phase(retried.upstream) == .connecting && bench.idle() == [pooled.upstream])
    }

    @Test func `an upstream without endpoints is unavailable`() throws {
        let bench = try LoopBench { $0.endpoints = [] }
        let client = bench.openClient()
        bench.admit(BenchText.get, on: client.downstream)
        let text = client.end.text()
        #expect(text.hasPrefix("HTTP/1.1 503 Service Unavailable\r\n") && text.contains("\r\nRetry-After: 1\r\n"))
        #expect(bench.counted().reasons == ["upstream.no_endpoint": 1])
        let size = BenchText.problemBody(503, "Service Unavailable", "upstream_unavailable").utf8.count
        let record = "192.0.2.1 GET a/api/x 503 upstream.no_endpoint route=api upstream= in=0 out=\(size) us=0"
        #expect(bench.log() == [record])
    }

    @Test func `an endpoint that carries no upgrades rejects them`() throws {
        let bench = try LoopBench { $0.endpoints = [.echo] }
        let client = bench.openClient()
        bench.admit(BenchText.upgrade, on: client.downstream)
        let text = client.end.text()
        let tunnels = bench.run { $0.exchanges.tunnels.count }
        #expect(text == Self.unavailable && bench.counted().reasons == ["upstream.carries_no_upgrades": 1])
        #expect(tunnels == 0)
    }

    // MARK: Failures to connect

    @Test func `an endpoint whose name is not resolved is not retried`() throws {
        let bench = try LoopBench { $0.endpoints = [SampleSettings.unresolved] }
        let client = bench.openClient()
        bench.admit(BenchText.get, on: client.downstream)
        let text = client.end.text()
        #expect(text == Self.unavailable && bench.counted().reasons == ["upstream.name_not_resolved": 1])
        #expect(bench.recorder.lines.isEmpty && bench.active() == 0)
    }

    @Test func `a request goes to another endpoint when the first cannot be connected to`() throws {
        let bench = try LoopBench { $0.endpoints = [SampleSettings.first, SampleSettings.unresolved] }
        let client = bench.openClient()
        let exchange = bench.admit(BenchText.get, on: client.downstream)
        let retried = forwarding(bench, exchange)
        #expect(retried.endpoint == 0 && retried.attempts == 2 && bench.phase(retried.upstream) == .connecting)
        #expect(
            bench.recorder.texts == [
                "debug retrying upstream request_id=\(BenchText.requestID(1)) upstream=http://upstream.test "
                    + "code=upstream.name_not_resolved"
            ])
        #expect(bench.active(0) == 1 && bench.active(1) == 0)
    }

    @Test func `every endpoint is tried once while nothing was sent`() throws {
        let bench = try LoopBench { $0.endpoints = Self.both }
        let client = bench.openClient()
        let exchange = bench.admit(BenchText.get, on: client.downstream)
        let first = forwarding(bench, exchange)
        failConnecting(bench, exchange)
        let second = forwarding(bench, exchange)
        #expect(first.endpoint == 1 && second.endpoint == 0 && second.attempts == 2)
        #expect(!bench.isAlive(first.upstream) && bench.isAlive(second.upstream))
        #expect(bench.failures(1) == 1 && bench.failures(0) == 0 && bench.active(1) == 0 && bench.active(0) == 1)
        failConnecting(bench, exchange)
        let text = client.end.text()
        #expect(text == Self.unavailable && !bench.isAlive(exchange) && !bench.isAlive(second.upstream))
        #expect(bench.counted().reasons == ["upstream.refused": 1] && bench.failures(0) == 1)
        #expect(bench.recorder.lines.count == 1)
    }

    @Test func `an endpoint that refused a connection is ejected for a second`() throws {
        let bench = try LoopBench { $0.endpoints = Self.both }
        let client = bench.openClient()
        let exchange = bench.admit(BenchText.get, on: client.downstream)
        failConnecting(bench, exchange)
        let others = (0..<4).map { _ in bench.admit(BenchText.get, on: bench.openClient().downstream) }
        #expect(others.map { forwarding(bench, $0).endpoint } == [0, 0, 0, 0])
        bench.advance(milliseconds: 1_000)
        let later = (0..<2).map { _ in bench.admit(BenchText.get, on: bench.openClient().downstream) }
        #expect(Set(later.map { forwarding(bench, $0).endpoint }) == [0, 1])
    }

    @Test func `a body that was not sent goes to the next endpoint`() throws {
        let bench = try LoopBench { $0.endpoints = Self.both }
        let client = bench.openClient()
        let exchange = bench.admit(BenchText.chunked, on: client.downstream)
        bench.receive("5\r\nhello\r\n", for: exchange)
        let first = bench.output(forwarding(bench, exchange).upstream)
        failConnecting(bench, exchange)
        let second = bench.output(forwarding(bench, exchange).upstream)
        bench.receive("2\r\n!!\r\n0\r\n\r\n", for: exchange)
        let whole = bench.output(forwarding(bench, exchange).upstream)
        #expect(first == "5\r\nhello\r\n" && second == first)
        #expect(whole == "5\r\nhello\r\n2\r\n!!\r\n0\r\n\r\n")
    }

    @Test func `a complete body ends at the next endpoint, too`() throws {
        let bench = try LoopBench { $0.endpoints = Self.both }
        let client = bench.openClient()
        let exchange = bench.admit(BenchText.chunked, on: client.downstream)
        bench.receive("5\r\nhello\r\n0\r\n\r\n", for: exchange)
        failConnecting(bench, exchange)
        let text = bench.output(forwarding(bench, exchange).upstream)
        let isHeld = bench.run { !$0.exchanges[exchange].heldBody.isEmpty }
        #expect(text == "5\r\nhello\r\n0\r\n\r\n" && !isHeld)
    }

    // MARK: Retries after the request was sent

    private func retry(_ bench: LoopBench, _ exchange: Handle<Exchange>, nothingSent: Bool) {
        bench.run { loop in
            loop.exchanges.dropUpstream(of: exchange, &loop.upstreams, &loop.context)
            RequestForwarder.retryOrReject(
                exchange, .upstreamUnavailable("upstream.closed_early"), nothingSent ? .nothingSent : .requestSent,
                &loop)
        }
    }

    @Test func `a request that can be repeated is sent twice`() throws {
        let bench = try LoopBench()
        let forwarded = bench.forward()
        retry(bench, forwarded.exchange, nothingSent: false)
        let second = forwarding(bench, forwarded.exchange)
        #expect(second.attempts == 2 && bench.phase(second.upstream) == .connecting)
        retry(bench, forwarded.exchange, nothingSent: false)
        let text = forwarded.client.end.text()
        #expect(text == Self.unavailable && bench.counted().reasons == ["upstream.closed_early": 1])
    }

    @Test(arguments: [BenchText.post(5), "POST /api/x HTTP/1.1\r\nHost: a\r\n\r\n"])
    func `a request that may have an effect is sent once`(_ head: String) throws {
        let bench = try LoopBench { $0.endpoints = Self.both }
        let server = bench.pool(1)
        let client = bench.openClient()
        let exchange = bench.admit(head, on: client.downstream)
        let isSent = server.end.state == .hasBytes
        retry(bench, exchange, nothingSent: false)
        let text = client.end.text()
        #expect(isSent && text.hasPrefix("HTTP/1.1 502 Bad Gateway\r\n") && !bench.isAlive(exchange))
        #expect(bench.recorder.lines.isEmpty)
    }

    @Test func `a request whose response has started is not sent again`() throws {
        let bench = try LoopBench { $0.endpoints = Self.both }
        let client = bench.openClient()
        let exchange = bench.admit(BenchText.get, on: client.downstream)
        bench.run { $0.exchanges[exchange].response.start(status: 200, closes: false) }
        retry(bench, exchange, nothingSent: true)
        #expect(!bench.isAlive(exchange) && !bench.isAlive(client.downstream) && client.end.bytes().isEmpty)
        #expect(bench.requests() == ["api 200 1"])
    }
}
