import Glibc
import MartletCore
import MartletHTTP
import MartletIO
import MartletResponder
import MartletTesting
import Testing

@testable import MartletDecisions
@testable import MartletProxy

/// Long bodies that the kernel moves from socket to socket.
@Suite struct BodySplicingTests {
    private func splice(_ bench: LoopBench, _ forwarded: BenchExchange) -> Bool {
        bench.run { RequestForwarder.spliceBody(forwarded.downstream, &$0) }
    }

    private func hasPipe(_ bench: LoopBench, _ forwarded: BenchExchange) -> Bool {
        bench.run {
            !$0.downstreams[forwarded.downstream].pipe.isNone || !$0.upstreams[forwarded.upstream].pipe.isNone
        }
    }

    /// What the endpoint gets of a body, until that is so much.
    private func moved(_ bench: LoopBench, _ forwarded: BenchExchange, _ count: Int) -> [UInt8] {
        var bytes = forwarded.server.end.bytes()
        for _ in 0..<1000 where bytes.count < count {
            if hasPipe(bench, forwarded) {
                bench.run { RequestForwarder.resumeSplice(toUpstream: forwarded.upstream, &$0) }
            } else {
                _ = splice(bench, forwarded)
            }
            bytes += forwarded.server.end.bytes()
        }
        return bytes
    }

    // MARK: Requests

    @Test func `a long body is moved in order, and counted`() throws {
        let bench = try LoopBench()
        let payload = Payload.bytes(100_000)
        let forwarded = bench.forward(BenchText.post(200_000))
        var got: [UInt8] = []
        for part in [payload[..<40_000], payload[40_000...]] {
            forwarded.client.end.send(Array(part))
            got += moved(bench, forwarded, part.count)
        }
        let (bytesIn, remaining) = bench.run {
            ($0.exchanges[forwarded.exchange].record.bytesIn, $0.exchanges[forwarded.exchange].body.remaining)
        }
        #expect(got == payload && bytesIn == 100_000 && remaining == 100_000)
        let (inUse, isPaused) = bench.run { ($0.pipes.inUse, $0.downstreams[forwarded.downstream].isPaused) }
        #expect(inUse == 0 && !isPaused && bench.due(forwarded.upstream) == 60_000)
    }

    @Test(arguments: [(SpliceRules.minimumRemainder, true), (SpliceRules.minimumRemainder - 1, false)])
    func `a short rest of a body is copied`(_ length: Int, _ isSpliced: Bool) throws {
        let bench = try LoopBench()
        let forwarded = bench.forward(BenchText.post(length))
        // There is nothing to move yet.
        #expect(splice(bench, forwarded) == isSpliced)
    }

    /// The last bytes of a body are in a pipe.
    private func last(_ bench: LoopBench, _ forwarded: BenchExchange, _ bytes: [UInt8]) {
        forwarded.client.end.send(bytes)
        bench.run { loop in
            guard let pipe = loop.pipes.acquire() else { return }
            _ = loop.pipes.fill(pipe, from: loop.downstreams[forwarded.downstream].transport.fd, atMost: bytes.count)
            loop.downstreams[forwarded.downstream].pipe = pipe
            loop.downstreams[forwarded.downstream].isPaused = true
        }
    }

    @Test func `a body is complete when its endpoint has accepted it`() throws {
        let bench = try LoopBench()
        let payload = Payload.bytes(1_000)
        let forwarded = bench.forward(BenchText.post(payload.count))
        bench.advance(milliseconds: 1_000)
        last(bench, forwarded, payload)
        let before = bench.run { $0.exchanges[forwarded.exchange].body.isComplete }
        bench.run { RequestForwarder.resumeSplice(toUpstream: forwarded.upstream, &$0) }
        let got = forwarded.server.end.bytes()
        let (after, isPaused) = bench.run {
            ($0.exchanges[forwarded.exchange].body.isComplete, $0.downstreams[forwarded.downstream].isPaused)
        }
        #expect(!before && after && got == payload && !isPaused && !hasPipe(bench, forwarded))
        #expect(bench.due(forwarded.downstream) == nil && bench.due(forwarded.upstream) == 21_000)
        #expect(bench.ready() == ["downstream 0"])
    }

