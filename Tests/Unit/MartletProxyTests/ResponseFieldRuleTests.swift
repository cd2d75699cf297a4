import MartletConfig
import MartletDecisionsTesting
import MartletResponder
import Testing

@testable import MartletDecisions
@testable import MartletProxy

/// Fields of responses that a route sets and removes.
@Suite struct ResponseFieldRuleTests {
    private static func rules(_ set: [(String, String)], _ remove: [String] = []) -> ResponseFieldRules? {
        var configuration = ResponseHeaderConfiguration()
        configuration.set = set.map { .init(name: $0.0, value: $0.1) }
        configuration.remove = remove
        return ResponseFieldRules(configuration)
    }

    private static func edited(
        _ set: [(String, String)], _ remove: [String], _ head: String, isOwn: Bool
    ) -> String {
        var out: [UInt8] = []
        rules(set, remove)?.edit(Array(head.utf8).span, isOwn: isOwn, into: &out)
        return String(decoding: out, as: UTF8.self)
    }

    @Test func `there are none without a configuration`() { #expect(Self.rules([]) == nil) }

    @Test(
        arguments: [
            ([("X-A", "1")], [], "HTTP/1.1 200 OK\r\nB: c\r\n", "HTTP/1.1 200 OK\r\nB: c\r\nX-A: 1\r\n"),
            (
                [("X-A", "1")], [], "HTTP/1.1 200 OK\r\nx-a: 2\r\nB: c\r\nX-A: 3\r\n",
                "HTTP/1.1 200 OK\r\nB: c\r\nX-A: 1\r\n"
            ),
            ([("X-A", "1")], [], "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nX-A: 1\r\n"),
            (
                [], ["server"], "HTTP/1.1 200 OK\r\nServer: a\r\nServers: b\r\nX-Server: c\r\nSERVER: d\r\n",
                "HTTP/1.1 200 OK\r\nServers: b\r\nX-Server: c\r\n"
            ),
        ])
    func `an upstream's fields are replaced and removed`(
        _ set: [(String, String)], _ remove: [String], _ head: String, _ expected: String
    ) {
        #expect(Self.edited(set, remove, head, isOwn: false) == expected)
    }

    @Test(
        arguments: [
            ([("X-A", "1")], ["b"], "HTTP/1.1 401 No\r\nB: c\r\n", "HTTP/1.1 401 No\r\nB: c\r\nX-A: 1\r\n"),
            (
                [("Cache-Control", "public"), ("X-A", "1")], [], "HTTP/1.1 401 No\r\nCache-Control: no-store\r\n",
                "HTTP/1.1 401 No\r\nCache-Control: no-store\r\nX-A: 1\r\n"
            ),
            (
                [("Strict-Transport-Security", "max-age=2")], [],
                "HTTP/1.1 401 No\r\nStrict-Transport-Security: max-age=1\r\n",
                "HTTP/1.1 401 No\r\nStrict-Transport-Security: max-age=2\r\n"
            ),
        ])
    func `the gateway's own fields stay, and get more`(
        _ set: [(String, String)], _ remove: [String], _ head: String, _ expected: String
    ) {
        #expect(Self.edited(set, remove, head, isOwn: true) == expected)
    }

    // MARK: In the loop

    private static func bench(_ change: (inout RouteConfiguration) -> Void) throws -> LoopBench {
        var configuration = SampleSettings.route("ruled")
        change(&configuration)
        let route = configuration
        return try LoopBench { $0.routes = [route] }
    }

    @Test func `an upstream's response and an error of the gateway have the route's fields`() throws {
        let bench = try Self.bench {
            $0.responseHeaders.set = [.init(name: "X-Env", value: "prod")]
            $0.responseHeaders.remove = ["server"]
            $0.bodyLimit = .bytes(3)
        }
        let forwarded = bench.forward("GET /ruled/x HTTP/1.1\r\nHost: a\r\n\r\n")
        forwarded.server.end.send("HTTP/1.1 200 OK\r\nServer: a\r\nContent-Length: 2\r\n\r\nok")
        bench.event(forwarded.upstream)
        let response = forwarded.client.end.text()
        #expect(
            response.contains("X-Env: prod\r\n") && !response.contains("Server") && response.hasSuffix("\r\n\r\nok"))
        let client = bench.openClient()
        bench.admit("POST /ruled/x HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n", on: client.downstream)
        let rejection = client.end.text()
        #expect(rejection.hasPrefix("HTTP/1.1 413 ") && rejection.contains("X-Env: prod\r\n"))
        let other = bench.openClient()
        bench.admit("GET /nothing HTTP/1.1\r\nHost: a\r\n\r\n", on: other.downstream)
        #expect(!other.end.text().contains("X-Env"))
    }

    @Test func `no head before it and no body behind it are edited`() throws {
        let bench = try Self.bench { $0.responseHeaders.set = [.init(name: "X-Env", value: "prod")] }
        let forwarded = bench.forward("GET /ruled/x HTTP/1.1\r\nHost: a\r\n\r\n")
        forwarded.server.end.send(
            "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\na\r\n\r\nX: 2")
        bench.event(forwarded.upstream)
        let parts = forwarded.client.end.text().split(separator: "\r\n\r\n")
        #expect(parts.map { $0.contains("X-Env: prod") } == [false, true, false, false])
    }

    // MARK: The timeout

    @Test(
        arguments: [
            (9, false, false, .ignore), (10, false, false, .fail), (10, true, false, .ignore),
            (10, false, true, .reroute),
            (11, false, false, .fail), (9, false, true, .ignore),
        ] as [(Int64, Bool, Bool, ExchangeRouteRules.Action)])
    func `an exchange ends when its time has passed, unless its response has begun`(
        _ now: Int64, _ hasStarted: Bool, _ isWaiting: Bool, _ expected: ExchangeRouteRules.Action
    ) {
        var rules = ExchangeRouteRules()
        rules.set(started: 3, timeout: 7)
        #expect(rules.action(hasResponseStarted: hasStarted, isWaiting: isWaiting, at: now) == expected)
    }

    @Test func `a deadline counts once, and none never`() {
        var rules = ExchangeRouteRules()
        rules.set(started: 3, timeout: 7)
        #expect(rules.action(hasResponseStarted: true, isWaiting: false, at: 10) == .ignore)
        #expect(rules.action(hasResponseStarted: false, isWaiting: false, at: 11) == .ignore)
        rules.set(started: 3, timeout: .max)
        #expect(rules.deadline == .max && rules.isSet)
        rules.end()
        #expect(!rules.isSet)
    }

    @Test func `a request that is routed again too late is rejected`() throws {
        let bench = try Self.bench { $0.timeout = .seconds(1) }
        let text = "GET /ruled/x HTTP/1.1\r\nHost: a\r\n\r\n"
        let client = bench.openClient()
        let exchange = bench.begin(text, on: client.downstream)
        let isRouted = bench.route(text, exchange)
        let deadline = bench.run { $0.exchanges[exchange].response.rules.deadline }
        #expect(isRouted && LoopBench.milliseconds(deadline) == 1000)
        bench.advance(milliseconds: 1000)
        let isRoutedAgain = bench.route(text, exchange)
        #expect(!isRoutedAgain && client.end.text().hasPrefix("HTTP/1.1 504 "))
        #expect(bench.counted().reasons == ["route.timed_out": 1])
    }
}
