import MartletConfig
import MartletCore
import MartletFetch
import MartletIO
import MartletTesting
import Testing

@testable import MartletDecisions
@testable import MartletServer
@testable import MartletUpstreams

private func decode(_ text: String) -> (GatewayConfiguration?, Diagnostics) {
    GatewayConfiguration.decode(text: Array(text.utf8), file: "test.yaml", environment: { _ in nil }, knownKinds: [])
}

@Suite struct `Which endpoints are probed` {
    /// The upstreams of a configuration.
    private func upstreams(_ text: String) throws -> [UpstreamConfiguration] {
        let (configuration, diagnostics) = decode(
            "version: 1\nupstreams:\n\(text)\nroutes: [{ name: a, auth: none, upstream: api }]\n")
        return try #require(configuration, "\(diagnostics)").upstreams
    }

    private func identity(_ url: EndpointAddress, _ resolved: String? = nil, port: UInt16 = 80) -> EndpointIdentity {
        EndpointIdentity(
            upstream: "api", address: url, resolved: resolved.flatMap { SocketEndpoint(literal: $0, port: port) })
    }

    private func name(_ address: EndpointAddress, _ literals: String...) -> ResolvedName {
        ResolvedName(
            upstream: "api", endpoint: address,
            addresses: literals.compactMap { SocketEndpoint(literal: $0, port: address.hostAndPort?.port ?? 0) })
    }

    @Test func `every endpoint of an upstream with a check, as its block says`() throws {
        var roster = HealthRoster()
        let all = try upstreams(
            """
              api:
                endpoints: ["http://10.0.0.1", { url: "http://[::1]:81", weight: 0 }, "unix:/run/a", "http://b.test:82"]
                health_check: { path: /up, host: x.test, interval: 2s, timeout: 900ms, healthy: 4, unhealthy: 5,
                  jitter: 7%, expect: [204] }
              other: { endpoints: ["http://10.0.0.1"] }
            """)
        let host = EndpointAddress.http(host: "b.test", port: 82)
        let adoption = roster.adopt(all, [name(host, "10.0.0.8", "10.0.0.9")])
        #expect(
            adoption.targets.map(\.request.destination) == [
                .tcp(address: "10.0.0.1", port: 80), .tcp(address: "::1", port: 81), .unix(path: "/run/a"),
                .tcp(address: "10.0.0.8", port: 82), .tcp(address: "10.0.0.9", port: 82),
            ])
        let first = try #require(adoption.targets.first)
        #expect(first.upstream == "api" && first.interval == .seconds(2) && first.jitter == 7)
        #expect(first.thresholds == HealthThresholds(healthy: 4, unhealthy: 5))
        var request = ProbeRequest(to: .tcp(address: "10.0.0.1", port: 80), host: "x.test")
        (request.path, request.expected, request.timeout) = ("/up", [204...204], .milliseconds(900))
        #expect(first.request == request)
        #expect(Set(adoption.targets.map(\.id)).count == 5 && adoption.released.isEmpty)
    }

    @Test func `the transport is the upstream's`() throws {
        var roster = HealthRoster()
        func requests(_ block: String) throws -> [ProbeRequest] {
            roster.adopt(try upstreams("  api:\n\(block)"), []).targets.map(\.request)
        }
        let clear = try requests(
            "    endpoints: [\"h2c://10.0.0.1:82\", \"http://10.0.0.1\"]\n    health_check: { port: 9001 }")
        #expect(clear.map(\.version) == [.http2, .http1] && clear.map(\.tls) == [nil, nil])
        #expect(clear.map(\.host) == ["10.0.0.1:9001", "10.0.0.1:9001"])
        #expect(clear.first?.destination == .tcp(address: "10.0.0.1", port: 9001))
        let secure = try requests(
            """
                endpoints: ["https://[::1]"]
                protocol: h2
                tls: { server_name: api.test, ca_file: /ca.pem, certificate_file: /c.pem, key_file: /k.pem }
                health_check: { grpc: true }
            """)
        var tls = EndpointTLS(serverName: "api.test")
        (tls.authorityFile, tls.certificateFile, tls.keyFile) = ("/ca.pem", "/c.pem", "/k.pem")
        #expect(secure.first?.tls == tls && secure.first?.version == .http2 && secure.first?.isGRPC == true)
        #expect(secure.first?.host == "[::1]")
        let socket = try requests("    endpoints: [\"unix:/a\"]\n    protocol: h2\n    health_check: {}")
        #expect(socket.first?.version == .http2 && socket.first?.host == "localhost")
    }

    @Test func `without all_addresses a name is one endpoint, whatever its addresses`() throws {
        var roster = HealthRoster()
        let all = try upstreams(
            "  api: { endpoints: [\"http://a.test\"], dns: { all_addresses: false }, health_check: {} }")
        let address = EndpointAddress.http(host: "a.test", port: 80)
        let missing = roster.adopt(all, []).targets
        #expect(missing.map(\.request.destination) == [nil])
        let found = roster.adopt(all, [name(address, "10.0.0.1")]).targets
        #expect(found.map(\.request.destination) == [.tcp(address: "10.0.0.1", port: 80)])
        #expect(found.map(\.id) == missing.map(\.id))
        let change = HealthChange(target: found.first?.id ?? 0, isHealthy: false, reason: "x", lasted: .zero)
        #expect(roster.note([change]).map(\.health.endpoint) == [identity(address)])
    }

    @Test func `a name without addresses has no endpoints`() throws {
        var roster = HealthRoster()
        let all = try upstreams("  api: { endpoints: [\"http://a.test\", \"http://10.0.0.1\"], health_check: {} }")
        #expect(roster.adopt(all, []).targets.count == 1)
    }

    @Test func `states stay with their endpoints`() throws {
        var roster = HealthRoster()
        let address = EndpointAddress.http(host: "a.test", port: 80)
        let all = try upstreams("  api: { endpoints: [\"http://a.test\", \"http://10.0.0.1\"], health_check: {} }")
        let ids = roster.adopt(all, [name(address, "10.0.0.8", "10.0.0.9")]).targets.map(\.id)
        let changes = ids.map { HealthChange(target: $0, isHealthy: false, reason: "status 503", lasted: .seconds(9)) }
        let unhealthy = [
            EndpointHealth(identity(address, "10.0.0.8"), isHealthy: false, reason: "status 503"),
            EndpointHealth(identity(address, "10.0.0.9"), isHealthy: false, reason: "status 503"),
            EndpointHealth(identity(.http(host: "10.0.0.1", port: 80)), isHealthy: false, reason: "status 503"),
        ]
        #expect(roster.note(changes) == unhealthy.map { HealthRoster.Event(health: $0, lasted: .seconds(9)) })
        #expect(roster.unhealthy == unhealthy)
        // An address leaves and comes back: it is a new endpoint, and its old number means nothing.
        let fewer = roster.adopt(all, [name(address, "10.0.0.8")])
        #expect(fewer.targets.map(\.id) == [ids[0], ids[2]] && fewer.released.isEmpty)
        #expect(roster.unhealthy == [unhealthy[0], unhealthy[2]])
        let again = roster.adopt(all, [name(address, "10.0.0.8", "10.0.0.9")]).targets.map(\.id)
        #expect(again.count == 3 && !again.contains(ids[1]))
        #expect(roster.note([changes[1]]).isEmpty)
        #expect(roster.unhealthy == [unhealthy[0], unhealthy[2]])
        // Healthy again.
        let healthy = HealthChange(target: ids[0], isHealthy: true, reason: "status 200", lasted: .seconds(1))
        #expect(roster.note([healthy]).map(\.health.isHealthy) == [true])
        #expect(roster.unhealthy == [unhealthy[2]])
        // Without the block nothing is unhealthy any more, and the loops are notified.
        let none = roster.adopt(try upstreams("  api: { endpoints: [\"http://10.0.0.1\"] }"), [])
        #expect(none.targets.isEmpty && roster.unhealthy.isEmpty)
        #expect(none.released.map(\.endpoint) == [unhealthy[2].endpoint] && none.released.allSatisfy(\.isHealthy))
    }
}