    @Test func `a client waits for a slow endpoint`() throws {
        let bench = try LoopBench()
        let forwarded = bench.forward(BenchText.post(10_000_000))
        for _ in 0..<1000 where !hasPipe(bench, forwarded) {
            forwarded.client.end.send([UInt8](repeating: 7, count: 4_096))
            _ = splice(bench, forwarded)
        }
        let isPaused = bench.run { $0.downstreams[forwarded.downstream].isPaused }
        let isWanted = bench.run { $0.downstreams.wantsInput(forwarded.downstream, &$0.exchanges) }
        #expect(hasPipe(bench, forwarded) && isPaused && !isWanted)
        _ = bench.ready()
        bench.run { RequestForwarder.resumeSplice(toUpstream: forwarded.upstream, &$0) }
        #expect(hasPipe(bench, forwarded) && bench.ready().isEmpty)
        _ = forwarded.server.end.bytes()
        bench.run { RequestForwarder.resumeSplice(toUpstream: forwarded.upstream, &$0) }
        let isStillPaused = bench.run { $0.downstreams[forwarded.downstream].isPaused }
        #expect(!hasPipe(bench, forwarded) && !isStillPaused && bench.ready() == ["downstream 0"])
    }

    @Test func `without a pipe there is nothing to resume`() throws {
        let bench = try LoopBench()
        let forwarded = bench.forward(BenchText.post(100_000))
        let idle = bench.pool()
        bench.run { loop in
            RequestForwarder.resumeSplice(toUpstream: forwarded.upstream, &loop)
            RequestForwarder.resumeSplice(toUpstream: idle.upstream, &loop)
            RequestForwarder.resumeSplice(toDownstream: forwarded.downstream, &loop)
        }
        #expect(bench.ready().isEmpty && forwarded.server.end.state == .open)
    }

    @Test func `a socket without bytes is not read as well`() throws {
        let bench = try LoopBench()
        let forwarded = bench.forward(BenchText.post(100_000))
        bench.run { $0.downstreams[forwarded.downstream].transport.mayHaveUnread = true }
        let isDone = splice(bench, forwarded)
        let (inUse, mayHaveUnread) = bench.run {
            ($0.pipes.inUse, $0.downstreams[forwarded.downstream].transport.mayHaveUnread)
        }
        #expect(isDone && inUse == 0 && !mayHaveUnread)
    }

    @Test func `the end of a socket is left to the next read`() throws {
        let bench = try LoopBench()
        let forwarded = bench.forward(BenchText.post(100_000))
        forwarded.client.end.finish()
        let isDone = splice(bench, forwarded)
        let inUse = bench.run { $0.pipes.inUse }
        #expect(!isDone && inUse == 0 && bench.isAlive(forwarded.exchange))
    }

    /// What a body cannot be moved past.
    enum Obstacle: CaseIterable, Sendable {
        case head, input, output, pipe, secure, closed, chunked

        var head: String { self == .chunked ? BenchText.chunked : BenchText.post(100_000) }

        func apply(to forwarded: BenchExchange, _ loop: inout LoopState) {
            switch self {
            case .head: loop.exchanges[forwarded.exchange].forwarding.head.sent = 0
            case .input: loop.downstreams[forwarded.downstream].reader.input.append("left")
            case .output: loop.upstreams[forwarded.upstream].output.append("left")
            case .pipe: loop.downstreams[forwarded.downstream].pipe = PipeHandle(index: 0)
            case .secure: loop.downstreams[forwarded.downstream].origin.rules.isSecure = true
            case .closed: loop.upstreams[forwarded.upstream].transport.isReadClosed = true
            case .chunked: break
            }
        }
    }

    @Test(arguments: Obstacle.allCases)
    func `a body is not moved past buffered bytes, TLS or chunks`(_ obstacle: Obstacle) throws {
        let bench = try LoopBench()
        let forwarded = bench.forward(obstacle.head)
        forwarded.client.end.send([UInt8](repeating: 7, count: 1_000))
        let (isMoved, isUnread) = bench.run { loop in
            obstacle.apply(to: forwarded, &loop)
            let isMoved = RequestForwarder.spliceBody(forwarded.downstream, &loop)
            loop.downstreams[forwarded.downstream].pipe = .none
            return (isMoved, Socket.hasUnread(loop.downstreams[forwarded.downstream].transport.fd))
        }
        #expect(!isMoved && isUnread)
    }

    @Test func `a body whose endpoint has closed is discarded, and the response is read`() throws {
        signal(SIGPIPE, SIG_IGN)
        let bench = try LoopBench()
        let forwarded = bench.forward(BenchText.post(100_000))
        forwarded.server.end.leave()
        forwarded.client.end.send([UInt8](repeating: 7, count: 1_000))
        let isMoved = splice(bench, forwarded)
        let (inUse, isReadClosed, count) = bench.run {
            (
                $0.pipes.inUse, $0.upstreams[forwarded.upstream].transport.isReadClosed,
                $0.exchanges[forwarded.exchange].body.count
            )
        }
        #expect(isMoved && inUse == 0 && isReadClosed && count == 1_000)
        #expect(bench.ready() == ["upstream 0", "downstream 0"])
    }

