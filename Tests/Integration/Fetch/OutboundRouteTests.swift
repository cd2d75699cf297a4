import MartletCore
import MartletFetch
import MartletTLS
import MartletTesting
import Testing

/// How calls reach their hosts: through a proxy, trusting an authority of one's own.
@Suite(.timeLimit(.minutes(2))) struct HTTPFetcherRouteTests {
    /// An https server whose name only a proxy knows, and a fetcher that trusts its authority.
    private struct Setting {
        let server: CuttingServer
        let authority: CertificateAuthority
        let fetcher: HTTPFetcher

        init() throws {
            authority = try CertificateAuthority()
            let issued = try authority.issue("issuer", ["DNS:issuer.test", "IP:127.0.0.1"])
            let identity = TLSIdentityFiles(certificateFile: issued.certificateFile, keyFile: issued.keyFile)
            let context = try TLSServerContext(
                TLSServerOptions(identities: [identity]), tickets: TLSTicketKeys(clock: .system))
            server = try CuttingServer(context) { _, _ in .respond }
            fetcher = try HTTPFetcher()
        }

        var endpoint: Endpoint { .loopback(server.port) }

        func route(_ proxy: ConnectProxy?) -> OutboundRoute {
            var route = OutboundRoute()
            route.caFile = authority.certificateFile
            route.proxy = proxy?.url
            route.proxyLabel = proxy.map { String($0.url.dropFirst("http://".count)) }
            return route
        }

        func get(_ url: String, _ route: OutboundRoute) async -> Result<Int, HTTPCallError> {
            do throws(HTTPCallError) {
                let response = try await fetcher.get(
                    url, for: .issuerKeys, timeout: .seconds(5), maximumBytes: 1000, via: route)
                return .success(response.status)
            } catch {
                return .failure(error)
            }
        }
    }

    @Test func `a name that only the proxy knows is called through it, and trusted by the given authority`()
        async throws
    {
        let setting = try Setting()
        defer { setting.fetcher.shutdown() }
        let proxy = try ConnectProxy(to: setting.endpoint)
        #expect(try await setting.get("https://issuer.test/keys", setting.route(proxy)).get() == 200)
        #expect(proxy.requests.count == 1 && proxy.requests[0].hasPrefix("CONNECT issuer.test:443 HTTP/1.1\r\n"))
        // The system trusts no such authority.
        var untrusting = setting.route(proxy)
        untrusting.caFile = nil
        guard case .failure(let error) = await setting.get("https://issuer.test/keys", untrusting) else {
            Issue.record("trusted")
            return
        }
        #expect(error.code == .fetchUntrusted)
    }

    @Test func `hosts that are excepted, and plain http nearby, are called directly`() async throws {
        let setting = try Setting()
        defer { setting.fetcher.shutdown() }
        let proxy = try ConnectProxy(to: setting.endpoint, status: 403)
        let url = "https://127.0.0.1:\(setting.server.port)/keys"
        guard case .failure(let error) = await setting.get(url, setting.route(proxy)) else {
            Issue.record("not through the proxy")
            return
        }
        let label = proxy.url.dropFirst("http://".count)
        #expect(error.code == .fetchUnreachable && error.message.contains("\(label) rejects"), "\(error.message)")
        #expect(error.message.contains("403"), "\(error.message)")
        var excepting = setting.route(proxy)
        excepting.exceptions = ["example.com", "127.0.0.0/8"]
        #expect(try await setting.get(url, excepting).get() == 200)
        let plain = try ScriptedUpstream()
        #expect(try await setting.get(plain.url, setting.route(proxy)).get() == 200)
        #expect(proxy.requests.count == 1)
    }

    @Test func `a proxy that cannot be reached is named`() async throws {
        let setting = try Setting()
        defer { setting.fetcher.shutdown() }
        var route = setting.route(nil)
        (route.proxy, route.proxyLabel) = ("http://127.0.0.1:9", "127.0.0.1:9")
        guard case .failure(let error) = await setting.get("https://issuer.test/", route) else {
            Issue.record("reached")
            return
        }
        #expect(error.message.contains("the proxy 127.0.0.1:9 cannot be reached"), "\(error.message)")
    }
}
