import MartletCore
import MartletHTTP
import MartletIO
import MartletResponder
import MartletTesting
import Testing

@testable import MartletDecisions
@testable import MartletProxy

/// Responses as they arrive from an endpoint over HTTP/1.
@Suite struct ResponseReaderTests {
    private static let hello = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n"
    private static let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    static let hints = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
    private static let endpoint = "upstream=unix:/nonexistent/martlet-1"

    /// What a client gets when the endpoint sends these parts, one read each.
    private func response(_ parts: [String], to head: String = BenchText.get) throws -> String {
        let bench = try LoopBench()
        let forwarded = bench.forward(head)
        for part in parts {
            forwarded.server.end.send(part)
            bench.event(forwarded.upstream)
        }
        return forwarded.client.end.text()
    }

    // MARK: Complete responses

    @Test func `a response is forwarded, and both connections carry the next request`() throws {
        let bench = try LoopBench()
        let forwarded = bench.forward()
        bench.advance(milliseconds: 7)
        forwarded.server.end.send(Self.hello + "\r\nhello")
        bench.event(forwarded.upstream)
        let text = forwarded.client.end.text()
        #expect(text == BenchText.head(Self.hello) + "hello")
        #expect(!bench.isAlive(forwarded.exchange) && bench.phase(forwarded.downstream) == .head)
        #expect(bench.due(forwarded.downstream) == 75_007)
        #expect(bench.idle() == [forwarded.upstream] && bench.due(forwarded.upstream) == 60_007)
        #expect(bench.active() == 0 && forwarded.server.end.state == .open)
        #expect(bench.log() == ["192.0.2.1 GET a/api/x 200 ok route=api \(Self.endpoint) in=0 out=5 us=7000"])
        let next = bench.admit(BenchText.get, on: forwarded.downstream)
        let (upstream, served) = bench.run {
            ($0.exchanges[next].upstream, $0.upstreams[forwarded.upstream].served)
        }
        #expect(upstream == forwarded.upstream && served == 1)
        forwarded.server.end.send(Self.hello + "\r\nagain")
        bench.event(forwarded.upstream)
        let again = forwarded.client.end.text()
        #expect(again == BenchText.head(Self.hello, request: 2) + "again")
    }

    @Test(arguments: [1, 2, 17, 40, 41, 43])
    func `a response may arrive in parts`(_ size: Int) throws {
        let whole = Array((Self.hello + "\r\nhello").utf8)
        let parts = [
            String(decoding: whole[..<size], as: UTF8.self), String(decoding: whole[size...], as: UTF8.self),
        ]
        let text = try response(parts)
        #expect(text == BenchText.head(Self.hello) + "hello")
    }

    @Test(
        arguments: [
            ("GET /api/x HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 204 No Content\r\n", ""),
            ("HEAD /api/x HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n", ""),
            ("GET /api/x HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n", ""),
            ("GET /api/x HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n", ""),
        ] as [(String, String, String)])
    func `a response without a body ends with its head`(_ head: String, _ lines: String, _ body: String) throws {
        let text = try response([lines + "\r\n"], to: head)
        #expect(text == BenchText.head(lines) + body)
    }

    @Test func `an endpoint that closes its connection is not used again`() throws {
        let bench = try LoopBench()
        let forwarded = bench.forward()
        forwarded.server.end.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello")
        bench.event(forwarded.upstream)
        let text = forwarded.client.end.text()
        #expect(text == BenchText.head(Self.hello) + "hello")
        #expect(!bench.isAlive(forwarded.upstream) && bench.idle().isEmpty && bench.isAlive(forwarded.downstream))
    }

    @Test func `bytes after a response close the endpoint's connection`() throws {
        let bench = try LoopBench()
        let forwarded = bench.forward()
        forwarded.server.end.send(Self.hello + "\r\nhelloHTTP/1.1 200 OK\r\n")
        bench.event(forwarded.upstream)
        let text = forwarded.client.end.text()
        #expect(text == BenchText.head(Self.hello) + "hello")
        #expect(!bench.isAlive(forwarded.upstream) && bench.idle().isEmpty && bench.isAlive(forwarded.downstream))
    }

