internal import MartletCore
internal import MartletEvents
internal import MartletJSON
internal import MartletProvider

/// The operations on the state of identities, as transaction steps that both engines run.
struct LifeRules: Sendable {
    /// How long the process that recorded a job has to do it before any other does, in milliseconds.
    static let headStart: Int64 = 2_000

    let recorder: EventRecorder

    // MARK: Logins

    /// What a login has changed.
    struct Confirmed: Sendable {
        /// `nil` if the credential was issued before the identity was revoked.
        let confirmation: LoginConfirmation?
        /// Whether an event was recorded.
        var hasEvents = false
    }

    func confirm(_ login: ConfirmedLogin, _ stamp: EventRecorder.Stamp) -> TransactionStep<Confirmed> {
        let (provider, subject) = (login.identity.provider, login.identity.subjects.first ?? "")
        let lookups = [
            Self.lock(provider, subject), Query(LifeStatement.revocations, .text(provider), .text(subject)),
        ]
        return .run(lookups) { results throws(AccountError) in
            // An identity that was unlinked meanwhile has no state.
            guard let row = results[0].first else { return .end(Confirmed(confirmation: .unchanged)) }
            let known = try KnownIdentity(row)
            guard !known.wasRevoked(after: login.issuedAt) else { return .end(Confirmed(confirmation: nil)) }
            var queries = [
                Query(
                    LifeStatement.confirm, .text(known.id), .integer(login.now.seconds),
                    .integer(login.nextCheck ?? -1),
                    .integer(login.confirmedAt.seconds))
            ]
            // A grant is checked and revoked as the main subject's; another one is of a former team.
            let isMain = known.mainSubject.hasSameBytes(as: subject)
            if let grant = login.grant, isMain {
                queries.append(
                    Query(
                        LifeStatement.putGrant, .text(known.id), .text(grant.client), .text(grant.keyID),
                        .text(grant.token)))
            }
            if known.state != .authorized { queries.append(Self.countClaims(of: known)) }
            let confirmation = known.state == .authorized ? LoginConfirmation.unchanged : .stateChanged
            let superseded = try SupersededRevocations(isMain ? results[1] : [], of: subject)
            guard !superseded.isEmpty else { return .commit(queries) { _ in Confirmed(confirmation: confirmation) } }
            queries += superseded.queries(identity: known.id, grant: login.grant)
            return announce(superseded, login.deletion, queries, confirmation, stamp)
        }
    }

    /// Announces the deletions that waited for nothing but revocations that are dropped.
    private func announce(
        _ superseded: SupersededRevocations, _ policy: DeletionPolicy, _ queries: [Query],
        _ confirmation: LoginConfirmation, _ stamp: EventRecorder.Stamp
    ) -> TransactionStep<Confirmed> {
        .run(superseded.lookups) { results throws(AccountError) in
            var queries = queries
            for (index, account) in superseded.accounts.enumerated() {
                guard let row = results[2 * index].first, let count = results[2 * index + 1].first else { continue }
                let deletion = try Deletion(row)
                guard deletion.deletedAt != nil, !deletion.isAnnounced,
                    superseded.areAll(of: account, among: try count.integer(0))
                else { continue }
                queries += announcement(of: account, deletion, policy, wasRevoked: false, hasSignedInAgain: true, stamp)
            }
            return .commit(queries) { _ in Confirmed(confirmation: confirmation, hasEvents: true) }
        }
    }

    func restore(_ subject: String, at now: Int64, _ stamp: EventRecorder.Stamp) -> TransactionStep<Bool> {
        .run([Query(LifeStatement.lockDeletion, .text(subject))]) { results throws(AccountError) in
            guard let row = results[0].first, try Deletion(row).isPending(before: now) else { return .end(false) }
            let queries =
                [
                    Query(LifeStatement.restore, .text(subject)),
                    Query(LifeStatement.cancelJobs, .text(subject), .text(AccountJob.Kind.deleteAccount.rawValue)),
                ] + recorder.queries(.accountRestored, of: subject, stamp, data: [:])
            return .commit(queries) { _ in true }
        }
    }

    // MARK: Notifications

