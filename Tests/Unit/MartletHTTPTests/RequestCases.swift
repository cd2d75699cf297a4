import Testing

/// A message and its expected result.
struct MessageCase: CustomTestStringConvertible, Sendable {
    let testDescription: String
    let bytes: [UInt8]
    let expected: String

    init(_ name: String, _ text: String, _ expected: String) {
        testDescription = name
        bytes = Array(text.utf8)
        self.expected = expected
    }

    init(_ name: String, bytes: [UInt8], _ expected: String) {
        testDescription = name
        self.bytes = bytes
        self.expected = expected
    }
}

private let plain = "GET path=/ host=a none"

/// A request for `/` with these field lines.
private func fields(_ name: String, _ lines: String, _ expected: String) -> MessageCase {
    MessageCase(name, "GET / HTTP/1.1\r\n\(lines)\r\n", expected)
}

/// A request with this line and a valid `Host`.
private func line(_ line: String, _ expected: String) -> MessageCase {
    MessageCase(line.debugDescription, "\(line)\r\nHost: a\r\n\r\n", expected)
}

/// A request for `/` with `Host: a` and one more line.
private func field(_ line: String, _ expected: String) -> MessageCase {
    MessageCase(line.debugDescription, "GET / HTTP/1.1\r\nHost: a\r\n\(line)\r\n\r\n", expected)
}

/// A request whose `Host` has this value.
private func host(_ value: String, _ expected: String) -> MessageCase {
    MessageCase("Host: \(value)", "GET / HTTP/1.1\r\nHost: \(value)\r\n\r\n", expected)
}

private func raw(_ name: String, _ before: String, _ byte: UInt8, _ after: String, _ expected: String) -> MessageCase {
    MessageCase(name, bytes: Array(before.utf8) + [byte] + Array(after.utf8), expected)
}

enum RequestCases {
    static let all =
        lines + forms + hosts + lineEnds + names + values + lengths + encodings + connections + others + limits

