import Glibc
import MartletTesting
import Testing

/// OpenSSL's own server, which responds to every request with a page about the connection.
private final class PageServer: Sendable {
    let port: UInt16
    private let folder: TemporaryFolder
    let process: ChildProcess

    init(_ certificate: CertificateAuthority.Issued, _ options: [String] = []) throws {
        folder = try TemporaryFolder()
        let port = try refusedPort()
        self.port = port
        process = try ChildProcess(
            try Executable.named("openssl"),
            [
                "s_server", "-accept", "127.0.0.1:\(port)", "-cert", certificate.certificateFile, "-key",
                certificate.keyFile, "-www",
            ] + options, output: folder)
        try waitUntil("s_server listens") { process.output.contains("ACCEPT") }
    }
}

@Suite struct `An upstream with TLS` {
    private let certificates: TLSCertificates

    init() throws { certificates = try TLSCertificates.shared.get() }

    private func withGateway(
        _ server: PageServer, host: String = "127.0.0.1", tls: String, _ body: (Gateway) throws -> Void
    ) throws {
        let config = GatewayConfig(
            endpoints: ["https://\(host):\(server.port)"], upstream: "tls: { \(tls) }", server: "workers: 1")
        try withMartlet(config.text, body)
    }

    private var trust: String { "ca_file: \"\(certificates.authority.certificateFile)\"" }

    @Test func `is verified by the endpoint's host, and sessions go on`() throws {
        let server = try PageServer(certificates.first)
        for host in ["127.0.0.1", "localhost"] {
            try withGateway(server, host: host, tls: trust) { gateway throws in
                let first = try gateway.get("/")
                #expect(first.status == 200 && first.text.contains("New, TLSv1.3"))
                let second = try gateway.get("/")
                #expect(second.status == 200 && second.text.contains("Reused, TLSv1.3"))
            }
        }
    }

    @Test func `is verified by the name it shall have, which it is asked for`() throws {
        let server = try PageServer(
            certificates.first,
            [
                "-servername", "b.test", "-cert2", certificates.second.certificateFile, "-key2",
                certificates.second.keyFile,
            ])
        try withGateway(server, tls: "\(trust), server_name: b.test") { gateway throws in
            #expect(try gateway.get("/").status == 200)
        }
    }

    @Test func `is refused when it does not prove who it is`() throws {
        let strangers = try CertificateAuthority(name: "Stranger")
        let stranger = try strangers.issue("stranger", ["IP:127.0.0.1"])
        let cases: [(CertificateAuthority.Issued, String, String)] = [
            (certificates.first, "server_name: c.test, \(trust)", "tls.name_mismatch"),
            (certificates.second, trust, "tls.name_mismatch"),
            (certificates.expired, trust, "tls.certificate_expired"),
            (stranger, trust, "tls.certificate_untrusted"),
            (certificates.first, "verify: true", "tls.certificate_untrusted"),
        ]
        for (certificate, tls, reason) in cases {
            let server = try PageServer(certificate)
            try withGateway(server, tls: tls) { gateway throws in
                expectRejection(try gateway.get("/"), 502, "upstream_unavailable", reason)
                try waitUntil("\(reason) is in the log") { gateway.log.contains { $0["reason"] == reason } }
            }
            guard reason != "tls.name_mismatch" else { continue }
            try withGateway(server, tls: "verify: false") { gateway throws in
                #expect(try gateway.get("/").status == 200)
                #expect(gateway.everything.contains("any certificate is accepted"))
            }
        }
    }

    @Test func `sees the gateway's certificate when it asks for one`() throws {
        let server = try PageServer(
            certificates.first,
            ["-Verify", "1", "-verify_return_error", "-CAfile", certificates.authority.certificateFile])
        let (certificate, key) = (certificates.client.certificateFile, certificates.client.keyFile)
        try withGateway(server, tls: "\(trust), certificate_file: \"\(certificate)\", key_file: \"\(key)\"") {
            gateway throws in
            let response = try gateway.get("/")
            #expect(response.status == 200 && !response.text.contains("no client certificate available"))
        }
        try withGateway(server, tls: trust) { gateway throws in
            #expect(try gateway.get("/").status == 502)
        }
    }

    @Test func `that stops to take a body for a while gets all of it in the end`() throws {
        // It looks for a GET in all that comes and responds to nothing else.
        let server = try PageServer(certificates.first)
        let config = GatewayConfig(
            endpoints: ["https://127.0.0.1:\(server.port)"], upstream: "tls: { \(trust) }",
            server: "workers: 1\nlimits: { body_bytes: 1GiB }")
        try withMartlet(config.text) { gateway throws in
            let socket = try RawSocket(connectingTo: gateway.endpoint)
            let part = [UInt8](repeating: UInt8(ascii: "x"), count: 1 << 20)
            try socket.send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: \(part.count * 33)\r\n\r\n")
            try socket.send(part)
            // Until the handshake is through.
            #expect(socket.isSilent(for: .milliseconds(500)))
            server.process.kill(SIGSTOP)
            defer { server.process.kill(SIGCONT) }
            let upload = Background { for _ in 0..<32 { try socket.send(part) } }
            // All buffers on the way fill.
            #expect(throws: TestFailure.self) { try upload.value(within: .seconds(1)) }
            server.process.kill(SIGCONT)
            try upload.value()
        }
    }

    @Test func `in clear text is no upstream with TLS`() throws {
        let upstream = try ScriptedUpstream { try $0.respond(200, body: "ok") }
        let url = upstream.url.replacing("http:", with: "https:")
        let config = GatewayConfig(endpoints: [url], upstream: "tls: { \(trust) }")
        try withMartlet(config.text) { gateway throws in
            // It waits for the end of a head that never comes.
            expectRejection(try gateway.get("/"), 504, "upstream_timeout")
            #expect(upstream.requests.isEmpty)
        }
    }
}