    func file(
        _ notification: ProviderNotification, from source: NotificationSource, deletion: DeletionPolicy, at now: Int64,
        _ stamp: EventRecorder.Stamp
    ) -> TransactionStep<FiledNotification> {
        let lookups = [
            Self.lock(source.provider, notification.subject),
            Query(LifeStatement.findNotification, .text(source.provider), .text(notification.id)),
        ]
        return .run(lookups) { results throws(AccountError) in
            guard results[1].isEmpty else { return .end(FiledNotification(outcome: .repeated, subject: nil, jobs: [])) }
            @Sendable func filed(
                _ outcome: FiledNotification.Outcome, _ account: String? = nil, _ changes: JobQueries = JobQueries()
            ) -> TransactionStep<FiledNotification> {
                changes.adding([Self.filing(notification, source, outcome, at: now)]).committed { jobs in
                    FiledNotification(outcome: outcome, subject: account, jobs: jobs)
                }
            }
            guard let row = results[0].first else { return filed(.unknownIdentity) }
            let known = try KnownIdentity(row)
            guard notification.change != .none else { return filed(.ignored, known.account) }
            guard known.accepts(eventAt: notification.time) else { return filed(.outdated, known.account) }
            let noted = Query(LifeStatement.noteNotified, .text(known.id), .integer(notification.time))
            switch notification.change {
            case .none: return filed(.applied, known.account, JobQueries([noted]))
            case .claims(let patch):
                let lookup = Query(LifeStatement.identityClaims, .text(known.id))
                return .run([lookup]) { claims throws(AccountError) in
                    let changes = try Self.change(of: known, claims[0].first, by: patch, at: now)
                    return filed(.applied, known.account, changes.adding([noted]))
                }
            case .consentRevoked:
                let revocation = revocation(
                    of: known, .revoked, source.provider, reason: source.reason("consent_revoked"),
                    since: notification.time, at: now, stamp)
                return filed(.applied, known.account, revocation.adding([noted]))
            case .accountDeleted:
                let revocation = revocation(
                    of: known, .deleted, source.provider, reason: source.reason("account_deleted"),
                    since: notification.time, at: now, stamp)
                let remaining = [
                    Query(LifeStatement.remaining, .text(known.account), .text(known.id)),
                    Query(LifeStatement.lockDeletion, .text(known.account)),
                ]
                return .run(remaining) { others throws(AccountError) in
                    guard others[0].isEmpty, let row = others[1].first, try Deletion(row).isAbsent else {
                        return filed(.applied, known.account, revocation.adding([noted]))
                    }
                    let request = Self.deletion(of: known.account, source.reason("account_deleted"), deletion, at: now)
                    return filed(.applied, known.account, revocation.adding([noted]).adding(request))
                }
            }
        }
    }

    private static func filing(
        _ notification: ProviderNotification, _ source: NotificationSource, _ outcome: FiledNotification.Outcome,
        at now: Int64
    ) -> Query {
        Query(
            LifeStatement.addNotification, .text(source.provider), .text(notification.id), .text(notification.type),
            .text(notification.subject), .integer(notification.time), .integer(now), .text(outcome.rawValue))
    }

    /// Changes the claims of an identity, for live sessions too.
    private static func change(
        of known: KnownIdentity, _ row: Row?, by patch: JSONObject, at now: Int64
    ) throws(AccountError) -> JobQueries {
        let stored = try row?.optionalText(0).map(StoredClaims.read) ?? [:]
        let changed = stored.patched(by: patch)
        // A notification must not fail because an identity has many claims: Apple would send it for ever.
        guard changed != stored, (try? ClaimRules.check(changed)) != nil else { return JobQueries() }
        var changes = JobQueries([
            Query(LifeStatement.setIdentityClaims, .text(known.id), .text(StoredClaims.write(changed))),
            countClaims(of: known),
        ])
        changes.add(.publishClaims, known.account, "", [:], dueAt: now &+ headStart, at: now)
        return changes
    }

    private static func countClaims(of known: KnownIdentity) -> Query {
        Query(.countClaimsChange, .text(known.account))
    }

