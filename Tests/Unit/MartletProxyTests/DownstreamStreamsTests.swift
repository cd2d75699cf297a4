import MartletConfig
import MartletCore
import MartletHTTP
import MartletHTTP2
import MartletResponder
import MartletTesting
import Testing

@testable import MartletDecisions
@testable import MartletProxy

/// Requests and responses on streams of HTTP/2 connections of clients.
@Suite struct DownstreamStreamsTests {
    /// A connection of a client that uses HTTP/2, and that client's side of the protocol. Frames are passed on without
    /// the socket.
    private final class Client {
        let bench: LoopBench
        let end: BenchClient
        let streams: DownstreamHTTP2State
        private let session: HTTP2Session

        var connection: Handle<DownstreamConnection> { end.downstream }

        init() throws {
            let bench = try LoopBench()
            let end = bench.openClient()
            bench.run { $0.downstreams.startHTTP2(end.downstream, &$0.context) }
            let lent = bench.run { $0.downstreams[end.downstream].streams }
            streams = try #require(lent)
            session = try HTTP2Session.client(HTTP2Options())
            self.bench = bench
            self.end = end
            _ = receive()
        }

        deinit { session.free() }

        /// Opens a stream with a request; nothing of it is routed.
        func request(_ head: String = BenchText.get, ends: Bool = true) throws -> Handle<DownstreamConnection> {
            let text = Array(head.utf8)
            let submitted = unsafe text.withUnsafeBufferPointer {
                unsafe session.submitRequest($0, isSecure: false, ends: ends, acceptsTrailers: true)
            }
            let id = try #require(submitted)
            let received = try #require(send().first)
            let stream = bench.run { [connection, streams] in
                $0.downstreams.allocateStream(id, of: connection, streams, &$0.context)
            }
            _ = bench.begin(received, on: stream)
            return stream
        }

        /// Passes the client's frames to the loop; returns the heads of requests.
        func send() -> [String] {
            var frames = ByteBuffer()
            session.takeOutput(into: &frames, upTo: 1 << 20)
            while session.nextEvent() != nil {}
            _ = unsafe streams.session.receive(frames.bytes, now: LoopBench.start)
            var heads: [String] = []
            while let event = streams.session.nextEvent() {
                guard case .head(let id, _) = event else { continue }
                var text = ByteBuffer()
                streams.session.takeHead(id, into: &text)
                heads.append(String(decoding: text.array, as: UTF8.self))
            }
            return heads
        }

        /// Passes the loop's frames to the client; returns what it gets of them, as words such as `data 1 hello`.
        func receive() -> [String] {
            var frames = ByteBuffer()
            streams.session.takeOutput(into: &frames, upTo: 1 << 20)
            while streams.session.nextEvent() != nil {}
            let bytes = frames.array
            return unsafe bytes.withUnsafeBufferPointer { bytes in
                _ = unsafe session.receive(bytes, now: 1)
                var words: [String] = []
                while let event = session.nextEvent() {
                    switch event {
                    case .head(let stream, let ends): words.append("head \(stream) \(status())\(ends ? " ends" : "")")
                    case .interim(let stream): words.append("interim \(stream) \(status())")
                    case .data(let stream, let start, let count):
                        let text = unsafe String(decoding: bytes[start..<start + count], as: UTF8.self)
                        words.append("data \(stream) \(text)")
                    case .trailers(let stream):
                        let text = unsafe String(decoding: session.headText, as: UTF8.self)
                        words.append("trailers \(stream) \(text)")
                    case .end(let stream): words.append("end \(stream)")
                    case .closed(let stream, let code): words.append("closed \(stream) \(code.rawValue)")
                    case .goAway: words.append("goaway")
                    case .drained, .refused: words.append("other")
                    }
                }
                return words
            }
        }

        private func status() -> String {
            let text = unsafe String(decoding: session.headText, as: UTF8.self)
            return String(text.dropFirst(9).prefix(3))
        }

        func exchange(of stream: Handle<DownstreamConnection>) -> Handle<Exchange> {
            bench.run { $0.downstreams[stream].exchange }
        }
    }

    // MARK: Beginning

    @Test func `a connection with HTTP/2 is counted, and has frames to write`() throws {
        let client = try Client()
        let kind = client.bench.run { [connection = client.connection] in $0.downstreams[connection].kind }
        #expect(kind == .http2 && client.bench.phase(client.connection) == .frames)
        #expect(client.bench.counted().http2.connections == 1 && client.bench.dirty() == ["downstream 0"])
    }

