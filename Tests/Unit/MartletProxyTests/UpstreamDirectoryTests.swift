import MartletConfig
import MartletDecisionsTesting
import MartletTLS
import MartletTraffic
import Testing

@testable import MartletDecisions
@testable import MartletProxy

@Suite struct `Endpoints of a configuration` {
    private typealias Bench = UpstreamDirectoryBench

    @Test func `get indices in the order of the upstreams`() {
        let bench = Bench(
            Bench.upstream("a", SampleUpstream.addresses(1, 2)), Bench.upstream("b", SampleUpstream.addresses(3)))
        #expect(bench.clusters == [0, 1])
        #expect(bench.members(0) == [0, 1])
        #expect(bench.members(1) == [2])
    }

    @Test func `belong to one upstream each, whatever their addresses`() {
        var proxied = UpstreamTransport()
        proxied.sendsProxyProtocol = true
        let bench = Bench(
            Bench.upstream("a", SampleUpstream.addresses(1, 2)), Bench.upstream("b", SampleUpstream.addresses(2, 3)),
            Bench.upstream("c", SampleUpstream.addresses(1), transport: proxied))
        #expect(bench.members(0) == [0, 1])
        #expect(bench.members(1) == [2, 3])
        #expect(bench.members(2) == [4])
        let headers = (0..<5).map { bench.endpoint($0).transport.sendsProxyHeader }
        #expect(headers == [false, false, false, false, true])
    }

    @Test func `are one for an address that is listed twice`() {
        let bench = Bench(Bench.upstream("a", SampleUpstream.addresses(1, 1)))
        #expect(bench.members(0) == [0, 0])
        #expect(bench.endpointCount == 1)
    }

    @Test func `differ by scheme and port`() {
        let addresses: [EndpointAddress] = [
            .http(host: "10.0.0.1", port: 80), .h2c(host: "10.0.0.1", port: 80), .https(host: "10.0.0.1", port: 80),
            .http(host: "10.0.0.1", port: 81),
        ]
        let bench = Bench(Bench.upstream("a", addresses))
        #expect(bench.members(0) == [0, 1, 2, 3])
    }

    /// An address, and what its endpoint gets from it.
    struct AddressCase: CustomTestStringConvertible, Sendable {
        let address: EndpointAddress
        let host: String
        let text: String
        let connectsTo: String

        var testDescription: String { text }

        init(_ address: EndpointAddress, host: String, text: String, connectsTo: String) {
            self.address = address
            self.host = host
            self.text = text
            self.connectsTo = connectsTo
        }
    }

    static let addresses: [AddressCase] = [
        AddressCase(
            .http(host: "127.0.0.1", port: 9000), host: "127.0.0.1:9000", text: "http://127.0.0.1:9000",
            connectsTo: "127.0.0.1:9000"),
        AddressCase(.http(host: "::1", port: 80), host: "[::1]", text: "http://[::1]", connectsTo: "[::1]:80"),
        AddressCase(
            .http(host: "db.internal", port: 443), host: "db.internal:443", text: "http://db.internal:443",
            connectsTo: "none"),
        AddressCase(
            .https(host: "api.example", port: 443), host: "api.example", text: "https://api.example",
            connectsTo: "none"),
        AddressCase(
            .https(host: "10.0.0.1", port: 80), host: "10.0.0.1:80", text: "https://10.0.0.1:80",
            connectsTo: "10.0.0.1:80"),
        AddressCase(
            .h2c(host: "10.0.0.1", port: 80), host: "10.0.0.1", text: "h2c://10.0.0.1", connectsTo: "10.0.0.1:80"),
        AddressCase(
            .unix(path: "/run/a.sock"), host: "localhost", text: "unix:/run/a.sock", connectsTo: "unix:/run/a.sock"),
        AddressCase(.unix(path: ""), host: "localhost", text: "unix:", connectsTo: "none"),
        AddressCase(.echo, host: "localhost", text: "builtin:echo", connectsTo: "none"),
    ]

    @Test(arguments: addresses)
    func `have a Host, a text and the address of a literal`(_ row: AddressCase) {
        let bench = Bench(Bench.upstream("a", [row.address]))
        let endpoint = bench.endpoint(0)
        #expect(endpoint.address == row.address)
        #expect(String(decoding: endpoint.hostValue, as: UTF8.self) == row.host)
        #expect(String(decoding: endpoint.text, as: UTF8.self) == row.text)
        #expect(bench.nextAddresses(of: 0, 2) == [row.connectsTo, row.connectsTo])
    }