    /// Marks an identity as revoked or deleted, drops its grants, and ends its sessions.
    private func revocation(
        of known: KnownIdentity, _ state: IdentityState, _ provider: String, reason: String, since instant: Int64,
        at now: Int64, _ stamp: EventRecorder.Stamp
    ) -> JobQueries {
        var changes = JobQueries(
            [
                Query(
                    LifeStatement.revoke, .text(known.id), .integer(state.rawValue), .integer(now / 1000),
                    .integer(instant)),
                Query(LifeStatement.removeGrants, .text(known.id)), Self.countClaims(of: known),
            ] + recorder.queries(.identityRevoked, of: known.account, stamp, data: ["provider": .string(provider)]))
        changes.add(
            .endSessions, known.account, provider, ["reason": .string(reason)], dueAt: now &+ Self.headStart, at: now)
        return changes
    }

    // MARK: Checks

    func noteRevoked(
        _ check: DueCheck, of provider: String, reason: String, at now: Int64, _ stamp: EventRecorder.Stamp
    ) -> TransactionStep<[AccountJob]> {
        let lookups = [Self.lock(provider, check.subject), Query(LifeStatement.grants, .text(check.identity))]
        return .run(lookups) { results throws(AccountError) in
            guard let row = results[0].first else { return .end([]) }
            let known = try KnownIdentity(row)
            // A login has replaced the grant since.
            var isCurrent = false
            for grant in results[1] {
                let (client, token) = (try grant.text(0), try grant.text(2))
                if client.hasSameBytes(as: check.grant.client), token.hasSameBytes(as: check.grant.token) {
                    isCurrent = true
                }
            }
            guard isCurrent, known.id.hasSameBytes(as: check.identity) else { return .end([]) }
            return revocation(of: known, .revoked, provider, reason: reason, since: now, at: now, stamp)
                .committed { $0 }
        }
    }

    // MARK: Deletion

    func requestDeletion(
        of subject: String, reason: String, _ policy: DeletionPolicy, at now: Int64, headStart: Int64
    ) -> TransactionStep<[AccountJob]> {
        .run([Query(LifeStatement.lockDeletion, .text(subject))]) { results throws(AccountError) in
            guard let row = results[0].first else { throw .unknownAccount }
            let deletion = try Deletion(row)
            guard deletion.deletedAt == nil else { throw .unknownAccount }
            guard deletion.isAbsent else { return .end([]) }
            let changes = Self.deletion(of: subject, reason, policy, at: now, headStart: headStart)
            return changes.committed { jobs in
                // What is due later is left to the one who runs jobs.
                policy.grace > .zero ? jobs.filter { $0.kind == .endSessions } : jobs
            }
        }
    }

    private static func deletion(
        of subject: String, _ reason: String, _ policy: DeletionPolicy, at now: Int64,
        headStart: Int64 = LifeRules.headStart
    ) -> JobQueries {
        let (due, isEndless) = now.addingReportingOverflow(policy.grace.wholeMilliseconds)
        let dueAt = isEndless ? .max : due
        var changes = JobQueries([
            Query(LifeStatement.requestDeletion, .text(subject), .integer(dueAt), .text(reason))
        ])
        changes.add(.endSessions, subject, "", ["reason": "account_deleted"], dueAt: now &+ headStart, at: now)
        let start = policy.grace > .zero ? dueAt : now &+ headStart
        changes.add(.deleteAccount, subject, "", [:], dueAt: start, at: now)
        return changes
    }

    func deleteAccount(
        _ job: AccountJob, _ policy: DeletionPolicy, at now: Int64, _ stamp: EventRecorder.Stamp
    ) -> TransactionStep<Void> {
        let lookups = [
            Query(LifeStatement.lockDeletion, .text(job.account)), Query(LifeStatement.lockJob, .integer(job.number)),
            Query(LifeStatement.accountGrants, .text(job.account)),
        ]
        return .run(lookups) { results throws(AccountError) in
            guard !results[1].isEmpty else { return .end(()) }
            let removal = Query(LifeStatement.removeJob, .integer(job.number))
            guard let row = results[0].first else { return .commit([removal]) { _ in } }
            let deletion = try Deletion(row)
            guard deletion.isPending else { return .commit([removal]) { _ in } }
            var changes = JobQueries([removal])
            for row in results[2] {
                changes.add(
                    .revoke, job.account, try row.text(0),
                    [
                        "subject": .string(try row.text(1)), "client": .string(try row.text(2)),
                        "key_id": .string(try row.text(3)), "token": .string(try row.text(4)),
                    ], dueAt: now, at: now)
            }
            // Sessions of logins that were in progress when the deletion was requested.
            changes.add(.endSessions, job.account, "", ["reason": "account_deleted"], dueAt: now, at: now)
            changes = changes.adding(Self.removal(of: job.account, policy, at: now))
            if results[2].isEmpty {
                changes = changes.adding(announcement(of: job.account, deletion, policy, wasRevoked: false, stamp))
            }
            return changes.committed { _ in }
        }
    }

