import MartletHTTP
import MartletHTTP2
import Testing

/// The result of one header block.
enum HeadResult: Equatable {
    case text(String)
    case refused(HeadError)
    case reset(UInt32)
    case goAway(UInt32)
    case nothing
}

/// A header block and its expected result.
struct HeadCase: CustomTestStringConvertible, Sendable {
    let name: String
    let fields: [(String, String)]
    var ends = true
    let result: HeadResult

    var testDescription: String { name }

    init(_ name: String, _ fields: [(String, String)], ends: Bool = true, _ result: HeadResult) {
        self.name = name
        self.fields = fields
        self.ends = ends
        self.result = result
    }

    /// A request with the common pseudo-header fields, followed by these.
    init(_ name: String, more: [(String, String)], ends: Bool = true, _ result: HeadResult) {
        self.init(name, HeadCase.get + more, ends: ends, result)
    }

    static let get = [(":method", "GET"), (":scheme", "https"), (":authority", "a.example"), (":path", "/x")]

    static func text(_ fields: String, line: String = "GET /x HTTP/1.1", host: String = "a.example") -> HeadResult {
        .text("\(line)\nHost: \(host)\n\(fields)\n".replacing("\n", with: "\r\n"))
    }

    static func with(_ name: String, _ value: String?) -> [(String, String)] {
        get.compactMap { $0.0 == name ? value.map { (name, $0) } : $0 }
    }
}

enum RequestHeadCases {
    static let good: [HeadCase] = [
        HeadCase("plain", more: [], HeadCase.text("")),
        HeadCase("fields in order", more: [("b", "2"), ("a", "1")], HeadCase.text("b: 2\na: 1\n")),
        HeadCase("an empty value", more: [("b", "")], HeadCase.text("b: \n")),
        HeadCase("tabs and obs-text inside", more: [("b", "1\t\u{e9}")], HeadCase.text("b: 1\t\u{e9}\n")),
        HeadCase(
            "odd token characters", more: [("!#$%&'*+-.^_`|~09az", "1")], HeadCase.text("!#$%&'*+-.^_`|~09az: 1\n")),
        HeadCase("pseudo-headers in any order", HeadCase.get.reversed(), HeadCase.text("")),
        HeadCase("a query", HeadCase.with(":path", "/a?b=c&d"), HeadCase.text("", line: "GET /a?b=c&d HTTP/1.1")),
        HeadCase("a scheme in upper case", HeadCase.with(":scheme", "HTTP"), HeadCase.text("")),
        HeadCase(
            "OPTIONS *", [(":method", "OPTIONS"), (":scheme", "http"), (":authority", "a"), (":path", "*")],
            HeadCase.text("", line: "OPTIONS * HTTP/1.1", host: "a")),
        HeadCase(
            "an unknown method", HeadCase.with(":method", "M-SEARCH"), HeadCase.text("", line: "M-SEARCH /x HTTP/1.1")),
        HeadCase(
            "a method in lower case is another one", HeadCase.with(":method", "purge"),
            HeadCase.text("", line: "purge /x HTTP/1.1")),
        HeadCase(
            "host alone", HeadCase.with(":authority", nil) + [("a", "1"), ("host", "b:8080")],
            .text("GET /x HTTP/1.1\r\na: 1\r\nHost: b:8080\r\n\r\n")),
        HeadCase("host that agrees", more: [("a", "1"), ("host", "A.Example")], HeadCase.text("a: 1\n")),
        HeadCase(
            "cookie crumbs", more: [("cookie", "a=1"), ("x", "y"), ("cookie", "b=2"), ("cookie", "c=3")],
            HeadCase.text("x: y\ncookie: a=1; b=2; c=3\n")),
        HeadCase("te: trailers", more: [("te", "Trailers")], HeadCase.text("te: Trailers\n")),
        HeadCase("no body but a length of zero", more: [("content-length", "0")], HeadCase.text("Content-Length: 0\n")),
        HeadCase(
            "a body of a known length", more: [("content-length", "7")], ends: false,
            HeadCase.text("Content-Length: 7\n")),
        HeadCase(
            "a body of unknown length", more: [("a", "b")], ends: false,
            HeadCase.text("a: b\nTransfer-Encoding: chunked\n")),
        HeadCase(
            "expect", more: [("expect", "100-continue"), ("content-length", "1")], ends: false,
            HeadCase.text("expect: 100-continue\nContent-Length: 1\n")),
        HeadCase(
            "authorization twice is for the parser to refuse", more: [("authorization", "a"), ("authorization", "b")],
            HeadCase.text("authorization: a\nauthorization: b\n")),
        HeadCase(
            "plain CONNECT", [(":method", "CONNECT"), (":authority", "a:443")],
            .text("CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n")),
    ]

