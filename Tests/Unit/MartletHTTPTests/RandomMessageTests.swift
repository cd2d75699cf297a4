import MartletHTTP
import MartletTesting
import Testing

/// Messages assembled at random from valid and invalid pieces.
@Suite struct RandomMessageTests {
    private static let pieces: [[UInt8]] = [
        "GET / HTTP/1.1\r\n", "POST /a%2e?b HTTP/1.1\r\n", "HTTP/1.1 200 OK\r\n", "Host: a\r\n", "Host: a\r\n\r\n",
        "\r\n", "\r", "\n", " ", "\t", ":", "\0", "x",
        "Content-Length: 5\r\n", "Content-Length", "Transfer-Encoding: chunked\r\n",
        "X_Y.Z: value of some length to search\r\n",
        "Connection: close, x-y\r\n", "Long-Name-Of-A-Field-Over-Sixteen: 1\r\n",
        "Authorization: Bearer aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n",
        "é", "0\r\n", "5;x\r\n", "hello", "Expect: 100-continue\r\n", "a=b; c=d, e",
    ].map { Array($0.utf8) }

    private func message(_ random: inout SeededGenerator, beginning: [UInt8]) -> [UInt8] {
        var bytes = Bool.random(using: &random) ? beginning : []
        for _ in 0..<Int.random(in: 0...7, using: &random) {
            bytes += RandomMessageTests.pieces.randomElement(using: &random)!
        }
        if Bool.random(using: &random) { bytes += Array("\r\n".utf8) }
        if !bytes.isEmpty, Int.random(in: 0..<4, using: &random) == 0 {
            bytes[Int.random(in: 0..<bytes.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
        }
        return bytes
    }

    private func cuts(_ bytes: [UInt8], _ random: inout SeededGenerator) -> [Int] {
        (0..<4).map { _ in Int.random(in: 0...bytes.count, using: &random) }.sorted()
    }

    @Test func `come to the same however they are cut`() {
        var random = SeededGenerator(seed: 42)
        var accepted = 0
        for _ in 0..<6000 {
            let request = message(&random, beginning: Array("GET / HTTP/1.1\r\nHost: a\r\n".utf8))
            let outcome = parseRequest(request)
            if outcome.hasPrefix("GET") { accepted += 1 }
            #expect(parseRequest(request, cuts: cuts(request, &random)) == outcome)
            #expect(parseRequest(request, cuts: Array(0..<request.count)) == outcome)
            let response = message(&random, beginning: Array("HTTP/1.1 200 OK\r\n".utf8))
            let whole = parseResponse(response, to: .get)
            #expect(parseResponse(response, to: .get, cuts: cuts(response, &random)) == whole)
            let body = message(&random, beginning: Array("5\r\nhello\r\n0\r\n".utf8))
            #expect(decodeChunked(body, cuts: cuts(body, &random)) == decodeChunked(body))
        }
        #expect(accepted > 200)
    }

    @Test func `have ranges in ascending order`() {
        var random = SeededGenerator(seed: 43)
        for _ in 0..<4000 {
            let bytes = message(&random, beginning: Array("GET /p?q HTTP/1.1\r\nHost: a\r\n".utf8))
            var parser = RequestParser(maximumHeadBytes: 16384)
            var head = RequestHead(maximumFields: 100)
            guard case .complete(let consumed) = parser.parse(bytes.span, into: &head) else { continue }
            var end = head.target.end
            for index in 0..<head.fields.count {
                let field = head.fields[index]
                #expect(field.line.start >= end && field.name.start == field.line.start)
                #expect(field.name.end < field.value.start && field.value.end <= field.line.end - 2)
                end = field.line.end
            }
            #expect(end == consumed - 2 && consumed <= bytes.count)
        }
    }
}
