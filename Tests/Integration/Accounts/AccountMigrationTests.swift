import Foundation
import MartletTesting
import Testing

/// A database that is configured as `accounts.url`, and statements in it that are none of Martlet's.
private struct MigrationBench {
    enum Kind: CaseIterable {
        case sqlite, postgresql
    }

    private let kind: Kind
    let folder: TemporaryFolder
    private let server: PostgreSQLServer
    private let database: String

    init(_ kind: Kind) throws {
        self.kind = kind
        folder = try TemporaryFolder()
        server = try SharedPostgreSQL.get()
        database = try server.makeDatabase()
        try configure(kind == .sqlite ? "sqlite:martlet.db" : server.url(database: database))
    }

    var file: String { folder.file("martlet.db") }

    func configure(_ url: String?) throws {
        var configuration = GatewayConfig(endpoints: ["http://127.0.0.1:9"])
        configuration.more = url.map { "accounts: { url: \"\($0)\" }\n" } ?? ""
        try folder.write(configuration.text, to: "config.yaml")
    }

    private var arguments: [String] { ["accounts", "migrate", "--config", folder.file("config.yaml")] }

    func migrate(_ more: String...) throws -> CommandResult { try run(try Executable.martlet(), arguments + more) }

    func start(_ name: String) throws -> ChildProcess {
        try ChildProcess(try Executable.martlet(), arguments, output: folder, name: name)
    }

    /// Runs a statement; returns the first value of the first row.
    @discardableResult func sql(_ text: String) throws -> String {
        guard kind == .sqlite else { return try server.query(text, database: database) }
        let result = try run(try Executable.named("python3"), ["-c", Self.script, file, text])
        guard result.ending == .exited(0) else { throw TestFailure("\(result)") }
        return result.output.trimmingCharacters(in: .whitespacesAndNewlines)
    }

    private static let script = """
        import sqlite3, sys
        base = sqlite3.connect(sys.argv[1])
        for text in sys.argv[2].split(";"):
            for row in base.execute(text): print(row[0])
        base.commit()
        """

    /// Uses the database, which has no tables yet, for longer than a migration waits for locks.
    func occupy() throws -> ChildProcess {
        guard kind == .sqlite else {
            let session = try server.session(
                "BEGIN; CREATE TABLE accounts (a int); SELECT pg_sleep(4); ROLLBACK", database: database, folder)
            let sleepers = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = "
            try waitUntil("the name of the table is taken") { (try? sql("\(sleepers)'\(database)'")) == "1" }
            return session
        }
        let text = """
            import sqlite3, sys, time
            base = sqlite3.connect(sys.argv[1])
            base.execute("PRAGMA journal_mode = WAL")
            base.execute("BEGIN IMMEDIATE")
            open(sys.argv[2], "w").close()
            time.sleep(3)
            """
        let mark = folder.file("locked")
        let child = try ChildProcess(
            try Executable.named("python3"), ["-c", text, file, mark], output: folder, name: "python")
        try waitUntil("the file is locked") { FileManager.default.fileExists(atPath: mark) }
        return child
    }
}

/// `martlet accounts migrate` and its `--check` on a real file and a real server.
@Suite(.serialized, .timeLimit(.minutes(3))) struct AccountMigrationTests {
    @Test(arguments: MigrationBench.Kind.allCases)
    private func `a database without a schema is behind, stays as it is, and gets one`(
        _ kind: MigrationBench.Kind
    ) throws {
        let bench = try MigrationBench(kind)
        let check = try bench.migrate("--check")
        #expect(check.ending == .exited(1), "\(check)")
        #expect(check.output == "no schema; this version of Martlet needs 1\n")
        #expect(try bench.migrate("--check", "--json").output == #"{"schema":0,"latest":1,"state":"behind"}"# + "\n")
        if kind == .sqlite {
            #expect(!FileManager.default.fileExists(atPath: bench.file))
        } else {
            #expect(try bench.sql("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'") == "0")
        }
        let done = try bench.migrate()
        #expect(done.ending == .exited(0) && done.output == "migrated from no schema to 1\n", "\(done)")
        #expect(try bench.sql("SELECT count(*) FROM accounts") == "0")
        let again = try bench.migrate("--check")
        #expect(again.ending == .exited(0) && again.output == "schema version 1 is current\n", "\(again)")
        #expect(try bench.migrate("--json").output == #"{"from":1,"to":1}"# + "\n")
    }

    @Test(arguments: MigrationBench.Kind.allCases)
    private func `the next version is accepted and left alone, the one after it is not`(
        _ kind: MigrationBench.Kind
    ) throws {
        let bench = try MigrationBench(kind)
        #expect(try bench.migrate().ending == .exited(0))
        try bench.sql("INSERT INTO martlet_schema VALUES (2)")
        for arguments in [["--check"], []] {
            let result = arguments.isEmpty ? try bench.migrate() : try bench.migrate("--check")
            #expect(result.ending == .exited(0), "\(result)")
            #expect(
                result.output == "schema version 2 is the next one; this version of Martlet has 1, and runs on it\n")
        }
        #expect(try bench.migrate("--json").output == #"{"from":2,"to":2}"# + "\n")
        try bench.sql("INSERT INTO martlet_schema VALUES (3)")
        for result in [try bench.migrate("--check"), try bench.migrate()] {
            #expect(result.ending == .exited(69) && result.errorOutput.contains("accounts.schema_newer"), "\(result)")
        }
    }

    @Test(arguments: MigrationBench.Kind.allCases)
    private func `two that migrate concurrently wait for others, and one of them does it`(
        _ kind: MigrationBench.Kind
    ) throws {
        let bench = try MigrationBench(kind)
        let other = try bench.occupy()
        let both = [try bench.start("one"), try bench.start("two")]
        for child in both {
            let ending = try child.wait(within: .seconds(40))
            #expect(ending == .exited(0), "\(child.errorOutput)")
        }
        #expect(both.map(\.output).sorted() == ["migrated from no schema to 1\n", "schema version 1 is current\n"])
        #expect(try other.wait() == .exited(0))
        #expect(try bench.sql("SELECT count(*) FROM martlet_schema WHERE version = 1") == "1")
    }

    @Test func `a database that is unavailable or damaged is exit 69, and no accounts are exit 78`() throws {
        let bench = try MigrationBench(.sqlite)
        func expect(_ exit: Int32, _ code: String) throws {
            for result in [try bench.migrate("--check"), try bench.migrate()] {
                #expect(result.ending == .exited(exit) && result.errorOutput.contains(code), "\(result)")
            }
        }
        try bench.folder.write(String(repeating: "x", count: 9000), to: "martlet.db")
        try expect(69, "accounts.corrupt")
        try bench.configure("postgresql://127.0.0.1:\(try refusedPort())/x")
        try expect(69, "accounts.connect_failed")
        try bench.configure(nil)
        try expect(78, "account.no_accounts")
    }

    @Test(arguments: [
        ["migrate", "--final"], ["migrate", "--from", "sqlite:a"], ["migrate", "now"],
        ["copy", "--check", "--from", "sqlite:a", "--to", "postgresql://a/b"],
    ]) func `options of the other command are a usage error`(_ arguments: [String]) throws {
        let result = try run(try Executable.martlet(), ["accounts"] + arguments)
        #expect(result.ending == .exited(64) && !result.errorOutput.isEmpty, "\(result)")
    }
}
