import Foundation
import Glibc
import MartletTesting
import Testing

/// The token and the encryption of the admin listener, as a client and as the commands use them.
@Suite struct `Admin token` {
    private static let token = "correct-horse-battery-staple-0123456789"

    /// - Parameter admin: keys of `admin`, in which `FOLDER` is that of the token and the certificates.
    private func withAdmin(
        _ admin: String, more: String = "", _ folder: TemporaryFolder,
        _ body: (_ gateway: Gateway, _ file: String) throws -> Void
    ) throws {
        let upstream = try ScriptedUpstream()
        var config = GatewayConfig(endpoints: [upstream.url])
        config.admin = "address: 127.0.0.1:0\n" + admin
        config.server = "watch: false"
        config.more = more
        let file = try folder.write(config.text, to: "config.yaml")
        try withMartlet(config.text) { gateway throws in try body(gateway, file) }
    }

    private func command(_ arguments: [String], _ gateway: Gateway, url: String? = nil) throws -> CommandResult {
        try run(Executable.martlet(), arguments + ["--admin", url ?? "http://\(gateway.admin.description)"])
    }

    @Test func `every change needs it, and reading on this machine does not`() throws {
        let folder = try TemporaryFolder()
        let tokenFile = try folder.write(Self.token + "\n", to: "token")
        try withAdmin("token_file: \(tokenFile)", folder) { gateway, _ in
            let client = try HTTPClient(to: gateway.admin)
            let drain = Array(#"{"endpoint":"http://127.0.0.1:1"}"#.utf8)
            let type = ("Content-Type", "application/json")
            for path in ["/metrics", "/upstreams", "/readyz", "/"] {
                #expect(try client.exchange("GET", path).status == 200, "\(path)")
            }
            for path in ["/reload", "/upstreams/api/drain", "/upstreams/api/restore"] {
                let missing = try client.exchange("POST", path, [type], body: drain)
                expectRejection(missing, 401, "credential_missing", path)
                #expect(missing["WWW-Authenticate"] == #"Bearer realm="martlet-admin""#)
                let wrong = try client.exchange(
                    "POST", path, [type, ("Authorization", "Bearer x\(Self.token)")], body: drain)
                expectRejection(wrong, 401, "credential_invalid", path)
            }
            let right = [type, ("Authorization", "Bearer \(Self.token)")]
            #expect(try client.exchange("POST", "/upstreams/api/drain", right, body: drain).status == 404)
            expectRejection(
                try client.exchange("POST", "/reload", right + [("Sec-Fetch-Site", "cross-site")]), 403, "cross_site")
            #expect(try client.exchange("POST", "/reload", right).status == 200)
        }
    }

    @Test func `commands find it in their option, the configuration or the environment`() throws {
        let folder = try TemporaryFolder()
        let tokenFile = try folder.write(Self.token, to: "token")
        try withAdmin("token_file: \(tokenFile)", folder) { gateway, file in
            let without = try command(["reload"], gateway)
            #expect(without.ending == .exited(69) && without.errorOutput.contains("credential_missing"), "\(without)")
            for options in [["--token-file", tokenFile], ["--config", file]] {
                let done = try command(["reload"] + options, gateway)
                #expect(done.ending == .exited(0) && done.output == "reloaded\n", "\(done)")
            }
            let variable = try run(
                Executable.martlet(), ["reload", "--admin", "http://\(gateway.admin.description)"],
                environment: ["MARTLET_ADMIN_TOKEN_FILE": tokenFile])
            #expect(variable.ending == .exited(0), "\(variable)")
            let missing = try command(["reload", "--token-file", tokenFile + ".no"], gateway)
            #expect(missing.ending == .exited(64), "\(missing)")
            #expect(missing.errorOutput.contains("server.token_unreadable"), "\(missing)")
            let other = try folder.write("another-token-which-is-wrong", to: "other")
            #expect(try command(["reload", "--token-file", other], gateway).ending == .exited(69))
        }
    }

    @Test func `a reload reads it again`() throws {
        let folder = try TemporaryFolder()
        let tokenFile = try folder.write(Self.token, to: "token")
        try withAdmin("token_file: \(tokenFile)", folder) { gateway, _ in
            #expect(try command(["reload", "--token-file", tokenFile], gateway).ending == .exited(0))
            let old = try folder.write(Self.token, to: "old")
            _ = try folder.write("a-new-token-of-sufficient-length-42", to: "token")
            #expect(try command(["reload", "--token-file", old], gateway).ending == .exited(0))
            #expect(try command(["reload", "--token-file", old], gateway).ending == .exited(69))
            #expect(try command(["reload", "--token-file", tokenFile], gateway).ending == .exited(0))
        }
    }

    @Test func `TLS encrypts it, and the commands trust the configured certificate`() throws {
        let folder = try TemporaryFolder()
        let authority = try CertificateAuthority()
        let clients = try CertificateAuthority(name: "clients")
        let certificate = try authority.issue("admin", ["DNS:gw.example.com"])
        let client = try clients.issue("operator", ["DNS:operator"])
        let tokenFile = try folder.write(Self.token, to: "token")
        let admin = """
            token_file: \(tokenFile)
            tls:
              certificate_file: \(certificate.certificateFile)
              key_file: \(certificate.keyFile)
              client_ca_file: \(clients.certificateFile)
              client_auth: optional
            """
        let (key, log) = (folder.file("audit.pem"), folder.file("audit.log"))
        let made = try run(try Executable.martlet(), ["keygen", "audit", "--out", key])
        #expect(made.ending == .exited(0))
        func audit() -> [[String: Any]] {
            let text = (try? String(contentsOfFile: log, encoding: .utf8)) ?? ""
            return text.split(separator: "\n")
                .compactMap { try? JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any] }
                .filter { $0["event"] as? String == "admin_change" }
        }
        let block = "audit: { file: \"\(log)\", key_file: \"\(key)\" }\n"
        try withAdmin(admin, more: block, folder) { gateway, file in
            let url = "https://\(gateway.admin.description)"
            // The name does not match, but the certificate is the configured one.
            let done = try command(["reload", "--config", file], gateway, url: url)
            #expect(done.ending == .exited(0), "\(done)")
            #expect(try command(["health", "--config", file], gateway, url: url).output == "ready\n")
            let stranger = try command(["health"], gateway, url: url)
            #expect(
                stranger.ending == .exited(69) && stranger.errorOutput.contains("server.certificate_untrusted"),
                "\(stranger)")
            func curl(_ options: [String]) throws -> String {
                try run(
                    Executable.named("curl"),
                    ["-sk", "-o", "/dev/null", "-w", "%{http_code}", "-X", "POST", "\(url)/reload"] + options
                ).output
            }
            #expect(try curl([]) == "401")
            #expect(try curl(["-H", "Authorization: Bearer \(Self.token)"]) == "200")
            #expect(try curl(["--cert", client.certificateFile, "--key", client.keyFile]) == "200")
            try waitUntil("the changes are recorded") { audit().count >= 4 }
            #expect(audit().compactMap { $0["credential"] as? String } == ["token", "token", "certificate"])
            #expect(audit().compactMap { $0["certificate"] as? String } == ["operator"])
            // A certificate of another authority ends the handshake.
            #expect(
                try curl(["--cert", certificate.certificateFile, "--key", certificate.keyFile]) == "000")
            #expect(!gateway.everything.contains(Self.token))
        }
    }

    @Test func `changes come over the socket that only the user and the group may open`() throws {
        try withOpenGateway { gateway, _ throws in
            let type = [("Content-Type", "application/json")]
            let body = Array(#"{"level":"debug"}"#.utf8)
            func change(at endpoint: Endpoint, _ fields: [(String, String)] = []) throws -> HTTPMessage {
                try HTTPClient(to: endpoint).exchange("POST", "/log/level", type + fields, body: body)
            }
            guard case .unix(let path) = gateway.operators else { throw TestFailure("no socket") }
            let mode = try run("/usr/bin/stat", ["-c", "%a", path])
            #expect(mode.output == "660\n")
            #expect(try change(at: gateway.operators).status == 200)
            for (method, target) in [("POST", "/log/level"), ("POST", "/reload"), ("DELETE", "/subjects/usr_x")] {
                let refused = try HTTPClient(to: gateway.admin).exchange(method, target, type, body: body)
                expectRejection(refused, 403, "local_only", target)
            }
            for endpoint in [gateway.admin, gateway.operators] {
                let wrong = try HTTPClient(to: endpoint).exchange("GET", "/status", [("Authorization", "Bearer x")])
                expectRejection(wrong, 401, "credential_invalid", "\(endpoint)")
            }
            // The commands find it in the configuration, and nothing else lets them in.
            let file = gateway.folder.file("config.yaml")
            let done = try run(Executable.martlet(), ["log-level", "info", "--config", file])
            #expect(done.ending == .exited(0), "\(done)")
            let outside = try run(Executable.martlet(), ["log-level", "info", "--admin", "http://\(gateway.admin)"])
            #expect(outside.ending == .exited(69) && outside.errorOutput.contains("local_only"), "\(outside)")
            // Others may open it now: who asks is not known any more.
            #expect(unsafe chmod(path, 0o666) == 0)
            expectRejection(try change(at: gateway.operators), 403, "local_only")
            #expect(try HTTPClient(to: gateway.operators).exchange("GET", "/status").status == 200)
            #expect(unsafe chmod(path, 0o660) == 0)
            #expect(try change(at: gateway.operators).status == 200)
        }
    }
}
