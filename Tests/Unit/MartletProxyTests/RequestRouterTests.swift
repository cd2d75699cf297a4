import MartletConfig
import MartletCore
import MartletHTTP
import MartletResponder
import MartletTesting
import Testing

@testable import MartletDecisions
@testable import MartletProxy

/// From a parsed head to the route of its request, and to the head for its upstream.
@Suite struct RequestRouterTests {
    private func texts(_ bench: LoopBench, _ exchange: Handle<Exchange>) -> [String] {
        bench.run { loop in
            let id = unsafe String(decoding: loop.exchanges[exchange].record.texts.requestID, as: UTF8.self)
            let method = unsafe String(decoding: loop.exchanges[exchange].record.texts.method, as: UTF8.self)
            let host = unsafe String(decoding: loop.exchanges[exchange].record.texts.host, as: UTF8.self)
            let path = unsafe String(decoding: loop.exchanges[exchange].record.texts.path, as: UTF8.self)
            return [id, method, host, path]
        }
    }

    /// A request without a route to an upstream: what its client gets, and its access record without the client.
    private func rejection(
        _ head: String, rules: ListenerRules = ListenerRules()
    ) throws -> (text: String, record: String, reasons: [String: Int]) {
        let bench = try LoopBench()
        let client = bench.openClient(rules: rules)
        let exchange = bench.begin(head, on: client.downstream)
        let isRouted = bench.route(head, exchange)
        #expect(!isRouted && !bench.isAlive(exchange))
        let record = bench.log().joined(separator: "\n").dropFirst("192.0.2.1 ".count)
        return (client.end.text(), String(record), bench.counted().reasons)
    }

    // MARK: Beginning

    @Test func `an exchange begins with what the head says`() throws {
        let bench = try LoopBench()
        let client = bench.openClient()
        let head = "PUT /api/x?q HTTP/1.1\r\nHost: a:8080\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n"
        let exchange = bench.begin(head, on: client.downstream)
        let (request, body) = bench.run { ($0.exchanges[exchange].request, $0.exchanges[exchange].body) }
        #expect(request.method == .put && !request.isHTTP10 && request.keepsAlive && request.expectsContinue)
        #expect(!request.isGRPC && !request.hasContinued && body.framing == .length(5) && !body.isComplete)
        #expect(texts(bench, exchange) == [BenchText.requestID(1), "PUT", "a:8080", ""])
        #expect(bench.phase(client.downstream) == .exchange)
    }

    @Test(arguments: [
        ("GET / HTTP/1.0\r\nHost: a\r\n\r\n", true, false, false),
        ("GET / HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n", true, true, false),
        ("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", false, false, false),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nExpect: 100-continue\r\n\r\n", false, true, true),
        ("POST / HTTP/1.0\r\nHost: a\r\nContent-Length: 1\r\nExpect: 100-continue\r\n\r\n", true, false, false),
    ])
    func `the version decides about the connection and 100 Continue`(
        _ head: String, _ isHTTP10: Bool, _ keepsAlive: Bool, _ expectsContinue: Bool
    ) throws {
        let bench = try LoopBench()
        let client = bench.openClient()
        let exchange = bench.begin(head, on: client.downstream)
        let request = bench.run { $0.exchanges[exchange].request }
        #expect(request.isHTTP10 == isHTTP10 && request.keepsAlive == keepsAlive)
        #expect(request.expectsContinue == expectsContinue)
    }

    @Test(arguments: [("", true), ("Content-Length: 0\r\n", true), ("Content-Length: 1\r\n", false)])
    func `a request without a body is complete`(_ field: String, _ expected: Bool) throws {
        let bench = try LoopBench()
        let client = bench.openClient()
        let exchange = bench.begin("GET / HTTP/1.1\r\nHost: a\r\n\(field)\r\n", on: client.downstream)
        let isComplete = bench.run { $0.exchanges[exchange].body.isComplete }
        #expect(isComplete == expected && (bench.due(client.downstream) == nil) == expected)
    }

    @Test(arguments: [
        (false, BenchText.requestID(1), "", "192.0.2.1"), (true, "theirs", "198.51.100.7", "198.51.100.7"),
    ])
    func `only a trusted proxy names the request and its client`(
        _ isTrusted: Bool, _ id: String, _ forwarded: String, _ logged: String
    ) throws {
        let bench = try LoopBench()
        let client = bench.openClient(isTrusted: isTrusted)
        let head = "GET / HTTP/1.1\r\nHost: a\r\nX-Request-Id: theirs\r\nX-Forwarded-For: 198.51.100.7\r\n\r\n"
        let exchange = bench.begin(head, on: client.downstream)
        let named = bench.run { $0.exchanges[exchange].record.forwardedClient }
        #expect(texts(bench, exchange) == [id, "GET", "a", ""])
        #expect(String(decoding: named, as: UTF8.self) == forwarded)
        bench.run { $0.finish(exchange) }
        let line = bench.log().first ?? ""
        #expect(line.hasPrefix("\(logged) GET a 0 ok"), "\(line)")
    }

    // MARK: Routes

