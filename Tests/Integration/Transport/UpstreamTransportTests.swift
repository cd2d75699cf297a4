import MartletTesting
import Testing

/// Upstreams that are spoken to over TLS and HTTP/2: a real nginx.
@Suite struct `Upstream transports` {
    /// How the gateway is to speak to nginx, and what nginx says that it was.
    struct Transport: Sendable, CustomTestStringConvertible {
        let scheme: String
        var keys = ""
        let version: String
        var testDescription: String { "\(scheme) \(keys)" }
    }

    static let transports = [
        Transport(scheme: "https", version: "HTTP/1.1"),
        Transport(scheme: "https", keys: "protocol: h2", version: "HTTP/2.0"),
        Transport(scheme: "h2c", version: "HTTP/2.0"),
    ]

    static func url(_ scheme: String, _ nginx: NginxUpstream) -> String {
        scheme == "h2c" ? "h2c://127.0.0.1:\(nginx.frames)" : "https://localhost:\(nginx.secure)"
    }

    @Test(arguments: transports) func `requests, identities and bodies go both ways`(transport: Transport) throws {
        let authority = try CertificateAuthority()
        let large = String(repeating: "0123456789abcdef", count: 100_000)
        let nginx = try NginxUpstream(
            files: ["large": large], certificate: try authority.issue("localhost", ["DNS:localhost"]))
        let apple = try AppleFixture()
        let tls = transport.scheme == "https" ? "tls: { ca_file: \(authority.certificateFile) }" : ""
        let config = GatewayConfig(
            endpoints: [Self.url(transport.scheme, nginx)], upstream: "\(tls)\n\(transport.keys)",
            providers: apple.provider(""), routes: GatewayConfig.closed)
        try withMartlet(config.text) { gateway throws in
            let token = try apple.token()
            let client = try gateway.connect()
            for _ in 0..<3 {
                let response = try client.exchange("GET", "/x?y=z", bearer(token))
                #expect(response.status == 200)
                #expect(response.text.contains("by=\(transport.version) "), "\(response.text)")
                #expect(response.text.contains("uri=/x?y=z "))
                #expect(response.text.contains("subject=apple:"), "\(response.text)")
                #expect(response.text.contains("auth= "), "the credential was used up")
            }
            #expect(try client.exchange("GET", "/files/large", bearer(token)).text == large)
            // nginx responds before it has read everything, and the connection is then of no more use.
            let posted = try gateway.exchange("POST", "/x", bearer(token), body: Array(large.utf8.prefix(20_000)))
            #expect(posted.status == 200 && posted.text.contains("by=\(transport.version) "))
            #expect(try client.exchange("HEAD", "/files/large", bearer(token)).status == 200)
        }
    }

    @Test func `requests share few connections over HTTP/2`() throws {
        let nginx = try NginxUpstream()
        let config = GatewayConfig(endpoints: [Self.url("h2c", nginx)], server: "workers: 1")
        try withMartlet(config.text) { gateway throws in
            let workers = (0..<8).map { _ in
                Background { () -> Set<String> in
                    let client = try gateway.connect()
                    var connections: Set<String> = []
                    for _ in 0..<20 {
                        let text = try client.exchange("GET", "/").text
                        connections.insert(String(text.split(separator: "connection=").last ?? ""))
                    }
                    return connections
                }
            }
            var connections: Set<String> = []
            for worker in workers { connections.formUnion(try worker.value()) }
            #expect((1...2).contains(connections.count), "\(connections)")
        }
    }

    /// A certificate that does not hold, and the reason that the log gives.
    struct BadCertificate: Sendable, CustomTestStringConvertible {
        let names: [String]
        var days = 1
        var isTrusted = true
        var keys = ""
        let reason: String
        var testDescription: String { reason }
    }

    static let badCertificates = [
        BadCertificate(names: ["DNS:elsewhere.example"], reason: "tls.name_mismatch"),
        BadCertificate(names: ["DNS:localhost"], days: -1, reason: "tls.certificate_expired"),
        BadCertificate(names: ["DNS:localhost"], isTrusted: false, reason: "tls.certificate_untrusted"),
        BadCertificate(
            names: ["DNS:localhost"], isTrusted: false, keys: "protocol: h2", reason: "tls.certificate_untrusted"),
    ]

    @Test(arguments: badCertificates)
    func `an upstream that cannot prove its identity gets no request`(bad: BadCertificate) throws {
        let authority = try CertificateAuthority()
        let trusted = bad.isTrusted ? authority : try CertificateAuthority(name: "Another")
        let issued = try authority.issue("upstream", bad.names, days: bad.days)
        let nginx = try NginxUpstream(certificate: issued)
        let config = GatewayConfig(
            endpoints: [Self.url("https", nginx)],
            upstream: "tls: { ca_file: \(trusted.certificateFile) }\n\(bad.keys)")
        try withMartlet(config.text) { gateway throws in
            expectRejection(try gateway.get("/x"), 502, "upstream_unavailable")
            try waitUntil("the log says why") { gateway.everything.contains(bad.reason) }
        }
    }

