import MartletCore
import MartletHTTP
import Testing

@testable import MartletDecisions
@testable import MartletProxy

/// Deadlines, trailers and back-pressure of responses.
@Suite struct ExchangeResponseTests {
    // MARK: Deadlines

    @Test(arguments: [(true, 21_000), (false, 61_000)] as [(Bool, Int64)])
    func `the response timeout counts once the request is complete`(_ isComplete: Bool, _ due: Int64) throws {
        let bench = try LoopBench()
        let forwarded = bench.forward()
        bench.advance(milliseconds: 1_000)
        bench.run { loop in
            loop.exchanges[forwarded.exchange].body.isComplete = isComplete
            loop.exchanges[forwarded.exchange].armResponseTimeout(
                forwarded.upstream, &loop.upstreams, &loop.context)
        }
        #expect(bench.due(forwarded.upstream) == due)
    }

    @Test func `silence in a response has a timeout of its own`() throws {
        let bench = try LoopBench()
        let forwarded = bench.forward()
        bench.advance(milliseconds: 1_000)
        bench.run { loop in
            loop.exchanges[forwarded.exchange].armResponseIdle(forwarded.upstream, &loop.upstreams, &loop.context)
        }
        #expect(bench.due(forwarded.upstream) == 61_000)
    }

    /// What an endpoint may wait for.
    enum Request: CaseIterable, Sendable {
        case complete, arriving, unsent, inPipe

        var isResponseDue: Bool { self != .arriving }

        func apply(to forwarded: BenchExchange, _ loop: inout LoopState) {
            loop.exchanges[forwarded.exchange].body.isComplete = self == .complete
            if self == .unsent { loop.upstreams[forwarded.upstream].output.append("left") }
            if self == .inPipe, let pipe = loop.pipes.acquire() { loop.downstreams[forwarded.downstream].pipe = pipe }
        }
    }

    @Test(arguments: Request.allCases)
    func `a response is due unless the endpoint waits for the client`(_ request: Request) throws {
        let bench = try LoopBench()
        let forwarded = bench.forward()
        let isDue = bench.run { loop in
            request.apply(to: forwarded, &loop)
            return loop.upstreams.isResponseDue(forwarded.upstream, &loop.downstreams, &loop.exchanges)
        }
        #expect(isDue == request.isResponseDue)
    }

    // MARK: Trailers

    /// The trailers that are stored of lines, for a client that gets chunks or frames.
    private func collected(_ lines: String, isChunked: Bool, isStream: Bool) throws -> String {
        let bench = try LoopBench()
        let forwarded = bench.forward()
        let stored = bench.run { loop in
            loop.exchanges[forwarded.exchange].response.isChunked = isChunked
            loop.exchanges[forwarded.exchange].isStream = isStream
            var lines = lines
            lines.withUTF8 { bytes in
                unsafe loop.exchanges.collectResponseTrailers(bytes, forwarded.exchange, &loop.context)
            }
            loop.exchanges[forwarded.exchange].isStream = false
            return loop.exchanges[forwarded.exchange].response.trailers.array
        }
        return String(decoding: stored, as: UTF8.self)
    }

    @Test(arguments: [
        ("X-Sum: 1\r\n", "X-Sum: 1\r\n"), ("X-Sum:  1 \r\nY: 2\r\n", "X-Sum: 1\r\nY: 2\r\n"),
        ("Content-Length: 5\r\nX-Sum: 1\r\n", "X-Sum: 1\r\n"), ("Con-tent_Length: 5\r\n", ""),
        ("X-Auth-Subject: eve\r\n", ""), ("x_auth_subject: eve\r\n", ""), ("Set-Cookie: a=b\r\n", ""), ("", ""),
    ])
    func `trailers of a response are forwarded unless the gateway gives them a meaning`(
        _ lines: String, _ expected: String
    ) throws {
        let chunks = try collected(lines, isChunked: true, isStream: false)
        let frames = try collected(lines, isChunked: false, isStream: true)
        #expect(chunks == expected && frames == expected)
    }

    @Test func `a client without chunks or frames gets no trailers`() throws {
        let trailers = try collected("X-Sum: 1\r\n", isChunked: false, isStream: false)
        #expect(trailers.isEmpty)
    }

    @Test func `trailers that come after the request has ended are ignored`() throws {
        let bench = try LoopBench()
        let forwarded = bench.forward()
        let stored = bench.run { loop in
            loop.exchanges[forwarded.exchange].isStream = true
            var lines = "X-Sum: 1\r\n"
            lines.withUTF8 { unsafe loop.exchanges.collectResponseTrailers($0, .none, &loop.context) }
            loop.exchanges[forwarded.exchange].isStream = false
            return loop.exchanges[forwarded.exchange].response.trailers.count
        }
        #expect(stored == 0)
    }

