import Glibc
import MartletAuthenticator
import MartletConfig
import MartletCore
import MartletDecisionsTesting
import MartletHTTP
import MartletIO
import MartletResponder
import MartletTesting
import Testing

@testable import MartletDecisions
@testable import MartletProxy

/// Deadlines as an event loop handles them.
@Suite struct LoopDeadlineTests {
    /// An event loop that does not run, on a clock that is set by hand.
    private final class Fixture {
        private var events: EventLoop
        private let time: Box<Int64>
        private var ends: [BenchEnd] = []

        init() throws {
            let time = Box(LoopBench.start)
            let clock = LoopBench.clock(time)
            let mailbox = try Mailbox()
            let setup = EventLoop.Setup(
                id: 0, snapshot: SampleSettings().snapshot(), listeners: [], resolved: [], mailbox: mailbox,
                verifier: Verifier(threads: 1, clock: clock),
                handshakes: ThreadPool(.undivided, name: "bench", threads: 1, queue: 1, niceness: 0, clock: clock),
                connections: ConnectionLimit(), log: RecordedAccess(),
                debug: DebugLog(.silent), clock: clock)
            self.time = time
            events = try EventLoop(setup)
        }

        deinit {
            run { loop in
                for index in 0..<loop.downstreams.all.end {
                    guard let downstream = loop.downstreams.all.handle(at: index) else { continue }
                    Glibc.close(loop.downstreams[downstream].transport.fd)
                }
            }
        }

        @discardableResult
        func run<Value>(_ body: (inout LoopState) -> Value) -> Value { body(&events.loop) }

        /// Opens a connection of a client.
        func open() -> BenchClient {
            let (near, far) = BenchEnd.pair()
            ends.append(far)
            let downstream = run { loop in
                let downstream = loop.downstreams.all.allocate()
                loop.downstreams[downstream].open(
                    fd: near, kind: .http1, rules: ListenerRules(), address: DownstreamAddress(),
                    maximumHeadBytes: 16_384)
                loop.startConnection(downstream)
                return downstream
            }
            return BenchClient(downstream: downstream, end: far)
        }

        /// Sets a deadline, in milliseconds since the start.
        func arm(_ downstream: Handle<DownstreamConnection>, at milliseconds: Int64) {
            run { $0.downstreams.arm(downstream, at: LoopBench.start + milliseconds * 1_000_000, &$0.context) }
        }

        /// Handles the deadlines that have passed at a moment, in milliseconds since the start.
        func fire(at milliseconds: Int64) {
            time.withLock { $0 = LoopBench.start + milliseconds * 1_000_000 }
            run { loop in _ = loop.context.clock.read() }
            events.fireTimers()
        }

        func isAlive(_ client: BenchClient) -> Bool { run { $0.downstreams.all.contains(client.downstream) } }

        func report() -> LoopReport { run { $0.context.counters.report() } }
    }

    // MARK: The wheel

    @Test func `a deadline fires when it has passed, with the next tick`() throws {
        let fixture = try Fixture()
        let client = fixture.open()
        fixture.arm(client.downstream, at: 100)
        fixture.fire(at: 111)
        let early = fixture.isAlive(client)
        fixture.fire(at: 112)
        #expect(early && !fixture.isAlive(client) && client.end.state == .closed)
    }

    @Test func `an extended deadline is waited for`() throws {
        let fixture = try Fixture()
        let client = fixture.open()
        fixture.arm(client.downstream, at: 100)
        fixture.arm(client.downstream, at: 1_000)
        fixture.fire(at: 112)
        fixture.fire(at: 999)
        let early = fixture.isAlive(client)
        fixture.fire(at: 1_008)
        #expect(early && !fixture.isAlive(client))
    }

    @Test func `the entry of a connection that ended does not concern the next one in its slot`() throws {
        let fixture = try Fixture()
        let first = fixture.open()
        fixture.arm(first.downstream, at: 100)
        fixture.run { loop in
            loop.close(downstream: first.downstream)
            loop.downstreams.all.reclaim()
        }
        let second = fixture.open()
        fixture.fire(at: 112)
        #expect(second.downstream.index == first.downstream.index && fixture.isAlive(second))
        fixture.fire(at: 10_016)
        #expect(!fixture.isAlive(second))
    }

    // MARK: What a deadline means

    @Test func `an incomplete head gets 408, and what follows is discarded`() throws {
        let fixture = try Fixture()
        let client = fixture.open()
        fixture.run { $0.downstreams.awaitHead(client.downstream, &$0.context) }
        fixture.fire(at: 10_016)
        let text = client.end.text()
        let phase = fixture.run { $0.downstreams[client.downstream].phase }
        #expect(text.hasPrefix("HTTP/1.1 408 Request Timeout\r\n") && text.contains("\r\nConnection: close\r\n"))
        #expect(phase == .lingering && fixture.report().reasons == ["request.timed_out": 1])
        fixture.fire(at: 12_032)
        #expect(!fixture.isAlive(client))
    }

    @Test(arguments: [DownstreamPhase.proxyHeader, .lingering, .head])
    func `a connection without a request is closed`(_ phase: DownstreamPhase) throws {
        let fixture = try Fixture()
        let client = fixture.open()
        fixture.run { $0.downstreams[client.downstream].phase = phase }
        fixture.fire(at: 10_016)
        #expect(!fixture.isAlive(client) && fixture.report().requests.isEmpty && client.end.bytes().isEmpty)
    }

    @Test func `a handshake that takes too long is counted`() throws {
        let fixture = try Fixture()
        let client = fixture.open()
        fixture.run { $0.downstreams[client.downstream].phase = .handshake }
        fixture.fire(at: 10_016)
        #expect(!fixture.isAlive(client) && fixture.report().handshakes == ["tls.handshake_timed_out": 1])
    }

    @Test func `an idle connection to an endpoint is closed`() throws {
        let fixture = try Fixture()
        let (near, far) = BenchEnd.pair()
        let upstream = fixture.run { loop in
            let upstream = loop.upstreams.all.allocate()
            loop.upstreams[upstream].open(
                fd: near, kind: .http1, endpoint: EndpointIndex(rawValue: 0), connected: false)
            loop.upstreams.returnToPool(upstream, &loop.context)
            return upstream
        }
        fixture.fire(at: 59_999)
        let early = fixture.run { $0.upstreams.all.contains(upstream) }
        fixture.fire(at: 60_016)
        let late = fixture.run { $0.upstreams.all.contains(upstream) }
        #expect(early && !late && far.state == .closed)
    }

    @Test func `the end of a drain aborts what is left`() throws {
        let fixture = try Fixture()
        let client = fixture.open()
        fixture.run { _ = $0.context.schedule.drain(until: LoopBench.start + 50_000_000) }
        fixture.fire(at: 49)
        let early = fixture.isAlive(client)
        fixture.fire(at: 50)
        #expect(early && !fixture.isAlive(client) && client.end.state == .closed)
    }
}
