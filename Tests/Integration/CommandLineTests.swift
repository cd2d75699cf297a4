import MartletJSON
import MartletTesting
import Testing

/// What is typed at a prompt (section 4).
@Suite struct `Command line` {
    static func martlet(_ arguments: String..., input: String = "") throws -> CommandResult {
        try run(try Executable.martlet(), arguments, input: input)
    }

    static let good = GatewayConfig(endpoints: ["http://127.0.0.1:9"]).text

    /// Runs `check` on a text and returns its output.
    static func check(_ text: String, files: [String: String] = [:]) throws -> CommandResult {
        let folder = try TemporaryFolder()
        for (name, text) in files { try folder.write(text, to: name) }
        return try martlet("check", "--config", try folder.write(text, to: "config.yaml"))
    }

    @Test func `wrong usage is exit 64`() throws {
        let rows = [
            ["fly"], ["run", "--nonsense"], ["check", "--config"], ["explain"], ["check", "extra", "words"],
            ["version", "extra"], ["schema", "extra"], ["--version", "extra"], ["help", "fly"],
            ["check", "--format", "xml"], ["run", "--listen", "here"], ["init", "--config", "-"], ["provider"],
            ["provider", "refresh"],
            [],
        ]
        for arguments in rows {
            let result = try run(try Executable.martlet(), arguments)
            #expect(result.ending == .exited(64), "\(arguments): \(result)")
            #expect(!result.errorOutput.isEmpty && result.output.isEmpty, "\(arguments)")
        }
    }

    @Test func `nothing that is typed comes back where it may be a password`() throws {
        for arguments in [
            ["user", "add", "ada", "hunter2"], ["user", "hunter2", "ada"], ["user", "add", "ada", "--hunter2"],
            ["user", "add", "ada", "--password=hunter2"], ["user", "list", "hunter2"], ["check", "hunter2"],
            ["run", "--password=hunter2"], ["health", "--address", "hunter2"], ["run", "--listen", "hunter2"],
            ["demo", "--listen", "hunter2"], ["explain", "--path", "/", "--header", "hunter2"],
            ["user", "list", "--provider", "hunter2"], ["hunter2 is my password"],
        ] {
            let folder = try TemporaryFolder()
            let path = try folder.write(Self.good, to: "config.yaml")
            let more = ["health", "demo", "hunter2 is my password"].contains(arguments[0]) ? [] : ["--config", path]
            let result = try run(try Executable.martlet(), arguments + more)
            #expect(result.ending != .exited(0) && !result.errorOutput.isEmpty, "\(arguments): \(result)")
            #expect(!result.description.contains("hunter2"), "\(arguments): \(result)")
        }
    }

    @Test func `control bytes of arguments are written out`() throws {
        let bell = "\u{1B}]0;x\u{7}"
        for arguments in [
            [bell], ["check", "--config", bell], ["run", "--config", bell], ["user", "list", "--config", bell],
            ["explain", "--path", "/", "--config", bell], ["health", "--config", bell], ["check", "--\(bell)"],
            ["init", "--config", "/nowhere/\(bell)"], ["help", bell],
        ] {
            let result = try run(try Executable.martlet(), arguments)
            #expect(result.ending != .exited(0) && !result.description.contains("\u{1B}"), "\(arguments): \(result)")
        }
    }

    @Test func `every command has a page of help`() throws {
        let list = try Self.martlet("help")
        let same = try Self.martlet("--help")
        #expect(list.ending == .exited(0) && list.output == same.output)
        let commands = [
            "init", "run", "check", "explain", "demo", "simulate", "user", "account", "session", "events", "schema",
            "health", "version", "help",
        ]
        for command in commands {
            #expect(list.output.contains("\n  \(command) "), "\(command)")
            let page = try Self.martlet(command, "--help")
            #expect(page.ending == .exited(0) && page.output.hasPrefix("usage: martlet \(command)"), "\(page)")
            let asked = try Self.martlet("help", command)
            #expect(page.output == asked.output && page.errorOutput.isEmpty)
        }
        let near = try Self.martlet("chekc")
        #expect(near.ending == .exited(64) && near.errorOutput.contains("did you mean 'check'?"), "\(near)")
    }