    @Test func `lend the idle connection that was used last, each once`() {
        let bench = Bench(endpoints: 2)
        bench.setIdle(0, handles: [7, 8, 9])
        let taken = (0..<4).map { _ in bench.takeIdle(0) }
        #expect(taken == [9, 8, 7, -1])
        #expect(bench.takeIdle(1) == -1)
    }

    @Test func `begin without load and failures`() {
        let endpoint = Bench(endpoints: 1).endpoint(0)
        #expect(endpoint.active == 0 && endpoint.idle.isEmpty && endpoint.connections.isEmpty)
        #expect(endpoint.ejection.failures == 0 && endpoint.ejection.count == 0 && endpoint.ejection.until == 0)
        #expect(!endpoint.ejection.isHalfOpen && !endpoint.isRetired)
    }
}

@Suite struct `A reload of the endpoints` {
    private typealias Bench = UpstreamDirectoryBench

    @Test func `keeps the index of an upstream by its name`() {
        let bench = Bench(
            Bench.upstream("a", SampleUpstream.addresses(1)), Bench.upstream("b", SampleUpstream.addresses(2)))
        bench.adopt([
            Bench.upstream("b", SampleUpstream.addresses(2)), Bench.upstream("c", SampleUpstream.addresses(3)),
        ])
        #expect(bench.clusters == [1, 2])
        bench.adopt([
            Bench.upstream("c", SampleUpstream.addresses(3)), Bench.upstream("a", SampleUpstream.addresses(1)),
        ])
        #expect(bench.clusters == [2, 0])
        bench.adopt([])
        #expect(bench.clusters == [])
    }

    @Test func `replaces the endpoints and the settings of an upstream`() {
        let bench = Bench(Bench.upstream("a", SampleUpstream.addresses(1, 2)))
        bench.adopt([Bench.upstream("a", SampleUpstream.addresses(3, 2), balance: .leastRequests)])
        #expect(bench.members(0) == [2, 1])
        let balance = bench.directory.clusters[0].upstream.balance
        #expect(balance == .leastRequests)
    }