    static let lines: [MessageCase] = [
        line("GET / HTTP/1.1", plain),
        line("HEAD / HTTP/1.1", "HEAD path=/ host=a none"),
        line("M-SEARCH / HTTP/1.1", "M-SEARCH path=/ host=a none"),
        line("get / HTTP/1.1", "request.method_case"),
        line("Post / HTTP/1.1", "request.method_case"),
        line("version-Control / HTTP/1.1", "request.method_case"),
        line("purge / HTTP/1.1", "purge path=/ host=a none"),
        line("PURGE / HTTP/1.1", "PURGE path=/ host=a none"),
        line("GET /x?y?z HTTP/1.1", "GET path=/x query=?y?z host=a none"),
        line("GET /? HTTP/1.1", "GET path=/ query=? host=a none"),
        line("GET /a%20b HTTP/1.1", "GET path=/a%20b host=a none"),
        line("GET / HTTP/1.0", plain + " 1.0 close"),
        line("GET /", "request.bad_request_line"),
        line("GET", "request.bad_request_line"),
        line("", "request.bad_field_name").leadingEmptyLine,
        line("GET  / HTTP/1.1", "request.bad_request_line"),
        line("GET /  HTTP/1.1", "request.bad_request_line"),
        line("GET\t/ HTTP/1.1", "request.bad_request_line"),
        line("GET /\tHTTP/1.1", "request.bad_request_line"),
        line(" GET / HTTP/1.1", "request.bad_request_line"),
        line("GET / HTTP/1.1 ", "request.bad_request_line"),
        line("GET / HTTP/1.1\t", "request.bad_request_line"),
        line("GET / x HTTP/1.1", "request.bad_request_line"),
        line("G(T / HTTP/1.1", "request.bad_request_line"),
        line("G:T / HTTP/1.1", "request.bad_request_line"),
        line("\u{16}\u{3}\u{1} / HTTP/1.1", "request.bad_request_line"),
        line(
            "\(String(repeating: "M", count: 32)) / HTTP/1.1", "\(String(repeating: "M", count: 32)) path=/ host=a none"
        ),
        line("\(String(repeating: "M", count: 33)) / HTTP/1.1", "request.bad_request_line"),
        line("GET / HTTP/1.2", "request.bad_version"),
        line("GET / HTTP/2.0", "request.bad_version"),
        line("GET / HTTP/0.9", "request.bad_version"),
        MessageCase("a line of another version and nothing else", "GET / HTTP/1.4\r\n", "request.bad_version"),
        MessageCase("a line that is cut off before the version", "GET / HTTP\r\n", "request.bad_request_line"),
        line("GET / HTTP/1.10", "request.bad_request_line"),
        line("GET / HTTP/11", "request.bad_request_line"),
        line("GET / HTTP/1", "request.bad_request_line"),
        line("GET / http/1.1", "request.bad_request_line"),
        line("GET / HTTP/1,1", "request.bad_request_line"),
        line("GET / HTTP/+1.1", "request.bad_request_line"),
        line("GET / SIP/2.0xx", "request.bad_request_line"),
        line("PRI * HTTP/2.0", "request.bad_request_line"),
        line("GET /a#b HTTP/1.1", "request.path_ambiguous"),
        line("GET /?a#b HTTP/1.1", "request.path_ambiguous"),
        line("GET /é HTTP/1.1", "request.bad_request_line"),
        raw("NUL in the target", "GET /a", 0, " HTTP/1.1\r\nHost: a\r\n\r\n", "request.bad_request_line"),
        raw("DEL in the target", "GET /a", 0x7F, " HTTP/1.1\r\nHost: a\r\n\r\n", "request.bad_request_line"),
        raw("CR in the target", "GET /a", 0x0D, " HTTP/1.1\r\nHost: a\r\n\r\n", "request.bad_request_line"),
        raw("NUL in the method", "GE", 0, "T / HTTP/1.1\r\nHost: a\r\n\r\n", "request.bad_request_line"),
        MessageCase("an empty line first", "\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", plain),
        MessageCase("two empty lines first", "\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", plain),
        MessageCase(
            "three empty lines first", "\r\n\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", "request.bad_request_line"),
        MessageCase("a bare line feed first", "\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", "request.bare_lf"),
        MessageCase("a bare carriage return first", "\rGET / HTTP/1.1\r\nHost: a\r\n\r\n", "request.bad_request_line"),
        MessageCase("another request behind it", "GET / HTTP/1.1\r\nHost: a\r\n\r\nGET /2", plain + " rest=6"),
        MessageCase(
            "a body behind it", "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi",
            "PUT path=/ host=a length(2) rest=2"),
        MessageCase("nothing", "", "incomplete"),
        MessageCase("half a line", "GET / HT", "incomplete"),
        MessageCase("no empty line", "GET / HTTP/1.1\r\nHost: a\r\n", "incomplete"),
        MessageCase("half an empty line", "GET / HTTP/1.1\r\nHost: a\r\n\r", "incomplete"),
    ]

