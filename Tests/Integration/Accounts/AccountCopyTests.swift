import MartletAccounts
import MartletCore
import MartletProvider
import MartletTesting
import Testing

/// `martlet accounts copy` from a real file to a real server.
@Suite(.serialized, .timeLimit(.minutes(5))) struct AccountCopyTests {
    private let folder: TemporaryFolder
    private let server: PostgreSQLServer
    private let database: String

    init() throws {
        folder = try TemporaryFolder()
        server = try SharedPostgreSQL.get()
        database = try server.makeDatabase()
    }

    private var file: String { folder.file("martlet.db") }
    private var source: String { "sqlite:\(file)" }
    private var target: String { server.url(database: database) }

    private func copy(_ arguments: String...) throws -> CommandResult {
        try run(
            try Executable.martlet(), ["accounts", "copy", "--from", source, "--to", target] + arguments)
    }

    private func sqlite(_ text: String) throws -> String {
        let result = try run(try Executable.named("python3"), ["-c", Self.script, file, text])
        guard result.ending == .exited(0) else { throw TestFailure("\(result)") }
        return result.output
    }

    private static let script = """
        import sqlite3, sys
        base = sqlite3.connect(sys.argv[1])
        base.executescript(sys.argv[2])
        base.close()
        """

    private func fill(_ range: Range<Int>) async throws {
        try await withStores(at: source) { stores in
            for number in range { _ = try await stores[0].signIn(identity("apple", "00\(number)")) }
        }
    }

    private func count(_ table: String) throws -> String {
        try server.query("SELECT count(*) FROM \(table)", database: database)
    }

    @Test func `everything is copied, and a second run brings what has changed`() async throws {
        try await fill(0..<30)
        try await withStores(at: source) { stores in
            let odd = UserRecord(name: "Ada", key: "ada", hash: "a\\b\"c{,}NULL 张三", isDisabled: false)
            try await stores[0].addUser(odd, at: noon)
            try await stores[0].addUser(UserRecord(name: "B", key: "b", hash: "x", isDisabled: false), at: noon)
        }
        let first = try copy()
        #expect(first.ending == .exited(0), "\(first)")
        #expect(first.output.contains("accounts: 30 rows, SHA-256 ") && first.output.hasSuffix("verified\n"))
        #expect(try count("identity_subjects") == "30")
        #expect(try count("users") == "2")

        try await fill(30..<40)
        try await withStores(at: source) { stores in
            #expect(try await stores[0].removeRecord(for: "b"))
            try await stores[0].setHash(of: "ada", to: "new")
            let (one, two) = (identity("apple", "001"), identity("wechat", "w1"))
            let account = try #require(try await stores[0].find(one))
            _ = try await stores[0].link(two, to: account)
            _ = try await stores[0].unlink(provider: "apple", from: account.subject)
            _ = try await stores[0].signIn(one)
        }
        let second = try copy()
        #expect(second.ending == .exited(0), "\(second)")
        #expect(second.output.contains("accounts: 41 rows"))
        #expect(try server.query("SELECT key || ' ' || hash FROM users", database: database) == "ada new")
        #expect(try copy().output == second.output)
        try await withStores(at: target) { stores in
            let isKnown = try await stores[0].isKnown(identity("apple", "0039"))
            #expect(isKnown)
        }
    }

    @Test func `a final copy makes the source read-only, also for a store that is open, and is the last one`()
        async throws
    {
        try await fill(0..<5)
        try await withStores(at: source) { stores in
            let result = try copy("--final")
            #expect(result.ending == .exited(0), "\(result)")
            #expect(result.output.contains("the source is read-only now"))
            #expect(await code { _ = try await stores[0].signIn(identity("apple", "new")) } == .accountsMoved)
            #expect(try await stores[0].isKnown(identity("apple", "001")))
        }
        try await withStores(at: source) { stores in
            #expect(await code { _ = try await stores[0].signIn(identity("apple", "new")) } == .accountsMoved)
        }
        try await withStores(at: target) { stores in
            let (old, new) = (identity("apple", "001"), identity("apple", "new"))
            let (known, added) = (try await stores[0].signIn(old), try await stores[0].signIn(new))
            #expect(!known.isNew && added.isNew)
        }
        let again = try copy()
        #expect(again.ending == .exited(1) && again.errorOutput.contains("accounts.copy_done"), "\(again)")
    }

    @Test func `a run that was killed is continued`() async throws {
        try await fill(0..<1)
        _ = try sqlite(Self.many(20_000))
        let arguments = ["accounts", "copy", "--from", source, "--to", target]
        let child = try ChildProcess(try Executable.martlet(), arguments, output: folder, name: "copy")
        try waitUntil("some rows are there", within: .seconds(60)) {
            (Int((try? count("identities")) ?? "") ?? 0) > 2000
        }
        child.kill(9)
        _ = try child.wait()
        let copied = try #require(Int(try count("identity_subjects")))
        #expect(copied < 20_001)
        let result = try copy()
        #expect(result.ending == .exited(0), "\(result)")
        #expect(try count("identity_subjects") == "20001")
    }

    private static func many(_ count: Int) -> String {
        let numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(count))"
        return """
            BEGIN;
            \(numbers) INSERT INTO accounts (subject, created_at, kept_claims) SELECT 'usr_' || i, i, '{}' FROM n;
            \(numbers) INSERT INTO identities (id, account, provider, subject, created_at)
                SELECT 'idn_' || i, 'usr_' || i, 'apple', 's' || i, i FROM n;
            \(numbers) INSERT INTO identity_subjects SELECT 'apple', 's' || i, 'idn_' || i FROM n;
            COMMIT;
            """
    }

    @Test func `a target with accounts of its own is a conflict that names both subjects`() async throws {
        try await fill(0..<3)
        var subjects: [String] = []
        for url in [source, target] {
            try await withStores(at: url) { stores in
                subjects.append(try await stores[0].signIn(identity("apple", "001")).subject)
            }
        }
        let before = try count("accounts")
        let result = try copy("--final")
        #expect(result.ending == .exited(1) && result.errorOutput.contains("accounts.copy_conflict"), "\(result)")
        #expect(subjects.allSatisfy { result.errorOutput.contains($0) }, "\(result)")
        #expect(try count("accounts") == before)
        // The source still takes writes.
        try await fill(3..<4)
    }

    @Test func `a target that was used between two runs is a conflict`() async throws {
        try await fill(0..<3)
        #expect(try copy().ending == .exited(0))
        try await withStores(at: target) { stores in _ = try await stores[0].signIn(identity("apple", "later")) }
        let result = try copy()
        #expect(result.ending == .exited(1) && result.errorOutput.contains("accounts.copy_conflict"), "\(result)")
        #expect(try count("accounts") == "4")
    }

    @Test func `databases that cannot be used are exit 69`() async throws {
        func check(_ code: String, _ from: String, _ to: String) throws {
            let result = try run(try Executable.martlet(), ["accounts", "copy", "--from", from, "--to", to])
            #expect(result.ending == .exited(69) && result.errorOutput.contains(code), "\(result)")
        }
        try check("accounts.schema_missing", "sqlite:\(folder.file("none.db"))", target)
        try await fill(0..<1)
        try check("accounts.connect_failed", source, "postgresql://127.0.0.1:\(try refusedPort())/x")
        _ = try sqlite("INSERT INTO martlet_schema VALUES (2)")
        try check("accounts.schema_newer", source, target)
        _ = try sqlite("DELETE FROM martlet_schema")
        try check("accounts.schema_outdated", source, target)
        try check(
            "accounts.corrupt", "sqlite:\(try folder.write(String(repeating: "x", count: 9000), to: "bad"))", target)
    }

    @Test(arguments: [
        [], ["copy"], ["copied"], ["copy", "--from", "sqlite:a"], ["copy", "--from", "sqlite:a", "--to", "sqlite:b"],
        ["copy", "--from", "postgresql://a/b", "--to", "postgresql://a/b"], ["copy", "--from", "x", "--to", "y"],
    ]) func `anything else is a usage error`(_ arguments: [String]) throws {
        let result = try run(try Executable.martlet(), ["accounts"] + arguments)
        #expect(result.ending == .exited(64) && !result.errorOutput.isEmpty, "\(result)")
    }
}
