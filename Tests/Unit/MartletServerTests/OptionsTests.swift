import Testing

@testable import MartletServer

@Suite struct `Options of commands` {
    @Test func `values come behind a space or an equals sign`() throws {
        let options = try Options(
            ["--config", "a.yaml", "--listen=127.0.0.1:0", "--online"], allowing: ["config", "listen"],
            flags: ["online"])
        #expect(options["config"] == "a.yaml" && options["listen"] == "127.0.0.1:0" && options.has("online"))
        let odd = try Options(["--config=a=b", "--listen", "--x"], allowing: ["config", "listen"])
        #expect(odd["config"] == "a=b" && odd["listen"] == "--x" && odd["other"] == nil && !odd.has("online"))
        #expect(try Options(["--config="], allowing: ["config"])["config"] == "")
    }

    @Test func `words stand anywhere between options, and behind two hyphens whatever they look like`() throws {
        let options = try Options(["add", "--config", "a", "ann"], allowing: ["config"], words: 2)
        #expect(options.words == ["add", "ann"] && options["config"] == "a")
        let odd = try Options(["add", "--", "--config"], allowing: ["config"], words: 2)
        #expect(odd.words == ["add", "--config"] && odd["config"] == nil)
        #expect(throws: Options.UsageError.self) { try Options(["a", "b", "c"], allowing: [], words: 2) }
        #expect(throws: Options.UsageError.self) { try Options(["a", "--", "--", "c"], allowing: [], words: 2) }
    }

    static let refused: [([String], String)] = [
        (["file.yaml"], "unexpected argument 'file.yaml'"), (["-c", "x"], "unexpected argument '-c'"),
        (["--config"], "--config needs a value"), (["--confg", "x"], "unknown option '--confg'"),
        (["--config", "a", "--config", "b"], "--config is given twice"),
        (["--online=yes"], "unknown option '--online=yes'"),
        (["--"], "unknown option '--'"), (["--=x"], "unknown option '--=x'"),
    ]

    @Test(arguments: refused) func `anything else is refused with a reason`(arguments: [String], message: String) {
        do {
            _ = try Options(arguments, allowing: ["config"], flags: ["online"])
            Issue.record("\(arguments) were taken")
        } catch {
            #expect(error.message == message)
        }
    }
}