@Suite struct `Health checks of a process` {
    private func upstream(
        _ url: String, _ more: String = "health_check: { interval: 100ms, unhealthy: 2 }"
    ) throws
        -> [UpstreamConfiguration]
    {
        let (configuration, diagnostics) = decode(
            """
            version: 1
            upstreams: { api: { endpoints: ["\(url)"], \(more) } }
            routes: [{ name: a, auth: none, upstream: api }]
            """)
        return try #require(configuration, "\(diagnostics)").upstreams
    }

    @Test func `loops are notified of changes, and of what is unhealthy after a reload`() throws {
        let server = try ScriptedUpstream { try $0.respond(503) }
        let log = LogRecorder()
        let checks = HealthChecks(clock: .system, logger: Logger(log, minimum: .info))
        defer { checks.stop() }
        let seen = Box<[EndpointHealth]>([])
        checks.attach { new in seen.withLock { $0 += new } }
        let upstreams = try upstream(server.url)
        checks.follow(upstreams, [])
        try waitUntil("it is unhealthy") { seen.value.count == 1 }
        #expect(seen.value[0].reason == "status 503" && !seen.value[0].isHealthy)
        #expect(checks.counts.first?.counts.unhealthy == 1)
        // A reload with the same endpoint.
        checks.follow(upstreams, [])
        #expect(seen.value.count == 2 && seen.value[0] == seen.value[1])
        server.respond { try $0.respond(200) }
        try waitUntil("it is healthy") { seen.value.count == 3 }
        #expect(seen.value[2].isHealthy)
        checks.follow(upstreams, [])
        #expect(seen.value.count == 3)
        try waitUntil("both changes are logged") { log.lines.count == 2 }
        let logged = log.texts
        #expect(
            logged[0].hasPrefix(
                "warning upstream endpoint unhealthy upstream=api endpoint=\(server.url) reason=status 503 healthy_"))
        #expect(
            logged[1].hasPrefix(
                "info upstream endpoint healthy again upstream=api endpoint=\(server.url) reason=status 200 unhealthy_")
        )
    }

    @Test func `without a block there are no probes any more`() throws {
        let server = try ScriptedUpstream { try $0.respond(503) }
        let checks = HealthChecks(clock: .system, logger: .silent)
        defer { checks.stop() }
        let seen = Box<[EndpointHealth]>([])
        checks.attach { new in seen.withLock { $0 += new } }
        checks.follow(try upstream(server.url), [])
        try waitUntil("it is unhealthy") { seen.value.count == 1 }
        checks.follow(try upstream(server.url, "drain: 1s"), [])
        #expect(seen.value.count == 2 && seen.value.last?.isHealthy == true)
        #expect(checks.counts.isEmpty)
        let probes = server.requests.count
        let other = try ScriptedUpstream { try $0.respond(200) }
        checks.follow(try upstream(other.url), [])
        try waitUntil("another one is probed again and again") { other.requests.count > 3 }
        #expect(server.requests.count == probes)
        // And with it again it starts as healthy.
        checks.follow(try upstream(server.url), [])
        try waitUntil("it is unhealthy again") { seen.value.count == 3 }
    }
}
