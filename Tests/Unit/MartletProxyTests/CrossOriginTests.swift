import MartletConfig
import MartletCore
import MartletDecisionsTesting
import MartletHTTP
import MartletResponder
import Testing

@testable import MartletDecisions
@testable import MartletProxy

/// Pages of other origins: who they are, and what responses tell them.
@Suite struct `Cross-origin rules` {
    private static func configuration(
        _ origins: [CrossOriginConfiguration.Origin] = [
            .exact("https://a.test"), .subdomains(prefix: "https://", suffix: ".b.test"),
        ]
    ) -> CrossOriginConfiguration {
        CrossOriginConfiguration(origins: origins)
    }

    /// The lines for the page with an origin.
    private static func lines(
        _ configuration: CrossOriginConfiguration, _ fields: [String]
    ) throws -> (lines: [String], named: [String]) {
        let text = "GET / HTTP/1.1\r\nHost: a\r\n" + fields.map { "\($0)\r\n" }.joined() + "\r\n"
        let bytes = Array(text.utf8)
        var head = RequestHead(maximumFields: 20)
        var parser = RequestParser(maximumHeadBytes: 4096)
        try #require(parser.parse(bytes.span, into: &head) == .complete(bytes.count))
        let rules = CrossOriginRules(configuration)
        return (
            rules.fields(for: head.fields, bytes.span).texts(isOwn: false),
            rules.namedOrigin(of: head.fields, bytes.span)
        )
    }

