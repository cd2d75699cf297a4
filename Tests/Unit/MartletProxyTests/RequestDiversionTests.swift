import MartletConfig
import MartletCore
import MartletDecisionsTesting
import MartletHTTP
import MartletResponder
import Testing

@testable import MartletDecisions
@testable import MartletProxy

/// Listeners that redirect or handle requests themselves, and the heads for upstreams.
@Suite struct RequestDiversionTests {
    // MARK: Redirects

    /// What a client gets from a listener that redirects to a port.
    private func redirected(_ head: String, to port: UInt16 = 443) throws -> String {
        let bench = try LoopBench()
        var rules = ListenerRules()
        rules.redirectPort = port
        let client = bench.openClient(rules: rules)
        let exchange = bench.begin(head, on: client.downstream)
        let bytes = Array(head.utf8)
        unsafe bytes.withUnsafeBufferPointer { bytes in
            bench.withRouter { router, loop in
                unsafe loop.reject(
                    exchange,
                    router.redirectToHTTPS(exchange, bytes, &loop.exchanges, &loop.downstreams, &loop.context))
            }
        }
        return client.end.text()
    }

    @Test(
        arguments: [
            ("a", "/x", 443, "https://a/x"), ("a:8080", "/x?y=z", 443, "https://a/x?y=z"),
            ("a:8080", "/x", 8443, "https://a:8443/x"), ("[::1]:80", "/", 443, "https://[::1]/"),
            ("[::1]", "/%61", 8443, "https://[::1]:8443/a"),
        ] as [(String, String, UInt16, String)])
    func `a request is redirected to the same target on https`(
        _ host: String, _ target: String, _ port: UInt16, _ location: String
    ) throws {
        let text = try redirected("GET \(target) HTTP/1.1\r\nHost: \(host)\r\n\r\n", to: port)
        let fields = "Location: \(location)\r\n"
        #expect(text == BenchText.problem(308, "Permanent Redirect", "https_required", fields: fields))
    }

    @Test(arguments: ["OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", "CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n"])
    func `a request without a path is not redirected`(_ head: String) throws {
        let text = try redirected(head)
        #expect(text == BenchText.problem(404, "Not Found", "no_route"))
    }

    @Test func `an ambiguous path is not redirected`() throws {
        let text = try redirected("GET /a/../b HTTP/1.1\r\nHost: a\r\n\r\n")
        #expect(text == BenchText.problem(400, "Bad Request", "request_invalid", closes: true))
    }

    // MARK: Listeners with a handler

    /// Hands a request to a listener's handler; returns whether that accepted it.
    private func hand(_ bench: LoopBench, _ head: String, to handler: ListenerHandler?) -> (Bool, Handle<Exchange>) {
        let client = bench.openClient()
        bench.run { $0.downstreams[client.downstream].origin.handler = handler }
        let exchange = bench.begin(head, on: client.downstream)
        let bytes = Array(head.utf8)
        let isAccepted = unsafe bytes.withUnsafeBufferPointer { bytes in
            bench.withRouter { router, loop in unsafe router.handToListenerHandler(exchange, bytes, &loop) }
        }
        return (isAccepted, exchange)
    }

    @Test func `a listener's handler gets the requests that it accepts`() throws {
        let bench = try LoopBench()
        let handler = ListenerHandler(path: "/ready") { _ in .text(200, "text/plain", "") }
        let (isAccepted, exchange) = hand(bench, "GET /ready?x HTTP/1.1\r\nHost: a\r\n\r\n", to: handler)
        let (responder, task) = bench.run { ($0.exchanges[exchange].responder, $0.exchanges[exchange].local.task) }
        let path = bench.run { unsafe String(decoding: $0.exchanges[exchange].record.texts.path, as: UTF8.self) }
        #expect(isAccepted && responder == .local && task != nil && path == "/ready")
    }

    @Test func `other requests go on, and all do without a handler`() throws {
        let bench = try LoopBench()
        let handler = ListenerHandler(path: "/ready") { _ in .text(200, "text/plain", "") }
        let (other, first) = hand(bench, BenchText.get, to: handler)
        let (none, second) = hand(bench, "GET /ready HTTP/1.1\r\nHost: a\r\n\r\n", to: nil)
        let responders = bench.run { loop in [first, second].map { loop.exchanges[$0].responder } }
        #expect(!other && !none && responders == [.none, .none])
    }

    @Test func `a listener's handler has a limit for bodies`() throws {
        let bench = try LoopBench()
        let handler = ListenerHandler { _ in .text(200, "text/plain", "") }
        let (most, first) = hand(bench, BenchText.post(LocalLimits.bodyBytes), to: handler)
        let (more, second) = hand(bench, BenchText.post(LocalLimits.bodyBytes + 1), to: handler)
        #expect(most && more && bench.isAlive(first) && !bench.isAlive(second))
        #expect(bench.counted().reasons == ["request.body_too_large": 1])
    }

    // MARK: Heads for upstreams

    @Test func `an upstream gets the client's head with the gateway's fields`() throws {
        let bench = try LoopBench()
        let head = "GET /api/%61?q HTTP/1.1\r\nHost: a:8080\r\nX-Name: Value\r\nTE: trailers\r\n\r\n"
        let forwarded = bench.forward(head)
        var expected = "GET /api/a?q HTTP/1.1\r\nHost: a:8080\r\nX-Name: Value\r\n"
        expected += "Via: 1.1 \(bench.run { $0.context.snapshot.pseudonym.text })\r\n"
        expected += "X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-Proto: http\r\nX-Forwarded-Host: a:8080\r\n"
        expected += "X-Request-Id: \(BenchText.requestID(1))\r\n\r\n"
        #expect(forwarded.sent == expected)
        let rules = bench.run { $0.exchanges[forwarded.exchange].forwarding.headerRules.rules }
        let route = bench.run { $0.exchanges[forwarded.exchange].forwarding.headerRules.route }
        // The rules for trailers: no credential was consumed, and the peer is not trusted.
        #expect(route == 1 && rules.isEmpty)
    }

    @Test func `an upgrade is offered to the upstream`() throws {
        let bench = try LoopBench()
        let forwarded = bench.forward(BenchText.upgrade)
        #expect(forwarded.sent.contains("\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"))
    }

    @Test func `the same header value gets the same endpoint`() throws {
        let bench = try LoopBench {
            $0.endpoints = [SampleSettings.first, SampleSettings.second]
            $0.balance = .hash(header: "x-user")
        }
        func endpoint(_ user: String) -> Int32 {
            let head = "GET /api/x HTTP/1.1\r\nHost: a\r\nX-User: \(user)\r\n\r\n"
            let exchange = bench.admit(head, on: bench.openClient().downstream)
            return bench.run { $0.exchanges[exchange].forwarding.endpoint.rawValue }
        }
        let users = (0..<20).map { "user \($0)" }
        let chosen = users.map { endpoint($0) }
        #expect(users.map { endpoint($0) } == chosen && Set(chosen) == [0, 1])
    }

    @Test func `without such a balance the header does not count`() throws {
        let bench = try LoopBench()
        let forwarded = bench.forward("GET /api/x HTTP/1.1\r\nHost: a\r\nX-User: a\r\n\r\n")
        let hash = bench.run { $0.exchanges[forwarded.exchange].forwarding.hash }
        #expect(hash == 0)
    }
}
