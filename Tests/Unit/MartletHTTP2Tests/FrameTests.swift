import MartletHTTP2
import Testing

/// Bytes after the preface and the expected response frames.
struct FrameCase: CustomTestStringConvertible, Sendable {
    enum Result: Equatable, Sendable {
        case nothing
        /// RST_STREAM on stream 1 or on another one.
        case reset(UInt32, on: Int32 = 1)
        case goAway(UInt32)
    }

    let testDescription: String
    let bytes: [UInt8]
    let result: Result

    init(_ name: String, _ bytes: [UInt8], _ result: Result) {
        testDescription = name
        self.bytes = bytes
        self.result = result
    }

    static let get = Raw.headers(1, HeadCase.get)
    static let post = Raw.headers(1, HeadCase.get, flags: 4)
    static func frame(
        _ type: UInt8, _ flags: UInt8 = 0, on stream: Int32 = 0, payload: [UInt8] = [], length: Int? = nil
    ) -> [UInt8] { RawFrame(type: type, flags: flags, stream: stream, payload: payload, length: length).bytes }

    static let frames: [FrameCase] = [
        FrameCase("an unknown type is ignored", frame(0xBB, on: 1, payload: [1, 2]) + get, .nothing),
        FrameCase("unknown flags are ignored", frame(6, 0xF8, payload: [1, 2, 3, 4, 5, 6, 7, 8]), .nothing),
        FrameCase("the reserved bit is ignored", frame(6, on: Int32.min, payload: [1, 2, 3, 4, 5, 6, 7, 8]), .nothing),
        FrameCase("a frame that is too large", frame(0, on: 1, payload: [], length: 16385), .goAway(6)),
        FrameCase("DATA on the connection", frame(0, payload: [1]), .goAway(1)),
        FrameCase("DATA on an idle stream", Raw.data(1, "x"), .goAway(1)),
        FrameCase("DATA after END_STREAM", get + Raw.data(1, "x"), .goAway(5)),
        FrameCase("DATA padded beyond its end", post + frame(0, 8, on: 1, payload: [9, 1]), .goAway(1)),
        FrameCase("DATA with padding", post + frame(0, 9, on: 1, payload: [1, 65, 0]), .nothing),
        FrameCase("HEADERS on the connection", frame(1, 5, payload: Raw.block(HeadCase.get)), .goAway(1)),
        FrameCase("HEADERS on a stream of the server's", Raw.headers(2, HeadCase.get), .goAway(1)),
        FrameCase("HEADERS on a lower stream", Raw.headers(3, HeadCase.get) + get, .goAway(1)),
        FrameCase("HEADERS after END_STREAM", get + get, .goAway(5)),
        FrameCase("HEADERS padded beyond their end", frame(1, 13, on: 1, payload: [9, 0x82]), .goAway(1)),
        FrameCase(
            "HEADERS with padding and a priority",
            frame(1, 0x2D, on: 1, payload: [1, 0, 0, 0, 0, 15] + Raw.block(HeadCase.get) + [0]), .nothing),
        FrameCase(
            "HEADERS that are cut by another frame",
            frame(1, 1, on: 1, payload: Raw.block(HeadCase.get)) + Raw.ping(), .goAway(1)),
        FrameCase(
            "CONTINUATION of another stream",
            frame(1, 1, on: 1, payload: Raw.block(HeadCase.get)) + Raw.continuation(3, []), .goAway(1)),
        FrameCase("CONTINUATION of nothing", get + Raw.continuation(1, []), .goAway(1)),
        FrameCase("CONTINUATION on the connection", Raw.continuation(0, []), .goAway(1)),
        FrameCase(
            "a header block that HPACK does not have", frame(1, 5, on: 1, payload: [0xFF, 0xFF, 0xFF, 0xFF, 0xFF]),
            .goAway(9)),
        FrameCase("an index that is not in the table", frame(1, 5, on: 1, payload: [0xFE]), .goAway(9)),
        FrameCase(
            "a table size that was not allowed", frame(1, 5, on: 1, payload: [0x3F, 0xE2, 0x1F, 0x82]), .goAway(9)),
        FrameCase("a table size behind a field", frame(1, 5, on: 1, payload: [0x82, 0x20]), .goAway(9)),
        FrameCase("PRIORITY", Raw.priority(1) + get, .nothing),
        FrameCase("PRIORITY on the connection", Raw.priority(0), .goAway(1)),
        FrameCase("PRIORITY of four bytes", get + frame(2, on: 1, payload: [0, 0, 0, 0]), .goAway(6)),
        FrameCase("RST_STREAM on the connection", Raw.reset(0), .goAway(1)),
        FrameCase("RST_STREAM on an idle stream", Raw.reset(1), .goAway(1)),
        FrameCase("RST_STREAM of three bytes", get + frame(3, on: 1, payload: [0, 0, 0]), .goAway(6)),
        FrameCase("RST_STREAM with an unknown code", get + Raw.reset(1, 0xFFFF), .nothing),
        FrameCase("DATA after RST_STREAM", post + Raw.reset(1) + Raw.data(1, "x"), .goAway(5)),
        FrameCase("SETTINGS on a stream", frame(4, on: 1), .goAway(1)),
        FrameCase("SETTINGS of five bytes", frame(4, payload: [0, 0, 0, 0, 0]), .goAway(6)),
        FrameCase("an acknowledgement with a payload", frame(4, 1, payload: [0, 0, 0, 0, 0, 0]), .goAway(6)),
        FrameCase("ENABLE_PUSH of 2", Raw.settings([(2, 2)]), .goAway(1)),
        FrameCase("a window over 2^31-1", Raw.settings([(4, 0x8000_0000)]), .goAway(3)),
        FrameCase("a frame size below 16384", Raw.settings([(5, 16383)]), .goAway(1)),
        FrameCase("a frame size over 2^24-1", Raw.settings([(5, 16_777_216)]), .goAway(1)),
        FrameCase("an unknown setting", Raw.settings([(0xAAAA, 1)]), .nothing),
        FrameCase("PUSH_PROMISE of a client", get + frame(5, 4, on: 1, payload: [0, 0, 0, 2]), .goAway(1)),
        FrameCase("PING on a stream", frame(6, on: 1, payload: [1, 2, 3, 4, 5, 6, 7, 8]), .goAway(1)),
        FrameCase("PING of seven bytes", frame(6, payload: [1, 2, 3, 4, 5, 6, 7]), .goAway(6)),
        FrameCase("GOAWAY on a stream", frame(7, on: 1, payload: [0, 0, 0, 0, 0, 0, 0, 0]), .goAway(1)),
        FrameCase("WINDOW_UPDATE of zero on the connection", Raw.window(0, 0), .goAway(1)),
        FrameCase("WINDOW_UPDATE of zero on a stream", post + Raw.window(1, 0), .goAway(1)),
        FrameCase("WINDOW_UPDATE of three bytes", frame(8, payload: [0, 0, 1]), .goAway(6)),
        FrameCase("WINDOW_UPDATE on an idle stream", Raw.window(1, 1), .goAway(1)),
        FrameCase("a connection's window over 2^31-1", Raw.window(0, 0x7FFF_FFFF), .goAway(3)),
        FrameCase("a stream's window over 2^31-1", post + Raw.window(1, 0x7FFF_FFFF), .reset(3)),
        FrameCase(
            "a window over 2^31-1 by SETTINGS",
            post + Raw.window(1, 0x7FFF_0000) + Raw.settings([(4, 0x7FFF_FFFF)]), .goAway(3)),
        FrameCase(
            "less data than the length",
            Raw.headers(1, HeadCase.get + [("content-length", "3")], flags: 4)
                + Raw.data(1, "xx", flags: 1), .reset(1)),
        FrameCase(
            "more data than the length",
            Raw.headers(1, HeadCase.get + [("content-length", "3")], flags: 4)
                + Raw.data(1, "xxxx"), .reset(1)),
        FrameCase("trailers without END_STREAM", post + Raw.headers(1, [("a", "b")], flags: 4), .reset(1)),
    ]