    static let malformed: [HeadCase] = [
        HeadCase("no method", HeadCase.with(":method", nil), .reset(1)),
        HeadCase("no path", HeadCase.with(":path", nil), .reset(1)),
        HeadCase("no scheme", HeadCase.with(":scheme", nil), .reset(1)),
        HeadCase("neither :authority nor host", HeadCase.with(":authority", nil), .reset(1)),
        HeadCase("nothing at all", [], .reset(1)),
        HeadCase("two methods", HeadCase.get + [(":method", "GET")], .reset(1)),
        HeadCase("two paths", HeadCase.get + [(":path", "/y")], .reset(1)),
        HeadCase("two schemes", HeadCase.get + [(":scheme", "https")], .reset(1)),
        HeadCase("two authorities", HeadCase.get + [(":authority", "b")], .reset(1)),
        HeadCase("an unknown pseudo-header", HeadCase.get + [(":foo", "1")], .reset(1)),
        HeadCase("a response's pseudo-header", HeadCase.get + [(":status", "200")], .reset(1)),
        HeadCase("a pseudo-header behind a field", [("a", "b")] + HeadCase.get, .reset(1)),
        HeadCase("an empty path", HeadCase.with(":path", ""), .reset(1)),
        HeadCase("an upper-case name", more: [("Accept", "a")], .reset(1)),
        HeadCase("a name with a space", more: [("a b", "c")], .reset(1)),
        HeadCase("a name with a colon", more: [("a:b", "c")], .reset(1)),
        HeadCase("a name with CR", more: [("a\r", "c")], .reset(1)),
        HeadCase("a name over 0x7F", more: [("\u{e9}", "c")], .reset(1)),
        HeadCase("an empty name", more: [("", "c")], .reset(1)),
        HeadCase("a value with LF", more: [("a", "b\nc: d")], .reset(1)),
        HeadCase("a value with CR", more: [("a", "b\rc")], .reset(1)),
        HeadCase("a value with NUL", more: [("a", "b\0c")], .reset(1)),
        HeadCase("a value with DEL", more: [("a", "b\u{7f}")], .reset(1)),
        HeadCase("a value with a leading space", more: [("a", " b")], .reset(1)),
        HeadCase("a value with a trailing tab", more: [("a", "b\t")], .reset(1)),
        HeadCase("connection", more: [("connection", "close")], .reset(1)),
        HeadCase("keep-alive", more: [("keep-alive", "1")], .reset(1)),
        HeadCase("proxy-connection", more: [("proxy-connection", "close")], .reset(1)),
        HeadCase("transfer-encoding", more: [("transfer-encoding", "chunked")], .reset(1)),
        HeadCase("upgrade", more: [("upgrade", "h2c")], .reset(1)),
        HeadCase("te: gzip", more: [("te", "gzip")], .reset(1)),
        HeadCase("te: trailers, deflate", more: [("te", "trailers, deflate")], .reset(1)),
        HeadCase("two lengths", more: [("content-length", "1"), ("content-length", "1")], ends: false, .reset(1)),
        HeadCase("a length with a sign", more: [("content-length", "+1")], ends: false, .reset(1)),
        HeadCase("a list of lengths", more: [("content-length", "1, 1")], ends: false, .reset(1)),
        HeadCase("an empty length", more: [("content-length", "")], ends: false, .reset(1)),
        HeadCase("a length that overflows", more: [("content-length", "99999999999999999999")], ends: false, .reset(1)),
        HeadCase("a length and no body", more: [("content-length", "1")], .reset(1)),
        HeadCase("a method with a space", HeadCase.with(":method", "GET /y HTTP/1.1"), .reset(1)),
        HeadCase("a method with CRLF", HeadCase.with(":method", "GET\r\n"), .reset(1)),
        HeadCase("a path with a space", HeadCase.with(":path", "/a HTTP/1.1\r\nHost: b"), .reset(1)),
        HeadCase("a path with LF", HeadCase.with(":path", "/a\nb"), .reset(1)),
        HeadCase("a path without a slash", HeadCase.with(":path", "a"), .reset(1)),
        HeadCase("an absolute path", HeadCase.with(":path", "http://b.example/"), .reset(1)),
        HeadCase("a path of * for GET", HeadCase.with(":path", "*"), .reset(1)),
        HeadCase("an authority with a space", HeadCase.with(":authority", "a b"), .reset(1)),
        HeadCase("an authority with CRLF", HeadCase.with(":authority", "a\r\nb: c"), .reset(1)),
        HeadCase("two hosts", HeadCase.with(":authority", nil) + [("host", "a"), ("host", "a")], .reset(1)),
        HeadCase("CONNECT with a path", HeadCase.with(":method", "CONNECT"), .reset(1)),
        HeadCase("CONNECT without an authority", [(":method", "CONNECT")], .reset(1)),
        HeadCase(":protocol without CONNECT", HeadCase.get + [(":protocol", "websocket")], .reset(1)),
    ]

    static let refused: [HeadCase] = [
        HeadCase("host that differs", more: [("host", "b.example")], .refused(.hostMismatch)),
        HeadCase("another scheme", HeadCase.with(":scheme", "ftp"), .refused(.badRequestLine)),
        HeadCase("a fragment", HeadCase.with(":path", "/a#b"), .refused(.pathAmbiguous)),
        HeadCase(
            "a method of 33 characters", HeadCase.with(":method", String(repeating: "A", count: 33)),
            .refused(.badRequestLine)),
        HeadCase(
            "a path of 8 193 bytes", HeadCase.with(":path", "/" + String(repeating: "a", count: 8192)),
            .refused(.uriTooLong)),
        HeadCase(
            "too many bytes", more: (0..<4).map { ("a\($0)", String(repeating: "b", count: 3500)) },
            .refused(.headTooLarge)),
        HeadCase("too many fields", more: (0..<100).map { ("a\($0)", "b") }, .refused(.tooManyFields)),
        HeadCase(
            "too long cookies", more: (0..<4).map { _ in ("cookie", String(repeating: "b", count: 3500)) },
            .refused(.headTooLarge)),
    ]
}
