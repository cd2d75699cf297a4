import Foundation
import Glibc
import MartletCore
import MartletTLS
import MartletTesting
import Testing

/// Certificates for listeners and clients; made once, because making them takes longer than using them.
struct TLSCertificates: Sendable {
    let authority: CertificateAuthority
    let first: CertificateAuthority.Issued
    let second: CertificateAuthority.Issued
    let expired: CertificateAuthority.Issued
    let client: CertificateAuthority.Issued

    static let shared = Result { try TLSCertificates() }

    private init() throws {
        authority = try CertificateAuthority()
        first = try authority.issue("first", ["DNS:localhost", "DNS:a.test", "IP:127.0.0.1"])
        second = try authority.issue("second", ["DNS:b.test"])
        expired = try authority.issue("expired", ["DNS:localhost", "IP:127.0.0.1"], days: -1)
        client = try authority.issue("client", ["DNS:client"])
    }

    /// A `listen:` entry with TLS.
    func listener(_ certificate: CertificateAuthority.Issued? = nil, more: String = "", beside: String = "") -> String {
        let shown = certificate ?? first
        return """
            - address: 127.0.0.1:0
              tls: { certificate_file: "\(shown.certificateFile)", key_file: "\(shown.keyFile)"\(more) }
              \(beside)
            """
    }
}

/// What is seen of a TLS listener from outside: curl and OpenSSL's own client.
@Suite struct `A listener with TLS` {
    private let certificates: TLSCertificates

    init() throws { certificates = try TLSCertificates.shared.get() }

    private func withGateway(
        _ listen: String, server: String = "", _ body: (Gateway, ScriptedUpstream, inout GatewayConfig) throws -> Void
    ) throws {
        let upstream = try ScriptedUpstream { try $0.respond(200, body: "ok") }
        var config = GatewayConfig(endpoints: [upstream.url], server: server)
        config.listen = listen
        try withMartlet(config.text) { try body($0, upstream, &config) }
    }

    /// curl's status line and certificate check.
    private func curl(_ gateway: Gateway, _ options: [String] = [], host: String = "127.0.0.1") throws -> String {
        let port = String(gateway.endpoint.port)
        let result = try run(
            try Executable.named("curl"),
            [
                "-sS", "-o", "/dev/null", "-w", "%{http_code} %{http_version}", "--max-time", "10", "--cacert",
                certificates.authority.certificateFile, "--resolve", "\(host):\(port):127.0.0.1",
            ] + options + ["https://\(host):\(port)/x"])
        return result.ending == .exited(0) ? result.output : "\(result.ending)"
    }

    /// What `openssl s_client` says of a connection.
    private func client(_ gateway: Gateway, _ options: [String]) throws -> String {
        let command =
            (["openssl", "s_client", "-connect", "127.0.0.1:\(gateway.endpoint.port)", "-CAfile"]
            + [certificates.authority.certificateFile] + options).joined(separator: " ")
        return try run("/bin/sh", ["-c", "sleep 0.5 | \(command) 2>&1"]).output
    }

    @Test func `speaks HTTP/1.1 and HTTP/2 in TLS 1.2 and 1.3`() throws {
        try withGateway(certificates.listener()) { gateway, upstream, _ throws in
            #expect(try curl(gateway) == "200 2")
            #expect(try curl(gateway, ["--http1.1"]) == "200 1.1")
            #expect(try curl(gateway, ["--no-alpn"]) == "200 1.1")
            #expect(try curl(gateway, ["--tls-max", "1.2"]) == "200 2")
            #expect(try curl(gateway, ["--http1.1", "--tls-max", "1.2"]) == "200 1.1")
            #expect(upstream.requests.count == 5)
            #expect(upstream.requests.allSatisfy { $0["X-Forwarded-Proto"] == "https" })
            for old in ["-tls1", "-tls1_1"] {
                #expect(try client(gateway, [old, "-cipher", "ALL:@SECLEVEL=0"]).contains("alert protocol version"))
            }
            #expect(try client(gateway, ["-alpn", "nothing"]).contains("alert no application protocol"))
        }
    }

    @Test func `offers no HTTP/2 where it is turned off`() throws {
        try withGateway(certificates.listener(beside: "http2: false")) { gateway, _, _ throws in
            #expect(try curl(gateway) == "200 1.1")
        }
    }

    @Test func `shows the certificate for the name that is asked for`() throws {
        let more =
            ", certificates: [{ certificate_file: \"\(certificates.second.certificateFile)\", "
            + "key_file: \"\(certificates.second.keyFile)\" }]"
        try withGateway(certificates.listener(more: more)) { gateway, _, _ throws in
            for (name, subject) in [("a.test", "first"), ("b.test", "second"), ("c.test", "first")] {
                let seen = try client(gateway, ["-servername", name])
                #expect(seen.contains("subject=CN = \(subject)\n"))
            }
            #expect(try client(gateway, ["-noservername"]).contains("subject=CN = first\n"))
            #expect(try curl(gateway, host: "b.test") == "200 2")
            #expect(try curl(gateway, host: "c.test") == "exited(60)")
        }
    }

