import MartletCore
import MartletHTTP
import Testing

@testable import MartletDecisions
@testable import MartletProxy

@Suite struct ResponseStateTests {
    /// A client, by its protocol.
    enum Client {
        case http10, http11, stream
    }

    private func start(_ framing: BodyFraming, _ client: Client, closes: Bool) -> String {
        var response = ResponseState()
        response.start(
            status: 200, framing: framing, isHTTP10: client == .http10, isStream: client == .stream, closes: closes)
        let (status, hasStarted, isChunked) = (response.status, response.hasStarted, response.isChunked)
        #expect(status == 200 && hasStarted)
        let closesDownstream = response.closesDownstream
        return (isChunked ? "chunks" : "as is") + (closesDownstream ? ", close" : "")
    }

    @Test(
        arguments: [
            (BodyFraming.none, .http10, "as is"), (BodyFraming.none, .http11, "as is"),
            (BodyFraming.none, .stream, "as is"),
            (.length(5), .http10, "as is"), (.length(5), .http11, "as is"), (.length(5), .stream, "as is"),
            (.chunked, .http10, "as is, close"), (.chunked, .http11, "chunks"), (.chunked, .stream, "as is"),
            (.untilClose, .http10, "as is, close"), (.untilClose, .http11, "chunks"), (.untilClose, .stream, "as is"),
        ] as [(BodyFraming, Client, String)])
    func `the client learns where the body ends`(_ framing: BodyFraming, _ client: Client, _ expected: String) {
        #expect(start(framing, client, closes: false) == expected)
        let isClosing = expected.hasSuffix("close")
        #expect(start(framing, client, closes: true) == (isClosing ? expected : expected + ", close"))
    }

    @Test func `a response of the gateway is not chunked`() {
        var response = ResponseState()
        for closes in [true, false] {
            response.start(status: 404, closes: closes)
            let (status, hasStarted, isChunked) = (response.status, response.hasStarted, response.isChunked)
            let closesDownstream = response.closesDownstream
            #expect(status == 404 && hasStarted && !isChunked && closesDownstream == closes)
        }
    }

    @Test func `begins without anything of the response before`() {
        var response = ResponseState()
        response.start(status: 200, framing: .chunked, isHTTP10: false, isStream: false, closes: true)
        response.hasEndedStream = true
        response.trailers.append("A: 1\r\n")
        response.begin()
        let (status, hasStarted, isChunked) = (response.status, response.hasStarted, response.isChunked)
        let (closes, hasEnded, trailers) = (response.closesDownstream, response.hasEndedStream, response.trailers.array)
        #expect(status == 0 && !hasStarted && !isChunked && !closes && !hasEnded && trailers.isEmpty)
    }

    // MARK: Body

    /// What is written of pieces of a body, and of its end; `nil` for a piece that is not copied.
    private func write(_ sizes: [Int], isChunked: Bool, after earlier: StaticString = "") -> [Int?] {
        var response = ResponseState()
        response.isChunked = isChunked
        var out = ByteBuffer()
        out.append(earlier)
        var written: [Int?] = []
        for size in sizes {
            let before = out.count
            var piece = ByteBuffer()
            piece.append([UInt8](repeating: 0x61, count: size))
            let isWritten = unsafe response.writeBody(piece.bytes, into: &out)
            let count = out.count - before
            #expect(isWritten || count == 0)
            written.append(isWritten ? count : nil)
        }
        return written
    }

    @Test func `short pieces are copied, and all that follow other bytes`() {
        let limit = ResponseState.copySize
        #expect(write([1], isChunked: false) == [1])
        #expect(write([limit], isChunked: false) == [limit])
        #expect(write([limit + 1], isChunked: false) == [nil])
        #expect(write([limit + 1], isChunked: false, after: "HTTP") == [limit + 1])
        #expect(write([limit + 1, 1, limit + 1], isChunked: false) == [nil, 1, limit + 1])
    }

    @Test(arguments: [(1, 6), (9, 14), (15, 20), (16, 22), (255, 261), (256, 263), (65_536, 65_545)])
    func `a chunk has its size before it and a line break at both ends`(_ size: Int, _ expected: Int) {
        #expect(write([size], isChunked: true) == [expected])
        #expect(write([size], isChunked: true, after: "HTTP") == [expected])
    }

    @Test func `chunks and trailers are framed`() {
        var response = ResponseState()
        response.start(status: 200, framing: .untilClose, isHTTP10: false, isStream: false, closes: false)
        var out = ByteBuffer()
        var piece = ByteBuffer()
        for text in ["hello", "abcdefghijklmnopqrstuvwxyz"] {
            piece.removeAll()
            piece.append(text: text)
            let isWritten = unsafe response.writeBody(piece.bytes, into: &out)
            #expect(isWritten)
        }
        response.trailers.append("Checksum: 1\r\n")
        response.writeLastChunk(into: &out)
        let text = String(decoding: out.array, as: UTF8.self)
        #expect(text == "5\r\nhello\r\n1a\r\nabcdefghijklmnopqrstuvwxyz\r\n0\r\nChecksum: 1\r\n\r\n")
    }

    @Test func `a body that is not chunked has no last chunk`() {
        var response = ResponseState()
        var out = ByteBuffer()
        response.trailers.append("A: 1\r\n")
        response.writeLastChunk(into: &out)
        let nothing = out.array
        #expect(nothing == [])
        response.trailers.removeAll()
        response.isChunked = true
        response.writeLastChunk(into: &out)
        let text = String(decoding: out.array, as: UTF8.self)
        #expect(text == "0\r\n\r\n")
    }

    // MARK: Trailers

    @Test(arguments: [
        ("Checksum", true), ("grpc-status", true), ("X-Other", true), ("Content-Length", false), ("Host", false),
        ("Transfer-Encoding", false), ("Content_Length", false), ("Set-Cookie", false), ("Authorization", false),
        ("Forwarded", false), ("X-User", false), ("x_user", false), ("X-Auth-Any", false), ("Xauth-Subject", false),
    ])
    func `a trailer that the gateway gives a meaning is dropped`(_ name: String, _ expected: Bool) throws {
        let bytes = Array("\(name): 1\r\n".utf8)
        var offset = 0
        let found = TrailerLines.next(bytes.span, from: &offset)
        let field = try #require(found)
        let reserved = FieldNameSet(["X-User"], reservesAuthPrefix: true)
        let isForwarded = ResponseState.forwards(trailer: field, in: bytes.span, reserved: reserved)
        #expect(isForwarded == expected)
    }

    @Test(arguments: [(false, false, ""), (true, false, "A: 1\r\nB: 2\r\n"), (false, true, "A: 1\r\nB: 2\r\n")])
    func `trailers are stored where the client's protocol has them`(
        _ isChunked: Bool, _ isStream: Bool, _ expected: String
    ) {
        var response = ResponseState()
        response.isChunked = isChunked
        var lines = ByteBuffer()
        lines.append("A:1\r\nB:  2 \r\n")
        var offset = 0
        while let field = unsafe TrailerLines.next(lines.bytes.span, from: &offset) {
            unsafe response.append(trailer: field, in: lines.bytes, isStream: isStream)
        }
        let text = String(decoding: response.trailers.array, as: UTF8.self)
        #expect(text == expected)
    }
}
