import MartletResponder
import Testing

@testable import MartletConfig
@testable import MartletDecisions
@testable import MartletProxy

/// Requests that come back.
@Suite struct `The pseudonym in Via` {
    private static func upstream(_ name: String, _ endpoints: [EndpointAddress]) -> Upstream {
        let somewhere = SourceLocation(file: "config.yaml", line: 1, column: 1)
        return Upstream(
            UpstreamConfiguration(
                name: Located(name, at: somewhere),
                members: endpoints.map { EndpointConfiguration(Located($0, at: somewhere)) },
                timeouts: UpstreamTimeouts(), host: .keep, balance: .roundRobin))
    }

    private static let first = EndpointAddress.http(host: "10.0.0.1", port: 80)
    private static let second = EndpointAddress.http(host: "10.0.0.2", port: 80)
    private static let own = ViaPseudonym(routes: ["a", "b"], upstreams: [upstream("api", [first])])

    @Test func `is the same for equal routes and upstreams alone`() {
        #expect(
            Self.own.text == ViaPseudonym(routes: ["a", "b"], upstreams: [Self.upstream("api", [Self.first])]).text)
        let others = [
            ViaPseudonym(routes: ["a"], upstreams: [Self.upstream("api", [Self.first])]),
            ViaPseudonym(routes: ["a", "b"], upstreams: [Self.upstream("api", [Self.second])]),
            ViaPseudonym(routes: ["a", "b"], upstreams: [Self.upstream("web", [Self.first])]),
            ViaPseudonym(routes: ["a", "b"], upstreams: []),
        ].map(\.text)
        #expect(Set(others).count == 4 && !others.contains(Self.own.text))
        #expect(Self.own.text.hasPrefix("martlet-") && Self.own.text.utf8.count == 16)
    }

    private static func isFound(_ value: String) -> Bool {
        let bytes = Array(value.utf8)
        return own.isIn(bytes.span)
    }

    @Test func `is found wherever it is`() {
        let text = Self.own.text
        for value in ["1.1 \(text)", "1.0 a, 2.0 \(text) (c), 1.1 b", "\(text)", "1.1 martlet-\(text)"] {
            #expect(Self.isFound(value), "\(value)")
        }
        for value in ["", "1.1 martlet", "1.1 \(text.dropLast())", "1.1 martlet-00000000", "1.1 \(text.uppercased())"] {
            #expect(!Self.isFound(value), "\(value)")
        }
    }

    @Test func `a request that was here is not forwarded again, and others are`() throws {
        let bench = try LoopBench()
        let text = bench.run { $0.context.snapshot.pseudonym.text }
        let client = bench.openClient()
        let server = bench.pool()
        bench.admit("GET /api/x HTTP/1.1\r\nHost: a\r\nVia: 1.1 x\r\nvia: 1.1 \(text)\r\n\r\n", on: client.downstream)
        #expect(client.end.text().hasPrefix("HTTP/1.1 508 Loop Detected\r\n"))
        #expect(server.end.text().isEmpty && bench.counted().reasons == ["request.loop_detected": 1])
        bench.admit("GET /api/x HTTP/1.1\r\nHost: a\r\nVia: 1.1 martlet-0\r\n\r\n", on: client.downstream)
        #expect(server.end.text().contains("\r\nVia: 1.1 martlet-0\r\nVia: 1.1 \(text)\r\n"))
    }
}
