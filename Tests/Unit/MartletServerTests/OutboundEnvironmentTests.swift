import MartletConfig
import MartletCore
import MartletFetch
import Testing

@testable import MartletServer

/// Whose word counts for calls: the provider's, the block's, the environment's.
@Suite struct OutboundEnvironmentTests {
    private func environment(_ variables: [String: String]) -> OutboundEnvironment {
        OutboundEnvironment { variables[$0] }
    }

    private static let all = [
        "SSL_CERT_FILE": "/ca/env.pem", "HTTPS_PROXY": "http://ann:secret@env.example.com:3128/",
        "NO_PROXY": "localhost,.internal *.corp",
    ]

    @Test func `the environment counts where nothing is configured`() {
        let none = OutboundRoute(nil, OutboundConfiguration(), environment([:]))
        #expect(none == OutboundRoute())
        let route = OutboundRoute(nil, OutboundConfiguration(), environment(Self.all))
        #expect(route.caFile == "/ca/env.pem" && route.proxy == "http://ann:secret@env.example.com:3128")
        #expect(route.proxyLabel == "env.example.com:3128" && route.exceptions == ["localhost", ".internal", ".corp"])
        // Other programs take a proxy without a scheme.
        let short = OutboundRoute(nil, OutboundConfiguration(), environment(["https_proxy": "proxy:8080"]))
        #expect(short.proxy == "http://proxy:8080")
        #expect(OutboundRoute(nil, OutboundConfiguration(), environment(["HTTPS_PROXY": "socks5://a"])).proxy == nil)
    }

    @Test func `a provider's own keys come first, then those of the block, key by key`() {
        var general = OutboundConfiguration()
        general.caFile = FilePath("/ca/general.pem")
        general.proxy = ProxyAddress("https://general.example.com").map { .address($0) }
        var own = OutboundConfiguration()
        own.exceptions = ["issuer.example.com"]
        let route = OutboundRoute(own, general, environment(Self.all))
        #expect(route.caFile == "/ca/general.pem" && route.proxy == "https://general.example.com:443")
        #expect(route.exceptions == ["issuer.example.com"])
        own.proxy = .off
        #expect(OutboundRoute(own, general, environment(Self.all)).proxy == nil)
    }
}
