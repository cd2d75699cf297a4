import MartletCore
import MartletHTTP
import MartletResponder
import MartletTesting
import Testing

@testable import MartletDecisions
@testable import MartletProxy

/// Deadlines of clients whose request is in progress.
@Suite struct BodyTimeoutTests {
    private static let timedOut = BenchText.problem(408, "Request Timeout", "request_invalid", closes: true)
    private static let expecting = BenchText.post(5, fields: "Expect: 100-continue\r\n")

    private func timeOut(_ bench: LoopBench, _ exchange: Handle<Exchange>) {
        bench.run { RequestForwarder.exchangeTimedOut(exchange, &$0) }
    }

    // MARK: Progress

    @Test func `a body that arrives fast enough is checked again`() throws {
        let bench = try LoopBench()
        let forwarded = bench.forward(BenchText.post(100_000))
        bench.advance(milliseconds: 10_000)
        // 256 bytes a second for 30 s.
        bench.receive([UInt8](repeating: 7, count: 7_680), for: forwarded.exchange)
        #expect(bench.due(forwarded.downstream) == 30_000)
        bench.advance(milliseconds: 20_000)
        timeOut(bench, forwarded.exchange)
        #expect(bench.isAlive(forwarded.exchange) && bench.due(forwarded.downstream) == 40_000)
        let window = bench.run { $0.exchanges[forwarded.exchange].pace }
        #expect(window.windowStart == LoopBench.start + 30_000_000_000 && window.windowBytes == 0)
    }

    @Test func `a body that arrives too slowly is rejected`() throws {
        let bench = try LoopBench()
        let forwarded = bench.forward(BenchText.post(100_000))
        bench.advance(milliseconds: 10_000)
        bench.receive([UInt8](repeating: 7, count: 7_679), for: forwarded.exchange)
        bench.advance(milliseconds: 20_000)
        timeOut(bench, forwarded.exchange)
        let text = forwarded.client.end.text()
        #expect(text == Self.timedOut && bench.counted().reasons == ["request.timed_out": 1])
        #expect(!bench.isAlive(forwarded.upstream) && bench.phase(forwarded.downstream) == .lingering)
    }

    @Test func `a body of which nothing arrives is rejected`() throws {
        let bench = try LoopBench()
        let forwarded = bench.forward(BenchText.post(100_000))
        bench.receive([UInt8](repeating: 7, count: 50_000), for: forwarded.exchange)
        bench.advance(milliseconds: 29_999)
        timeOut(bench, forwarded.exchange)
        let isAlive = bench.isAlive(forwarded.exchange)
        bench.advance(milliseconds: 1)
        timeOut(bench, forwarded.exchange)
        let text = forwarded.client.end.text()
        #expect(isAlive && text == Self.timedOut && !bench.isAlive(forwarded.exchange))
    }

    @Test func `an upload whose response has started is reset`() throws {
        let bench = try LoopBench()
        let forwarded = bench.forward(BenchText.post(100_000))
        bench.run { $0.exchanges[forwarded.exchange].response.start(status: 200, closes: true) }
        bench.advance(milliseconds: 30_000)
        timeOut(bench, forwarded.exchange)
        let text = forwarded.client.end.text()
        #expect(text.isEmpty && !bench.isAlive(forwarded.downstream) && bench.requests() == ["api 200 1"])
        #expect(bench.counted().reasons == ["request.timed_out": 1])
    }

    // MARK: 100 Continue

    @Test func `the endpoint has a second to send 100 Continue, then the gateway sends it`() throws {
        let bench = try LoopBench()
        let forwarded = bench.forward(Self.expecting)
        #expect(bench.due(forwarded.downstream) == 1_000)
        bench.advance(milliseconds: 1_000)
        timeOut(bench, forwarded.exchange)
        let text = forwarded.client.end.text()
        let hasContinued = bench.run { $0.exchanges[forwarded.exchange].request.hasContinued }
        #expect(text == "HTTP/1.1 100 Continue\r\n\r\n" && hasContinued && bench.due(forwarded.downstream) == 30_000)
        bench.advance(milliseconds: 29_000)
        timeOut(bench, forwarded.exchange)
        #expect(forwarded.client.end.text() == Self.timedOut)
    }

