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

/// Requests as streams of HTTP/2 connections to endpoints.
@Suite struct UpstreamStreamsTests {
    /// A connection to an endpoint that uses HTTP/2, and that endpoint's side of the protocol.
    private final class Endpoint {
        let bench: LoopBench
        let server: BenchServer
        private let session: HTTP2Session

        var connection: Handle<UpstreamConnection> { server.upstream }

        init(isEstablished: Bool = true) throws {
            let bench = try LoopBench { $0.endpoints = [.h2c(host: "upstream.test", port: 80)] }
            let server = bench.openServer(kind: .http2, connected: false)
            session = try HTTP2Session.server(HTTP2Options())
            self.bench = bench
            self.server = server
            let isOpen = bench.run { loop in
                let isOpen = loop.upstreams.openSession(server.upstream, &loop.context)
                loop.upstreams.directory.endpoints[0].connections.append(server.upstream)
                if isEstablished { loop.upstreams[server.upstream].phase = .frames }
                return isOpen
            }
            precondition(isOpen, "no session")
        }

        deinit { session.free() }

        /// Writes the loop's frames; returns what the endpoint gets of them, as words such as `data 1 hello`.
        func receive() -> [String] {
            bench.withResponses { [connection] in $0.writeFrames(upstream: connection, &$1) }
            let frames = server.end.bytes()
            return unsafe frames.withUnsafeBufferPointer { frames in
                _ = unsafe session.receive(frames, now: 1)
                var words: [String] = []
                while let event = session.nextEvent() {
                    switch event {
                    case .head(let stream, let ends):
                        var text = ByteBuffer()
                        session.takeHead(stream, into: &text)
                        let line = String(decoding: text.array.prefix { $0 != 0x0D }, as: UTF8.self)
                        words.append("head \(stream) \(line)\(ends ? " ends" : "")")
                    case .data(let stream, let start, let count):
                        let text = unsafe String(decoding: frames[start..<start + count], as: UTF8.self)
                        words.append("data \(stream) \(text)")
                    case .trailers(let stream): words.append("trailers \(stream)")
                    case .end(let stream): words.append("end \(stream)")
                    case .closed(let stream, let code): words.append("closed \(stream) \(code.rawValue)")
                    case .interim, .drained, .refused, .goAway: words.append("other")
                    }
                }
                return words
            }
        }

        /// Responds on a stream; the frames are read by the loop.
        func respond(_ stream: Int32, _ head: String, _ body: String? = nil) {
            let (head, body) = (Array(head.utf8), body.map { Array($0.utf8) })
            unsafe head.withUnsafeBufferPointer { unsafe session.submitHead(stream, $0, ends: body == nil) }
            if let body {
                unsafe body.withUnsafeBufferPointer { unsafe session.send(stream, $0) }
                unsafe session.end(stream, trailers: UnsafeBufferPointer(start: nil, count: 0))
            }
            send()
        }

        func reset(_ stream: Int32, _ code: HTTP2Code) {
            session.reset(stream, code)
            send()
        }

        func goAway() {
            session.goAway()
            session.goAway()
            send()
        }

        private func send() {
            var frames = ByteBuffer()
            session.takeOutput(into: &frames, upTo: 1 << 20)
            while session.nextEvent() != nil {}
            server.end.send(frames.array)
            bench.event(connection)
        }

        /// A request of a new client.
        func request(_ head: String = BenchText.get) -> (exchange: Handle<Exchange>, client: BenchClient) {
            let client = bench.openClient()
            return (bench.admit(head, on: client.downstream), client)
        }

        func stream(of exchange: Handle<Exchange>) -> Handle<UpstreamConnection> {
            bench.run { $0.exchanges[exchange].upstream }
        }

        /// Open and waiting streams of the connection.
        var streams: [Int] {
            bench.run { [connection] loop in
                guard let streams = loop.upstreams[connection].streams else { return [] }
                return [streams.slots.count, streams.waiting.count]
            }
        }

        var isPooled: Bool {
            bench.run { [connection] in $0.upstreams.directory.endpoints[0].connections == [connection] }
        }
    }

    private static let unavailable = BenchText.problem(502, "Bad Gateway", "upstream_unavailable")

    // MARK: Requests and responses