    @Test func `retires an endpoint once, as soon as its upstream does not have it`() {
        let bench = Bench(
            Bench.upstream("a", SampleUpstream.addresses(1, 2)), Bench.upstream("b", SampleUpstream.addresses(1)))
        #expect(
            bench.adopt([
                Bench.upstream("a", SampleUpstream.addresses(2)), Bench.upstream("b", SampleUpstream.addresses(1)),
            ]) == [0])
        #expect(bench.endpoint(0).isRetired && !bench.endpoint(1).isRetired)
        #expect(bench.adopt([Bench.upstream("a", SampleUpstream.addresses(2))]) == [2])
        #expect(bench.adopt([Bench.upstream("a", SampleUpstream.addresses(2))]) == [])
        #expect(bench.adopt([]) == [1])
    }

    @Test func `retires an endpoint whose transport changed`() {
        var transport = UpstreamTransport()
        transport.version = .h2
        let bench = Bench(Bench.upstream("a", [.unix(path: "/run/a.sock")]))
        #expect(bench.adopt([Bench.upstream("a", [.unix(path: "/run/a.sock")], transport: transport)]) == [0])
        #expect(bench.members(0) == [1])
        #expect(!bench.endpoint(0).transport.isHTTP2 && bench.endpoint(1).transport.isHTTP2)
    }

    @Test func `keeps the connections, load and failures of an endpoint, even of one that returns`() {
        let bench = Bench(Bench.upstream("a", SampleUpstream.addresses(1, 2)))
        bench.setIdle(0, count: 2)
        bench.begin(0)
        bench.fail(0, refused: true, at: 7)
        #expect(bench.adopt([Bench.upstream("a", SampleUpstream.addresses(2))]) == [0])
        #expect(bench.adopt([Bench.upstream("a", SampleUpstream.addresses(1))]) == [1])
        let endpoint = bench.endpoint(0)
        #expect(bench.members(0) == [0] && !endpoint.isRetired)
        #expect(endpoint.idle.count == 2 && endpoint.active == 1 && endpoint.ejection.failures == 1)
        #expect(endpoint.ejection.count == 1 && endpoint.ejection.until == Bench.second + 7)
    }

    @Test func `replaces the certificates of an endpoint that stays`() throws {
        let first = try TLSClientContext(TLSClientOptions(trust: .anyCertificate))
        let second = try TLSClientContext(TLSClientOptions(trust: .anyCertificate))
        let address = EndpointAddress.https(host: "10.0.0.1", port: 443)
        let bench = Bench(Bench.upstream("a", [address], tls: first))
        #expect(bench.endpoint(0).transport.tls === first)
        #expect(bench.adopt([Bench.upstream("a", [address], tls: second)]) == [])
        #expect(bench.endpointCount == 1)
        #expect(bench.endpoint(0).transport.tls === second)
    }

    @Test func `keeps the addresses of a name until they are resolved again`() {
        let name = EndpointAddress.http(host: "db.internal", port: 80)
        let bench = Bench()
        bench.adopt([Bench.upstream("a", [name])], resolved: [Bench.resolved(name, "10.1.0.1")])
        #expect(bench.nextAddresses(of: 0, 1) == ["10.1.0.1:80"])
        bench.adopt([Bench.upstream("a", [name])])
        #expect(bench.members(0) == [0] && bench.nextAddresses(of: 0, 1) == ["10.1.0.1:80"])
        #expect(bench.adopt([Bench.upstream("a", [name])], resolved: [Bench.resolved(name, "10.1.0.2")]) == [0])
        #expect(bench.members(0) == [1] && bench.nextAddresses(of: 1, 1) == ["10.1.0.2:80"])
    }

    @Test func `uses the slots of endpoints that left long ago again`() {
        let name = EndpointAddress.http(host: "db.internal", port: 80)
        let bench = Bench(Bench.upstream("a", [name]))
        for minute in 0..<1000 {
            let address = "10.0.\(minute / 250).\(minute % 250)"
            bench.resolve(Bench.resolved(name, address), now: Int64(minute) * 61 * Bench.second)
            #expect(bench.nextAddresses(of: bench.members(0)[0], 1) == ["\(address):80"])
        }
        #expect(bench.endpointCount <= 4)
    }

    @Test func `does not use the slot of an endpoint again that still has requests`() {
        let name = EndpointAddress.http(host: "db.internal", port: 80)
        let bench = Bench(Bench.upstream("a", [name]))
        bench.resolve(Bench.resolved(name, "10.0.0.1"))
        let first = bench.members(0)[0]
        bench.begin(first)
        for minute in 1..<10 {
            bench.resolve(Bench.resolved(name, "10.0.1.\(minute)"), now: Int64(minute) * 61 * Bench.second)
            #expect(bench.members(0)[0] != first)
        }
        #expect(bench.endpoint(first).active == 1 && bench.overdue(30 * Bench.second) == [])
        #expect(bench.overdue(91 * Bench.second) == [first])
        bench.end(first)
        #expect(bench.overdue(91 * Bench.second) == [])
    }
}

@Suite struct `Addresses of a name` {
    private typealias Bench = UpstreamDirectoryBench
    private static let name = EndpointAddress.http(host: "db.internal", port: 80)

    @Test func `are an endpoint each, with connections and failures of its own`() {
        let bench = Bench(Bench.upstream("a", [Self.name]))
        bench.resolve(Bench.resolved(Self.name, "10.1.0.1", "10.1.0.2", "2001:db8::3"))
        let members = bench.members(0)
        let addresses = members.map { bench.nextAddresses(of: $0, 2) }
        #expect(addresses.map(\.[0]) == ["10.1.0.1:80", "10.1.0.2:80", "[2001:db8::3]:80"])
        #expect(addresses.allSatisfy { $0[0] == $0[1] })
        bench.fail(members[1], refused: true)
        #expect(Set(bench.choices(4)) == [members[0], members[2]])
    }

    @Test func `that stay keep their endpoint when others come and go`() {
        let bench = Bench(Bench.upstream("a", [Self.name]))
        bench.resolve(Bench.resolved(Self.name, "10.1.0.1", "10.1.0.2"))
        let before = bench.members(0)
        #expect(bench.resolve(Bench.resolved(Self.name, "10.1.0.2", "10.1.0.3")) == [before[0]])
        #expect(bench.members(0)[0] == before[1])
        #expect(bench.resolve(Bench.resolved(Self.name, "10.1.0.2", "10.1.0.3")) == [])
    }

    @Test func `are none where the name has none any more`() {
        let bench = Bench(Bench.upstream("a", [Self.name]))
        bench.resolve(Bench.resolved(Self.name, "10.1.0.1"))
        bench.resolve(Bench.resolved(Self.name))
        #expect(bench.members(0).count == 1 && bench.nextAddresses(of: bench.members(0)[0], 1) == ["none"])
    }

