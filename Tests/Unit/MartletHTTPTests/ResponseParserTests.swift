import MartletHTTP
import Testing

@Suite struct ResponseParserTests {
    @Test(arguments: ResponseCases.all)
    func `accepts unambiguous messages and rejects others`(_ answer: ResponseCase) {
        #expect(parseResponse(answer.bytes, to: answer.method) == answer.expected)
    }

    @Test(arguments: ResponseCases.all)
    func `has the same result wherever the bytes are split`(_ answer: ResponseCase) {
        let step = max(1, answer.bytes.count / 400)
        for cut in stride(from: 0, to: answer.bytes.count, by: step) {
            let outcome = parseResponse(answer.bytes, to: answer.method, cuts: [cut])
            if outcome != answer.expected { Issue.record("cut at \(cut): \(outcome)") }
        }
        #expect(parseResponse(answer.bytes, to: answer.method, cuts: Array(0..<answer.bytes.count)) == answer.expected)
    }

    @Test func `leaves the head after an interim response to the next call`() {
        let bytes = Array("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".utf8)
        #expect(parseResponse(bytes, to: .post) == "100 'Continue' none interim rest=38")
    }

    @Test func `immediately rejects bytes that cannot be HTTP`() {
        #expect(parseResponse(Array("SSH-2.0".utf8), to: .get) == "upstream.bad_status_line")
    }

    @Test func `marks the fields that Connection names`() {
        let bytes = Array("HTTP/1.1 200 OK\r\nX-Auth-Hint: 1\r\nConnection: close, x-auth-hint\r\n\r\n".utf8)
        var parser = ResponseParser(maximumHeadBytes: 1024)
        var head = ResponseHead(maximumFields: 10)
        #expect(parser.parse(bytes.span, requestMethod: .get, into: &head) == .complete(bytes.count))
        let (isMarked, keepsAlive) = (head.fields[0].isConnectionOption, head.keepsAlive)
        #expect(isMarked)
        #expect(!keepsAlive)
    }
}
