import MartletAccounts
import MartletCore
import MartletEvents
import MartletJSON
import MartletProvider
import MartletTesting
import Testing

// Part of two targets, like AccountRuleTests.

private let oldTeam = "OLDTEAM123"
private let newTeam = "NEWTEAM123"

private func transfer(_ name: String = "way-1", to team: String = newTeam) -> IdentityTransfer {
    IdentityTransfer(transferSubject: name, fromTeam: oldTeam, toTeam: team)
}

private func subscribe(_ store: any OutboxStoring) throws {
    let pattern = try #require(EventPattern("identity.*"))
    store.subscribe(EventSubscriptions([EventSubscriptions.Subscriber(hook: "all", patterns: [pattern])]))
}

private func events(_ store: any OutboxStoring) async throws -> [Event] {
    try await store.entries(to: "all", in: nil, from: 0, limit: 100).entries.map(\.event)
}

extension IdentityTransferStore {
    fileprivate func all(to team: String? = nil) async throws -> [TransferableIdentity] {
        try await transferableIdentities(of: "apple", to: team, after: "", limit: 1000)
    }

    fileprivate func only() async throws -> TransferableIdentity {
        let list = try await all()
        return try #require(list.first)
    }

    fileprivate func rekey(to subject: String, _ transfer: IdentityTransfer = transfer()) async throws -> RekeyOutcome {
        try await rekey(transfer, of: "apple", to: subject, at: noon.milliseconds)
    }
}

private func login(_ subject: String, grant: String? = nil, at now: UnixTime = noon) -> ConfirmedLogin {
    ConfirmedLogin(
        identity: identity("apple", subject), issuedAt: now, confirmedAt: now, now: now,
        grant: grant.map { SealedGrant(client: "com.example.app", keyID: "k1", token: $0) }, nextCheck: 5)
}

