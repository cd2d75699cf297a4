import MartletCore
import MartletHTTP
import MartletResponder
import MartletTesting
import Testing

@testable import MartletDecisions
@testable import MartletProxy

/// Writing to clients, and back-pressure.
@Suite struct DownstreamWritingTests {
    /// More than the kernel accepts at a time, and than may be buffered.
    private static let payload = Payload.bytes(600_000)

    /// Flushes until the client has everything.
    private func drain(_ bench: LoopBench, _ client: BenchClient) -> [UInt8] {
        var received = client.end.bytes()
        for _ in 0..<1000 where bench.unsent(client.downstream) > 0 {
            bench.run { $0.flush(downstream: client.downstream) }
            received += client.end.bytes()
        }
        return received
    }

    private func applyBackPressure(_ bench: LoopBench, to downstream: Handle<DownstreamConnection>) {
        bench.run { $0.downstreams.applyBackPressure(downstream, &$0.exchanges, &$0.upstreams, &$0.context) }
    }

    // MARK: Sending

    @Test func `pending bytes are sent once`() throws {
        let bench = try LoopBench()
        let client = bench.openClient()
        let exchange = bench.begin(BenchText.get, on: client.downstream)
        bench.run { loop in
            loop.sendPending(exchange)
            loop.context.scratch.pending[exchange].append("text")
            loop.sendPending(exchange)
            loop.sendPending(exchange)
        }
        let text = client.end.text()
        #expect(text == "text" && bench.pending(exchange).isEmpty)
    }

    @Test func `what the kernel does not accept is buffered, and sent in order`() throws {
        let bench = try LoopBench()
        let client = bench.openClient()
        _ = bench.begin(BenchText.get, on: client.downstream)
        bench.write(Self.payload, to: client.downstream)
        let unsent = bench.unsent(client.downstream)
        #expect(unsent > Watermark.high && bench.due(client.downstream) == 30_000)
        bench.write([1, 2, 3], to: client.downstream)
        #expect(bench.unsent(client.downstream) == unsent + 3)
        let received = drain(bench, client)
        #expect(received == Self.payload + [1, 2, 3] && bench.unsent(client.downstream) == 0)
    }

    @Test func `a write to a client that left abandons its request`() throws {
        let bench = try LoopBench()
        let forwarded = bench.forward()
        forwarded.client.end.leave()
        bench.write([1], to: forwarded.downstream)
        #expect(!bench.isAlive(forwarded.downstream) && !bench.isAlive(forwarded.upstream))
        #expect(bench.requests() == ["api 499 1"])
    }

    // MARK: Back-pressure

    @Test(arguments: [(Watermark.high, false), (Watermark.high + 1, true)])
    func `an endpoint is paused when too much of its response is unsent`(_ unsent: Int, _ isPaused: Bool) throws {
        let bench = try LoopBench()
        let forwarded = bench.forward()
        bench.run {
            $0.downstreams[forwarded.downstream].transport.output.append([UInt8](repeating: 7, count: unsent))
        }
        applyBackPressure(bench, to: forwarded.downstream)
        let paused = bench.run { $0.upstreams[forwarded.upstream].isPaused }
        #expect(paused == isPaused && bench.due(forwarded.downstream) == 30_000)
    }

    @Test func `a client that is still sending keeps the deadline of its body`() throws {
        let bench = try LoopBench()
        let forwarded = bench.forward(BenchText.post(5))
        bench.advance(milliseconds: 1_000)
        applyBackPressure(bench, to: forwarded.downstream)
        #expect(bench.due(forwarded.downstream) == 30_000)
    }

    @Test func `an endpoint is resumed when little is unsent`() throws {
        let bench = try LoopBench()
        let forwarded = bench.forward()
        bench.write(Self.payload, to: forwarded.downstream)
        bench.run { loop in
            loop.upstreams.arm(forwarded.upstream, at: .max, &loop.context)
        }
        _ = bench.ready()
        bench.advance(milliseconds: 500)
        var states: [Bool] = []
        for _ in 0..<1000 where bench.unsent(forwarded.downstream) > 0 {
            let isPaused = bench.run { $0.upstreams[forwarded.upstream].isPaused }
            let hasLittle = bench.unsent(forwarded.downstream) < Watermark.low
            #expect(isPaused == !hasLittle)
            states.append(isPaused)
            _ = forwarded.client.end.bytes()
            bench.run { $0.flush(downstream: forwarded.downstream) }
        }
        #expect(states.first == true)
        #expect(bench.ready() == ["upstream 0"] && bench.due(forwarded.upstream) == 60_500)
    }

    // MARK: Flushing

    @Test func `a flush that sends nothing changes no deadline`() throws {
        let bench = try LoopBench()
        let client = bench.openClient()
        bench.run { $0.flush(downstream: client.downstream) }
        let empty = bench.due(client.downstream)
        bench.write(Self.payload, to: client.downstream)
        bench.advance(milliseconds: 1_000)
        bench.run { $0.flush(downstream: client.downstream) }
        #expect(empty == 10_000 && bench.due(client.downstream) == 30_000)
    }

    @Test func `a flush that sends some extends the deadline`() throws {
        let bench = try LoopBench()
        let client = bench.openClient()
        bench.write(Self.payload, to: client.downstream)
        _ = client.end.bytes()
        bench.advance(milliseconds: 1_000)
        bench.run { $0.flush(downstream: client.downstream) }
        #expect(bench.unsent(client.downstream) > 0 && bench.due(client.downstream) == 31_000)
    }

