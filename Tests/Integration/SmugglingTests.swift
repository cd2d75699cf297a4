import MartletTesting
import Testing

/// What two readers of one request could understand differently is refused, and the connection with it.
@Suite struct `Smuggling` {
    static let heads: [(String, String)] = [
        (
            "both lengths",
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
        ),
        (
            "both lengths, other order",
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n"
        ),
        ("identity", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity\r\n\r\n"),
        ("gzip and chunked", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"),
        ("chunked twice", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n"),
        (
            "two fields",
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
        ),
        (
            "two fields, one false",
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-encoding: x\r\n\r\n0\r\n\r\n"
        ),
        ("another coding", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"),
        ("quoted", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n"),
        ("parameter", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked;q=1\r\n\r\n0\r\n\r\n"),
        ("vertical tab", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \u{b}chunked\r\n\r\n0\r\n\r\n"),
        ("empty coding", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\r\n\r\n0\r\n\r\n"),
        ("space before colon", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n"),
        ("coding in 1.0", "POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        ("length with plus", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +5\r\n\r\nhello"),
        ("negative length", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -5\r\n\r\nhello"),
        ("hexadecimal length", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0x5\r\n\r\nhello"),
        ("listed length", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5, 5\r\n\r\nhello"),
        ("repeated length", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello"),
        ("two lengths", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!"),
        ("length with a gap", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5 5\r\n\r\nhello"),
        ("empty length", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n\r\n"),
        ("length over 64 bits", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 18446744073709551621\r\n\r\nhello"),
        ("exponent", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5e0\r\n\r\nhello"),
        ("bare LF behind the request line", "GET / HTTP/1.1\nHost: a\r\n\r\n"),
        ("bare LF behind a field", "GET / HTTP/1.1\r\nHost: a\nX: y\r\n\r\n"),
        ("bare LF at the end", "GET / HTTP/1.1\r\nHost: a\r\n\n"),
        ("bare CR in a value", "GET / HTTP/1.1\r\nHost: a\r\nX: y\rZ: w\r\n\r\n"),
        ("bare CR before CRLF", "GET / HTTP/1.1\r\nHost: a\r\nX: y\r\r\n\r\n"),
        ("NUL in a value", "GET / HTTP/1.1\r\nHost: a\r\nX: y\0z\r\n\r\n"),
        ("control byte in a value", "GET / HTTP/1.1\r\nHost: a\r\nX: y\u{1}z\r\n\r\n"),
        ("DEL in a value", "GET / HTTP/1.1\r\nHost: a\r\nX: y\u{7f}z\r\n\r\n"),
        ("folded line", "GET / HTTP/1.1\r\nHost: a\r\nX: y\r\n z\r\n\r\n"),
        ("folded line with a tab", "GET / HTTP/1.1\r\nHost: a\r\nX: y\r\n\tz: 1\r\n\r\n"),
        ("space before the first field", "GET / HTTP/1.1\r\n Host: a\r\n\r\n"),
        ("empty name", "GET / HTTP/1.1\r\nHost: a\r\n: y\r\n\r\n"),
        ("no colon", "GET / HTTP/1.1\r\nHost: a\r\nXy\r\n\r\n"),
        ("a name that is no token", "GET / HTTP/1.1\r\nHost: a\r\nX(y): z\r\n\r\n"),
        ("a name with a space", "GET / HTTP/1.1\r\nHost: a\r\nX y: z\r\n\r\n"),
        ("a name beyond ASCII", "GET / HTTP/1.1\r\nHost: a\r\nX-é: z\r\n\r\n"),
        ("no host", "GET / HTTP/1.1\r\nX: y\r\n\r\n"),
        ("two hosts", "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n"),
        ("a host with a space", "GET / HTTP/1.1\r\nHost: a b\r\n\r\n"),
        ("a host with a slash", "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n"),
        ("a host with a user", "GET / HTTP/1.1\r\nHost: a@b\r\n\r\n"),
        ("a list of hosts", "GET / HTTP/1.1\r\nHost: a, b\r\n\r\n"),
        ("a port that is none", "GET / HTTP/1.1\r\nHost: a:b\r\n\r\n"),
        ("no version", "GET /\r\nHost: a\r\n\r\n"),
        ("lower-case version", "GET / http/1.1\r\nHost: a\r\n\r\n"),
        ("another version", "GET / HTTP/1.2\r\nHost: a\r\n\r\n"),
        ("version 2 in text", "GET / HTTP/2.0\r\nHost: a\r\n\r\n"),
        ("a long version", "GET / HTTP/1.10\r\nHost: a\r\n\r\n"),
        ("two spaces", "GET  / HTTP/1.1\r\nHost: a\r\n\r\n"),
        ("a tab", "GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n"),
        ("space at the end", "GET / HTTP/1.1 \r\nHost: a\r\n\r\n"),
        ("space at the start", " GET / HTTP/1.1\r\nHost: a\r\n\r\n"),
        ("a method that is no token", "G@T / HTTP/1.1\r\nHost: a\r\n\r\n"),
    ]

    @Test func `an ambiguous head is rejected with 400, the connection closed, and reaches no upstream`() throws {
        try withOpenGateway { gateway, upstream throws in
            for (what, bytes) in Self.heads {
                let smuggled = bytes + "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"
                do {
                    let (response, isClosed) = try gateway.raw(smuggled)
                    expectRejection(response, 400, "request_invalid", what)
                    #expect(isClosed, "\(what): the connection stays open")
                } catch {
                    Issue.record("\(what): \(error)")
                }
            }
            #expect(upstream.requests.map(\.startLine) == [])
        }
    }

    @Test(arguments: ["Host:a", "Host: a ", "Host:a ", "Host:\ta", "Host: \t a\t"])
    func `the white space around a host stays here`(_ line: String) throws {
        try withOpenGateway { gateway, upstream throws in
            let (response, _) = try gateway.raw("GET / HTTP/1.1\r\nAccept: b\r\n\(line)\r\nConnection: close\r\n\r\n")
            #expect(response.status == 200, "\(response)")
            let lines = String(decoding: try upstream.onlyRequest().rawHead, as: UTF8.self).split(separator: "\r\n")
            #expect(lines.filter { $0.hasPrefix("Host") } == ["Host: a"])
        }
    }

    @Test func `an underscore does not make a second length of a field`() throws {
        try withOpenGateway { gateway, upstream throws in
            let client = try gateway.connect()
            try client.send(
                "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent_Length: 6\r\n\r\nhello")
            // Refused, or forwarded without the second length: an upstream that folds `_` must not see two.
            let response = try client.response()
            #expect([200, 400].contains(response.status))
            #expect(upstream.requests.allSatisfy { $0.text == "hello" && $0["Content_Length"] == nil })
        }
    }

    static let chunks: [(String, String)] = [
        ("not a digit", "g\r\nhello\r\n0\r\n\r\n"), ("a prefix", "0x5\r\nhello\r\n0\r\n\r\n"),
        ("a sign", "+5\r\nhello\r\n0\r\n\r\n"), ("negative", "-5\r\nhello\r\n0\r\n\r\n"),
        ("space before", " 5\r\nhello\r\n0\r\n\r\n"), ("empty size", "\r\nhello\r\n0\r\n\r\n"),
        ("only an extension", ";a\r\nhello\r\n0\r\n\r\n"), ("bare LF behind the size", "5\nhello\r\n0\r\n\r\n"),
        ("bare LF in an extension", "5;a\nb\r\nhello\r\n0\r\n\r\n"),
        ("bare CR in an extension", "5;a\rb\r\nhello\r\n0\r\n\r\n"),
        ("no line end behind the data", "5\r\nhello0\r\n\r\n"), ("bare LF behind the data", "5\r\nhello\n0\r\n\r\n"),
        ("too much data", "5\r\nhello!\r\n0\r\n\r\n"),
        ("a size over 64 bits", "10000000000000005\r\nhello\r\n0\r\n\r\n"),
        ("the largest size", "ffffffffffffffff\r\nhello\r\n0\r\n\r\n"), ("bare LF at the end", "5\r\nhello\r\n0\r\n\n"),
        ("an endless extension", "5;" + String(repeating: "a", count: 20_000) + "\r\nhello\r\n0\r\n\r\n"),
        ("a folded trailer", "5\r\nhello\r\n0\r\nA: b\r\n c\r\n\r\n"),
        ("a trailer without a colon", "5\r\nhello\r\n0\r\nA\r\n\r\n"),
        ("a trailer with NUL", "5\r\nhello\r\n0\r\nA: \0\r\n\r\n"),
        ("a trailer with a space", "5\r\nhello\r\n0\r\nA : b\r\n\r\n"),
    ]

    @Test func `a malformed chunk never makes a complete request`() throws {
        try withOpenGateway { gateway, upstream throws in
            for (what, bytes) in Self.chunks {
                let before = upstream.requests.count
                let client = try gateway.connect()
                try client.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + bytes)
                let response = try? client.response(within: .seconds(5))
                if let response { expectRejection(response, 400, "request_invalid", what) }
                #expect(client.socket.isEnded(within: .seconds(2)), "\(what): the connection stays open")
                try? waitUntil("the upstream's side ends", within: .seconds(3)) {
                    upstream.endedConnections == upstream.acceptedConnections
                }
                let arrived = upstream.requests.dropFirst(before)
                #expect(arrived.allSatisfy { $0.end == .truncated }, "\(what): \(arrived)")
            }
        }
    }

    @Test func `a chunked body is coded anew, without extensions`() throws {
        try withOpenGateway { gateway, upstream throws in
            let client = try gateway.connect()
            try client.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n")
            try client.send("5;ext=\"v\";x\r\nhello\r\n0006;y=1\r\n world\r\n000;z\r\n\r\n")
            #expect(try client.response().status == 200)
            let request = try upstream.onlyRequest()
            #expect(request.text == "hello world" && request.end == .complete)
            #expect(!String(decoding: request.rawBody, as: UTF8.self).contains(";"))
            #expect(request["Content-Length"] == nil && request["Transfer-Encoding"] == "chunked")
        }
    }

    @Test func `what follows a body is the next request, never a part of this one`() throws {
        try withOpenGateway { gateway, upstream throws in
            let client = try gateway.connect()
            try client.send(
                "POST /1 HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabcGET /2 HTTP/1.1\r\nHost: a\r\n\r\n")
            #expect(try client.response().status == 200 && client.response().status == 200)
            #expect(upstream.requests.map(\.target) == ["/1", "/2"] && upstream.requests[0].text == "abc")
        }
    }

    @Test func `a request body behind an early response of the upstream is not read as a request`() throws {
        let script: ScriptedUpstream.Script = {
            try $0.respond(413, body: "no")
            $0.closes = true
        }
        try withOpenGateway(readsBodies: false, script: script) { gateway, upstream throws in
            let client = try gateway.connect()
            let hidden = "GET /hidden HTTP/1.1\r\nHost: a\r\n\r\n"
            try client.send("POST /1 HTTP/1.1\r\nHost: a\r\nContent-Length: \(hidden.utf8.count + 1)\r\n\r\n" + hidden)
            #expect(try client.response().status == 413)
            try? client.send("xGET /3 HTTP/1.1\r\nHost: a\r\n\r\n")
            _ = try? client.response(within: .seconds(1))
            #expect(!upstream.requests.contains { $0.target == "/hidden" })
        }
    }
}
