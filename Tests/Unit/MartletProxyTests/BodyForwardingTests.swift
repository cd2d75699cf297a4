import MartletCore
import MartletHTTP
import MartletResponder
import MartletTesting
import Testing

@testable import MartletDecisions
@testable import MartletProxy

/// The body of a request on its way to an endpoint.
@Suite struct BodyForwardingTests {
    private static let small = "POST /small/x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
    private static let announced =
        "POST /api/x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n"

    private func bytesIn(_ bench: LoopBench, _ exchange: Handle<Exchange>) -> Int {
        bench.run { $0.exchanges[exchange].record.bytesIn }
    }

    /// The rejection of an upload, and the reason that was counted.
    private func rejection(_ head: String, _ body: String) throws -> (text: String, reasons: [String: Int]) {
        let bench = try LoopBench()
        let forwarded = bench.forward(head)
        let used = bench.receive(body, for: forwarded.exchange)
        #expect(used == body.utf8.count && !bench.isAlive(forwarded.exchange) && !bench.isAlive(forwarded.upstream))
        return (forwarded.client.end.text(), bench.counted().reasons)
    }

    // MARK: Lengths

    @Test func `a body is forwarded as it arrives, up to its length`() throws {
        let bench = try LoopBench()
        let forwarded = bench.forward(BenchText.post(5))
        bench.advance(milliseconds: 1_000)
        let first = bench.receive("he", for: forwarded.exchange)
        let early = (bench.due(forwarded.downstream), bench.due(forwarded.upstream))
        let second = bench.receive("lloGET /", for: forwarded.exchange)
        let text = forwarded.server.end.text()
        #expect(first == 2 && second == 3 && text == "hello" && bytesIn(bench, forwarded.exchange) == 5)
        // Its rate is measured from its beginning; then the response is waited for.
        #expect(early == (30_000, 61_000))
        #expect(bench.due(forwarded.downstream) == nil && bench.due(forwarded.upstream) == 21_000)
        let isComplete = bench.run { $0.exchanges[forwarded.exchange].body.isComplete }
        #expect(isComplete)
    }

    @Test(arguments: [Exchange.directSendThreshold - 1, Exchange.directSendThreshold, 20_000])
    func `pieces of all sizes arrive in order`(_ size: Int) throws {
        let bench = try LoopBench()
        let payload = Payload.bytes(2 * size)
        let forwarded = bench.forward(BenchText.post(payload.count))
        bench.receive(Array(payload[..<size]), for: forwarded.exchange)
        bench.receive(Array(payload[size...]), for: forwarded.exchange)
        let received = forwarded.server.end.bytes()
        #expect(received == payload && bench.output(forwarded.upstream).isEmpty)
        #expect(bytesIn(bench, forwarded.exchange) == payload.count)
    }

    @Test func `a large piece that the kernel does not accept is buffered`() throws {
        let bench = try LoopBench()
        let payload = Payload.bytes(300_000)
        let forwarded = bench.forward(BenchText.post(payload.count + 1))
        bench.receive(payload, for: forwarded.exchange)
        var received = forwarded.server.end.bytes()
        let buffered = bench.run { $0.upstreams[forwarded.upstream].output.count }
        #expect(!received.isEmpty && buffered > 0)
        for _ in 0..<1000 where received.count < payload.count {
            bench.run { $0.flush(upstream: forwarded.upstream) }
            received += forwarded.server.end.bytes()
        }
        #expect(received == payload && bench.due(forwarded.upstream) == 60_000)
    }

    @Test(arguments: [(Watermark.high, false), (Watermark.high + 1, true)])
    func `a client is paused when too much of its body is unsent`(_ count: Int, _ expected: Bool) throws {
        let bench = try LoopBench()
        let client = bench.openClient()
        let exchange = bench.admit(BenchText.post(1_000_000), on: client.downstream)
        bench.receive([UInt8](repeating: 7, count: count), for: exchange)
        let isPaused = bench.run { $0.downstreams[client.downstream].isPaused }
        #expect(isPaused == expected)
    }

    // MARK: Chunks

    @Test(arguments: [
        (["3\r\nabc\r\n0\r\n\r\n"], "3\r\nabc\r\n0\r\n\r\n"),
        (["3;ext=1\r\nabc\r\n", "0\r\n\r\n"], "3\r\nabc\r\n0\r\n\r\n"),
        (["5\r\nhe", "llo\r\n0\r\n\r\n"], "2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"),
        (["0\r\n\r\n"], "0\r\n\r\n"),
        (["10\r\naaaaaaaaaaaaaaaa\r\n0\r\n\r\n"], "10\r\naaaaaaaaaaaaaaaa\r\n0\r\n\r\n"),
    ])
    func `chunks are written anew`(_ parts: [String], _ expected: String) throws {
        let bench = try LoopBench()
        let forwarded = bench.forward(BenchText.chunked)
        for part in parts { bench.receive(part, for: forwarded.exchange) }
        let text = forwarded.server.end.text()
        #expect(text == expected && bench.due(forwarded.downstream) == nil)
    }

