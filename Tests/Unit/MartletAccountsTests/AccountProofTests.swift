import MartletAccounts
import MartletCore
import MartletEvents
import MartletJSON
import MartletProvider
import MartletTesting
import Testing

// Part of two targets, like AccountRuleTests.

private let address = "ada@example.com"

private func link(_ purpose: PasswordLinkPurpose, _ digest: String) -> PasswordLinkRequest {
    PasswordLinkRequest(
        purpose, provider: "password", address: address, digest: digest,
        mails: PasswordLinkRequest.Mails(user: ["for": "user"], other: ["for": "other"]),
        from: PasswordLinkRequest.Origin(network: digest, neighborhood: nil))
}

/// A user whom a stranger has made, with an account that has the stranger's identity.
private func occupy(_ store: AccountStore) async throws -> Account {
    try await store.addUser(UserRecord(name: address, key: address, hash: "$stranger", isDisabled: false), at: noon)
    let account = try await store.signIn(identity("password", address))
    try await store.link(identity("apple", "stranger"), to: account)
    return account
}

/// The proof by a reset.
private func prove(_ store: AccountStore, _ digest: String = "d1") async throws -> AddressProof? {
    _ = try await store.request(link(.reset, digest), at: noon)
    return try await store.reset(with: digest, to: "$owner \(digest)", at: ["password", "other"], now: noon)
}

/// The second of the clock by which the stores date what leaves an account.
private var second: Int64 { Clock.system.unixTime.seconds }