    @Test(
        arguments: [
            ("https://a.test", true), ("https://x.b.test", true), ("https://x.y-z.b.test", true),
            ("https://0_1.b.test", true),
            ("http://a.test", false), ("https://a.test:443", false), ("https://a.test:8443", false),
            ("https://a.test.evil", false), ("https://evil-a.test", false), ("HTTPS://a.test", false),
            ("https://A.test", false), ("https://b.test", false), ("https://.b.test", false),
            ("https://x..b.test", false), ("https://evil/.b.test", false), ("https://evil#.b.test", false),
            ("https://user@x.b.test", false), ("https://x:1.b.test", false), ("https://x.b.test:8443", false),
            ("http://x.b.test", false), ("https://xb.test", false), ("https://x.b.test.", false), ("null", false),
            ("*", false), ("https://", false),
        ])
    func `origins are compared byte by byte`(_ origin: String, _ isAllowed: Bool) throws {
        let (lines, named) = try Self.lines(Self.configuration(), ["Origin: \(origin)"])
        #expect(
            lines == (isAllowed ? ["Access-Control-Allow-Origin: \(origin)", "Vary: Origin"] : ["Vary: Origin"]))
        #expect(named == (isAllowed ? [origin] : []))
    }

    @Test func `every origin, none, and two`() throws {
        for origin in ["https://x.test", "null"] {
            let (lines, named) = try Self.lines(
                Self.configuration([.any, .exact("https://a.test")]), ["origin: \(origin)"])
            #expect(lines == ["Access-Control-Allow-Origin: *", "Vary: Origin"] && named.isEmpty)
        }
        let sandboxed = try Self.lines(Self.configuration([.null]), ["Origin: null"])
        #expect(sandboxed.lines == ["Access-Control-Allow-Origin: null", "Vary: Origin"] && sandboxed.named.isEmpty)
        #expect(try Self.lines(Self.configuration([.any]), []).lines == ["Vary: Origin"])
        let two = try Self.lines(Self.configuration(), ["Origin: https://a.test", "Origin: https://a.test"])
        #expect(two.lines == ["Vary: Origin"] && two.named.isEmpty)
    }

    @Test func `responses and preflights say what is allowed`() throws {
        var configuration = Self.configuration()
        configuration.exposed = ["X-A", "X-B"]
        configuration.allowsCredentials = true
        configuration.methods = ["GET", "PUT"]
        configuration.headers = ["authorization", "x-c"]
        configuration.maximumAge = .seconds(600)
        #expect(
            try Self.lines(configuration, ["Origin: https://a.test"]).lines == [
                "Access-Control-Allow-Origin: https://a.test", "Access-Control-Allow-Credentials: true",
                "Access-Control-Expose-Headers: X-A, X-B", "Vary: Origin",
            ])
        let fields = CrossOriginRules(configuration).preflightFields(isAllowed: true)
        #expect(
            fields.map { "\($0.name): \($0.value)" } == [
                "Cache-Control: no-store", "Access-Control-Allow-Methods: GET, PUT",
                "Access-Control-Allow-Headers: authorization, x-c", "Access-Control-Max-Age: 600",
            ])
        #expect(CrossOriginRules(configuration).preflightFields(isAllowed: false).map(\.name) == ["Cache-Control"])
        let plain = CrossOriginRules(Self.configuration()).preflightFields(isAllowed: true)
        #expect(plain.map(\.value) == ["no-store", "GET, HEAD, POST"])
    }

    // MARK: Heads

    @Test(
        arguments: [
            ("B: c\r\n", false, "B: c\r\nX: 1\r\nVary: Origin\r\n"),
            (
                "access-control-allow-origin: *\r\nAccess-Control-X: 2\r\nAccess-Control: d\r\n", false,
                "Access-Control: d\r\nX: 1\r\nVary: Origin\r\n"
            ),
            (
                "Access-Control-Max-Age: 2\r\n", true,
                "Access-Control-Max-Age: 2\r\nX: 1\r\nAccess-Control-Expose-Headers: Retry-After, WWW-Authenticate, "
                    + "X-Request-Id\r\nVary: Origin\r\n"
            ),
            (
                "grpc-status: 3\r\n", true,
                "grpc-status: 3\r\nX: 1\r\nAccess-Control-Expose-Headers: Retry-After, WWW-Authenticate, "
                    + "X-Request-Id, Grpc-Status, Grpc-Message\r\nVary: Origin\r\n"
            ),
            ("Vary: Accept\r\n", false, "Vary: Accept\r\nX: 1\r\nVary: Origin\r\n"),
            ("vary: Accept,ORIGIN\r\n", false, "vary: Accept,ORIGIN\r\nX: 1\r\n"),
            ("Vary:origin\r\nVary: A\r\n", false, "Vary:origin\r\nVary: A\r\nX: 1\r\n"),
            ("Vary: X-Origin, Origin-X\r\n", false, "Vary: X-Origin, Origin-X\r\nX: 1\r\nVary: Origin\r\n"),
        ])
    func `the upstream's fields are replaced, and the gateway's own stay`(
        _ fields: String, _ isOwn: Bool, _ expected: String
    ) {
        var out: [UInt8] = []
        let head = Array("HTTP/1.1 200 OK\r\n\(fields)".utf8)
        CrossOriginFields(lines: Array("X: 1\r\n".utf8)).edit(head.span, isOwn: isOwn, into: &out)
        #expect(String(decoding: out, as: UTF8.self) == "HTTP/1.1 200 OK\r\n\(expected)")
    }

    @Test func `what is only added to is what editing would make of it`() {
        let fields = CrossOriginFields(lines: Array("X: 1\r\n".utf8))
        let names = [
            "A", "Age", "Accept", "access-control", "Access-Control-", "ACCESS-CONTROL-max-age", "access_control-a",
            "V", "Via", "VARY", "vary", "Varying", "Content-Length", "Access-Control-Allow-Origin",
            "\u{61}ccess-Contro",
        ]
        var added = 0
        for first in names {
            for second in names {
                let text = "HTTP/1.1 200 \(first)\r\n\(first): vary: a\r\n\(second):access-control-x\r\n"
                let head = Array(text.utf8)
                guard CrossOriginFields.concernsNoField(of: head.span) else { continue }
                var edited: [UInt8] = []
                fields.edit(head.span, isOwn: false, into: &edited)
                var out = ByteBuffer()
                out.append(head)
                fields.add(to: &out)
                #expect(out.array == edited, "\(first), \(second)")
                added += 1
            }
        }
        #expect(added == 100)
    }

    // MARK: In the loop

    private static func bench(_ change: (inout RouteConfiguration) -> Void = { _ in }) throws -> LoopBench {
        var route = SampleSettings.route("ruled")
        route.methods = ["GET", "POST"]
        route.crossOrigin = configuration()
        route.crossOrigin?.methods = ["GET", "DELETE"]
        route.responseHeaders.set = [.init(name: "X-Env", value: "prod"), .init(name: "Vary", value: "Accept")]
        route.responseHeaders.remove = ["server"]
        route.bodyLimit = .bytes(3)
        change(&route)
        return try LoopBench { [route] in $0.routes = [route] }
    }

    private static func preflight(_ method: String, _ origin: String = "https://a.test", _ more: String = "") -> String
    {
        "OPTIONS /ruled/x HTTP/1.1\r\nHost: a\r\nOrigin: \(origin)\r\naccess-Control-request-METHOD: \(method)\r\n"
            + "\(more)\r\n"
    }

    @Test(arguments: ["GET", "POST", "DELETE", "PUT"])
    func `a preflight is not forwarded`(_ method: String) throws {
        let bench = try Self.bench()
        let client = bench.openClient()
        bench.admit(Self.preflight(method), on: client.downstream)
        let response = client.end.text()
        #expect(response.hasPrefix("HTTP/1.1 204 No Content\r\n") && response.hasSuffix("\r\n\r\n"))
        #expect(response.contains("Access-Control-Allow-Origin: https://a.test\r\n"))
        #expect(response.contains("Access-Control-Allow-Methods: GET, DELETE\r\n"))
        #expect(response.contains("Vary: Origin\r\n") && response.contains("Vary: Accept\r\n"))
        #expect(response.contains("X-Env: prod\r\n") && response.contains("Cache-Control: no-store\r\n"))
        #expect(!response.contains("Content-Length") && !response.contains("Connection: close"))
        bench.admit(Self.preflight(method, "https://evil.test"), on: client.downstream)
        let foreign = client.end.text()
        #expect(foreign.hasPrefix("HTTP/1.1 204 ") && !foreign.contains("Access-Control"))
        #expect(foreign.contains("Vary: Origin\r\n"))
    }

    @Test func `OPTIONS without what makes it a preflight is a request as any other`() throws {
        let bench = try Self.bench { $0.methods = [] }
        for head in [
            "OPTIONS /ruled/x HTTP/1.1\r\nHost: a\r\nOrigin: https://a.test\r\n\r\n",
            "OPTIONS /ruled/x HTTP/1.1\r\nHost: a\r\nAccess-Control-Request-Method: GET\r\n\r\n",
            "OPTIONS /ruled/x HTTP/1.1\r\nHost: a\r\nOrigin: b\r\nAccess-Control-Request-Headers: GET\r\n\r\n",
            "OPTIONS /plain/x HTTP/1.1\r\nHost: a\r\nOrigin: b\r\nAccess-Control-Request-Method: GET\r\n\r\n",
        ] {
            let forwarded = bench.forward(head)
            #expect(forwarded.sent.hasPrefix("OPTIONS /"), "\(head)")
        }
    }

    @Test func `a preflight is subject to the path's rules and the limits`() throws {
        let bench = try Self.bench()
        let client = bench.openClient()
        let path = "OPTIONS /ruled/../x HTTP/1.1\r\nHost: a\r\nOrigin: b\r\nAccess-Control-Request-Method: GET\r\n\r\n"
        bench.admit(path, on: client.downstream)
        #expect(client.end.text().hasPrefix("HTTP/1.1 400 "))
        let other = bench.openClient()
        bench.admit(Self.preflight("GET", "https://a.test", "Content-Length: 4\r\n"), on: other.downstream)
        let tooLong = other.end.text()
        #expect(tooLong.hasPrefix("HTTP/1.1 413 ") && tooLong.contains("Access-Control-Allow-Origin: https://a.test"))
    }

    @Test func `responses of the upstream and of the gateway have the fields`() throws {
        let bench = try Self.bench()
        let forwarded = bench.forward("GET /ruled/x HTTP/1.1\r\nHost: a\r\nOrigin: https://x.b.test\r\n\r\n")
        forwarded.server.end.send(
            "HTTP/1.1 200 OK\r\nServer: a\r\nAccess-Control-Allow-Origin: *\r\nContent-Length: 2\r\n\r\nok")
        bench.event(forwarded.upstream)
        let response = forwarded.client.end.text()
        #expect(response.contains("Access-Control-Allow-Origin: https://x.b.test\r\n") && !response.contains("*"))
        #expect(response.contains("Vary: Origin\r\n") && response.contains("X-Env: prod\r\n"))
        #expect(response.hasSuffix("\r\n\r\nok") && !response.contains("Server"))
        let client = bench.openClient()
        let post = "POST /ruled/x HTTP/1.1\r\nHost: a\r\nOrigin: https://a.test\r\nContent-Length: 4\r\n\r\n"
        bench.admit(post, on: client.downstream)
        let rejection = client.end.text()
        #expect(rejection.hasPrefix("HTTP/1.1 413 ") && rejection.contains("Allow-Origin: https://a.test\r\n"))
        #expect(rejection.contains("Vary: Origin\r\n"))
        let lost = bench.openClient()
        bench.admit("GET /nothing HTTP/1.1\r\nHost: a\r\nOrigin: https://a.test\r\n\r\n", on: lost.downstream)
        let missing = lost.end.text()
        #expect(missing.hasPrefix("HTTP/1.1 404 ") && !missing.contains("Vary") && !missing.contains("Access-Control"))
    }
}
