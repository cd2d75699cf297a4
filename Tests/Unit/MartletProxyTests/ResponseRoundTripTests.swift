import MartletCore
import MartletHTTP
import MartletTesting
import Testing

@testable import MartletDecisions
@testable import MartletProxy

/// A response of an upstream as a client reads it, after the gateway has written it.
@Suite struct ResponseRoundTripTests {
    /// What a client reads.
    private struct Received: Equatable {
        var framing: BodyFraming
        var keepsAlive: Bool
        var content: String
        /// Names and values of the trailers, as `A=1`.
        var trailers: [String] = []
        /// Bytes after the response.
        var rest = 0
    }

    /// Writes the response for a client of HTTP/1, and reads it as such a client does.
    private func exchange(
        _ lines: [String], _ pieces: [String], trailers: StaticString = "", to method: Method = .get,
        isHTTP10: Bool = false, closes: Bool = false
    ) -> Received? {
        let head = Array("\(lines.joined(separator: "\r\n"))\r\n\r\n".utf8)
        var parser = ResponseParser(maximumHeadBytes: 4096)
        var parsed = ResponseHead(maximumFields: 40)
        guard case .complete = parser.parse(head.span, requestMethod: method, into: &parsed) else { return nil }
        var upstream = UpstreamResponse()
        let (framing, isWhole) = upstream.start(
            framing: parsed.framing, keepsAlive: parsed.keepsAlive, isStream: false, endsWithHead: false,
            forStream: false)
        var response = ResponseState()
        response.start(
            status: parsed.status, framing: framing, isHTTP10: isHTTP10, isStream: false, closes: closes)
        let writer = ResponseHeadWriter(
            isHTTP10: isHTTP10, isChunked: response.isChunked, closes: response.closesDownstream)
        var input = ByteBuffer()
        input.append(head)
        var date = ByteBuffer()
        date.append("Sun, 06 Nov 1994 08:49:37 GMT")
        var requestID = ByteBuffer()
        requestID.append("r1")
        var out = ByteBuffer()
        unsafe writer.write(parsed, input.bytes, framing, date: date, requestID: requestID.bytes, into: &out)
        if !isWhole {
            for text in pieces {
                var piece = ByteBuffer()
                piece.append(text: text)
                if unsafe !response.writeBody(piece.bytes, into: &out) { out.append(text: text) }
            }
            response.trailers.append(trailers)
            response.writeLastChunk(into: &out)
        }
        return read(out.array, to: method)
    }

    private func read(_ bytes: [UInt8], to method: Method) -> Received? {
        var parser = ResponseParser(maximumHeadBytes: 4096)
        var head = ResponseHead(maximumFields: 40)
        guard case .complete(let end) = parser.parse(bytes.span, requestMethod: method, into: &head) else { return nil }
        var received = Received(framing: head.framing, keepsAlive: head.keepsAlive, content: "")
        switch head.framing {
        case .none: received.rest = bytes.count - end
        case .untilClose: received.content = String(decoding: bytes[end...], as: UTF8.self)
        case .length(let count):
            received.content = String(decoding: bytes[end...].prefix(count), as: UTF8.self)
            received.rest = bytes.count - end - count
        case .chunked: return readChunks(bytes, from: end, received)
        }
        return received
    }

    private func readChunks(_ bytes: [UInt8], from start: Int, _ head: Received) -> Received? {
        var received = head
        var decoder = ChunkedDecoder()
        var offset = start
        while true {
            switch decoder.next(bytes.span, from: &offset) {
            case .data(let range): received.content += String(decoding: bytes[range.bounds], as: UTF8.self)
            case .trailer(let field):
                let name = String(decoding: bytes[field.name.bounds], as: UTF8.self)
                received.trailers.append("\(name)=\(String(decoding: bytes[field.value.bounds], as: UTF8.self))")
            case .end:
                received.rest = bytes.count - offset
                return received
            case .needMore, .failure: return nil
            }
        }
    }

    static let ok = "HTTP/1.1 200 OK"

