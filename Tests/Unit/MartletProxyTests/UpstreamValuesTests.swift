import MartletConfig
import MartletDecisionsTesting
import MartletTLS
import Testing

@testable import MartletDecisions
@testable import MartletProxy

@Suite struct `Text of an endpoint` {
    static let addresses: [(EndpointAddress, String)] = [
        (.http(host: "127.0.0.1", port: 9000), "http://127.0.0.1:9000"),
        (.http(host: "api.internal", port: 80), "http://api.internal"),
        (.http(host: "api.internal", port: 443), "http://api.internal:443"),
        (.http(host: "::1", port: 80), "http://[::1]"),
        (.http(host: "2001:db8::1", port: 0), "http://[2001:db8::1]:0"),
        (.https(host: "api.internal", port: 443), "https://api.internal"),
        (.https(host: "api.internal", port: 80), "https://api.internal:80"),
        (.https(host: "::1", port: 65535), "https://[::1]:65535"),
        (.h2c(host: "api.internal", port: 80), "h2c://api.internal"),
        (.h2c(host: "api.internal", port: 443), "h2c://api.internal:443"),
        (.unix(path: "/run/api.sock"), "unix:/run/api.sock"),
        (.echo, "builtin:echo"),
    ]

    @Test(arguments: addresses)
    func `is its URL`(_ address: EndpointAddress, _ text: String) {
        #expect(EndpointText.url(address) == text)
    }

    @Test(arguments: [
        ("a", 80, false, "a"), ("a", 443, true, "a"), ("a", 443, false, "a:443"), ("a", 80, true, "a:80"),
        ("a", 0, false, "a:0"), ("::1", 80, false, "[::1]"), ("::1", 443, false, "[::1]:443"),
        ("fe80::1:80", 81, true, "[fe80::1:80]:81"),
    ])
    func `has a port that is not the scheme's, and brackets around IPv6`(
        host: String, port: Int, isSecure: Bool, text: String
    ) {
        #expect(EndpointText.authority(host, UInt16(port), isSecure: isSecure) == text)
    }

    @Test func `is secure for https alone`() {
        let secure = Self.addresses.filter { $0.0.isSecure }.map { $0.1 }
        #expect(secure == ["https://api.internal", "https://api.internal:80", "https://[::1]:65535"])
    }
}

@Suite struct `Protocol of an endpoint` {
    private func upstream(
        _ version: UpstreamTransport.Version = .http1, serverName: String? = nil, tls: TLSClientContext? = nil
    ) -> Upstream {
        var transport = UpstreamTransport()
        transport.version = version
        transport.tls.serverName = serverName
        return UpstreamDirectoryBench.upstream("api", [], transport: transport, tls: tls)
    }

    static let versions: [(EndpointAddress, Bool, Bool)] = [
        (.http(host: "a", port: 80), false, false), (.https(host: "a", port: 443), false, true),
        (.h2c(host: "a", port: 80), true, true), (.unix(path: "/a"), false, true), (.echo, false, false),
    ]

    @Test(arguments: versions)
    func `is HTTP/2 for h2c, and where the upstream says so for https and Unix sockets`(
        _ address: EndpointAddress, http1: Bool, h2: Bool
    ) {
        #expect(EndpointProtocol(address, upstream(.http1)).isHTTP2 == http1)
        #expect(EndpointProtocol(address, upstream(.h2)).isHTTP2 == h2)
    }

    @Test func `has the upstream's TLS for https alone`() throws {
        let context = try TLSClientContext(TLSClientOptions(trust: .anyCertificate))
        let secure = EndpointProtocol(.https(host: "a.example", port: 443), upstream(tls: context))
        #expect(secure.isSecure && secure.tls === context && secure.serverName == "a.example")
        let others: [EndpointAddress] = [
            .http(host: "a.example", port: 443), .h2c(host: "a.example", port: 443), .unix(path: "/a"), .echo,
        ]
        for address in others {
            let clear = EndpointProtocol(address, upstream(.h2, serverName: "b.example", tls: context))
            #expect(!clear.isSecure && clear.tls == nil && clear.serverName == "", "\(address)")
        }
    }