    static let forms: [MessageCase] = [
        line("GET http://a/ HTTP/1.1", plain + " absolute"),
        line("GET HTTP://A/x?y HTTP/1.1", "GET path=/x query=?y host=a none absolute"),
        line("GET https://a/x HTTP/1.1", "GET path=/x host=a none absolute"),
        line("GET http://a HTTP/1.1", plain + " absolute"),
        line("GET http://a?x=/y HTTP/1.1", "GET path=/ query=?x=/y host=a none absolute"),
        line("GET http://b/ HTTP/1.1", "request.host_mismatch"),
        line("GET http://a:80/ HTTP/1.1", plain + " absolute"),
        line("GET http://a:/ HTTP/1.1", plain + " absolute"),
        line("GET https://a:443/ HTTP/1.1", plain + " absolute"),
        line("GET https://a:80/ HTTP/1.1", "request.host_mismatch"),
        line("GET http://a:443/ HTTP/1.1", "request.host_mismatch"),
        line("GET http://a:8/ HTTP/1.1", "request.host_mismatch"),
        MessageCase(
            "a default port in Host alone", "GET http://a/ HTTP/1.1\r\nHost: a:80\r\n\r\n",
            "GET path=/ host=a:80 none absolute"),
        line("GET http://a@b/ HTTP/1.1", "request.bad_host"),
        line("GET http://u:p@a/ HTTP/1.1", "request.bad_host"),
        line("GET http:///x HTTP/1.1", "request.bad_host"),
        line("GET http://?x HTTP/1.1", "request.bad_host"),
        line("GET http:/a HTTP/1.1", "request.bad_request_line"),
        line("GET http:a HTTP/1.1", "request.bad_request_line"),
        line("GET ftp://a/ HTTP/1.1", "request.bad_request_line"),
        line("GET file:///etc/passwd HTTP/1.1", "request.bad_request_line"),
        line("GET a HTTP/1.1", "request.bad_request_line"),
        line("GET ?x HTTP/1.1", "request.bad_request_line"),
        line("GET a:80 HTTP/1.1", "request.bad_request_line"),
        line("GET \\x HTTP/1.1", "request.bad_request_line"),
        line("OPTIONS * HTTP/1.1", "OPTIONS path=* host=a none asterisk"),
        line("GET * HTTP/1.1", "request.bad_request_line"),
        line("OPTIONS *x HTTP/1.1", "request.bad_request_line"),
        line("OPTIONS *?x HTTP/1.1", "request.bad_request_line"),
        line("CONNECT a:443 HTTP/1.1", "CONNECT path= host=a none authority"),
        line("CONNECT [::1]:443 HTTP/1.1", "CONNECT path= host=a none authority"),
        line("CONNECT a HTTP/1.1", "request.bad_request_line"),
        line("CONNECT / HTTP/1.1", "request.bad_request_line"),
        line("CONNECT http://a/ HTTP/1.1", "request.bad_request_line"),
        line("CONNECT a:443?x HTTP/1.1", "request.bad_request_line"),
        line("GET //x HTTP/1.1", "GET path=//x host=a none"),
    ]

