import MartletConfig
import MartletCore
import MartletHTTP
import MartletResponder
import Testing

@testable import MartletDecisions
@testable import MartletProxy

/// How connections of clients end.
@Suite struct DownstreamClosingTests {
    /// Why the client of a connection that ends may still be sending.
    enum Unread: CaseIterable, Sendable {
        case request, event, input, kernel

        func apply(to client: BenchClient, _ loop: inout LoopState) {
            switch self {
            case .request: loop.downstreams[client.downstream].ending.hasUnreadRequest = true
            case .event: loop.downstreams[client.downstream].transport.mayHaveUnread = true
            case .input: loop.downstreams[client.downstream].reader.input.append("GET")
            case .kernel: client.end.send("GET")
            }
        }
    }

    // MARK: Disconnects

    @Test func `a client that leaves frees its exchange on both sides`() throws {
        let bench = try LoopBench()
        let forwarded = bench.forward()
        bench.run { $0.abandon(forwarded.downstream) }
        #expect(!bench.isAlive(forwarded.downstream) && !bench.isAlive(forwarded.exchange))
        #expect(!bench.isAlive(forwarded.upstream) && bench.active() == 0 && bench.idle().isEmpty)
        #expect(forwarded.client.end.state == .closed && forwarded.server.end.state == .closed)
        #expect(bench.requests() == ["api 499 1"] && bench.counted().reasons == ["request.client_left": 1])
        #expect(bench.connections.count == 0)
    }

    @Test func `a client that leaves during its response is logged with the status of that`() throws {
        let bench = try LoopBench()
        let forwarded = bench.forward()
        bench.run { loop in
            loop.exchanges[forwarded.exchange].response.start(status: 206, closes: false)
            loop.abandon(forwarded.downstream)
        }
        #expect(bench.requests() == ["api 206 1"] && bench.counted().reasons == ["request.client_left": 1])
    }

    @Test func `a client that leaves between requests is not logged`() throws {
        let bench = try LoopBench()
        let client = bench.openClient()
        bench.run { $0.abandon(client.downstream) }
        #expect(!bench.isAlive(client.downstream) && bench.log().isEmpty && bench.requests().isEmpty)
    }

    @Test func `a connection ends once`() throws {
        let bench = try LoopBench()
        let (first, second) = (bench.openClient(), bench.openClient())
        let both = bench.connections.count
        bench.run { loop in
            loop.abandon(first.downstream)
            loop.abandon(first.downstream)
            loop.close(downstream: first.downstream)
        }
        #expect(both == 2 && bench.connections.count == 1 && bench.isAlive(second.downstream))
    }

    // MARK: Closing

    @Test func `closing frees the slot, the pipe and the buffers`() throws {
        let bench = try LoopBench()
        let client = bench.openClient()
        bench.run { loop in
            if let pipe = loop.pipes.acquire() { loop.downstreams[client.downstream].pipe = pipe }
            loop.downstreams[client.downstream].reader.input.append("GET")
            loop.downstreams[client.downstream].transport.output.append("left")
            loop.close(downstream: client.downstream)
        }
        let (inUse, count) = bench.run { ($0.pipes.inUse, $0.downstreams.all.count) }
        let isEmpty = bench.run { $0.downstreams[client.downstream].reader.input.isEmpty }
        #expect(inUse == 0 && count == 0 && isEmpty && bench.unsent(client.downstream) == 0)
        #expect(client.end.state == .closed)
    }

    @Test(arguments: [(0, false), (1, true), (2, false)])
    func `connections with a single request are counted for the listeners`(_ requests: Int, _ isActive: Bool) throws {
        let bench = try LoopBench()
        for _ in 0..<DeferAcceptPolicy.threshold {
            let client = bench.openClient()
            bench.run { loop in
                loop.downstreams[client.downstream].reader.requests = requests
                loop.close(downstream: client.downstream)
            }
        }
        let defers = bench.run { loop in
            _ = loop.downstreams.acceptor.deferAccept.evaluate(at: 1)
            return loop.downstreams.acceptor.deferAccept.isActive
        }
        #expect(defers == isActive)
    }

    @Test(arguments: Unread.allCases)
    func `a connection whose client may be sending is closed for writing first`(_ unread: Unread) throws {
        let bench = try LoopBench()
        let client = bench.openClient()
        bench.run { loop in
            unread.apply(to: client, &loop)
            loop.endConnection(client.downstream)
        }
        let isEmpty = bench.run { $0.downstreams[client.downstream].reader.input.isEmpty }
        #expect(bench.isAlive(client.downstream) && bench.phase(client.downstream) == .lingering && isEmpty)
        #expect(bench.due(client.downstream) == 2_000 && bench.ready() == ["downstream 0"])
        #expect(client.end.state == .closed)
    }

    @Test(arguments: Unread.allCases)
    func `a client that has closed its side is not waited for`(_ unread: Unread) throws {
        let bench = try LoopBench()
        let client = bench.openClient()
        bench.run { loop in
            unread.apply(to: client, &loop)
            loop.downstreams[client.downstream].transport.isReadClosed = true
            loop.endConnection(client.downstream)
        }
        #expect(!bench.isAlive(client.downstream))
    }

    @Test func `a connection without unread bytes is closed`() throws {
        let bench = try LoopBench()
        let client = bench.openClient()
        bench.run { $0.endConnection(client.downstream) }
        #expect(!bench.isAlive(client.downstream) && client.end.state == .closed)
    }

    @Test func `no more than a mebibyte is discarded`() throws {
        let bench = try LoopBench()
        let client = bench.openClient()
        bench.run { loop in
            loop.downstreams.startLinger(client.downstream, &loop.context)
            loop.linger(client.downstream, received: ConnectionEnding.lingerBytes - 1)
            loop.linger(client.downstream, received: 1)
        }
        let before = bench.isAlive(client.downstream)
        bench.run { $0.linger(client.downstream, received: 1) }
        #expect(before && !bench.isAlive(client.downstream))
    }

