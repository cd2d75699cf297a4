import MartletConfig
import MartletCore
import MartletDecisionsTesting
import MartletIO
import MartletResponder
import Testing

@testable import MartletDecisions
@testable import MartletProxy

/// Connections to endpoints: opening, pooling and closing them.
@Suite struct UpstreamConnectionsTests {
    // MARK: Deadlines and turns

    @Test func `a deadline comes due with the tick after it`() throws {
        let bench = try LoopBench()
        let server = bench.openServer()
        bench.run { $0.upstreams.arm(server.upstream, at: LoopBench.start + 100_000_000, &$0.context) }
        #expect(bench.due(server.upstream) == 100)
        #expect(bench.fire(at: 111).isEmpty && bench.fire(at: 112) == ["upstream 0"])
        bench.run { $0.upstreams.arm(server.upstream, at: .max, &$0.context) }
        #expect(bench.due(server.upstream) == nil)
    }

    @Test func `a connection is resumed once in a turn, and its frames are written once`() throws {
        let bench = try LoopBench()
        let (first, second) = (bench.openServer(), bench.openServer())
        bench.run { loop in
            loop.upstreams.markReady(second.upstream, &loop.context)
            loop.upstreams.markReady(second.upstream, &loop.context)
            loop.upstreams.markDirty(first.upstream, &loop.context)
            loop.upstreams.markDirty(first.upstream, &loop.context)
        }
        #expect(bench.ready() == ["upstream 1"] && bench.dirty() == ["upstream 0"])
    }

    // MARK: Connecting

    private func connect(_ bench: LoopBench, _ endpoint: Int32 = 0) -> Result<Handle<UpstreamConnection>, Failure> {
        bench.run {
            $0.upstreams.connect(
                to: EndpointIndex(rawValue: endpoint), .http1, DescriptorCharge(), &$0.context)
        }
    }

    @Test func `a connection that is not established yet is registered`() throws {
        let bench = try LoopBench()
        let upstream = try connect(bench).get()
        let (kind, endpoint, isSecure) = bench.run {
            (
                $0.upstreams[upstream].kind, $0.upstreams[upstream].endpoint,
                $0.upstreams[upstream].transport.isSecure
            )
        }
        #expect(bench.phase(upstream) == .connecting && kind == .http1 && endpoint.rawValue == 0 && !isSecure)
        let tokens = bench.run { loop in
            (0..<loop.context.poller.wait(milliseconds: 0)).map { loop.context.poller.token(at: $0) }
        }
        #expect(tokens == [EventToken(upstream: upstream).raw])
        #expect(bench.idle().isEmpty && bench.active() == 0)
    }

    @Test func `an endpoint without an address is not connected to`() throws {
        let bench = try LoopBench { $0.endpoints = [SampleSettings.unresolved] }
        guard case .failure(let failure) = connect(bench) else {
            Issue.record("it was connected to")
            return
        }
        let count = bench.run { $0.upstreams.all.count }
        #expect(failure.status == 502 && failure.reason == "upstream.name_not_resolved" && count == 0)
        #expect(bench.failures() == 0)
    }

    @Test(arguments: [(false, false, false), (true, false, true), (false, true, true)])
    func `a preamble is a PROXY header or a handshake`(
        _ sendsHeader: Bool, _ isSecure: Bool, _ expected: Bool
    ) throws {
        let bench = try LoopBench { $0.transport.sendsProxyProtocol = sendsHeader }
        let server = bench.openServer()
        let needsPreamble = bench.run { loop in
            loop.upstreams[server.upstream].transport.isSecure = isSecure
            return loop.upstreams.needsPreamble(server.upstream)
        }
        #expect(needsPreamble == expected)
    }

    // MARK: Sending

    @Test func `unsent bytes are those in clear text and those for the socket`() throws {
        let bench = try LoopBench()
        let server = bench.openServer()
        let counts = bench.run { loop in
            let none = loop.upstreams.unsent(server.upstream)
            loop.upstreams[server.upstream].output.append("clear")
            loop.upstreams[server.upstream].transport.output.append("cipher")
            return [none, loop.upstreams.unsent(server.upstream)]
        }
        #expect(counts == [0, 11])
    }

    @Test func `what is ready for the socket is sent`() throws {
        let bench = try LoopBench()
        let server = bench.openServer()
        bench.run { loop in
            loop.upstreams[server.upstream].transport.output.append("text")
            loop.upstreams.flushTransport(server.upstream, &loop.context)
        }
        let text = server.end.text()
        #expect(text == "text" && bench.ready().isEmpty)
    }

    @Test func `a connection that fails is read before it is closed`() throws {
        let bench = try LoopBench()
        let server = bench.openServer()
        server.end.leave()
        bench.run { loop in
            loop.upstreams[server.upstream].transport.output.append("text")
            loop.upstreams.flushTransport(server.upstream, &loop.context)
        }
        let (isReadClosed, unsent) = bench.run {
            ($0.upstreams[server.upstream].transport.isReadClosed, $0.upstreams.unsent(server.upstream))
        }
        #expect(bench.isAlive(server.upstream) && isReadClosed && unsent == 0 && bench.ready() == ["upstream 0"])
    }

    // MARK: The pool