@Suite(.timeLimit(.minutes(2))) struct AccountTransferTests {
    /// A store with one exported identity.
    private func withExported(
        _ body: (AccountStore, Account) async throws -> Void
    ) async throws {
        try await withStores { stores in
            let store = stores[0]
            try subscribe(store)
            let ada = try await store.signIn(identity("apple", "old-1"), keeping: ["name": "Ada"])
            _ = try await store.life.confirm(login("old-1", grant: "sealed"))
            let listed = try await store.transfers.only()
            #expect(try await store.transfers.noteExported(listed, of: "apple", as: transfer(), at: noon) == .exported)
            try await body(store, ada)
        }
    }

    @Test func `an exported identity is transferred until it has its new subject`() async throws {
        try await withExported { store, ada in
            func state() async throws -> [IdentityState?] {
                try await store.life.identityStates(of: ada.subject).map(\.state)
            }
            #expect(try await state() == [.transferred])
            #expect(
                try await store.claims(of: ada.subject).claims.identities["apple"]?["credential_state"] == "transferred"
            )
            #expect(try await store.life.dueJobs(at: .max, limit: 10).map(\.kind) == [.publishClaims])
            #expect(try await store.life.dueChecks(of: "apple", at: .max, limit: 10).isEmpty)
            // The old team's logins go on.
            #expect(try await store.life.confirm(login("old-1", grant: "newer")) != nil)
            #expect(try await state() == [.transferred])
            #expect(try await store.life.dueChecks(of: "apple", at: .max, limit: 10).isEmpty)

            #expect(try await store.transfers.rekey(to: "new-1") == .rekeyed(account: ada.subject))
            #expect(try await state() == [.authorized])
            #expect(
                try await store.claims(of: ada.subject).claims.identities["apple"]?["credential_state"] == "authorized")
            #expect(try await store.life.dueChecks(of: "apple", at: .max, limit: 10).isEmpty)
            let found = try await store.find(identity("apple", "new-1"))
            #expect(found?.subject == ada.subject && found?.storedClaims["name"] == "Ada")
            #expect(try await store.find(identity("apple", "old-1"))?.subject == ada.subject)
            #expect(try await store.identities(of: ada.subject).map(\.subjects) == [["new-1", "old-1"]])
            #expect(try await events(store).map(\.type) == [.identityTransferred])
            let event = try #require(try await events(store).first)
            #expect(event.subject == ada.subject && event.data == ["provider": "apple"])
        }
    }

    @Test func `once, whoever comes first`() async throws {
        try await withExported { store, ada in
            let outcomes = try await together(8) { _ in try await store.transfers.rekey(to: "new-1") }
            #expect(outcomes.count { $0 == .rekeyed(account: ada.subject) } == 1)
            #expect(outcomes.count { $0 == .alreadyDone } == 7)
            #expect(try await store.transfers.rekey(to: "new-2") == .alreadyDone)
            #expect(try await store.find(identity("apple", "new-2")) == nil)
            #expect(try await events(store).count == 1)
        }
    }

    @Test func `a login with the new subject and the re-key do not both make an account`() async throws {
        try await withExported { store, ada in
            async let rekeyed = store.transfers.rekey(to: "new-1")
            async let account = store.signIn(identity("apple", "new-1"))
            switch try await rekeyed {
            case .rekeyed: #expect(try await account.subject == ada.subject)
            case .conflict: #expect(try await account.subject != ada.subject)
            default: Issue.record("another outcome")
            }
        }
    }

    @Test func `grants of the old team are dropped, and its logins leave none`() async throws {
        try await withExported { store, _ in
            _ = try await store.transfers.rekey(to: "new-1")
            #expect(try await !store.life.isInUse("k1"))
            #expect(try await store.life.confirm(login("old-1", grant: "late")) != nil)
            #expect(try await !store.life.isInUse("k1"))
            #expect(try await store.life.confirm(login("new-1", grant: "fresh")) != nil)
            #expect(try await store.life.dueChecks(of: "apple", at: .max, limit: 10).map(\.subject) == ["new-1"])
        }
    }

    @Test func `only the transfer that was exported counts`() async throws {
        try await withExported { store, ada in
            #expect(try await store.transfers.rekey(to: "new-1", transfer("other")) == .unknown)
            #expect(try await store.transfers.rekey(to: "new-1", transfer(to: "OTHERTEAM1")) == .unknown)
            let reverse = IdentityTransfer(transferSubject: "way-1", fromTeam: newTeam, toTeam: oldTeam)
            #expect(try await store.transfers.rekey(to: "new-1", reverse) == .unknown)
            #expect(try await store.transfers.rekey(transfer(), of: "web", to: "new-1", at: 0) == .unknown)
            await #expect(throws: AccountError.self) { _ = try await store.transfers.rekey(to: "") }
            #expect(try await store.find(identity("apple", "new-1")) == nil)
            _ = try await store.signIn(identity("apple", "taken"))
            #expect(try await store.transfers.rekey(to: "taken") == .conflict)
            #expect(try await store.life.identityStates(of: ada.subject).map(\.state) == [.transferred])
            #expect(try await events(store).isEmpty)
        }
    }

    @Test func `what has changed since it was listed is not exported`() async throws {
        try await withStores { stores in
            let store = stores[0]
            for subject in ["a", "b", "c"] { _ = try await store.signIn(identity("apple", subject)) }
            let listed = try await store.transfers.all()
            #expect(listed.map(\.subject).sorted() == ["a", "b", "c"])
            #expect(listed.map(\.id) == listed.map(\.id).sorted())
            let (first, second, third) = (listed[0], listed[1], listed[2])
            func export(_ identity: TransferableIdentity, _ name: String) async throws -> ExportOutcome {
                try await store.transfers.noteExported(identity, of: "apple", as: transfer(name), at: noon)
            }
            #expect(try await export(first, "way-1") == .exported)
            #expect(try await export(first, "way-1") == .exported, "idempotent")
            #expect(try await export(second, "way-1") == .conflict)
            _ = try await store.signIn(AccountIdentity(provider: "apple", subjects: ["promoted", third.subject]))
            #expect(try await export(third, "way-3") == .changed)
            let notification = ProviderNotification(
                id: "n", type: "consent-revoked", subject: second.subject, time: noon.milliseconds,
                change: .consentRevoked)
            _ = try await store.life.file(
                notification, from: NotificationSource(provider: "apple", kind: "apple"), deletion: DeletionPolicy(),
                at: noon.milliseconds)
            #expect(try await export(second, "way-2") == .changed)
            #expect(try await store.transfers.all(to: newTeam).map(\.id) == [first.id])
            #expect(try await store.transfers.all(to: "OTHERTEAM1").isEmpty)
            #expect(try await store.transfers.transferableIdentity(of: "apple", subject: "nobody") == nil)
            let found = try await store.transfers.transferableIdentity(of: "apple", subject: first.subject)
            #expect(found?.recorded?.transfer == transfer() && found?.recorded?.isDone == false)
            #expect(found?.recorded?.oldSubject == first.subject)
        }
    }

    @Test func `an app may move on, and back`() async throws {
        try await withExported { store, ada in
            _ = try await store.transfers.rekey(to: "new-1")
            let back = IdentityTransfer(transferSubject: "way-2", fromTeam: newTeam, toTeam: oldTeam)
            let listed = try await store.transfers.only()
            #expect(listed.subject == "new-1" && listed.recorded?.isDone == true)
            #expect(try await store.transfers.noteExported(listed, of: "apple", as: back, at: noon) == .exported)
            #expect(try await store.life.identityStates(of: ada.subject).map(\.state) == [.transferred])
            #expect(try await store.transfers.rekey(to: "old-1", back) == .rekeyed(account: ada.subject))
            #expect(try await store.identities(of: ada.subject).map(\.subjects.first) == ["old-1"])
            #expect(try await events(store).count == 2)
        }
    }

    @Test func `a deleted account is not brought back`() async throws {
        try await withExported { store, ada in
            var policy = DeletionPolicy()
            policy.anonymizes = false
            _ = try await store.life.requestDeletion(of: ada.subject, reason: "user", policy, at: noon.milliseconds)
            for job in try await store.life.dueJobs(at: .max, limit: 10) where job.kind == .deleteAccount {
                try await store.life.deleteAccount(job, policy, at: noon.milliseconds)
            }
            #expect(try await store.transfers.all().isEmpty)
            #expect(try await store.transfers.rekey(to: "new-1") == .unknown)
        }
    }

    @Test func `a page begins behind the last one`() async throws {
        try await withStores { stores in
            let store = stores[0]
            for number in 0..<25 { _ = try await store.signIn(identity("apple", "u\(number)")) }
            _ = try await store.signIn(identity("wechat", "w"))
            var (seen, last): ([String], String) = ([], "")
            while true {
                let page = try await store.transfers.transferableIdentities(
                    of: "apple", to: nil, after: last, limit: 10)
                guard let end = page.last else { break }
                seen += page.map(\.subject)
                last = end.id
            }
            #expect(seen.count == 25 && Set(seen).count == 25)
        }
    }
}