    @Test(
        arguments: [
            ([ok, "Content-Length: 10"], .length(10), .length(10)),
            ([ok, "Content-Length: 010"], .length(10), .length(10)),
            (["HTTP/1.0 200 OK", "Content-Length: 10"], .length(10), .length(10)),
            ([ok, "Transfer-Encoding: chunked"], .chunked, .untilClose), ([ok], .chunked, .untilClose),
            (["HTTP/1.0 200 OK"], .chunked, .untilClose), ([ok, "Connection: close"], .chunked, .untilClose),
            ([ok, "Connection: x, close", "X: 1", "Content-Length: 10"], .length(10), .length(10)),
        ] as [([String], BodyFraming, BodyFraming)])
    func `the body arrives whole, and its end is known`(
        _ lines: [String], _ framing: BodyFraming, _ framingOfHTTP10: BodyFraming
    ) {
        let pieces = ["hello", "world"]
        for closes in [false, true] {
            let found = exchange(lines, pieces, closes: closes)
            #expect(found == Received(framing: framing, keepsAlive: !closes, content: "helloworld"))
            let older = exchange(lines, pieces, isHTTP10: true, closes: closes)
            let keepsAlive = !closes && framingOfHTTP10 != .untilClose
            #expect(older == Received(framing: framingOfHTTP10, keepsAlive: keepsAlive, content: "helloworld"))
        }
    }

    @Test(
        arguments: [
            (.head, [ok, "Content-Length: 10"]), (.head, [ok, "Transfer-Encoding: chunked"]), (.head, [ok]),
            (.get, ["HTTP/1.1 204 No Content"]), (.get, ["HTTP/1.1 204 No Content", "Content-Length: 0"]),
            (.get, ["HTTP/1.1 304 Not Modified", "Content-Length: 10"]), (.get, ["HTTP/1.1 304 Not Modified"]),
        ] as [(Method, [String])])
    func `a response without a body leaves nothing behind its head`(_ method: Method, _ lines: [String]) {
        for isHTTP10 in [false, true] {
            let found = exchange(lines, ["not sent"], to: method, isHTTP10: isHTTP10)
            #expect(found == Received(framing: .none, keepsAlive: true, content: ""))
        }
    }

    @Test func `trailers arrive behind the last chunk`() {
        let lines = [Self.ok, "Transfer-Encoding: chunked"]
        let found = exchange(lines, ["a"], trailers: "Checksum: 1\r\nX:  2\r\n")
        let expected = Received(framing: .chunked, keepsAlive: true, content: "a", trailers: ["Checksum=1", "X=2"])
        #expect(found == expected)
        let older = exchange(lines, ["a"], trailers: "Checksum: 1\r\n", isHTTP10: true)
        #expect(older == Received(framing: .untilClose, keepsAlive: false, content: "a"))
    }

    @Test func `an empty body of unknown length has an end`() {
        let found = exchange([Self.ok, "Transfer-Encoding: chunked"], [])
        #expect(found == Received(framing: .chunked, keepsAlive: true, content: ""))
    }

    @Test func `content arrives unchanged, whatever it looks like and however it is split`() {
        var random = SeededGenerator(seed: 77)
        for _ in 0..<300 {
            let pieces = (0..<Int.random(in: 1...5, using: &random)).map { _ in
                let count = Int.random(in: 1...40, using: &random)
                return String((0..<count).map { _ in "0a\r\n:; ".randomElement(using: &random)! })
            }
            let content = pieces.joined()
            let length = exchange([Self.ok, "Content-Length: \(content.utf8.count)"], pieces)
            #expect(length?.content == content && length?.rest == 0)
            for isHTTP10 in [false, true] {
                let unknown = exchange([Self.ok, "Transfer-Encoding: chunked"], pieces, isHTTP10: isHTTP10)
                #expect(unknown?.content == content && unknown?.rest == 0)
            }
        }
    }

    @Test func `the next response begins without anything of the one before`() {
        var response = UpstreamResponse()
        var request = RequestProperties()
        response.hasBegun = true
        _ = response.interim(status: 103, bytes: 40, for: &request)
        _ = response.start(
            framing: .length(5), keepsAlive: true, isStream: false, endsWithHead: false, forStream: false)
        _ = response.consume(2, isStream: false)
        let before = (response.remaining, response.interimBytes)
        response.expect()
        let (hasBegun, isNone, remaining, count) = (
            response.hasBegun, response.framing.isNone, response.remaining, response.interimBytes
        )
        #expect(before == (3, 40))
        #expect(!hasBegun && isNone && remaining == 0 && count == 0)
    }
}
