import MartletConfig
import MartletCore
import MartletFetch
import MartletIO
import MartletUpstreams
import Testing

@testable import MartletDecisions
@testable import MartletServer

@Suite struct `Which endpoints get copies` {
    private func configuration(
        _ upstream: String, mirror: String = "mirror: { upstream: shadow }"
    ) throws
        -> GatewayConfiguration
    {
        let text = """
            version: 1
            upstreams:
              api: { endpoints: ["http://10.0.0.1"] }
              shadow: { \(upstream) }
            routes:
              - { name: a, auth: none, match: { path: /a }, upstream: api, \(mirror) }
              - { name: b, auth: none, match: { path: /b }, upstream: shadow }
            """
        let (configuration, diagnostics) = GatewayConfiguration.decode(
            text: Array(text.utf8), file: "test.yaml", environment: { _ in nil }, knownKinds: [])
        return try #require(configuration, "\(diagnostics)")
    }

    private func roster(_ upstream: String, _ names: [ResolvedName] = []) throws -> MirrorRoster {
        var roster = MirrorRoster()
        roster.adopt(try configuration(upstream))
        roster.adopt(names)
        return roster
    }

    private func identity(_ host: String, _ port: UInt16 = 80, resolved: String? = nil) -> EndpointIdentity {
        EndpointIdentity(
            upstream: "shadow", address: .http(host: host, port: port),
            resolved: resolved.flatMap { SocketEndpoint(literal: $0, port: port) })
    }

    @Test func `only upstreams of mirrors are targets, with their own settings`() throws {
        let roster = try roster(
            """
            endpoints: ["https://10.0.0.2", { url: "unix:/run/a", weight: 3, backup: true }], protocol: h2,
                  tls: { server_name: s.test, ca_file: /ca.pem }, timeouts: { connect: 3s, response_head: 4s }
            """)
        #expect(roster.targets.map(\.upstream) == ["shadow"])
        let target = try #require(roster.targets.first)
        #expect(target.connectTimeout == .seconds(3) && target.timeout == .seconds(4) && target.panicThreshold == 0)
        var tls = EndpointTLS(serverName: "s.test")
        tls.authorityFile = "/ca.pem"
        var first = MirrorTarget.Endpoint(
            EndpointLink(.tcp(address: "10.0.0.2", port: 443), tls: tls, version: .http2), host: "10.0.0.2")
        first.weight = 1
        var second = MirrorTarget.Endpoint(
            EndpointLink(.unix(path: "/run/a"), tls: nil, version: .http2), host: "localhost")
        (second.weight, second.isBackup) = (3, true)
        #expect(target.endpoints == [first, second])
    }

    @Test func `copies wait ten seconds at most, and without a mirror there is no target`() throws {
        #expect(try roster("endpoints: [\"http://10.0.0.2\"]").targets.map(\.timeout) == [.seconds(10)])
        var roster = try roster("endpoints: [\"http://10.0.0.2\"]")
        roster.adopt(try configuration("endpoints: [\"http://10.0.0.2\"]", mirror: ""))
        #expect(roster.isEmpty && roster.targets.isEmpty)
    }

    @Test func `every address of a name is an endpoint, and a name without one has none`() throws {
        let name = ResolvedName(
            upstream: "shadow", endpoint: .http(host: "a.test", port: 80),
            addresses: ["10.0.0.8", "10.0.0.9"].compactMap { SocketEndpoint(literal: $0, port: 80) })
        let target = try #require(roster("endpoints: [\"http://a.test\"]", [name]).targets.first)
        #expect(
            target.endpoints.map(\.link.destination) == [
                .tcp(address: "10.0.0.8", port: 80), .tcp(address: "10.0.0.9", port: 80),
            ])
        #expect(target.endpoints.map(\.host) == ["a.test", "a.test"])
        #expect(try roster("endpoints: [\"http://a.test\"]").targets.map(\.endpoints.count) == [0])
    }

    @Test func `drained and unhealthy endpoints are known`() throws {
        var roster = try roster("endpoints: [\"http://10.0.0.2\", \"http://10.0.0.3\"], health_check: {}")
        func conditions() -> [String] { roster.targets.flatMap(\.endpoints).map { "\($0.condition)" } }
        #expect(roster.targets.map(\.panicThreshold) == [50])
        roster.note([EndpointHealth(identity("10.0.0.3"), isHealthy: false, reason: "x")])
        roster.drain([identity("10.0.0.2")])
        #expect(conditions() == ["drained", "unhealthy"])
        // What is gone is forgotten.
        roster.note([EndpointHealth(identity("10.0.0.9"), isHealthy: false, reason: "x")])
        roster.adopt([])
        roster.drain([])
        #expect(conditions() == ["healthy", "unhealthy"])
        roster.note([EndpointHealth(identity("10.0.0.3"), isHealthy: true, reason: "x")])
        #expect(conditions() == ["healthy", "healthy"])
    }
}