    @Test func `a request is a stream of a connection with capacity`() throws {
        let endpoint = try Endpoint()
        let bench = endpoint.bench
        let (exchange, client) = endpoint.request()
        let stream = endpoint.stream(of: exchange)
        let (kind, id, parent) = bench.run {
            ($0.upstreams[stream].kind, $0.upstreams[stream].stream.id, $0.upstreams[stream].stream.connection)
        }
        #expect(kind == .stream && id == 1 && parent == endpoint.connection && endpoint.streams == [1, 0])
        #expect(bench.phase(stream) == .awaitingHead && bench.due(stream) == 20_000)
        #expect(bench.due(endpoint.connection) == nil && bench.active() == 1)
        let received = endpoint.receive()
        #expect(received == ["head 1 GET /api/x HTTP/1.1 ends"])
        endpoint.respond(1, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "hello")
        let text = client.end.text()
        #expect(text == BenchText.head("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n") + "hello")
        #expect(!bench.isAlive(stream) && endpoint.streams == [0, 0] && endpoint.isPooled)
        #expect(bench.due(endpoint.connection) == 60_000 && bench.active() == 0)
        #expect(bench.phase(client.downstream) == .head && bench.requests() == ["api 200 1"])
    }

    @Test func `a response of a head alone has a length for the client`() throws {
        let endpoint = try Endpoint()
        let (_, client) = endpoint.request()
        _ = endpoint.receive()
        endpoint.respond(1, "HTTP/1.1 200 OK\r\n\r\n")
        let text = client.end.text()
        #expect(text == BenchText.head("HTTP/1.1 200 OK\r\n", own: "Content-Length: 0\r\n"))
    }

    @Test func `a body is sent in frames, and ends with the request`() throws {
        let endpoint = try Endpoint()
        let bench = endpoint.bench
        let (exchange, _) = endpoint.request(BenchText.chunked)
        bench.receive("2\r\nhe\r\n", for: exchange)
        let first = endpoint.receive()
        bench.receive("3\r\nllo\r\n0\r\n\r\n", for: exchange)
        let second = endpoint.receive()
        let stream = endpoint.stream(of: exchange)
        #expect(first == ["head 1 POST /api/x HTTP/1.1", "data 1 he"] && second == ["data 1 llo", "end 1"])
        #expect(bench.due(stream) == 20_000 && bench.output(stream).isEmpty)
    }

    @Test func `a stream that its request leaves is reset`() throws {
        let endpoint = try Endpoint()
        let (_, client) = endpoint.request()
        _ = endpoint.receive()
        endpoint.bench.run { $0.abandon(client.downstream) }
        let received = endpoint.receive()
        #expect(received == ["closed 1 8"] && endpoint.streams == [0, 0] && endpoint.bench.active() == 0)
    }

    // MARK: Waiting

    @Test func `streams wait for the connection`() throws {
        let endpoint = try Endpoint(isEstablished: false)
        let bench = endpoint.bench
        let exchanges = [endpoint.request().exchange, endpoint.request().exchange]
        let waiting = endpoint.streams
        let due = bench.due(endpoint.stream(of: exchanges[0]))
        bench.event(endpoint.connection, .writable)
        let received = endpoint.receive()
        #expect(waiting == [0, 2] && due == 2_000 && endpoint.streams == [2, 0])
        #expect(received == ["head 1 GET /api/x HTTP/1.1 ends", "head 3 GET /api/x HTTP/1.1 ends"])
        #expect(exchanges.map { bench.due(endpoint.stream(of: $0)) } == [20_000, 20_000])
    }

    @Test func `a connection that is not established fails the streams that wait for it`() throws {
        let endpoint = try Endpoint(isEstablished: false)
        let bench = endpoint.bench
        let clients = [endpoint.request().client, endpoint.request().client]
        bench.event(endpoint.connection, .failed)
        #expect(clients[0].end.text() == Self.unavailable)
        #expect(clients[1].end.text() == BenchText.problem(502, "Bad Gateway", "upstream_unavailable", request: 2))
        #expect(!bench.isAlive(endpoint.connection) && !endpoint.isPooled && bench.active() == 0)
        #expect(bench.counted().reasons == ["upstream.refused": 2])
    }

