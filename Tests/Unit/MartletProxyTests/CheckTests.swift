import MartletCore
import MartletDecisionsTesting
import MartletHTTP
import MartletProvider
import MartletResponder
import MartletTesting
import Testing

@testable import MartletConfig
@testable import MartletDecisions
@testable import MartletProxy

/// Checks: a trusted proxy asks whether a request may pass.
@Suite struct CheckTests {
    private static let somewhere = SourceLocation(file: "config.yaml", line: 1, column: 1)
    private static let empty = "X-Auth-Subject:\r\nX-Auth-Provider:\r\nX-Auth-Email:\r\nX-Assertion:\r\n"

    private static func bench(_ checks: ForwardAuthConfiguration = ForwardAuthConfiguration()) throws -> LoopBench {
        var only = SampleSettings.route("only")
        only.upstream = nil
        var named = SampleSettings.route("named")
        named.authentication = .optional(providers: [])
        named.setHeaders = [
            HeaderConfiguration(
                name: Located("x-route", at: somewhere), value: .attribute(.route), encoding: .percent)
        ]
        var closed = SampleSettings.route("closed")
        closed.upstream = nil
        closed.response = .fixed(FixedResponseConfiguration())
        return try LoopBench {
            $0.routes = [only, named, closed]
            $0.checks = checks
        }
    }

    /// Sends one check as a trusted proxy, and returns the response.
    private static func check(
        _ line: String, _ fields: [String] = [], bench: LoopBench? = nil, isTrusted: Bool = true
    ) throws -> String {
        let bench = try bench ?? Self.bench()
        let client = bench.openClient(isTrusted: isTrusted)
        let head = ["\(line) HTTP/1.1", "Host: a"] + fields
        bench.admit(head.joined(separator: "\r\n") + "\r\n\r\n", on: client.downstream)
        return client.end.text()
    }

    private static func allowed(_ lines: String, closes: Bool = false) -> String {
        BenchText.head(
            "HTTP/1.1 200 OK\r\n",
            own: "Content-Length: 0\r\n" + (closes ? "Connection: close\r\n" : "")
        ).dropLast() + "Cache-Control: no-store\r\n\(lines)\r\n"
    }

    @Test(arguments: [
        ("GET /auth/check/api/x", [], empty + "x-route:\r\n"),
        ("PUT /auth/check/only/x?a=b", [], empty + "x-route:\r\n"),
        ("HEAD /auth/check", ["X-Original-URI: /api/x", "X-Original-Method: GET"], empty + "x-route:\r\n"),
        (
            "GET /auth/check", ["X-Original-URI: /named/x", "X-Original-Method: DELETE"],
            "x-route: named\r\n" + empty
        ),
    ])
    func `a request that may pass gets 200 with every identity header`(
        _ line: String, _ fields: [String], _ lines: String
    ) throws {
        let text = try Self.check(line, fields)
        #expect(text == Self.allowed(lines))
    }

    @Test(arguments: [
        ("GET /auth/check/none", 403, "Forbidden", "no_route"),
        ("GET /auth/check/", 403, "Forbidden", "no_route"),
        ("POST /auth/check/read/x", 403, "Forbidden", "method_not_allowed"),
        ("GET /auth/check/own/x", 403, "Forbidden", "no_route"),
        ("GET /auth/check/auth/check/api/x", 403, "Forbidden", "no_route"),
        ("GET /auth/check/closed/x", 403, "Forbidden", "no_route"),
        ("GET /auth/check", 400, "Bad Request", "request_invalid"),
        ("GET /auth/check?deny=403", 403, "Forbidden", "request_invalid"),
        ("GET /auth/check?a&deny=4033&deny=403x", 400, "Bad Request", "request_invalid"),
    ])
    func `what has no route, or is not described, is rejected`(
        _ line: String, _ status: Int, _ title: String, _ code: String
    ) throws {
        let fields = code == "method_not_allowed" ? "Allow: BREW, GET, HEAD\r\n" : ""
        let text = try Self.check(line)
        #expect(text.hasPrefix("HTTP/1.1 \(status) \(title)\r\n"))
        #expect(text.contains("\"code\":\"\(code)\"") && text.contains("\"status\":\(status),"))
        #expect(!text.contains("Connection: close") && (fields.isEmpty || text.contains("Allow: ")))
    }

    @Test func `an ambiguous path is rejected without closing the proxy's connection`() throws {
        let bench = try Self.bench()
        let text = try Self.check("GET /auth/check", ["X-Original-URI: /api/..%2fv1"], bench: bench)
        #expect(text == BenchText.problem(400, "Bad Request", "request_invalid"))
        #expect(bench.log().allSatisfy { $0.contains("/api/..%2fv1") && $0.contains(" request.path_ambiguous ") })
    }

    @Test func `the configuration may say that every rejection is 403`() throws {
        var checks = ForwardAuthConfiguration()
        checks.deniesAlike = true
        let text = try Self.check("GET /auth/check", bench: Self.bench(checks))
        #expect(text == BenchText.problem(403, "Forbidden", "request_invalid"))
    }

