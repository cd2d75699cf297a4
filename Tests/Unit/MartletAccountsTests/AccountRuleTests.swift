import MartletAccounts
import MartletCore
import MartletJSON
import MartletProvider
import MartletTesting
import Testing

// A symbolic link makes this file part of two targets: the unit tests run it on SQLite, the integration tests on
// PostgreSQL.

let noon = UnixTime(seconds: 1_800_000_000)

func identity(_ provider: String, _ subjects: String...) -> AccountIdentity {
    AccountIdentity(provider: provider, subjects: subjects)
}

extension AccountStore {
    func signIn(_ identity: AccountIdentity, keeping claims: JSONObject = [:]) async throws -> Account {
        try await signIn(identity, keeping: claims, at: noon)
    }

    func known(_ identity: AccountIdentity) async throws -> Account? { try await find(identity) }

    func isKnown(_ identity: AccountIdentity) async throws -> Bool { try await find(identity) != nil }

    func users() async throws -> [UserRecord] { try await users(after: "", onlyDisabled: false, limit: 1000) }

    func user(_ key: String) async throws -> UserRecord? { try await record(for: key) }

    func link(_ identity: AccountIdentity, to account: Account) async throws {
        try await link(identity, to: account.subject, keeping: [:], at: noon)
    }
}

/// The error code of a failing call.
func code(_ body: () async throws -> Void) async -> ErrorCode? {
    do {
        try await body()
        return nil
    } catch let error as AccountError {
        return error.code
    } catch {
        return ErrorCode(rawValue: "test.\(error)")
    }
}