    // MARK: Half-closed connections

    @Test(arguments: [DownstreamPhase.head, .proxyHeader, .handshake, .lingering, .frames])
    func `a client that closes its side ends a connection without a request`(
        _ phase: DownstreamPhase
    ) throws {
        let bench = try LoopBench()
        let client = bench.openClient()
        bench.run { loop in
            loop.downstreams[client.downstream].phase = phase
            loop.downstreamReadClosed(client.downstream)
        }
        #expect(!bench.isAlive(client.downstream) && bench.log().isEmpty)
    }

    @Test func `a client that closes its side gets the rest of its response`() throws {
        let bench = try LoopBench()
        let client = bench.openClient()
        bench.run { loop in
            loop.downstreams[client.downstream].transport.output.append("left")
            loop.downstreamReadClosed(client.downstream)
        }
        let closes = bench.run { $0.downstreams[client.downstream].ending.closesAfterFlush }
        #expect(bench.isAlive(client.downstream) && closes && bench.due(client.downstream) == 30_000)
        bench.run { $0.flush(downstream: client.downstream) }
        let text = client.end.text()
        #expect(text == "left" && !bench.isAlive(client.downstream))
    }

    @Test func `a request that can never be complete is abandoned`() throws {
        let bench = try LoopBench()
        let forwarded = bench.forward(BenchText.post(5))
        bench.run { $0.downstreamReadClosed(forwarded.downstream) }
        #expect(!bench.isAlive(forwarded.downstream) && !bench.isAlive(forwarded.upstream))
        #expect(bench.requests() == ["api 499 1"])
    }

    @Test func `a request whose credential is being verified waits`() throws {
        let bench = try LoopBench()
        let client = bench.openClient()
        let exchange = bench.begin(BenchText.get, on: client.downstream)
        bench.run { loop in
            loop.downstreams[client.downstream].phase = .waiting
            loop.downstreamReadClosed(client.downstream)
        }
        let isPending = bench.run { $0.downstreams[client.downstream].probe.isPending }
        #expect(bench.isAlive(exchange) && !isPending && bench.due(client.downstream) == nil)
    }

    @Test func `a complete request is probed once, in place of its deadline`() throws {
        let bench = try LoopBench()
        let forwarded = bench.forward()
        bench.run { loop in
            loop.downstreams.arm(forwarded.downstream, at: LoopBench.start + 9_000_000_000, &loop.context)
            loop.downstreamReadClosed(forwarded.downstream)
        }
        let isPending = bench.run { $0.downstreams[forwarded.downstream].probe.isPending }
        #expect(bench.isAlive(forwarded.exchange) && isPending && bench.due(forwarded.downstream) == 400)
        bench.advance(milliseconds: 100)
        bench.run { $0.downstreamReadClosed(forwarded.downstream) }
        #expect(bench.due(forwarded.downstream) == 400)
        bench.run { RequestForwarder.exchangeTimedOut(forwarded.exchange, &$0) }
        let text = forwarded.client.end.text()
        let isStillPending = bench.run { $0.downstreams[forwarded.downstream].probe.isPending }
        #expect(text == "HTTP/1.1 100 Continue\r\n\r\n" && !isStillPending)
        #expect(bench.due(forwarded.downstream) == 9_000)
    }

    @Test(
        arguments: [
            (BenchText.get, BodyFraming.none, "HTTP/1.1 100 Continue\r\n\r\n"), (BenchText.get, .chunked, "0"),
            (BenchText.get, .length(9), ""), ("GET /api/x HTTP/1.0\r\nHost: a\r\n\r\n", .none, ""),
            ("GET /api/x HTTP/1.0\r\nHost: a\r\n\r\n", .untilClose, ""),
        ] as [(String, BodyFraming, String)])
    func `a probe has no effect on a client that reads`(
        _ head: String, _ framing: BodyFraming, _ expected: String
    ) throws {
        let bench = try LoopBench()
        let forwarded = bench.forward(head)
        bench.run { loop in
            if !framing.isNone {
                let isHTTP10 = loop.exchanges[forwarded.exchange].request.isHTTP10
                loop.exchanges[forwarded.exchange].response.start(
                    status: 200, framing: framing, isHTTP10: isHTTP10, isStream: false, closes: false)
            }
            loop.context.scratch.pending[.none].append("left from another request")
            loop.probePeer(forwarded.downstream)
        }
        let text = forwarded.client.end.text()
        #expect(text == expected && bench.isAlive(forwarded.exchange))
    }

    @Test(arguments: [false, true])
    func `unsent bytes serve as a probe`(_ isInPipe: Bool) throws {
        let bench = try LoopBench()
        let forwarded = bench.forward()
        bench.run { loop in
            if isInPipe {
                if let pipe = loop.pipes.acquire() { loop.upstreams[forwarded.upstream].pipe = pipe }
            } else {
                loop.downstreams[forwarded.downstream].transport.output.append("left")
            }
            loop.probePeer(forwarded.downstream)
        }
        let text = forwarded.client.end.text()
        #expect(text.isEmpty && bench.due(forwarded.downstream) == 30_000)
    }

    @Test func `a probe finds a client that has left`() throws {
        let bench = try LoopBench()
        let forwarded = bench.forward()
        forwarded.client.end.leave()
        bench.run { $0.probePeer(forwarded.downstream) }
        #expect(!bench.isAlive(forwarded.downstream) && !bench.isAlive(forwarded.upstream))
        #expect(bench.requests() == ["api 499 1"])
    }
}
