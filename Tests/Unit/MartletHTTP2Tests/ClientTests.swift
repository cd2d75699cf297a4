import MartletHTTP
import MartletHTTP2
import Testing

/// An upstream's response on stream 1, and the expected event.
struct ResponseHeadCase: CustomTestStringConvertible, Sendable {
    let testDescription: String
    let fields: [(String, String)]
    var ends = true
    let text: String?

    init(_ name: String, _ fields: [(String, String)], ends: Bool = true, _ text: String?) {
        testDescription = name
        self.fields = fields
        self.ends = ends
        self.text = text?.replacing("\n", with: "\r\n")
    }

    static let all: [ResponseHeadCase] = [
        ResponseHeadCase("no body", [(":status", "204")], "HTTP/1.1 204 No Content\n\n"),
        ResponseHeadCase(
            "a body of a length", [(":status", "200"), ("content-length", "2")], ends: false,
            "HTTP/1.1 200 OK\nContent-Length: 2\n\n"),
        ResponseHeadCase(
            "a body of no length", [(":status", "200"), ("a", "b")], ends: false,
            "HTTP/1.1 200 OK\na: b\nTransfer-Encoding: chunked\n\n"),
        ResponseHeadCase(
            "204 that does not end immediately", [(":status", "204")], ends: false, "HTTP/1.1 204 No Content\n\n"),
        ResponseHeadCase("a status of no name", [(":status", "299")], "HTTP/1.1 299 Unknown\n\n"),
        ResponseHeadCase(
            "several cookies", [(":status", "200"), ("set-cookie", "a=1"), ("set-cookie", "b=2")],
            "HTTP/1.1 200 OK\nset-cookie: a=1\nset-cookie: b=2\n\n"),
        ResponseHeadCase("101", [(":status", "101")], nil),
        ResponseHeadCase("no status", [("a", "b")], nil),
        ResponseHeadCase("a status of two digits", [(":status", "20")], nil),
        ResponseHeadCase("a status with a letter", [(":status", "2x0")], nil),
        ResponseHeadCase("a status over 599", [(":status", "600")], nil),
        ResponseHeadCase("a status below 100", [(":status", "099")], nil),
        ResponseHeadCase("two statuses", [(":status", "200"), (":status", "200")], nil),
        ResponseHeadCase("a request's pseudo-header", [(":status", "200"), (":path", "/")], nil),
        ResponseHeadCase("a status behind a field", [("a", "b"), (":status", "200")], nil),
        ResponseHeadCase("connection", [(":status", "200"), ("connection", "close")], nil),
        ResponseHeadCase("transfer-encoding", [(":status", "200"), ("transfer-encoding", "chunked")], nil),
        ResponseHeadCase("upgrade", [(":status", "200"), ("upgrade", "h2c")], nil),
        ResponseHeadCase("an upper-case name", [(":status", "200"), ("Server", "x")], nil),
        ResponseHeadCase("a value with LF", [(":status", "200"), ("a", "b\nc: d")], nil),
        ResponseHeadCase("a value with a trailing space", [(":status", "200"), ("a", "b ")], nil),
        ResponseHeadCase(
            "two lengths", [(":status", "200"), ("content-length", "2"), ("content-length", "2")], ends: false, nil),
        ResponseHeadCase("a length and no body", [(":status", "200"), ("content-length", "2")], nil),
    ]
}

@Suite struct HTTP2ClientTests {
    @Test(arguments: ResponseHeadCase.all)
    func `an upstream's response becomes text or ends its stream, whole and byte by byte`(item: ResponseHeadCase) throws
    {
        for isSplit in [false, true] {
            let client = try HTTP2Session.establishedClient()
            let id = try #require(client.request("GET / HTTP/1.1\nHost: a\n\n"))
            _ = client.output()
            let bytes = Raw.headers(id, item.fields, flags: item.ends ? 5 : 4)
            let events = isSplit ? client.takeByByte(bytes).events : client.take(bytes).events
            let frames = Raw.frames(client.output())
            if let text = item.text {
                #expect(events.first == .head(id, text, ends: item.ends))
                #expect(frames.isEmpty)
            } else {
                #expect(events == [.other(.closed(stream: id, code: .protocolError))])
                #expect(frames.map(\.code) == [1])
                #expect(client.streams == 0)
            }
        }
    }