    private static func removal(of account: String, _ policy: DeletionPolicy, at now: Int64) -> [Query] {
        let removals =
            policy.anonymizes
            ? [LifeStatement.removeIdentities] : [LifeStatement.releaseGrants, LifeStatement.releaseSubjects]
        let record = policy.anonymizes ? LifeStatement.erase : LifeStatement.retain
        let values =
            policy.anonymizes
            ? [
                Query(.removeClaimValues, .text(account)),
                Query(KeyStatement.erase, .text(account), .integer(now / 1000)),
            ] : []
        // Credentials that are older make no new account.
        let departures = Query(ProofStatement.noteDepartures, .text(account), .integer(now))
        return [departures] + removals.map { Query($0, .text(account)) } + values
            + [Query(record, .text(account), .integer(now / 1000))]
    }

    private func announcement(
        of account: String, _ deletion: Deletion, _ policy: DeletionPolicy, wasRevoked: Bool,
        hasSignedInAgain: Bool = false, _ stamp: EventRecorder.Stamp
    ) -> [Query] {
        var data: JSONObject = ["reason": .string(deletion.reason ?? "")]
        for member in policy.revocationMembers { data[member] = .bool(wasRevoked) }
        if hasSignedInAgain { data["signed_in_again"] = true }
        return recorder.queries(.accountDeleted, of: account, stamp, data: data)
            + [Query(LifeStatement.announce, .text(account))]
    }

    /// - Parameter outcome: what happens to the job; with `wasRevoked` it is removed.
    func endRevocation(
        _ job: AccountJob, _ policy: DeletionPolicy, _ outcome: RevocationOutcome, _ stamp: EventRecorder.Stamp
    ) -> TransactionStep<Void> {
        let lookups = [
            Query(LifeStatement.lockDeletion, .text(job.account)), Query(LifeStatement.lockJob, .integer(job.number)),
            Query(LifeStatement.countRevocations, .text(job.account), .integer(job.number)),
        ]
        return .run(lookups) { results throws(AccountError) in
            guard !results[1].isEmpty else { return .end(()) }
            var queries: [Query]
            let wasRevoked: Bool
            switch outcome {
            case .revoked:
                queries = [Query(LifeStatement.removeJob, .integer(job.number))]
                wasRevoked = true
            case .abandoned(let instant, let reason):
                queries = [Query(LifeStatement.postponeJob, .integer(job.number), .integer(instant), .text(reason))]
                wasRevoked = false
            }
            guard let row = results[0].first, let others = results[2].first else {
                return .commit(queries) { _ in }
            }
            let deletion = try Deletion(row)
            let isComplete = try others.integer(0) == 0 || !wasRevoked
            if deletion.deletedAt != nil, !deletion.isAnnounced, isComplete {
                queries += announcement(of: job.account, deletion, policy, wasRevoked: wasRevoked, stamp)
            }
            return .commit(queries) { _ in }
        }
    }

    private static func lock(_ provider: String, _ subject: String) -> Query {
        Query(LifeStatement.lockIdentity, .text(provider), .text(subject))
    }
}

/// The outcome of an attempt to revoke a grant.
enum RevocationOutcome: Sendable {
    case revoked
    /// It is attempted again at an instant, but nothing waits for it any more.
    case abandoned(Int64, String)
}

/// A row of `lockIdentity`.
private struct KnownIdentity {
    let id: String
    let account: String
    /// `nil` if nothing is known.
    let state: IdentityState?
    /// Milliseconds since 1970.
    let revokedAt: Int64?
    let notifiedAt: Int64?
    /// When the issuer last confirmed the identity, in seconds since 1970.
    let confirmedAt: Int64?
    let mainSubject: String

