import MartletCore
import MartletHTTP
import MartletHTTP2
import Testing

@Suite struct HTTP2RequestHeadTests {
    /// A limit below what one frame can hold.
    private var options: HTTP2Options {
        var options = HTTP2Options()
        options.headerBytes = 12000
        return options
    }

    /// The result of a header block that arrives whole, byte by byte, or split into CONTINUATION frames.
    private func result(of block: HeadCase, cut: Cut) throws -> HeadResult {
        let server = try HTTP2Session.establishedServer(options)
        let fields = Raw.block(block.fields)
        let flags: UInt8 = block.ends ? Raw.endStream : 0
        var bytes = RawFrame(type: 1, flags: flags | Raw.endHeaders, stream: 1, payload: fields).bytes
        if cut == .continuations, fields.count > 4 {
            let third = fields.count / 3
            bytes = RawFrame(type: 1, flags: flags, stream: 1, payload: Array(fields[..<third])).bytes
            bytes += Raw.continuation(1, Array(fields[third..<(2 * third)]), flags: 0)
            bytes += Raw.continuation(1, Array(fields[(2 * third)...]))
        }
        let events = cut == .bytes ? server.takeByByte(bytes).events : server.take(bytes).events
        for frame in Raw.frames(server.output()) {
            if frame.type == 3, let code = frame.code { return .reset(code) }
            if frame.type == 7, let code = frame.code { return .goAway(code) }
        }
        switch events.first {
        case .head(1, let text, let ends): return ends == block.ends ? .text(text) : .nothing
        case .other(.refused(1, let failure)): return .refused(failure)
        default: return .nothing
        }
    }

    enum Cut: CaseIterable { case whole, bytes, continuations }

