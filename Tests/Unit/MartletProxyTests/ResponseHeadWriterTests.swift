import MartletCore
import MartletHTTP
import MartletResponder
import Testing

@testable import MartletDecisions
@testable import MartletProxy

@Suite struct ResponseHeadWriterTests {
    /// A head of an upstream, and the form in which it is written.
    private enum Form {
        /// A final response with the framing of its body; `nil` is the head's own.
        case response(BodyFraming?)
        case interim
        case upgrade
    }

    /// What a client gets of an upstream's head with these lines, with `;` for a line break.
    private func written(
        _ lines: [String], to method: Method = .get, as form: Form = .response(nil),
        by writer: ResponseHeadWriter = ResponseHeadWriter()
    ) -> String {
        let all = Array("\(lines.joined(separator: "\r\n"))\r\n\r\n".utf8)
        var parser = ResponseParser(maximumHeadBytes: 4096)
        var head = ResponseHead(maximumFields: 40)
        guard case .complete = parser.parse(all.span, requestMethod: method, into: &head) else { return "rejected" }
        var date = ByteBuffer()
        date.append("now")
        var texts = ByteBuffer()
        texts.append("r1")
        var name = ByteBuffer()
        name.append("websocket")
        var input = ByteBuffer()
        input.append(all)
        var out = ByteBuffer()
        switch form {
        case .response(let framing):
            let own = head.framing
            unsafe writer.write(head, input.bytes, framing ?? own, date: date, requestID: texts.bytes, into: &out)
        case .interim: unsafe writer.writeInterim(head, input.bytes, into: &out)
        case .upgrade:
            unsafe writer.writeSwitch(head, input.bytes, to: name.bytes, requestID: texts.bytes, into: &out)
        }
        return String(decoding: out.array, as: UTF8.self).replacing("\r\n", with: ";")
    }

    // MARK: Fields

    @Test(
        arguments: [
            (["A: 1", "Content-Length: 5"], "A: 1;Content-Length: 5;Date: now;"),
            (["Date: then", "Content-Length: 5"], "Date: then;Content-Length: 5;"),
            (["Set-Cookie: a", "Set-Cookie: b", "Server: c"], "Set-Cookie: a;Set-Cookie: b;Server: c;Date: now;"),
            (["X-Request-Id: theirs", "Content-Length: 0"], "Content-Length: 0;Date: now;"),
            (["X_Request_Id: passes", "Content-Length: 0"], "X_Request_Id: passes;Content-Length: 0;Date: now;"),
            (["WWW-Authenticate: Basic", "Content-Length: 0"], "WWW-Authenticate: Basic;Content-Length: 0;Date: now;"),
        ] as [([String], String)])
    func `forwards fields, and adds a date and an ID`(_ lines: [String], _ expected: String) {
        #expect(written(["HTTP/1.1 200 OK"] + lines) == "HTTP/1.1 200 OK;\(expected)X-Request-Id: r1;;")
    }

    @Test(arguments: ["Keep-Alive: 5", "Proxy-Connection: close", "TE: trailers", "Upgrade: h2c", "Connection: close"])
    func `omits a hop-by-hop field wherever it stands`(_ field: String) {
        for lines in [[field, "A: 1", "B: 2"], ["A: 1", field, "B: 2"], ["A: 1", "B: 2", field]] {
            let text = written(["HTTP/1.1 200 OK"] + lines + ["Content-Length: 0"])
            #expect(text == "HTTP/1.1 200 OK;A: 1;B: 2;Content-Length: 0;Date: now;X-Request-Id: r1;;")
        }
    }

    @Test(
        arguments: [
            (["Connection: a, close", "A: 1", "B: 2"], "B: 2;Date: now;"),
            (["A: 1", "B: 2", "Connection: b, A"], "Date: now;"),
            (["Connection: date", "Date: then", "A: 1"], "A: 1;Date: now;"),
            (["Connection: a", "Date: then", "A: 1"], "Date: then;"),
            (["Connection: set-cookie", "Set-Cookie: a", "Set-Cookie: b", "A: 1"], "A: 1;Date: now;"),
        ] as [([String], String)])
    func `omits the fields that Connection names`(_ lines: [String], _ expected: String) {
        let text = written(["HTTP/1.1 200 OK"] + lines + ["Content-Length: 3"])
        #expect(text == "HTTP/1.1 200 OK;\(expected)Content-Length: 3;X-Request-Id: r1;;")
    }

    @Test func `fields between many omitted ones are copied one by one`() {
        let lines = (1...6).flatMap { ["A: \($0)", "TE: x"] }
        let text = written(["HTTP/1.1 200 OK"] + lines + ["Content-Length: 3"])
        let fields = (1...6).map { "A: \($0);" }.joined()
        #expect(text == "HTTP/1.1 200 OK;\(fields)Date: now;Content-Length: 3;X-Request-Id: r1;;")
    }