    static let beginnings: [FrameCase] = [
        FrameCase("HTTP/1", Array("GET / HTTP/1.1\r\nHost: a\r\n\r\n".utf8), .goAway(1)),
        FrameCase("a preface with an error", Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\rX".utf8), .goAway(1)),
        FrameCase("no SETTINGS first", Raw.magic + Raw.ping(), .goAway(1)),
        FrameCase("an acknowledgement first", Raw.magic + Raw.settingsAcknowledgement, .goAway(1)),
    ]
}

@Suite struct HTTP2FrameTests {
    private func result(_ frames: [RawFrame]) -> FrameCase.Result {
        if let code = frames.last(where: { $0.type == 7 })?.code { return .goAway(code) }
        guard let reset = frames.first(where: { $0.type == 3 }), let code = reset.code else { return .nothing }
        return .reset(code, on: reset.stream)
    }

    @Test(arguments: FrameCase.frames)
    func `a client's frames are accepted or rejected, whole and byte by byte`(item: FrameCase) throws {
        let whole = try HTTP2Session.establishedServer()
        let goesOn = whole.take(item.bytes).goesOn
        #expect(result(Raw.frames(whole.output())) == item.result)
        if case .goAway = item.result { #expect(!goesOn && whole.isFinished) } else { #expect(goesOn) }
        let split = try HTTP2Session.establishedServer()
        #expect(split.takeByByte(item.bytes).goesOn == goesOn)
        #expect(result(Raw.frames(split.output())) == item.result)
    }

    @Test(arguments: FrameCase.beginnings)
    func `a connection that does not begin as HTTP/2 ends`(item: FrameCase) throws {
        let server = try HTTP2Session.server(HTTP2Options())
        #expect(!server.takeByByte(item.bytes).goesOn)
        #expect(result(Raw.frames(server.output())) == item.result)
    }

    @Test func `the settings announce limits and extensions`() throws {
        let server = try HTTP2Session.server(HTTP2Options())
        let frames = Raw.frames(server.output())
        var values: [Int: Int] = [:]
        let payload = try #require(frames.first { $0.type == 4 }).payload
        for index in stride(from: 0, to: payload.count, by: 6) {
            values[Int(payload[index]) << 8 | Int(payload[index + 1])] =
                payload[(index + 2)..<(index + 6)].reduce(0) { $0 << 8 | Int($1) }
        }
        #expect(values == [3: 100, 4: 65536, 6: 16384, 8: 1, 9: 1])
        #expect(frames.contains { $0.type == 8 && $0.stream == 0 })
    }

    @Test
    func `a stream over the limit ends the connection once the limit is acknowledged, and is rejected before`()
        throws
    {
        var options = HTTP2Options()
        options.maximumConcurrentStreams = 2
        let three = [1, 3, 5].flatMap { Raw.headers($0, HeadCase.get) }
        let established = try HTTP2Session.establishedServer(options)
        #expect(!established.take(three).goesOn)
        #expect(Raw.frames(established.output()).last?.code == 1)
        let early = try HTTP2Session.server(options)
        #expect(early.take(Raw.magic + Raw.settings() + three).goesOn)
        #expect(result(Raw.frames(early.output())) == .reset(7, on: 5))
        #expect(early.streams == 2)
        // Frames that the client has sent meanwhile on the rejected stream are no error.
        #expect(early.take(Raw.data(5, "x")).goesOn)
    }

    @Test func `an incomplete header block is reported`() throws {
        let server = try HTTP2Session.server(HTTP2Options())
        #expect(server.isReceivingHead)
        server.take(Raw.preface)
        #expect(!server.isReceivingHead)
        server.take(Raw.headers(1, HeadCase.get, flags: 1))
        #expect(server.isReceivingHead)
        server.take(Raw.continuation(1, []))
        #expect(!server.isReceivingHead)
        server.take(Array(Raw.headers(3, HeadCase.get).dropLast(5)))
        #expect(server.isReceivingHead)
    }
}
