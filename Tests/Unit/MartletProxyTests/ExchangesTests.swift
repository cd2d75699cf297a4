import MartletAuthenticator
import MartletConfig
import MartletCore
import MartletDecisionsTesting
import MartletHTTP
import MartletProvider
import MartletResponder
import Testing

@testable import MartletDecisions
@testable import MartletProxy

/// The exchanges of a loop, as far as they concern their two connections.
@Suite struct ExchangesTests {
    // MARK: Beginning

    @Test func `a new exchange starts over on its connection`() throws {
        let bench = try LoopBench()
        let client = bench.openClient()
        let exchange = bench.run { loop in
            _ = loop.downstreams[client.downstream].probe.schedule(restoring: 5)
            return loop.exchanges.allocateExchange(for: client.downstream, &loop.downstreams, &loop.context)
        }
        let (current, requests, probe) = bench.run {
            (
                $0.downstreams[client.downstream].exchange, $0.downstreams[client.downstream].reader.requests,
                $0.downstreams[client.downstream].probe
            )
        }
        #expect(current == exchange && requests == 1 && !probe.isPending && !probe.wasSent)
        #expect(bench.phase(client.downstream) == .exchange && bench.due(client.downstream) == nil)
        let (id, started, isStream) = bench.run {
            unsafe (
                String(decoding: $0.exchanges[exchange].record.texts.requestID, as: UTF8.self),
                $0.exchanges[exchange].record.started, $0.exchanges[exchange].isStream
            )
        }
        #expect(id == BenchText.requestID(1) && started == LoopBench.start && !isStream)
    }

    @Test func `an exchange shows nothing of the one before in its slot`() throws {
        let bench = try LoopBench()
        let client = bench.openClient()
        let first = bench.begin("POST /x HTTP/1.0\r\nHost: a\r\nContent-Length: 3\r\n\r\n", on: client.downstream)
        let second = bench.run { loop in
            loop.exchanges[first].responder = .local
            loop.exchanges[first].record.bytesIn = 3
            loop.exchanges[first].forwarding.attempts = 4
            loop.exchanges[first].forwarding.head = UpstreamHead("head".utf8)
            loop.exchanges[first].response.start(status: 200, closes: true)
            loop.finish(first)
            loop.exchanges.all.reclaim()
            return loop.exchanges.beginUnparsed(client.downstream, &loop.downstreams, &loop.context)
        }
        let (request, responder) = bench.run { ($0.exchanges[second].request, $0.exchanges[second].responder) }
        #expect(second.index == first.index && second != first && responder == .none)
        #expect(request.method == .other && !request.isHTTP10 && !request.keepsAlive && !request.expectsContinue)
        let (body, bytesIn) = bench.run { ($0.exchanges[second].body, $0.exchanges[second].record.bytesIn) }
        #expect(body.framing == .none && body.remaining == 0 && !body.isComplete && bytesIn == 0)
        let (attempts, head) = bench.run {
            ($0.exchanges[second].forwarding.attempts, $0.exchanges[second].forwarding.head.count)
        }
        let (status, hasStarted) = bench.run {
            ($0.exchanges[second].response.status, $0.exchanges[second].response.hasStarted)
        }
        #expect(attempts == 0 && head == 0 && status == 0 && !hasStarted)
    }

    @Test func `a body has to arrive in time`() throws {
        let bench = try LoopBench()
        let client = bench.openClient()
        let exchange = bench.begin(BenchText.post(5), on: client.downstream)
        let body = bench.run { $0.exchanges[exchange].body }
        #expect(bench.due(client.downstream) == 30_000 && body.remaining == 5 && !body.isComplete)
    }

    // MARK: Input

    @Test(
        arguments: [
            (.head, true), (.lingering, true), (.proxyHeader, true), (.handshake, true), (.frames, true),
            (.waiting, false),
        ] as [(DownstreamPhase, Bool)])
    func `whether input is wanted depends on the phase`(
        _ phase: DownstreamPhase, _ expected: Bool
    ) throws {
        let bench = try LoopBench()
        let client = bench.openClient()
        let wants = bench.run { loop in
            loop.downstreams[client.downstream].phase = phase
            return loop.downstreams.wantsInput(client.downstream, &loop.exchanges)
        }
        #expect(wants == expected)
    }