    @Test func `are those of the family, and the first alone where the file says so`() {
        var upstream = SampleUpstream.configuration("a", [Self.name])
        upstream.policies.resolution.family = .ipv6
        let bench = Bench(Upstream(upstream))
        bench.resolve(Bench.resolved(Self.name, "10.1.0.1", "2001:db8::3", "2001:db8::4"))
        #expect(bench.members(0).map { bench.nextAddresses(of: $0, 1)[0] } == ["[2001:db8::3]:80", "[2001:db8::4]:80"])
        upstream.policies.resolution.family = .ipv4
        upstream.policies.resolution.usesAllAddresses = false
        bench.adopt([Upstream(upstream)], resolved: [Bench.resolved(Self.name, "::1", "10.1.0.2", "10.1.0.3")])
        #expect(bench.members(0).map { bench.nextAddresses(of: $0, 1)[0] } == ["10.1.0.2:80"])
    }

    @Test func `are for no other scheme, port or upstream`() {
        let others: [EndpointAddress] = [
            .https(host: "db.internal", port: 80), .http(host: "db.internal", port: 81),
            .http(host: "db2.internal", port: 80),
        ]
        let bench = Bench(Bench.upstream("a", [Self.name] + others), Bench.upstream("b", [Self.name]))
        bench.resolve(
            Bench.resolved(.http(host: "unknown", port: 80), "10.9.0.1"), Bench.resolved(Self.name, "10.1.0.1"))
        let first = (bench.members(0) + bench.members(1)).map { bench.nextAddresses(of: $0, 1)[0] }
        #expect(first == ["10.1.0.1:80", "none", "none", "none", "none"])
        bench.resolve(Bench.resolved(Self.name, in: "b", "10.2.0.1"))
        #expect(bench.nextAddresses(of: bench.members(1)[0], 1) == ["10.2.0.1:80"])
    }

    @Test func `have the weight of their name each`() {
        var upstream = SampleUpstream.configuration("a", [Self.name, SampleUpstream.address(9)])
        upstream.members[0].weight = 2
        let bench = Bench(Upstream(upstream))
        bench.resolve(Bench.resolved(Self.name, "10.1.0.1", "10.1.0.2"))
        let chosen = bench.choices(500)
        let counts = bench.members(0).map { member in chosen.count { $0 == member } }
        #expect(counts == [200, 200, 100])
    }
}

@Suite struct `The report on endpoints` {
    private typealias Bench = UpstreamDirectoryBench

    @Test func `has load and failures of each endpoint of each upstream`() {
        let bench = Bench(
            Bench.upstream("a", SampleUpstream.addresses(1, 2)), Bench.upstream("b", SampleUpstream.addresses(2)))
        bench.begin(0)
        bench.begin(0)
        bench.begin(0)
        bench.end(0)
        bench.setIdle(1, count: 3)
        bench.fail(1)
        #expect(
            bench.report() == [
                "a http://10.0.0.1: 0 idle, 2 active, 0 failed", "a http://10.0.0.2: 3 idle, 0 active, 1 failed",
                "b http://10.0.0.2: 0 idle, 0 active, 0 failed",
            ])
    }

    @Test func `follows the order of the current configuration`() {
        let bench = Bench(
            Bench.upstream("a", SampleUpstream.addresses(1)), Bench.upstream("b", SampleUpstream.addresses(2)))
        bench.adopt([
            Bench.upstream("c", SampleUpstream.addresses(3)), Bench.upstream("a", SampleUpstream.addresses(1)),
        ])
        #expect(
            bench.report() == [
                "c http://10.0.0.3: 0 idle, 0 active, 0 failed", "a http://10.0.0.1: 0 idle, 0 active, 0 failed",
            ])
        bench.adopt([])
        #expect(bench.report() == [])
    }

    @Test func `calls an endpoint ejected until its ejection ends`() {
        let bench = Bench(endpoints: 1)
        bench.fail(0, refused: true, at: 5)
        let before = bench.report(now: Bench.second + 4)
        let after = bench.report(now: Bench.second + 5)
        #expect(before == ["api http://10.0.0.0: 0 idle, 0 active, 1 failed, ejected"])
        #expect(after == ["api http://10.0.0.0: 0 idle, 0 active, 1 failed"])
    }
}
