import MartletHTTP
import Testing

/// A head says the same whatever was parsed before it into the same memory.
@Suite struct ResponseHeadCacheTests {
    private struct Response {
        let bytes: [UInt8]
        let method: Method
    }

    private func response(_ lines: [String], to method: Method = .get) -> Response {
        Response(bytes: Array("\(lines.joined(separator: "\r\n"))\r\n\r\n".utf8), method: method)
    }

    /// All that a head says.
    private func parse(_ response: Response, into head: inout ResponseHead) -> String {
        var parser = ResponseParser(maximumHeadBytes: 4096)
        let outcome = parser.parse(response.bytes.span, requestMethod: response.method, into: &head)
        var text = describe(outcome, head, response.bytes)
        guard case .complete = outcome else { return text }
        for index in 0..<head.fields.count {
            let field = head.fields[index]
            text += "|\(slice(response.bytes, field.name))=\(slice(response.bytes, field.value)) \(field.known)"
            text += " \(field.line.start) \(field.line.end) \(field.hasObsText) \(field.isConnectionOption)"
        }
        text += "|\(KnownField.allCases.filter { head.fields.has($0) })|\(head.forwardable.hasStatusLine)"
        for index in 0..<max(head.forwardable.count, 0) { text += "|\(slice(response.bytes, head.forwardable[index]))" }
        return text + "|\(head.forwardable.count)"
    }

    private func expectSameAfterEachOther(_ responses: [Response]) {
        let alone = responses.map { response in
            var head = ResponseHead(maximumFields: 20)
            return parse(response, into: &head)
        }
        var wrong: [String] = []
        for (before, first) in responses.enumerated() {
            for (after, second) in responses.enumerated() {
                var head = ResponseHead(maximumFields: 20)
                for (index, response) in [(before, first), (after, second), (after, second), (before, first)] {
                    let said = parse(response, into: &head)
                    if said != alone[index] { wrong.append("\(before), \(after): \(said), alone \(alone[index])") }
                }
            }
        }
        #expect(wrong == [])
    }

    @Test func `responses of an upstream that differ in one field`() {
        let usual = [
            "HTTP/1.1 200 OK", "Server: nginx", "Date: Sun, 22 Nov 2026 10:00:00 GMT", "Content-Type: application/json",
            "Content-Length: 120", "Connection: keep-alive", "ETag: \"1\"",
        ]
        var responses = [response(usual), response(usual, to: .head), response(usual, to: .post)]
        for (index, line) in [
            (0, "HTTP/1.1 201 Created"), (0, "HTTP/1.0 200 OK"), (0, "HTTP/1.1 200"), (0, "HTTP/1.1 304 OK"),
            (1, "Server: apache"), (1, "Server:nginx "), (1, "X: \u{F6}"), (2, "Date: Sun, 22 Nov 2026 10:00:01 GMT"),
            (4, "Content-Length: 121"), (4, "Content-Length: 12"), (4, "Content-Length: 1200"),
            (4, "Content-Length: 12x"), (4, "Transfer-Encoding: chunked"), (5, "Connection: close     "),
            (5, "Connection: etag, close"), (5, "Keep-Alive: timeout=5"), (6, "Set-Cookie: a=b"), (6, "ETag: \"2\""),
            (6, "Connection: server"), (6, "Content-Length: 120"), (6, "not a field"),
        ] {
            var lines = usual
            lines[index] = line
            responses.append(response(lines))
        }
        for count in 1..<usual.count { responses.append(response(Array(usual[..<count]))) }
        responses.append(response(usual + ["X-More: 1"]))
        responses.append(response(usual + ["X-Long: \(String(repeating: "a", count: 1200))"]))
        responses.append(response(usual + ["X-Long: \(String(repeating: "a", count: 1200))", "X-More: 1"]))
        responses.append(response(["HTTP/1.1 200 OK"] + usual[1...].reversed()))
        // Not all of a head.
        let cut = responses[0].bytes
        for count in [10, 17, 40, 100, cut.count - 1] {
            responses.append(Response(bytes: Array(cut[..<count]), method: .get))
        }
        // Followed by more bytes.
        responses.append(Response(bytes: cut + cut, method: .get))
        expectSameAfterEachOther(responses)
    }

    @Test func `every response after every other`() {
        expectSameAfterEachOther(ResponseCases.all.map { Response(bytes: $0.bytes, method: $0.method) })
    }
}