    @Test func `no head, no frames and no handshake are read while they cannot be used`() throws {
        let bench = try LoopBench()
        let client = bench.openClient()
        let wants = bench.run { loop in
            loop.downstreams[client.downstream].ending.closesAfterFlush = true
            loop.downstreams[client.downstream].handshake.isOffloaded = true
            return [DownstreamPhase.head, .frames, .handshake].map { phase in
                loop.downstreams[client.downstream].phase = phase
                return loop.downstreams.wantsInput(client.downstream, &loop.exchanges)
            }
        }
        #expect(wants == [false, false, false])
    }

    @Test func `a body is read until it is complete, unless its endpoint is slower`() throws {
        let bench = try LoopBench()
        let client = bench.openClient()
        let exchange = bench.begin(BenchText.post(5), on: client.downstream)
        let wants = bench.run { loop in
            var wants = [loop.downstreams.wantsInput(client.downstream, &loop.exchanges)]
            loop.downstreams[client.downstream].isPaused = true
            wants.append(loop.downstreams.wantsInput(client.downstream, &loop.exchanges))
            loop.downstreams[client.downstream].isPaused = false
            loop.downstreams[client.downstream].pipe = PipeHandle(index: 0)
            wants.append(loop.downstreams.wantsInput(client.downstream, &loop.exchanges))
            loop.downstreams[client.downstream].pipe = .none
            loop.exchanges[exchange].body.isComplete = true
            wants.append(loop.downstreams.wantsInput(client.downstream, &loop.exchanges))
            return wants
        }
        #expect(wants == [true, false, false, false])
    }

    // MARK: Final requests

    /// What shows that a request is not the connection's last one, or not complete.
    enum Continuation: CaseIterable, Sendable {
        case keptAlive, incomplete, unsent, upgrade, frames

        func apply(to exchange: Handle<Exchange>, _ loop: inout LoopState) {
            let downstream = loop.exchanges[exchange].downstream
            switch self {
            case .keptAlive: loop.exchanges[exchange].request.keepsAlive = true
            case .incomplete: loop.exchanges[exchange].body.isComplete = false
            case .unsent: loop.downstreams[downstream].transport.output.append("left")
            case .upgrade: loop.exchanges[exchange].tunnel = Handle(index: 0, generation: 0)
            case .frames: loop.downstreams[downstream].kind = .http2
            }
        }
    }

    @Test func `only the response is left after a last request`() throws {
        let bench = try LoopBench()
        let client = bench.openClient()
        let idle = bench.run { $0.downstreams.isFinalRequest(client.downstream, &$0.exchanges) }
        _ = bench.begin("GET / HTTP/1.0\r\nHost: a\r\n\r\n", on: client.downstream)
        let final = bench.run { $0.downstreams.isFinalRequest(client.downstream, &$0.exchanges) }
        #expect(!idle && final)
    }

    @Test(arguments: Continuation.allCases)
    func `more than the response may follow`(_ continuation: Continuation) throws {
        let bench = try LoopBench()
        let client = bench.openClient()
        let exchange = bench.begin("GET / HTTP/1.0\r\nHost: a\r\n\r\n", on: client.downstream)
        let isFinal = bench.run { loop in
            continuation.apply(to: exchange, &loop)
            let isFinal = loop.downstreams.isFinalRequest(client.downstream, &loop.exchanges)
            loop.downstreams[client.downstream].kind = .http1
            return isFinal
        }
        #expect(!isFinal)
    }

    // MARK: Addresses

    @Test func `the client is the peer, or whom a trusted proxy names`() throws {
        let bench = try LoopBench()
        let client = bench.openClient()
        let exchange = bench.begin(BenchText.get, on: client.downstream)
        let peer = bench.run { $0.exchanges[exchange].clientAddress(&$0.downstreams) }
        let (named, network) = bench.run { loop in
            loop.exchanges[exchange].record.forwardedNetwork = BenchAddress.other
            return (
                loop.exchanges[exchange].clientAddress(&loop.downstreams),
                loop.exchanges[exchange].clientNetwork(&loop.downstreams)
            )
        }
        #expect(peer == BenchAddress.client && named == BenchAddress.other)
        #expect(network == ClientNetwork(address: BenchAddress.other))
    }

    @Test func `a client on a Unix socket has no address`() throws {
        let bench = try LoopBench()
        let client = bench.openClient()
        let exchange = bench.begin(BenchText.get, on: client.downstream)
        let (address, network) = bench.run { loop in
            loop.downstreams[client.downstream].origin.address.bytes = [UInt8](repeating: 0, count: 16)
            return (
                loop.exchanges[exchange].clientAddress(&loop.downstreams),
                loop.exchanges[exchange].clientNetwork(&loop.downstreams)
            )
        }
        #expect(address.isEmpty && network == nil)
    }

