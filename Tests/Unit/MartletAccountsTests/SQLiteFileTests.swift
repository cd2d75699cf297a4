import Foundation
import MartletAccounts
import MartletCore
import MartletJSON
import MartletProvider
import MartletTesting
import Testing

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

    /// SQL that downgrades a file to a version.
    static let downgrades = [
        (14, "\(toVersion14)DELETE FROM martlet_schema WHERE version > 14"),
        (13, "\(toVersion13)DELETE FROM martlet_schema WHERE version > 13"),
        (12, "\(toVersion12)DELETE FROM martlet_schema WHERE version > 12"),
        (10, "\(toVersion10)DELETE FROM martlet_schema WHERE version > 10"),
        (9, "\(toVersion9)DELETE FROM martlet_schema WHERE version > 9"),
        (5, "\(toVersion5)DELETE FROM martlet_schema WHERE version > 5"),
        (3, "\(toVersion3)DELETE FROM martlet_schema WHERE version > 3"),
        (2, "\(toVersion2)DELETE FROM martlet_schema WHERE version > 2"),
        (1, "\(toVersion2)DROP TABLE users; DELETE FROM martlet_schema WHERE version > 1"),
    ]

    /// The order of versions: claims, their index, links, states of identities, ended sessions, transfers, digests of
    /// addresses, profiles, API keys, proofs of addresses.
    private static let toVersion14 =
        "DROP TABLE departures; ALTER TABLE users DROP COLUMN proved_at; "
        + "ALTER TABLE accounts DROP COLUMN reclaimed_at; ALTER TABLE password_links DROP COLUMN network; "
        + "ALTER TABLE password_links DROP COLUMN neighborhood; "
    private static let toVersion13 = toVersion14 + "DROP TABLE api_keys; "
    private static let toVersion12 = toVersion13 + "ALTER TABLE accounts DROP COLUMN profile_claims; "
    private static let toVersion10 =
        toVersion12 + "ALTER TABLE identities DROP COLUMN email_digest; DROP TABLE identity_transfers; "
    private static let toVersion9 = toVersion10 + "DROP TABLE ended_sessions; "
    private static let toVersion5 =
        toVersion9 + "DROP TABLE jobs; DROP TABLE notifications; DROP TABLE grant_keys; DROP TABLE grants; "
        + "DROP INDEX identities_check; "
        + ["state", "state_at", "confirmed_at", "revoked_at", "notified_at", "check_at"]
        .map { "ALTER TABLE identities DROP COLUMN \($0); " }.joined()
        + ["deletion_at", "deletion_reason", "deletion_announced", "deleted_at"]
        .map { "ALTER TABLE accounts DROP COLUMN \($0); " }.joined()
        + "ALTER TABLE identities ADD COLUMN sealed_refresh_token BLOB; "
        + "DROP TABLE password_links; ALTER TABLE users DROP COLUMN claims; DROP INDEX IF EXISTS users_disabled; "
        + "DROP INDEX accounts_disabled; DROP TABLE account_claims; "
        + ["claims", "rule_claims", "claims_version"].map { "ALTER TABLE accounts DROP COLUMN \($0); " }.joined()
        + "ALTER TABLE identities DROP COLUMN claims; "
    private static let toVersion3 =
        toVersion5
        + "DROP TABLE deliveries; DROP TABLE events; DROP TABLE leases; ALTER TABLE accounts DROP COLUMN disabled_at; "
    private static let toVersion2 = toVersion3 + "ALTER TABLE identities DROP COLUMN last_login_at; "

    @Test(arguments: downgrades)
    func `migrates a file of an older version`(version: Int, downgrade: String) async throws {
        let folder = try TemporaryFolder()
        let path = folder.file("accounts.db")
        let old = try await withStores(at: path) { stores in try await stores[0].signIn(identity("apple", "001")) }
        try change(path, downgrade)
        try await withStores(at: path) { stores in
            #expect(try await stores[0].isKnown(identity("apple", "001")))
            let users = try await stores[0].users()
            #expect(users.isEmpty)
            let before = LinkedIdentity(provider: "apple", linkedAt: noon, lastLoginAt: nil)
            #expect(try await stores[0].linkedIdentities(of: old.subject) == [before])
            try await stores[0].noteLogin(of: old.subject, with: "apple", at: UnixTime(seconds: 1_800_000_060))
            let after = try await stores[0].linkedIdentities(of: old.subject)
            #expect(after.map(\.lastLoginAt) == [UnixTime(seconds: 1_800_000_060)])
            let transfers = try await stores[0].transfers.transferableIdentities(
                of: "apple", to: nil, after: "", limit: 10)
            #expect(transfers.map(\.subject) == ["001"] && transfers.first?.recorded == nil)
        }
    }

    @Test func `knows who has proved an address before an update`() async throws {
        let folder = try TemporaryFolder()
        let path = folder.file("accounts.db")
        try await withStores(at: path) { stores in
            let claims: [(String, JSONObject)] = [
                ("a@b.cd", ["email": "a@b.cd", "email_verified": true]), ("c@b.cd", ["email": "c@b.cd"]),
                ("d@b.cd", ["name": "\"email_verified\":true"]),
            ]
            for (name, claims) in claims {
                try await stores[0].addUser(
                    UserRecord(name: name, key: name, hash: "x", isDisabled: false, claims: claims), at: noon)
            }
        }
        try change(path, Self.downgrades[0].1)
        try await withStores(at: path) { stores in
            let users = try await stores[0].users()
            #expect(users.map(\.name) == ["a@b.cd", "c@b.cd", "d@b.cd"])
            #expect(users.map(\.provedAt) == [noon, nil, nil])
        }
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
