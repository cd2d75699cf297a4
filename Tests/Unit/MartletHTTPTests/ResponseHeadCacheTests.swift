import MartletHTTP
import Testing

/// A head says the same whatever was parsed before it into the same memory.
@Suite struct ResponseHeadCacheTests {
    private struct Answer {
        let bytes: [UInt8]
        let method: Method
    }

    private func answer(_ lines: [String], to method: Method = .get) -> Answer {
        Answer(bytes: Array("\(lines.joined(separator: "\r\n"))\r\n\r\n".utf8), method: method)
    }

    /// All that a head says.
    private func parse(_ answer: Answer, into head: inout ResponseHead) -> String {
        var parser = ResponseParser(maximumHeadBytes: 4096)
        let outcome = parser.parse(answer.bytes.span, requestMethod: answer.method, into: &head)
        var text = describe(outcome, head, answer.bytes)
        guard case .complete = outcome else { return text }
        for index in 0..<head.fields.count {
            let field = head.fields[index]
            text += "|\(slice(answer.bytes, field.name))=\(slice(answer.bytes, field.value)) \(field.known)"
            text += " \(field.line.start) \(field.line.end) \(field.hasObsText) \(field.isConnectionOption)"
        }
        text += "|\(KnownField.allCases.filter { head.fields.has($0) })|\(head.kept.hasStatusLine)"
        for index in 0..<max(head.kept.count, 0) { text += "|\(slice(answer.bytes, head.kept[index]))" }
        return text + "|\(head.kept.count)"
    }

    private func expectSameAfterEachOther(_ answers: [Answer]) {
        let alone = answers.map { answer in
            var head = ResponseHead(maximumFields: 20)
            return parse(answer, into: &head)
        }
        var wrong: [String] = []
        for (before, first) in answers.enumerated() {
            for (after, second) in answers.enumerated() {
                var head = ResponseHead(maximumFields: 20)
                for (index, answer) in [(before, first), (after, second), (after, second), (before, first)] {
                    let said = parse(answer, into: &head)
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
        var answers = [answer(usual), answer(usual, to: .head), answer(usual, to: .post)]
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
            answers.append(answer(lines))
        }
        for count in 1..<usual.count { answers.append(answer(Array(usual[..<count]))) }
        answers.append(answer(usual + ["X-More: 1"]))
        answers.append(answer(usual + ["X-Long: \(String(repeating: "a", count: 1200))"]))
        answers.append(answer(usual + ["X-Long: \(String(repeating: "a", count: 1200))", "X-More: 1"]))
        answers.append(answer(["HTTP/1.1 200 OK"] + usual[1...].reversed()))
        // Not all of a head.
        let cut = answers[0].bytes
        for count in [10, 17, 40, 100, cut.count - 1] {
            answers.append(Answer(bytes: Array(cut[..<count]), method: .get))
        }
        // Followed by more bytes.
        answers.append(Answer(bytes: cut + cut, method: .get))
        expectSameAfterEachOther(answers)
    }

    @Test func `every response after every other`() {
        expectSameAfterEachOther(ResponseCases.all.map { Answer(bytes: $0.bytes, method: $0.method) })
    }
}