    @Test func `an idle connection that becomes readable is closed`() throws {
        let bench = try LoopBench()
        let server = bench.pool()
        server.end.send("x")
        bench.event(server.upstream)
        #expect(!bench.isAlive(server.upstream) && bench.idle().isEmpty)
    }

    // MARK: Chunks

    @Test func `chunks are decoded and written anew`() throws {
        let text = try response([Self.chunked + "5\r\nhe", "llo\r\n", "0\r\n\r\n"])
        let head = BenchText.head("HTTP/1.1 200 OK\r\n", own: "Transfer-Encoding: chunked\r\n")
        #expect(text == head + "2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n")
    }

    @Test func `trailers follow the last chunk`() throws {
        let text = try response([Self.chunked + "0\r\nX-Sum: 1\r\nContent-Length: 5\r\n\r\n"])
        let head = BenchText.head("HTTP/1.1 200 OK\r\n", own: "Transfer-Encoding: chunked\r\n")
        #expect(text == head + "0\r\nX-Sum: 1\r\n\r\n")
    }

    @Test func `a client with HTTP 1.0 gets chunks as a body that ends with the connection`() throws {
        let bench = try LoopBench()
        let forwarded = bench.forward("GET /api/x HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n")
        forwarded.server.end.send(Self.chunked + "5\r\nhello\r\n0\r\nX-Sum: 1\r\n\r\n")
        bench.event(forwarded.upstream)
        let text = forwarded.client.end.text()
        #expect(text == BenchText.head("HTTP/1.1 200 OK\r\n", own: "Connection: close\r\n") + "hello")
        #expect(!bench.isAlive(forwarded.downstream) && forwarded.client.end.state == .closed)
        #expect(bench.idle() == [forwarded.upstream])
    }

    @Test func `invalid chunks in the first read are rejected`() throws {
        let bench = try LoopBench()
        let forwarded = bench.forward()
        forwarded.server.end.send(Self.chunked + "5\r\nhello\r\nx\r\n")
        bench.event(forwarded.upstream)
        let text = forwarded.client.end.text()
        #expect(text == BenchText.problem(502, "Bad Gateway", "upstream_invalid", closes: true))
        #expect(bench.counted().reasons == ["upstream.bad_chunk": 1] && bench.failures() == 1)
        #expect(!bench.isAlive(forwarded.upstream) && !bench.isAlive(forwarded.downstream))
    }

