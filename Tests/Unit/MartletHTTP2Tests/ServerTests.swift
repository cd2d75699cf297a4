import Testing

@testable import MartletHTTP2

@Suite struct HTTP2ServerTests {
    static let tunnel = [
        (":method", "CONNECT"), (":protocol", "websocket"), (":scheme", "https"), (":path", "/chat?a"),
        (":authority", "a.example"), ("sec-websocket-version", "13"), ("origin", "https://a"),
        ("sec-websocket-key", "mine"), ("sec-websocket-accept", "mine"),
    ]

    @Test func `an extended CONNECT becomes an upgrade with a key of ours`() throws {
        var keys: Set<String> = []
        for _ in 0..<20 {
            let server = try HTTP2Session.establishedServer()
            let events = server.take(Raw.headers(1, Self.tunnel, flags: 4)).events
            guard case .head(1, let text, false) = events.first else { throw CancellationError() }
            let lines = text.split(separator: "\r\n").map(String.init)
            #expect(lines[0] == "GET /chat?a HTTP/1.1")
            #expect(lines[1...3] == ["Host: a.example", "Connection: Upgrade", "Upgrade: websocket"])
            let key = lines[4].split(separator: " ").map(String.init)
            #expect(key.first == "Sec-WebSocket-Key:" && key.last?.utf8.count == 24)
            keys.insert(key.last ?? "")
            #expect(lines[5...] == ["sec-websocket-version: 13", "origin: https://a"])
        }
        #expect(keys.count == 20)
    }

    @Test func `101 is sent as 200 for a tunnel, and bytes pass both ways`() throws {
        let server = try HTTP2Session.establishedServer()
        server.take(Raw.headers(1, Self.tunnel, flags: 4))
        server.head(
            1,
            "HTTP/1.1 101 Switching Protocols\nUpgrade: websocket\nConnection: Upgrade\nSec-WebSocket-Accept: x\n"
                + "Sec-WebSocket-Protocol: chat\n\n")
        let client = try HTTP2Session.client(HTTP2Options())
        _ = client.request("GET / HTTP/1.1\nHost: a\n\n")
        _ = client.output()
        let text = "HTTP/1.1 200 OK\r\nsec-websocket-protocol: chat\r\nTransfer-Encoding: chunked\r\n\r\n"
        #expect(client.take(Raw.settings() + server.output()).events.contains(.head(1, text, ends: false)))
        #expect(server.take(Raw.data(1, "ping")).events == [.data(1, "ping")])
        server.body(1, "pong")
        #expect(Raw.frames(server.output()).last?.payload == Array("pong".utf8))
    }