    static let hosts: [MessageCase] = [
        fields("no Host", "Accept: x\r\n", "request.host_missing"),
        MessageCase("no Host in HTTP/1.0", "GET / HTTP/1.0\r\n\r\n", "GET path=/ host= none 1.0 close"),
        MessageCase(
            "a host in the target of HTTP/1.0", "GET http://a:/ HTTP/1.0\r\n\r\n", plain + " 1.0 absolute close"),
        MessageCase("two Hosts in HTTP/1.0", "GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n", "request.host_repeated"),
        MessageCase("an empty Host in HTTP/1.0", "GET / HTTP/1.0\r\nHost:\r\n\r\n", "request.bad_host"),
        fields("two equal Hosts", "Host: a\r\nHost: a\r\n", "request.host_repeated"),
        fields("two different Hosts", "Host: a\r\nhost: b\r\n", "request.host_repeated"),
        host("EXAMPLE.com:8080", "GET path=/ host=EXAMPLE.com:8080 none"),
        host("my_host-1.internal.", "GET path=/ host=my_host-1.internal. none"),
        host("127.0.0.1:1", "GET path=/ host=127.0.0.1:1 none"),
        host("[::1]:65535", "GET path=/ host=[::1]:65535 none"),
        host("[2001:db8::1]", "GET path=/ host=[2001:db8::1] none"),
        host("[::ffff:10.0.0.1]", "GET path=/ host=[::ffff:10.0.0.1] none"),
        host("[1:2:3:4:5:6:7:8]", "GET path=/ host=[1:2:3:4:5:6:7:8] none"),
        host("[1:2:3:4:5:6:10.0.0.1]", "GET path=/ host=[1:2:3:4:5:6:10.0.0.1] none"),
        host("[::]", "GET path=/ host=[::] none"),
        host("[1::]", "GET path=/ host=[1::] none"),
        host("[1::2::3]", "request.bad_host"),
        host("[1:2:3:4:5:6:7]", "request.bad_host"),
        host("[1:2:3:4:5:6:7:8:9]", "request.bad_host"),
        host("[1:2:3:4:5:6:7::8]", "request.bad_host"),
        host("[:1]", "request.bad_host"),
        host("[1:]", "request.bad_host"),
        host("[]", "request.bad_host"),
        host("[12345::]", "request.bad_host"),
        host("[::1%25eth0]", "request.bad_host"),
        host("[v1.x]", "request.bad_host"),
        host("[::256.0.0.1]", "request.bad_host"),
        host("[::1.2.3]", "request.bad_host"),
        host("[::1.2.3.4.5]", "request.bad_host"),
        host("[::1", "request.bad_host"),
        host("::1", "request.bad_host"),
        host("[::1]x", "request.bad_host"),
        host("", "request.bad_host"),
        host("a b", "request.bad_host"),
        host("a,b", "request.bad_host"),
        host("a/b", "request.bad_host"),
        host("u@a", "request.bad_host"),
        host("a:", plain),
        host("[::1]:", "GET path=/ host=[::1] none"),
        host("a::", "request.bad_host"),
        host(":", "request.bad_host"),
        host("a.b.c.example.example.com:", "GET path=/ host=a.b.c.example.example.com none"),
        host("a:b", "request.bad_host"),
        host("a:80:80", "request.bad_host"),
        host("a:65536", "request.bad_host"),
        host("a:-1", "request.bad_host"),
        host(":80", "request.bad_host"),
        host(".a", "request.bad_host"),
        host("a..b", "request.bad_host"),
        host("a%2eb", "request.bad_host"),
        host("a?b", "request.bad_host"),
        host("a\\b", "request.bad_host"),
        host("é", "request.bad_host"),
        host(String(repeating: "a", count: 262), "request.bad_host"),
    ]

    static let lineEnds: [MessageCase] = [
        MessageCase("LF after the request line", "GET / HTTP/1.1\nHost: a\r\n\r\n", "request.bare_lf"),
        MessageCase("LF after a field", "GET / HTTP/1.1\r\nHost: a\nX: y\r\n\r\n", "request.bare_lf"),
        MessageCase("LF for the empty line", "GET / HTTP/1.1\r\nHost: a\r\n\n", "request.bare_lf"),
        MessageCase("only LF", "GET / HTTP/1.1\nHost: a\n\n", "request.bare_lf"),
        MessageCase("CR CR LF", "GET / HTTP/1.1\r\nHost: a\r\r\n\r\n", "request.bare_cr"),
        MessageCase("CR CR LF at the end", "GET / HTTP/1.1\r\nHost: a\r\n\r\r\n", "request.bare_cr"),
        MessageCase("CR after the version", "GET / HTTP/1.1\rHost: a\r\n\r\n", "request.bare_cr"),
        field("X: a\rY: b", "request.bare_cr"),
        field("X: a\nY: b", "request.bare_lf"),
        field("X: a\rTransfer-Encoding: chunked", "request.bare_cr"),
        field("X: y\r\n folded", "request.obs_fold"),
        field("X: y\r\n\tfolded", "request.obs_fold"),
        field("X: y\r\n ", "request.obs_fold"),
        MessageCase("space before the first field", "GET / HTTP/1.1\r\n Host: a\r\n\r\n", "request.obs_fold"),
        field("Transfer-Encoding:\r\n chunked", "request.bad_transfer_encoding"),
    ]

