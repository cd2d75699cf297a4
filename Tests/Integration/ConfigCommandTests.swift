import Foundation
import MartletTesting
import Testing

/// `martlet config`, and where commands find their configuration.
@Suite struct `Configuration commands` {
    private static let good = GatewayConfig(endpoints: ["http://127.0.0.1:9"]).text

    private func martlet(
        _ arguments: [String], in folder: TemporaryFolder, _ environment: [String: String] = [:], input: String = ""
    ) throws -> CommandResult {
        let words = ([try Executable.martlet()] + arguments).map { "'\($0)'" }.joined(separator: " ")
        return try run(
            "/bin/sh", ["-c", "cd '\(folder.path)' && exec \(words)"], environment: environment, input: input)
    }

    @Test func `show prints a configuration that means the same, without secrets`() throws {
        let folder = try TemporaryFolder()
        let starter = try martlet(["init", "--config", "config.yaml"], in: folder)
        #expect(starter.ending == .exited(0), "\(starter)")
        let shown = try martlet(["config", "show"], in: folder)
        #expect(shown.ending == .exited(0) && shown.errorOutput.isEmpty, "\(shown)")
        #expect(shown.output.contains("connections: 10000") && shown.output.contains("It has no secrets."), "\(shown)")
        _ = try folder.write(shown.output, to: "effective.yaml")
        let checked = try martlet(["check", "--strict", "--config", "effective.yaml"], in: folder)
        #expect(checked.ending == .exited(0), "\(checked)")
        let again = try martlet(["config", "show", "--config", "effective.yaml"], in: folder)
        let body = { (text: String) in text.split(separator: "\n").filter { !$0.hasPrefix("#") } }
        #expect(body(again.output) == body(shown.output))
        _ = try folder.write("hunter2-hunter2-hunter2\n", to: "subject.key")
        let plain = Self.good.replacing("log: { level: debug, format: json }\n", with: "")
        let secret = plain + "log: { subject: hash, subject_key: \"${KEY}\" }\ninstance_id: \"${NAME}\"\n"
        _ = try folder.write(secret, to: "secret.yaml")
        let environment = ["KEY": "hunter2-hunter2-hunter2", "NAME": "hunter2"]
        for options in [[], ["--json"]] {
            let result = try martlet(
                ["config", "show", "--config", "secret.yaml"] + options, in: folder, environment)
            #expect(result.ending == .exited(0) && !result.description.contains("hunter2"), "\(result)")
            #expect(result.output.contains("REDACTED") && result.output.contains("${NAME}"), "\(result)")
        }
    }

    @Test func `commands find the configuration in the environment, and on standard input`() throws {
        let folder = try TemporaryFolder()
        _ = try folder.write(Self.good, to: "other.yaml")
        let named = try martlet(["check"], in: folder, ["MARTLET_CONFIG": "other.yaml"])
        #expect(named.ending == .exited(0) && named.output == "other.yaml: ok, 1 route\n", "\(named)")
        let option = try martlet(["check", "--config", "none.yaml"], in: folder, ["MARTLET_CONFIG": "other.yaml"])
        #expect(option.ending == .exited(78), "\(option)")
        let piped = try martlet(["check", "--config", "-"], in: folder, input: Self.good)
        #expect(piped.ending == .exited(0) && piped.output == "<stdin>: ok, 1 route\n", "\(piped)")
        let bad = try martlet(["check", "--config", "-"], in: folder, input: Self.good + "limmits: {}\n")
        #expect(bad.ending == .exited(78) && bad.errorOutput.hasPrefix("<stdin>:"), "\(bad)")
        let run = try martlet(["run", "--config", "-"], in: folder, input: Self.good)
        #expect(run.ending == .exited(64) && run.errorOutput.contains("must be a file"), "\(run)")
    }