    @Test func `what follows the last chunk is the next request`() throws {
        let bench = try LoopBench()
        let forwarded = bench.forward(BenchText.chunked)
        let used = bench.receive("1\r\na\r\n0\r\n\r\nGET /", for: forwarded.exchange)
        #expect(used == 11)
    }

    @Test func `a part of a chunk's size is kept for later`() throws {
        let bench = try LoopBench()
        let forwarded = bench.forward(BenchText.chunked)
        let used = [bench.receive("1", for: forwarded.exchange), bench.receive("1\r\na", for: forwarded.exchange)]
        #expect(used == [0, 4] && bytesIn(bench, forwarded.exchange) == 1)
    }

    // MARK: Trailers

    @Test func `announced trailers follow the body`() throws {
        let bench = try LoopBench()
        let forwarded = bench.forward(Self.announced)
        bench.receive("1\r\na\r\n0\r\nX-Sum: 1\r\nX-Other: 2\r\nx-sum:  3 \r\n\r\n", for: forwarded.exchange)
        let text = forwarded.server.end.text()
        #expect(text == "1\r\na\r\n0\r\nX-Sum: 1\r\nx-sum: 3\r\n\r\n")
    }

    @Test func `trailers that were not announced are dropped`() throws {
        let bench = try LoopBench()
        let forwarded = bench.forward(BenchText.chunked)
        bench.receive("0\r\nX-Sum: 1\r\n\r\n", for: forwarded.exchange)
        let text = forwarded.server.end.text()
        #expect(text == "0\r\n\r\n")
    }

    // MARK: Limits

    @Test func `a body may have as many bytes as its route allows`() throws {
        let bench = try LoopBench()
        let forwarded = bench.forward(Self.small)
        bench.receive("a\r\n0123456789\r\n0\r\n\r\n", for: forwarded.exchange)
        let text = forwarded.server.end.text()
        #expect(text == "a\r\n0123456789\r\n0\r\n\r\n" && bench.isAlive(forwarded.exchange))
    }

    @Test func `a body with more bytes is rejected`() throws {
        let (text, reasons) = try rejection(Self.small, "a\r\n0123456789\r\n1\r\na\r\n0\r\n\r\n")
        #expect(text == BenchText.problem(413, "Content Too Large", "request_too_large", closes: true))
        #expect(reasons == ["request.body_too_large": 1])
    }

    @Test func `invalid chunks are rejected`() throws {
        let (text, reasons) = try rejection(BenchText.chunked, "x\r\n")
        #expect(text == BenchText.problem(400, "Bad Request", "request_invalid", closes: true))
        #expect(reasons == ["request.bad_chunk": 1])
    }

    @Test func `invalid trailers are rejected`() throws {
        let (text, reasons) = try rejection(BenchText.chunked, "0\r\nX Sum: 1\r\n\r\n")
        #expect(text == BenchText.problem(400, "Bad Request", "request_invalid", closes: true))
        #expect(reasons == ["request.bad_trailer": 1])
    }

    // MARK: Handlers in this process

    @Test func `the body for a handler is held, up to a limit`() throws {
        let bench = try LoopBench()
        let client = bench.openClient()
        let exchange = bench.begin(BenchText.post(LocalLimits.bodyBytes + 5), on: client.downstream)
        bench.run { $0.exchanges[exchange].responder = .local }
        let payload = Payload.bytes(LocalLimits.bodyBytes + 4)
        let used = bench.receive(payload, for: exchange)
        let held = bench.run { $0.exchanges[exchange].heldBody.array }
        #expect(used == payload.count && held == Array(payload[..<LocalLimits.bodyBytes]))
        #expect(bytesIn(bench, exchange) == payload.count)
    }

    @Test func `a body whose request waits for a decision is counted`() throws {
        let bench = try LoopBench()
        let client = bench.openClient()
        let exchange = bench.begin(BenchText.post(5), on: client.downstream)
        bench.run { loop in
            let bytes: [UInt8] = [1, 2]
            unsafe bytes.withUnsafeBufferPointer {
                unsafe loop.exchanges[exchange].forwardPiece($0, &loop.downstreams, &loop.upstreams, &loop.context)
            }
        }
        let isEmpty = bench.run { $0.exchanges[exchange].heldBody.isEmpty }
        #expect(bytesIn(bench, exchange) == 2 && isEmpty)
    }

    @Test func `a body without an endpoint is not forwarded`() throws {
        let bench = try LoopBench()
        let forwarded = bench.forward(BenchText.chunked)
        bench.run { $0.exchanges.dropUpstream(of: forwarded.exchange, &$0.upstreams, &$0.context) }
        let used = bench.receive("1\r\na\r\n0\r\n\r\n", for: forwarded.exchange)
        #expect(used == 11 && bytesIn(bench, forwarded.exchange) == 1 && bench.due(forwarded.downstream) == nil)
    }
}
