import Testing

@testable import MartletConfig
@testable import MartletDecisions
@testable import MartletProxy

@Suite struct `The upstream's head` {
    @Test func `has the client's part first and the gateway's last`() {
        var bench = UpstreamHeadBench()
        bench.identity = "X-Auth-Subject: ada\r\nX-Auth-Provider: apple\r\n"
        let outcome = bench.write("GET /a?b=c HTTP/1.1\r\nHost: example.com\r\nAccept: x\r\n\r\n")
        #expect(
            outcome.text == """
                GET /a?b=c HTTP/1.1\r\nHost: example.com\r\nAccept: x\r\nVia: 1.1 \(UpstreamHeadBench.pseudonym)\r
                X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-Proto: http\r\nX-Forwarded-Host: example.com\r
                X-Request-Id: 0123\r\nX-Auth-Subject: ada\r\nX-Auth-Provider: apple\r\n\r\n
                """)
    }

    // MARK: Request line and Host

    /// A request line with its `Host`, and what becomes of them.
    struct LineCase: CustomTestStringConvertible, Sendable {
        let request: String
        let host: UpstreamConfiguration.HostPolicy
        let strip: String?
        let line: String
        let hosts: [String]
        /// Whether the endpoint's name is filled in.
        let isFilledIn: Bool

        var testDescription: String { "\(request), host: \(host), strip: \(strip ?? "nothing")" }

        init(
            _ request: String, host: UpstreamConfiguration.HostPolicy = .keep, strip: String? = nil, _ line: String,
            _ hosts: String, isFilledIn: Bool = false
        ) {
            self.request = request
            self.host = host
            self.strip = strip
            self.line = line
            self.hosts = [hosts]
            self.isFilledIn = isFilledIn
        }
    }

    static let lines: [LineCase] = [
        LineCase("GET /a?b HTTP/1.1\r\nHost: h", "GET /a?b HTTP/1.1", "Host: h"),
        LineCase("PURGE /a HTTP/1.1\r\nhOST: h", "PURGE /a HTTP/1.1", "hOST: h"),
        LineCase("GET /a HTTP/1.0\r\nHost: h", "GET /a HTTP/1.1", "Host: h"),
        LineCase("GET http://h/a?b HTTP/1.1\r\nHost: h", "GET /a?b HTTP/1.1", "Host: h"),
        LineCase("GET /%61?b=%61 HTTP/1.1\r\nHost: h", "GET /a?b=%61 HTTP/1.1", "Host: h"),
        LineCase("GET /a HTTP/1.1\r\nHost:h", "GET /a HTTP/1.1", "Host: h"),
        LineCase("GET /a HTTP/1.1\r\nHost:  h", "GET /a HTTP/1.1", "Host: h"),
        LineCase("GET /a HTTP/1.1\r\nHost: h ", "GET /a HTTP/1.1", "Host: h"),
        LineCase("GET /a?b HTTP/1.1\r\nHost: h", host: .fixed("inner:81"), "GET /a?b HTTP/1.1", "Host: inner:81"),
        LineCase("GET /a?b HTTP/1.1\r\nHost: h", host: .endpoint, "GET /a?b HTTP/1.1", "Host: ", isFilledIn: true),
        LineCase("GET /a HTTP/1.0", "GET /a HTTP/1.1", "Host: ", isFilledIn: true),
        LineCase("GET /a HTTP/1.0", host: .fixed("inner"), "GET /a HTTP/1.1", "Host: inner"),
        LineCase("GET /a HTTP/1.1\r\nHost: h:", "GET /a HTTP/1.1", "Host: h"),
        LineCase("GET /v1/a?b HTTP/1.1\r\nHost: h", strip: "/v1", "GET /a?b HTTP/1.1", "Host: h"),
        LineCase("GET /v1?b HTTP/1.1\r\nHost: h", strip: "/v1", "GET /?b HTTP/1.1", "Host: h"),
        LineCase("GET /v1/ HTTP/1.1\r\nHost: h", strip: "/v1", "GET / HTTP/1.1", "Host: h"),
        LineCase("GET /v12 HTTP/1.1\r\nHost: h", strip: "/v1", "GET /v12 HTTP/1.1", "Host: h"),
        LineCase("GET /%761/a HTTP/1.1\r\nHost: h", strip: "/v1", "GET /a HTTP/1.1", "Host: h"),
    ]

    @Test(arguments: lines)
    func `keeps or rewrites the request line and Host`(_ row: LineCase) {
        let bench = UpstreamHeadBench(host: row.host, strip: row.strip)
        let outcome = bench.write(row.request + "\r\nAccept: x\r\n\r\n")
        #expect(outcome.lines.first == row.line)
        #expect(outcome.lines.filter { $0.lowercased().hasPrefix("host:") } == row.hosts)
        #expect(outcome.hostLine == (row.isFilledIn ? row.hosts[0] : ""))
        #expect(outcome.fields("Accept") == ["Accept: x"])
        let hasHost = row.request.lowercased().replacing(" ", with: "").contains("host:h")
        #expect(outcome.fields("X-Forwarded-Host") == (hasHost ? ["X-Forwarded-Host: h"] : []))
    }

    // MARK: Fields

    /// A field, and whether it is forwarded unchanged for any client, and for a trusted proxy.
    struct FieldCase: CustomTestStringConvertible, Sendable {
        let field: String
        let untrusted: Bool
        let trusted: Bool

        var testDescription: String { field }

        init(_ field: String, untrusted: Bool, trusted: Bool) {
            self.field = field
            self.untrusted = untrusted
            self.trusted = trusted
        }
    }

    static let fields: [FieldCase] = [
        FieldCase("Accept: x", untrusted: true, trusted: true),
        FieldCase("Cookie:  a=b ", untrusted: true, trusted: true),
        FieldCase("X-Own: 1", untrusted: true, trusted: true),
        FieldCase("X-RequestId: 1", untrusted: true, trusted: true),
        FieldCase("X-HTTP-Method-Override: PUT", untrusted: true, trusted: true),
        FieldCase("Authorization: Bearer t", untrusted: true, trusted: true),
        FieldCase("Authorization: Bearer mat_1", untrusted: false, trusted: false),
        FieldCase("X-Auth-Subject: eve", untrusted: false, trusted: false),
        FieldCase("x_auth.any: eve", untrusted: false, trusted: false),
        FieldCase("XAuth-Email: eve", untrusted: false, trusted: false),
        FieldCase("X-Auth-Assertion: eve", untrusted: false, trusted: false),
        FieldCase("X-Own%41: 1", untrusted: false, trusted: false),
        FieldCase("Keep-Alive: timeout=5", untrusted: false, trusted: false),
        FieldCase("TE: trailers", untrusted: false, trusted: false),
        FieldCase("Via: 1.0 other", untrusted: true, trusted: true),
        FieldCase("HTTP2-Settings: x", untrusted: false, trusted: false),
        FieldCase("Author-ization: Bearer t", untrusted: false, trusted: false),
        FieldCase("X-Request-Id: eve", untrusted: false, trusted: false),
        FieldCase("X_Request_Id: eve", untrusted: false, trusted: false),
        FieldCase("X-Forwarded-For: 198.51.100.9", untrusted: false, trusted: false),
        FieldCase("X-Forwarded-Proto: gopher", untrusted: false, trusted: true),
        FieldCase("X-Forwarded-Host: other", untrusted: false, trusted: true),
        FieldCase("X-Forwarded-Prefix: /p", untrusted: false, trusted: true),
        FieldCase("X-Forwarded-User: eve", untrusted: false, trusted: true),
        FieldCase("X-Real-IP: 198.51.100.9", untrusted: false, trusted: true),
        FieldCase("x_real_ip: 198.51.100.9", untrusted: false, trusted: true),
        FieldCase("Remote-User: eve", untrusted: false, trusted: true),
    ]

    @Test(arguments: fields)
    func `forwards a field or not`(_ row: FieldCase) {
        for isTrusted in [false, true] {
            var bench = UpstreamHeadBench()
            bench.isTrusted = isTrusted
            let outcome = bench.write(field: row.field)
            let expected = isTrusted ? row.trusted : row.untrusted
            #expect(outcome.lines.contains(row.field) == expected, "trusted: \(isTrusted)")
            #expect(outcome.fields("Padding-So-That-More-Follows").count == 1)
            #expect(outcome.rules.contains(.isTrusted) == isTrusted)
        }
    }

    @Test func `a field that Connection names is not forwarded`() {
        let outcome = UpstreamHeadBench().write(field: "Connection: X-Own\r\nX-Own: 1\r\nX-Other: 2")
        #expect(outcome.fields("X-Own").isEmpty && outcome.fields("Connection").isEmpty)
        #expect(outcome.fields("X-Other") == ["X-Other: 2"])
    }

    @Test func `a field that the route removes is not forwarded in any spelling`() {
        let bench = UpstreamHeadBench(remove: ["x-debug"])
        for field in ["X-Debug: 1", "x_debug: 1", "XDebug: 1"] {
            #expect(!bench.write(field: field).lines.contains(field), "\(field)")
        }
        #expect(bench.write(field: "X-Debugger: 1").lines.contains("X-Debugger: 1"))
    }

    @Test(arguments: [
        ("Bearer t", false, false, true), ("Bearer t", true, false, false), ("Bearer t", false, true, true),
        ("Bearer t", true, true, true), ("Bearer mat_1", false, false, false), ("Bearer mrt_1", true, false, false),
        ("Bearer mat_1", true, true, true), ("Other \"mat_1\"", false, false, false),
    ])
    func `a credential is forwarded`(_ value: String, isConsumed: Bool, isForwarded: Bool, _ expected: Bool) {
        var bench = UpstreamHeadBench(forwardsCredentials: isForwarded)
        bench.consumesCredential = isConsumed
        let outcome = bench.write(field: "Authorization: \(value)")
        #expect(outcome.lines.contains("Authorization: \(value)") == expected)
    }

    @Test(arguments: [
        ("/locked/a", false, false), ("/locked/a", true, true), ("/open", false, true), ("/open", true, true),
    ])
    func `a method override is forwarded where no route matches methods`(
        _ path: String, isTrusted: Bool, _ expected: Bool
    ) {
        var bench = UpstreamHeadBench(remove: ["x-method-override"], locked: true)
        bench.isTrusted = isTrusted
        let outcome = bench.write(
            "GET \(path) HTTP/1.1\r\nHost: a\r\nX-HTTP-Method: PUT\r\nX-Method-Override: PUT\r\nAccept: x\r\n\r\n")
        #expect(outcome.fields("X-HTTP-Method").count == (expected ? 1 : 0))
        #expect(outcome.fields("X-Method-Override").isEmpty)
        #expect(outcome.fields("Accept").count == 1)
    }

    @Test func `Expect is forwarded where the client waits`() {
        let fields = "Host: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n"
        let outcome = UpstreamHeadBench().write("POST / HTTP/1.1\r\n" + fields)
        #expect(outcome.fields("Expect").count == 1 && outcome.rules.contains(.keepsExpect))
    }

    // MARK: The gateway's fields

    @Test(arguments: [
        ("GET / HTTP/1.1\r\nHost: a", [] as [String]), ("POST / HTTP/1.1\r\nHost: a", []),
        ("POST / HTTP/1.1\r\nContent-Length: 5\r\nHost: a", ["Content-Length: 5"]),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0", ["Content-Length: 0"]),
        ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked", ["Transfer-Encoding: chunked"]),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum",
            ["Transfer-Encoding: chunked", "Trailer: X-Sum"]
        ),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTrailer: X-Sum", ["Content-Length: 5"]),
    ])
    func `the framing is the gateway's`(_ request: String, _ expected: [String]) {
        let outcome = UpstreamHeadBench().write(request + "\r\n\r\n")
        let names = ["content-length:", "transfer-encoding:", "trailer:"]
        #expect(outcome.lines.filter { line in names.contains { line.lowercased().hasPrefix($0) } } == expected)
    }

    @Test func `Via names the protocol of the client`() {
        var bench = UpstreamHeadBench()
        #expect(bench.write(field: "A: b").fields("Via") == ["Via: 1.1 \(bench.snapshot.pseudonym.text)"])
        bench.isStream = true
        #expect(bench.write(field: "A: b").fields("Via") == ["Via: 2.0 \(bench.snapshot.pseudonym.text)"])
        bench.isStream = false
        let others = bench.write(field: "Via: 1.0 fred, 1.1 martlet-00000000 (x)\r\nvia: 1.1 p.example")
        #expect(
            others.lines.filter { $0.lowercased().hasPrefix("via") } == [
                "Via: 1.0 fred, 1.1 martlet-00000000 (x)", "via: 1.1 p.example",
                "Via: 1.1 \(bench.snapshot.pseudonym.text)",
            ])
    }

    @Test func `an upgrade is offered with the client's spelling`() {
        var bench = UpstreamHeadBench()
        #expect(bench.write(field: "A: b").fields("Upgrade").isEmpty)
        bench.upgrade = "WebSocket"
        let outcome = bench.write(field: "Connection: upgrade\r\nUpgrade: other, WebSocket")
        #expect(outcome.fields("Connection") == ["Connection: Upgrade"])
        #expect(outcome.fields("Upgrade") == ["Upgrade: WebSocket"])
    }

    @Test func `a trusted peer's chain is extended, another client's is replaced`() {
        var bench = UpstreamHeadBench()
        let fields = "X-Forwarded-For: 198.51.100.9\r\nA: b\r\nx-forwarded-for: 203.0.113.1, 203.0.113.2"
        #expect(bench.write(field: fields).fields("X-Forwarded-For") == ["X-Forwarded-For: 192.0.2.1"])
        bench.isTrusted = true
        #expect(
            bench.write(field: fields).fields("X-Forwarded-For") == [
                "X-Forwarded-For: 198.51.100.9, 203.0.113.1, 203.0.113.2, 192.0.2.1"
            ])
        #expect(bench.write(field: "A: b").fields("X-Forwarded-For") == ["X-Forwarded-For: 192.0.2.1"])
    }

    @Test(arguments: [
        ("for=198.51.100.9;proto=https;host=shop.example", "198.51.100.9, 192.0.2.1", "https", "shop.example"),
        ("for=\"[2001:db8::1]:80\"", "2001:db8::1, 192.0.2.1", "http", "a"),
        ("for=unknown;proto=ftp;host=\"b c\"", "unknown, 192.0.2.1", "http", "a"),
        // What a client has written before its proxy counts as little as in X-Forwarded-For.
        ("for=evil;proto=https;host=evil.example, for=198.51.100.9", "unknown, 198.51.100.9, 192.0.2.1", "http", "a"),
        (
            "for=198.51.100.9;proto=https, for=192.0.2.1;proto=http;host=in", "198.51.100.9, 192.0.2.1, 192.0.2.1",
            "https", "in"
        ),
    ])
    func `what Forwarded says is said in all fields`(_ value: String, _ chain: String, _ proto: String, _ host: String)
    {
        var bench = UpstreamHeadBench(trusting: "192.0.2.0")
        #expect(bench.write(field: "Forwarded: \(value)").fields("X-Forwarded-For") == ["X-Forwarded-For: 192.0.2.1"])
        bench.isTrusted = true
        let outcome = bench.write(field: "Forwarded: \(value)")
        #expect(outcome.fields("X-Forwarded-For") == ["X-Forwarded-For: \(chain)"])
        #expect(outcome.fields("X-Forwarded-Proto") == ["X-Forwarded-Proto: \(proto)"])
        #expect(outcome.fields("X-Forwarded-Host") == ["X-Forwarded-Host: \(host)"])
        #expect(outcome.fields("Forwarded") == ["Forwarded: \(value), for=192.0.2.1;proto=http;host=\"a\""])
    }

    @Test func `fields of both kinds stay as a trusted peer has sent them, extended`() {
        var bench = UpstreamHeadBench()
        bench.isTrusted = true
        let fields = "Forwarded: for=198.51.100.8\r\nX-Forwarded-For: 198.51.100.9\r\nX-Forwarded-Proto: https"
        let outcome = bench.write(field: fields)
        #expect(outcome.fields("X-Forwarded-For") == ["X-Forwarded-For: 198.51.100.9, 192.0.2.1"])
        #expect(outcome.fields("X-Forwarded-Proto") == ["X-Forwarded-Proto: https"])
        #expect(outcome.fields("Forwarded").first?.hasPrefix("Forwarded: for=198.51.100.8, for=192.0.2.1") == true)
    }

    @Test(arguments: [
        ("A: b", false, "X-Forwarded-Proto: http", "X-Forwarded-Host: a"),
        ("A: b", true, "X-Forwarded-Proto: https", "X-Forwarded-Host: a"),
        ("X-Forwarded-Proto: gopher", true, "X-Forwarded-Proto: gopher", "X-Forwarded-Host: a"),
        ("X-Forwarded-Host: b", true, "X-Forwarded-Proto: https", "X-Forwarded-Host: b"),
        ("X-Forwarded-Host: b", false, "X-Forwarded-Proto: http", "X-Forwarded-Host: b"),
        (
            "X-Forwarded-Host: b\r\nX-Forwarded-Proto: gopher", false, "X-Forwarded-Proto: gopher",
            "X-Forwarded-Host: b"
        ),
    ])
    func `the gateway adds what a trusted peer has not sent`(
        _ field: String, isSecure: Bool, _ proto: String, _ host: String
    ) {
        var bench = UpstreamHeadBench()
        bench.isTrusted = true
        bench.isSecure = isSecure
        let outcome = bench.write(field: field)
        #expect(outcome.fields("X-Forwarded-Proto") == [proto])
        #expect(outcome.fields("X-Forwarded-Host") == [host])
    }

    @Test(arguments: [
        ("192.0.2.1", false, "Forwarded: for=192.0.2.1;proto=http;host=\"a\""),
        ("2001:db8::1", true, "Forwarded: for=\"[2001:db8::1]\";proto=https;host=\"a\""),
    ])
    func `Forwarded is replaced where the client has sent it`(_ address: String, isSecure: Bool, _ expected: String) {
        var bench = UpstreamHeadBench()
        bench.address = address
        bench.isSecure = isSecure
        #expect(bench.write(field: "Forwarded: for=198.51.100.9").fields("Forwarded") == [expected])
        #expect(bench.write(field: "A: b").fields("Forwarded").isEmpty)
    }
}