    @Test func `a response over the limits is rejected as the upstream's error`() throws {
        let client = try HTTP2Session.establishedClient()
        let id = try #require(client.request("GET / HTTP/1.1\nHost: a\n\n"))
        _ = client.output()
        let many = (0..<101).map { ("a\($0)", "b") }
        #expect(
            client.take(Raw.headers(id, [(":status", "200")] + many)).events == [
                .other(.refused(stream: id, .upstreamTooManyFields)), .other(.closed(stream: id, code: .cancel)),
            ])
    }

    @Test func `a response to HEAD may have a length`() throws {
        let client = try HTTP2Session.establishedClient()
        let id = try #require(client.request("HEAD / HTTP/1.1\nHost: a\n\n"))
        _ = client.output()
        #expect(
            client.take(Raw.headers(id, [(":status", "200"), ("content-length", "9")])).events.first
                == .head(id, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", ends: true))
    }

    @Test func `too many interim responses end the stream`() throws {
        let client = try HTTP2Session.establishedClient()
        let id = try #require(client.request("GET / HTTP/1.1\nHost: a\n\n"))
        _ = client.output()
        let events = client.take(
            (0..<40).flatMap { _ in
                Raw.headers(id, [(":status", "103"), ("link", String(repeating: "x", count: 2000))], flags: 4)
            }
        ).events
        #expect(events.count == 33 && events.last == .other(.closed(stream: id, code: .protocolError)))
    }

    @Test func `streams above the last one of GOAWAY may be tried again`() throws {
        let client = try HTTP2Session.establishedClient()
        let first = try #require(client.request("GET /1 HTTP/1.1\nHost: a\n\n"))
        let second = try #require(client.request("GET /2 HTTP/1.1\nHost: a\n\n"))
        _ = client.output()
        #expect(
            client.take(Raw.goAway(UInt32(first), 0)).events == [
                .other(.goAway(lastStream: first, code: .noError)),
                .other(.closed(stream: second, code: .refusedStream)),
            ])
        #expect(client.isGoingAway && !client.canOpenStream && !client.isFinished)
        #expect(client.request("GET /3 HTTP/1.1\nHost: a\n\n") == nil)
        #expect(client.take(Raw.headers(first, [(":status", "200")])).events.count == 2)
        #expect(client.isFinished)
    }

    @Test func `no more streams are opened than either side allows`() throws {
        var options = HTTP2Options()
        options.maximumConcurrentStreams = 5
        let client = try HTTP2Session.client(options)
        client.take(Raw.settings([(3, 2)]))
        #expect(client.request("GET / HTTP/1.1\nHost: a\n\n") == 1)
        #expect(client.request("GET / HTTP/1.1\nHost: a\n\n") == 3)
        #expect(!client.canOpenStream && client.request("GET / HTTP/1.1\nHost: a\n\n") == nil)
        client.take(Raw.settings([(3, 100)]))
        for _ in 0..<3 { #expect(client.request("GET / HTTP/1.1\nHost: a\n\n") != nil) }
        #expect(!client.canOpenStream)
        client.reset(1, .cancel)
        #expect(client.canOpenStream)
    }

    @Test func `a push ends the connection`() throws {
        let client = try HTTP2Session.establishedClient()
        let id = try #require(client.request("GET / HTTP/1.1\nHost: a\n\n"))
        _ = client.output()
        let push = RawFrame(type: 5, flags: 4, stream: id, payload: Raw.big(UInt32(2)) + Raw.block(HeadCase.get)).bytes
        #expect(!client.take(push).goesOn)
        #expect(Raw.frames(client.output()).last?.code == 1)
    }

    @Test func `a request that is no HTTP/1 text in origin form is not sent`() throws {
        let texts = [
            "", "GET / HTTP/1.1\n", "GET / HTTP/1.0\nHost: a\n\n", "GET  HTTP/1.1\nHost: a\n\n",
            "GET http://a/ HTTP/1.1\nHost: a\n\n", "GET / HTTP/1.1\n\n", "CONNECT a:1 HTTP/1.1\nHost: a\n\n",
            "GET / HTTP/1.1\nHost: a\nb\n\n", "GET / HTTP/1.1\nHost: a\nb c: d\n\n", "GET / HTTP/1.1\nHost: \n\n",
            "GET / HTTP/1.1\nHost: a\nb: \u{1}\n\n", "G T / HTTP/1.1\nHost: a\n\n",
        ]
        let client = try HTTP2Session.establishedClient()
        for text in texts { #expect(client.request(text) == nil, "\(text)") }
        #expect(client.streams == 0 && !client.hasOutput)
    }

    @Test func `connection-specific fields are omitted`() throws {
        let pair = try Pair()
        let id = try #require(
            pair.client.request(
                """
                POST / HTTP/1.1
                Host: a
                Connection: keep-alive, te
                Keep-Alive: 5
                Proxy-Connection: close
                TE: gzip
                Transfer-Encoding: chunked
                Upgrade: h2c
                HTTP2-Settings: AAMA
                TE: trailers
                X-Last:   spaced\u{20}\u{20}


                """, ends: false))
        #expect(
            pair.exchange().server == [
                .head(
                    id,
                    "POST / HTTP/1.1\r\nHost: a\r\nte: trailers\r\nx-last: spaced\r\nTransfer-Encoding: chunked\r\n\r\n",
                    ends: false)
            ])
    }

    @Test func `a reset is sent to the other side once`() throws {
        let pair = try Pair()
        let id = try #require(pair.client.request("GET / HTTP/1.1\nHost: a\n\n", ends: false))
        _ = pair.exchange()
        pair.client.reset(id, .cancel)
        let seen = pair.exchange()
        #expect(seen.client.isEmpty && seen.server == [.other(.closed(stream: id, code: .cancel))])
        #expect(pair.client.streams == 0 && pair.server.streams == 0)
    }

    @Test func `a stream that broke together with its head is known to be broken while its events wait`() throws {
        let client = try HTTP2Session.establishedClient()
        let stream = try #require(client.request("GET / HTTP/1.1\nHost: a\n\n"))
        _ = client.output()
        let whole = try #require(client.request("GET / HTTP/1.1\nHost: a\n\n"))
        _ = client.output()
        let fields = [(":status", "200"), ("content-length", "2")]
        let bytes =
            Raw.headers(stream, fields, flags: 4) + Raw.data(stream, "too long") + Raw.headers(whole, fields, flags: 4)
            + Raw.data(whole, "ok", flags: 1) + Raw.reset(whole)
        _ = unsafe bytes.withUnsafeBufferPointer { unsafe client.receive($0, now: 0) }
        #expect(client.pendingErrorCode(stream) == .protocolError)
        // All of the other one has come.
        #expect(client.pendingErrorCode(whole) == nil)
        _ = client.events(bytes)
        #expect(client.pendingErrorCode(stream) == nil)
    }
}