    @Test func `a client that does not wait for 100 Continue gets none`() throws {
        let bench = try LoopBench()
        let forwarded = bench.forward(Self.expecting)
        bench.receive("he", for: forwarded.exchange)
        #expect(bench.due(forwarded.downstream) == 30_000)
        timeOut(bench, forwarded.exchange)
        #expect(forwarded.client.end.state == .open && bench.isAlive(forwarded.exchange))
    }

    // MARK: Slow endpoints

    @Test func `a client that is paused need not send`() throws {
        let bench = try LoopBench()
        let forwarded = bench.forward(BenchText.post(100_000))
        bench.run { $0.downstreams[forwarded.downstream].isPaused = true }
        bench.advance(milliseconds: 40_000)
        timeOut(bench, forwarded.exchange)
        let window = bench.run { $0.exchanges[forwarded.exchange].pace }
        #expect(bench.isAlive(forwarded.exchange) && bench.due(forwarded.downstream) == 70_000)
        #expect(window.windowStart == bench.now && window.receivedAt == bench.now)
    }

    @Test(arguments: [(10_001, true), (10_000, false)] as [(Int64, Bool)])
    func `an exchange in which both sides wait for each other is abandoned`(
        _ writtenAt: Int64, _ isKept: Bool
    ) throws {
        let bench = try LoopBench()
        let forwarded = bench.forward(BenchText.post(100_000))
        bench.run { loop in
            loop.downstreams[forwarded.downstream].isPaused = true
            loop.upstreams[forwarded.upstream].isPaused = true
            loop.downstreams[forwarded.downstream].transport.lastWriteAt = LoopBench.start + writtenAt * 1_000_000
        }
        bench.advance(milliseconds: 40_000)
        timeOut(bench, forwarded.exchange)
        #expect(bench.isAlive(forwarded.exchange) == isKept && bench.isAlive(forwarded.upstream) == isKept)
        #expect(bench.requests() == (isKept ? [] : ["api 499 1"]))
    }

    @Test func `a client that is paused without an endpoint is not stuck`() throws {
        let bench = try LoopBench()
        let client = bench.openClient()
        let exchange = bench.begin(BenchText.post(5), on: client.downstream)
        bench.run { $0.downstreams[client.downstream].isPaused = true }
        bench.advance(milliseconds: 40_000)
        timeOut(bench, exchange)
        #expect(bench.isAlive(exchange) && bench.due(client.downstream) == 70_000)
    }

    // MARK: gRPC calls

    @Test(arguments: [(false, 0, true), (true, 10_001, true), (true, 10_000, false)] as [(Bool, Int64, Bool)])
    func `a gRPC call may be silent as long as its output is read`(
        _ hasOutput: Bool, _ writtenAt: Int64, _ isKept: Bool
    ) throws {
        let bench = try LoopBench()
        let forwarded = bench.forward(BenchText.chunked)
        bench.run { loop in
            loop.exchanges[forwarded.exchange].request.isGRPC = true
            if hasOutput { loop.downstreams[forwarded.downstream].transport.output.append("left") }
            loop.downstreams[forwarded.downstream].transport.lastWriteAt = LoopBench.start + writtenAt * 1_000_000
        }
        bench.advance(milliseconds: 40_000)
        timeOut(bench, forwarded.exchange)
        #expect(bench.isAlive(forwarded.exchange) == isKept && bench.isAlive(forwarded.upstream) == isKept)
        // The next check is not in the past, however long the call has been silent.
        if isKept { #expect(bench.due(forwarded.downstream) == 70_000) }
    }

    // MARK: Complete requests

    @Test(arguments: [false, true])
    func `a client has to read its response`(_ hasOutput: Bool) throws {
        let bench = try LoopBench()
        let forwarded = bench.forward()
        bench.run { loop in
            if hasOutput { loop.downstreams[forwarded.downstream].transport.output.append("left") }
        }
        timeOut(bench, forwarded.exchange)
        #expect(bench.isAlive(forwarded.exchange) == !hasOutput)
        #expect(bench.requests() == (hasOutput ? ["api 499 1"] : []))
    }

    @Test func `a handler that does not respond in time is given up`() throws {
        let bench = try LoopBench()
        let client = bench.openClient()
        let exchange = bench.begin(BenchText.get, on: client.downstream)
        bench.run { $0.exchanges[exchange].responder = .local }
        timeOut(bench, exchange)
        let text = client.end.text()
        #expect(
            text == BenchText.problem(503, "Service Unavailable", "auth_unavailable", fields: "Retry-After: 1\r\n"))
        #expect(bench.counted().reasons == ["server.handler_timed_out": 1])
    }

