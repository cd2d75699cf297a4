import MartletConfig
import MartletCore
import MartletHTTP
import MartletHTTP2
import MartletIO
import MartletResponder
import Testing

@testable import MartletDecisions
@testable import MartletDecisionsTesting
@testable import MartletProxy

/// Listeners, what they do not admit, and what a drain does to their connections.
@Suite struct DownstreamListenerTests {
    private static let overloaded = BenchText.problem(
        503, "Service Unavailable", "overloaded", fields: "Retry-After: 1\r\n", closes: true)

    // MARK: Listeners

    @Test func `a listener is registered, and closed with the end of accepting`() throws {
        let bench = try LoopBench()
        let (near, far) = BenchEnd.pair()
        let listener = ListenerSocket(id: 4, fd: near, isShared: false, role: .gateway)
        try bench.run { try $0.downstreams.listen(listener, &$0.context) }
        far.send("x")
        let found = bench.run { loop in
            let count = loop.context.poller.wait(milliseconds: 0)
            let tokens = (0..<count).map { loop.context.poller.token(at: $0) }
            return (tokens, loop.downstreams.acceptor.listeners.map(\.id))
        }
        #expect(found.0 == [EventToken(listener: 4).raw] && found.1 == [4])
        bench.run { $0.downstreams.stopAccepting(listener, &$0.context) }
        #expect(far.state == .reset)
    }

    @Test func `a listener that cannot be registered is not accepted from`() throws {
        let bench = try LoopBench()
        let listener = ListenerSocket(id: 4, fd: -1, isShared: false, role: .gateway)
        #expect(throws: IOError.self) { try bench.run { try $0.downstreams.listen(listener, &$0.context) } }
        let count = bench.run { $0.downstreams.acceptor.listeners.count }
        #expect(count == 0)
    }

    @Test func `the accept policy is evaluated with the loop's clock`() throws {
        let bench = try LoopBench()
        let active = bench.run { loop in
            for _ in 0..<DeferAcceptPolicy.threshold { loop.downstreams.acceptor.deferAccept.recordSingleUse() }
            loop.downstreams.updateDeferAccept(&loop.context)
            return loop.downstreams.acceptor.deferAccept.isActive
        }
        bench.advance(milliseconds: 101)
        let later = bench.run { loop in
            loop.downstreams.updateDeferAccept(&loop.context)
            return loop.downstreams.acceptor.deferAccept.isActive
        }
        #expect(active && !later)
    }

    // MARK: Rejected connections

    @Test func `a connection over the limit gets 503 and is closed, though it has sent a request`() throws {
        let bench = try LoopBench()
        let (near, far) = BenchEnd.pair()
        far.send(BenchText.get)
        bench.run { $0.downstreams.rejectConnection(near, ListenerRules(), &$0.context) }
        let text = far.text()
        #expect(text == Self.overloaded && far.state == .closed)
        #expect(bench.log().isEmpty && bench.requests().isEmpty)
    }

    @Test func `a connection over the limit that expects TLS is closed without a response`() throws {
        let bench = try LoopBench()
        let (near, far) = BenchEnd.pair()
        var rules = ListenerRules()
        rules.isSecure = true
        bench.run { $0.downstreams.rejectConnection(near, rules, &$0.context) }
        let text = far.text()
        #expect(text.isEmpty && far.state == .closed)
        // The next request has the first ID.
        let client = bench.openClient()
        let exchange = bench.begin(BenchText.get, on: client.downstream)
        bench.run { $0.reject(exchange, .noRoute) }
        #expect(client.end.text() == BenchText.problem(404, "Not Found", "no_route"))
    }

    @Test func `without a descriptor nothing is counted where no connection is waiting`() throws {
        let bench = try LoopBench()
        let listener = ListenerSocket(id: 4, fd: -1, isShared: false, role: .gateway)
        let isRejected = bench.run { $0.downstreams.rejectOne(listener, &$0.context) }
        #expect(!isRejected && bench.counted().connections.refused == 0)
    }

    @Test func `while nothing can be accepted, a listener that has a connection does not wake the loop`() throws {
        let bench = try LoopBench()
        let (near, far) = BenchEnd.pair()
        far.send("x")
        func wakeups() -> Int { bench.run { $0.context.poller.wait(milliseconds: 20) } }
        let listener = ListenerSocket(id: 4, fd: near, isShared: false, role: .gateway)
        try bench.run { try $0.downstreams.listen(listener, &$0.context) }
        let before = wakeups()
        bench.run { $0.downstreams.pauseAccepting(&$0.context) }
        let isQuiet = bench.run { $0.downstreams.acceptor.isQuiet }
        bench.run { $0.downstreams.resumeAccepting(&$0.context) }
        let during = wakeups()
        bench.advance(milliseconds: 20)
        bench.run { $0.downstreams.resumeAccepting(&$0.context) }
        let isQuietAgain = bench.run { $0.downstreams.acceptor.isQuiet }
        let after = wakeups()
        #expect(before == 1 && !isQuiet && during == 0 && after == 1 && isQuietAgain)
    }

