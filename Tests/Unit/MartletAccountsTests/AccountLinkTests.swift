import MartletAccounts
import MartletCore
import MartletJSON
import MartletTesting
import Testing

// Part of two targets, like AccountRuleTests.

@Suite(.timeLimit(.minutes(2))) struct AccountLinkTests {
    @Test func `binds a second identity to an account idempotently`() async throws {
        try await withStores { stores in
            let store = stores[0]
            let account = try await store.signIn(identity("apple", "001"), keeping: ["name": "Ada"])
            for _ in 0..<2 {
                try await store.link(
                    identity("wechat", "u:1"), to: account.subject, keeping: ["name": "Eve", "nick": "a"], at: noon)
            }
            try await store.link(identity("wechat", "u:1", "o:1"), to: account)
            let found = try await store.signIn(identity("wechat", "o:1"))
            #expect(found.subject == account.subject && !found.isNew)
            #expect(found.storedClaims == ["name": "Ada", "nick": "a"])
            let identities = try await store.identities(of: account.subject)
            #expect(
                identities.sorted { $0.provider < $1.provider } == [
                    identity("apple", "001"), identity("wechat", "u:1", "o:1"),
                ])
        }
    }

    @Test func `rejects an identity that is bound to another account`() async throws {
        try await withStores { stores in
            let store = stores[0]
            let ada = try await store.signIn(identity("apple", "001"))
            let eve = try await store.signIn(identity("wechat", "u:1"))
            #expect(await code { try await store.link(identity("wechat", "u:1"), to: ada) } == .accountsBoundElsewhere)
            #expect(
                await code { try await store.link(identity("wechat", "u:2", "u:1"), to: ada) }
                    == .accountsBoundElsewhere)
            #expect(try await store.identities(of: ada.subject) == [identity("apple", "001")])
            #expect(try await store.identities(of: eve.subject) == [identity("wechat", "u:1")])
            #expect(try await store.known(identity("wechat", "u:2")) == nil)
        }
    }

    @Test func `limits an account to one identity of each provider`() async throws {
        try await withStores { stores in
            let store = stores[0]
            let ada = try await store.signIn(identity("apple", "001"))
            #expect(await code { try await store.link(identity("apple", "002"), to: ada) } == .accountsProviderTaken)
            #expect(try await store.known(identity("apple", "002")) == nil)
        }
    }

    @Test func `binds nothing to an unknown account`() async throws {
        try await withStores { stores in
            for subject in ["usr_nobody", "", "a\0b"] {
                let failure = await code {
                    try await stores[0].link(identity("apple", "1"), to: subject, keeping: [:], at: noon)
                }
                #expect(failure == .accountsUnknownAccount)
            }
            let none = try await stores[0].known(identity("apple", "1"))
            #expect(none == nil)
        }
    }

    @Test func `unbinds an identity and returns it`() async throws {
        try await withStores { stores in
            let store = stores[0]
            let ada = try await store.signIn(identity("apple", "001"))
            try await store.link(identity("wechat", "u:1", "o:1", "o:2"), to: ada)
            let gone = try await store.unlink(provider: "wechat", from: ada.subject)
            #expect(gone == identity("wechat", "u:1", "o:1", "o:2"))
            #expect(try await store.identities(of: ada.subject) == [identity("apple", "001")])
            for subject in ["u:1", "o:1", "o:2"] {
                #expect(try await store.known(identity("wechat", subject)) == nil)
            }
            let fresh = try await store.signIn(identity("wechat", "o:1"))
            #expect(fresh.isNew && fresh.subject != ada.subject)
        }
    }

    @Test func `unbinds neither the last identity nor an unbound one`() async throws {
        try await withStores { stores in
            let store = stores[0]
            let ada = try await store.signIn(identity("apple", "001"))
            let unlink = { (provider: String, subject: String) in
                await code { _ = try await store.unlink(provider: provider, from: subject) }
            }
            #expect(await unlink("apple", ada.subject) == .accountsLastIdentity)
            #expect(await unlink("wechat", ada.subject) == .accountsNotLinked)
            #expect(await unlink("", ada.subject) == .accountsNotLinked)
            #expect(await unlink("apple", "usr_nobody") == .accountsUnknownAccount)
            #expect(await unlink("apple", "a\0") == .accountsUnknownAccount)
            #expect(try await store.identities(of: ada.subject) == [identity("apple", "001")])
            #expect(try await store.identities(of: "usr_nobody").isEmpty)
        }
    }

    @Test func `lists the times of linking and last login`() async throws {
        try await withStores { stores in
            let store = stores[0]
            let account = try await store.signIn(identity("wechat", "u1", "o1"))
            try await store.link(identity("apple", "001"), to: account)
            let linked = ["wechat", "apple"].map { LinkedIdentity(provider: $0, linkedAt: noon, lastLoginAt: nil) }
            let before = try await store.linkedIdentities(of: account.subject)
            #expect(Set(before.map(\.provider)) == ["wechat", "apple"] && before.count == linked.count)
            #expect(before.allSatisfy { $0.linkedAt == noon && $0.lastLoginAt == nil })
            for seconds in [1_800_000_060, 1_800_000_030] as [Int64] {
                try await store.noteLogin(of: account.subject, with: "apple", at: UnixTime(seconds: seconds))
            }
            try await store.noteLogin(of: account.subject, with: "password", at: noon)
            try await store.noteLogin(of: "usr_nobody", with: "apple", at: noon)
            try await store.noteLogin(of: "", with: "", at: noon)
            let after = try await store.linkedIdentities(of: account.subject)
            #expect(after.first { $0.provider == "apple" }?.lastLoginAt == UnixTime(seconds: 1_800_000_060))
            #expect(after.first { $0.provider == "wechat" }?.lastLoginAt == nil)
            for unknown in ["usr_nobody", "", "a\u{0}b"] {
                #expect(try await store.linkedIdentities(of: unknown).isEmpty)
            }
        }
    }
}