    static let names: [MessageCase] = [
        field("Host : a", "request.space_before_colon"),
        field("Content-Length : 5", "request.space_before_colon"),
        field("Transfer-Encoding\t: chunked", "request.space_before_colon"),
        field("X Y: z", "request.bad_field_name"),
        field("NoColon", "request.bad_field_name"),
        field("NoColon here", "request.bad_field_name"),
        field(": empty", "request.bad_field_name"),
        field(":", "request.bad_field_name"),
        field("X(y): z", "request.bad_field_name"),
        field("X\"y: z", "request.bad_field_name"),
        field("X/y: z", "request.bad_field_name"),
        field("X@y: z", "request.bad_field_name"),
        field("X[y]: z", "request.bad_field_name"),
        field("X{y}: z", "request.bad_field_name"),
        field("X,y: z", "request.bad_field_name"),
        field("X;y: z", "request.bad_field_name"),
        field("X=y: z", "request.bad_field_name"),
        field("X\\y: z", "request.bad_field_name"),
        field("Xé: z", "request.bad_field_name"),
        raw("NUL in a name", "GET / HTTP/1.1\r\nHost: a\r\nX", 0, "y: z\r\n\r\n", "request.bad_field_name"),
        raw(
            "a digit's control twin in a name", "GET / HTTP/1.1\r\nHost: a\r\nLongName", 0x11, "y: z\r\n\r\n",
            "request.bad_field_name"),
        raw("DEL in a name", "GET / HTTP/1.1\r\nHost: a\r\nX", 0x7F, "y: z\r\n\r\n", "request.bad_field_name"),
        raw("0x80 in a name", "GET / HTTP/1.1\r\nHost: a\r\nX", 0x80, "y: z\r\n\r\n", "request.bad_field_name"),
        field("!#$%&'*+-.^_`|~09azAZ: z", plain),
        field("Content_Length: 5", "request.bad_field_name"),
        field("CONTENT.LENGTH: 5", "request.bad_field_name"),
        field("Transfer_Encoding: chunked", "request.bad_field_name"),
        field("transfer.encoding: chunked", "request.bad_field_name"),
        field("Content!Length: 5", "request.bad_field_name"),
        field("_Transfer__Encoding: chunked", "request.bad_field_name"),
        field("X-Content-Length: 5", plain),
        field("Content-Lengthx: 5", plain),
    ]

    static let values: [MessageCase] = [
        field("X:", plain),
        field("X: ", plain),
        field("X:y", plain),
        field("X: \t y \t ", plain),
        field("X: a\tb", plain),
        field("X: caf\u{e9}", plain),
        field("X: : : :", plain),
        raw("NUL in a value", "GET / HTTP/1.1\r\nHost: a\r\nX: a", 0, "b\r\n\r\n", "request.bad_field_value"),
        raw("BEL in a value", "GET / HTTP/1.1\r\nHost: a\r\nX: a", 7, "b\r\n\r\n", "request.bad_field_value"),
        raw("VT in a value", "GET / HTTP/1.1\r\nHost: a\r\nX: a", 11, "b\r\n\r\n", "request.bad_field_value"),
        raw("FF in a value", "GET / HTTP/1.1\r\nHost: a\r\nX: a", 12, "b\r\n\r\n", "request.bad_field_value"),
        raw("ESC in a value", "GET / HTTP/1.1\r\nHost: a\r\nX: a", 27, "b\r\n\r\n", "request.bad_field_value"),
        raw("DEL in a value", "GET / HTTP/1.1\r\nHost: a\r\nX: a", 0x7F, "b\r\n\r\n", "request.bad_field_value"),
        raw("0xFF in a value", "GET / HTTP/1.1\r\nHost: a\r\nX: a", 0xFF, "b\r\n\r\n", plain),
    ]