@Suite(.timeLimit(.minutes(2))) struct AccountProofTests {
    @Test func `the first proof takes identities and keys, and later ones nothing`() async throws {
        try await withStores { stores in
            let store = stores[0]
            store.subscribe(
                EventSubscriptions([.init(hook: "all", patterns: [try #require(EventPattern("*"))])]))
            let account = try await occupy(store)
            for (provider, id) in [("keys", "a"), ("keys", "b"), ("more", "c")] {
                #expect(try await store.keys(of: provider).add(.sample(id, of: account.subject, isAccount: true)))
            }
            #expect(try await store.keys(of: "keys").add(.sample("d", of: account.subject, isAccount: false)))
            var patch = ProfilePatch()
            patch.set(name: "Stranger")
            _ = try await store.changeProfile(of: account.subject, by: patch)
            let first = try #require(try await prove(store))
            #expect(first.user == address && first.isFirst && first.accounts.map(\.subject) == [account.subject])
            #expect(first.accounts.first?.identities == ["apple"] && first.accounts.first?.keys == ["a", "b", "c"])
            #expect(first.jobs.map(\.kind) == [.endSessions] && first.jobs.first?.provider.isEmpty == true)
            #expect(try await store.known(identity("password", address))?.subject == account.subject)
            #expect(try await !store.isKnown(identity("apple", "stranger")))
            for (provider, id) in [("keys", "a"), ("keys", "b"), ("more", "c")] {
                #expect(try await store.keys(of: provider).key(id)?.revokedAt == noon)
            }
            #expect(try await store.keys(of: "keys").key("d")?.revokedAt == nil)
            let changes = try await store.keys(of: "keys").changes(since: 3)
            #expect(changes.keys.map(\.id) == ["a", "b"], "every gateway learns of it")
            #expect(try await store.profile(of: account.subject).isEmpty)
            let user = try #require(try await store.record(for: address))
            #expect(user.hash == "$owner d1" && user.provedAt == noon)
            #expect(user.claims == ["email": .string(address), "email_verified": true])
            let events = try await store.entries(to: nil, in: nil, from: 0, limit: 100).entries.map(\.event)
            #expect(events.map(\.type) == [.accountCreated, .identityLinked, .identityUnlinked, .accountReclaimed])
            #expect(events.last?.data == ["identities": ["apple"], "keys": ["a", "b", "c"]])

            try await store.link(identity("apple", "owner"), to: account)
            let second = try #require(try await prove(store, "d2"))
            #expect(!second.isFirst && second.accounts.first?.identities == [] && second.jobs.count == 1)
            #expect(try await store.isKnown(identity("apple", "owner")))
        }
    }

    @Test func `a notice lists what was taken`() async throws {
        try await withStores { stores in
            let store = stores[0]
            store.subscribe(
                EventSubscriptions([.init(hook: "mails", patterns: [try #require(EventPattern("mail.*"))])]))
            _ = try await occupy(store)
            _ = try #require(try await prove(store))
            let mails = try await store.entries(to: nil, in: nil, from: 0, limit: 100).entries.map(\.event.data)
            let notice = try #require(mails.last.flatMap { MailRequest($0) })
            #expect(notice.template == .accountReclaimed && notice.address == address && notice.removed == ["apple"])
        }
    }

    @Test func `nothing is taken where an operator vouches for the address`() async throws {
        try await withStores { stores in
            let store = stores[0]
            _ = try await occupy(store)
            try await store.setProved(address, at: noon)
            #expect(try await prove(store)?.isFirst == false)
            #expect(try await store.isKnown(identity("apple", "stranger")))
        }
    }

    @Test func `a registration proves an account that is older than its user`() async throws {
        try await withStores { stores in
            let store = stores[0]
            let account = try await store.signIn(identity("password", address))
            try await store.link(identity("apple", "stranger"), to: account)
            _ = try await store.request(link(.registration, "d1"), at: noon)
            let proof = try await store.register(with: "d1", password: "$owner", at: ["password"], now: noon)
            #expect(proof?.isFirst == true && proof?.accounts.first?.identities == ["apple"])
            #expect(try await store.record(for: address)?.provedAt == noon)
        }
    }

    @Test func `a link for a session that is older than the proof binds nothing`() async throws {
        try await withStores { stores in
            let store = stores[0]
            let account = try await occupy(store)
            _ = try #require(try await prove(store))
            let now = second
            for (start, expected) in [(now - 1, ErrorCode.accountsReclaimed), (now + 2, nil)] as [(Int64, ErrorCode?)] {
                let reason = await code {
                    try await store.link(
                        identity("apple", "stranger"), to: account.subject,
                        askedBySessionOf: UnixTime(seconds: start), keeping: [:], at: noon)
                }
                #expect(reason == expected, "\(start)")
            }
        }
    }

    @Test func `of links and keys that race with the proof nothing stays that began before it`() async throws {
        try await withStores(2) { stores in
            let account = try await occupy(stores[0])
            _ = try await stores[0].request(link(.reset, "d1"), at: noon)
            let proofs = try await together(6) { index -> AddressProof? in
                let store = stores[index % 2]
                guard index > 1 else {
                    return try await store.reset(with: "d1", to: "$\(index)", at: ["password"], now: noon)
                }
                do throws(AccountError) {
                    try await store.link(
                        identity("p\(index)", "stranger"), to: account.subject,
                        askedBySessionOf: UnixTime(seconds: second - 5), keeping: [:], at: noon)
                } catch {
                    #expect(error.code == .accountsReclaimed)
                }
                return nil
            }
            #expect(proofs.compactMap(\.self).count == 1)
            #expect(try await stores[0].identities(of: account.subject).map(\.provider) == ["password"])
        }
    }

    @Test func `a credential that is not newer makes no account`() async throws {
        try await withStores { stores in
            let store = stores[0]
            let account = try await store.signIn(identity("apple", "1", "alias"))
            try await store.link(identity("password", "ada"), to: account)
            _ = try await store.unlink(provider: "apple", from: account.subject)
            let departed = second
            for subject in ["1", "alias"] {
                for issuedAt in [departed - 10, departed - 1] {
                    let reason = await code {
                        _ = try await store.signIn(
                            identity("apple", subject), keeping: [:], setting: [:],
                            issuedAt: UnixTime(seconds: issuedAt), at: noon)
                    }
                    #expect(reason == .identityDeparted)
                }
            }
            let new = try await store.signIn(
                identity("apple", "1", "alias"), keeping: [:], setting: [:], issuedAt: UnixTime(seconds: departed + 2),
                at: noon)
            #expect(new.isNew && new.subject != account.subject)
            // Nor does it lead to the account that the user has made since.
            for subject in ["1", "alias"] {
                let known = try #require(try await store.find(identity("apple", subject)))
                #expect(known.isRevoked(issuedAt: UnixTime(seconds: departed - 1)))
                #expect(!known.isRevoked(issuedAt: UnixTime(seconds: departed + 2)))
            }
        }
    }
}

extension APIKeyRecord {
    fileprivate static func sample(_ id: String, of subject: String, isAccount: Bool) -> APIKeyRecord {
        APIKeyRecord(
            id: id, digest: [UInt8](repeating: 1, count: 32), subject: subject, isAccount: isAccount, claims: [:],
            scopes: [], createdAt: noon, expiresAt: nil)
    }
}
