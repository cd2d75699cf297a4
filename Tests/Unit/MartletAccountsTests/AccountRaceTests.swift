import MartletAccounts
import MartletCore
import MartletJSON
import MartletTesting
import Testing

// Part of two targets, like AccountRuleTests.

@Suite(.timeLimit(.minutes(2))) struct AccountRaceTests {
    @Test func `fifty first logins of one identity make one account`() async throws {
        try await withStores(2) { stores in
            let accounts = try await together(50) { index in
                try await stores[index % 2].signIn(identity("apple", "001"), keeping: ["name": "Ada"])
            }
            #expect(Set(accounts.map(\.subject)).count == 1)
            #expect(accounts.count { $0.isNew } == 1)
            #expect(accounts.allSatisfy { $0.storedClaims == ["name": "Ada"] })
        }
    }

    @Test func `first logins under aliases in any order make one account`() async throws {
        try await withStores(2) { stores in
            let accounts = try await together(30) { index in
                let aliases = ["o:\(index % 5)", "o:\((index + 1) % 5)"]
                return try await stores[index % 2].signIn(
                    AccountIdentity(
                        provider: "wechat", subjects: ["u:1"] + (index % 2 == 0 ? aliases : aliases.reversed())))
            }
            let subject = try #require(accounts.first).subject
            #expect(accounts.allSatisfy { $0.subject == subject })
            let subjects = try await stores[0].identities(of: subject).flatMap(\.subjects)
            #expect(subjects.first == "u:1" && subjects.dropFirst().sorted() == (0..<5).map { "o:\($0)" })
        }
    }

    @Test func `only one of several identities of a provider is bound`() async throws {
        try await withStores(2) { stores in
            for round in 0..<5 {
                let account = try await stores[0].signIn(identity("apple", "\(round)"))
                let codes = try await together(8) { index in
                    await code {
                        try await stores[index % 2].link(identity("wechat", "\(round).\(index)"), to: account)
                    }
                }
                #expect(codes.count { $0 == nil } == 1)
                #expect(codes.count { $0 == .accountsProviderTaken } == 7)
                #expect(try await stores[0].identities(of: account.subject).count == 2)
            }
        }
    }

    @Test func `an identity is bound to one of several competing accounts`() async throws {
        try await withStores(2) { stores in
            for round in 0..<5 {
                let accounts = [
                    try await stores[0].signIn(identity("apple", "a\(round)")),
                    try await stores[0].signIn(identity("apple", "b\(round)")),
                ]
                let codes = try await together(8) { index in
                    await code {
                        try await stores[index / 4].link(identity("wechat", "\(round)"), to: accounts[index % 2])
                    }
                }
                #expect(codes.count { $0 == nil } == 4)
                #expect(codes.count { $0 == .accountsBoundElsewhere } == 4)
            }
        }
    }

    @Test func `unbinding everything concurrently leaves one identity`() async throws {
        try await withStores(2) { stores in
            for round in 0..<5 {
                let account = try await stores[0].signIn(identity("apple", "\(round)"))
                try await stores[0].link(identity("wechat", "\(round)"), to: account)
                try await stores[0].link(identity("password", "\(round)"), to: account)
                let codes = try await together(3) { index in
                    let provider = ["apple", "wechat", "password"][index]
                    return await code {
                        _ = try await stores[index % 2].unlink(provider: provider, from: account.subject)
                    }
                }
                #expect(codes.count { $0 == nil } == 2)
                #expect(codes.count { $0 == .accountsLastIdentity } == 1)
                #expect(try await stores[0].identities(of: account.subject).count == 1)
            }
        }
    }

    @Test func `concurrent logins, links and unlinks leave every account whole`() async throws {
        try await withStores(2) { stores in
            let accounts = try await together(4) { index in
                try await stores[index % 2].signIn(identity("apple", "\(index)"))
            }
            _ = try await together(120) { index in
                let (store, account) = (stores[index % 2], accounts[index / 3 % 4])
                let person = identity("wechat", "u:\(index / 3 % 4)", "o:\(index % 7):\(index / 3 % 4)")
                return await code {
                    switch index % 3 {
                    case 0: try await store.link(person, to: account)
                    case 1: _ = try await store.signIn(person)
                    default: _ = try await store.unlink(provider: "wechat", from: account.subject)
                    }
                }
            }.map { code in
                // On a busy machine some calls time out; the checks below still hold.
                let allowed: [ErrorCode?] = [
                    nil, .accountsBoundElsewhere, .accountsNotLinked, .accountsProviderTaken, .accountsBusy,
                    .accountsTimeout,
                ]
                #expect(allowed.contains(code), "\(String(describing: code))")
            }
            for account in accounts {
                let identities = try await stores[0].identities(of: account.subject)
                #expect((1...2).contains(identities.count) && identities.contains { $0.provider == "apple" })
            }
        }
    }
}

/// Runs the body concurrently `count` times.
func together<Value: Sendable>(
    _ count: Int, _ body: @escaping @Sendable (Int) async throws -> Value
) async throws -> [Value] {
    try await withThrowingTaskGroup(of: Value.self) { group in
        for index in 0..<count { group.addTask { try await body(index) } }
        var values: [Value] = []
        for try await value in group { values.append(value) }
        return values
    }
}
