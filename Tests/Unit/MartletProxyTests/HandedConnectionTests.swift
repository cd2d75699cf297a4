import Glibc
import MartletConfig
import MartletCore
import MartletDecisionsTesting
import MartletIO
import MartletTesting
import MartletTraffic
import Testing

@testable import MartletDecisions
@testable import MartletProxy

/// Idle connections that go from one loop to another, where requests wait for them.
@Suite struct HandedConnectionTests {
    private let counters = UpstreamCounters()

    /// A loop of a process whose upstream may have one connection.
    private func bench(_ configure: (inout SampleSettings) -> Void = { _ in }) throws -> LoopBench {
        try LoopBench { settings in
            var breaker = BreakerConfiguration()
            breaker.maximumConnections = 1
            settings.breaker = breaker
            settings.counters = counters
            configure(&settings)
        }
    }

    /// A counted connection that carries a request.
    private func openBusy(_ bench: LoopBench) -> BenchServer {
        let server = bench.openServer(served: 3)
        bench.run { loop in
            let fd = loop.upstreams[server.upstream].transport.fd
            try? loop.context.poller.add(fd, .connection, token: EventToken(upstream: server.upstream).raw)
            _ = loop.upstreams[server.upstream].counter.enter(counters.connections)
            loop.upstreams[server.upstream].phase = .awaitingHead
        }
        return server
    }

    private func makeIdle(_ server: BenchServer, _ bench: LoopBench) {
        bench.run { $0.upstreams.returnToPool(server.upstream, &$0.context) }
    }

    /// Another loop asks for connections, while a request waits there.
    private func ask(_ bench: LoopBench, by other: LoopBench) {
        bench.run { $0.upstreams.share("api", with: other.mailbox, &$0.context) }
    }

    private func waitSomewhere() -> DividedEntry {
        var entry = DividedEntry()
        _ = entry.enter(counters.pending, maximum: 1000, for: nil)
        return entry
    }

    /// Takes what has been handed over.
    /// - Returns: how many connections that were.
    @discardableResult private func deliver(to bench: LoopBench) -> Int {
        var count = 0
        for entry in bench.mailbox.drain() {
            guard case .connection(let handed) = entry else { continue }
            count += 1
            bench.run { $0.upstreams.take(handed, &$0.context) }
        }
        return count
    }

    @Test func `an idle connection goes to the loop whose request waits for it`() throws {
        let (giver, taker) = (try bench(), try bench())
        let server = openBusy(giver)
        makeIdle(server, giver)
        giver.advance(milliseconds: 500)
        var waiting = waitSomewhere()
        ask(giver, by: taker)
        #expect(!giver.isAlive(server.upstream) && giver.idle().isEmpty && server.end.state == .open)
        #expect(counters.connections.current == 1)
        #expect(deliver(to: taker) == 1)
        let taken = try #require(taker.idle().first)
        #expect(taker.phase(taken) == .idle && taker.due(taken) == 60_000)
        #expect(taker.run { $0.upstreams[taken].served } == 3)
        // It is as good as before.
        let sent = taker.run { $0.upstreams[taken].transport.fd }
        #expect(unsafe write(sent, "hello", 5) == 5)
        #expect(server.end.text() == "hello")
        taker.run { $0.upstreams.close(taken, &$0.context) }
        #expect(server.end.state == .closed && counters.connections.current == 0)
        waiting.leave()
    }

    @Test func `a connection that becomes idle later goes there too, until nothing waits`() throws {
        let (giver, taker) = (try bench(), try bench())
        let server = openBusy(giver)
        var waiting = waitSomewhere()
        ask(giver, by: taker)
        #expect(giver.isAlive(server.upstream))
        makeIdle(server, giver)
        #expect(!giver.isAlive(server.upstream) && deliver(to: taker) == 1)
        waiting.leave()
        let other = openBusy(giver)
        makeIdle(other, giver)
        #expect(giver.idle() == [other.upstream] && deliver(to: taker) == 0)
    }

    @Test func `where requests wait as well, every second one stays`() throws {
        let (giver, taker) = (try bench(), try bench())
        var waiting = waitSomewhere()
        giver.run { $0.upstreams.directory.clusters[0].isWaitedFor = true }
        let servers = (0..<4).map { _ in openBusy(giver) }
        ask(giver, by: taker)
        for server in servers { makeIdle(server, giver) }
        #expect(deliver(to: taker) == 2 && giver.idle().count == 2)
        waiting.leave()
    }

    @Test func `a connection with unsent bytes makes room instead`() throws {
        let (giver, taker) = (try bench(), try bench())
        let server = openBusy(giver)
        makeIdle(server, giver)
        giver.run { $0.upstreams[server.upstream].transport.output.append("x") }
        var waiting = waitSomewhere()
        ask(giver, by: taker)
        #expect(deliver(to: taker) == 0 && server.end.state == .closed && counters.connections.current == 0)
        waiting.leave()
    }

    /// Why a loop cannot use what it is given.
    enum Rejection: CaseIterable, Sendable {
        case drains, hasEnded, knowsNoEndpoint
    }

    @Test(arguments: Rejection.allCases)
    func `a connection that is of no use is closed and counted out`(_ rejection: Rejection) throws {
        let giver = try bench()
        let taker = try bench { if rejection == .knowsNoEndpoint { $0.endpoints = [SampleSettings.second] } }
        let server = openBusy(giver)
        makeIdle(server, giver)
        if rejection == .drains { taker.run { _ = $0.context.schedule.drain(until: .max - 1) } }
        if rejection == .hasEnded { taker.mailbox.close() }
        var waiting = waitSomewhere()
        ask(giver, by: taker)
        deliver(to: taker)
        #expect(server.end.state == .closed && counters.connections.current == 0 && taker.idle().isEmpty)
        waiting.leave()
    }

    @Test func `nothing is handed over while another connection may be opened`() throws {
        let giver = try bench { $0.breaker?.maximumConnections = 2 }
        let server = openBusy(giver)
        makeIdle(server, giver)
        var waiting = waitSomewhere()
        ask(giver, by: giver)
        #expect(giver.idle() == [server.upstream])
        waiting.leave()
        ask(try bench(), by: giver)
        #expect(deliver(to: giver) == 0)
    }
}