    // MARK: Heads

    @Test func `the writer of heads has the settings of both sides`() throws {
        let bench = try LoopBench()
        var rules = ListenerRules()
        rules.strictTransportSeconds = 60
        let client = bench.openClient(rules: rules)
        let exchange = bench.begin("GET / HTTP/1.0\r\nHost: a\r\n\r\n", on: client.downstream)
        let plain = bench.run { $0.exchanges[exchange].headWriter(&$0.downstreams) }
        #expect(plain.isHTTP10 && !plain.isChunked && !plain.closes && !plain.isStream)
        #expect(plain.strictTransportSeconds == 60)
        let closing = bench.run { loop in
            loop.exchanges[exchange].request.isHTTP10 = false
            loop.exchanges[exchange].response.start(
                status: 200, framing: .chunked, isHTTP10: false, isStream: false, closes: true)
            return loop.exchanges[exchange].headWriter(&loop.downstreams)
        }
        #expect(!closing.isHTTP10 && closing.isChunked && closing.closes)
    }

    // MARK: Credentials and configurations

    @Test(arguments: [false, true])
    func `an exchange outlives its credential by the grace period`(_ isRevoked: Bool) throws {
        let bench = try LoopBench()
        let client = bench.openClient()
        let exchange = bench.begin(BenchText.get, on: client.downstream)
        let (credential, termination) = bench.run { loop in
            loop.exchanges[exchange].credential.revocationID = 7
            loop.exchanges[exchange].credential.end = 8
            loop.exchanges[exchange].credential.expiryGrace = 9
            loop.exchanges[exchange].endCredential(isRevoked: isRevoked, &loop.context)
            return (loop.exchanges[exchange].credential, loop.exchanges[exchange].termination)
        }
        #expect(credential.revocationID == 0 && credential.end == .max)
        #expect(termination.deadline == LoopBench.start + 9 && termination.isRevoked == isRevoked)
    }

    @Test func `providers are found by name in a new configuration`() throws {
        let bench = try LoopBench { $0.providers = ["a", "b", "c"] }
        let exchanges = (0..<5).map { _ in bench.begin(BenchText.get, on: bench.openClient().downstream) }
        var settings = SampleSettings()
        settings.providers = ["c", "a"]
        let next = settings.snapshot()
        let providers = bench.run { loop in
            for (index, exchange) in exchanges.enumerated() {
                loop.exchanges[exchange].credential.provider = Int32(index) - 1
            }
            loop.exchanges.all.free(exchanges[4])
            loop.exchanges.renumberProviders(next, &loop.context)
            return exchanges.map { loop.exchanges[$0].credential.provider }
        }
        #expect(providers == [-1, 1, -1, 0, 3])
    }

    @Test func `requests with trailers to come keep their configuration`() throws {
        let bench = try LoopBench()
        let (complete, incomplete) = (bench.openClient(), bench.openClient())
        let first = bench.admit(BenchText.get, on: complete.downstream)
        let second = bench.admit(BenchText.chunked, on: incomplete.downstream)
        let former = SampleSettings().snapshot()
        let snapshots = bench.run { loop in
            loop.exchanges.retainSnapshotForTrailers(former)
            return [first, second].map { loop.exchanges[$0].forwarding.headerRules.formerSnapshot }
        }
        #expect(snapshots[0] == nil && snapshots[1] === former)
    }

    @Test func `uploads to a handler and upgrades have no trailers to come`() throws {
        let bench = try LoopBench()
        let clients = [bench.openClient(), bench.openClient()]
        let exchanges = clients.map { bench.admit(BenchText.chunked, on: $0.downstream) }
        let former = SampleSettings().snapshot()
        let retained = bench.run { loop in
            loop.exchanges[exchanges[0]].responder = .local
            loop.exchanges[exchanges[1]].tunnel = Handle(index: 0, generation: 0)
            loop.exchanges.retainSnapshotForTrailers(former)
            loop.exchanges[exchanges[1]].tunnel = .none
            return exchanges.map { loop.exchanges[$0].forwarding.headerRules.formerSnapshot != nil }
        }
        #expect(retained == [false, false])
    }
}
