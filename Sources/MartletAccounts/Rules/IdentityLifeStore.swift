package import MartletCore
package import MartletEvents
package import MartletJSON
package import MartletProvider

/// The state of identities after their login: grants, notifications, checks, and the deletion of accounts.
///
/// Times are milliseconds since 1970 where nothing else is said. Every method throws `unavailable` while the store is.
package struct IdentityLifeStore: Sendable {
    private let engine: any AccountEngine
    private let recorder: EventRecorder
    private let life: LifeRules

    init(_ engine: any AccountEngine, _ recorder: EventRecorder) {
        self.engine = engine
        self.recorder = recorder
        life = LifeRules(recorder: recorder)
    }

    /// Records that the issuer has confirmed an identity, and its grant.
    /// - Returns: whether the claims of the account have changed; `nil` if the credential was issued before the identity
    ///   was revoked, and nothing was recorded.
    package func confirm(_ login: ConfirmedLogin) async throws(AccountError) -> LoginConfirmation? {
        let stamp = try EventRecorder.Stamp(at: login.now.milliseconds)
        let confirmed = try await engine.transact(life.confirm(login, stamp))
        if confirmed.hasEvents { recorder.observers.signal() }
        return confirmed.confirmation
    }

    /// Takes a pending deletion of an account back; `false` if there is none, or if it is due.
    package func restore(_ subject: String, at now: Int64) async throws(AccountError) -> Bool {
        guard TextRules.isKey(subject) else { return false }
        let isRestored = try await engine.transact(life.restore(subject, at: now, try EventRecorder.Stamp(at: now)))
        if isRestored { recorder.observers.signal() }
        return isRestored
    }

    /// The states of an account's identities, oldest first.
    package func identityStates(of subject: String) async throws(AccountError) -> [IdentityStatus] {
        guard TextRules.isKey(subject) else { return [] }
        return try await read(LifeStatement.states, .text(subject)) { row throws(AccountError) in
            IdentityStatus(
                provider: try row.text(0), state: try row.state(1),
                checkedAt: try row.optionalTime(2),
                hasGrant: try row.integer(3) > 0)
        }
    }

    // MARK: Notifications

    /// Files a notification and applies it, in one transaction.
    /// - Parameter deletion: what to do with an account whose last identity is gone.
    package func file(
        _ notification: ProviderNotification, from source: NotificationSource, deletion: DeletionPolicy, at now: Int64
    ) async throws(AccountError) -> FiledNotification {
        guard TextRules.isKey(notification.subject), TextRules.isKey(notification.id) else { throw .textInvalid }
        let step = life.file(notification, from: source, deletion: deletion, at: now, try EventRecorder.Stamp(at: now))
        let filed = try await engine.transact(step)
        if !filed.jobs.isEmpty { recorder.observers.signal() }
        return filed
    }

    /// Removes notifications that were filed before an instant, and the marks of sessions that ended before it; a
    /// repeated notification is rejected as expired by then.
    /// - Parameter departure: older marks of identities that have left their accounts are removed, too.
    package func prune(before instant: Int64, departuresBefore departure: Int64) async throws(AccountError) {
        try await engine.commit([
            Query(ProofStatement.removeDepartures, .integer(departure)),
            Query(LifeStatement.removeNotifications, .integer(instant)),
            Query(LifeStatement.removeEndedSessions, .integer(instant)),
        ])
    }

    // MARK: Deletion

    /// Schedules the deletion of an account; its sessions end immediately.
    /// - Parameter headStart: how long the caller has to do the jobs before any other process does, in milliseconds.
    /// - Returns: what is to be done now; empty if it is scheduled already.
    /// - Throws: `notFound`, `unavailable`.
    package func requestDeletion(
        of subject: String, reason: String, _ policy: DeletionPolicy, at now: Int64,
        headStart: Int64 = LifeRules.headStart
    ) async throws(AccountError) -> [AccountJob] {
        guard TextRules.isKey(subject) else { throw .unknownAccount }
        return try await engine.transact(
            life.requestDeletion(of: subject, reason: reason, policy, at: now, headStart: headStart))
    }

    /// Deletes an account whose deletion is due: what is left are the jobs that revoke its grants.
    package func deleteAccount(_ job: AccountJob, _ policy: DeletionPolicy, at now: Int64) async throws(AccountError) {
        try await engine.transact(life.deleteAccount(job, policy, at: now, try EventRecorder.Stamp(at: now)))
        recorder.observers.signal()
    }

    /// Removes a job that revoked a grant; with the account's last one the deletion is complete.
    package func finishRevocation(_ job: AccountJob, _ policy: DeletionPolicy, at now: Int64) async throws(AccountError)
    {
        try await engine.transact(life.endRevocation(job, policy, .revoked, try EventRecorder.Stamp(at: now)))
        recorder.observers.signal()
    }

    /// Records that a grant could not be revoked for as long as the policy says: the deletion is complete, but the job
    /// stays.
    package func abandonRevocation(
        _ job: AccountJob, _ policy: DeletionPolicy, until instant: Int64, reason: String, at now: Int64
    ) async throws(AccountError) {
        let outcome = RevocationOutcome.abandoned(instant, reason)
        try await engine.transact(life.endRevocation(job, policy, outcome, try EventRecorder.Stamp(at: now)))
        recorder.observers.signal()
    }

    // MARK: Checks

    /// The identities of a provider whose check is due, the longest due first; each once.
    package func dueChecks(of provider: String, at now: Int64, limit: Int) async throws(AccountError) -> [DueCheck] {
        let rows = try await read(
            LifeStatement.dueChecks, .text(provider), .integer(now), .integer(Int64(clamping: max(limit, 1)))
        ) { row throws(AccountError) in
            DueCheck(
                identity: try row.text(0), account: try row.text(1), subject: try row.text(2),
                dueAt: try row.integer(3),
                grant: SealedGrant(client: try row.text(4), keyID: try row.text(5), token: try row.text(6)))
        }
        // An identity with grants of several clients has several rows; one of them shows the consent.
        var checks: [DueCheck] = []
        for row in rows where checks.last.map({ !$0.identity.hasSameBytes(as: row.identity) }) ?? true {
            checks.append(row)
        }
        return checks
    }

    /// Moves the next check of an identity before this one is made; `false` if another instance was first.
    package func beginCheck(_ check: DueCheck, next: Int64) async throws(AccountError) -> Bool {
        let query = Query(LifeStatement.beginCheck, .text(check.identity), .integer(next), .integer(check.dueAt))
        return try await engine.change(query)
    }

    /// Records that an identity's grant is valid.
    package func noteValid(_ check: DueCheck, at now: UnixTime) async throws(AccountError) {
        try await engine.commit([Query(LifeStatement.noteValid, .text(check.identity), .integer(now.seconds))])
    }

    /// Records that an identity's grant was revoked, and what follows.
    package func noteRevoked(
        _ check: DueCheck, of provider: String, reason: String, at now: Int64
    ) async throws(AccountError) -> [AccountJob] {
        let step = life.noteRevoked(check, of: provider, reason: reason, at: now, try EventRecorder.Stamp(at: now))
        let jobs = try await engine.transact(step)
        if !jobs.isEmpty { recorder.observers.signal() }
        return jobs
    }

    // MARK: Jobs

    /// The jobs that are due, the longest due first.
    package func dueJobs(at now: Int64, limit: Int) async throws(AccountError) -> [AccountJob] {
        try await read(LifeStatement.dueJobs, .integer(now), .integer(Int64(clamping: max(limit, 1)))) {
            row throws(AccountError) in
            try AccountJob(row)
        }.compactMap { $0 }
    }

    /// Removes a job that is done.
    package func finish(_ job: AccountJob) async throws(AccountError) {
        try await engine.commit([Query(LifeStatement.removeJob, .integer(job.number))])
    }

    /// Counts a failed attempt.
    package func postpone(_ job: AccountJob, until instant: Int64, reason: String) async throws(AccountError) {
        try await engine.commit([
            Query(
                LifeStatement.postponeJob, .integer(job.number), .integer(instant), .text(AccountStore.storable(reason))
            )
        ])
    }

    /// Records the end of sessions as events, once for each job and once for each session.
    /// - Parameter isLast: whether the job has no further sessions.
    package func noteSessions(
        _ sessions: [EndedSession], of job: AccountJob, isLast: Bool, at now: Int64
    ) async throws(AccountError) {
        guard recorder.isSubscribed(to: .sessionRevoked), !sessions.isEmpty else { return }
        var reports: [[Query]] = []
        for session in sessions {
            reports.append(
                recorder.queries(
                    .sessionRevoked, of: job.account, try EventRecorder.Stamp(at: now),
                    data: [
                        "session_id": .string(session.id), "reason": job.data["reason"] ?? "",
                        "provider": .string(session.provider),
                    ]))
        }
        var data = job.data
        data[AccountJob.listedMember] = true
        let noted = Query(LifeStatement.setJobData, .integer(job.number), .text(StoredClaims.write(data)))
        let mark = isLast ? [noted] : []
        let marks = sessions.map { Query(LifeStatement.addEndedSession, .text($0.id), .integer(now)) }
        let events = reports
        try await engine.transact(
            .run([Query(LifeStatement.lockJob, .integer(job.number))]) { results in
                guard !results[0].isEmpty else { return .end(()) }
                // Another job may end, and have reported, the same session.
                return .run(marks) { marked in
                    let new = events.indices.filter { !marked[$0].isEmpty }.flatMap { events[$0] }
                    return .commit(new + mark) { _ in }
                }
            })
        recorder.observers.signal()
    }

    /// Counts the revocations that have not succeeded.
    package func pendingRevocations() async throws(AccountError) -> PendingRevocations {
        let rows = try await read(LifeStatement.pendingRevocations) { row throws(AccountError) in
            var pending = PendingRevocations()
            pending.count = Int(clamping: try row.integer(0))
            pending.oldest = try row.optionalInteger(1)
            return pending
        }
        return rows.first ?? PendingRevocations()
    }

    // MARK: Events

    /// Whether a webhook gets events of a type.
    package func isSubscribed(to type: EventType) -> Bool { recorder.isSubscribed(to: type) }

    /// Records an event, if a webhook gets it.
    package func record(
        _ type: EventType, of subject: String, data: JSONObject, at now: Int64
    ) async throws(AccountError) {
        let queries = recorder.queries(type, of: subject, try EventRecorder.Stamp(at: now), data: data)
        guard !queries.isEmpty else { return }
        try await engine.commit(queries)
        recorder.observers.signal()
    }

    /// Records that sessions are about to end: the job that ends them.
    /// - Parameter end: which sessions, and why.
    package func beginEnd(
        _ end: SessionsEnd, of subject: String, at now: Int64
    ) async throws(AccountError) -> [AccountJob] {
        var changes = JobQueries()
        changes.add(.endSessions, subject, end.provider ?? "", end.data, dueAt: now &+ LifeRules.headStart, at: now)
        return try await engine.transact(changes.committed { $0 })
    }

    // MARK: Keys

    /// The canaries of the keys that grants have been encrypted with, by key id.
    package func canaries() async throws(AccountError) -> [String: String] {
        let rows = try await read(LifeStatement.canaries) { row throws(AccountError) in
            (try row.text(0), try row.text(1))
        }
        return Dictionary(rows) { first, _ in first }
    }

    /// Stores the canary of a new key; an existing one stays.
    package func addCanary(_ text: String, of keyID: String) async throws(AccountError) {
        try await engine.commit([Query(LifeStatement.addCanary, .text(keyID), .text(text))])
    }

    /// Whether a grant is encrypted with a key.
    package func isInUse(_ keyID: String) async throws(AccountError) -> Bool {
        try await !read(LifeStatement.keyInGrants, .text(keyID)) { _ in true }.isEmpty
    }

    // MARK: Queries

    private func read<Value: Sendable>(
        _ statement: Statement, _ values: Query.Value...,
        decoding decode: @escaping @Sendable (Row) throws(AccountError) -> Value
    ) async throws(AccountError) -> [Value] {
        try await engine.rows(Query(statement, values), decode)
    }
}

extension AccountJob {
    /// Whether the events of its sessions are recorded.
    package var hasListed: Bool { data[AccountJob.listedMember] == true }

    static let listedMember = "listed"
}
