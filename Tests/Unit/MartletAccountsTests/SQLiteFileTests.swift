import Foundation
import MartletCore
import MartletJSON
import MartletProvider
import MartletTesting
import Testing

@testable import MartletAccounts

@Suite(.timeLimit(.minutes(2))) struct SQLiteFileTests {
    /// The error code of starting a store at a path.
    private func startFailure(_ path: String) async -> ErrorCode? {
        await code { try await withStores(at: path) { _ in } }
    }

    private func shell(_ path: String, _ text: String) throws -> String {
        let result = try run(try Executable.named("sqlite3"), ["-bail", path, text])
        guard result.ending == .exited(0) else { throw TestFailure("sqlite3: \(result)") }
        return result.output.trimmingCharacters(in: .whitespacesAndNewlines)
    }

    @Test func `creates a file that only its owner may read`() async throws {
        let folder = try TemporaryFolder()
        let path = folder.file("accounts.db")
        try await withStores(at: path) { stores in
            _ = try await stores[0].signIn(identity("apple", "001"))
            for suffix in ["", "-wal", "-shm"] {
                let attributes = try FileManager.default.attributesOfItem(atPath: path + suffix)
                #expect(attributes[.posixPermissions] as? Int == 0o600)
            }
        }
        // A clean shutdown leaves one file.
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["accounts.db"])
    }

    @Test func `persists data when it is reopened`() async throws {
        let folder = try TemporaryFolder()
        let path = folder.file("accounts.db")
        let first = try await withStores(at: path) { stores in
            try await stores[0].signIn(identity("apple", "001"), keeping: ["name": "Ada"])
        }
        let again = try await withStores(at: path) { stores in try await stores[0].signIn(identity("apple", "001")) }
        #expect(again.subject == first.subject && again.storedClaims == first.storedClaims && !again.isNew)
    }

    @Test func `has persisted every committed change when the process crashes`() async throws {
        let folder = try TemporaryFolder()
        let path = folder.file("accounts.db")
        try await withStores(at: path) { stores in
            let account = try await stores[0].signIn(identity("apple", "001"))
            // The state after a crash: the current file and its log.
            for suffix in ["", "-wal"] {
                try FileManager.default.copyItem(atPath: path + suffix, toPath: folder.file("copy.db") + suffix)
            }
            let found = try await withStores(at: folder.file("copy.db")) { stores in
                try await stores[0].known(identity("apple", "001"))
            }
            #expect(found?.subject == account.subject)
        }
        #expect(try shell(path, "PRAGMA journal_mode") == "wal")
    }

    @Test func `reports that it cannot open a file`() async throws {
        let folder = try TemporaryFolder()
        for path in [folder.file("no/such/accounts.db"), folder.path, "/proc/nothing.db"] {
            #expect(await startFailure(path) == .accountsCannotOpen)
        }
    }

    @Test func `treats names that are special to SQLite as file names`() async throws {
        let folder = try TemporaryFolder()
        for name in ["file:accounts.db?mode=memory", ":memory:", "a b'\"%20.db"] {
            try await withStores(at: folder.file(name)) { stores in
                _ = try await stores[0].signIn(identity("apple", "001"))
            }
            #expect(FileManager.default.fileExists(atPath: folder.file(name)))
        }
    }

    @Test func `rejects a file that is not a database`() async throws {
        let folder = try TemporaryFolder()
        let path = try folder.write(String(repeating: "no database ", count: 1000), to: "accounts.db")
        #expect(await startFailure(path) == .accountsCorrupt)
        #expect(try String(contentsOfFile: path, encoding: .utf8).hasPrefix("no database"))
    }

    @Test func `reports a corrupt file`() async throws {
        let folder = try TemporaryFolder()
        let path = folder.file("accounts.db")
        try await withStores(at: path) { stores in
            for index in 0..<50 { _ = try await stores[0].signIn(identity("apple", "\(index)")) }
        }
        var bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: path)))
        for index in 8192..<bytes.count { bytes[index] = UInt8(truncatingIfNeeded: index &* 31) }
        try folder.write(bytes: bytes, to: "accounts.db")
        let failure = await code {
            try await withStores(at: path) { stores in
                do {
                    _ = try await stores[0].find(identity("apple", "1"))
                    _ = try await stores[0].signIn(identity("apple", "new"))
                } catch {
                    #expect(stores[0].health.state == .unavailable)
                    throw error
                }
            }
        }
        #expect(failure == .accountsCorrupt)
    }

    @Test func `reports invalid claims as corruption`() async throws {
        let folder = try TemporaryFolder()
        let path = folder.file("accounts.db")
        try await withStores(at: path) { stores in
            _ = try await stores[0].signIn(identity("apple", "001"))
            for damage in ["[1]", "{", "", "{\"a\":1,\"a\":2}"] {
                _ = try shell(path, "UPDATE accounts SET kept_claims = '\(damage)'")
                #expect(await code { _ = try await stores[0].find(identity("apple", "001")) } == .accountsCorrupt)
            }
            _ = try shell(path, "UPDATE accounts SET kept_claims = '{}'")
            #expect(try await stores[0].isKnown(identity("apple", "001")))
            #expect(stores[0].health.state == .ready)
        }
    }

    @Test func `waits for another writing process up to a timeout, and reads meanwhile`() async throws {
        let folder = try TemporaryFolder()
        let path = folder.file("accounts.db")
        try await withStores(at: path) { stores in
            _ = try await stores[0].signIn(identity("apple", "001"))
            let input = "BEGIN IMMEDIATE;\nSELECT 'locked';\n.shell sleep 60\n"
            let holder = try ChildProcess(try Executable.named("sqlite3"), [path], output: folder, input: input)
            try waitUntil("the file is locked") { holder.output.contains("locked") }
            #expect(await code { _ = try await stores[0].signIn(identity("apple", "002")) } == .accountsBusy)
            #expect(stores[0].health.state == .unavailable && stores[0].health.failures[.accountsBusy] == 1)
            #expect(try await stores[0].isKnown(identity("apple", "001")))
            holder.kill(9)
            _ = try holder.wait()
            #expect(try await stores[0].signIn(identity("apple", "002")).isNew)
            #expect(stores[0].health.state == .ready)
        }
    }

    @Test func `rejects a read-only file`() async throws {
        let folder = try TemporaryFolder()
        let path = folder.file("accounts.db")
        try await withStores(at: path) { _ in }
        // Root ignores permissions; not every file system supports the flag.
        let chattr = try Executable.named("chattr")
        guard try run(chattr, ["+i", path]).ending == .exited(0) else { return }
        let failure = await startFailure(path)
        _ = try run(chattr, ["-i", path])
        #expect(failure == .accountsReadOnly)
    }

    @Test func `rejects calls after shutdown`() async throws {
        let folder = try TemporaryFolder()
        let path = folder.file("accounts.db")
        let ended = try await withStores(at: path) { stores in
            await stores[0].shutdown()
            #expect(await code { _ = try await stores[0].find(identity("a", "1")) } == .accountsStopped)
            #expect(await code { _ = try await stores[0].signIn(identity("a", "1")) } == .accountsStopped)
            return stores[0].health.state
        }
        #expect(ended == .stopped)
    }
}