    @Test func `an operator may leave a certificate unchecked, and is warned`() throws {
        let authority = try CertificateAuthority()
        let nginx = try NginxUpstream(certificate: try authority.issue("upstream", ["DNS:elsewhere.example"]))
        let config = GatewayConfig(endpoints: [Self.url("https", nginx)], upstream: "tls: { verify: false }")
        try withMartlet(config.text) { gateway throws in
            #expect(try gateway.get("/x").status == 200)
            #expect(gateway.everything.contains("verify"), "\(gateway.everything)")
        }
    }

    @Test func `the upstream's name may be another than its endpoint's`() throws {
        let authority = try CertificateAuthority()
        let nginx = try NginxUpstream(certificate: try authority.issue("upstream", ["DNS:api.internal"]))
        let config = GatewayConfig(
            endpoints: ["https://127.0.0.1:\(nginx.secure)"],
            upstream: "tls: { ca_file: \(authority.certificateFile), server_name: api.internal }")
        try withMartlet(config.text) { gateway throws in #expect(try gateway.get("/x").status == 200) }
    }

    @Test(arguments: ["http1", "h2"]) func `the gateway shows its own certificate`(version: String) throws {
        let authority = try CertificateAuthority()
        let clients = try CertificateAuthority(name: "Clients")
        let own = try clients.issue("gateway", ["DNS:gateway.internal"])
        let nginx = try NginxUpstream(
            certificate: try authority.issue("localhost", ["DNS:localhost"]), clientAuthority: clients.certificateFile)
        let files = "certificate_file: \(own.certificateFile), key_file: \(own.keyFile)"
        let config = GatewayConfig(
            endpoints: [Self.url("https", nginx)],
            upstream: "protocol: \(version)\ntls: { ca_file: \(authority.certificateFile), \(files) }")
        try withMartlet(config.text) { gateway throws in
            let text = try gateway.get("/x").text
            #expect(text.contains("proven=SUCCESS"), "\(text)")
        }
    }

    @Test func `an upstream that does not offer HTTP/2 where it is asked for is not spoken to`() throws {
        let authority = try CertificateAuthority()
        // nginx speaks HTTP/2 on every TLS socket or on none: openssl's server knows no ALPN at all.
        let folder = try TemporaryFolder()
        let issued = try authority.issue("plain", ["DNS:localhost"])
        let port = try refusedPort()
        let plain = try ChildProcess(
            try Executable.named("openssl"),
            [
                "s_server", "-accept", "127.0.0.1:\(port)", "-cert", issued.certificateFile, "-key", issued.keyFile,
                "-www",
            ],
            output: folder, name: "s_server")
        try waitUntil("openssl listens") { (try? RawSocket(connectingTo: .loopback(port))) != nil }
        let config = GatewayConfig(
            endpoints: ["https://localhost:\(port)"],
            upstream: "protocol: h2\ntls: { ca_file: \(authority.certificateFile) }")
        try withMartlet(config.text) { gateway throws in
            expectRejection(try gateway.get("/x"), 502, "upstream_unavailable")
            try waitUntil("the log says why") { gateway.everything.contains("upstream.protocol_not_offered") }
        }
        plain.kill(15)
    }

    @Test(arguments: transports)
    func `a closed port and another protocol are 502`(transport: Transport) throws {
        let authority = try CertificateAuthority()
        let port = try refusedPort()
        let tls = transport.scheme == "https" ? "tls: { ca_file: \(authority.certificateFile) }" : ""
        let config = GatewayConfig(
            endpoints: ["\(transport.scheme)://localhost:\(port)"], upstream: "\(tls)\n\(transport.keys)")
        try withMartlet(config.text) { gateway throws in
            expectRejection(try gateway.get("/x"), 502, "upstream_unavailable")
            // The server speaks neither TLS nor HTTP/2.
            let listener = try Listener(on: .loopback(port))
            // A request without a body is tried twice where it may have been sent.
            let mail = Background {
                var hasEnded = true
                while let socket = listener.accept(within: .seconds(3)) {
                    try socket.send("220 mail.example ESMTP\r\n")
                    hasEnded = socket.isEnded(within: .seconds(10)) && hasEnded
                }
                return hasEnded
            }
            let response = try gateway.get("/x")
            #expect(response.status == 502, "\(response)")
            #expect(try mail.value(), "the gateway leaves")
        }
    }

    @Test func `what is no response over HTTP/2 is invalid, not unavailable, and is not retried`() throws {
        let listener = try Listener(on: .loopback(0))
        let asked = Box(0)
        _ = Background {
            while let socket = listener.accept() {
                _ = Background {
                    let peer = try HTTP2Peer(serving: socket)
                    try peer.wait(for: "a request") { !peer.streams.isEmpty }
                    asked.withLock { $0 += 1 }
                    // HEADERS, and in them `:status: 0200`.
                    try socket.send([0, 0, 6, 1, 5, 0, 0, 0, 1, 8, 4] + Array("0200".utf8))
                    _ = socket.isEnded(within: .seconds(10))
                }
            }
        }
        let config = GatewayConfig(endpoints: ["h2c://\(listener.endpoint)"])
        try withMartlet(config.text) { gateway throws in
            expectRejection(try gateway.get("/x"), 502, "upstream_invalid")
            try waitUntil("the log says why") { gateway.everything.contains("upstream.stream_malformed") }
            #expect(asked.value == 1)
        }
        listener.close()
    }
}
