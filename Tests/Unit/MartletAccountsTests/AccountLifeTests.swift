import MartletAccounts
import MartletCore
import MartletEvents
import MartletJSON
import MartletProvider
import MartletTesting
import Testing

// Part of two targets, like AccountRuleTests.

private let apple = NotificationSource(provider: "apple", kind: "apple")
private let later = Int64.max
/// The time of logins, in seconds.
private let login: Int64 = 1_800_000_000

private func notification(
    _ change: ProviderNotification.Change, at milliseconds: Int64 = (login + 100) * 1000, id: String = "jti-1",
    of subject: String = "001"
) -> ProviderNotification {
    ProviderNotification(id: id, type: "test", subject: subject, time: milliseconds, change: change)
}

private func grant(_ token: String = "sealed", client: String = "com.example.app", key: String = "k1") -> SealedGrant {
    SealedGrant(client: client, keyID: key, token: token)
}

extension IdentityLifeStore {
    /// Logs in and records the grant.
    fileprivate func confirm(
        _ grant: SealedGrant? = nil, of subject: String = "001", issuedAt: Int64 = login, now: Int64 = login,
        nextCheck: Int64? = nil, deletion: DeletionPolicy = DeletionPolicy()
    ) async throws -> LoginConfirmation? {
        try await confirm(
            ConfirmedLogin(
                identity: identity("apple", subject), issuedAt: UnixTime(seconds: issuedAt),
                confirmedAt: UnixTime(seconds: issuedAt), now: UnixTime(seconds: now), grant: grant,
                nextCheck: nextCheck, deletion: deletion))
    }

    fileprivate func file(
        _ notification: ProviderNotification, _ policy: DeletionPolicy = DeletionPolicy(), at now: Int64 = login * 1000
    ) async throws -> FiledNotification {
        try await file(notification, from: apple, deletion: policy, at: now)
    }

    fileprivate func state(of account: Account) async throws -> [IdentityState?] {
        try await identityStates(of: account.subject).map(\.state)
    }

    fileprivate func jobs() async throws -> [AccountJob] { try await dueJobs(at: later, limit: 100) }
}

/// Events of every type, as a webhook would get them.
private func eventTypes(_ store: any OutboxStoring) async throws -> [EventType] {
    try await store.entries(to: "all", in: nil, from: 0, limit: 100).entries.map(\.event.type)
}

private func subscribe(_ store: any OutboxStoring) throws {
    let pattern = try #require(EventPattern("*"))
    store.subscribe(EventSubscriptions([EventSubscriptions.Subscriber(hook: "all", patterns: [pattern])]))
}

