import MartletAccounts
import MartletCore
import MartletProvider
import MartletTesting
import Testing

// Part of two targets, like AccountRuleTests.

@Suite(.timeLimit(.minutes(2))) struct AccountUserTests {
    private func user(_ key: String, hash: String = "$argon2id$x") -> UserRecord {
        UserRecord(name: key.uppercased(), key: key, hash: hash, isDisabled: false)
    }

    @Test func `stores users by their canonical names`() async throws {
        try await withStores { stores in
            let store = stores[0]
            for key in ["bob", "alice", "张三", "z"] { try await store.addUser(user(key), at: noon) }
            #expect(try await store.users().map(\.key) == ["alice", "bob", "z", "张三"])
            #expect(try await store.record(for: "alice") == user("alice"))
            for key in ["Alice", "", "a\0", "nobody"] { #expect(try await store.user(key) == nil) }
        }
    }

    @Test func `adds a user once`() async throws {
        try await withStores(2) { stores in
            let codes = try await together(10) { index in
                await code { try await stores[index % 2].addUser(user("alice", hash: "\(index)"), at: noon) }
            }
            #expect(codes.count { $0 == nil } == 1)
            #expect(codes.count { $0 == .accountsDuplicateUser } == 9)
            #expect(stores.allSatisfy { $0.health.state == .ready })
        }
    }

    @Test func `rejects users that cannot be stored unchanged`() async throws {
        try await withStores { stores in
            let wrong = [user(""), user("a\0"), user("a", hash: ""), user(String(repeating: "x", count: 1025))]
            for record in wrong {
                #expect(await code { try await stores[0].addUser(record, at: noon) } == .accountsTextInvalid)
            }
        }
    }

    @Test func `sets a hash, or replaces an expected one`() async throws {
        try await withStores { stores in
            let store = stores[0]
            try await store.addUser(user("alice", hash: "1"), at: noon)
            try await store.setHash(of: "alice", to: "2")
            #expect(try await store.replaceHash(of: "alice", from: "1", to: "3") == false)
            #expect(try await store.replaceHash(of: "alice", from: "2", to: "3"))
            #expect(try await store.record(for: "alice")?.hash == "3")
            #expect(try await store.replaceHash(of: "nobody", from: "2", to: "3") == false)
            #expect(await code { try await store.setHash(of: "nobody", to: "2") } == .accountsUnknownUser)
            #expect(await code { try await store.setHash(of: "alice", to: "") } == .accountsTextInvalid)
        }
    }

    @Test func `only one of many concurrent calls replaces a hash`() async throws {
        try await withStores(2) { stores in
            try await stores[0].addUser(user("alice", hash: "old"), at: noon)
            let done = try await together(10) { index in
                try await stores[index % 2].replaceHash(of: "alice", from: "old", to: "new \(index)")
            }
            #expect(done.count { $0 } == 1)
        }
    }

    @Test func `disables, enables and removes`() async throws {
        try await withStores { stores in
            let store = stores[0]
            try await store.addUser(user("alice"), at: noon)
            for isDisabled in [true, false] {
                try await store.setDisabled("alice", isDisabled)
                #expect(try await store.record(for: "alice")?.isDisabled == isDisabled)
            }
            #expect(await code { try await store.setDisabled("nobody", true) } == .accountsUnknownUser)
            #expect(try await store.removeRecord(for: "alice"))
            #expect(try await store.removeRecord(for: "alice") == false)
            #expect(try await store.user("alice") == nil)
            #expect(try await store.users().isEmpty)
        }
    }
}
