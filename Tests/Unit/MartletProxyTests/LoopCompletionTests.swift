import MartletAuthenticator
import MartletCore
import MartletHTTP
import MartletResponder
import Testing

@testable import MartletDecisions
@testable import MartletProxy

/// The end of an exchange: its record, and what becomes of its connections.
@Suite struct LoopCompletionTests {
    /// What is left on a connection after a response.
    enum Left: CaseIterable, Sendable {
        case input, unread, end

        func leave(on downstream: Handle<DownstreamConnection>, _ loop: inout LoopState) {
            switch self {
            case .input: loop.downstreams[downstream].reader.input.append("GET /")
            case .unread: loop.downstreams[downstream].transport.mayHaveUnread = true
            case .end: loop.downstreams[downstream].transport.isReadClosed = true
            }
        }
    }

    /// A complete request whose response was handed over.
    private func responded(
        _ bench: LoopBench, closes: Bool = false, _ head: String = BenchText.get
    ) -> (client: BenchClient, exchange: Handle<Exchange>) {
        let client = bench.openClient()
        let exchange = bench.begin(head, on: client.downstream)
        bench.run { $0.exchanges[exchange].response.start(status: 200, closes: closes) }
        return (client, exchange)
    }

    // MARK: The connection

    @Test func `a connection that stays open waits for the next request`() throws {
        let bench = try LoopBench()
        let (client, exchange) = responded(bench)
        bench.run { loop in
            loop.downstreams[client.downstream].isPaused = true
            loop.complete(exchange)
        }
        let isPaused = bench.run { $0.downstreams[client.downstream].isPaused }
        let current = bench.run { $0.downstreams[client.downstream].exchange }
        #expect(bench.phase(client.downstream) == .head && !isPaused && current == .none)
        #expect(bench.due(client.downstream) == 75_000 && bench.ready().isEmpty)
        #expect(client.end.state == .open)
    }

    @Test(arguments: Left.allCases)
    func `a connection with something to read is resumed`(_ left: Left) throws {
        let bench = try LoopBench()
        let (client, exchange) = responded(bench)
        bench.run { loop in
            left.leave(on: client.downstream, &loop)
            loop.complete(exchange)
        }
        #expect(bench.ready() == ["downstream 0"] && bench.phase(client.downstream) == .head)
    }

    @Test func `the idle timeout does not start while a response is unsent`() throws {
        let bench = try LoopBench()
        let (client, exchange) = responded(bench)
        bench.run { loop in
            loop.downstreams[client.downstream].transport.output.append("rest")
            loop.complete(exchange)
        }
        #expect(bench.due(client.downstream) == nil && bench.phase(client.downstream) == .head)
        bench.run { $0.flush(downstream: client.downstream) }
        let text = client.end.text()
        #expect(text == "rest" && bench.due(client.downstream) == 75_000)
    }

    @Test func `a connection closes once the rest of its last response is sent`() throws {
        let bench = try LoopBench()
        let (client, exchange) = responded(bench, closes: true)
        bench.run { loop in
            loop.downstreams[client.downstream].transport.output.append("rest")
            loop.complete(exchange)
        }
        #expect(bench.isAlive(client.downstream) && bench.due(client.downstream) == 30_000)
        bench.run { $0.flush(downstream: client.downstream) }
        let text = client.end.text()
        #expect(text == "rest" && client.end.state == .closed && !bench.isAlive(client.downstream))
    }

    @Test func `a connection closes immediately where its last response is sent`() throws {
        let bench = try LoopBench()
        let (client, exchange) = responded(bench, closes: true)
        bench.run { $0.complete(exchange) }
        #expect(client.end.state == .closed && !bench.isAlive(client.downstream) && bench.ready().isEmpty)
    }

    @Test func `input is discarded where a response came before the end of the request`() throws {
        let bench = try LoopBench()
        let (client, exchange) = responded(bench, closes: true, BenchText.post(5))
        bench.run { $0.complete(exchange) }
        let isUnread = bench.run { $0.downstreams[client.downstream].ending.hasUnreadRequest }
        #expect(bench.phase(client.downstream) == .lingering && isUnread && client.end.state == .closed)
    }

    // MARK: The record

    @Test func `an exchange is logged and counted with what it was recorded with`() throws {
        let bench = try LoopBench()
        let (_, exchange) = responded(bench)
        bench.advance(milliseconds: 1_234)
        bench.run { loop in
            loop.exchanges[exchange].record.routeSlot = loop.context.counters.routes.configured[1]
            loop.exchanges[exchange].record.bytesIn = 7
            loop.exchanges[exchange].record.bytesOut = 8
            loop.exchanges[exchange].forwarding.endpoint = EndpointIndex(rawValue: 0)
            loop.finish(exchange)
        }
        let endpoint = "upstream=unix:/nonexistent/martlet-1"
        #expect(bench.log() == ["192.0.2.1 GET a 200 ok route=api \(endpoint) in=7 out=8 us=1234000"])
        let counted = bench.counted()
        #expect(bench.requests() == ["api 200 1"] && counted.reasons.isEmpty)
        let latency = counted.latency.map { "\($0.route) \($0.sumMicroseconds)" }
        #expect(latency == ["api 1234000"])
    }