@Suite(.timeLimit(.minutes(2))) struct AccountLifeTests {
    @Test func `a login is authorized, and replaces the grant of its client only`() async throws {
        try await withStores { stores in
            let store = stores[0]
            let ada = try await store.signIn(identity("apple", "001"))
            #expect(try await store.life.state(of: ada) == [nil])
            #expect(try await store.life.confirm(grant("one"), nextCheck: 5) == .stateChanged)
            let web = try await store.life.confirm(grant("web", client: "com.example.web"), nextCheck: 6)
            #expect(web == .unchanged)
            #expect(try await store.life.confirm(grant("two")) == .unchanged)
            #expect(try await store.life.state(of: ada) == [.authorized])
            #expect(try await store.life.identityStates(of: ada.subject).first?.checkedAt == UnixTime(seconds: login))
            let due = try await store.life.dueChecks(of: "apple", at: later, limit: 10)
            #expect(due.map(\.grant.token) == ["two"], "an identity is checked once, whatever its number of clients")
            #expect(due.map(\.dueAt) == [6])
            #expect(try await store.life.dueChecks(of: "wechat", at: later, limit: 10).isEmpty)
            #expect(try await store.life.dueChecks(of: "apple", at: 5, limit: 10).isEmpty)
        }
    }

    @Test func `a withdrawn consent ends the identity until a newer login`() async throws {
        try await withStores { stores in
            let store = stores[0]
            try subscribe(store)
            let ada = try await store.signIn(identity("apple", "001"))
            _ = try await store.life.confirm(grant(), nextCheck: 5)
            let filed = try await store.life.file(notification(.consentRevoked))
            #expect(filed.outcome == .applied)
            #expect(filed.subject == ada.subject)
            #expect(filed.jobs.map(\.kind) == [.endSessions])
            #expect(filed.jobs.first?.data["reason"] == "apple_consent_revoked")
            #expect(filed.jobs.first?.provider == "apple")
            #expect(try await store.life.jobs() == filed.jobs)
            #expect(try await store.life.state(of: ada) == [.revoked])
            #expect(try await store.life.dueChecks(of: "apple", at: later, limit: 10).isEmpty)
            #expect(try await eventTypes(store) == [.accountCreated, .identityRevoked])

            let old = try await store.signIn(identity("apple", "001"))
            #expect(old.isRevoked(issuedAt: UnixTime(seconds: login + 99)))
            // Of one second, the order is unknown.
            #expect(old.isRevoked(issuedAt: UnixTime(seconds: login + 100)))
            #expect(!old.isRevoked(issuedAt: UnixTime(seconds: login + 101)))
            #expect(try await store.life.confirm(grant(), issuedAt: login + 100, now: login + 200) == nil)
            #expect(try await store.life.confirm(grant(), issuedAt: login + 99, now: login + 200) == nil)
            #expect(try await store.life.state(of: ada) == [.revoked])
            #expect(
                try await store.life.confirm(grant(), issuedAt: login + 101, now: login + 200) == .stateChanged)
            #expect(try await store.life.state(of: ada) == [.authorized])
        }
    }

    @Test func `notifications count once, and only if nothing newer is known`() async throws {
        try await withStores { stores in
            let store = stores[0]
            let ada = try await store.signIn(identity("apple", "001"))
            _ = try await store.life.confirm(grant())
            let time = (login + 100) * 1000
            func outcome(
                _ change: ProviderNotification.Change, _ id: String, at milliseconds: Int64, of subject: String = "001"
            ) async throws -> FiledNotification.Outcome {
                try await store.life.file(notification(change, at: milliseconds, id: id, of: subject)).outcome
            }
            #expect(try await outcome(.consentRevoked, "older than the login", at: (login - 1) * 1000) == .outdated)
            #expect(try await outcome(.none, "unknown type", at: time) == .ignored)
            #expect(try await outcome(.consentRevoked, "stranger", at: time, of: "002") == .unknownIdentity)
            #expect(try await store.life.state(of: ada) == [.authorized])
            #expect(try await outcome(.consentRevoked, "a", at: time) == .applied)
            for _ in 0..<3 { #expect(try await outcome(.consentRevoked, "a", at: time) == .repeated) }
            #expect(try await outcome(.accountDeleted, "b", at: time - 1) == .outdated)
            #expect(try await outcome(.consentRevoked, "stranger", at: time, of: "002") == .repeated)
            #expect(try await store.life.state(of: ada) == [.revoked])
            try await store.life.prune(before: later, departuresBefore: later)
            #expect(try await outcome(.consentRevoked, "a", at: time) == .applied, "after a removal it is new again")
        }
    }

    @Test func `the state of an identity is a claim of its credentials`() async throws {
        try await withStores { stores in
            let store = stores[0]
            let ada = try await store.signIn(identity("apple", "001"))
            try await store.link(identity("wechat", "u:1"), to: ada)
            #expect(try await store.claims(of: ada.subject) == VersionedClaims.none)
            _ = try await store.life.confirm(grant())
            func state() async throws -> JSONValue? {
                let claims = try await store.claims(of: ada.subject).claims
                #expect(claims.identities["wechat"] == nil)
                return claims.identities["apple"]?["credential_state"]
            }
            #expect(try await state() == "authorized")
            let version = try await store.claims(of: ada.subject).version
            _ = try await store.life.file(notification(.consentRevoked))
            #expect(try await state() == "revoked")
            #expect(try await store.claims(of: ada.subject).version > version, "copies are replaced")
            _ = try await store.life.confirm(grant(), issuedAt: login + 101, now: login + 200)
            #expect(try await state() == "authorized")
            _ = try await store.unlink(provider: "apple", from: ada.subject)
            #expect(try await store.claims(of: ada.subject).claims == AccountClaims())
        }
    }

    @Test func `claims in a notification are stored with the identity, and published once`() async throws {
        try await withStores { stores in
            let store = stores[0]
            let ada = try await store.signIn(identity("apple", "001"))
            _ = try await store.life.confirm(grant())
            func file(_ value: JSONValue, at seconds: Int64) async throws -> [AccountJob.Kind] {
                let change = notification(
                    .claims(["email_forwarding": value]), at: (login + seconds) * 1000, id: "jti-\(seconds)")
                return try await store.life.file(change).jobs.map(\.kind)
            }
            func claims() async throws -> JSONObject? {
                try await store.claims(of: ada.subject).claims.identities["apple"]
            }
            let version = try await store.claims(of: ada.subject).version
            #expect(try await file(false, at: 10) == [.publishClaims])
            #expect(try await claims() == ["email_forwarding": false, "credential_state": "authorized"])
            #expect(try await store.claims(of: ada.subject).version == version + 1)
            #expect(try await store.life.jobs().map(\.account) == [ada.subject])
            #expect(try await file(false, at: 20) == [], "nothing has changed")
            #expect(try await file(true, at: 15) == [], "older than the newest")
            #expect(try await file(true, at: 30) == [.publishClaims])
            #expect(try await claims()?["email_forwarding"] == true)
            let tooLong = JSONValue.string(String(repeating: "x", count: 20_000))
            #expect(try await file(tooLong, at: 40) == [], "filed, without the claim")
            #expect(try await claims()?["email_forwarding"] == true)
        }
    }

    @Test func `two instances that get the same notification apply it once`() async throws {
        try await withStores(2) { stores in
            let ada = try await stores[0].signIn(identity("apple", "001"))
            _ = try await stores[0].life.confirm(grant())
            let outcomes = try await withThrowingTaskGroup(of: FiledNotification.Outcome.self) { group in
                for index in 0..<10 {
                    group.addTask { try await stores[index % 2].life.file(notification(.consentRevoked)).outcome }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(outcomes.count { $0 == .applied } == 1)
            #expect(outcomes.count { $0 == .repeated } == 9)
            #expect(try await stores[0].life.jobs().count == 1)
            #expect(try await stores[1].life.state(of: ada) == [.revoked])
        }
    }

    @Test func `the last identity that is deleted at its issuer takes the account along`() async throws {
        try await withStores { stores in
            let store = stores[0]
            let ada = try await store.signIn(identity("apple", "001"))
            try await store.link(identity("wechat", "u:1"), to: ada)
            let first = try await store.life.file(notification(.accountDeleted))
            #expect(first.jobs.map(\.kind) == [.endSessions])
            #expect(Set(try await store.life.state(of: ada)) == [.deleted, nil])

            let eve = try await store.signIn(identity("apple", "002"))
            let second = try await store.life.file(notification(.accountDeleted, id: "jti-2", of: "002"))
            #expect(second.jobs.map(\.kind) == [.endSessions, .endSessions, .deleteAccount])
            #expect(try await store.life.state(of: eve) == [.deleted])
            #expect(try await store.signIn(identity("apple", "002")).isBeingDeleted)
        }
    }

    @Test func `a deletion keeps the subject only, and ends with its last revocation`() async throws {
        try await withStores { stores in
            let store = stores[0]
            try subscribe(store)
            var policy = DeletionPolicy()
            policy.revocationMembers = ["revoked_at_apple"]
            let ada = try await store.signIn(identity("apple", "001"), keeping: ["name": "Ada"])
            var profile = ProfilePatch()
            profile.set(name: "Ada")
            _ = try await store.changeProfile(of: ada.subject, by: profile)
            try await store.changeClaims(of: ada.subject, by: ClaimPatch(["role": "staff"]))
            _ = try await store.life.confirm(grant("one"))
            _ = try await store.life.confirm(grant("web", client: "com.example.web"))
            let requested = try await store.life.requestDeletion(of: ada.subject, reason: "user", policy, at: 1_000)
            #expect(requested.map(\.kind) == [.endSessions, .deleteAccount])
            #expect(try await store.life.requestDeletion(of: ada.subject, reason: "user", policy, at: 1_000).isEmpty)
            let deletion = try #require(requested.last)
            try await store.life.deleteAccount(deletion, policy, at: 2_000)
            try await store.life.deleteAccount(deletion, policy, at: 2_000)
            #expect(try await store.find(identity("apple", "001")) == nil)
            let left = try #require(try await store.account(ada.subject))
            #expect(left.storedClaims == [:] && left.profile == [:] && left.claims == [:])
            for (name, value) in [("name", "Ada"), ("role", "staff")] {
                let filter = AccountFilter(claim: AccountFilter.Claim(name: name, value: value))
                #expect(try await store.accounts(from: "", filter, limit: 5).accounts.isEmpty)
            }
            #expect(
                await code { _ = try await store.changeProfile(of: ada.subject, by: profile) }
                    == .accountsUnknownAccount)
            #expect(try await eventTypes(store) == [.accountCreated])
            let revocations = try await store.life.jobs().filter { $0.kind == .revoke }
            #expect(revocations.map { $0.data["token"]?.string } == ["one", "web"])
            #expect(try await store.life.pendingRevocations().count == 2)
            #expect(try await store.life.pendingRevocations().oldest == 2_000)

            try await store.life.finishRevocation(try #require(revocations.first), policy, at: 3_000)
            #expect(try await eventTypes(store) == [.accountCreated])
            try await store.life.finishRevocation(try #require(revocations.last), policy, at: 3_000)
            try await store.life.finishRevocation(try #require(revocations.last), policy, at: 3_000)
            let entries = try await store.entries(to: "all", in: nil, from: 0, limit: 100).entries
            #expect(entries.map(\.event.type) == [.accountCreated, .accountDeleted])
            #expect(entries.last?.event.data == ["reason": "user", "revoked_at_apple": true])
            #expect(entries.last?.event.subject == ada.subject)
            #expect(try await store.life.pendingRevocations() == PendingRevocations())

            let next = try await store.signIn(identity("apple", "001"))
            #expect(next.isNew && next.subject != ada.subject)
        }
    }

    @Test(arguments: [true, false])
    func `a login of the same user drops a revocation that is pending`(hasGrant: Bool) async throws {
        try await withStores { stores in
            let store = stores[0]
            try subscribe(store)
            var policy = DeletionPolicy()
            policy.revocationMembers = ["revoked_at_apple"]
            for subject in ["001", "002"] {
                let account = try await store.signIn(identity("apple", subject))
                _ = try await store.life.confirm(grant("old \(subject)"), of: subject)
                let jobs = try await store.life.requestDeletion(of: account.subject, reason: "user", policy, at: 1)
                try await store.life.deleteAccount(try #require(jobs.last), policy, at: 1)
            }
            let new = try await store.signIn(identity("apple", "001"))
            _ = try await store.life.confirm(hasGrant ? grant("new") : nil, deletion: policy)
            // That of another user stays.
            let left = try await store.life.jobs().filter { $0.kind == .revoke }.map { $0.data["subject"]?.string }
            #expect(left == ["002"])
            let entries = try await store.entries(to: "all", in: nil, from: 0, limit: 100).entries
            let deleted = entries.filter { $0.event.type == .accountDeleted }
            #expect(
                deleted.map(\.event.data) == [["reason": "user", "revoked_at_apple": false, "signed_in_again": true]])
            // The deletion of the new account revokes what there is.
            let jobs = try await store.life.requestDeletion(of: new.subject, reason: "user", policy, at: 5)
            try await store.life.deleteAccount(try #require(jobs.last), policy, at: 5)
            let tokens = try await store.life.jobs().filter { $0.kind == .revoke && $0.account == new.subject }
            #expect(tokens.map { $0.data["token"]?.string } == [hasGrant ? "new" : "old 001"])
        }
    }

    @Test func `a revocation that never succeeds is announced as such, and stays`() async throws {
        try await withStores { stores in
            let store = stores[0]
            try subscribe(store)
            var policy = DeletionPolicy()
            policy.revocationMembers = ["revoked_at_apple"]
            let ada = try await store.signIn(identity("apple", "001"))
            _ = try await store.life.confirm(grant())
            let jobs = try await store.life.requestDeletion(of: ada.subject, reason: "user", policy, at: 1)
            try await store.life.deleteAccount(try #require(jobs.last), policy, at: 1)
            let revocation = try #require(try await store.life.jobs().first { $0.kind == .revoke })
            try await store.life.postpone(revocation, until: 10, reason: "apple.api_unreachable")
            #expect(try await store.life.jobs().first { $0.kind == .revoke }?.attempts == 1)
            for _ in 0..<2 {
                try await store.life.abandonRevocation(revocation, policy, until: 20, reason: "too old", at: 15)
            }
            let entries = try await store.entries(to: "all", in: nil, from: 0, limit: 100).entries
            #expect(entries.map(\.event.type) == [.accountCreated, .accountDeleted])
            #expect(entries.last?.event.data["revoked_at_apple"] == false)
            #expect(try await store.life.pendingRevocations().count == 1)
            try await store.life.finishRevocation(revocation, policy, at: 30)
            #expect(try await eventTypes(store).count == 2, "the end of a deletion is announced once")
            #expect(try await store.life.pendingRevocations().count == 0)
        }
    }

    @Test func `without a grant a deletion is complete immediately`() async throws {
        try await withStores { stores in
            let store = stores[0]
            try subscribe(store)
            var policy = DeletionPolicy()
            policy.revocationMembers = ["revoked_at_apple"]
            policy.anonymizes = false
            let ada = try await store.signIn(identity("wechat", "u:1"), keeping: ["name": "Ada"])
            let jobs = try await store.life.requestDeletion(of: ada.subject, reason: "admin", policy, at: 1)
            try await store.life.deleteAccount(try #require(jobs.last), policy, at: 1)
            let entries = try await store.entries(to: "all", in: nil, from: 0, limit: 100).entries
            #expect(entries.last?.event.data == ["reason": "admin", "revoked_at_apple": false])
            #expect(try await store.account(ada.subject)?.storedClaims == ["name": "Ada"])
            #expect(try await store.find(identity("wechat", "u:1")) == nil, "the identity may have a new account")
            #expect(
                await code { _ = try await store.life.requestDeletion(of: ada.subject, reason: "x", policy, at: 1) }
                    == .accountsUnknownAccount)
            #expect(
                await code { try await store.setDisabled(account: ada.subject, at: nil) } == .accountsUnknownAccount)
        }
    }

    @Test func `a login during the grace takes the deletion back`() async throws {
        try await withStores { stores in
            let store = stores[0]
            try subscribe(store)
            var policy = DeletionPolicy()
            policy.grace = .seconds(60)
            let ada = try await store.signIn(identity("apple", "001"))
            let jobs = try await store.life.requestDeletion(of: ada.subject, reason: "user", policy, at: 1_000)
            #expect(jobs.map(\.kind) == [.endSessions])
            let scheduled = try await store.life.jobs()
            #expect(try await store.life.dueJobs(at: 60_000, limit: 9).map(\.kind) == [.endSessions])
            #expect(try await store.life.dueJobs(at: 61_000, limit: 9).map(\.kind) == [.endSessions, .deleteAccount])
            #expect(try await store.signIn(identity("apple", "001")).deletionDue == 61_000)
            #expect(try await !store.life.restore(ada.subject, at: 61_000), "it is due")
            #expect(try await store.life.restore(ada.subject, at: 60_999))
            #expect(try await !store.life.restore(ada.subject, at: 2_000))
            #expect(try await !store.signIn(identity("apple", "001")).isBeingDeleted)
            #expect(try await eventTypes(store) == [.accountCreated, .accountRestored])
            // A job that was read before does nothing.
            let stale = try #require(scheduled.last)
            try await store.life.deleteAccount(stale, policy, at: 70_000)
            #expect(try await store.find(identity("apple", "001"))?.subject == ada.subject)
        }
    }

    @Test func `a check is begun by one instance, and a newer login outweighs it`() async throws {
        try await withStores(2) { stores in
            let ada = try await stores[0].signIn(identity("apple", "001"))
            _ = try await stores[0].life.confirm(grant(), nextCheck: 5)
            let check = try #require(try await stores[0].life.dueChecks(of: "apple", at: 5, limit: 10).first)
            #expect(check.account == ada.subject && check.subject == "001")
            var begun = 0
            for store in stores where try await store.life.beginCheck(check, next: 90) { begun += 1 }
            #expect(begun == 1)
            #expect(try await stores[1].life.dueChecks(of: "apple", at: 89, limit: 10).isEmpty)
            try await stores[0].life.noteValid(check, at: UnixTime(seconds: login + 7))
            #expect(
                try await stores[0].life.identityStates(of: ada.subject).first?.checkedAt
                    == UnixTime(seconds: login + 7))

            _ = try await stores[0].life.confirm(grant("newer"), issuedAt: login + 10, now: login + 10)
            let now = (login + 20) * 1000
            #expect(
                try await stores[0].life.noteRevoked(check, of: "apple", reason: "apple_check", at: now).isEmpty)
            #expect(try await stores[0].life.state(of: ada) == [.authorized])
            let current = try #require(try await stores[0].life.dueChecks(of: "apple", at: later, limit: 10).first)
            let jobs = try await stores[0].life.noteRevoked(current, of: "apple", reason: "apple_check", at: now)
            #expect(jobs.map(\.kind) == [.endSessions])
            #expect(jobs.first?.data["reason"] == "apple_check")
            #expect(try await stores[0].life.state(of: ada) == [.revoked])
        }
    }

    @Test func `the sessions that a job ends become events once`() async throws {
        try await withStores { stores in
            let store = stores[0]
            try subscribe(store)
            let ada = try await store.signIn(identity("apple", "001"))
            let job = try #require(try await store.life.file(notification(.consentRevoked)).jobs.first)
            let sessions = [
                EndedSession(id: "ses_1", provider: "apple"), EndedSession(id: "ses_2", provider: "apple"),
            ]
            try await store.life.noteSessions(sessions, of: job, isLast: true, at: 5)
            let listed = try #require(try await store.life.jobs().first)
            #expect(listed.hasListed && !job.hasListed)
            let events = try await store.entries(to: "all", in: nil, from: 0, limit: 100).entries.map(\.event)
                .filter { $0.type == .sessionRevoked }
            #expect(events.map { $0.data["session_id"]?.string } == ["ses_1", "ses_2"])
            #expect(events.allSatisfy { $0.subject == ada.subject && $0.data["reason"] == "apple_consent_revoked" })
            try await store.life.finish(listed)
            try await store.life.noteSessions(sessions, of: listed, isLast: true, at: 6)
            #expect(try await eventTypes(store).count { $0 == .sessionRevoked } == 2, "the job is gone")
        }
    }

    @Test func `knows the keys of its grants`() async throws {
        try await withStores { stores in
            let store = stores[0]
            _ = try await store.signIn(identity("apple", "001"))
            #expect(try await store.life.canaries().isEmpty)
            try await store.life.addCanary("one", of: "k1")
            try await store.life.addCanary("two", of: "k1")
            #expect(try await store.life.canaries() == ["k1": "one"])
            #expect(try await !store.life.isInUse("k1"))
            _ = try await store.life.confirm(grant(key: "k1"))
            #expect(try await store.life.isInUse("k1"))
        }
    }
}