    @Test func `sessions resume on every loop and after a reload`() throws {
        try withGateway(certificates.listener(), server: "workers: 2") { gateway, _, config throws in
            let session = gateway.folder.file("session.pem")
            _ = try client(gateway, ["-sess_out", session])
            for _ in 0..<6 { #expect(try client(gateway, ["-sess_in", session]).contains("Reused, TLSv1.3")) }
            try gateway.reload(config.text)
            try waitUntil("it is reloaded") { gateway.everything.contains("configuration reloaded") }
            #expect(try client(gateway, ["-sess_in", session]).contains("Reused, TLSv1.3"))
            let metrics = try gateway.askAdmin("/metrics").text
            #expect(metrics.contains(#"martlet_tls_handshakes_total{version="1.3",outcome="resumed"} 7"#))
            #expect(metrics.contains(#"martlet_tls_handshakes_total{version="1.3",outcome="full"} 1"#))
        }
    }

    @Test func `asks clients for certificates`() throws {
        let more = ", client_ca_file: \"\(certificates.authority.certificateFile)\", client_auth: required"
        try withGateway(certificates.listener(more: more)) { gateway, upstream, _ throws in
            let identity = ["--cert", certificates.client.certificateFile, "--key", certificates.client.keyFile]
            #expect(try curl(gateway, identity) == "200 2")
            #expect(try curl(gateway, identity + ["--tls-max", "1.2"]) == "200 2")
            #expect(try curl(gateway).hasPrefix("exited"))
            #expect(upstream.requests.count == 2)
            let metrics = try gateway.askAdmin("/metrics").text
            #expect(metrics.contains(#"outcome="tls.client_certificate_missing"} 1"#))
        }
    }

    @Test func `a reload shows the new certificate, and connections stay`() throws {
        let folder = try TemporaryFolder()
        func put(_ issued: CertificateAuthority.Issued) throws {
            for (from, to) in [(issued.certificateFile, "c.pem"), (issued.keyFile, "k.pem")] {
                try folder.write(try String(contentsOfFile: from, encoding: .utf8), to: to)
            }
        }
        try put(certificates.first)
        let files = CertificateAuthority.Issued(certificateFile: folder.file("c.pem"), keyFile: folder.file("k.pem"))
        try withGateway(certificates.listener(files)) { gateway, _, config throws in
            #expect(try client(gateway, []).contains("subject=CN = first\n"))
            try put(certificates.second)
            try gateway.reload(config.text)
            try waitUntil("the new certificate is there") {
                try client(gateway, []).contains("subject=CN = second\n")
            }
            // A bad file refuses the whole reload, and what was good stays.
            try folder.write("", to: "k.pem")
            try gateway.reload(config.text)
            try waitUntil("the reload is refused") { gateway.everything.contains("[tls.key_empty]") }
            try waitUntil("and that is logged") {
                gateway.everything.contains("configuration not reloaded; the running configuration stays in effect")
            }
            #expect(try client(gateway, []).contains("subject=CN = second\n"))
            #expect(try curl(gateway, host: "b.test") == "200 2")
        }
    }

    @Test func `a new certificate is shown without a signal, once its key is there too`() throws {
        let folder = try TemporaryFolder()
        func put(_ from: String, _ name: String) throws {
            try folder.write(try String(contentsOfFile: from, encoding: .utf8), to: name)
        }
        for watch in [true, false] {
            try put(certificates.first.certificateFile, "c.pem")
            try put(certificates.first.keyFile, "k.pem")
            let files = CertificateAuthority.Issued(
                certificateFile: folder.file("c.pem"), keyFile: folder.file("k.pem"))
            try withGateway(certificates.listener(files), server: "watch: \(watch)") { gateway, _, _ throws in
                // What is in the file by now is not what runs: it is not read.
                try gateway.folder.write("version: 1\nunknown: 1\n", to: "config.yaml")
                try put(certificates.second.certificateFile, "c.pem")
                guard watch else {
                    pause(.milliseconds(2600))
                    #expect(!gateway.everything.contains("files that the configuration names"))
                    return
                }
                try waitUntil("half a pair is refused") {
                    gateway.everything.contains("configuration not reloaded; the running configuration stays in effect")
                }
                #expect(try client(gateway, []).contains("subject=CN = first\n"))
                try put(certificates.second.keyFile, "k.pem")
                try waitUntil("the new certificate is there") {
                    try client(gateway, []).contains("subject=CN = second\n")
                }
                #expect(gateway.log.count { $0["event"] == "watched files changed; reloading" } == 2)
            }
        }
    }

    @Test func `a bad file ends the start with its position`() throws {
        let folder = try TemporaryFolder()
        var config = GatewayConfig(endpoints: ["builtin:echo"])
        let mixed = CertificateAuthority.Issued(
            certificateFile: certificates.first.certificateFile, keyFile: certificates.second.keyFile)
        config.listen = certificates.listener(mixed)
        let path = try folder.write(config.text, to: "config.yaml")
        for command in ["run", "check"] {
            let result = try run(try Executable.martlet(), [command, "--config", path])
            #expect(result.ending == .exited(78))
            #expect((result.output + result.errorOutput).contains(/config\.yaml:5:\d+: error: .*\[tls\.key_mismatch\]/))
        }
    }

    @Test func `an expired certificate is logged, and served`() throws {
        try withGateway(certificates.listener(certificates.expired)) { gateway, _, _ throws in
            try waitUntil("it is logged") { gateway.log.contains { $0["code"] == "tls.own_certificate_expired" } }
            #expect(gateway.everything.contains(/warning: .* expired 1 days ago.*\[tls\.own_certificate_expired\]/))
            #expect(try curl(gateway) == "exited(60)")
            #expect(try curl(gateway, ["--insecure"]) == "200 2")
            let metrics = try gateway.askAdmin("/metrics").text
            #expect(metrics.contains(/martlet_tls_certificate_expiry_seconds\{side="listener",.*\} -\d+/))
            #expect(metrics.contains(/martlet_tls_certificate_valid\{side="listener",.*\} 0/))
        }
    }

    @Test func `a slow or silent handshake has a deadline`() throws {
        try withGateway(certificates.listener(), server: "timeouts: { tls_handshake: 1s }") { gateway, _, _ throws in
            let silent = try gateway.connect()
            let slow = try gateway.connect()
            try slow.send([22, 3, 1, 1, 0, 1])
            // This one sends its hello, gets the response, and that is all.
            let stalled = try gateway.connect()
            var engine = try TLSClientContext(TLSClientOptions(trust: .anyCertificate)).makeEngine(
                serverName: "localhost")
            try engine.start()
            var hello = ByteBuffer()
            engine.dequeueCiphertext(into: &hello)
            try stalled.send(hello.array)
            #expect(try curl(gateway) == "200 2")
            for client in [silent, slow, stalled] { #expect(client.socket.isEnded(within: .seconds(5))) }
            let metrics = try gateway.askAdmin("/metrics").text
            #expect(metrics.contains(#"outcome="tls.handshake_timed_out"} 3"#))
        }
    }

    @Test func `handshakes are signed on threads of their own, at a lower priority`() throws {
        try withGateway(certificates.listener()) { gateway, _, _ throws in
            #expect(try curl(gateway) == "200 2")
            let niceness = try gateway.niceness()
            #expect(niceness["martlet-tls"] == 5 && niceness["martlet-loop-0"] == 0, "\(niceness)")
        }
    }

    @Test func `half-open handshakes give their places to new connections`() throws {
        try withGateway(certificates.listener(), server: "workers: 1\nlimits: { connections: 3 }") {
            gateway, _, _ throws in
            let silent = try gateway.connect()
            let half = try (0..<2).map { _ in try gateway.connect() }
            // The beginning of a TLS record that does not go on.
            for client in half { try client.send("\u{16}\u{3}\u{1}") }
            pause(.milliseconds(1300))
            #expect(try curl(gateway) == "200 2")
            #expect(try curl(gateway) == "200 2")
            #expect(silent.socket.isEnded(within: .seconds(2)))
        }
    }

    @Test(arguments: [
        "GET / HTTP/1.1\r\nHost: a\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "\u{0}\u{1}\u{2}\u{3}\u{4}\u{5}",
    ])
    func `clear text ends immediately, and nothing of it is served`(text: String) throws {
        try withGateway(certificates.listener()) { gateway, upstream, _ throws in
            let client = try gateway.connect()
            try client.send(text)
            if text.hasPrefix("GET") {
                let response = try client.response(to: "GET")
                #expect(response.status == 400 && response.text.contains("\"code\":\"request_invalid\""), "\(response)")
                #expect(response["Connection"] == "close")
            }
            #expect(client.socket.isEnded(within: .seconds(5)))
            #expect(upstream.requests.isEmpty)
        }
    }

    @Test func `tells browsers to stay with https`() throws {
        try withGateway(certificates.listener(more: ", hsts: 1h")) { gateway, _, _ throws in
            let port = gateway.endpoint.port
            for version in ["--http1.1", "--http2"] {
                let response = try run(
                    try Executable.named("curl"),
                    [
                        "-sSi", version, "--cacert", certificates.authority.certificateFile,
                        "https://127.0.0.1:\(port)/",
                    ])
                #expect(response.output.lowercased().contains("strict-transport-security: max-age=3600"))
            }
        }
    }
}