    static let lengths: [MessageCase] = [
        field("Content-Length: 0", "GET path=/ host=a length(0)"),
        field("content-LENGTH: 5", "GET path=/ host=a length(5)"),
        field("Content-Length:   007  ", "GET path=/ host=a length(7)"),
        field("Content-Length: 999999999999999999", "GET path=/ host=a length(999999999999999999)"),
        field("Content-Length: 1000000000000000000", "request.bad_content_length"),
        field("Content-Length: 18446744073709551621", "request.bad_content_length"),
        field("Content-Length: 99999999999999999999999999", "request.bad_content_length"),
        field("Content-Length:", "request.bad_content_length"),
        field("Content-Length: +5", "request.bad_content_length"),
        field("Content-Length: -5", "request.bad_content_length"),
        field("Content-Length: 5, 5", "request.bad_content_length"),
        field("Content-Length: 5,6", "request.bad_content_length"),
        field("Content-Length: 5 5", "request.bad_content_length"),
        field("Content-Length: 0x5", "request.bad_content_length"),
        field("Content-Length: 5.0", "request.bad_content_length"),
        field("Content-Length: 5;", "request.bad_content_length"),
        field("Content-Length: 1e3", "request.bad_content_length"),
        field("Content-Length: ٥", "request.bad_content_length"),
        field("Content-Length: 5\r\nContent-Length: 5", "request.repeated_content_length"),
        field("Content-Length: 5\r\nContent-Length: 6", "request.repeated_content_length"),
        field("Content-Length: 5\r\ncontent-length: x", "request.repeated_content_length"),
    ]

    static let encodings: [MessageCase] = [
        field("Transfer-Encoding: chunked", "GET path=/ host=a chunked"),
        field("transfer-encoding: CHUNKED", "GET path=/ host=a chunked"),
        field("Transfer-Encoding:", "request.bad_transfer_encoding"),
        field("Transfer-Encoding: gzip", "request.bad_transfer_encoding"),
        field("Transfer-Encoding: identity", "request.bad_transfer_encoding"),
        field("Transfer-Encoding: gzip, chunked", "request.bad_transfer_encoding"),
        field("Transfer-Encoding: chunked, chunked", "request.bad_transfer_encoding"),
        field("Transfer-Encoding: chunked, identity", "request.bad_transfer_encoding"),
        field("Transfer-Encoding: ,chunked", "request.bad_transfer_encoding"),
        field("Transfer-Encoding: chunked,", "request.bad_transfer_encoding"),
        field("Transfer-Encoding: chunked;q=1", "request.bad_transfer_encoding"),
        field("Transfer-Encoding: \"chunked\"", "request.bad_transfer_encoding"),
        field("Transfer-Encoding: xchunked", "request.bad_transfer_encoding"),
        field("Transfer-Encoding: chunkedx", "request.bad_transfer_encoding"),
        field("Transfer-Encoding: chun\u{212A}ed", "request.bad_transfer_encoding"),
        raw(
            "VT before chunked", "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: ", 11, "chunked\r\n\r\n",
            "request.bad_field_value"),
        field("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", "request.bad_transfer_encoding"),
        field("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity", "request.bad_transfer_encoding"),
        field("Transfer-Encoding: chunked\r\nContent-Length: 5", "request.transfer_encoding_with_content_length"),
        field("Content-Length: 5\r\nTransfer-Encoding: chunked", "request.transfer_encoding_with_content_length"),
        field("Content-Length: 0\r\nTransfer-Encoding: identity", "request.transfer_encoding_with_content_length"),
        MessageCase(
            "Transfer-Encoding in HTTP/1.0", "POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
            "request.transfer_encoding_in_http10"),
        field("TE: trailers", plain),
    ]

    static let connections: [MessageCase] = [
        field("Connection: close", plain + " close"),
        field("Connection: Close", plain + " close"),
        field("Connection: keep-alive", plain),
        field("Connection: keep-alive, close", plain + " close"),
        field("Connection: keep-alive\r\nConnection: close", plain + " close"),
        field("Connection: , ,close,", plain + " close"),
        field("Connection: closed", plain),
        field("Connection:", plain),
        field("Connection: \"close\"", "request.bad_connection"),
        field("Connection: close; x", "request.bad_connection"),
        field("Connection: a b", "request.bad_connection"),
        field("Connection: " + Array(repeating: "a", count: 32).joined(separator: ","), plain),
        field("Connection: " + Array(repeating: "a", count: 33).joined(separator: ","), "request.bad_connection"),
        field("Connection: Upgrade\r\nUpgrade: websocket", plain + " upgrade=websocket"),
        field("Upgrade: websocket\r\nConnection: x, upgrade", plain + " upgrade=websocket"),
        field("Upgrade: websocket", plain),
        field("Connection: upgrade", plain),
        field("Connection: upgrade\r\nUpgrade: websocket\r\nUpgrade: h2c", plain),
        MessageCase(
            "keep-alive in HTTP/1.0", "GET / HTTP/1.0\r\nHost: a\r\nConnection: Keep-Alive\r\n\r\n", plain + " 1.0"),
        MessageCase(
            "keep-alive and close in HTTP/1.0", "GET / HTTP/1.0\r\nHost: a\r\nConnection: keep-alive, close\r\n\r\n",
            plain + " 1.0 close"),
        MessageCase(
            "upgrade in HTTP/1.0", "GET / HTTP/1.0\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
            plain + " 1.0 close"),
    ]

