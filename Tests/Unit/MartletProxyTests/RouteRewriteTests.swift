import MartletDecisionsTesting
import MartletResponder
import MartletRouter
import Testing

@testable import MartletConfig
@testable import MartletDecisions
@testable import MartletProxy

/// Heads for upstreams on routes that rewrite the target or the host.
@Suite struct RouteRewriteTests {
    private static func bench(_ change: (inout RouteConfiguration) -> Void) throws -> LoopBench {
        var configuration = SampleSettings.route("r")
        change(&configuration)
        let route = configuration
        return try LoopBench { $0.routes = [route] }
    }

    private static func located(_ text: String) -> Located<String> {
        Located(text, at: SampleSettings.route("r").name.location)
    }

    private static func opening(_ bench: LoopBench, _ target: String) -> String {
        let sent = bench.forward("GET \(target) HTTP/1.1\r\nHost: a\r\nAccept: b\r\n\r\n").sent
        return sent.split(separator: "\r\n").prefix(2).joined(separator: "|")
    }

    @Test(arguments: [
        ("/r/x?a=b", "GET /api/x?a=b HTTP/1.1|Host: a"), ("/r", "GET /api HTTP/1.1|Host: a"),
        ("/r/%78", "GET /api/x HTTP/1.1|Host: a"), ("/r/u/1?a", "GET /api/u?id=1&a HTTP/1.1|Host: a"),
    ])
    func `the target is rewritten`(_ target: String, _ expected: String) throws {
        let bench = try Self.bench {
            $0.stripPrefix = Self.located("/r")
            $0.rewrite.expression = Self.located("/u/(.*)")
            $0.rewrite.replacement = Self.located("/u?id=$1")
            $0.rewrite.addPrefix = Self.located("/api")
        }
        #expect(Self.opening(bench, target) == expected)
    }

    @Test func `the host is the route's, whatever the upstream's is`() throws {
        for host in [UpstreamConfiguration.HostPolicy.keep, .endpoint, .fixed("other")] {
            var configuration = SampleSettings.route("r")
            configuration.rewrite.host = "internal.example"
            let route = configuration
            let bench = try LoopBench {
                $0.routes = [route]
                $0.host = host
            }
            #expect(Self.opening(bench, "/r/x?a") == "GET /r/x?a HTTP/1.1|Host: internal.example", "\(host)")
        }
    }

    @Test func `a target that no request could have is rejected, and the connection is kept`() throws {
        let bench = try Self.bench {
            $0.rewrite.expression = Self.located("/r/(.*)")
            $0.rewrite.replacement = Self.located("/$1/x")
        }
        let client = bench.openClient()
        bench.admit("GET /r/ HTTP/1.1\r\nHost: a\r\n\r\n", on: client.downstream)
        #expect(client.end.text().hasPrefix("HTTP/1.1 400 ") && bench.isAlive(client.downstream))
        #expect(bench.counted().reasons == ["router.bad_rewrite": 1] && bench.active() == 0)
        #expect(Self.opening(bench, "/r/a") == "GET /a/x HTTP/1.1|Host: a")
    }

    @Test func `a constant header is set on a public route, and the client's copy removed`() throws {
        let bench = try Self.bench {
            $0.setHeaders = [
                HeaderConfiguration(
                    name: Self.located("X-Env"), value: .constant("prod"), encoding: .percent, join: nil, fallback: nil)
            ]
        }
        for (target, expected) in [("/r/x", "X-Env: prod\r\n"), ("/api/x", "")] {
            let sent = bench.forward("GET \(target) HTTP/1.1\r\nHost: a\r\nx_env: evil\r\n\r\n").sent
            #expect(
                !sent.contains("evil") && sent.contains("X-Env") == !expected.isEmpty
                    && sent.hasSuffix(expected + "\r\n"))
        }
    }

    @Test func `conditions decide about a request, and hold for what they have admitted`() throws {
        var canary = SampleSettings.route("r")
        canary.conditions = [.init(.header, Self.located("X-Canary"), .equals("1"))]
        var stable = canary
        (stable.name, stable.conditions) = (Self.located("stable"), [])
        let routes = [canary, stable]
        let bench = try LoopBench { $0.routes = routes }
        // The mount is the first route of the table.
        for (fields, index) in [("X-Canary: 1\r\n", 1), ("X-Canary: 2\r\n", 2), ("", 2)] {
            let forwarded = bench.forward("GET /r/x HTTP/1.1\r\nHost: a\r\n\(fields)\r\n")
            let found = bench.run { CredentialWatch.currentRoute(of: forwarded.exchange, &$0.exchanges, &$0.context) }
            #expect(found == .route(index), "\(fields)")
            forwarded.server.end.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            bench.event(forwarded.upstream)
        }
        #expect(bench.requests().sorted() == ["r 200 1", "stable 200 2"])
    }
}
