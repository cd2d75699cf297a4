import MartletCore
import Testing

@testable import MartletConfig

/// The listeners, upstreams and upgrades of the sample.
@Suite struct `The transport part of the grammar` {
    private static let here = SourceLocation(file: "", line: 1, column: 1)

    private static func files(_ certificate: String, _ key: String) -> CertificateFiles {
        CertificateFiles(certificate: Located(certificate, at: here), key: Located(key, at: here))
    }

    @Test func `has listeners`() throws {
        let server = try #require(load(fullSample).configuration).server
        #expect(server.listeners.map(\.offersHTTP2) == [false, true, true, true])
        #expect(server.listeners.map(\.acceptsProxyProtocol) == [true, false, false, false])
        #expect(server.listeners.map(\.redirectsToHTTPSPort) == [8443, nil, nil, 443])
        var tls = ListenerTLS(certificates: [Self.files("c.pem", "k.pem"), Self.files("/etc/d.pem", "e.pem")])
        (tls.minimumVersion, tls.clientAuthentication) = (.v13, .optional)
        tls.cipherSuites = Located("TLS_AES_256_GCM_SHA384", at: Self.here)
        tls.clientAuthorityFile = Located("ca.pem", at: Self.here)
        tls.strictTransport = .seconds(365 * 86_400)
        #expect(server.listeners.map(\.tls) == [nil, tls, nil, nil])
        var permissions = SocketFilePermissions()
        (permissions.owner, permissions.group, permissions.mode) = ("www-data", "33", 0o660)
        #expect(server.listeners.map(\.socketFile) == [nil, nil, permissions, nil])
        var http2 = HTTP2Configuration()
        (http2.maximumConcurrentStreams, http2.maximumResets, http2.initialWindow) = (7, 8, 1_048_576)
        #expect(server.http2 == http2)
    }

    @Test func `has positions of files`() throws {
        let tls = try #require(load(fullSample).configuration?.server.listeners[1].tls)
        #expect("\(tls.certificates[1].key.location)".hasPrefix("test.yaml:13:"))
    }

    @Test func `accepts an empty list of certificates`() throws {
        let text = """
            version: 1
            server: { listen: [{ address: "127.0.0.1:1", tls: { certificate_file: c.pem, key_file: k.pem, certificates: [] } }] }
            upstreams: { api: { endpoints: ["builtin:echo"] } }
            routes: [{ name: open, auth: none, upstream: api }]
            """
        let (configuration, diagnostics) = load(text)
        #expect(diagnostics.sorted.map(\.description) == [])
        #expect(configuration?.server.listeners.first?.tls?.certificates == [Self.files("c.pem", "k.pem")])
    }

    @Test func `has upstreams`() throws {
        let upstreams = try #require(load(fullSample).configuration).upstreams
        var tls = UpstreamTLS()
        tls.authorityFile = Located("ca.pem", at: Self.here)
        (tls.serverName, tls.certificate) = ("app.example.com", Self.files("c.pem", "k.pem"))
        var far = UpstreamTransport()
        (far.version, far.tls) = (.h2, tls)
        var behind = UpstreamTransport()
        behind.sendsProxyProtocol = true
        #expect(
            upstreams.map(\.transport) == [UpstreamTransport(), UpstreamTransport(), far, UpstreamTransport(), behind])
        #expect(
            upstreams[2].endpoints.map(\.value) == [
                .https(host: "app.example.com", port: 443), .https(host: "::1", port: 8443),
            ])
        #expect(
            upstreams[3].endpoints.map(\.value) == [
                .h2c(host: "app.example.com", port: 80), .h2c(host: "::1", port: 81),
            ])
    }

    @Test func `has upgrades`() throws {
        let upgrades = try #require(load(fullSample).configuration).routes.map(\.upgrade)
        var named = UpgradeConfiguration()
        (named.protocols, named.closeOnExpiry) = (["acme/2"], .after(.seconds(30)))
        (named.idle, named.maximumConnectionAge) = (.seconds(60), .seconds(3600))
        var listed = UpgradeConfiguration()
        listed.protocols = ["websocket", "acme"]
        var none = UpgradeConfiguration()
        none.protocols = []
        var lasting = UpgradeConfiguration()
        lasting.closeOnExpiry = .never
        #expect(
            upgrades == [
                UpgradeConfiguration(), named, listed, none, lasting, UpgradeConfiguration(), UpgradeConfiguration(),
                UpgradeConfiguration(), .none, .none,
            ])
    }

    @Test func `warns of Unix sockets whose clients share a throttle`() throws {
        let text = """
            version: 1
            server:
              listen:
                - { address: unix:a.sock }
                - { address: unix:b.sock, trusted: true }
                - { address: unix:c.sock, proxy_protocol: true }
                - { address: 127.0.0.1:2 }
            providers: { users: { kind: KIND } }
            upstreams: { echo: { endpoints: [builtin:echo] } }
            routes: [{ name: all, upstream: echo }]
            """
        for kind in ["password", "wechat"] {
            let (configuration, diagnostics) = load(text.replacing("KIND", with: kind), kinds: [kind])
            #expect(configuration?.server.listeners.map(\.isTrusted) == [false, true, false, false])
            let warnings = diagnostics.all.filter { $0.code == .configInsecure }
            #expect(warnings.map(\.location.line) == [4] && warnings.first?.text.contains("'users'") == true)
        }
        let (_, quiet) = load(text.replacing("KIND", with: "apple"), kinds: ["apple"])
        #expect(quiet.all.isEmpty)
    }
}