    // MARK: PROXY protocol

    @Test func `the address of a PROXY header replaces that of the peer`() throws {
        let range = AddressRange(network: BenchAddress.other, prefixLength: 128)
        let bench = try LoopBench {
            $0.limits.connectionsPerAddress = 1
            $0.trustedProxies = [range]
        }
        let client = bench.openClient()
        let isApplied = bench.run {
            $0.downstreams.applyProxyAddress(
                client.downstream, ProxyHeader.Address(bytes: BenchAddress.other, port: 9), &$0.context)
        }
        let origin = bench.run { $0.downstreams[client.downstream].origin }
        #expect(isApplied && origin.peerBytes == BenchAddress.other && origin.admission.contains(.countedByAddress))
        #expect(origin.address.bytes == BenchAddress.other && origin.address.text.description == "198.51.100.7")
        #expect(origin.address.port == 9 && origin.address.isTrusted && !origin.address.isUnix)
        #expect(bench.connections.count == 1)
        // The peer's own address is free again.
        let other = bench.openClient()
        let admission = bench.run { $0.downstreams[other.downstream].origin.admission }
        #expect(admission.contains(.countedByAddress))
        bench.run { $0.close(downstream: client.downstream) }
        #expect(bench.connections.count == 1)
    }

    @Test func `the limit of an address counts behind a proxy`() throws {
        let bench = try LoopBench { $0.limits.connectionsPerAddress = 1 }
        let (first, second) = (bench.openClient(), bench.openClient())
        let address = ProxyHeader.Address(bytes: BenchAddress.other, port: 9)
        let results = bench.run { loop in
            [
                loop.downstreams.applyProxyAddress(first.downstream, address, &loop.context),
                loop.downstreams.applyProxyAddress(second.downstream, address, &loop.context),
            ]
        }
        let admission = bench.run { $0.downstreams[second.downstream].origin.admission }
        #expect(results == [true, false] && admission == .refusedToAddress)
        #expect(bench.counted().connections.refused == 1 && bench.connections.count == 1)
        bench.run { $0.close(downstream: second.downstream) }
        #expect(bench.connections.count == 1)
    }

    // MARK: Drains

    /// A connection of a listener when that is closed.
    enum Connection: CaseIterable, Sendable {
        case fresh, used, receivingHead, unsent, busy, ofAnotherListener

        /// The deadline that it has then, in milliseconds.
        var due: Int64? {
            switch self {
            case .fresh: 1_000
            case .used: 250
            case .receivingHead, .unsent, .ofAnotherListener: 10_000
            case .busy: nil
            }
        }

        func prepare(_ downstream: Handle<DownstreamConnection>, _ bench: LoopBench) {
            switch self {
            case .fresh: break
            case .used: bench.run { $0.downstreams[downstream].reader.requests = 1 }
            case .receivingHead: bench.run { $0.downstreams[downstream].reader.isReceivingHead = true }
            case .unsent: bench.run { $0.downstreams[downstream].transport.output.append("left") }
            case .busy: _ = bench.begin(BenchText.get, on: downstream)
            case .ofAnotherListener: bench.run { $0.downstreams[downstream].origin.listener = 2 }
            }
        }
    }

    @Test(arguments: Connection.allCases)
    func `idle connections are closed soon, others are left alone`(_ connection: Connection) throws {
        let bench = try LoopBench()
        let client = bench.openClient()
        connection.prepare(client.downstream, bench)
        bench.run { $0.downstreams.drain(of: { $0 == 1 }, &$0.context) }
        #expect(bench.due(client.downstream) == connection.due && bench.isAlive(client.downstream))
        #expect(bench.dirty().isEmpty)
    }

    @Test func `HTTP/2 connections get GOAWAY`() throws {
        let bench = try LoopBench()
        let client = bench.openClient()
        let isGoingAway = bench.run { loop in
            loop.downstreams.startHTTP2(client.downstream, &loop.context)
            _ = loop.context.schedule.dirty.start()
            loop.downstreams[client.downstream].isDirty = false
            let before = loop.downstreams[client.downstream].streams?.session.isGoingAway
            loop.downstreams.drain(of: { _ in true }, &loop.context)
            return [before, loop.downstreams[client.downstream].streams?.session.isGoingAway]
        }
        #expect(isGoingAway == [false, true])
        #expect(bench.dirty() == ["downstream 0"] && bench.due(client.downstream) == 250)
    }
}
