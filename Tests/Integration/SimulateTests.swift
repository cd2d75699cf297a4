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

    @Test func `Apple`() throws {
        let simulator = try RunningSimulator("apple", "--listen", "127.0.0.1:0")
        try Self.withGateway(simulator) { gateway in
            let lines = simulator.page.split(separator: "\n")
            let order = try #require(lines.first { $0.contains("/simulator/token'") })
            let token = String(
                try #require(try Self.curl(order).firstMatch(of: #/"identity_token":"([^"]+)"/#)?.output.1))
            #expect(try gateway.get("/x", bearer(token)).status == 200)
            let body = Array(#"{"identity_token":"\#(token)"}"#.utf8)
            let type = [("Content-Type", "application/json")]
            #expect(try gateway.exchange("POST", "/auth/login/apple", type, body: body).status == 200)
            for line in lines where line.hasPrefix("curl ") && !line.contains("TOKEN") && !line.contains(" -o ") {
                #expect(try !Self.curl(line).contains("\"status\":4"), "\(line)")
            }
        }
        try simulator.stop()
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