    @Test func `invalid chunks after the head was sent reset the connection`() throws {
        let bench = try LoopBench()
        let forwarded = bench.forward()
        for part in [Self.chunked + "5\r\nhello\r\n", "x\r\n"] {
            forwarded.server.end.send(part)
            bench.event(forwarded.upstream)
        }
        let text = forwarded.client.end.text()
        #expect(text.hasSuffix("\r\n\r\n5\r\nhello\r\n") && !bench.isAlive(forwarded.downstream))
        #expect(
            bench.log() == ["192.0.2.1 GET a/api/x 200 upstream.bad_chunk route=api \(Self.endpoint) in=0 out=5 us=0"])
    }

    // MARK: Until the end

    @Test func `a body until the end of the connection becomes chunks`() throws {
        let bench = try LoopBench()
        let forwarded = bench.forward()
        forwarded.server.end.send("HTTP/1.1 200 OK\r\n\r\nhello")
        bench.event(forwarded.upstream)
        let isAlive = bench.isAlive(forwarded.exchange)
        forwarded.server.end.finish()
        bench.event(forwarded.upstream, [.readable, .readClosed])
        let text = forwarded.client.end.text()
        let head = BenchText.head("HTTP/1.1 200 OK\r\n", own: "Transfer-Encoding: chunked\r\n")
        #expect(isAlive && text == head + "5\r\nhello\r\n0\r\n\r\n")
        #expect(!bench.isAlive(forwarded.upstream) && bench.isAlive(forwarded.downstream))
        #expect(bench.requests() == ["api 200 1"] && bench.counted().reasons.isEmpty)
    }

    @Test func `what is read with the end is forwarded, too`() throws {
        let bench = try LoopBench()
        let forwarded = bench.forward()
        forwarded.server.end.send("HTTP/1.1 200 OK\r\n\r\nhello")
        forwarded.server.end.finish()
        bench.event(forwarded.upstream, [.readable, .readClosed])
        let text = forwarded.client.end.text()
        #expect(text.hasSuffix("\r\n\r\n5\r\nhello\r\n0\r\n\r\n") && !bench.isAlive(forwarded.exchange))
    }

    // MARK: Interim responses

    @Test func `100 Continue is forwarded once to a client that waits for it`() throws {
        let interim = "HTTP/1.1 100 Continue\r\n\r\n"
        let head = BenchText.post(5, fields: "Expect: 100-continue\r\n")
        let text = try response([interim + interim], to: head)
        #expect(text == interim)
    }

    @Test(arguments: [
        ("HTTP/1.1 100 Continue\r\n\r\n", BenchText.get, ""),
        (ResponseReaderTests.hints, BenchText.get, ResponseReaderTests.hints),
        ("HTTP/1.1 103 Early Hints\r\n\r\n", "GET /api/x HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n", ""),
    ])
    func `interim responses go to clients that understand them`(
        _ interim: String, _ head: String, _ expected: String
    ) throws {
        let bench = try LoopBench()
        let forwarded = bench.forward(head)
        forwarded.server.end.send(interim)
        bench.event(forwarded.upstream)
        let text = forwarded.client.end.text()
        #expect(text == expected && bench.phase(forwarded.upstream) == .awaitingHead)
        #expect(bench.due(forwarded.upstream) == 20_000)
        forwarded.server.end.send(Self.hello + "\r\nhello")
        bench.event(forwarded.upstream)
        #expect(forwarded.client.end.text().hasSuffix("\r\n\r\nhello") && bench.requests() == ["api 200 1"])
    }

    @Test(arguments: [
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n",
        String(repeating: "HTTP/1.1 102 Processing\r\n\r\n", count: 2428),
    ])
    func `interim responses that were not requested, or too many of them, are rejected`(_ heads: String) throws {
        let bench = try LoopBench()
        let forwarded = bench.forward("GET /api/x HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n")
        forwarded.server.end.send(heads)
        bench.event(forwarded.upstream)
        let text = forwarded.client.end.text()
        #expect(text == BenchText.problem(502, "Bad Gateway", "upstream_invalid"))
        #expect(bench.counted().reasons == ["upstream.unexpected_interim_answer": 1] && bench.failures() == 1)
    }

    @Test func `a response that is not HTTP is rejected`() throws {
        let bench = try LoopBench()
        let forwarded = bench.forward()
        forwarded.server.end.send("SSH-2.0-OpenSSH_9.2\r\n")
        bench.event(forwarded.upstream)
        let text = forwarded.client.end.text()
        #expect(text == BenchText.problem(502, "Bad Gateway", "upstream_invalid"))
        #expect(bench.counted().reasons == ["upstream.bad_status_line": 1] && !bench.isAlive(forwarded.upstream))
    }

    // MARK: Early responses

    @Test func `a response before the end of the request closes both connections`() throws {
        let bench = try LoopBench()
        let forwarded = bench.forward(BenchText.post(100))
        forwarded.server.end.send(Self.hello + "\r\nhello")
        bench.event(forwarded.upstream)
        let text = forwarded.client.end.text()
        #expect(text == BenchText.head(Self.hello, own: "Connection: close\r\n") + "hello")
        #expect(bench.phase(forwarded.downstream) == .lingering && !bench.isAlive(forwarded.upstream))
    }

    // MARK: Long bodies

    @Test func `a long body waits for a slow client`() throws {
        let bench = try LoopBench()
        let payload = Payload.bytes(50_000)
        let forwarded = bench.forward()
        forwarded.server.end.send("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
        func isPaused() -> Bool { bench.run { $0.upstreams[forwarded.upstream].isPaused } }
        var count = 0
        while !isPaused(), count < 15 {
            forwarded.server.end.send(payload)
            bench.event(forwarded.upstream)
            count += 1
        }
        let unsent = bench.unsent(forwarded.downstream)
        #expect(unsent > Watermark.high && unsent <= Watermark.high + payload.count)
        forwarded.server.end.send("x")
        bench.event(forwarded.upstream)
        let isUnread = Socket.hasUnread(bench.run { $0.upstreams[forwarded.upstream].transport.fd })
        #expect(isUnread && bench.unsent(forwarded.downstream) == unsent)
    }
}