    @Test func `a flush to a client that left abandons its request`() throws {
        let bench = try LoopBench()
        let forwarded = bench.forward()
        bench.run { $0.downstreams[forwarded.downstream].transport.output.append("left") }
        forwarded.client.end.leave()
        bench.run { $0.flush(downstream: forwarded.downstream) }
        #expect(!bench.isAlive(forwarded.downstream) && bench.requests() == ["api 499 1"])
    }

    @Test(arguments: [(false, 75_000), (true, 10_000)] as [(Bool, Int64)])
    func `an idle connection waits for a request after its output, unless that has begun`(
        _ isReceivingHead: Bool, _ due: Int64
    ) throws {
        let bench = try LoopBench()
        let client = bench.openClient()
        bench.run { loop in
            loop.downstreams[client.downstream].reader.isReceivingHead = isReceivingHead
            loop.downstreams[client.downstream].transport.output.append("left")
            loop.flush(downstream: client.downstream)
        }
        let text = client.end.text()
        #expect(text == "left" && bench.due(client.downstream) == due && bench.ready().isEmpty)
    }

    @Test(arguments: [false, true])
    func `input that waited for the output is resumed`(_ isBuffered: Bool) throws {
        let bench = try LoopBench()
        let client = bench.openClient()
        bench.run { loop in
            if isBuffered {
                loop.downstreams[client.downstream].reader.input.append("GET /")
            } else {
                loop.downstreams[client.downstream].transport.mayHaveUnread = true
            }
            loop.downstreams[client.downstream].transport.output.append("left")
            loop.flush(downstream: client.downstream)
        }
        #expect(bench.ready() == ["downstream 0"])
    }

    @Test func `input waits while much is unsent`() throws {
        let bench = try LoopBench()
        let client = bench.openClient()
        bench.write(Self.payload, to: client.downstream)
        _ = client.end.bytes()
        bench.run { loop in
            loop.downstreams[client.downstream].reader.input.append("GET /")
            loop.flush(downstream: client.downstream)
        }
        #expect(bench.unsent(client.downstream) >= Watermark.low && bench.ready().isEmpty)
    }

    @Test func `the output of a handshake does not extend its deadline`() throws {
        let bench = try LoopBench()
        let client = bench.openClient()
        bench.run { loop in
            loop.downstreams[client.downstream].phase = .handshake
            loop.downstreams[client.downstream].transport.output.append("left")
        }
        bench.advance(milliseconds: 1_000)
        bench.run { $0.flush(downstream: client.downstream) }
        let text = client.end.text()
        #expect(text == "left" && bench.due(client.downstream) == 10_000)
    }

    @Test(arguments: [(false, nil), (true, 30_000)] as [(Bool, Int64?)])
    func `after the output only the endpoint has a deadline, unless the client is probed`(
        _ isProbePending: Bool, _ due: Int64?
    ) throws {
        let bench = try LoopBench()
        let forwarded = bench.forward()
        bench.run { loop in
            loop.downstreams[forwarded.downstream].transport.output.append("left")
            loop.downstreams.armWrite(forwarded.downstream, &loop.context)
            loop.downstreams[forwarded.downstream].probe.isPending = isProbePending
            loop.flush(downstream: forwarded.downstream)
        }
        #expect(bench.due(forwarded.downstream) == due && bench.unsent(forwarded.downstream) == 0)
    }

    @Test func `a client that reads nothing of its response is abandoned`() throws {
        let bench = try LoopBench()
        let forwarded = bench.forward()
        bench.run { $0.writeTimedOut(forwarded.downstream) }
        #expect(!bench.isAlive(forwarded.downstream) && bench.requests() == ["api 499 1"])
    }

    // MARK: Bodies

    @Test(arguments: [(0, 0), (ResponseState.copySize, ResponseState.copySize), (ResponseState.copySize + 1, 0)])
    func `a short piece is sent with what follows, a long one is not copied`(_ count: Int, _ staged: Int) throws {
        let bench = try LoopBench()
        let client = bench.openClient()
        let exchange = bench.begin(BenchText.get, on: client.downstream)
        let piece = Payload.bytes(count)
        bench.forwardBody(piece, of: exchange)
        let sent = client.end.bytes()
        let (left, bytesOut) = bench.run {
            ($0.context.scratch.pending[exchange].count, $0.exchanges[exchange].record.bytesOut)
        }
        #expect(left == staged && bytesOut == count)
        #expect(sent == (staged > 0 ? [] : piece))
    }

    @Test func `a long piece follows pending bytes`() throws {
        let bench = try LoopBench()
        let client = bench.openClient()
        let exchange = bench.begin(BenchText.get, on: client.downstream)
        let piece = Payload.bytes(ResponseState.copySize + 1)
        bench.run { $0.context.scratch.pending[exchange].append("head") }
        bench.forwardBody(piece, of: exchange)
        let before = client.end.bytes()
        bench.run { $0.sendPending(exchange) }
        let sent = client.end.bytes()
        #expect(before.isEmpty && sent == Array("head".utf8) + piece)
    }

    @Test func `the pieces of a chunked response are chunks`() throws {
        let bench = try LoopBench()
        let client = bench.openClient()
        let exchange = bench.begin(BenchText.get, on: client.downstream)
        bench.run {
            $0.exchanges[exchange].response.start(
                status: 200, framing: .chunked, isHTTP10: false, isStream: false, closes: false)
        }
        bench.forwardBody(Array("hello".utf8), of: exchange)
        bench.forwardBody([], of: exchange)
        bench.forwardBody([UInt8](repeating: 0x61, count: 16), of: exchange)
        let bytesOut = bench.run { $0.exchanges[exchange].record.bytesOut }
        let chunks = "5\r\nhello\r\n10\r\n\(String(repeating: "a", count: 16))\r\n"
        #expect(bench.pending(exchange) == chunks && bytesOut == 21)
    }
}