    @Test func `other protocols are offered by their name`() throws {
        let server = try HTTP2Session.establishedServer()
        let fields = [
            (":method", "CONNECT"), (":protocol", "connect-udp"), (":scheme", "https"), (":path", "/u"),
            (":authority", "a"),
        ]
        #expect(
            server.take(Raw.headers(1, fields, flags: 4)).events == [
                .head(
                    1, "GET /u HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: connect-udp\r\n\r\n", ends: false)
            ])
    }

    @Test func `a request whose body is too short is reset, even if it has its response`() throws {
        let server = try HTTP2Session.establishedServer()
        server.take(Raw.headers(1, HeadCase.get + [("content-length", "3")], flags: 4))
        server.head(1, "HTTP/1.1 200 OK\nContent-Length: 0\n\n", ends: true)
        _ = server.output()
        let events = server.take(Raw.data(1, "xx", flags: 1)).events
        #expect(events == [.data(1, "xx"), .other(.closed(stream: 1, code: .protocolError))])
        #expect(Raw.frames(server.output()).contains { $0.type == 3 && $0.stream == 1 && $0.code == 1 })
    }

    @Test func `an invalid response head resets its stream`() throws {
        for text in [
            "", "HTTP/1.1 20 OK\n\n", "HTTP/1.1 200 OK\nbad line\n\n", "HTTP/1.1 101 Switching\n\n",
            "HTTP/1.1 600 X\n\n",
        ] {
            let server = try HTTP2Session.establishedServer()
            server.take(Raw.headers(1, HeadCase.get))
            server.head(1, text)
            #expect(Raw.frames(server.output()).map(\.code) == [2], "\(text)")
            #expect(server.streams == 0)
        }
    }

    @Test func `a response is sent completely before a reset with NO_ERROR`() throws {
        let server = try HTTP2Session.establishedServer()
        server.take(Raw.headers(1, HeadCase.get, flags: 4))
        server.head(1, "HTTP/1.1 413 Content Too Large\n\n")
        server.body(1, String(repeating: "x", count: 40000))
        server.finish(1)
        server.reset(1, .noError)
        let frames = Raw.frames(server.output())
        #expect(frames.map(\.type) == [1, 0, 0, 0, 3])
        #expect(frames[3].flags & Raw.endStream != 0 && frames[4].code == 0)
        #expect(server.events().isEmpty && server.streams == 0)
        // Frames that the client has sent meanwhile are no error.
        #expect(server.take(Raw.data(1, "x", flags: 1)).goesOn)
    }

    @Test func `a reset after the response reports the stream's end`() throws {
        let server = try HTTP2Session.establishedServer()
        server.take(Raw.headers(1, HeadCase.get, flags: 4))
        server.head(1, "HTTP/1.1 413 Content Too Large\n\n")
        server.body(1, "x")
        #expect(!server.resetAtEnd(1), "the response is not whole")
        server.finish(1)
        #expect(server.resetAtEnd(1))
        #expect(Raw.frames(server.output()).map(\.type) == [1, 0, 3])
        #expect(server.events() == [.other(.closed(stream: 1, code: .noError))] && server.streams == 0)
        // The rest of the request is discarded, and is no error.
        let rest = server.take(Raw.data(1, "x", flags: 1))
        #expect(rest.goesOn && rest.events.isEmpty && !server.resetAtEnd(1))
    }

    @Test func `a connection that is closed gracefully completes its streams`() throws {
        let server = try HTTP2Session.establishedServer()
        server.take(Raw.headers(1, HeadCase.get))
        server.goAway()
        #expect(Raw.frames(server.output()).first?.payload == Raw.big(UInt32(0x7FFF_FFFF)) + Raw.big(UInt32(0)))
        // A request that was in flight is accepted.
        #expect(server.take(Raw.headers(3, HeadCase.get)).events.count == 1)
        server.goAway()
        #expect(Raw.frames(server.output()).first?.payload == Raw.big(UInt32(3)) + Raw.big(UInt32(0)))
        #expect(server.take(Raw.headers(5, HeadCase.get) + Raw.data(5, "x")).events.isEmpty)
        #expect(!server.isFinished)
        for id: Int32 in [1, 3] { server.head(id, "HTTP/1.1 204 No Content\n\n", ends: true) }
        _ = server.output()
        #expect(server.isFinished)
    }

    @Test func `fields of the compression table are written as they are in every request`() throws {
        let server = try HTTP2Session.establishedServer()
        func text(_ stream: Int32, _ fields: [UInt8]) -> String? {
            let payload = Raw.block(HeadCase.get) + fields
            let events = server.take(RawFrame(type: 1, flags: 5, stream: stream, payload: payload).bytes).events
            guard case .head(stream, let text, true) = events.first else { return nil }
            return text.split(separator: "\r\n").dropFirst(2).joined(separator: "|")
        }
        func planted(_ name: String, _ value: String) -> [UInt8] {
            [0x40] + Raw.text(Array(name.utf8)) + Raw.text(Array(value.utf8))
        }
        #expect(text(1, planted("a", "b") + planted("cookie", "c=d")) == "a: b|cookie: c=d")
        for id: Int32 in [3, 5, 7] { #expect(text(id, [0xBF, 0xBE]) == "a: b|cookie: c=d") }
        // In another order, and with a field that is not in the table.
        #expect(text(9, [0xBE, 0xBF] + Raw.block([("a", "x")])) == "a: b|a: x|cookie: c=d")
        // The table is emptied and filled anew: the same indices are other fields.
        #expect(text(11, [0xBF, 0xBE]) == "a: b|cookie: c=d")
        #expect(text(13, planted("a", "y") + planted("e", "f")) == "a: y|e: f")
        for id: Int32 in [15, 17] { #expect(text(id, [0xBF, 0xBE]) == "a: y|e: f") }
        // What was valid is malformed in trailers and beside another of its kind all the same.
        #expect(text(19, planted("host", "a.example") + [0xBE]) == nil)
        #expect(Raw.frames(server.output()).last?.code == 1)
        #expect(text(21, [0xBE]) == "")
    }

    @Test func `streams share the output`() throws {
        let server = try HTTP2Session.establishedServer()
        for id: Int32 in [1, 3, 5] {
            server.take(Raw.headers(id, HeadCase.get))
            server.head(id, "HTTP/1.1 200 OK\n\n")
            server.body(id, String(repeating: "x", count: 60000))
        }
        let order = Raw.frames(server.output(upTo: 65000)).filter { $0.type == 0 }.map(\.stream)
        #expect(Set(order.prefix(4)) == [1, 3, 5])
    }

    @Test func `output is given in portions`() throws {
        let server = try HTTP2Session.establishedServer()
        server.take(Raw.headers(1, HeadCase.get))
        server.head(1, "HTTP/1.1 200 OK\n\n")
        server.body(1, String(repeating: "x", count: 65535))
        server.finish(1)
        var portions: [Int] = []
        while server.hasOutput, portions.count < 100 { portions.append(server.output(upTo: 5000).count) }
        #expect(portions.count == 4 && portions.allSatisfy { $0 < 5000 + 16384 + 9 })
    }
}

@Suite struct StreamTableTests {
    @Test func `streams are found by their number through opening and closing`() {
        var table = StreamTable(HTTP2MemoryPool())
        defer { table.freeAll() }
        var open: Set<Int32> = []
        var next: Int32 = 1
        var state: UInt64 = 88_172_645_463_325_252
        for _ in 0..<20000 {
            state ^= state << 13
            state ^= state >> 7
            state ^= state << 17
            if state % 5 < 3, open.count < 150 {
                #expect(table.open(next).id == next)
                open.insert(next)
                next += 2 + Int32(state >> 32 & 3) * 2
            } else if let id = open.randomElement() {
                table.close(id)
                open.remove(id)
            }
            #expect(table.count == open.count)
            if state % 64 == 0 {
                for id in open { #expect(table.find(id)?.id == id) }
                #expect(table.find(next) == nil)
            }
        }
    }
}