    @Test func `verifies the configured name instead of the host`() {
        let address = EndpointAddress.https(host: "10.0.0.1", port: 443)
        #expect(EndpointProtocol(address, upstream(serverName: "api.internal")).serverName == "api.internal")
        #expect(EndpointProtocol(address, upstream()).serverName == "10.0.0.1")
    }

    @Test(arguments: [false, true])
    func `has a PROXY header for every address where the upstream says so`(isSent: Bool) {
        var transport = UpstreamTransport()
        transport.sendsProxyProtocol = isSent
        let upstream = UpstreamDirectoryBench.upstream("api", [], transport: transport)
        for (address, _, _) in Self.versions {
            #expect(EndpointProtocol(address, upstream).sendsProxyHeader == isSent, "\(address)")
        }
    }
}

@Suite struct `An upstream of the loops` {
    @Test func `has the values of its configuration`() {
        let addresses = SampleUpstream.addresses(1, 2)
        let upstream = UpstreamDirectoryBench.upstream(
            "api", addresses, balance: .hash(header: "x-user"), host: .fixed("inner:81"))
        #expect(upstream.name == "api")
        #expect(upstream.endpoints == addresses)
        #expect(upstream.balance == .hash(header: "x-user"))
        #expect(upstream.host == .fixed("inner:81"))
        #expect(upstream.tls == nil)
    }

    @Test func `has timeouts in nanoseconds, from zero to a hundred years`() {
        var timeouts = UpstreamTimeouts()
        timeouts.connect = .milliseconds(1500)
        timeouts.responseHead = .seconds(-1)
        timeouts.idle = .seconds(Int64.max)
        let upstream = UpstreamDirectoryBench.upstream("api", [], timeouts: timeouts)
        #expect(upstream.connectTimeout == 1_500_000_000)
        #expect(upstream.responseTimeout == 0)
        #expect(upstream.idleTimeout == 3_155_760_000_000_000_000)
    }

    @Test func `carries upgrades over HTTP/1.1 alone`() {
        var transport = UpstreamTransport()
        #expect(UpstreamDirectoryBench.upstream("api", [], transport: transport).carriesUpgrades)
        transport.version = .h2
        #expect(!UpstreamDirectoryBench.upstream("api", [], transport: transport).carriesUpgrades)
    }

    @Test func `has the TLS context that it was given`() throws {
        let context = try TLSClientContext(TLSClientOptions(trust: .anyCertificate))
        let upstream = UpstreamDirectoryBench.upstream("api", [], tls: context)
        #expect(upstream.tls === context)
    }
}

@Suite struct `Indices of the directory` {
    @Test func `are none below zero`() {
        #expect(EndpointIndex.none.rawValue == -1 && ClusterIndex.none.rawValue == -1)
        #expect(EndpointIndex.none.isNone && ClusterIndex.none.isNone)
        for number in [Int32(0), 1, .max] {
            #expect(!EndpointIndex(rawValue: number).isNone && !ClusterIndex(rawValue: number).isNone)
        }
        #expect(EndpointIndex(rawValue: .min).isNone && ClusterIndex(rawValue: .min).isNone)
    }

    @Test func `are offsets of a list`() {
        for number in [Int32(0), 1, .max] {
            #expect(Int(EndpointIndex(rawValue: number)) == Int(number))
            #expect(Int(ClusterIndex(rawValue: number)) == Int(number))
        }
    }

    @Test func `are equal by number`() {
        let endpoints: Set = [EndpointIndex(rawValue: 1), EndpointIndex(rawValue: 1), EndpointIndex.none]
        #expect(endpoints.count == 2 && endpoints.contains(EndpointIndex.none))
        #expect(!endpoints.contains(EndpointIndex(rawValue: 0)))
        let clusters: Set = [ClusterIndex(rawValue: 1), ClusterIndex(rawValue: 1), ClusterIndex.none]
        #expect(clusters.count == 2 && clusters.contains(ClusterIndex.none))
        #expect(!clusters.contains(ClusterIndex(rawValue: 0)))
    }
}