    init(_ row: Row) throws(AccountError) {
        id = try row.text(0)
        account = try row.text(1)
        state = try row.state(2)
        revokedAt = try row.optionalInteger(3)
        notifiedAt = try row.optionalInteger(4)
        confirmedAt = try row.optionalInteger(5)
        mainSubject = try row.text(6)
    }

    /// Whether a credential may be older than the last revocation.
    func wasRevoked(after issuedAt: UnixTime) -> Bool {
        revokedAt.map { issuedAt.mayPrecede(milliseconds: $0) } ?? false
    }

    /// Whether an event is as new as everything that is known.
    func accepts(eventAt time: Int64) -> Bool {
        if let notifiedAt, time < notifiedAt { return false }
        guard let confirmedAt else { return true }
        return time / 1000 >= confirmedAt
    }
}

/// A row of `lockDeletion`.
private struct Deletion {
    let reason: String?
    let deletedAt: Int64?
    let isAnnounced: Bool
    /// When it is due.
    private let dueAt: Int64?

    init(_ row: Row) throws(AccountError) {
        dueAt = try row.optionalInteger(0)
        reason = try row.optionalText(1)
        deletedAt = try row.optionalInteger(2)
        isAnnounced = try row.optionalInteger(3) == 1
    }

    /// Whether no deletion was requested.
    var isAbsent: Bool { dueAt == nil && deletedAt == nil }
    /// Whether a deletion was requested that is not complete.
    var isPending: Bool { dueAt != nil && deletedAt == nil }

    /// Whether it can be taken back: once it is due, it is completed, however long that takes.
    func isPending(before now: Int64) -> Bool { isPending && now < dueAt ?? now }
}

/// The last queries of a transaction, some of which add jobs.
struct JobQueries: Sendable {
    private struct Draft {
        let position: Int
        let job: AccountJob
    }

    private var queries: [Query]
    private var drafts: [Draft] = []

    init(_ queries: [Query] = []) { self.queries = queries }

    /// Adds a job.
    mutating func add(
        _ kind: AccountJob.Kind, _ account: String, _ provider: String, _ data: JSONObject, dueAt: Int64, at now: Int64
    ) {
        let job = AccountJob(
            number: 0, kind: kind, account: account, provider: provider, data: data, attempts: 0, createdAt: now)
        drafts.append(Draft(position: queries.count, job: job))
        queries.append(
            Query(
                LifeStatement.addJob, .text(kind.rawValue), .text(account), .text(provider),
                .text(StoredClaims.write(data)), .integer(dueAt), .integer(now)))
    }

    func adding(_ more: [Query]) -> JobQueries {
        var sum = self
        sum.queries += more
        return sum
    }

    func adding(_ more: JobQueries) -> JobQueries {
        var sum = self
        sum.drafts += more.drafts.map { Draft(position: $0.position + queries.count, job: $0.job) }
        sum.queries += more.queries
        return sum
    }

    /// Commits the queries.
    /// - Parameter finish: receives the jobs with their numbers.
    func committed<Value: Sendable>(_ finish: @escaping @Sendable ([AccountJob]) -> Value) -> TransactionStep<Value> {
        let drafts = drafts
        return .commit(queries) { results throws(AccountError) in
            var jobs: [AccountJob] = []
            for draft in drafts {
                guard let row = results[draft.position].first else { throw .corrupt }
                jobs.append(draft.job.numbered(try row.integer(0)))
            }
            return finish(jobs)
        }
    }
}

extension AccountJob {
    fileprivate func numbered(_ number: Int64) -> AccountJob {
        AccountJob(
            number: number, kind: kind, account: account, provider: provider, data: data, attempts: attempts,
            createdAt: createdAt)
    }

    /// Decodes a row of `dueJobs`; `nil` for a kind that only a newer version knows.
    init?(_ row: Row) throws(AccountError) {
        guard let kind = Kind(rawValue: try row.text(1)) else { return nil }
        self.init(
            number: try row.integer(0), kind: kind, account: try row.text(2), provider: try row.text(3),
            data: try row.object(4), attempts: Int(clamping: try row.integer(5)),
            createdAt: try row.integer(6))
    }
}