    @Test func `records of different outcomes have their own texts`() throws {
        let bench = try LoopBench()
        for status in [200, 404, 200] {
            let (client, exchange) = responded(bench)
            bench.run { loop in
                loop.exchanges[exchange].response.status = status
                loop.finish(exchange)
                loop.close(downstream: client.downstream)
            }
        }
        let records = bench.log().map { $0.split(separator: " ")[3] }
        #expect(records == ["200", "404", "200"])
        #expect(bench.requests() == ["- 200 2", "- 404 1"])
    }

    @Test func `an exchange releases what it held`() throws {
        let bench = try LoopBench()
        let (client, exchange) = responded(bench)
        bench.run { loop in
            if let pipe = loop.pipes.acquire() { loop.downstreams[client.downstream].pipe = pipe }
            loop.exchanges[exchange].credential.retainsToken = true
            loop.exchanges[exchange].record.forwardedNetwork = BenchAddress.other
            loop.finish(exchange)
        }
        let (inUse, pipe) = bench.run { ($0.pipes.inUse, $0.downstreams[client.downstream].pipe) }
        let (tokens, count) = bench.run { ($0.exchanges.endedWithToken, $0.exchanges.all.count) }
        let network = bench.run { $0.exchanges[exchange].record.forwardedNetwork }
        #expect(inUse == 0 && pipe == .none && tokens == [exchange] && count == 0 && network.isEmpty)
    }

    @Test func `an exchange without a retained token is not noted for it`() throws {
        let bench = try LoopBench()
        let (_, exchange) = responded(bench)
        bench.run { $0.finish(exchange) }
        let tokens = bench.run { $0.exchanges.endedWithToken }
        #expect(tokens.isEmpty)
    }

    // MARK: Responses of an upstream

    @Test(arguments: [
        (BodyFraming.chunked, "left0\r\nX-Sum: 1\r\n\r\n"), (BodyFraming.none, "left"), (BodyFraming.length(4), "left"),
    ])
    func `a response ends with what its framing needs`(_ framing: BodyFraming, _ expected: String) throws {
        let bench = try LoopBench()
        let forwarded = bench.forward()
        bench.run { loop in
            loop.exchanges[forwarded.exchange].response.start(
                status: 200, framing: framing, isHTTP10: false, isStream: false, closes: false)
            loop.exchanges[forwarded.exchange].response.trailers.append("X-Sum: 1\r\n")
            loop.upstreams[forwarded.upstream].response.framing = framing
            loop.upstreams[forwarded.upstream].response.keepsAlive = true
            loop.context.scratch.pending[forwarded.exchange].append("left")
            loop.finishResponse(forwarded.upstream)
        }
        let text = forwarded.client.end.text()
        #expect(text == expected)
        #expect(bench.idle() == [forwarded.upstream] && bench.phase(forwarded.upstream) == .idle)
        #expect(!bench.isAlive(forwarded.exchange) && bench.phase(forwarded.downstream) == .head)
    }

    @Test func `a response to a client that left closes both connections`() throws {
        let bench = try LoopBench()
        let forwarded = bench.forward()
        forwarded.client.end.leave()
        bench.run { loop in
            loop.exchanges[forwarded.exchange].response.start(status: 200, closes: false)
            loop.upstreams[forwarded.upstream].response.keepsAlive = true
            loop.context.scratch.pending[forwarded.exchange].append("left")
            loop.finishResponse(forwarded.upstream)
        }
        #expect(!bench.isAlive(forwarded.downstream) && !bench.isAlive(forwarded.upstream) && bench.idle().isEmpty)
        #expect(bench.counted().reasons == ["request.client_left": 1] && bench.requests() == ["api 200 1"])
    }

    @Test func `100 Continue is sent without the gateway's fields`() throws {
        let bench = try LoopBench()
        let client = bench.openClient()
        let exchange = bench.begin(BenchText.post(5), on: client.downstream)
        bench.run { loop in
            loop.context.scratch.pending[exchange].append("left")
            loop.sendContinue(exchange)
        }
        let text = client.end.text()
        #expect(text == "HTTP/1.1 100 Continue\r\n\r\n" && bench.pending(exchange).isEmpty && bench.isAlive(exchange))
    }

    @Test func `a gRPC call is ended by its reason, and leaves its endpoint`() throws {
        let bench = try LoopBench()
        let forwarded = bench.forward()
        bench.run { loop in
            loop.exchanges[forwarded.exchange].response.start(status: 200, closes: false)
            loop.exchanges[forwarded.exchange].response.trailers.append("x: 1\r\n")
            loop.endGRPCCall(forwarded.exchange, .credentialInvalid("auth.credential_expired"))
        }
        let trailers = bench.run { $0.exchanges[forwarded.exchange].response.trailers.array }
        #expect(String(decoding: trailers, as: UTF8.self) == "grpc-status: 16\r\ngrpc-message: credential_invalid\r\n")
        #expect(!bench.isAlive(forwarded.exchange) && !bench.isAlive(forwarded.upstream))
        #expect(bench.counted().reasons == ["auth.credential_expired": 1])
    }
}
