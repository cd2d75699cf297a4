import Foundation
import MartletTesting
import Testing

/// A configuration with password users, and `martlet user` over it.
private struct Desk {
    let folder: TemporaryFolder

    /// - Parameters:
    ///   - accounts: the whole line, empty for none.
    ///   - providers: the whole block.
    init(
        accounts: String = "accounts: { url: \"sqlite:users.db\" }\n",
        providers: String = "password: { kind: password, users: accounts }", more: String = ""
    ) throws {
        folder = try TemporaryFolder()
        var configuration = GatewayConfig(endpoints: ["http://127.0.0.1:9"], providers: providers)
        configuration.more = accounts + more
        try folder.write(configuration.text, to: "config.yaml")
    }

    func user(_ arguments: String..., input: String = "") throws -> CommandResult {
        let all = ["user"] + arguments + ["--config", folder.file("config.yaml")]
        return try run(try Executable.martlet(), all, input: input)
    }
}

@Suite(.timeLimit(.minutes(2))) struct UserCommandTests {
    @Test func `adds, lists, disables and enables users by their canonical names`() throws {
        let desk = try Desk()
        #expect(try desk.user("list").output == "")
        let added = try desk.user("add", "Alice", input: "correct horse\nsecond line\n")
        #expect(added.ending == .exited(0) && added.output == "user 'alice' added\n", "\(added)")
        #expect(try desk.user("add", "bob", input: "battery staple").ending == .exited(0))
        #expect(try desk.user("list").output == "Alice\tactive\nbob\tactive\n")
        let disabled = try desk.user("disable", "ALICE")
        #expect(disabled.ending == .exited(0) && disabled.output.hasPrefix("user 'alice' disabled\n"), "\(disabled)")
        #expect(disabled.output.contains("not in a shared store"))
        #expect(try desk.user("list").output == "Alice\tdisabled\nbob\tactive\n")
        #expect(try desk.user("enable", "alice").output == "user 'alice' enabled\n")
        #expect(try desk.user("passwd", "alice", input: "another horse\n").ending == .exited(0))
        #expect(try desk.user("list").output == "Alice\tactive\nbob\tactive\n")
    }

    @Test func `writes no password anywhere, only a hash of the configured cost`() throws {
        let hash = "{ algorithm: argon2id, memory: 8MiB, iterations: 3, parallelism: 1 }"
        let desk = try Desk(providers: "password: { kind: password, users: accounts, hash: \(hash) }")
        let result = try desk.user("add", "alice", input: "planted-passphrase\n")
        #expect(result.ending == .exited(0), "\(result)")
        var files = ""
        for name in try FileManager.default.contentsOfDirectory(atPath: desk.folder.path) {
            let data = FileManager.default.contents(atPath: desk.folder.file(name)) ?? Data()
            files += String(decoding: data, as: UTF8.self)
        }
        #expect(files.contains("$argon2id$v=19$m=8192,t=3,p=1$"))
        #expect(!files.contains("planted-passphrase") && !result.description.contains("planted-passphrase"))
    }

    @Test func `what cannot be done is exit 64 and says why`() throws {
        let desk = try Desk()
        #expect(try desk.user("add", "alice", input: "correct horse\n").ending == .exited(0))
        let rows: [([String], String, String)] = [
            (["add", "ALICE"], "correct horse\n", "user.duplicate"), (["passwd", "bob"], "x\n", "user.unknown"),
            (["disable", "bob"], "", "user.unknown"), (["enable", "bob"], "", "user.unknown"),
            (["add", "bob"], "short\n", "at least 8 characters"), (["add", "bob"], "", "user.no_password"),
            (["add", "bob"], "\nsecond line\n", "user.no_password"),
            (["add", "bob"], String(repeating: "x", count: 5000), "user.no_password"),
            (["passwd", "alice"], "tab\there and there\n", "password.bad_characters"),
            (["add", "a b\u{7}"], "correct horse\n", "user.bad_name"),
            (["add", ""], "correct horse\n", "user.bad_name"),
            (["disable", "alice", "--provider", "other"], "", "user.no_provider"),
            (["add"], "", "requires NAME: the user's name"), (["list", "alice"], "", "takes no arguments"),
            ([], "", "expected one of"),
            (["fly", "alice"], "", "expected one of"), (["add", "bob", "passphrase"], "", "unexpected argument"),
        ]
        for (arguments, input, reason) in rows {
            let all = ["user"] + arguments + ["--config", desk.folder.file("config.yaml")]
            let result = try run(try Executable.martlet(), all, input: input)
            #expect(result.ending == .exited(64) && result.output.isEmpty, "\(arguments): \(result)")
            #expect(result.errorOutput.contains(reason), "\(arguments): \(result)")
        }
        #expect(try desk.user("list").output == "alice\tactive\n")
    }

    @Test func `a configuration without users is exit 78`() throws {
        let htpasswd = "password: { kind: password, users: \"htpasswd:users\" }"
        let rows: [(Desk, String)] = [
            (try Desk(providers: ""), "user.no_provider"),
            (try Desk(accounts: "", providers: htpasswd), "user.no_"),
            (try Desk(providers: htpasswd), "user.no_provider"),
        ]
        for (desk, reason) in rows {
            try desk.folder.write("alice:$2y$10$abcdefghijklmnopqrstuuUHU4w5M9dXrDq9qUyrYSZbXCGpKIxhi\n", to: "users")
            for action in ["add", "disable"] {
                let result = try desk.user(action, "alice", input: "correct horse\n")
                #expect(result.ending == .exited(78) && result.errorOutput.contains(reason), "\(result)")
            }
        }
        let missing = try run(try Executable.martlet(), ["user", "list", "--config", "/nonexistent/config.yaml"])
        #expect(missing.ending == .exited(78))
    }

    @Test func `a file of users beside them does not get in the way, two stores of users do`() throws {
        let file = "old: { kind: password, users: \"htpasswd:users\" }\n"
        let mixed = try Desk(providers: file + "new: { kind: password, users: accounts }")
        try mixed.folder.write("", to: "users")
        #expect(try mixed.user("add", "alice", input: "correct horse\n").ending == .exited(0))
        let twice = try Desk(
            providers: "one: { kind: password, users: accounts }\ntwo: { kind: password, users: accounts }")
        let result = try twice.user("add", "alice", input: "correct horse\n")
        #expect(result.ending == .exited(64) && result.errorOutput.contains("'one', 'two'"), "\(result)")
        #expect(try twice.user("add", "alice", "--provider", "two", input: "correct horse\n").ending == .exited(0))
    }

    @Test func `an unavailable store is exit 69`() throws {
        let file = try Desk(accounts: "accounts: { url: \"sqlite:/nonexistent/users.db\" }\n")
        let server = try Desk(accounts: "accounts: { url: \"postgresql://127.0.0.1:\(try refusedPort())/martlet\" }\n")
        for desk in [file, server] {
            let result = try desk.user("list")
            #expect(result.ending == .exited(69) && result.output.isEmpty, "\(result)")
        }
    }

    @Test func `asks twice on a terminal, and shows nothing of what is typed`() throws {
        let desk = try Desk()
        let arguments = ["user", "add", "alice", "--config", desk.folder.file("config.yaml")]
        let martlet = try Executable.martlet()
        let differing = try Terminal.run(martlet, arguments, typing: ["correct horse\n", "correct house\n"])
        #expect(
            differing.ending == .exited(64) && differing.output.contains("the passwords do not match"), "\(differing)")
        let none = try Terminal.run(martlet, arguments, typing: ["\u{4}", "\u{4}"])
        #expect(none.ending == .exited(64) && none.output.contains("the password is empty"), "\(none)")
        let interrupted = try Terminal.run(martlet, arguments, typing: ["correct horse\n", "correct\u{3}"])
        #expect(interrupted.ending == .exited(256 - SIGINT), "\(interrupted)")
        let added = try Terminal.run(martlet, arguments, typing: ["correct horse\n", "correct horse\n"])
        #expect(added.ending == .exited(0) && added.output.contains("Password for alice: "), "\(added)")
        for screen in [differing, none, interrupted, added] {
            #expect(!screen.output.contains("correct") && !screen.output.contains("still hides"), "\(screen)")
        }
        #expect(try desk.user("list").output == "alice\tactive\n")
    }
}