    @Test(arguments: ["schema", "version", "help", "check --config {}", "explain --path /x --config {}"])
    func `output that cannot be written is exit 70`(command: String) throws {
        let folder = try TemporaryFolder()
        let path = try folder.write(Self.good, to: "config.yaml")
        let line = "\(try Executable.martlet()) \(command.replacing("{}", with: path)) > /dev/full"
        let result = try run("/bin/sh", ["-c", line])
        #expect(result.ending == .exited(70), "\(result)")
        #expect(result.errorOutput.contains("cannot write to standard output: No space left on device"), "\(result)")
    }

    @Test(arguments: ["check -", "explain --path /x --token - --config {}", "user add ada --config {}"])
    func `a standard input that is closed is an error, and not waited for`(command: String) throws {
        let folder = try TemporaryFolder()
        let path = try folder.write(Self.good, to: "config.yaml")
        let line = "exec \(try Executable.martlet()) \(command.replacing("{}", with: path)) <&-"
        let result = try run("/bin/sh", ["-c", line])
        #expect(result.ending != .exited(0) && !result.errorOutput.isEmpty, "\(result)")
    }

    @Test func `strict refuses warnings`() throws {
        let text = Self.good + "providers: { apple: { kind: apple, audiences: [a] } }\n"
        let folder = try TemporaryFolder()
        let path = try folder.write(text, to: "config.yaml")
        let lenient = try Self.martlet("check", "--config", path)
        #expect(lenient.ending == .exited(0) && lenient.errorOutput.contains(": warning: "), "\(lenient)")
        let strict = try Self.martlet("check", "--strict", "--config", path)
        #expect(strict.ending == .exited(78) && strict.errorOutput.contains("config.unused"), "\(strict)")
        #expect(
            try Self.martlet("check", "--strict", "--config", try folder.write(Self.good, to: "b.yaml")).ending
                == .exited(0))
    }

    @Test func `check names the routes that serve checks of another proxy alone`() throws {
        let text = """
            version: 1
            server: { trusted_proxies: [127.0.0.1/32] }
            routes:
              - { name: one, match: { path: /one }, auth: none }
              - { name: two, match: { path: /two }, auth: none }

            """
        let folder = try TemporaryFolder()
        let result = try Self.martlet("check", "--strict", "--config", try folder.write(text, to: "config.yaml"))
        #expect(result.ending == .exited(0) && result.errorOutput.isEmpty, "\(result)")
        #expect(result.output.hasSuffix(": note: without an upstream, for checks of another proxy alone: one, two\n"))
    }

    @Test func `check as JSON`() throws {
        func document(_ text: String, _ exit: Int32) throws -> JSONObject {
            let folder = try TemporaryFolder()
            let path = try folder.write(text, to: "config.yaml")
            let result = try Self.martlet("check", "--format", "json", "--config", path)
            #expect(result.ending == .exited(exit) && result.errorOutput.isEmpty, "\(result)")
            let limits = JSONLimits(maximumDepth: 8, maximumBytes: 1 << 20)
            return try #require(try JSON.parse(Array(result.output.utf8), limits: limits).object)
        }
        let good = try document(Self.good, 0)
        #expect(good["ok"] == true && good["exit"] == 0 && good["errors"] == 0 && good["routes"] == 1)
        let bad = try document(Self.good + "limmits: {}\n", 78)
        #expect(bad["ok"] == false && bad["exit"] == 78 && bad["errors"] == 1 && bad["routes"] == .null)
        let diagnostic = try #require(bad["diagnostics"]?.array?.first?.object)
        #expect(diagnostic["severity"] == "error" && diagnostic["code"] == "config.unknown_key")
        #expect(diagnostic["file"]?.string?.hasSuffix("/config.yaml") == true && diagnostic["column"] == 1)
        #expect(diagnostic["line"]?.int64 ?? 0 > 1 && diagnostic["message"]?.string?.contains("limmits") == true)
    }

    @Test func `without a configuration the error says how to get one`() throws {
        let result = try Self.martlet("check", "--config", "/nonexistent/config.yaml")
        #expect(result.ending == .exited(78) && result.errorOutput.contains("martlet init"), "\(result)")
    }

    @Test func `version is one line`() throws {
        let result = try Self.martlet("version")
        #expect(result.ending == .exited(0) && result.output.contains("martlet"))
        #expect(result.output.split(separator: "\n").count == 1)
    }

    @Test func `a good configuration passes`() throws {
        let result = try Self.check(Self.good)
        #expect(result.ending == .exited(0), "\(result)")
    }

    @Test func `the example of a preset passes`() throws {
        let path = "\(ExampleProxy.repository)/Examples/Plugins/Google/config.yaml"
        let result = try Self.martlet("check", "--strict", "--config", path)
        #expect(result.ending == .exited(0), "\(result)")
    }

    @Test func `a new plugin is of a kind that the gateway does not have`() throws {
        for (arguments, said) in [
            (["Apple"], "kind apple"), (["APIKey"], "kind api_key"), (["Other", "--kind", "oidc"], "kind oidc"),
            (["GitHub", "--kind", "git-hub"], "lowercase letters"), (["github"], "uppercase letter"),
        ] {
            let result = try run(try Executable.martlet(), ["plugin", "new"] + arguments)
            #expect(result.ending == .exited(64) && result.errorOutput.contains(said), "\(result)")
        }
    }

    @Test func `a file that is not there is exit 78`() throws {
        let result = try Self.martlet("check", "--config", "/nonexistent/config.yaml")
        #expect(result.ending == .exited(78) && result.errorOutput.contains("/nonexistent/config.yaml"), "\(result)")
        #expect(try Self.martlet("run", "--config", "/nonexistent/config.yaml").ending == .exited(78))
    }

    static let invalid: [(String, String, String)] = [
        ("unknown key", "limmits: {}\n", "unknown_key"),
        ("a key twice", "version: 1\n", "duplicate_key"),
        ("not YAML", "a: [\n", "config."),
        ("tab", "\tb: 1\n", "config."),
    ]

    @Test func `an error is reported with its position and its code`() throws {
        for (what, text, code) in Self.invalid {
            let line = Self.good.split(separator: "\n", omittingEmptySubsequences: false).count
            let result = try Self.check(Self.good + text)
            #expect(result.ending == .exited(78), "\(what): \(result)")
            let said = result.output + result.errorOutput
            #expect(
                said.contains("config.yaml:") && said.contains("error: ") && said.contains(code), "\(what): \(said)")
            if code != "config." { #expect(said.contains("config.yaml:\(line):1: error:"), "\(what): \(said)") }
        }
    }

    @Test func `all errors are reported together, with what was probably meant`() throws {
        let text = """
            version: 1
            server:
              listen:
                - address: 127.0.0.1:0
              timeout: { idle: 1s }
            upstreams:
              api:
                endpoints: [http://127.0.0.1:9]
                timeouts: { conect: 1s }
            routes:
              - { name: a, match: { path: /a }, auth: none, upstream: appi }
              - { name: b, match: { path: /b }, auth: { providers: [appel] }, upstream: api }
            """
        let result = try Self.check(text + "\n")
        let said = result.output + result.errorOutput
        #expect(result.ending == .exited(78), "\(result)")
        for part in [
            "'timeout'", "'timeouts'", "'conect'", "'connect'", "appi", "appel", ":5:3: error:", ":9:17: error:",
        ] {
            #expect(said.contains(part), "\(part) in \(said)")
        }
        #expect(said.split(separator: "\n").filter { $0.contains(": error: ") }.count >= 4, "\(said)")
    }

    static let insecure: [(String, String)] = [
        ("no audiences", "apple:\n  kind: apple\n"),
        ("empty audiences", "apple:\n  kind: apple\n  audiences: []\n"),
        ("keys over clear text", "apple:\n  kind: apple\n  audiences: [a]\n  jwks_url: http://keys.example.com/\n"),
        ("an algorithm that is none", "apple:\n  kind: apple\n  audiences: [a]\n  algorithms: [none]\n"),
        ("a shared-secret algorithm", "apple:\n  kind: apple\n  audiences: [a]\n  algorithms: [HS256]\n"),
        ("an unknown kind", "apple:\n  kind: pear\n"),
        ("a negative leeway", "apple:\n  kind: apple\n  audiences: [a]\n  leeway: -5s\n"),
        ("no kind", "apple:\n  audiences: [a]\n"),
    ]

    @Test func `a provider that could not prove anything is refused`() throws {
        for (what, provider) in Self.insecure {
            let result = try Self.check(GatewayConfig(endpoints: ["http://127.0.0.1:9"], providers: provider).text)
            #expect(result.ending == .exited(78), "\(what): \(result)")
        }
    }

    @Test func `schema is a JSON Schema that names the blocks`() throws {
        let result = try Self.martlet("schema")
        #expect(result.ending == .exited(0))
        for part in ["$schema", "\"server\"", "\"upstreams\"", "\"routes\"", "\"providers\""] {
            #expect(result.output.contains(part), "\(part)")
        }
    }

    @Test func `explain tells the route, each check and the headers`() throws {
        let apple = try AppleFixture()
        let folder = try TemporaryFolder()
        let config = GatewayConfig(
            endpoints: ["http://127.0.0.1:9"], providers: apple.provider(), routes: GatewayConfig.closed)
        let path = try folder.write(config.text, to: "config.yaml")
        let token = try folder.write(try apple.token(), to: "token")
        let good = try Self.martlet("explain", "--config", path, "--path", "/v1", "--token", token)
        #expect(good.ending == .exited(0), "\(good)")
        for part in ["closed", "apple", "X-Auth-Subject", `Identity headers`.subject] {
            #expect(good.output.contains(part), "\(part) in \(good.output)")
        }
        #expect(!good.output.contains(try apple.token()))
        let bad = try folder.write(try apple.token { $0.claims["aud"] = "\"other\"" }, to: "bad")
        let refused = try Self.martlet("explain", "--config", path, "--path", "/v1", "--token", bad)
        #expect(refused.ending == .exited(1) && refused.output.contains("audience"), "\(refused)")
        let open = try Self.martlet(
            "explain", "--config", path, "--path", "/public/a", "--method", "POST", "--host", "a.test")
        #expect(open.ending == .exited(0) && open.output.contains("public"), "\(open)")
    }

    @Test func `health asks a running gateway`() throws {
        let upstream = try ScriptedUpstream()
        try withMartlet(GatewayConfig(endpoints: [upstream.url]).text) { gateway throws in
            var config = GatewayConfig(endpoints: [upstream.url])
            config.admin = "address: \(gateway.admin)"
            let path = try gateway.folder.write(config.text, to: "health.yaml")
            let result = try Self.martlet("health", "--config", path)
            #expect(result.ending == .exited(0), "\(result)")
            config.admin = "address: 127.0.0.1:\(try refusedPort())"
            let gone = try gateway.folder.write(config.text, to: "gone.yaml")
            #expect(try Self.martlet("health", "--config", gone).ending == .exited(69))
        }
    }

    @Test func `variables stand for values, a missing one is reported`() throws {
        let text = Self.good.replacing("127.0.0.1:9\"", with: "127.0.0.1:${MARTLET_TEST_PORT}\"")
        let folder = try TemporaryFolder()
        let path = try folder.write(text, to: "config.yaml")
        let arguments = ["check", "--config", path]
        #expect(
            try run(try Executable.martlet(), arguments, environment: ["MARTLET_TEST_PORT": "9"]).ending == .exited(0))
        let result = try run(try Executable.martlet(), arguments)
        #expect(result.ending == .exited(78) && result.errorOutput.contains("MARTLET_TEST_PORT"), "\(result)")
        let fallback = try folder.write(text.replacing("PORT}", with: "PORT:-9}"), to: "fallback.yaml")
        #expect(try run(try Executable.martlet(), ["check", "--config", fallback]).ending == .exited(0))
    }

    @Test func `aliases that multiply are stopped`() throws {
        var bomb = "x0: &x0 [a, a, a, a, a, a, a, a, a, a]\n"
        for level in 1...12 {
            let uses = Array(repeating: "*x\(level - 1)", count: 10).joined(separator: ", ")
            bomb += "x\(level): &x\(level) [\(uses)]\n"
        }
        #expect(try Self.check(bomb + Self.good).ending == .exited(78))
        #expect(try Self.check(String(repeating: "[", count: 100_000)).ending == .exited(78))
    }
}