    @Test(arguments: [
        ("/api/x", "/api/x"), ("/api", "/api"), ("/api/%61", "/api/a"), ("/api/%c3%a9", "/api/%C3%A9"),
        ("/api/x?/none", "/api/x"),
    ])
    func `a path is matched and logged in its normal form`(_ target: String, _ path: String) throws {
        let bench = try LoopBench()
        let client = bench.openClient()
        let head = "GET \(target) HTTP/1.1\r\nHost: a\r\n\r\n"
        let exchange = bench.begin(head, on: client.downstream)
        let isRouted = bench.route(head, exchange)
        let slot = bench.run { $0.exchanges[exchange].record.routeSlot.rawValue }
        #expect(isRouted && texts(bench, exchange)[3] == path)
        // Slot 0 is no route, slot 1 the mount.
        #expect(slot == 2)
    }

    @Test(
        arguments: [
            ("GET /none HTTP/1.1", 404, "no_route", "router.no_route", "/none"),
            ("OPTIONS * HTTP/1.1", 404, "no_route", "router.no_route", "*"),
            ("GET /api/../x HTTP/1.1", 400, "request_invalid", "request.path_ambiguous", "/api/../x"),
            ("GET /api//x?q HTTP/1.1", 400, "request_invalid", "request.path_ambiguous", "/api//x"),
            ("brew /read/x HTTP/1.1", 400, "request_invalid", "request.method_case", "/read/x"),
        ] as [(String, Int, String, String, String)])
    func `a request without a route is rejected`(
        _ line: String, _ status: Int, _ code: String, _ reason: String, _ path: String
    ) throws {
        let (text, record, reasons) = try rejection("\(line)\r\nHost: a\r\n\r\n")
        let closes = status == 400
        let title = closes ? "Bad Request" : "Not Found"
        #expect(text == BenchText.problem(status, title, code, closes: closes))
        let method = line.prefix { $0 != " " }
        let size = BenchText.problemBody(status, title, code).utf8.count
        #expect(record == "\(method) a\(path) \(status) \(reason) route=- upstream= in=0 out=\(size) us=0")
        #expect(reasons == [reason: 1])
    }

    @Test(arguments: [
        ("POST /read/x HTTP/1.1", "GET, HEAD, BREW"),
        ("TRACE /api/x HTTP/1.1", "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"),
        ("CONNECT a:443 HTTP/1.1", "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"),
    ])
    func `a method without a route is rejected with those that have one`(_ line: String, _ allow: String) throws {
        let host = line.hasPrefix("CONNECT") ? "a:443" : "a"
        let (text, _, reasons) = try rejection("\(line)\r\nHost: \(host)\r\n\r\n")
        #expect(text.hasPrefix("HTTP/1.1 405 Method Not Allowed\r\n") && text.contains("\r\nAllow: \(allow)\r\n"))
        #expect(reasons == ["router.method_not_allowed": 1])
    }

    @Test(arguments: [(10, true), (11, false)])
    func `a length beyond the route's limit is rejected before the body`(_ length: Int, _ isRouted: Bool) throws {
        let bench = try LoopBench()
        let client = bench.openClient()
        let head = "POST /small/x HTTP/1.1\r\nHost: a\r\nContent-Length: \(length)\r\n\r\n"
        let exchange = bench.begin(head, on: client.downstream)
        let found = bench.route(head, exchange)
        let text = client.end.text()
        let rejection = BenchText.problem(413, "Content Too Large", "request_too_large", closes: true)
        #expect(found == isRouted && text == (isRouted ? "" : rejection))
        #expect(bench.requests() == (isRouted ? [] : ["small 413 1"]))
    }

    // MARK: Upgrades

    @Test func `an upgrade that the route allows has a tunnel, one for each attempt to route it`() throws {
        let bench = try LoopBench()
        let client = bench.openClient()
        let exchange = bench.begin(BenchText.upgrade, on: client.downstream)
        let isRouted = [bench.route(BenchText.upgrade, exchange), bench.route(BenchText.upgrade, exchange)]
        let (count, isTunnel) = bench.run { ($0.exchanges.tunnels.count, $0.exchanges.isTunnel(exchange)) }
        let hasOffer = bench.run { !$0.exchanges[exchange].tunnel.isNone }
        #expect(isRouted == [true, true] && count == 1 && hasOffer && !isTunnel)
    }

    @Test func `an upgrade that the route does not allow is rejected`() throws {
        let head = BenchText.upgrade.replacing("/api/x", with: "/plain/x")
        let (text, _, reasons) = try rejection(head)
        #expect(text == BenchText.problem(400, "Bad Request", "request_invalid", closes: true))
        #expect(reasons == ["request.upgrade_not_allowed": 1])
    }

    @Test func `an offer that is ignored has no tunnel`() throws {
        let bench = try LoopBench()
        let client = bench.openClient()
        let head = "GET /api/x HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n"
        let exchange = bench.begin(head, on: client.downstream)
        let isRouted = bench.route(head, exchange)
        let count = bench.run { $0.exchanges.tunnels.count }
        #expect(isRouted && count == 0 && bench.counted().tunnels.rejectedUpgrades == 0)
    }
}