    // MARK: Output

    @Test(arguments: [(false, false, true), (true, false, false), (false, true, false)])
    func `a client has everything when neither the buffer nor a pipe has more`(
        _ isBuffered: Bool, _ isInPipe: Bool, _ expected: Bool
    ) throws {
        let bench = try LoopBench()
        let forwarded = bench.forward()
        let (hasDrained, hasPipe) = bench.run { loop in
            if isBuffered { loop.downstreams[forwarded.downstream].transport.output.append("left") }
            if isInPipe, let pipe = loop.pipes.acquire() { loop.upstreams[forwarded.upstream].pipe = pipe }
            return (
                loop.downstreams.hasDrainedOutput(forwarded.downstream, &loop.exchanges, &loop.upstreams),
                loop.downstreams.hasResponseInPipe(forwarded.downstream, &loop.exchanges, &loop.upstreams)
            )
        }
        #expect(hasDrained == expected && hasPipe == isInPipe)
    }

    @Test func `a connection without an endpoint has no pipe`() throws {
        let bench = try LoopBench()
        let client = bench.openClient()
        let idle = bench.run { $0.downstreams.hasResponseInPipe(client.downstream, &$0.exchanges, &$0.upstreams) }
        _ = bench.begin(BenchText.get, on: client.downstream)
        let busy = bench.run { $0.downstreams.hasResponseInPipe(client.downstream, &$0.exchanges, &$0.upstreams) }
        #expect(!idle && !busy)
    }

    @Test func `back-pressure without an endpoint only sets a deadline`() throws {
        let bench = try LoopBench()
        let client = bench.openClient()
        bench.run { $0.downstreams.applyBackPressure(client.downstream, &$0.exchanges, &$0.upstreams, &$0.context) }
        #expect(bench.due(client.downstream) == 30_000)
    }

    // MARK: The request's side

    @Test(arguments: [(Watermark.low - 1, true), (Watermark.low, false)])
    func `a client is resumed when little of its request is unsent`(_ unsent: Int, _ isResumed: Bool) throws {
        let bench = try LoopBench()
        let forwarded = bench.forward(BenchText.post(5))
        let isPaused = bench.run { loop in
            loop.downstreams[forwarded.downstream].isPaused = true
            loop.downstreams.arm(forwarded.downstream, at: .max, &loop.context)
            loop.upstreams[forwarded.upstream].output.append([UInt8](repeating: 7, count: unsent))
            loop.exchanges[forwarded.exchange].resumeDownstream(&loop.downstreams, &loop.upstreams, &loop.context)
            return loop.downstreams[forwarded.downstream].isPaused
        }
        #expect(isPaused == !isResumed)
        #expect(bench.ready() == (isResumed ? ["downstream 0"] : []))
        #expect(bench.due(forwarded.downstream) == (isResumed ? 30_000 : nil))
    }

    @Test func `a client whose request is complete has no deadline for it`() throws {
        let bench = try LoopBench()
        let forwarded = bench.forward()
        bench.run { loop in
            loop.downstreams[forwarded.downstream].isPaused = true
            loop.exchanges[forwarded.exchange].resumeDownstream(&loop.downstreams, &loop.upstreams, &loop.context)
        }
        #expect(bench.due(forwarded.downstream) == nil && bench.ready() == ["downstream 0"])
    }

    @Test func `a client that is not paused is not resumed`() throws {
        let bench = try LoopBench()
        let forwarded = bench.forward(BenchText.post(5))
        bench.run { loop in
            loop.exchanges[forwarded.exchange].resumeDownstream(&loop.downstreams, &loop.upstreams, &loop.context)
        }
        #expect(bench.ready().isEmpty)
    }

    // MARK: Half-closed clients

    @Test func `an incomplete request is not probed`() throws {
        let bench = try LoopBench()
        let client = bench.openClient()
        _ = bench.begin(BenchText.post(5), on: client.downstream)
        let isPending = bench.run { loop in
            loop.downstreams.handleHalfClose(client.downstream, &loop.exchanges, &loop.context)
            return loop.downstreams[client.downstream].probe.isPending
        }
        #expect(!isPending && bench.due(client.downstream) == 30_000)
    }

    @Test func `a connection without a request is not probed`() throws {
        let bench = try LoopBench()
        let client = bench.openClient()
        let isPending = bench.run { loop in
            loop.downstreams.handleHalfClose(client.downstream, &loop.exchanges, &loop.context)
            return loop.downstreams[client.downstream].probe.isPending
        }
        #expect(!isPending && bench.due(client.downstream) == 10_000)
    }
}