    static let others: [MessageCase] = [
        field("Authorization: Bearer x", plain + " authorization=Bearer x"),
        field("Authorization: Bearer x\r\nauthorization: Bearer x", "request.authorization_repeated"),
        field("Authorization:\r\nAuthorization: Basic x", "request.authorization_repeated"),
        field("Proxy-Authorization: a\r\nProxy-Authorization: b", plain),
        field("Expect: 100-continue", plain),
        field("Expect: 100-Continue\r\nContent-Length: 1", "GET path=/ host=a length(1) continue"),
        field("Content-Length: 0\r\nExpect: 100-continue", "GET path=/ host=a length(0)"),
        field("Expect: 100-continue\r\nTransfer-Encoding: chunked", "GET path=/ host=a chunked continue"),
        field("Expect: 200-ok", "request.bad_expectation"),
        field("Expect:", "request.bad_expectation"),
        field("Expect: 100-continue\r\nExpect: 100-continue", "request.bad_expectation"),
        field("Expect: 100-continue, x", "request.bad_expectation"),
        field("Trailer: X\r\nTransfer-Encoding: chunked", "GET path=/ host=a chunked trailers"),
        MessageCase(
            "Expect in HTTP/1.0", "PUT / HTTP/1.0\r\nHost: a\r\nContent-Length: 1\r\nExpect: 100-continue\r\n\r\n",
            "PUT path=/ host=a length(1) 1.0 close"),
    ]

    static let limits: [MessageCase] = [
        line(
            "GET /\(String(repeating: "x", count: 8191)) HTTP/1.1",
            "GET path=/\(String(repeating: "x", count: 8191)) host=a none"),
        line("GET /\(String(repeating: "x", count: 8192)) HTTP/1.1", "request.uri_too_long"),
        line("GET /?\(String(repeating: "x", count: 8191)) HTTP/1.1", "request.uri_too_long"),
        MessageCase("an endless target", "GET /\(String(repeating: "x", count: 9000))", "request.uri_too_long"),
        MessageCase("an endless method", String(repeating: "x", count: 9000), "request.bad_request_line"),
        MessageCase(
            "an endless version", "GET / HTTP/1.1\(String(repeating: "x", count: 9000))", "request.bad_request_line"),
        MessageCase(
            "an endless field", "GET / HTTP/1.1\r\nX: \(String(repeating: "x", count: 17000))", "request.head_too_large"
        ),
        MessageCase(
            "a complete head over the limit",
            "GET / HTTP/1.1\r\nHost: a\r\nX:\(String(repeating: "x", count: 16384))\r\n\r\n", "request.head_too_large"),
        fields("100 fields", "Host: a\r\n" + String(repeating: "X: y\r\n", count: 99), plain),
        fields("101 fields", "Host: a\r\n" + String(repeating: "X: y\r\n", count: 100), "request.too_many_fields"),
    ]
}

extension MessageCase {
    /// The same bytes, named for what they begin with.
    fileprivate var leadingEmptyLine: MessageCase {
        MessageCase("an empty line for a request line", bytes: bytes, "request.bad_request_line")
    }
}