@Suite(.timeLimit(.minutes(2))) struct AccountRuleTests {
    @Test func `creates an account at the first login and finds it again`() async throws {
        try await withStores { stores in
            let first = try await stores[0].signIn(identity("apple", "001"))
            #expect(first.isNew && first.storedClaims.isEmpty)
            #expect(first.subject.hasPrefix("usr_") && first.subject.utf8.count == 36)
            #expect(first.subject.dropFirst(4).utf8.allSatisfy { (97...122).contains($0) || (50...55).contains($0) })
            let again = try await stores[0].signIn(identity("apple", "001"))
            #expect(!again.isNew && again.subject == first.subject)
            #expect(try await stores[0].known(identity("apple", "001")) == again)
        }
    }

    @Test func `finds an account without creating one`() async throws {
        try await withStores { stores in
            let before = try await stores[0].known(identity("apple", "001"))
            #expect(before == nil)
            #expect(try await stores[0].signIn(identity("apple", "001")).isNew)
            let other = try await stores[0].known(identity("apple-2", "001"))
            #expect(other == nil)
        }
    }

    @Test func `distinguishes providers and subjects by their bytes`() async throws {
        try await withStores { stores in
            let texts = [
                "a", "A", "a ", "\u{E9}", "e\u{301}", "k", "\u{212A}", "'; DROP TABLE accounts; --", "$1", "?1",
            ]
            var subjects: Set<String> = []
            for provider in ["one", "One"] {
                for text in texts + [String(repeating: "x", count: 1024), "張\u{1F600}\n\t\u{7F}"] {
                    subjects.insert(try await stores[0].signIn(identity(provider, text)).subject)
                    let listed = try await stores[0].known(identity(provider, text))
                    let identities = try await stores[0].identities(of: try #require(listed).subject)
                    #expect(identities.map { $0.subjects.map { Array($0.utf8) } } == [[Array(text.utf8)]])
                }
            }
            #expect(subjects.count == 2 * (texts.count + 2))
        }
    }

    @Test func `rejects texts that a database could store differently`() async throws {
        try await withStores { stores in
            let wrong = [
                identity("apple"), identity("", "a"), identity("apple", ""), identity("apple", "a", ""),
                identity("apple", "a\0b"), identity("ap\0ple", "a"),
                identity("apple", String(repeating: "x", count: 1025)),
                AccountIdentity(provider: "apple", subjects: (0..<17).map(String.init)),
            ]
            for identity in wrong {
                #expect(await code { _ = try await stores[0].signIn(identity) } == .accountsTextInvalid)
                #expect(await code { _ = try await stores[0].find(identity) } == .accountsTextInvalid)
            }
            #expect(stores[0].health.state == .ready)
        }
    }

    @Test func `ignores duplicate subjects`() async throws {
        try await withStores { stores in
            let account = try await stores[0].signIn(identity("wechat", "a", "a", "b", "a"))
            #expect(try await stores[0].identities(of: account.subject) == [identity("wechat", "a", "b")])
        }
    }
}

@Suite(.timeLimit(.minutes(2))) struct AccountAliasTests {
    @Test func `binds new aliases of a known identity`() async throws {
        try await withStores { stores in
            let store = stores[0]
            let account = try await store.signIn(identity("wechat", "u:1", "o:ios:1"))
            #expect(try await store.signIn(identity("wechat", "u:1", "o:mini:1")).subject == account.subject)
            #expect(try await store.known(identity("wechat", "o:mini:1"))?.subject == account.subject)
            let expected = [identity("wechat", "u:1", "o:ios:1", "o:mini:1")]
            #expect(try await store.identities(of: account.subject) == expected)
        }
    }

    @Test func `promotes an identity from openid to unionid, and never back`() async throws {
        try await withStores { stores in
            let store = stores[0]
            let account = try await store.signIn(identity("wechat", "o:ios:1"))
            let promoted = try await store.signIn(identity("wechat", "u:1", "o:ios:1"))
            #expect(!promoted.isNew && promoted.subject == account.subject)
            for login in [identity("wechat", "o:ios:1"), identity("wechat", "u:1", "o:ios:1")] {
                #expect(try await store.signIn(login).subject == account.subject)
                let expected = [identity("wechat", "u:1", "o:ios:1")]
                #expect(try await store.identities(of: account.subject) == expected)
            }
        }
    }

    @Test func `an identity that matches two accounts stays with the first and logs a warning`() async throws {
        let log = LogRecorder()
        try await withStores(1, logger: Logger(log, minimum: .debug)) { stores in
            let store = stores[0]
            let first = try await store.signIn(identity("wechat", "o:ios:1"))
            let second = try await store.signIn(identity("wechat", "u:1"))
            #expect(first.subject != second.subject)
            #expect(log.lines.isEmpty)
            #expect(try await store.signIn(identity("wechat", "u:1", "o:ios:1", "o:mini:1")).subject == second.subject)
            #expect(log.lines.count == 1)
            #expect(try await store.known(identity("wechat", "o:ios:1"))?.subject == first.subject)
            #expect(try await store.known(identity("wechat", "o:mini:1"))?.subject == second.subject)
            #expect(try await store.identities(of: first.subject) == [identity("wechat", "o:ios:1")])
            #expect(try await store.identities(of: second.subject) == [identity("wechat", "u:1", "o:mini:1")])
            #expect(!log.text.contains("o:ios:1"))
        }
    }

    /// What WeChat returns in logins one after another: the app, and whether there is a unionid.
    static let orders: [[(app: String, hasUnionID: Bool)]] = [
        [("ios", true), ("ios", true), ("page", true), ("ios", true)],
        [("ios", false), ("ios", true), ("ios", false)],
        [("ios", true), ("ios", false), ("page", true), ("page", false)],
        [("ios", false), ("ios", true), ("page", true), ("ios", false), ("page", false)],
        [("ios", true), ("page", false), ("page", true), ("page", false), ("ios", true)],
        [("ios", false), ("page", true), ("ios", true), ("page", false), ("ios", false)],
        [("page", false), ("ios", false), ("page", true), ("ios", true), ("page", false), ("ios", false)],
    ]

    @Test(arguments: orders)
    func `an openid belongs to one account for good`(order: [(app: String, hasUnionID: Bool)]) async throws {
        try await withStores(1) { stores in
            var subjects: [String: Set<String>] = [:]
            for login in order {
                let openID = "o:\(login.app):1"
                let identity = AccountIdentity(
                    provider: "wechat", subjects: login.hasUnionID ? ["u:1", openID] : [openID], aliasesDecide: true)
                for _ in 0..<2 {
                    subjects[login.app, default: []].insert(try await stores[0].signIn(identity).subject)
                }
            }
            #expect(subjects.values.allSatisfy { $0.count == 1 })
            // Wherever the unionid came before the first login without it, all apps have one account.
            if order.first?.hasUnionID == true, order.first(where: { $0.app == "page" })?.hasUnionID == true {
                #expect(Set(subjects.values.flatMap(\.self)).count == 1)
            }
        }
    }

    @Test func `stores claims when first seen`() async throws {
        try await withStores { stores in
            let store = stores[0]
            let person = identity("apple", "001")
            _ = try await store.signIn(person, keeping: ["name": "Ada \"\u{0}\u{1F600}"])
            let again = try await store.signIn(
                person, keeping: ["name": "Eve", "city": "London", "n": [1, true, nil]])
            let stored: JSONObject = ["name": "Ada \"\u{0}\u{1F600}", "city": "London", "n": [1, true, nil]]
            #expect(again.storedClaims == stored)
            #expect(try await store.signIn(person, keeping: ["city": "Paris"]).storedClaims == stored)
            #expect(try await store.known(person)?.storedClaims == stored)
        }
    }

    @Test func `does not store a claim that exceeds the limit`() async throws {
        try await withStores { stores in
            let store = stores[0]
            let person = identity("apple", "001")
            let long = JSONValue.string(String(repeating: "x", count: 17_000))
            var deep: JSONValue = []
            for _ in 0..<20 { deep = [deep] }
            let account = try await store.signIn(person, keeping: ["long": long, "deep": deep, "name": "Ada"])
            #expect(account.storedClaims == ["name": "Ada"])
            #expect(try await store.signIn(person, keeping: ["long": long]).storedClaims == ["name": "Ada"])
        }
    }
}