    // MARK: Responses

    private func spliceResponse(_ bench: LoopBench, _ forwarded: BenchExchange) -> Bool {
        bench.withResponses { $0.spliceResponse(forwarded.upstream, &$1) }
    }

    /// The head of a response with a long body was forwarded.
    private func started(_ bench: LoopBench, _ length: Int, _ request: String = BenchText.get) -> BenchExchange {
        let forwarded = bench.forward(request)
        forwarded.server.end.send("HTTP/1.1 200 OK\r\nContent-Length: \(length)\r\n\r\n")
        bench.event(forwarded.upstream)
        _ = forwarded.client.end.bytes()
        return forwarded
    }

    @Test func `a long response is moved in order while its client reads`() throws {
        let bench = try LoopBench()
        let payload = Payload.bytes(80_000)
        let forwarded = started(bench, payload.count)
        forwarded.server.end.send(payload)
        let isMoved = spliceResponse(bench, forwarded)
        var got = forwarded.client.end.bytes()
        for _ in 0..<1000 where bench.isAlive(forwarded.exchange) {
            if hasPipe(bench, forwarded) {
                bench.run { RequestForwarder.resumeSplice(toDownstream: forwarded.downstream, &$0) }
            } else {
                bench.event(forwarded.upstream)
                bench.run { $0.flush(downstream: forwarded.downstream) }
            }
            got += forwarded.client.end.bytes()
        }
        #expect(isMoved && got == payload && bench.idle() == [forwarded.upstream])
        let endpoint = "upstream=unix:/nonexistent/martlet-1"
        #expect(bench.log() == ["192.0.2.1 GET a/api/x 200 ok route=api \(endpoint) in=0 out=80000 us=0"])
    }

    @Test func `a client that does not read has a deadline, and its endpoint waits`() throws {
        let bench = try LoopBench()
        let forwarded = started(bench, 1_000_000)
        bench.advance(milliseconds: 1_000)
        for _ in 0..<100 where !hasPipe(bench, forwarded) {
            forwarded.server.end.send(Payload.bytes(20_000))
            _ = spliceResponse(bench, forwarded)
        }
        let isPaused = bench.run { $0.upstreams[forwarded.upstream].isPaused }
        #expect(hasPipe(bench, forwarded) && isPaused && bench.due(forwarded.downstream) == 31_000)
        bench.advance(milliseconds: 1_000)
        bench.run { RequestForwarder.resumeSplice(toDownstream: forwarded.downstream, &$0) }
        #expect(bench.due(forwarded.downstream) == 31_000)
        for _ in 0..<100 where hasPipe(bench, forwarded) {
            _ = forwarded.client.end.bytes()
            bench.run { RequestForwarder.resumeSplice(toDownstream: forwarded.downstream, &$0) }
        }
        let isResumed = bench.run { !$0.upstreams[forwarded.upstream].isPaused }
        #expect(isResumed && bench.due(forwarded.downstream) == nil && bench.due(forwarded.upstream) == 62_000)
        #expect(bench.ready().contains("upstream 0"))
    }

    @Test func `a response is not moved past unsent bytes`() throws {
        let bench = try LoopBench()
        let forwarded = started(bench, 100_000)
        forwarded.server.end.send([UInt8](repeating: 7, count: 1_000))
        bench.run { $0.downstreams[forwarded.downstream].transport.output.append("left") }
        let isMoved = spliceResponse(bench, forwarded)
        let isUnread = Socket.hasUnread(bench.run { $0.upstreams[forwarded.upstream].transport.fd })
        #expect(!isMoved && isUnread)
    }

    @Test func `a response to a client that left is abandoned`() throws {
        signal(SIGPIPE, SIG_IGN)
        let bench = try LoopBench()
        let forwarded = started(bench, 100_000)
        forwarded.client.end.leave()
        forwarded.server.end.send([UInt8](repeating: 7, count: 1_000))
        let isMoved = spliceResponse(bench, forwarded)
        let inUse = bench.run { $0.pipes.inUse }
        #expect(isMoved && inUse == 0 && !bench.isAlive(forwarded.downstream) && !bench.isAlive(forwarded.upstream))
    }
}