    @Test func `so many streams may wait for a connection`() throws {
        let endpoint = try Endpoint(isEstablished: false)
        let server = endpoint.server
        let capacity = endpoint.bench.run { loop in
            let streams = loop.upstreams[server.upstream].streams
            var capacity: [Bool] = []
            for count in [UpstreamConnections.waitingLimit - 1, UpstreamConnections.waitingLimit] {
                streams?.waiting = [Handle<UpstreamConnection>](repeating: .none, count: count)
                capacity.append(loop.upstreams.hasStreamCapacity(server.upstream))
            }
            streams?.waiting = []
            return capacity
        }
        #expect(capacity == [true, false])
    }

    // MARK: Failures

    @Test func `a stream that was refused is sent again`() throws {
        let endpoint = try Endpoint()
        let (exchange, client) = endpoint.request()
        _ = endpoint.receive()
        endpoint.reset(1, .refusedStream)
        let received = endpoint.receive()
        let attempts = endpoint.bench.run { $0.exchanges[exchange].forwarding.attempts }
        #expect(received == ["head 3 GET /api/x HTTP/1.1 ends"] && attempts == 2 && client.end.state == .open)
    }

    @Test func `a stream that was found malformed is not sent again`() throws {
        let endpoint = try Endpoint()
        let (_, client) = endpoint.request()
        _ = endpoint.receive()
        endpoint.reset(1, .protocolError)
        let text = client.end.text()
        #expect(text == BenchText.problem(502, "Bad Gateway", "upstream_invalid"))
        #expect(endpoint.bench.counted().reasons == ["upstream.stream_malformed": 1])
    }

    @Test func `a connection that breaks fails its streams`() throws {
        let endpoint = try Endpoint()
        let bench = endpoint.bench
        let (_, client) = endpoint.request("POST /api/x HTTP/1.1\r\nHost: a\r\n\r\n")
        _ = endpoint.receive()
        bench.withResponses { $0.connectionBroke(endpoint.connection, "upstream.reset", &$1) }
        let text = client.end.text()
        #expect(text == Self.unavailable && bench.counted().reasons == ["upstream.reset": 1])
        #expect(!bench.isAlive(endpoint.connection) && !endpoint.isPooled && bench.failures() == 1)
    }

    @Test func `a connection that the endpoint closes gets no more requests`() throws {
        let endpoint = try Endpoint()
        let (exchange, client) = endpoint.request()
        _ = endpoint.receive()
        endpoint.goAway()
        #expect(!endpoint.isPooled && endpoint.bench.isAlive(endpoint.connection) && endpoint.bench.isAlive(exchange))
        endpoint.respond(1, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "hello")
        #expect(client.end.text().hasSuffix("\r\n\r\nhello"))
    }

    // MARK: Timeouts

    @Test(arguments: [(0, false), (1, true)] as [(Int64, Bool)])
    func `a connection that was silent for a response timeout is not used again`(
        _ lastFrameAt: Int64, _ isPooled: Bool
    ) throws {
        let endpoint = try Endpoint()
        let (server, bench) = (endpoint.server, endpoint.bench)
        let (exchange, client) = endpoint.request()
        bench.run { $0.upstreams[server.upstream].streams?.lastFrameAt = LoopBench.start + lastFrameAt }
        bench.expire(endpoint.stream(of: exchange))
        let text = client.end.text()
        #expect(text == BenchText.problem(504, "Gateway Timeout", "upstream_timeout"))
        #expect(endpoint.isPooled == isPooled && bench.isAlive(endpoint.connection))
    }

    @Test func `a connection without streams is closed after its timeout`() throws {
        let endpoint = try Endpoint()
        let bench = endpoint.bench
        let (exchange, client) = endpoint.request()
        _ = endpoint.receive()
        bench.run { $0.abandon(client.downstream) }
        bench.expire(endpoint.connection)
        #expect(!bench.isAlive(endpoint.connection) && !endpoint.isPooled && !bench.isAlive(exchange))
    }

    @Test func `retired connections are closed, those with streams later`() throws {
        let idle = try Endpoint()
        let busy = try Endpoint()
        _ = busy.request()
        for endpoint in [idle, busy] {
            endpoint.bench.run { $0.upstreams.retireConnections(of: EndpointIndex(rawValue: 0), &$0.context) }
            #expect(!endpoint.isPooled)
        }
        #expect(!idle.bench.isAlive(idle.connection) && busy.bench.isAlive(busy.connection))
    }
}