    @Test(arguments: [
        ("HTTP/1.1 200 OK", "HTTP/1.1 200 OK"), ("HTTP/1.0 200 Fine", "HTTP/1.1 200 Fine"),
        ("HTTP/1.1 404 \u{E9}", "HTTP/1.1 404 \u{E9}"), ("HTTP/1.1 200 ", "HTTP/1.1 200 "),
        ("HTTP/1.1 200", "HTTP/1.1 200 "), ("HTTP/1.0 599", "HTTP/1.1 599 "),
    ])
    func `writes a status line of HTTP 1.1 with the upstream's reason`(_ line: String, _ expected: String) {
        let tail = "Content-Length: 0;Date: now;X-Request-Id: r1;;"
        #expect(written([line, "Content-Length: 0"]) == "\(expected);\(tail)")
        let others = "Date: now;Content-Length: 0;X-Request-Id: r1;;"
        #expect(written([line, "Connection: a", "A: 1", "Content-Length: 0"]) == "\(expected);\(others)")
    }

    // MARK: Length

    @Test(
        arguments: [
            (.head, "200 OK", "Content-Length: 5", "Content-Length: 5;Date: now;"),
            (.get, "304 Not Modified", "Content-Length: 5", "Content-Length: 5;Date: now;"),
            (.head, "304 Not Modified", "Content-Length: 5", "Content-Length: 5;Date: now;"),
            (.get, "204 No Content", "Content-Length: 5", "Date: now;"),
            (.get, "204 No Content", "Content-Length: 0", "Date: now;"),
            (.head, "204 No Content", "Content-Length: 0", "Date: now;"),
            (.head, "200 OK", "Transfer-Encoding: chunked", "Date: now;"),
            (.head, "200 OK", "A: 1", "A: 1;Date: now;"),
            (.get, "200 OK", "Content-Length: 05", "Date: now;Content-Length: 5;"),
            (.get, "200 OK", "Content-Length: 000", "Date: now;Content-Length: 0;"),
        ] as [(Method, String, String, String)])
    func `a length without a body passes where it describes one`(
        _ method: Method, _ status: String, _ field: String, _ expected: String
    ) {
        let text = written(["HTTP/1.1 \(status)", field], to: method)
        #expect(text == "HTTP/1.1 \(status);\(expected)X-Request-Id: r1;;")
    }

    @Test(
        arguments: [
            (.length(0), "A: 1", "A: 1;Date: now;Content-Length: 0;"),
            (.length(0), "Content-Length: 5", "Date: now;Content-Length: 0;"),
            (.length(5), "Content-Length: 5", "Content-Length: 5;Date: now;"),
            (BodyFraming.none, "A: 1", "A: 1;Date: now;"),
            (.untilClose, "A: 1", "A: 1;Date: now;"),
            (.chunked, "Transfer-Encoding: chunked", "Date: now;"),
        ] as [(BodyFraming, String, String)])
    func `the length is that of the body that follows`(_ framing: BodyFraming, _ field: String, _ expected: String) {
        let text = written(["HTTP/1.1 200 OK", field], as: .response(framing))
        #expect(text == "HTTP/1.1 200 OK;\(expected)X-Request-Id: r1;;")
    }

    @Test func `a body in chunks is announced, whatever the upstream announced`() {
        let writer = ResponseHeadWriter(isChunked: true)
        for lines in [["HTTP/1.1 200 OK", "Transfer-Encoding: chunked"], ["HTTP/1.0 200 OK"], ["HTTP/1.1 200 OK"]] {
            let text = written(lines, by: writer)
            #expect(text == "HTTP/1.1 200 OK;Date: now;Transfer-Encoding: chunked;X-Request-Id: r1;;")
        }
    }

    // MARK: Strict-Transport-Security and Connection

    @Test(
        arguments: [
            (ResponseHeadWriter(), ""),
            (ResponseHeadWriter(closes: true), "Connection: close;"),
            (ResponseHeadWriter(isHTTP10: true), "Connection: keep-alive;"),
            (ResponseHeadWriter(isHTTP10: true, closes: true), "Connection: close;"),
            (ResponseHeadWriter(isStream: true), ""),
            (ResponseHeadWriter(isStream: true, closes: true), ""),
            (ResponseHeadWriter(strictTransportSeconds: 60), "Strict-Transport-Security: max-age=60;"),
            (
                ResponseHeadWriter(isStream: true, closes: true, strictTransportSeconds: 60),
                "Strict-Transport-Security: max-age=60;"
            ),
            (
                ResponseHeadWriter(closes: true, strictTransportSeconds: 31_536_000),
                "Strict-Transport-Security: max-age=31536000;Connection: close;"
            ),
        ] as [(ResponseHeadWriter, String)])
    func `adds what concerns the client's connection`(_ writer: ResponseHeadWriter, _ expected: String) {
        let upstream = written(["HTTP/1.1 200 OK", "Connection: keep-alive", "Content-Length: 0"], by: writer)
        #expect(upstream == "HTTP/1.1 200 OK;Content-Length: 0;Date: now;\(expected)X-Request-Id: r1;;")
        let local = writtenLocally(LocalResponse(status: 200, fields: [], body: []), by: writer)
        #expect(local == "HTTP/1.1 200 OK;Date: now;Content-Length: 0;\(expected)X-Request-Id: r1;;")
    }

