import MartletTesting
import Testing

/// Commands that ask a running gateway, when something is wrong.
@Suite struct `Admin commands` {
    private func command(_ arguments: [String], environment: [String: String] = [:]) throws -> CommandResult {
        try run(Executable.martlet(), arguments, environment: environment)
    }

    /// A configuration whose admin block is that of a gateway, with more lines.
    private func file(_ gateway: Gateway, _ more: String, _ folder: TemporaryFolder) throws -> String {
        var config = GatewayConfig(endpoints: ["http://127.0.0.1:9"])
        config.admin = "address: \(gateway.admin)\nsocket: \(gateway.operators)"
        return try folder.write(config.text + more, to: "broken.yaml")
    }

    @Test func `need the admin block of a configuration with errors, and nothing else of it`() throws {
        try withOpenGateway { gateway, _ throws in
            let folder = try TemporaryFolder()
            for more in ["limmits: {}\n", "store: { url: \"memory:\", seal: { key_file: /nowhere/key } }\n"] {
                let path = try file(gateway, more, folder)
                #expect(try command(["check", path]).ending == .exited(78))
                for arguments in [["health"], ["status"], ["upstream", "list"], ["log-level", "info"]] {
                    let result = try command(arguments + ["--config", path])
                    #expect(result.ending == .exited(0), "\(arguments): \(result)")
                    #expect(
                        result.errorOutput
                            == "warning: \(path) has errors, which 'martlet check' shows; only admin: is used\n")
                }
                #expect(try command(["health"], environment: ["MARTLET_CONFIG": path]).output == "ready\n")
            }
            for (admin, reason) in [("adress: 127.0.0.1:1", "adress"), ("token_file: /nowhere/t", "/nowhere/t")] {
                var config = GatewayConfig(endpoints: ["http://127.0.0.1:9"])
                config.admin = admin
                let result = try command(["health", "--config", folder.write(config.text, to: "bad.yaml")])
                #expect(result.ending == .exited(78) && result.errorOutput.contains(reason), "\(result)")
            }
            let missing = try command(["health", "--config", "/nowhere/config.yaml"])
            #expect(missing.ending == .exited(78) && missing.errorOutput.contains("martlet init"), "\(missing)")
        }
    }

    @Test func `print the document of a reload`() throws {
        let upstream = try ScriptedUpstream()
        try withMartlet(GatewayConfig(endpoints: [upstream.url]).text) { gateway throws in
            let admin = ["--admin", "\(gateway.operators)"]
            let done = try command(["reload", "--json"] + admin)
            #expect(done.ending == .exited(0) && done.errorOutput.isEmpty, "\(done)")
            #expect(done.output.hasPrefix(#"{"status":"reloaded""#), "\(done)")
            _ = try gateway.folder.write("version: 1\nlimmits: {}\n", to: "config.yaml")
            let refused = try command(["reload", "--json"] + admin)
            #expect(refused.ending == .exited(78) && refused.errorOutput.isEmpty, "\(refused)")
            #expect(refused.output.contains(#""code":"configuration_refused""#), "\(refused)")
            #expect(refused.output.contains("limmits"), "\(refused)")
            let other = try command(["reload", "--json", "--admin", "http://\(upstream.endpoint)"])
            #expect(other.ending == .exited(69) && other.output.isEmpty && !other.errorOutput.isEmpty, "\(other)")
        }
    }

    @Test(arguments: ["<html>hello</html>", #"{"status":"ok"}"#])
    func `take what is no gateway's response for none`(body: String) throws {
        let other = try ScriptedUpstream { try $0.respond(200, body: body) }
        for arguments in [
            ["status"], ["upstream", "list"], ["upstream", "drain", "api", "http://127.0.0.1:1"], ["provider", "list"],
            ["provider", "refresh", "apple"],
            ["log-level", "info"], ["account", "show", "usr_a"], ["account", "disable", "usr_a"],
            ["account", "delete", "usr_a"], ["account", "set", "usr_a", "a=b"], ["session", "end", "--id", "ses_a"],
            ["session", "list", "--subject", "usr_a"], ["subject", "usr_a"], ["sessions", "usr_a"],
        ] {
            let result = try command(arguments + ["--admin", "http://\(other.endpoint)"])
            #expect(result.ending == .exited(69) && result.output.isEmpty, "\(arguments): \(result)")
        }
    }

    @Test func `send no file that is no token`() throws {
        let other = try ScriptedUpstream()
        let folder = try TemporaryFolder()
        let file = try folder.write("abc\r\nX-Evil: 1\r\nmore", to: "token")
        let result = try command(["status", "--admin", "http://\(other.endpoint)", "--token-file", file])
        #expect(result.ending == .exited(64) && result.errorOutput.contains("is no token"), "\(result)")
        #expect(other.requests.isEmpty)
    }

    @Test(arguments: ["x", "0s", "", "8d", "169h", "-1m"]) func `reject a span that is none`(span: String) throws {
        let result = try command(["log-level", "info", "--for", span, "--admin", "http://127.0.0.1:9"])
        #expect(result.ending == .exited(64), "\(result)")
        let message = "martlet log-level: --for must be a duration of 1s to 168h, such as 10m\n"
        #expect(result.errorOutput.hasPrefix(message), "\(result)")
    }

    @Test func `say that the listener requires a certificate`() throws {
        let folder = try TemporaryFolder()
        let upstream = try ScriptedUpstream()
        let (authority, clients) = (try CertificateAuthority(), try CertificateAuthority(name: "clients"))
        let certificate = try authority.issue("admin", ["IP:127.0.0.1"])
        var config = GatewayConfig(endpoints: [upstream.url])
        config.admin = """
            address: 127.0.0.1:0
            tls:
              certificate_file: \(certificate.certificateFile)
              key_file: \(certificate.keyFile)
              client_ca_file: \(clients.certificateFile)
              client_auth: required
            """
        let path = try folder.write(config.text, to: "config.yaml")
        let check = try command(["check", path])
        #expect(check.ending == .exited(0) && check.errorOutput.contains("[config.admin_unreachable]"), "\(check)")
        try withMartlet(config.text) { gateway throws in
            let result = try command(["status", "--config", path, "--admin", "https://\(gateway.admin)"])
            #expect(result.ending == .exited(69), "\(result)")
            #expect(result.errorOutput.contains("admin.tls.client_auth is required"), "\(result)")
            #expect(result.errorOutput.contains("[server.handshake_failed]"), "\(result)")
        }
    }

    @Test func `follow a subject by its name, however it is logged`() throws {
        for form in ["full", "hash"] {
            let apple = try AppleFixture()
            let upstream = try ScriptedUpstream()
            let config = GatewayConfig(
                endpoints: [upstream.url], providers: apple.provider(), routes: GatewayConfig.closed)
            let key = form == "hash" ? ", subject_key: 0123456789abcdef0123456789abcdef" : ""
            let text = config.text
                .replacing("log: { level: debug, format: json }", with: "log: { subject: \(form), format: json\(key) }")
            try withMartlet(text) { gateway throws in
                let (folder, token) = (try TemporaryFolder(), try apple.token(subject: "we/ird %x"))
                let reader = try ChildProcess(
                    Executable.martlet(),
                    ["tail", "--json", "--subject", "apple:we/ird %x", "--admin", "http://\(gateway.admin)"],
                    output: folder)
                try waitUntil("the request is shown, with log.subject: \(form)") { () throws in
                    _ = try gateway.get("/public/other")
                    let status = try gateway.get("/mine", bearer(token)).status
                    #expect(status == 200)

                    return reader.output.contains("/mine")
                }
                #expect(!reader.output.contains("/public/other"), "\(reader.output)")
                try gateway.stop()
                _ = try reader.wait()
            }
        }
    }
}