    @Test func `HTTP/2 begins with the first bytes in clear text, where it is offered`() throws {
        let bench = try LoopBench()
        var rules = ListenerRules()
        let other = bench.openClient(rules: rules)
        rules.offersHTTP2 = true
        let client = bench.openClient(rules: rules)
        let results = bench.run { loop in
            var results = [
                loop.downstreams.mayBecomeHTTP2(other.downstream), loop.downstreams.mayBecomeHTTP2(client.downstream),
            ]
            loop.downstreams[client.downstream].origin.rules.isSecure = true
            results.append(loop.downstreams.mayBecomeHTTP2(client.downstream))
            loop.downstreams[client.downstream].origin.rules.isSecure = false
            loop.downstreams[client.downstream].reader.requests = 1
            return results + [loop.downstreams.mayBecomeHTTP2(client.downstream)]
        }
        #expect(results == [false, true, false, false])
    }

    @Test func `a stream is like a connection with one request`() throws {
        let client = try Client()
        let bench = client.bench
        let stream = try client.request()
        let (kind, id, fd, address) = bench.run {
            (
                $0.downstreams[stream].kind, $0.downstreams[stream].stream.id, $0.downstreams[stream].transport.fd,
                $0.downstreams[stream].origin.address.bytes
            )
        }
        let requests = bench.run { [connection = client.connection] in $0.downstreams[connection].reader.requests }
        #expect(kind == .stream && id == 1 && fd == -1 && address == BenchAddress.client && requests == 1)
        let (slot, idleSince) = (client.streams.slots[1], client.streams.idleSince)
        #expect(slot == stream.index && idleSince == .max)
        #expect(bench.counted().http2.streams == 1 && bench.phase(stream) == .exchange)
        let isStream = bench.run { [exchange = client.exchange(of: stream)] in $0.exchanges[exchange].isStream }
        #expect(isStream)
    }

    // MARK: Responses

    @Test func `a rejection is a head and a body, after which the stream may close`() throws {
        let client = try Client()
        let stream = try client.request()
        let exchange = client.exchange(of: stream)
        client.bench.run { $0.reject(exchange, .noRoute) }
        let body = BenchText.problemBody(404, "Not Found", "no_route")
        #expect(client.receive() == ["head 1 404", "data 1 \(body)", "end 1", "closed 1 0"])
        #expect(!client.bench.isAlive(exchange) && client.bench.isAlive(stream))
        #expect(client.bench.phase(stream) == .head && client.bench.due(stream) == 30_000)
        client.bench.run { $0.downstreamStreamClosed(stream) }
        let open = client.streams.slots.count
        #expect(!client.bench.isAlive(stream) && open == 0)
        #expect(client.bench.due(client.connection) == 75_000 && client.bench.counted().http2.resets == 0)
    }

    @Test func `the connection is not closed by the response to a stream`() throws {
        let client = try Client()
        let stream = try client.request(BenchText.post(5), ends: false)
        let exchange = client.exchange(of: stream)
        client.bench.run { $0.reject(exchange, .bodyTooLarge) }
        let words = client.receive()
        // The rest of the request is not needed (RFC 9113 §8.1).
        #expect(words.first == "head 1 413" && words.last == "closed 1 0")
        #expect(client.bench.isAlive(client.connection))
    }

    @Test func `a response that is truncated resets its stream`() throws {
        let client = try Client()
        let stream = try client.request()
        let exchange = client.exchange(of: stream)
        client.bench.run { loop in
            loop.exchanges[exchange].response.start(status: 200, closes: false)
            loop.context.scratch.pending[exchange].append("HTTP/1.1 200 OK\r\n\r\n")
            loop.exchanges.sendStreamHead(exchange, ends: false, &loop.downstreams, &loop.context)
            loop.fail(exchange, .upstreamInvalid("upstream.truncated"))
        }
        #expect(client.receive().last == "closed 1 2" && !client.bench.isAlive(stream))
        #expect(client.bench.isAlive(client.connection) && client.bench.requests() == ["- 200 1"])
    }

    @Test func `100 Continue is a head of its own`() throws {
        let client = try Client()
        let stream = try client.request(BenchText.post(5), ends: false)
        let exchange = client.exchange(of: stream)
        client.bench.run { $0.sendContinue(exchange) }
        #expect(client.receive() == ["interim 1 100"])
    }

