import Testing

@testable import MartletCommands

/// A command without subcommands.
private func command(_ options: [CommandOption] = [], words: Int = 0, isSilent: Bool = false) -> CommandGrammar {
    CommandGrammar("test", "Test") { grammar in
        grammar.options = options
        grammar.isSilent = isSilent
        guard words > 0 else { return }
        grammar.arguments = [
            CommandArgument(placeholder: "WORD", kind: .text, summary: "words", minimumCount: 0, maximumCount: words)
        ]
    }
}

private func values(_ names: String...) -> [CommandOption] { names.map { .value($0, "X", .text, "a value") } }

private let online = CommandOption.flag("online", "a flag")

@Suite struct `Options of commands` {
    @Test func `values follow a space or an equals sign`() throws {
        let options = try Options(
            ["--config", "a.yaml", "--listen=127.0.0.1:0", "--online"], command(values("config", "listen") + [online]))
        #expect(options["config"] == "a.yaml" && options["listen"] == "127.0.0.1:0" && options.has("online"))
        let odd = try Options(["--config=a=b", "--listen", "--x"], command(values("config", "listen")))
        #expect(odd["config"] == "a=b" && odd["listen"] == "--x" && odd["other"] == nil && !odd.has("online"))
        #expect(try Options(["--config="], command(values("config")))["config"] == "")
    }

    @Test func `words are allowed between options, and after two hyphens whatever they look like`() throws {
        let options = try Options(["add", "--config", "a", "ann"], command(values("config"), words: 2))
        #expect(options.words == ["add", "ann"] && options["config"] == "a")
        let odd = try Options(["add", "--", "--config"], command(values("config"), words: 2))
        #expect(odd.words == ["add", "--config"] && odd["config"] == nil)
        #expect(throws: Options.UsageError.self) { try Options(["a", "b", "c"], command(words: 2)) }
        #expect(throws: Options.UsageError.self) { try Options(["a", "--", "--", "c"], command(words: 2)) }
    }

    static let invalid: [([String], String)] = [
        (["file.yaml"], "unexpected argument (number 1)"),
        (["-c", "x"], "unexpected argument (number 1); options begin with two hyphens"),
        (["--config"], "--config requires a value"),
        (["--confg", "x"], "unknown option '--confg' (did you mean '--config'?)"),
        (["--config", "a", "--config", "b"], "--config is given more than once"),
        (["--online=yes"], "--online takes no value"), (["--secret=hunter2"], "unknown option '--secret'"),
        (["--online", "--e\u{1B}[2J"], "unknown option (argument 2)"),
        (["--"], "unknown option (argument 1)"), (["--=x"], "unknown option (argument 1)"),
    ]

    @Test(arguments: invalid) func `anything else is rejected with a reason`(arguments: [String], message: String) {
        do {
            _ = try Options(arguments, command(values("config") + [online]))
            Issue.record("\(arguments) were accepted")
        } catch {
            #expect(error.message == message && error.helpTopic == nil)
        }
    }

    @Test func `repeatable options have all their values`() throws {
        let options = try Options(
            ["--header", "A: 1", "--header=B: 2"], command([.value("header", "LINE", .text, "a line").repeatable]))
        #expect(options.all("header") == ["A: 1", "B: 2"] && options.all("other").isEmpty)
    }

    @Test func `errors of a command whose arguments may be passwords do not contain them`() {
        for arguments in [["a", "b", "hunter2"], ["--hunter2"], ["--hunter2=x"], ["a", "-hunter2", "b"]] {
            do {
                _ = try Options(arguments, command(values("config"), words: 2, isSilent: true))
                Issue.record("\(arguments) were accepted")
            } catch {
                #expect(!error.message.contains("hunter2") && !error.message.isEmpty)
            }
        }
    }

    @Test(arguments: [["--help"], ["-h"], ["add", "--help"], ["--config", "a", "-h", "--nonsense"]])
    func `help can be requested anywhere`(arguments: [String]) {
        do {
            _ = try Options(arguments, command(values("config"), words: 2))
            Issue.record("\(arguments) were accepted")
        } catch {
            #expect(error.helpTopic != nil)
        }
    }

    @Test func `control characters are escaped for a terminal`() {
        #expect(TerminalText.escaped("a\u{1B}[2J\nb\u{7F}\u{9B}") == "a\\x1b[2J\\x0ab\\x7f\\x9b")
        #expect(TerminalText.escaped("\u{202E}李雷 é") == "\\u{202e}李雷 é")
        #expect(TerminalText.name("check") == "check" && TerminalText.name("a b") == nil)
        #expect(TerminalText.name("") == nil && TerminalText.name(String(repeating: "a", count: 33)) == nil)
    }
}
