package import MartletAccounts
package import MartletAudit
package import MartletCore
package import MartletEvents
private import MartletJSON
package import MartletProvider
private import MartletSession
private import Synchronization

/// Does what changes of accounts leave to be done: ends sessions, deletes accounts, revokes grants.
///
/// The process that made a change does its jobs immediately; the one that holds the lease does what is due, such as
/// the jobs of a process that was killed. Each job is idempotent, and stays in the store until it is done.
package final class JobRunner: Sendable {
    /// What jobs work on.
    package struct Surroundings: Sendable {
        package let store: IdentityLifeStore
        package let leases: any LeaseStoring
        package let accounts: any AccountStoring
        package let sessions: any AccountSessionEnding
        /// Makes every gateway apply the claims of an account.
        package let publishClaims: @Sendable (_ subject: String) async throws(ClaimPublisher.PublicationError) -> Void
        package let providers: [ProviderHandle]
        /// `nil` if no provider returns grants.
        package let keys: GrantKeys?
        package let policy: DeletionPolicy
        /// `nil` where no jobs are run in the background.
        package var outbox: OutboxPruner?
        /// Takes what was done; `nil` without `audit:`.
        package var audit: (any AuditRecording)?

        package init(
            store: IdentityLifeStore, leases: any LeaseStoring, accounts: any AccountStoring,
            sessions: any AccountSessionEnding,
            publishClaims:
                @escaping @Sendable (_ subject: String) async throws(ClaimPublisher.PublicationError) -> Void,
            providers: [ProviderHandle], keys: GrantKeys?, policy: DeletionPolicy
        ) {
            self.store = store
            self.leases = leases
            self.accounts = accounts
            self.sessions = sessions
            self.publishClaims = publishClaims
            self.providers = providers
            self.keys = keys
            self.policy = policy
        }
    }

    private static let batch = 64
    private static let pollInterval = Duration.milliseconds(250)
    /// The time of one attempt to revoke a grant.
    private static let revocationTimeout = Duration.seconds(20)
    /// How long filed notifications are kept: longer than a repeated one is accepted.
    private static let notificationAge: Int64 = 7 * 86_400_000
    /// How long it is stored when identities have left their accounts: longer than credentials are accepted.
    private static let departureAge: Int64 = 2 * 86_400_000
    private static let pruneInterval = Duration.seconds(3600)
    private static let countInterval = Duration.seconds(15)

    private let surroundings: Surroundings
    private let clock: Clock
    private let logger: Logger
    private let wakeup = Wakeup()
    private let isStopping = Atomic(false)
    private let outages: OutageReporter
    private let pending = Lock<PendingRevocations?>(nil)

    package init(_ surroundings: Surroundings, clock: Clock, logger: Logger) {
        self.surroundings = surroundings
        self.clock = clock
        self.logger = logger
        outages = OutageReporter(
            "account jobs unavailable", end: "account jobs available again", clock: clock, logger: logger)
    }

    /// The revocations that have not succeeded; `nil` if this instance does not count them.
    package var pendingRevocations: PendingRevocations? { pending.withLock { $0 } }

    /// Does jobs of a change that this process has just made.
    ///
    /// - Returns: whether all are done; the others are attempted again later.
    @discardableResult
    package func perform(_ jobs: [AccountJob]) async -> Bool {
        var isDone = true
        for job in jobs where await !perform(job) { isDone = false }
        return isDone
    }

    /// Does what is due until it is stopped, while this instance holds the lease.
    package func run() async {
        guard var lease = try? HeldLease("jobs", in: surroundings.leases, at: clock.unixMilliseconds) else { return }
        var pruned: MonotonicTime?
        var counted: MonotonicTime?
        // Later than at the start, so that there is time to correct a configuration that lacks a webhook.
        var dropped = clock.monotonicTime
        while !isEnding {
            let isHeld = await renewed(&lease)
            if isHeld {
                let now = clock.monotonicTime
                if pruned.map({ now.since($0) >= JobRunner.pruneInterval }) ?? true {
                    pruned = now
                    await prune()
                }
                // A limited number at a time, because the lease has to be renewed between them.
                if now.since(dropped) >= JobRunner.pruneInterval, await !dropDeliveries() { dropped = now }
                if counted.map({ now.since($0) >= JobRunner.countInterval }) ?? true {
                    counted = now
                    await count()
                }
                // More may be due: without a pause after a full batch.
                if await performDue() { continue }
            } else {
                counted = nil
                pending.withLock { $0 = nil }
            }
            await wakeup.wait(atMost: JobRunner.pollInterval)
        }
        await lease.release(at: clock.monotonicTime)
    }

    /// Ends `run()` after the jobs in progress.
    package func stop() {
        isStopping.store(true, ordering: .releasing)
        wakeup.signal()
    }

    private var isEnding: Bool { isStopping.load(ordering: .acquiring) || Task.isCancelled }

    private func renewed(_ lease: inout HeldLease) async -> Bool {
        do throws(StoreError) { return try await lease.renew(by: clock) } catch {
            outages.failed(error)
            return lease.isHeld(at: clock.monotonicTime)
        }
    }

    /// - Returns: whether there may be more.
    private func performDue() async -> Bool {
        let found = await noted(
            try await surroundings.store.dueJobs(at: clock.unixMilliseconds, limit: JobRunner.batch))
        guard let jobs = found else { return false }
        outages.succeeded()
        await withTaskGroup(of: Void.self) { group in
            // Jobs of one account in order, those of different accounts at the same time.
            for jobs in Dictionary(grouping: jobs, by: \.account).values {
                group.addTask { await self.perform(jobs) }
            }
        }
        return jobs.count == JobRunner.batch
    }

    private func prune() async {
        let (instant, overflow) = clock.unixMilliseconds.subtractingReportingOverflow(JobRunner.notificationAge)
        guard !overflow else { return }
        await noted(
            try await surroundings.store.prune(
                before: instant, departuresBefore: clock.unixMilliseconds &- JobRunner.departureAge))
    }

    /// - Returns: whether there may be more.
    private func dropDeliveries() async -> Bool {
        do throws(StoreError) { return try await surroundings.outbox?.drop() ?? false } catch {
            outages.failed(error)
            return false
        }
    }

    private func count() async {
        if let found = await noted(try await surroundings.store.pendingRevocations()) {
            pending.withLock { $0 = found }
        }
    }

    // MARK: Jobs

    private func perform(_ job: AccountJob) async -> Bool {
        do throws(JobError) {
            switch job.kind {
            case .endSessions: try await endSessions(job)
            case .deleteAccount: try await deleteAccount(job)
            case .revoke: try await revoke(job)
            case .publishClaims: try await publishClaims(job)
            }
            return true
        } catch {
            await postpone(job, error)
            return false
        }
    }

    private func endSessions(_ job: AccountJob) async throws(JobError) {
        let end = SessionsEnd(job)
        // Events first: after the sessions have ended, a process that starts again would not find them.
        if !job.hasListed { try await report(end, of: job) }
        try await fromSessions(await surroundings.sessions.end(end, of: job.account))
        try await fromAccounts(await surroundings.store.finish(job))
    }

    /// Records the events of the sessions that are about to end; the job counts as listed with the last page of them.
    private func report(_ end: SessionsEnd, of job: AccountJob) async throws(JobError) {
        var start: SessionPosition?
        repeat {
            let page = try await fromSessions(await surroundings.sessions.page(of: job.account, from: start))
            let ended = page.sessions.filter { end.concerns($0) }.map {
                EndedSession(id: $0.id, provider: $0.provider)
            }
            start = end.only == nil || ended.isEmpty ? page.next : nil
            let isLast = start == nil
            try await fromAccounts(
                await surroundings.store.noteSessions(ended, of: job, isLast: isLast, at: clock.unixMilliseconds))
        } while start != nil
    }

    private func deleteAccount(_ job: AccountJob) async throws(JobError) {
        for identity in try await fromAccounts(await surroundings.accounts.identities(of: job.account)) {
            guard let unlinking = provider(identity.provider)?.unlinking else { continue }
            for subject in identity.subjects { try await fromProvider(await unlinking.unlink(subject)) }
        }
        try await fromAccounts(
            await surroundings.store.deleteAccount(job, surroundings.policy, at: clock.unixMilliseconds))
        record(AuditEvent(.deletion), job, "done")
        logger.info("account deleted", ("subject", job.account))
        wakeup.signal()
    }

    private func revoke(_ job: AccountJob) async throws(JobError) {
        guard let revoking = provider(job.provider)?.revoking else { throw JobError(code: .jobNoProvider) }
        guard let grant = grant(of: job) else { throw JobError(code: .accountsKeyMissing) }
        try await fromProvider(await revoking.revoke(grant, until: clock.monotonicTime + JobRunner.revocationTimeout))
        try await fromAccounts(
            await surroundings.store.finishRevocation(job, surroundings.policy, at: clock.unixMilliseconds))
        record(AuditEvent(.revoke), job, "grant")
        logger.info("grant revoked", ("provider", job.provider), ("subject", job.account))
    }

    private func record(_ event: AuditEvent, _ job: AccountJob, _ detail: String) {
        guard let audit = surroundings.audit else { return }
        var event = event
        event.set(subject: job.account)
        event.set("provider", job.provider)
        event.set("detail", detail)
        audit.record(event)
    }

    private func publishClaims(_ job: AccountJob) async throws(JobError) {
        do throws(ClaimPublisher.PublicationError) {
            try await surroundings.publishClaims(job.account)
        } catch {
            throw JobError(code: error.code)
        }
        try await fromAccounts(await surroundings.store.finish(job))
    }

    private func provider(_ name: String) -> ProviderHandle? {
        surroundings.providers.first { $0.name.hasSameBytes(as: name) }
    }

    private func grant(of job: AccountJob) -> ProviderGrant? {
        guard let subject = job.data["subject"]?.string, let client = job.data["client"]?.string,
            let keyID = job.data["key_id"]?.string, let token = job.data["token"]?.string
        else { return nil }
        return surroundings.keys?.open(
            SealedGrant(client: client, keyID: keyID, token: token), of: subject, provider: job.provider)
    }

    private func postpone(_ job: AccountJob, _ error: JobError) async {
        let now = clock.unixMilliseconds
        logger.warning(
            "job failed", ("job", job.kind.rawValue), ("subject", job.account), ("provider", job.provider),
            ("attempt", String(job.attempts)), ("code", error.code.rawValue))
        if job.kind == .revoke, JobSchedule.isAbandoned(job, surroundings.policy, at: now) {
            await noted(
                try await surroundings.store.abandonRevocation(
                    job, surroundings.policy, until: JobSchedule.nextAbandoned(at: now), reason: error.code.rawValue,
                    at: now))
        } else {
            let instant = JobSchedule.retry(job, at: now, retryAfter: error.retryAfter, random: .random(in: 0...1))
            await noted(try await surroundings.store.postpone(job, until: instant, reason: error.code.rawValue))
        }
    }

    /// Why a job has to be attempted again.
    private struct JobError: Error {
        let code: ErrorCode
        var retryAfter: Duration?
    }

    private func fromSessions<Value>(
        _ value: @autoclosure () async throws(SessionError) -> Value
    ) async throws(JobError) -> Value {
        do throws(SessionError) { return try await value() } catch { throw JobError(code: error.code) }
    }

    private func fromAccounts<Value>(
        _ value: @autoclosure () async throws(AccountError) -> Value
    ) async throws(JobError) -> Value {
        do throws(AccountError) { return try await value() } catch { throw JobError(code: error.code) }
    }

    private func fromProvider(
        _ call: @autoclosure () async throws(AuthenticationError) -> Void
    ) async throws(JobError) {
        do throws(AuthenticationError) { try await call() } catch {
            throw JobError(code: error.code, retryAfter: error.retryAfter)
        }
    }

    /// What the account store returns; `nil` for an outage, which is noted.
    @discardableResult
    private func noted<Value>(_ value: @autoclosure () async throws(AccountError) -> Value) async -> Value? {
        do throws(AccountError) { return try await value() } catch {
            outages.failed(error)
            return nil
        }
    }
}

extension SessionsEnd {
    /// Whether a session ends.
    fileprivate func concerns(_ session: SessionSummary) -> Bool {
        if let only, !session.id.hasSameBytes(as: only) { return false }
        if let except, session.id.hasSameBytes(as: except) { return false }
        return provider.map { session.provider.hasSameBytes(as: $0) } ?? true
    }
}

extension ErrorCode {
    /// The provider of a grant is not configured, or cannot revoke it.
    fileprivate static let jobNoProvider: ErrorCode = "accounts.provider_missing"
}
