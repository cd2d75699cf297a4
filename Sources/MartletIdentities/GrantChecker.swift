package import MartletAccounts
private import MartletConfig
package import MartletCore
package import MartletEvents
package import MartletProvider
private import Synchronization

/// Checks the grants of one provider, each once in a period, while this instance holds the provider's lease.
///
/// The next check is recorded before this one is made: a process that is killed in between makes none twice.
package final class GrantChecker: Sendable {
    /// The outcomes of the checks since the start.
    package struct Counters: Sendable, Equatable {
        package var valid = 0
        package var revoked = 0
        /// The issuer's response proved nothing, or there was none.
        package var failed = 0
        package var throttled = 0

        package init() {}
    }

    private enum Result: Sendable {
        case valid, revoked, failed
        case throttled(Duration?)
    }

    private static let batch = 64
    /// The maximum number of checks in progress.
    private static let concurrency = 8
    private static let pollInterval = Duration.seconds(1)
    private static let timeout = Duration.seconds(20)

    private let provider: String
    private let refreshing: any Refreshing
    private let schedule: CheckSchedule
    private let kind: String
    private let store: IdentityLifeStore
    private let leases: any LeaseStoring
    private let keys: GrantKeys
    private let runner: JobRunner
    private let clock: Clock
    private let logger: Logger
    private let sleep: @Sendable (Duration) async -> Void
    private let isStopping = Atomic(false)
    private let outages: OutageReporter
    private let totals = Lock(Counters())

    /// - Parameter sleep: pauses; a test advances its clock instead.
    /// - Returns: `nil` for a provider whose grants are not checked.
    package init?(
        _ handle: ProviderHandle, store: IdentityLifeStore, leases: any LeaseStoring, keys: GrantKeys,
        runner: JobRunner, clock: Clock, logger: Logger,
        sleep: @escaping @Sendable (Duration) async -> Void = { try? await Task.sleep(for: $0) }
    ) {
        guard let refreshing = handle.refreshing, let schedule = refreshing.checkSchedule else { return nil }
        provider = handle.name
        kind = handle.kind.rawValue
        self.refreshing = refreshing
        self.schedule = schedule
        self.store = store
        self.leases = leases
        self.keys = keys
        self.runner = runner
        self.clock = clock
        let logger = logger.with(("provider", handle.name))
        self.logger = logger
        outages = OutageReporter(
            "checks of grants unavailable", end: "checks of grants available again", clock: clock, logger: logger)
        self.sleep = sleep
    }

    package var counters: Counters { totals.withLock { $0 } }

    /// When the first check of a new grant is due, in milliseconds since 1970.
    package static func firstCheck(_ schedule: CheckSchedule, at now: Int64) -> Int64 {
        let spread = max(schedule.spread.wholeMilliseconds, 0)
        let next = JobSchedule.later(now, by: schedule.every.wholeMilliseconds)
        return JobSchedule.later(next, by: spread == 0 ? 0 : .random(in: 0...spread))
    }

    /// Checks what is due until it is stopped.
    package func run() async {
        guard var lease = try? HeldLease("check:\(provider)", in: leases, at: clock.unixMilliseconds) else { return }
        var pace = CheckPace(interval: schedule.rate.interval)
        while !isEnding {
            let isHeld = (try? await lease.renew(by: clock)) ?? lease.isHeld(at: clock.monotonicTime)
            let due = isHeld ? await dueChecks() : []
            if due.isEmpty {
                await sleep(GrantChecker.pollInterval)
            } else {
                await check(due, &pace, &lease)
            }
        }
        await lease.release(at: clock.monotonicTime)
    }

    /// Ends `run()` after the checks in progress.
    package func stop() { isStopping.store(true, ordering: .releasing) }

    private var isEnding: Bool { isStopping.load(ordering: .acquiring) || Task.isCancelled }

    private func dueChecks() async -> [DueCheck] {
        let due = await noted(
            try await store.dueChecks(of: provider, at: clock.unixMilliseconds, limit: GrantChecker.batch))
        if due != nil { outages.succeeded() }
        return due ?? []
    }

    private func check(_ due: [DueCheck], _ pace: inout CheckPace, _ lease: inout HeldLease) async {
        await withTaskGroup(of: Result.self) { group in
            var inProgress = 0
            for check in due {
                if inProgress >= GrantChecker.concurrency, let result = await group.next() {
                    inProgress -= 1
                    note(result, &pace)
                }
                guard await waitForTurn(&pace, &lease) else { break }
                guard await begin(check) else { continue }
                pace.noteCheck(at: clock.monotonicTime)
                // It runs up to the call immediately, so that calls keep the distance of their turns.
                group.addImmediateTask { await self.perform(check) }
                inProgress += 1
            }
            for await result in group { note(result, &pace) }
        }
    }

    /// Waits until the pace permits a check; `false` if the lease was lost meanwhile.
    private func waitForTurn(_ pace: inout CheckPace, _ lease: inout HeldLease) async -> Bool {
        while !isEnding {
            let left = pace.wait(at: clock.monotonicTime)
            if left > .zero { await sleep(min(left, GrantChecker.pollInterval)) }
            guard (try? await lease.renew(by: clock)) ?? lease.isHeld(at: clock.monotonicTime) else { return false }
            if left <= GrantChecker.pollInterval { return true }
        }
        return false
    }

    private func note(_ result: Result, _ pace: inout CheckPace) {
        totals.withLock { totals in
            switch result {
            case .valid: totals.valid &+= 1
            case .revoked: totals.revoked &+= 1
            case .failed: totals.failed &+= 1
            case .throttled: totals.throttled &+= 1
            }
        }
        switch result {
        case .valid, .revoked: pace.noteResponse()
        case .failed: break
        case .throttled(let retryAfter): pace.noteThrottled(at: clock.monotonicTime, retryAfter: retryAfter)
        }
    }

    /// Records when the next check is due; `false` if this one is another instance's, or, after a pause, if the store
    /// cannot record it: what is due may still be read from one that takes no changes.
    private func begin(_ due: DueCheck) async -> Bool {
        let next = JobSchedule.later(clock.unixMilliseconds, by: schedule.every.wholeMilliseconds)
        if let isOurs = await noted(try await store.beginCheck(due, next: next)) { return isOurs }
        await sleep(GrantChecker.pollInterval)
        return false
    }

    private func perform(_ due: DueCheck) async -> Result { await noted(try await ask(due)) ?? .failed }

    /// What the account store returns; `nil` for an outage, which is noted.
    private func noted<Value>(_ value: @autoclosure () async throws(AccountError) -> Value) async -> Value? {
        do throws(AccountError) { return try await value() } catch {
            outages.failed(error)
            return nil
        }
    }

    private func ask(_ due: DueCheck) async throws(AccountError) -> Result {
        guard let grant = keys.open(due.grant, of: due.subject, provider: provider) else {
            logger.error("grant cannot be decrypted", ("subject", due.account), ("key", due.grant.keyID))
            return .failed
        }
        let state: GrantState
        do throws(AuthenticationError) {
            state = try await refreshing.check(
                grant, of: due.subject, until: clock.monotonicTime + GrantChecker.timeout)
        } catch {
            if error.disposition == .throttled { return .throttled(error.retryAfter) }
            logger.warning("check of a grant failed", ("subject", due.account), ("code", error.code.rawValue))
            return .failed
        }
        switch state {
        case .valid:
            try await store.noteValid(due, at: clock.unixTime)
            return .valid
        case .revoked:
            let jobs = try await store.noteRevoked(
                due, of: provider, reason: "\(kind)_check", at: clock.unixMilliseconds)
            if !jobs.isEmpty { logger.info("identity revoked", ("subject", due.account), ("reason", "check")) }
            await runner.perform(jobs)
            return .revoked
        }
    }
}
