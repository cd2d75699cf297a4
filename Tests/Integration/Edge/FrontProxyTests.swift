import Foundation
import MartletTesting
import Testing

/// The nginx of the page on installing, in front of a gateway.
@Suite struct `nginx in front` {
    /// nginx with the lines of the page, and the addresses and certificates of a test.
    private final class Front {
        let port: UInt16
        private let folder: TemporaryFolder
        private let process: ChildProcess

        init(gateway: Endpoint, _ certificates: TLSCertificates) throws {
            let (folder, port) = (try TemporaryFolder(), try refusedPort())
            (self.folder, self.port) = (folder, port)
            let page = try String(
                contentsOfFile: ExampleProxy.repository + "/Sources/MartletServer/Documentation.docc/Installing.md",
                encoding: .utf8)
            let block = try #require(page.components(separatedBy: "```nginx\n").dropFirst().first)
            var text = try #require(block.components(separatedBy: "```").first)
            for (written, used) in [
                ("listen 443 ssl", "listen 127.0.0.1:\(port) ssl"), ("10.0.0.11:8443", "\(gateway)"),
                ("/etc/nginx/tls/app.pem", certificates.second.certificateFile),
                ("/etc/nginx/tls/app.key", certificates.second.keyFile),
                ("/etc/nginx/tls/gateway-ca.pem", certificates.authority.certificateFile),
                ("gateway.internal.example.com", "a.test"),
            ] {
                try #require(text.contains(written), "the page has no \(written)")
                text = text.replacingOccurrences(of: written, with: used)
            }
            let paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map {
                "\($0)_temp_path \(folder.path)/\($0);"
            }
            let file = try folder.write(
                """
                daemon off; master_process off; worker_processes 1; pid \(folder.path)/nginx.pid;
                events { worker_connections 256; }
                http { access_log off; \(paths.joined(separator: " "))
                \(text)
                }
                """, to: "nginx.conf")
            process = try ChildProcess(
                try Executable.named("nginx"), ["-c", file, "-p", folder.path, "-e", folder.file("error.log")],
                output: folder, name: "nginx")
            try waitUntil("nginx listens") { (try? RawSocket(connectingTo: .loopback(port))) != nil }
        }

        deinit { process.kill(3) }

        /// The status of a request of a client at 127.0.0.2.
        func curl(_ options: [String], _ certificates: TLSCertificates) throws -> String {
            try run(
                try Executable.named("curl"),
                [
                    "-s", "-o", "/dev/null", "-w", "%{http_code}", "--max-time", "3", "--interface", "127.0.0.2",
                    "--http1.1", "--cacert", certificates.authority.certificateFile, "--resolve",
                    "b.test:\(port):127.0.0.1",
                ] + options + ["https://b.test:\(port)/a%2Fb?x=%7e"]
            ).output
        }
    }

    private func withFront(
        trusted: String, _ body: (Front, Gateway, ScriptedUpstream, TLSCertificates) throws -> Void
    ) throws {
        let certificates = try TLSCertificates.shared.get()
        let upstream = try ScriptedUpstream(EchoScript().script)
        var config = GatewayConfig(
            endpoints: [upstream.url], server: "trusted_proxies: [\(trusted)]\npaths: { encoded_slash: keep }",
            routes: "- { name: open, match: { path: /** }, auth: none, upstream: api, upgrade: [websocket] }")
        config.listen = certificates.listener()
        try withMartlet(config.text) { gateway throws in
            try body(try Front(gateway: gateway.endpoint, certificates), gateway, upstream, certificates)
        }
    }

    @Test func `names the client, its host and its scheme, and nothing that the client says in its place`() throws {
        try withFront(trusted: "127.0.0.1/32") { front, gateway, upstream, certificates throws in
            let forged = [
                "X-Forwarded-For", "Forwarded", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Uri",
                "X-Forwarded-Method", "X-Original-URL", "X-Original-URI", "X-Original-Method", "X-Rewrite-URL",
                "X-Real-IP", "True-Client-IP", "Client-Cert", "Client-Cert-Chain", "Remote-User",
                "X-HTTP-Method-Override",
            ]
            let status = try front.curl(forged.flatMap { ["-H", "\($0): forged"] }, certificates)
            #expect(status == "200")
            let seen = try upstream.onlyRequest()
            #expect(seen["X-Forwarded-For"] == "127.0.0.2, 127.0.0.1" && seen["X-Forwarded-Proto"] == "https")
            #expect(seen["X-Forwarded-Host"] == "b.test:\(front.port)" && seen["Host"] == "b.test:\(front.port)")
            #expect(seen.target == "/a%2Fb?x=%7e")
            #expect(!"\(seen)".contains("forged"), "\(seen)")
            try waitUntil("the log names the client") {
                gateway.log.contains { $0["event"] == "request" && $0["client"] == "127.0.0.2" }
            }
        }
    }

    @Test func `passes WebSockets on`() throws {
        try withFront(trusted: "127.0.0.1/32") { front, _, upstream, certificates throws in
            // curl waits for the end of what it takes for a body.
            let status = try front.curl(webSocketFields.flatMap { ["-H", "\($0.0): \($0.1)"] }, certificates)
            #expect(status == "101")
            #expect(try upstream.onlyRequest()["Upgrade"] == "websocket")
        }
    }

    @Test func `that is not trusted makes one client of all`() throws {
        try withFront(trusted: "192.0.2.0/24") { front, _, upstream, certificates throws in
            #expect(try front.curl([], certificates) == "200")
            #expect(try upstream.onlyRequest()["X-Forwarded-For"] == "127.0.0.1")
        }
    }
}
