import MartletAccounts
import MartletCore
import MartletJSON
import MartletProvider
import MartletTesting
import Testing

// Part of two targets, like AccountRuleTests.

@Suite(.timeLimit(.minutes(2))) struct AccountKeyTests {
    private static let digest = [UInt8](repeating: 0xAB, count: 32)
    private static let other = [UInt8](repeating: 0x01, count: 32)

    private func key(
        _ id: String, subject: String = "billing", isAccount: Bool = false, expiresAt: UnixTime? = nil
    ) -> APIKeyRecord {
        APIKeyRecord(
            id: id, digest: Self.digest, subject: subject, isAccount: isAccount, claims: ["role": "partner"],
            scopes: ["read", "write"], createdAt: noon, expiresAt: expiresAt)
    }

    private func later(_ seconds: Int64) -> UnixTime { noon.advanced(bySeconds: seconds) }

    @Test func `stores keys of each provider apart, in the order of their ids`() async throws {
        try await withStores { stores in
            let (keys, others) = (stores[0].keys(of: "partners"), stores[0].keys(of: "devices"))
            // Beyond 2038, which does not fit into 32 bits.
            let ends = UnixTime(seconds: 4_000_000_000)
            for id in ["b", "a", "c"] { #expect(try await keys.add(key(id, expiresAt: ends))) }
            #expect(try await others.add(key("a", subject: "scale", isAccount: true)))
            let found = try await keys.key("a")
            #expect(found == key("a", expiresAt: ends))
            #expect(try await others.key("a") == key("a", subject: "scale", isAccount: true))
            for id in ["A", "", "a\0", "d"] { #expect(try await keys.key(id) == nil) }
            #expect(try await keys.keys(after: "", limit: 2).map(\.id) == ["a", "b"])
            #expect(try await keys.keys(after: "b", limit: 2).map(\.id) == ["c"])
            #expect(try await keys.keys(after: "\0", limit: 2).isEmpty)
        }
    }

    @Test func `adds an id once`() async throws {
        try await withStores(2) { stores in
            let done = try await together(10) { index in
                try await stores[index % 2].keys(of: "partners").add(key("a", subject: "\(index)"))
            }
            #expect(done.count { $0 } == 1)
            await #expect(throws: StoreError.self) {
                try await stores[0].keys(of: "partners").add(key("b", subject: ""))
            }
        }
    }

    @Test func `revokes once`() async throws {
        try await withStores { stores in
            let keys = stores[0].keys(of: "partners")
            _ = try await keys.add(key("a"))
            #expect(try await keys.revoke("a", at: later(1))?.revokedAt == later(1))
            #expect(try await keys.revoke("a", at: later(2))?.revokedAt == later(1))
            #expect(try await keys.revoke("b", at: later(1)) == nil)
            #expect(try await keys.rotate("a", to: Self.other, acceptingPreviousUntil: nil, at: later(3)) == nil)
        }
    }

    @Test func `rotates with and without a grace period`() async throws {
        try await withStores { stores in
            let keys = stores[0].keys(of: "partners")
            _ = try await keys.add(key("a"))
            let ends = UnixTime(seconds: 4_000_000_000)
            let first = try #require(
                try await keys.rotate("a", to: Self.other, acceptingPreviousUntil: ends, at: later(1)))
            #expect(first.digest == Self.other && first.rotatedAt == later(1))
            #expect(first.previous == APIKeyRecord.Previous(digest: Self.digest, endsAt: ends))
            #expect(try await keys.key("a") == first)
            let second = try await keys.rotate("a", to: Self.digest, acceptingPreviousUntil: nil, at: later(2))
            #expect(second?.digest == Self.digest && second?.previous == nil)
            #expect(try await keys.rotate("b", to: Self.other, acceptingPreviousUntil: nil, at: later(1)) == nil)
        }
    }

    @Test func `notes the latest use, which is no change`() async throws {
        try await withStores { stores in
            let keys = stores[0].keys(of: "partners")
            for id in ["a", "b"] { _ = try await keys.add(key(id)) }
            let version = try await keys.changes(since: nil).version
            try await keys.noteUses([("b", later(5)), ("a", later(9)), ("c", later(1)), ("\0", later(1))])
            try await keys.noteUses([("a", later(2))])
            #expect(try await keys.keys(after: "", limit: 9).map(\.lastUsedAt) == [later(9), later(5)])
            try await keys.noteUses((0..<450).map { ("a", later(Int64(20 + $0))) })
            #expect(try await keys.key("a")?.lastUsedAt == later(469))
            let changes = try await keys.changes(since: version)
            #expect(changes.keys.isEmpty && changes.version == version && changes.isComplete)
        }
    }

    @Test func `lists what has changed since a version`() async throws {
        try await withStores { stores in
            let (keys, others) = (stores[0].keys(of: "partners"), stores[0].keys(of: "devices"))
            #expect(try await keys.changes(since: nil).version == 0)
            for id in ["a", "b", "c"] { _ = try await keys.add(key(id)) }
            _ = try await others.add(key("d"))
            let start = try await keys.changes(since: nil)
            #expect(start.keys.isEmpty && start.version == 3)
            _ = try await keys.revoke("b", at: later(1))
            _ = try await keys.rotate("a", to: Self.other, acceptingPreviousUntil: nil, at: later(2))
            // Nothing has changed.
            _ = try await keys.revoke("b", at: later(3))
            _ = try await keys.add(key("c", subject: "thief"))
            let changes = try await keys.changes(since: start.version)
            #expect(changes.keys.map(\.id) == ["b", "a"] && changes.isComplete)
            #expect(changes.keys.first?.revokedAt == later(1))
            let next = try await keys.changes(since: changes.version)
            #expect(next.keys.isEmpty && next.version == changes.version)
            // A store that was restored has an older version.
            #expect(try await keys.changes(since: changes.version + 10).version == changes.version)
        }
    }

    @Test func `no change is missed by a reader beside many writers`() async throws {
        try await withStores(3) { stores in
            let reader = stores[0].keys(of: "partners")
            let writing = Task {
                try await together(60) { index in
                    try await stores[1 + index % 2].keys(of: "partners").add(key("k\(index)"))
                }
            }
            var (seen, version): (Set<String>, Int64) = ([], 0)
            for _ in 0..<2000 where seen.count < 60 {
                let changes = try await reader.changes(since: version)
                seen.formUnion(changes.keys.map(\.id))
                #expect(changes.version >= version)
                version = changes.version
            }
            _ = try await writing.value
            let rest = try await reader.changes(since: version)
            #expect(seen.union(rest.keys.map(\.id)).count == 60 && version <= 60)
        }
    }

    @Test func `are void and say nothing any more when their account is deleted`() async throws {
        try await withStores { stores in
            let (store, keys) = (stores[0], stores[0].keys(of: "partners"))
            let account = try await store.signIn(identity("apple", "001"))
            for (id, isAccount) in [("a", true), ("b", false)] {
                _ = try await keys.add(key(id, subject: account.subject, isAccount: isAccount))
            }
            _ = try await keys.revoke("a", at: later(1))
            let policy = DeletionPolicy()
            let requested = try await store.life.requestDeletion(
                of: account.subject, reason: "user", policy, at: noon.milliseconds)
            #expect(try await keys.key("a")?.claims == ["role": "partner"])
            try await store.life.deleteAccount(try #require(requested.last), policy, at: noon.milliseconds)
            let erased = try #require(try await keys.key("a"))
            #expect(erased.digest.isEmpty && erased.claims.isEmpty && erased.scopes.isEmpty)
            #expect(erased.subject == account.subject && erased.revokedAt == later(1))
            // Not the key of an account: the subject only looks like one.
            #expect(try await keys.key("b") == key("b", subject: account.subject))
        }
    }

    @Test func `pages of changes go on where the one before ended`() async throws {
        try await withStores { stores in
            let keys = stores[0].keys(of: "partners")
            for index in 0..<501 { _ = try await keys.add(key("k\(index)")) }
            let first = try await keys.changes(since: 0)
            #expect(first.keys.count == 500 && !first.isComplete && first.version == 500)
            let second = try await keys.changes(since: first.version)
            #expect(second.keys.map(\.id) == ["k500"] && second.isComplete && second.version == 501)
        }
    }
}
