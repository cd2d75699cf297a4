import MartletConfig
import MartletDecisionsTesting
import MartletRouter
import Testing

@testable import MartletProxy

/// Routes whose upstreams share the requests.
@Suite struct `Split routes` {
    private static func bench(_ weights: [Int]) throws -> LoopBench {
        var route = SampleSettings.route("split")
        let upstream = route.upstream
        route.upstream = nil
        route.split = zip(["api", "next"], weights).compactMap { name, weight in
            upstream.map { SplitShare(upstream: Located(name, at: $0.location), weight: weight) }
        }
        return try LoopBench { [route] in
            $0.routes = [route]
            $0.upstreams = ["next"]
        }
    }

    private static let request = "GET /split/x HTTP/1.1\r\nHost: a\r\n\r\n"

    @Test(arguments: [([1, 0], 0), ([0, 1], 1), ([0, 7], 1)])
    func `the upstream with the weight gets the requests, with its own host`(_ weights: [Int], _ upstream: Int) throws {
        let bench = try Self.bench(weights)
        let server = bench.pool(upstream)
        let client = bench.openClient()
        bench.admit(Self.request, on: client.downstream)
        let sent = server.end.text()
        #expect(sent.hasPrefix("GET /split/x HTTP/1.1\r\n"), "\(sent)")
        #expect(sent.contains(upstream == 0 ? "\r\nHost: a\r\n" : "\r\nHost: next.test\r\n"), "\(sent)")
    }

    @Test func `an address stays where it is`() throws {
        let bench = try Self.bench([1, 1])
        var upstreams: Set<Int> = []
        for _ in 0..<4 {
            let servers = [bench.pool(0), bench.pool(1)]
            let client = bench.openClient()
            bench.admit(Self.request, on: client.downstream)
            upstreams.formUnion(servers.indices.filter { !servers[$0].end.text().isEmpty })
        }
        #expect(upstreams.count == 1)
    }
}