    @Test func `a response ends with its trailers`() throws {
        let client = try Client()
        let stream = try client.request()
        let exchange = client.exchange(of: stream)
        client.bench.run { loop in
            loop.context.scratch.pending[exchange].append("HTTP/1.1 200 OK\r\n\r\n")
            loop.exchanges.sendStreamHead(exchange, ends: false, &loop.downstreams, &loop.context)
            loop.exchanges[exchange].response.trailers.append("x-sum: 1\r\n")
            loop.exchanges[exchange].finishStream(&loop.downstreams, &loop.context)
            loop.exchanges[exchange].finishStream(&loop.downstreams, &loop.context)
        }
        #expect(client.receive() == ["head 1 200", "trailers 1 x-sum: 1\r\n", "end 1", "closed 1 0"])
    }

    @Test func `a gRPC call ends with its status`() throws {
        let client = try Client()
        let stream = try client.request()
        let exchange = client.exchange(of: stream)
        client.bench.run { loop in
            loop.exchanges[exchange].response.start(status: 200, closes: false)
            loop.context.scratch.pending[exchange].append("HTTP/1.1 200 OK\r\n\r\n")
            loop.exchanges.sendStreamHead(exchange, ends: false, &loop.downstreams, &loop.context)
            loop.endGRPCCall(exchange, .credentialInvalid("auth.credential_expired"))
        }
        let trailers = "grpc-status: 16\r\ngrpc-message: credential_invalid\r\n"
        #expect(client.receive() == ["head 1 200", "trailers 1 \(trailers)", "end 1", "closed 1 0"])
    }

    @Test(arguments: [(Watermark.streamHigh, false), (Watermark.streamHigh + 1, true)])
    func `an endpoint is paused while too much waits for the client's window`(_ count: Int, _ expected: Bool) throws {
        let client = try Client()
        let bench = client.bench
        let stream = try client.request()
        let exchange = client.exchange(of: stream)
        let server = bench.openServer()
        bench.run { loop in
            loop.exchanges[exchange].forwarding.cluster = ClusterIndex(rawValue: 0)
            loop.attach(exchange, to: server.upstream)
            loop.context.scratch.pending[exchange].append("HTTP/1.1 200 OK\r\n\r\n")
            loop.exchanges.sendStreamHead(exchange, ends: false, &loop.downstreams, &loop.context)
        }
        bench.write(Payload.bytes(count), to: stream)
        let isPaused = bench.run { $0.upstreams[server.upstream].isPaused }
        bench.run { $0.downstreams.streamDrained(stream, &$0.exchanges, &$0.upstreams, &$0.context) }
        let isStillPaused = bench.run { $0.upstreams[server.upstream].isPaused }
        #expect(isPaused == expected && !isStillPaused && bench.ready() == (expected ? ["upstream 0"] : []))
    }

    // MARK: Ends

    @Test func `a client that resets its stream frees the endpoint`() throws {
        let client = try Client()
        let bench = client.bench
        let stream = try client.request()
        let exchange = client.exchange(of: stream)
        let server = bench.openServer()
        bench.run { loop in
            loop.exchanges[exchange].forwarding.cluster = ClusterIndex(rawValue: 0)
            loop.attach(exchange, to: server.upstream)
            loop.downstreamStreamClosed(stream)
        }
        #expect(!bench.isAlive(stream) && !bench.isAlive(exchange) && !bench.isAlive(server.upstream))
        #expect(bench.counted().http2.resets == 1 && bench.requests() == ["- 499 1"] && bench.active() == 0)
    }

    @Test func `a connection that ends abandons its streams`() throws {
        let client = try Client()
        let streams = try [client.request(), client.request()]
        client.bench.run { [connection = client.connection] in $0.close(downstream: connection) }
        #expect(streams.map { client.bench.isAlive($0) } == [false, false])
        #expect(client.bench.requests() == ["- 499 2"] && client.bench.connections.count == 0)
    }

    @Test func `a timeout without streams sends GOAWAY, one within a head ends the connection`() throws {
        let client = try Client()
        let connection = client.connection
        client.bench.run { $0.framesTimedOut(connection) }
        let closes = client.bench.run { $0.downstreams[connection].ending.closesAfterFlush }
        #expect(closes && client.receive().contains("goaway"))
        let other = try Client()
        _ = try other.request()
        other.streams.headStartedAt = LoopBench.start
        other.bench.run { [connection = other.connection] in $0.framesTimedOut(connection) }
        #expect(other.bench.requests() == ["- 499 1"] && other.receive().contains("goaway"))
    }
}