    @Test func `an idle connection waits in the pool`() throws {
        let bench = try LoopBench()
        let server = bench.openServer(connected: false)
        bench.run { $0.upstreams.returnToPool(server.upstream, &$0.context) }
        #expect(bench.idle() == [server.upstream] && bench.phase(server.upstream) == .idle)
        #expect(bench.due(server.upstream) == 60_000)
    }

    /// Why a connection is not kept.
    enum Excess: CaseIterable, Sendable {
        case draining, retired, namesClient

        func apply(_ loop: inout LoopState) {
            switch self {
            case .draining: _ = loop.context.schedule.drain(until: .max - 1)
            case .retired: loop.upstreams.directory.endpoints[0].isRetired = true
            case .namesClient: break
            }
        }
    }

    @Test(arguments: Excess.allCases)
    func `a connection that is of no more use is closed`(_ excess: Excess) throws {
        let bench = try LoopBench { $0.transport.sendsProxyProtocol = excess == .namesClient }
        let server = bench.openServer(connected: false)
        let before = bench.run { loop in
            excess.apply(&loop)
            return loop.upstreams.directory.endpoints[0].idle.count
        }
        bench.run { $0.upstreams.returnToPool(server.upstream, &$0.context) }
        #expect(!bench.isAlive(server.upstream) && server.end.state == .closed && bench.idle().count == before)
    }

    @Test func `every connection that was busy is kept, until it has been idle for long enough`() throws {
        let bench = try LoopBench()
        let servers = (0..<300).map { _ in bench.openServer(connected: false) }
        bench.run { loop in for server in servers { loop.upstreams.returnToPool(server.upstream, &loop.context) } }
        #expect(bench.idle() == servers.map(\.upstream))
        bench.advance(milliseconds: 1000)
        bench.run { loop in
            let last = loop.upstreams.directory.takeIdle(EndpointIndex(rawValue: 0))
            if let last { loop.upstreams.returnToPool(last, &loop.context) }
        }
        #expect(servers.prefix(299).allSatisfy { bench.due($0.upstream) == 60_000 })
        #expect(bench.due(servers[299].upstream) == 61_000)
        bench.run { $0.upstreams.close(servers[1].upstream, &$0.context) }
        #expect(bench.idle().count == 299 && bench.idle().first == servers[0].upstream)
    }

    /// What an idle connection's socket has after a read.
    enum Unsolicited: CaseIterable, Sendable {
        case nothing, bytes, end

        func apply(to end: BenchEnd) {
            switch self {
            case .nothing: break
            case .bytes: end.send("HTTP/1.1 408 Request Timeout\r\n")
            case .end: end.finish()
            }
        }
    }

    @Test(arguments: Unsolicited.allCases)
    func `after a full read, an idle connection must have nothing more`(_ unsolicited: Unsolicited) throws {
        let bench = try LoopBench()
        let server = bench.pool()
        unsolicited.apply(to: server.end)
        bench.run { $0.upstreams.checkIdle(server.upstream, received: ReceiveBuffer.size - 1, &$0.context) }
        let before = bench.isAlive(server.upstream)
        bench.run { $0.upstreams.checkIdle(server.upstream, received: ReceiveBuffer.size, &$0.context) }
        #expect(before && bench.isAlive(server.upstream) == (unsolicited == .nothing))
        #expect(bench.idle().isEmpty == (unsolicited != .nothing))
    }

    // MARK: Closing

    @Test func `closing removes a connection from the pool, once`() throws {
        let bench = try LoopBench()
        let (first, second) = (bench.pool(), bench.pool())
        bench.run { loop in
            if let pipe = loop.pipes.acquire() { loop.upstreams[first.upstream].pipe = pipe }
            loop.upstreams[first.upstream].output.append("left")
            loop.upstreams.close(first.upstream, &loop.context)
            loop.upstreams.close(first.upstream, &loop.context)
        }
        let (inUse, count, unsent) = bench.run {
            ($0.pipes.inUse, $0.upstreams.all.count, $0.upstreams[first.upstream].output.count)
        }
        #expect(bench.idle() == [second.upstream] && inUse == 0 && count == 1 && unsent == 0)
        #expect(first.end.state == .closed && second.end.state == .open)
    }

    @Test func `the connections of a retired endpoint are closed`() throws {
        let bench = try LoopBench { $0.endpoints = [SampleSettings.first, SampleSettings.second] }
        let (first, second, other) = (bench.pool(), bench.pool(), bench.pool(1))
        bench.run { $0.upstreams.closeIdleConnections(of: EndpointIndex(rawValue: 0), &$0.context) }
        #expect(!bench.isAlive(first.upstream) && !bench.isAlive(second.upstream) && bench.isAlive(other.upstream))
        #expect(bench.idle(0).isEmpty && bench.idle(1) == [other.upstream])
    }

    @Test func `a new configuration keeps the connections of its endpoints`() throws {
        let bench = try LoopBench { $0.endpoints = [SampleSettings.first, SampleSettings.second] }
        let (first, second) = (bench.pool(0), bench.pool(1))
        var settings = SampleSettings()
        settings.endpoints = [SampleSettings.second]
        let next = settings.snapshot()
        bench.run { loop in
            loop.upstreams.retire(loop.upstreams.directory.adopt(next, resolved: [], now: loop.now), &loop.context)
        }
        #expect(!bench.isAlive(first.upstream) && bench.isAlive(second.upstream))
        #expect(bench.idle(1) == [second.upstream])
    }
}
