import Foundation
import MartletTesting
import Testing

/// `martlet simulate` and `martlet init`: what a user needs to try a configuration.
@Suite(.timeLimit(.minutes(2))) struct `Simulators by themselves` {
    /// A gateway whose `providers:` are the lines that the simulator prints.
    private static func withGateway(
        _ simulator: RunningSimulator, files: [String: String] = [:], _ body: (Gateway) throws -> Void
    ) throws {
        let lines = simulator.page.split(separator: "\n", omittingEmptySubsequences: false)
        let start = try #require(lines.firstIndex(of: "providers:"))
        let block = lines[lines.index(after: start)...].prefix { $0.hasPrefix("  ") }.map { $0.dropFirst(2) }
        let config = GatewayConfig(
            endpoints: ["builtin:echo"], providers: block.joined(separator: "\n"),
            routes: "- { name: all, match: { path: /** }, upstream: api }")
        let folder = try TemporaryFolder()
        for (name, text) in files { try folder.write(text, to: name) }
        let gateway = try Gateway(config.text, in: folder)
        try body(gateway)
        try gateway.stop()
    }

    /// Runs a printed curl line.
    private static func curl(_ line: some StringProtocol) throws -> String {
        let result = try run("/bin/bash", ["-c", String(line)])
        guard result.ending == .exited(0) else { throw TestFailure("\(line): \(result)") }
        return result.output
    }

    @Test func `WeChat, with an application of each variant`() throws {
        let simulator = try RunningSimulator("wechat")
        try Self.withGateway(simulator) { gateway in
            let lines = simulator.page.split(separator: "\n").map(String.init)
            let orders = lines.filter { $0.contains("/simulator/code") }
            let logins = lines.filter { $0.contains("/auth/login/wechat") }
            #expect(orders.count == 4 && logins.count == 4)
            for (order, login) in zip(orders, logins) {
                let code = try #require(try Self.curl(order).firstMatch(of: #/"code":"([^"]+)"/#)?.output.1)
                let response = try Self.curl(
                    login.replacing("CODE", with: code).replacing("127.0.0.1:8080", with: "\(gateway.endpoint)"))
                #expect(response.hasPrefix("HTTP/1.1 200 ") && response.contains("mat_"), "\(login): \(response)")
            }
            for line in lines where line.hasPrefix("curl ") && !line.contains("CODE") { _ = try Self.curl(line) }
        }
        try simulator.stop()
    }

    @Test func `WeChat, with applications of one's own, whose secrets are not printed`() throws {
        let simulator = try RunningSimulator(
            "wechat", "--app", "wx00000000000000AA:s:e:cret1:mobile", "--app=wx00000000000000bb:secret-2:mini_program")
        #expect(!simulator.page.contains("cret1") && !simulator.page.contains("secret-2"))
        let files = ["ios.secret": "s:e:cret1\n", "mini2.secret": "secret-2"]
        try Self.withGateway(simulator, files: files) { gateway in
            let order = try #require(
                simulator.page.split(separator: "\n").first { $0.contains("00AA") && $0.contains("curl") })
            let code = try #require(try Self.curl(order).firstMatch(of: #/"code":"([^"]+)"/#)?.output.1)
            let type = [("Content-Type", "application/x-www-form-urlencoded")]
            let body = Array("app=ios&code=\(code)".utf8)
            #expect(try gateway.exchange("POST", "/auth/login/wechat", type, body: body).status == 200)
        }
        try simulator.stop(2)
    }

    /// The configuration that the simulated Apple prints, and the commands that make its files.
    private static func printed(_ simulator: RunningSimulator) throws -> (configuration: String, files: [String]) {
        let lines = simulator.page.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        let start = try #require(lines.firstIndex(of: "version: 1"))
        let comment = try #require(lines.firstIndex { $0.hasPrefix("# The files that it names") })
        return (
            lines[start...].prefix { !$0.isEmpty }.map { $0 + "\n" }.joined(),
            Array(lines[comment...].dropFirst().prefix { !$0.isEmpty })
        )
    }

    /// Makes the files of a printed configuration with the printed commands, in a folder.
    private static func type(_ commands: [String], in folder: TemporaryFolder) throws {
        let martlet = try Executable.martlet()
        for command in commands {
            _ = try curl("cd '\(folder.file("."))' && martlet() { '\(martlet)' \"$@\"; } && \(command)")
        }
    }

    @Test func `Apple`() throws {
        let simulator = try RunningSimulator("apple", "--listen", "127.0.0.1:0")
        let (configuration, files) = try Self.printed(simulator)
        let folder = try TemporaryFolder()
        let path = try folder.write(configuration, to: "config.yaml")
        let early = try run(try Executable.martlet(), ["check", "--config", path])
        #expect(early.ending == .exited(78) && early.errorOutput.contains("account.key"), "\(early)")
        try Self.type(files, in: folder)
        let checked = try run(try Executable.martlet(), ["check", "--online", "--config", path])
        #expect(checked.ending == .exited(0), "\(checked)")
        let elsewhere =
            configuration + "server: { listen: [{ address: 127.0.0.1:0 }] }\nadmin: { address: 127.0.0.1:0 }\n"
        let gateway = try Gateway(elsewhere, in: folder)
        let lines = simulator.page.split(separator: "\n")
        func token(_ order: Substring) throws -> (token: String, code: String?) {
            let output = try Self.curl(order)
            let token = try #require(output.firstMatch(of: #/"identity_token":"([^"]+)"/#)?.output.1)
            return (
                String(token), output.firstMatch(of: #/"authorization_code":"([^"]+)"/#).map { String($0.output.1) }
            )
        }
        let orders = lines.filter { $0.contains("/simulator/token'") }
        let logins = lines.filter { $0.contains("/auth/login/apple'") }
        try #require(orders.count == 2 && logins.count == 2)
        let plain = try token(orders[0])
        #expect(try gateway.get("/x", bearer(plain.token)).status == 200)
        let withCode = try token(orders[1])
        for (login, proof) in zip(logins, [plain, withCode]) {
            let line = login.replacing("TOKEN", with: proof.token).replacing("CODE", with: proof.code ?? "")
            let response = try Self.curl(line.replacing("127.0.0.1:8080", with: "\(gateway.endpoint)"))
            #expect(response.hasPrefix("HTTP/1.1 200 "), "\(login): \(response)")
        }
        #expect(try Self.curl("curl -s '\(simulator.url)/simulator/requests'").contains("/auth/token"))
        for line in lines where line.hasPrefix("curl ") && !line.contains("TOKEN") && !line.contains(" -o ") {
            // The list of calls has the made-up code, by which the gateway learns whether its key is Apple's.
            if line.contains("/simulator/requests") { continue }
            let line = line.replacing("127.0.0.1:8080", with: "\(gateway.endpoint)")
            #expect(try !Self.curl(line).contains("\"status\":4"), "\(line)")
        }
        try gateway.stop()
        try simulator.stop()
    }

    @Test func `Apple, with keys of one's own`() throws {
        let folder = try TemporaryFolder()
        let keys = try ["AAAAAAAAA1", "AAAAAAAAA2"].map { id in
            let path = folder.file("\(id) \"key\".p8")
            let made = try run(
                "/usr/bin/openssl",
                ["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", path])
            #expect(made.ending == .exited(0), "\(made)")
            return "\(id)=\(path)"
        }
        for count in 1...2 {
            let options = ["apple", "--team", "TEAM000001"] + keys.prefix(count).flatMap { ["--key", $0] }
            let simulator = try RunningSimulator(options)
            let (configuration, files) = try Self.printed(simulator)
            #expect(!simulator.page.contains("private-key"))
            let path = try folder.write(configuration, to: "config.yaml")
            try Self.type(files, in: folder)
            let checked = try run(try Executable.martlet(), ["check", "--online", "--config", path])
            #expect(checked.ending == .exited(0), "\(count): \(configuration) \(checked)")
            try simulator.stop()
        }
    }

    @Test func `wrong usage, and an address that is taken`() throws {
        for arguments in [
            [], ["google"], ["apple", "--app", "wx00000000000000aa:s:mobile"],
            ["wechat", "--app", "wx1:hunter2:mobile"],
            ["wechat", "--app", "wx00000000000000aa:hunter2:android"],
            ["wechat", "--app", "wx00000000000000aa::mobile"],
            ["wechat", "--app", "hunter2"], ["wechat", "--listen", "hunter2"], ["wechat", "--listen", "unix:/tmp/x"],
            ["wechat", "hunter2"], ["wechat", "--hunter2"],
            ["wechat", "--app", "wx00000000000000aa:hunter2:mobile", "--app", "wx00000000000000AA:hunter2:mobile"],
        ] {
            let result = try run(try Executable.martlet(), ["simulate"] + arguments)
            #expect(result.ending == .exited(64) && !result.description.contains("hunter2"), "\(arguments): \(result)")
        }
        let taken = try ScriptedUpstream()
        let address = String(taken.url.dropFirst("http://".count))
        #expect(try run(try Executable.martlet(), ["simulate", "apple", "--listen", address]).ending == .exited(69))
    }

    @Test func `init writes a configuration that passes the strict check, and never over another file`() throws {
        let folder = try TemporaryFolder()
        let (martlet, path) = (try Executable.martlet(), folder.file("config.yaml"))
        let written = try run(martlet, ["init", "--config", path])
        #expect(written.ending == .exited(0) && written.output.contains("martlet run --config \(path)"), "\(written)")
        let text = try String(contentsOfFile: path, encoding: .utf8)
        #expect(text.hasPrefix("# yaml-language-server: $schema="))
        let checked = try run(martlet, ["check", "--strict", "--online", "--config", path])
        #expect(checked.ending == .exited(0) && checked.errorOutput.isEmpty, "\(checked)")
        let again = try run(martlet, ["init", "--config", path])
        #expect(again.ending == .exited(78) && again.errorOutput.contains("the file exists"), "\(again)")
        #expect(try String(contentsOfFile: path, encoding: .utf8) == text)
        let nowhere = try run(martlet, ["init", "--config", folder.file("no/such/config.yaml")])
        #expect(nowhere.ending == .exited(78), "\(nowhere)")
        let elsewhere = text.replacing("127.0.0.1:8080\n", with: "127.0.0.1:0\n")
            .replacing("127.0.0.1:9901", with: "127.0.0.1:0")
        try withMartlet(elsewhere) { gateway in
            #expect(try gateway.get("/public/hello").status == 200)
            expectUnauthorized(try gateway.get("/v1/orders"), "credential_missing")
        }
    }
}