    @Test func `a handler that has responded is only waited for by its client`() throws {
        let bench = try LoopBench()
        let client = bench.openClient()
        let exchange = bench.begin(BenchText.get, on: client.downstream)
        bench.run { loop in
            loop.exchanges[exchange].responder = .local
            loop.exchanges[exchange].response.start(status: 200, closes: false)
        }
        timeOut(bench, exchange)
        #expect(bench.isAlive(exchange))
        bench.run { $0.downstreams[client.downstream].transport.output.append("left") }
        timeOut(bench, exchange)
        #expect(!bench.isAlive(exchange) && bench.requests() == ["- 200 1"])
    }

    // MARK: Trailers of frames

    /// An upload that came in frames, as far as that concerns its end.
    private func frames(_ bench: LoopBench, _ head: String) -> BenchExchange {
        let forwarded = bench.forward(head)
        bench.run { loop in
            loop.downstreams[forwarded.downstream].stream.isEnded = true
            loop.exchanges[forwarded.exchange].trailers.received.append("X-Sum: 1\r\nX-Other: 2\r\n")
        }
        return forwarded
    }

    @Test func `the last frame ends the body, with the trailers that were announced`() throws {
        let bench = try LoopBench()
        let head = "POST /api/x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n"
        let forwarded = frames(bench, head)
        bench.run { RequestForwarder.finishStreamInput(forwarded.downstream, &$0) }
        let text = forwarded.server.end.text()
        let isComplete = bench.run { $0.exchanges[forwarded.exchange].body.isComplete }
        #expect(text == "0\r\nX-Sum: 1\r\n\r\n" && isComplete)
        #expect(bench.due(forwarded.downstream) == nil && bench.due(forwarded.upstream) == 20_000)
    }

    @Test func `a body that is shorter than its length is abandoned`() throws {
        let bench = try LoopBench()
        let forwarded = frames(bench, BenchText.post(5))
        bench.receive("hell", for: forwarded.exchange)
        bench.run { RequestForwarder.finishStreamInput(forwarded.downstream, &$0) }
        #expect(!bench.isAlive(forwarded.exchange) && bench.requests() == ["api 499 1"])
    }

    @Test func `frames that are not consumed yet do not end the body`() throws {
        let bench = try LoopBench()
        let forwarded = frames(bench, BenchText.chunked)
        bench.run { loop in
            loop.downstreams[forwarded.downstream].reader.input.append("left")
            RequestForwarder.finishStreamInput(forwarded.downstream, &loop)
            loop.downstreams[forwarded.downstream].reader.input.removeAll()
            loop.downstreams[forwarded.downstream].stream.isEnded = false
            RequestForwarder.finishStreamInput(forwarded.downstream, &loop)
        }
        let isComplete = bench.run { $0.exchanges[forwarded.exchange].body.isComplete }
        #expect(!isComplete && forwarded.server.end.state == .open)
    }
}