    @Test(arguments: RequestHeadCases.good + RequestHeadCases.malformed + RequestHeadCases.refused)
    func `a header block becomes text or is rejected, however it is split`(block: HeadCase) throws {
        for cut in Cut.allCases { #expect(try result(of: block, cut: cut) == block.result, "\(cut)") }
    }

    @Test(arguments: RequestHeadCases.good + RequestHeadCases.malformed + RequestHeadCases.refused)
    func `our checks without nghttp2 reject the same blocks`(block: HeadCase) {
        var writer = HeadWriter(headerBytes: 12000, headerFields: 100, maximumTargetBytes: 8192)
        writer.begin(.request, ends: block.ends)
        for (name, value) in block.fields { writer.add(name, value) }
        switch (writer.finish(), block.result) {
        case (.valid, .text(let text)): #expect(String(decoding: writer.text.array, as: UTF8.self) == text)
        case (.rejected(let failure), .refused(let expected)): #expect(failure == expected)
        case (.malformed, .reset), (.rejected, .reset): #expect(writer.text.array == [])
        // A length against no body, and how large it is, is nghttp2's to hold against the stream.
        case (.valid, .reset): #expect(block.fields.contains { $0.0 == "content-length" })
        case (let result, _): Issue.record("\(result)")
        }
    }

    @Test(arguments: RequestHeadCases.good)
    func `a text is a request to the HTTP/1 parser`(block: HeadCase) {
        var writer = HeadWriter(headerBytes: 12000, headerFields: 100, maximumTargetBytes: 8192)
        writer.begin(.request, ends: block.ends)
        for (name, value) in block.fields { writer.add(name, value) }
        _ = writer.finish()
        let text = writer.text.array
        var parser = RequestParser(maximumHeadBytes: 16384)
        var head = RequestHead(maximumFields: 100)
        switch parser.parse(text.span, into: &head) {
        case .complete(let count): #expect(count == text.count)
        case .failure(.authorizationRepeated): break
        case let other: Issue.record("\(other)")
        }
    }

    @Test(arguments: RequestHeadCases.good)
    func `a head is filled with the result of the HTTP/1 parser`(block: HeadCase) {
        // After another text with lines of its own.
        var writer = HeadWriter(headerBytes: 12000, headerFields: 100, maximumTargetBytes: 8192)
        writer.begin(.request, ends: true)
        for (name, value) in HeadCase.get { writer.add(name, value) }
        _ = writer.finish()
        let (start, firstLine) = (writer.text.count, writer.offsets.count)
        writer.begin(.request, ends: block.ends)
        for (name, value) in block.fields { writer.add(name, value) }
        _ = writer.finish()
        let text = Array(writer.text.array[start...])
        var parser = RequestParser(maximumHeadBytes: 16384)
        var head = RequestHead(maximumFields: 100)
        var filled = RequestHead(maximumFields: 100)
        let outcome = parser.parse(text.span, into: &head)
        let offsets = unsafe writer.offsets.part(firstLine, writer.offsets.count - firstLine)
        let same = unsafe parser.parse(text.span, offsets: offsets, into: &filled)
        #expect(same == outcome)
        guard case .complete = outcome else { return }
        #expect(description(of: head) == description(of: filled))
    }

    @Test func `a block that is far over the limit ends the connection`() throws {
        let server = try HTTP2Session.establishedServer()
        var goesOn = true
        var bytes = Raw.headers(1, HeadCase.get, flags: 1)
        for _ in 0..<12 where goesOn {
            bytes += Raw.continuation(1, Raw.block([("a", String(repeating: "b", count: 15000))]), flags: 0)
            goesOn = server.take(bytes).goesOn
            bytes = []
        }
        #expect(!goesOn)
        #expect(Raw.frames(server.output()).last?.code == 11)
    }

    @Test func `a bomb of table references is cut off`() throws {
        let server = try HTTP2Session.establishedServer()
        // One field of 4 000 bytes put into the table, then 8 000 references of one byte each.
        let value = Array(String(repeating: "b", count: 4000).utf8)
        let planted = [0x40] + Raw.text(Array("a".utf8)) + Raw.text(value)
        let bomb = planted + [UInt8](repeating: 0xBE, count: 8000)
        let bytes = RawFrame(type: 1, flags: 5, stream: 1, payload: Raw.block(HeadCase.get) + bomb).bytes
        #expect(!server.take(bytes).goesOn)
        #expect(Raw.frames(server.output()).last?.code == 11)
    }

    @Test func `a rejected request gets a response and its body is discarded`() throws {
        let server = try HTTP2Session.establishedServer()
        let head = Raw.headers(1, HeadCase.get + [("host", "b")], flags: 4)
        #expect(server.take(head + Raw.data(1, "body")).events == [.other(.refused(stream: 1, .hostMismatch))])
        server.head(1, "HTTP/1.1 400 Bad Request\n\n")
        server.body(1, "no")
        server.finish(1)
        let frames = Raw.frames(server.output())
        #expect(frames.map(\.type) == [1, 0, 3])
        #expect(frames.last?.code == 0)
        #expect(server.events() == [.other(.closed(stream: 1, code: .noError))])
        #expect(server.streams == 0)
    }

    @Test func `trailers follow the rules of fields`() throws {
        let cases: [([(String, String)], UInt8, UInt32?)] = [
            ([("x-sum", "1")], 5, nil),
            ([(":path", "/")], 5, 1),
            ([("Upper", "1")], 5, 1),
            ([("connection", "close")], 5, 1),
            ([("x-sum", "1")], 4, 1),
            ([("x", String(repeating: "a", count: 7000)), ("y", String(repeating: "a", count: 7000))], 5, 11),
        ]
        for (fields, flags, code) in cases {
            let server = try HTTP2Session.establishedServer(options)
            server.take(Raw.headers(1, HeadCase.get, flags: 4))
            let events = server.take(Raw.headers(1, fields, flags: flags)).events
            let sent = Raw.frames(server.output())
            if let code {
                #expect(sent.last?.code == code, "\(fields.count)")
                #expect(events == [.other(.closed(stream: 1, code: HTTP2Code(rawValue: code)))])
            } else {
                #expect(events == [.trailers(1, "x-sum: 1\r\n"), .other(.end(stream: 1))])
            }
        }
    }
}

extension HeadWriter {
    mutating func add(_ name: String, _ value: String) {
        let name = Array(name.utf8)
        let value = Array(value.utf8)
        unsafe name.withUnsafeBufferPointer { name in
            unsafe value.withUnsafeBufferPointer { value in unsafe add(name, value) }
        }
    }
}
