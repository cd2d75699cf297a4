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

    /// What the last migrations have added is removed again; the first of them waits for the table of accounts.
    func goBack() throws {
        let version = try sql("SELECT max(version) FROM martlet_schema")
        #expect(version == "15", "this test removes what the versions from 13 on have added")
        try sql("DROP TABLE departures")
        for column in ["users DROP COLUMN proved_at", "accounts DROP COLUMN reclaimed_at"] {
            try sql("ALTER TABLE \(column)")
        }
        for column in ["network", "neighborhood"] { try sql("ALTER TABLE password_links DROP COLUMN \(column)") }
        try sql("DROP TABLE api_keys")
        try sql("ALTER TABLE accounts DROP COLUMN profile_claims")
        try sql("DELETE FROM martlet_schema WHERE version >= 13")
    }

    /// Uses the tables for longer than a migration waits for locks.
    func occupy() throws -> ChildProcess {
        guard kind == .sqlite else {
            let session = try server.session(
                "BEGIN; LOCK TABLE accounts IN ACCESS SHARE MODE; SELECT pg_sleep(4); COMMIT", database: database,
                folder)
            let locks = "SELECT count(*) FROM pg_locks WHERE relation = 'accounts'::regclass"
            try waitUntil("the table is locked") { (try? sql(locks)) == "1" }
            return session
        }
        let text = """
            import sqlite3, sys, time
            base = sqlite3.connect(sys.argv[1])
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
        #expect(check.output == "no schema; this version of Martlet needs 15\n")
        if kind == .sqlite {
            #expect(!FileManager.default.fileExists(atPath: bench.file))
        } else {
            #expect(try bench.sql("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'") == "0")
        }
        let done = try bench.migrate()
        #expect(done.ending == .exited(0) && done.output == "migrated from no schema to 15\n", "\(done)")
        #expect(try bench.sql("SELECT count(*) FROM accounts") == "0")
        let again = try bench.migrate("--check")
        #expect(again.ending == .exited(0) && again.output == "schema version 15 is current\n", "\(again)")
    }

    @Test(arguments: MigrationBench.Kind.allCases)
    private func `an older schema is behind until it is migrated`(_ kind: MigrationBench.Kind) throws {
        let bench = try MigrationBench(kind)
        #expect(try bench.migrate().ending == .exited(0))
        try bench.goBack()
        let check = try bench.migrate("--check")
        #expect(check.ending == .exited(1), "\(check)")
        #expect(check.output == "schema version 12; this version of Martlet needs 15\n")
        #expect(try bench.migrate("--check", "--json").output == #"{"schema":12,"latest":15,"state":"behind"}"# + "\n")
        #expect(try bench.sql("SELECT max(version) FROM martlet_schema") == "12")
        let done = try bench.migrate("--json")
        #expect(done.ending == .exited(0) && done.output == #"{"from":12,"to":15}"# + "\n", "\(done)")
        let again = try bench.migrate()
        #expect(again.ending == .exited(0) && again.output == "schema version 15 is current\n", "\(again)")
    }

    @Test(arguments: MigrationBench.Kind.allCases)
    private func `the next version is accepted and left alone, the one after it is not`(
        _ kind: MigrationBench.Kind
    ) throws {
        let bench = try MigrationBench(kind)
        #expect(try bench.migrate().ending == .exited(0))
        try bench.sql("INSERT INTO martlet_schema VALUES (16)")
        for arguments in [["--check"], []] {
            let result = arguments.isEmpty ? try bench.migrate() : try bench.migrate("--check")
            #expect(result.ending == .exited(0), "\(result)")
            #expect(
                result.output == "schema version 16 is the next one; this version of Martlet has 15, and runs on it\n")
        }
        #expect(try bench.migrate("--json").output == #"{"from":16,"to":16}"# + "\n")
        try bench.sql("INSERT INTO martlet_schema VALUES (17)")
        for result in [try bench.migrate("--check"), try bench.migrate()] {
            #expect(result.ending == .exited(69) && result.errorOutput.contains("accounts.schema_newer"), "\(result)")
        }
    }

    @Test(arguments: MigrationBench.Kind.allCases)
    private func `two that migrate concurrently wait for others, and one of them does it`(
        _ kind: MigrationBench.Kind
    ) throws {
        let bench = try MigrationBench(kind)
        #expect(try bench.migrate().ending == .exited(0))
        try bench.goBack()
        let other = try bench.occupy()
        let both = [try bench.start("one"), try bench.start("two")]
        for child in both {
            let ending = try child.wait(within: .seconds(40))
            #expect(ending == .exited(0), "\(child.errorOutput)")
        }
        #expect(
            both.map(\.output).sorted() == [
                "migrated from schema version 12 to 15\n", "schema version 15 is current\n",
            ])
        #expect(try other.wait() == .exited(0))
        #expect(try bench.sql("SELECT count(*) FROM martlet_schema WHERE version = 15") == "1")
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