    @Test func `a peer that is not trusted gets what a path without a route gets`() throws {
        let bench = try Self.bench()
        let text = try Self.check("GET /auth/check/api/x", bench: bench, isTrusted: false)
        #expect(text == BenchText.problem(404, "Not Found", "no_route"))
        let log = bench.log()
        #expect(log.count == 1 && log.allSatisfy { $0.contains(" 404 check.untrusted_peer ") })
    }

    @Test func `a route without an upstream serves checks alone`() throws {
        let bench = try Self.bench()
        let text = try Self.check("GET /only/x", bench: bench)
        #expect(text == BenchText.problem(404, "Not Found", "no_route"))
        #expect(bench.log().allSatisfy { $0.contains(" router.checks_only ") })
    }

    @Test func `a body is not read, and closes the connection`() throws {
        let text = try Self.check("POST /auth/check/small/x", ["Content-Length: 11"])
        #expect(text == Self.allowed(Self.empty + "x-route:\r\n", closes: true))
    }

    @Test func `the log has the described request and says that it is a check`() throws {
        let bench = try Self.bench()
        let fields = [
            "X-Forwarded-Method: PUT", "X-Forwarded-Proto: https", "X-Forwarded-Host: h", "X-Forwarded-Uri: /api/%78",
        ]
        _ = try Self.check("GET /auth/check", fields, bench: bench)
        bench.run { $0.context.logs.access.flush(now: 0, isIdle: true) }
        let log = bench.access.take()
        #expect(log.contains(#""client":"192.0.2.1","method":"PUT","host":"h","path":"/api/x","#))
        #expect(log.contains(#""status":200,"reason":"ok","provider":"","upstream":"","check":true,"bytes_in":0,"#))
    }

    @Test func `checks are counted by the route that they concern`() throws {
        let bench = try Self.bench()
        for path in ["check/only/x", "check/only/y", "check/none", "check/closed/x"] {
            _ = try Self.check("GET /auth/\(path)", bench: bench)
        }
        let rows = bench.run { $0.context.counters.report().requests }
        #expect(Set(rows.map { "\($0.route) \($0.status) \($0.count)" }) == ["only 200 2", "- 403 1", "closed 403 1"])
        #expect(rows.allSatisfy { $0.isCheck })
    }

    @Test(arguments: ["/only/x", "/api/x"])
    func `a head that is described already has the same route`(_ path: String) throws {
        let bench = try Self.bench()
        let text = "GET /auth/check\(path) HTTP/1.1\r\nHost: a\r\n\r\n"
        let exchange = bench.begin(text, on: bench.openClient(isTrusted: true).downstream)
        #expect(bench.route(text, exchange))
        #expect(bench.route(text, exchange))
        #expect(bench.run { !$0.exchanges[exchange].request.check.isEmpty })
    }

    @Test func `a head that is not described yet is none of a route for checks`() throws {
        let bench = try Self.bench()
        let text = "GET /only/x HTTP/1.1\r\nHost: a\r\n\r\n"
        let exchange = bench.begin(text, on: bench.openClient(isTrusted: true).downstream)
        bench.run { $0.exchanges[exchange].request.check = .isCheck }
        #expect(!bench.route(text, exchange))
        #expect(bench.log().contains { $0.contains(" router.checks_only ") })
    }

    @Test func `a check of an upgrade opens no tunnel`() throws {
        let bench = try Self.bench()
        let fields = [
            "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
            "Sec-WebSocket-Version: 13",
        ]
        let text = try Self.check("GET /auth/check/plain/x", fields, bench: bench)
        #expect(text == Self.allowed(Self.empty + "x-route:\r\n"))
    }
}

/// What routes have beyond their pattern, as checks see it.
@Suite struct CheckedRouteTests {
    private static func located(_ text: String) -> Located<String> {
        Located(text, at: SourceLocation(file: "config.yaml", line: 1, column: 1))
    }

    /// Sends checks as one trusted proxy, and returns their responses.
    private static func check(
        _ lines: [String], fields: String = "", _ change: (inout SampleSettings) -> Void
    ) throws -> [String] {
        let bench = try LoopBench {
            $0.checks = ForwardAuthConfiguration()
            change(&$0)
        }
        return lines.map { line in
            let client = bench.openClient(isTrusted: true)
            bench.admit("\(line) HTTP/1.1\r\nHost: a\r\n\(fields)\r\n", on: client.downstream)
            return client.end.text()
        }
    }

