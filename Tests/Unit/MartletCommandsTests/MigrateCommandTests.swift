import Foundation
import MartletAccounts
import MartletCore
import MartletIdentities
import MartletProvider
import MartletTesting
import Testing

@testable import MartletCommands

@Suite struct `The command that moves users between teams` {
    private func command(_ arguments: String...) throws -> MigrateCommand {
        try MigrateCommand(Options(arguments, MigrateCommand.grammar), Program(ProviderRegistry()))
    }

    @Test func `takes export with a team, and import with or without a file`() throws {
        #expect(try command("migrate", "export", "--to", "NEWTEAM123").action == .export(to: "NEWTEAM123", output: nil))
        let toFile = try command("migrate", "export", "--to=NEWTEAM123", "--output", "-", "--dry-run")
        #expect(toFile.action == .export(to: "NEWTEAM123", output: "-") && toFile.isTrial)
        #expect(try command("migrate", "import").action == .importUsers(file: nil))
        #expect(try command("migrate", "import", "-").action == .importUsers(file: "-"))
        #expect(try !command("migrate", "import", "users.jsonl", "--json").isTrial)
    }

    static let invalid: [[String]] = [
        [], ["migrate"], ["export"], ["migrate", "exports"], ["migrate", "export"],
        ["migrate", "export", "--to", "newteam123"], ["migrate", "export", "--to", "NEWTEAM12"],
        ["migrate", "export", "file", "--to", "NEWTEAM123"], ["migrate", "import", "--to", "NEWTEAM123"],
        ["migrate", "import", "--output", "x"], ["migrate", "import", "a", "b"],
        ["migrate", "export", "--to", "NEWTEAM123", "--output", "-", "--json"],
    ]

    @Test(arguments: invalid) func `anything else is a usage error`(_ arguments: [String]) {
        #expect(throws: Options.UsageError.self) {
            _ = try MigrateCommand(Options(arguments, MigrateCommand.grammar), Program(ProviderRegistry()))
        }
    }

    private static let user = RecordedTransfer(
        transfer: IdentityTransfer(transferSubject: "760417.r1", fromTeam: "OLDTEAM123", toTeam: "NEWTEAM123"),
        oldSubject: "001234.\"ä\".1", isDone: false)

    @Test func `a file is read as it was written`() throws {
        let line = TransferFile.line(Self.user)
        let text = line + Array("\r\n\n  \n".utf8) + line
        #expect(try TransferFile.parse(text) == [Self.user, Self.user])
        #expect(try TransferFile.parse([]).isEmpty)
    }

    static let badLines = [
        "{", "[]", "7", #"{"sub":"a"}"#, #"{"sub":"a","transfer_sub":"b","from_team":"c"}"#,
        #"{"sub":"a","transfer_sub":"","from_team":"c","to_team":"d"}"#,
        #"{"sub":7,"transfer_sub":"b","from_team":"c","to_team":"d"}"#, "\u{FEFF}x", "[[[[[[[[",
        #"{"sub":""# + String(repeating: "x", count: 9000) + #""}"#,
    ]

    @Test(arguments: badLines) func `a line of another form is named`(_ line: String) throws {
        let text = TransferFile.line(Self.user) + Array("\n\(line)\n".utf8)
        let error = #expect(throws: ArgumentFileError.self) { try TransferFile.parse(text) }
        #expect(error?.message.hasPrefix("line 2 of the file is not an object") == true)
    }

    @Test func `a file is replaced as a whole, and only its owner may read it`() throws {
        let folder = try TemporaryFolder()
        let path = try folder.write("old", to: "users.jsonl")
        #expect(TransferFile.write(Array("new\n".utf8), to: path) == nil)
        #expect(try String(contentsOfFile: path, encoding: .utf8) == "new\n")
        let attributes = try FileManager.default.attributesOfItem(atPath: path)
        #expect(attributes[.posixPermissions] as? Int == 0o600)
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["users.jsonl"])
        #expect(TransferFile.write([], to: folder.file("no/such/file")) != nil)
    }

    @Test func `the summary says what a run did`() {
        var summary = TransferSummary()
        (summary.done, summary.already, summary.failed) = (12, 3, 1)
        func text(_ isExport: Bool, _ isTrial: Bool) -> String {
            MigrationOutput(isExport: isExport, isTrial: isTrial, asJSON: false).text(summary)
        }
        #expect(text(true, false) == "12 exported, 3 already, 1 failed")
        #expect(text(false, true) == "12 would be imported, 3 already, 1 failed")
    }
}
