import Glibc
import MartletAuthenticator
import MartletConfig
import MartletCore
import MartletHTTP
import MartletIO
import MartletResponder
import MartletTesting
import Testing

@testable import MartletDecisions
@testable import MartletProxy

/// Connections that have not proven anything yet, and which of them gives way at the limit.
@Suite struct ConnectionCapacityTests {
    private static let proxied: ListenerRules = {
        var rules = ListenerRules()
        rules.expectsProxyHeader = true
        return rules
    }()

    // MARK: Beginning

    @Test func `a new connection waits for a head`() throws {
        let bench = try LoopBench()
        let client = bench.openClient()
        #expect(bench.phase(client.downstream) == .head && bench.due(client.downstream) == 10_000)
    }

    @Test(arguments: [(true, false), (false, true)])
    func `a proxy has to send its header in time`(_ isTrusted: Bool, _ isUnix: Bool) throws {
        let bench = try LoopBench()
        let client = bench.openClient(rules: Self.proxied, isTrusted: isTrusted, isUnix: isUnix)
        #expect(bench.phase(client.downstream) == .proxyHeader && bench.due(client.downstream) == 10_000)
        #expect(bench.counted().connections.proxyHeaderRejections.isEmpty)
    }

    @Test func `another peer may not name a client`() throws {
        let bench = try LoopBench()
        let client = bench.openClient(rules: Self.proxied)
        #expect(!bench.isAlive(client.downstream) && client.end.state == .closed)
        #expect(bench.counted().connections.proxyHeaderRejections == ["proxy_protocol.untrusted_peer": 1])
        #expect(
            bench.recorder.texts == [
                "warning PROXY header rejected code=proxy_protocol.untrusted_peer client=192.0.2.1"
            ])
    }

    @Test func `a handshake that fails is counted, logged and closed`() throws {
        let bench = try LoopBench()
        let (first, second) = (bench.openClient(), bench.openClient())
        bench.run { loop in
            loop.rejectHandshake(first.downstream, "tls.bad_certificate")
            loop.handshakeTimedOut(second.downstream)
        }
        #expect(!bench.isAlive(first.downstream) && !bench.isAlive(second.downstream))
        #expect(bench.counted().handshakes == ["tls.bad_certificate": 1, "tls.handshake_timed_out": 1])
        #expect(
            bench.recorder.texts == [
                "debug TLS handshake failed code=tls.bad_certificate client=192.0.2.1",
                "debug TLS handshake failed code=tls.handshake_timed_out client=192.0.2.1",
            ])
    }

    // MARK: Deferred registration

    private func deferRegistration(_ bench: LoopBench) -> BenchClient {
        let client = bench.openClient(registers: false)
        let now = bench.now
        bench.run { $0.downstreams.acceptor.deferRegistration(of: client.downstream, since: now) }
        return client
    }

    private func isRegistered(_ bench: LoopBench, _ client: BenchClient) -> Bool {
        bench.run { $0.downstreams[client.downstream].transport.isRegistered }
    }

    @Test func `connections are registered when their responses take long`() throws {
        let bench = try LoopBench()
        let first = deferRegistration(bench)
        bench.advance(milliseconds: 10)
        let second = deferRegistration(bench)
        bench.run { $0.registerOverdue() }
        #expect(!isRegistered(bench, first) && !isRegistered(bench, second))
        bench.advance(milliseconds: 10)
        bench.run { $0.registerOverdue() }
        #expect(isRegistered(bench, first) && !isRegistered(bench, second))
        bench.advance(milliseconds: 10)
        bench.run { $0.registerOverdue() }
        let isQuiet = bench.run { $0.downstreams.acceptor.isQuiet }
        #expect(isRegistered(bench, second) && isQuiet)
    }

    @Test func `a connection that ended meanwhile is not registered`() throws {
        let bench = try LoopBench()
        let first = deferRegistration(bench)
        let second = deferRegistration(bench)
        bench.run { $0.close(downstream: first.downstream) }
        bench.advance(milliseconds: 20)
        bench.run { $0.registerOverdue() }
        #expect(!bench.isAlive(first.downstream) && isRegistered(bench, second))
    }

    @Test func `a connection that cannot be registered is abandoned`() throws {
        let bench = try LoopBench()
        let client = deferRegistration(bench)
        bench.admit(BenchText.get, on: client.downstream)
        bench.advance(milliseconds: 20)
        bench.run { loop in
            let fd = loop.downstreams[client.downstream].transport.fd
            loop.downstreams[client.downstream].transport.fd = .max
            loop.registerOverdue()
            Glibc.close(fd)
        }
        #expect(!bench.isAlive(client.downstream) && bench.requests() == ["api 499 1"])
    }

    // MARK: Capacity

    @Test func `the oldest connection without a request gives way first`() throws {
        let bench = try LoopBench()
        let used = bench.openClient()
        let clients = [bench.openClient(), bench.openClient()]
        bench.run { $0.downstreams[used.downstream].reader.requests = 1 }
        bench.advance(milliseconds: 250)
        var alive: [[Bool]] = []
        var results: [Bool] = []
        for _ in 0..<3 {
            results.append(bench.run { $0.freeCapacity() })
            alive.append(([used] + clients).map { bench.isAlive($0.downstream) })
        }
        #expect(results == [true, true, false])
        #expect(alive == [[true, false, true], [true, false, false], [true, false, false]])
        #expect(bench.counted().connections.displaced == 2 && bench.connections.count == 1)
    }

    @Test func `a connection is protected at first`() throws {
        let bench = try LoopBench()
        let client = bench.openClient()
        bench.advance(milliseconds: 249)
        let early = bench.run { $0.freeCapacity() }
        bench.advance(milliseconds: 1)
        let later = bench.run { $0.freeCapacity() }
        #expect(!early && later && !bench.isAlive(client.downstream))
    }

    @Test func `connections that ended are skipped`() throws {
        let bench = try LoopBench()
        let (first, second) = (bench.openClient(), bench.openClient())
        bench.run { $0.close(downstream: first.downstream) }
        bench.advance(milliseconds: 250)
        let results = [bench.run { $0.freeCapacity() }, bench.run { $0.freeCapacity() }]
        let count = bench.run { $0.downstreams.acceptor.order.count }
        #expect(results == [true, false] && !bench.isAlive(second.downstream) && count == 0)
    }

    @Test func `a slow upload of an unverified caller gives way with a response`() throws {
        let bench = try LoopBench()
        let forwarded = bench.forward(BenchText.post(100_000))
        bench.receive([UInt8](repeating: 7, count: 4_095), for: forwarded.exchange)
        _ = forwarded.server.end.bytes()
        bench.advance(milliseconds: 250)
        let isFreed = bench.run { $0.freeCapacity() }
        let text = forwarded.client.end.text()
        #expect(isFreed && !bench.isAlive(forwarded.downstream) && !bench.isAlive(forwarded.upstream))
        #expect(
            text
                == BenchText.problem(
                    503, "Service Unavailable", "overloaded", fields: "Retry-After: 1\r\n", closes: true))
        #expect(bench.requests() == ["api 503 1"])
        #expect(bench.counted().reasons == ["server.connection_displaced": 1])
    }

    /// Why an upload does not give way.
    enum Protection: CaseIterable, Sendable {
        case fastEnough, complete, verified, responding, upgrade

        func apply(to exchange: Handle<Exchange>, _ loop: inout LoopState) {
            switch self {
            case .fastEnough: loop.exchanges[exchange].record.bytesIn = 4_096
            case .complete: loop.exchanges[exchange].body.isComplete = true
            case .verified: loop.exchanges[exchange].credential.provider = 0
            case .responding: loop.exchanges[exchange].response.start(status: 200, closes: false)
            case .upgrade:
                let tunnel = loop.exchanges.tunnels.allocate()
                loop.exchanges[exchange].tunnel = tunnel
            }
        }
    }

    @Test(arguments: Protection.allCases)
    func `other requests in progress do not give way`(_ protection: Protection) throws {
        let bench = try LoopBench()
        let client = bench.openClient()
        let exchange = bench.begin(BenchText.post(100_000), on: client.downstream)
        bench.run { protection.apply(to: exchange, &$0) }
        bench.advance(milliseconds: 250)
        let isFreed = bench.run { $0.freeCapacity() }
        #expect(!isFreed && bench.isAlive(exchange) && bench.counted().connections.displaced == 0)
    }

    @Test(arguments: [DownstreamPhase.waiting, .lingering])
    func `connections in other phases do not give way`(_ phase: DownstreamPhase) throws {
        let bench = try LoopBench()
        let client = bench.openClient()
        bench.run { $0.downstreams[client.downstream].phase = phase }
        bench.advance(milliseconds: 250)
        let isEvictable = bench.run {
            $0.downstreams.isEvictable(client.downstream, &$0.exchanges, &$0.context)
        }
        #expect(!isEvictable)
    }

    // MARK: The end of a drain

    @Test func `everything that is left ends, with a response where there was none`() throws {
        let bench = try LoopBench()
        let idle = bench.openClient()
        let forwarded = bench.forward()
        bench.run { $0.abortAll(isLast: true) }
        let count = bench.run { $0.downstreams.all.count }
        #expect(count == 0 && bench.connections.count == 0)
        #expect(idle.end.state == .closed && !bench.isAlive(forwarded.upstream))
        #expect(bench.requests() == ["api 503 1"])
    }

    @Test(arguments: [true, false])
    func `a response that is cut is reset, because its end may be that of the connection`(isDrain: Bool) throws {
        let bench = try LoopBench()
        let forwarded = bench.forward()
        forwarded.server.end.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhel")
        bench.event(forwarded.upstream, .readable)
        #expect(forwarded.client.end.text().hasSuffix("hel"))
        var option = linger()
        var length = socklen_t(MemoryLayout<linger>.size)
        bench.run { loop in
            // The same socket once more: its options can still be read.
            let socket = dup(loop.downstreams[forwarded.client.downstream].transport.fd)
            defer { close(socket) }
            if isDrain { loop.abortAll(isLast: false) } else { loop.abandon(forwarded.client.downstream) }
            _ = unsafe getsockopt(socket, SOL_SOCKET, SO_LINGER, &option, &length)
        }
        #expect(option.l_onoff != 0 && option.l_linger == 0)
    }
}
