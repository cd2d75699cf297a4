import MartletHTTP
import Testing

@Suite struct ForwardableResponseFieldsTests {
    /// The forwarded ranges of a response with these lines, joined with `|`; nil if there are none.
    private func kept(_ lines: [String], below statusLine: String = "HTTP/1.0 200 OK") -> String? {
        let bytes = Array("\(statusLine)\r\n\(lines.map { $0 + "\r\n" }.joined())\r\n".utf8)
        var parser = ResponseParser(maximumHeadBytes: 1024)
        var head = ResponseHead(maximumFields: 20)
        guard case .complete = parser.parse(bytes.span, requestMethod: .get, into: &head) else { return "refused" }
        guard head.forwardable.count >= 0 else { return nil }
        #expect(head.forwardable.hasStatusLine == (statusLine == "HTTP/1.1 200 OK"))
        var runs: [String] = []
        for index in 0..<head.forwardable.count {
            runs.append(slice(bytes, head.forwardable[index]).replacing("\r\n", with: ";"))
        }
        return runs.joined(separator: "|")
    }

    @Test(arguments: [
        ([], ""),
        (["A: 1", "B: 2"], "A: 1;B: 2;"),
        (["A: 1", "Content-Length: 2", "B: 2"], "A: 1;Content-Length: 2;B: 2;"),
        (["A: 1", "Content-Length: 02", "B: 2"], "A: 1;|B: 2;"),
        (["A: 1", "Content-Length: 0", "B: 2"], "A: 1;Content-Length: 0;B: 2;"),
        (["Connection: close", "A: 1", "Keep-Alive: 5", "Proxy-Connection: close", "B: 2"], "A: 1;|B: 2;"),
        (["A: 1", "X-Request-Id: x"], "A: 1;"),
        (["TE: x", "Upgrade: y", "Proxy-Connection: z"], ""),
        (["X_Request_Id: passes", "Date:\t1 "], "X_Request_Id: passes;Date:\t1 ;"),
        (["A: 1", "TE: x", "A: 2", "TE: x", "A: 3", "TE: x", "A: 4"], "A: 1;|A: 2;|A: 3;|A: 4;"),
    ])
    func `omits connection-specific fields`(_ lines: [String], _ expected: String) {
        #expect(kept(lines) == expected)
    }

    @Test func `begins with a status line of the version that clients get`() {
        let lines = ["Connection: close", "A: 1", "transfer-encoding: chunked", "B: 2"]
        #expect(kept(lines, below: "HTTP/1.1 200 OK") == "HTTP/1.1 200 OK;|A: 1;|B: 2;")
        #expect(kept(["A: 1"], below: "HTTP/1.1 200 OK") == "HTTP/1.1 200 OK;A: 1;")
        // As RFC 9112 has it, there is a space before a reason that is not there.
        #expect(kept(["A: 1"], below: "HTTP/1.1 200") == "A: 1;")
        #expect(kept(["A: 1"], below: "HTTP/1.1 200 Sch\u{F6}n") == "A: 1;")
    }

    @Test func `says so when there are too many stretches`() {
        let many = (0..<6).flatMap { ["A: \($0)", "TE: x"] }
        #expect(kept(many) == nil)
        #expect(kept(Array(many.prefix(9))) == nil)
    }

    @Test func `says so when Connection names a field`() {
        #expect(kept(["A: 1", "Connection: a"]) == nil)
        #expect(kept(["A: 1", "Connection: b, close"]) == "A: 1;")
    }

    @Test func `knows which kinds of fields are present`() {
        let bytes = Array("GET / HTTP/1.1\r\nHost: a\r\nX-Request-Id: b\r\nX_Real_IP: c\r\n\r\n".utf8)
        var parser = RequestParser(maximumHeadBytes: 1024)
        var head = RequestHead(maximumFields: 10)
        for _ in 0..<2 {
            #expect(parser.parse(bytes.span, into: &head) == .complete(bytes.count))
            let found = KnownField.allCases.filter { head.fields.has($0) }
            #expect(found == [.other, .xRequestID, .host])
        }
        let other = Array("GET / HTTP/1.1\r\nHost: a\r\n\r\n".utf8)
        #expect(parser.parse(other.span, into: &head) == .complete(other.count))
        #expect(!head.fields.has(.other) && !head.fields.has(.xRequestID))
        #expect(KnownField.allCases.count <= 64)
    }
}
