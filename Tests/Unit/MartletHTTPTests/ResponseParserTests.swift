import MartletHTTP
import Testing

@Suite struct ResponseParserTests {
    @Test(arguments: ResponseCases.all)
    func `accepts unambiguous messages and rejects others`(_ response: ResponseCase) {
        #expect(parseResponse(response.bytes, to: response.method) == response.expected)
    }

    @Test(arguments: ResponseCases.all)
    func `has the same result wherever the bytes are split`(_ response: ResponseCase) {
        let step = max(1, response.bytes.count / 400)
        for cut in stride(from: 0, to: response.bytes.count, by: step) {
            let outcome = parseResponse(response.bytes, to: response.method, cuts: [cut])
            if outcome != response.expected { Issue.record("cut at \(cut): \(outcome)") }
        }
        let cuts = Array(0..<response.bytes.count)
        #expect(parseResponse(response.bytes, to: response.method, cuts: cuts) == response.expected)
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