    @Test func `errors say what was probably meant`() throws {
        let folder = try TemporaryFolder()
        let rows: [(String, String)] = [
            ("server: { listen: [{ address: \":8080\" }] }", "did you mean '0.0.0.0:8080'"),
            ("server: { listen: [{ address: \"localhost:81\" }] }", "did you mean '127.0.0.1:81'"),
            ("server: { timeouts: { idle: 30 } }", "did you mean '30s'"),
            ("log: { level: warn }", "did you mean 'warning'"),
            ("timeouts: { idle: 3s }", "it belongs in server, store or upstreams.*"),
            ("cors: {}", "it belongs in sessions or routes[]"),
            ("providers: { a: { kind: saml } }", "the kinds are api_key, apple"),
        ]
        for (line, hint) in rows {
            _ = try folder.write("version: 1\n\(line)\n" + Self.tail, to: "config.yaml")
            let result = try martlet(["check"], in: folder)
            #expect(result.ending == .exited(78) && result.errorOutput.contains(hint), "\(line): \(result)")
        }
        let path = Self.tail.replacing("/**", with: "/公开/**")
        _ = try folder.write("version: 1\n" + path, to: "config.yaml")
        #expect(try martlet(["check"], in: folder).errorOutput.contains("'/%E5%85%AC%E5%BC%80/**'"))
        _ = try folder.write(
            "version: 1\n" + Self.tail.replacing("match: { path: /** }", with: "path: /**"), to: "config.yaml")
        #expect(
            try martlet(["check"], in: folder).errorOutput.contains(
                "unknown key 'path' in route 'all' (it belongs in match)"))
    }

    private static let tail = """
        upstreams: { api: { endpoints: ["http://127.0.0.1:9"] } }
        routes: [{ name: all, match: { path: /** }, auth: none, upstream: api }]

        """

    @Test func `a terminal gets colors, the line of an error and the addresses of a start`() throws {
        let folder = try TemporaryFolder()
        let path = try folder.write("version: 1\nlimmits: {}\n" + Self.tail, to: "config.yaml")
        let martlet = try Executable.martlet()
        let colored = try Terminal.run(
            "/usr/bin/env", ["-u", "NO_COLOR", "TERM=xterm", martlet, "check", "--config", path], typing: [])
        #expect(colored.output.contains("\u{1B}[1;31merror:\u{1B}[0m"), "\(colored)")
        let plain = try Terminal.run(
            "/usr/bin/env", ["NO_COLOR=1", "TERM=xterm", martlet, "check", "--config", path], typing: [])
        #expect(!plain.output.contains("\u{1B}"), "\(plain)")
        #expect(plain.output.contains("\r\n  limmits: {}\r\n  ^\r\n"), "\(plain)")
        let good = try folder.write(
            "server: { listen: [{ address: 127.0.0.1:0 }] }\nadmin: { address: 127.0.0.1:0 }\n"
                + "version: 1\n" + Self.tail, to: "good.yaml")
        let banner = try Terminal.run(
            "/usr/bin/timeout", ["--foreground", "2", "/usr/bin/env", "NO_COLOR=1", martlet, "run", "--config", good],
            typing: [])
        for part in [
            "\r\n  listening  http://127.0.0.1:", "\r\n  dashboard  http://127.0.0.1:", "routes     1: all", "stopped",
        ] {
            #expect(banner.output.contains(part), "\(part) in \(banner)")
        }
    }

    @Test func `a path of one segment is pointed out, unless the one below is there too`() throws {
        let folder = try TemporaryFolder()
        let narrow = Self.tail.replacing("/**", with: "/v1/*")
        _ = try folder.write("version: 1\n" + narrow, to: "config.yaml")
        let result = try martlet(["check", "--strict"], in: folder)
        #expect(result.ending == .exited(0), "\(result)")
        #expect(
            result.output.hasSuffix("note: route 'all': /v1/* is one segment; /v1/** is everything below\n"),
            "\(result)")
        _ = try folder.write("version: 1\n" + Self.tail, to: "config.yaml")
        #expect(try !martlet(["check"], in: folder).output.contains("note"))
    }

    @Test func `a byte order mark is accepted`() throws {
        let folder = try TemporaryFolder()
        _ = try folder.write("\u{FEFF}version: 1\n" + Self.tail, to: "config.yaml")
        #expect(try martlet(["check", "--strict"], in: folder).ending == .exited(0))
    }
}