    @Test func `the listener's Strict-Transport-Security replaces the upstream's`() {
        let lines = ["HTTP/1.1 200 OK", "strict-transport-security: max-age=1", "A: 1", "Content-Length: 0"]
        let replaced = written(lines, by: ResponseHeadWriter(strictTransportSeconds: 60))
        #expect(
            replaced == "HTTP/1.1 200 OK;A: 1;Date: now;Content-Length: 0;"
                + "Strict-Transport-Security: max-age=60;X-Request-Id: r1;;")
        #expect(
            written(lines) == "HTTP/1.1 200 OK;strict-transport-security: max-age=1;A: 1;Content-Length: 0;"
                + "Date: now;X-Request-Id: r1;;")
    }

    // MARK: Other heads

    @Test(
        arguments: [
            (["HTTP/1.1 100 Continue"], "HTTP/1.1 100 Continue;;"),
            (["HTTP/1.1 103 Hints", "Link: </a>", "Link: </b>"], "HTTP/1.1 103 Hints;Link: </a>;Link: </b>;;"),
            (
                ["HTTP/1.1 103 Hints", "Connection: a", "A: 1", "X-Request-Id: b", "Content-Length: 5", "Date: then"],
                "HTTP/1.1 103 Hints;Date: then;;"
            ),
        ] as [([String], String)])
    func `an interim response gets no field of the gateway`(_ lines: [String], _ expected: String) {
        #expect(written(lines, as: .interim, by: ResponseHeadWriter(closes: true)) == expected)
    }

    @Test func `an interim response has no Strict-Transport-Security where the listener sends it`() {
        let lines = ["HTTP/1.1 103 Early Hints", "Strict-Transport-Security: max-age=1", "Link: </a>"]
        let writer = ResponseHeadWriter(strictTransportSeconds: 60)
        #expect(written(lines, as: .interim, by: writer) == "HTTP/1.1 103 Early Hints;Link: </a>;;")
    }

    @Test func `an upgrade has the gateway's protocol, reason and ID`() {
        let lines = [
            "HTTP/1.1 101 Now", "Upgrade: WebSocket", "Connection: Upgrade", "Sec-WebSocket-Accept: a=",
            "Strict-Transport-Security: max-age=1", "X-Request-Id: theirs", "Sec-WebSocket-Protocol: chat",
        ]
        let head = "HTTP/1.1 101 Switching Protocols;Sec-WebSocket-Accept: a=;"
        let tail = "Sec-WebSocket-Protocol: chat;Connection: Upgrade;Upgrade: websocket;X-Request-Id: r1;;"
        #expect(written(lines, as: .upgrade) == "\(head)Strict-Transport-Security: max-age=1;\(tail)")
        let writer = ResponseHeadWriter(closes: true, strictTransportSeconds: 60)
        #expect(written(lines, as: .upgrade, by: writer) == head + tail)
    }

    /// The head of a handler's response, in the same form.
    private func writtenLocally(
        _ response: LocalResponse, by writer: ResponseHeadWriter = ResponseHeadWriter()
    ) -> String {
        var date = ByteBuffer()
        date.append("now")
        var texts = ByteBuffer()
        texts.append("r1")
        var out = ByteBuffer()
        unsafe writer.writeLocal(response, date: date, requestID: texts.bytes, into: &out)
        return String(decoding: out.array, as: UTF8.self).replacing("\r\n", with: ";")
    }

    @Test(arguments: [
        (200, "hello", "HTTP/1.1 200 OK;A: 1;Date: now;Content-Length: 5;X-Request-Id: r1;;"),
        (204, "", "HTTP/1.1 204 No Content;A: 1;Date: now;X-Request-Id: r1;;"),
        (303, "", "HTTP/1.1 303 See Other;A: 1;Date: now;Content-Length: 0;X-Request-Id: r1;;"),
        (299, "x", "HTTP/1.1 299 Unknown;A: 1;Date: now;Content-Length: 1;X-Request-Id: r1;;"),
    ])
    func `a handler's response gets the same fields`(_ status: Int, _ body: String, _ expected: String) {
        let response = LocalResponse(status: status, fields: [("A", "1")], body: Array(body.utf8))
        #expect(writtenLocally(response) == expected)
    }

    @Test(arguments: [
        ("HTTP/1.1 200 OK\r\n\r\n", 19), ("HTTP/1.1 200 OK\r\n\r\nbody", 19), ("HTTP/1.1 200 OK\r\n\r\n\r\n\r\n", 19),
        ("HTTP/1.1 200 OK\r\nA: 1\r\n\r\nx", 25), ("HTTP/1.1 200 OK\r\n", 17), ("", 0), ("\r\n", 2),
    ])
    func `a head ends at the first empty line`(_ text: String, _ expected: Int) {
        var buffer = ByteBuffer()
        buffer.append(text: text)
        let end = unsafe ResponseHeadWriter.endOfHead(buffer.bytes)
        #expect(end == expected)
    }
}