    @Test func `a check takes a token of its route's limits, and says what is left`() throws {
        let texts = try Self.check(["GET /auth/check/api/x", "GET /auth/check/api/x", "GET /auth/check/plain/x"]) {
            $0.limit("per_address", [.address], RequestRate(count: 1, perSeconds: 60), burst: 1)
            $0.routeLimits.announces = true
        }
        let left = "RateLimit-Policy: \"per_address\";q=1;w=60\r\nRateLimit: \"per_address\";r=0;t=60\r\n\r\n"
        #expect(texts[0].hasPrefix("HTTP/1.1 200 OK\r\n") && texts[0].hasSuffix("X-Assertion:\r\n" + left))
        #expect(texts[1].hasPrefix("HTTP/1.1 429 ") && texts[1].contains("Retry-After: 60\r\n"))
        #expect(texts[2].hasPrefix("HTTP/1.1 200 ") && !texts[2].contains("RateLimit"))
    }

    @Test func `the host of the described request is what a limit counts by`() throws {
        let bench = try LoopBench {
            $0.checks = ForwardAuthConfiguration()
            $0.limit("per_host", [.host], RequestRate(count: 1, perSeconds: 60), burst: 1)
        }
        let statuses = ["b", "c", "b"].map { host in
            let client = bench.openClient(isTrusted: true)
            let fields = "Host: a\r\nX-Original-URI: /api/x\r\nX-Forwarded-Host: \(host)\r\n"
            bench.admit("GET /auth/check HTTP/1.1\r\n\(fields)\r\n", on: client.downstream)
            return client.end.text().prefix(12)
        }
        #expect(statuses == ["HTTP/1.1 200", "HTTP/1.1 200", "HTTP/1.1 429"])
    }

    @Test(arguments: [("GET /auth/check/api/x?v=2", 2), ("GET /auth/check/api/x?v=3", 3), ("GET /auth/check/api/x", 3)])
    func `conditions are those of the described request`(_ line: String, _ route: Int) throws {
        func named(_ name: String, _ conditions: [RequestConditionConfiguration]) -> RouteConfiguration {
            var route = SampleSettings.route("api")
            route.name = Self.located(name)
            route.conditions = conditions
            route.setHeaders = [
                HeaderConfiguration(name: Self.located("x-route"), value: .constant(name), encoding: .percent)
            ]
            return route
        }
        let header = RequestConditionConfiguration(.header, Self.located("X-Tenant"), .equals("t"))
        let query = RequestConditionConfiguration(.query, Self.located("v"), .equals("2"))
        let absent = RequestConditionConfiguration(.header, Self.located("X-Tenant"), .present(false))
        let texts = try Self.check([line], fields: "X-Tenant: t\r\n") {
            $0.routes = [named("1", [absent]), named("2", [header, query]), named("3", [])]
        }
        #expect(texts[0].hasPrefix("HTTP/1.1 200 OK\r\n") && texts[0].contains("\r\nx-route: \(route)\r\n"))
    }

    @Test(arguments: ["api", nil])
    func `constant headers are identity headers of a check, on public routes too`(_ upstream: String?) throws {
        let texts = try Self.check(["GET /auth/check/constant/x", "GET /auth/check/plain/x"]) {
            var route = SampleSettings.route("constant")
            route.upstream = upstream.map { Self.located($0) }
            route.setHeaders = [
                HeaderConfiguration(name: Self.located("X-Env"), value: .constant("prod"), encoding: .percent)
            ]
            $0.routes = [route]
        }
        #expect(texts[0].contains("\r\nX-Env: prod\r\n") && texts[0].contains("\r\nX-Auth-Subject:\r\n"))
        #expect(texts[1].contains("\r\nX-Env:\r\n"))
    }

    @Test func `neither a timeout nor response headers of a route concern a check`() throws {
        let texts = try Self.check(["GET /auth/check/slow/x", "GET /slow/x"]) {
            var route = SampleSettings.route("slow")
            route.timeout = .zero
            route.responseHeaders.set = [.init(name: "X-Auth-Subject", value: "root")]
            $0.routes = [route]
        }
        #expect(texts[0].hasPrefix("HTTP/1.1 200 OK\r\n") && texts[0].contains("\r\nX-Auth-Subject:\r\n"))
        #expect(!texts[0].contains("root"))
        #expect(texts[1].hasPrefix("HTTP/1.1 504 "))
    }

    @Test func `a rewrite of a route changes nothing about a check`() throws {
        let texts = try Self.check(["GET /auth/check/moved/x"]) {
            var route = SampleSettings.route("moved")
            route.stripPrefix = Self.located("/moved")
            $0.routes = [route]
        }
        #expect(texts[0].hasPrefix("HTTP/1.1 200 OK\r\n") && !texts[0].contains("Location"))
    }
}

/// The marks of a check.
@Suite struct CheckMarksTests {
    @Test(arguments: [
        ("", 0), ("?", 0), ("?deny=403", 2), ("?browser=1", 4), ("?a=b&deny=403&browser=1", 6),
        ("?deny=404&browser=0&Deny=403", 0), ("?deny=403&&", 2),
    ])
    func `arguments of the query are known ones`(_ query: String, _ expected: UInt8) {
        let bytes = Array(query.utf8)
        let marks = CheckMarks(query: bytes.span)
        #expect(marks.rawValue == expected)
    }
}
