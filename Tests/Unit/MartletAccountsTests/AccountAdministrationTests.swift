import MartletAccounts
import MartletCore
import MartletJSON
import MartletProvider
import MartletTesting
import Testing

// Part of two targets, like AccountRuleTests.

@Suite(.timeLimit(.minutes(2))) struct AccountAdministrationTests {
    @Test func `shows an account`() async throws {
        try await withStores { stores in
            let ada = try await stores[0].signIn(identity("apple", "001"), keeping: ["name": "Ada"])
            let record = try await stores[0].account(ada.subject)
            #expect(
                record
                    == AccountRecord(
                        subject: ada.subject, createdAt: noon, disabledAt: nil, storedClaims: ["name": "Ada"]))
            for unknown in ["usr_nobody", "", "a\0b"] { #expect(try await stores[0].account(unknown) == nil) }
        }
    }

    @Test func `disables an account and enables it again`() async throws {
        try await withStores(2) { stores in
            let ada = try await stores[0].signIn(identity("apple", "001"))
            try await stores[0].link(identity("wechat", "u:1"), to: ada)
            let eve = try await stores[0].signIn(identity("apple", "002"))
            #expect(!ada.isDisabled)
            try await stores[0].setDisabled(account: ada.subject, at: noon)
            for person in [identity("apple", "001"), identity("wechat", "u:1"), identity("wechat", "u:1", "o:1")] {
                #expect(try await stores[1].signIn(person).isDisabled)
                #expect(try await stores[1].known(person)?.isDisabled == true)
            }
            #expect(try await !stores[1].signIn(identity("apple", "002")).isDisabled)
            #expect(try await stores[1].account(ada.subject)?.disabledAt == noon)
            #expect(try await stores[1].account(eve.subject)?.disabledAt == nil)
            try await stores[1].setDisabled(account: ada.subject, at: nil)
            #expect(try await !stores[0].signIn(identity("apple", "001")).isDisabled)
        }
    }

    @Test func `a disabled account is published with its claims, by a job that stays until then`() async throws {
        try await withStores(2) { stores in
            let ada = try await stores[0].signIn(identity("apple", "001"))
            #expect(try await stores[0].claims(of: ada.subject) == .none)
            let jobs = try await stores[0].setDisabled(account: ada.subject, at: noon)
            #expect(jobs.map(\.kind) == [.publishClaims] && jobs.first?.account == ada.subject)
            let disabled = try await stores[1].claims(of: ada.subject)
            #expect(disabled == VersionedClaims(version: 1, claims: AccountClaims(), isDisabled: true))
            // Once more: gateways that missed it get it, and it stays the time of the first.
            try await stores[1].setDisabled(account: ada.subject, at: noon.advanced(bySeconds: 60))
            #expect(try await stores[0].claims(of: ada.subject).version == 2)
            #expect(try await stores[0].account(ada.subject)?.disabledAt == noon)
            try await stores[0].changeClaims(of: ada.subject, by: ClaimPatch(["role": "staff"]))
            #expect(try await stores[1].claims(of: ada.subject).isDisabled)
            try await stores[0].setDisabled(account: ada.subject, at: nil)
            let enabled = try await stores[1].claims(of: ada.subject)
            #expect(enabled.version == 4 && !enabled.isDisabled && enabled.claims.account == ["role": "staff"])
            for job in jobs { try await stores[0].life.finish(job) }
            let due = try await stores[1].life.dueJobs(at: .max, limit: 9)
            #expect(due.map(\.kind) == [.publishClaims, .publishClaims])
        }
    }

    @Test func `disables no account that does not exist`() async throws {
        try await withStores { stores in
            for unknown in ["usr_nobody", "", "a\0b"] {
                #expect(
                    await code { try await stores[0].setDisabled(account: unknown, at: noon) }
                        == .accountsUnknownAccount)
            }
        }
    }

    @Test func `lists accounts in pages, by subject`() async throws {
        try await withStores { stores in
            let store = stores[0]
            var subjects: [String] = []
            for number in 0..<7 { subjects.append(try await store.signIn(identity("apple", "\(number)")).subject) }
            subjects.sort()
            for limit in [1, 3, 7, 8] {
                var (found, start): ([String], String?) = ([], "")
                while let position = start {
                    let page = try await store.accounts(from: position, AccountFilter(), limit: limit)
                    found += page.accounts.map(\.subject)
                    start = page.next
                }
                #expect(found == subjects)
            }
            try await store.setDisabled(account: subjects[4], at: noon)
            let disabled = try await store.accounts(
                from: "", AccountFilter(onlyDisabled: true), limit: 10)
            #expect(disabled.accounts.map(\.subject) == [subjects[4]] && disabled.next == nil)
        }
    }
}
