import MartletProvider
import Testing

@testable import MartletCommands

@Suite struct `Former spellings` {
    @Test(arguments: [
        ("sessions usr_1", "session list --subject usr_1"),
        ("sessions --config a.yaml usr_1 --json", "session list --subject usr_1 --config a.yaml --json"),
        ("sessions end ses_1", "session end --id ses_1"),
        ("sessions end ses_1 --subject usr_1", "session end --id ses_1 --subject usr_1"),
        ("sessions --admin unix:/a end --all --subject usr_1", "session end --admin unix:/a --subject usr_1"),
        ("subject usr_1", "account show usr_1"), ("subject show usr_1", "account show usr_1"),
        ("subject --token-file t disable usr_1", "account disable usr_1 --token-file t"),
        ("subject enable usr_1 --json", "account enable usr_1 --json"),
        ("subject delete usr_1", "account delete usr_1"),
    ])
    func `are what they are called now`(_ former: String, _ current: String) throws {
        let words = former.split(separator: " ").map(String.init)
        let spelling = try #require(FormerSpelling(words))
        #expect(spelling.arguments.joined(separator: " ") == current)
        let command = try #require(Program.command(spelling.arguments.first))
        #expect(throws: Never.self) { try Options(Array(spelling.arguments.dropFirst()), command.grammar) }
    }

    @Test(arguments: [
        "sessions", "sessions end", "sessions end --all", "sessions a b", "sessions a --subject b",
        "sessions end a --all --subject b", "subject", "subject disable", "subject remove a", "subject a disable",
    ])
    func `make no sense where they made none`(_ former: String) throws {
        let spelling = try #require(FormerSpelling(former.split(separator: " ").map(String.init)))
        let command = try #require(Program.command(spelling.arguments.first))
        #expect(throws: Options.UsageError.self) {
            let options = try Options(Array(spelling.arguments.dropFirst()), command.grammar)
            _ = try command.init(options, Program(ProviderRegistry()))
        }
    }

    @Test(arguments: [[], ["session", "list"], ["account", "show", "sessions"], ["status"]])
    func `are two commands alone`(_ arguments: [String]) { #expect(FormerSpelling(arguments) == nil) }
}