@Suite(.timeLimit(.minutes(2))) struct SQLiteSchemaTests {
    private func change(_ path: String, _ text: String) throws {
        let result = try run(try Executable.named("sqlite3"), ["-bail", path, text])
        guard result.ending == .exited(0) else { throw TestFailure("sqlite3: \(result)") }
    }

    @Test func `upgrades a file to the next version, in which the version before runs`() async throws {
        let folder = try TemporaryFolder()
        let path = folder.file("accounts.db")
        let old = try await withStores(at: path) { stores in try await stores[0].signIn(identity("apple", "001")) }
        let (first, more) = (Schema(.sqlite), Migration(version: 2, statements: ["CREATE TABLE more (a TEXT)"]))
        let next = Schema(.sqlite, first.migrations + [more])
        let connection = try SQLiteConnection(path: path, for: .writing, busyTimeout: .seconds(1))
        let versions = [
            try connection.read(first.version), try connection.transact(next.upgrade),
            try connection.transact(next.upgrade),
        ]
        #expect(versions == [1, 1, 2])
        let rows = try connection.read(ReadOperation(queries: [Query(.plain("SELECT a FROM more"))]) { $0[0].count })
        #expect(rows == 0)
        let found = try await withStores(at: path) { stores in try await stores[0].known(identity("apple", "001")) }
        #expect(found?.subject == old.subject)
    }

    @Test func `rejects a file of a newer version and leaves it unchanged`() async throws {
        let folder = try TemporaryFolder()
        let path = folder.file("accounts.db")
        try await withStores(at: path) { _ in }
        try change(path, "INSERT INTO martlet_schema VALUES (1000)")
        #expect(await code { try await withStores(at: path) { _ in } } == .accountsSchemaNewer)
        try change(path, "DELETE FROM martlet_schema WHERE version = 1000")
        try await withStores(at: path) { _ in }
    }

    @Test func `rolls back a migration when a part of it fails`() async throws {
        let folder = try TemporaryFolder()
        let path = folder.file("accounts.db")
        try change(path, "CREATE TABLE identities (mine)")
        #expect(await code { try await withStores(at: path) { _ in } } == .accountsFailed)
        try change(path, "DROP TABLE identities")
        try await withStores(at: path) { stores in _ = try await stores[0].signIn(identity("apple", "001")) }
    }

    @Test func `a new file can be opened concurrently`() async throws {
        let folder = try TemporaryFolder()
        let path = folder.file("accounts.db")
        let accounts = try await together(8) { _ in
            try await withStores(at: path) { stores in try await stores[0].signIn(identity("apple", "001")) }
        }
        #expect(Set(accounts.map(\.subject)).count == 1 && accounts.count { $0.isNew } == 1)
    }
}
