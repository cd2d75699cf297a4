package import MartletAccounts
private import MartletConfig
package import MartletCore
package import MartletProvider

/// The users of a run, counted by outcome.
package struct TransferSummary: Sendable, Equatable {
    /// Users who were exported or imported; in a trial those who would be.
    package var done = 0
    /// Users for whom nothing was left to do.
    package var already = 0
    package var failed = 0
    /// Why the run stopped early; `nil` if every user had a turn.
    package var stop: ErrorCode?

    package init() {}
}

/// A user who was not moved.
package struct TransferFailure: Sendable, Equatable {
    /// The subject at the issuer.
    package let subject: String
    /// The account; `nil` if there is none.
    package let account: String?
    package let reason: ErrorCode
}

/// Moves the users of a provider from or to another team of developers, at the provider's rate.
///
/// What is done is in the account store, one user at a time: a run that was interrupted goes on where it was.
package final class TransferRun: Sendable {
    /// What a run depends on.
    package struct Surroundings: Sendable {
        let provider: String
        let transferring: any Transferring
        let store: IdentityTransferStore
        let clock: Clock
        let sleep: @Sendable (Duration) async -> Void

        /// - Parameters:
        ///   - provider: the provider's name.
        ///   - sleep: pauses; a test advances its clock instead.
        package init(
            provider: String, transferring: any Transferring, store: IdentityTransferStore, clock: Clock,
            sleep: @escaping @Sendable (Duration) async -> Void = { try? await Task.sleep(for: $0) }
        ) {
            self.provider = provider
            self.transferring = transferring
            self.store = store
            self.clock = clock
            self.sleep = sleep
        }
    }

    /// What is done for one user.
    private struct Step: Sendable {
        let ask:
            @Sendable (TransferableIdentity, MonotonicTime) async throws(AuthenticationError)
                -> String
        /// Records the response; returns why it cannot be.
        let record: @Sendable (TransferableIdentity, String) async throws(AccountError) -> ErrorCode?
    }

    private struct Attempt: Sendable {
        enum Result: Sendable {
            case done
            case failed(ErrorCode)
            /// To be attempted again after a pause.
            case paused(ErrorCode)
            /// Nothing can succeed.
            case denied(ErrorCode)
            case store(AccountError)
        }

        let identity: TransferableIdentity
        let number: Int
        let result: Result
        /// Whether the attempt counts towards the user's attempts.
        var counts = true
    }

    private static let pageSize = 256
    /// The maximum number of calls in progress.
    private static let concurrency = 8
    private static let timeout = Duration.seconds(20)
    private static let firstPause = Duration.seconds(1)
    private static let attemptsPerUser = 3
    /// Pauses without any response between them, after which a run stops.
    private static let maximumPauses = 6

    private let surroundings: Surroundings
    private let pace: Lock<CheckPace>
    /// Called with every user who was not moved.
    private let report: @Sendable (TransferFailure) -> Void
    /// Called after every page of users.
    private let progress: @Sendable (TransferSummary) -> Void
    private let state = Lock(TransferSummary())

    package init(
        _ surroundings: Surroundings, report: @escaping @Sendable (TransferFailure) -> Void,
        progress: @escaping @Sendable (TransferSummary) -> Void = { _ in }
    ) {
        self.surroundings = surroundings
        self.report = report
        self.progress = progress
        pace = Lock(
            CheckPace(interval: surroundings.transferring.transferRate.interval, firstPause: TransferRun.firstPause))
    }

    private var summary: TransferSummary { state.withLock { $0 } }

    // MARK: Runs

    /// Exports the users of the provider's team to another one.
    /// - Parameter isTrial: only counts.
    package func export(
        from team: String, to target: String, isTrial: Bool = false
    ) async throws(AccountError) -> TransferSummary {
        let surroundings = surroundings
        let step = Step(
            ask: { (identity, deadline) async throws(AuthenticationError) in
                try await surroundings.transferring.exportUser(identity.subject, to: target, until: deadline)
            },
            record: { (identity, name) async throws(AccountError) in
                let transfer = IdentityTransfer(transferSubject: name, fromTeam: team, toTeam: target)
                let outcome = try await surroundings.store.noteExported(
                    identity, of: surroundings.provider, as: transfer, at: surroundings.clock.unixTime)
                switch outcome {
                case .exported: return nil
                case .changed: return .transferChanged
                case .conflict: return .transferConflict
                }
            })
        return try await run(step, exportedTo: nil, isTrial: isTrial) { identity in
            identity.recorded.map { $0.transfer.toTeam.hasSameBytes(as: target) } ?? false
        }
    }

    /// Imports the users who were exported to the provider's team.
    package func importUsers(to team: String, isTrial: Bool = false) async throws(AccountError) -> TransferSummary {
        let surroundings = surroundings
        let step = Step(
            ask: { (identity, deadline) async throws(AuthenticationError) in
                try await surroundings.transferring.importUser(
                    identity.recorded?.transfer.transferSubject ?? "", until: deadline)
            },
            record: { (identity, subject) async throws(AccountError) in
                guard let transfer = identity.recorded?.transfer else { return .transferUnknown }
                let outcome = try await surroundings.store.rekey(
                    transfer, of: surroundings.provider, to: subject, at: surroundings.clock.unixMilliseconds)
                switch outcome {
                case .rekeyed, .alreadyDone: return nil
                case .unknown: return .transferUnknown
                case .conflict: return .transferConflict
                case .deleted: return .identityDeleted
                }
            })
        return try await run(step, exportedTo: team, isTrial: isTrial) { $0.recorded?.isDone ?? false }
    }

    /// Records what another account store's export says of the users, before they are imported.
    /// - Parameter isTrial: only counts.
    package func adopt(
        _ exported: RecordedTransfer, by team: String, isTrial: Bool = false
    ) async throws(AccountError) {
        let subject = exported.oldSubject
        let (store, provider) = (surroundings.store, surroundings.provider)
        guard exported.transfer.toTeam.hasSameBytes(as: team) else {
            return fail(TransferFailure(subject: subject, account: nil, reason: .transferOtherTeam))
        }
        guard let identity = try await store.transferableIdentity(of: provider, subject: subject) else {
            return fail(TransferFailure(subject: subject, account: nil, reason: .transferUnknown))
        }
        // It was adopted before, or has moved since.
        if let recorded = identity.recorded, recorded.transfer == exported.transfer { return }
        guard identity.subject.hasSameBytes(as: subject) else { return }
        if let reason = Self.objection(to: identity) { return fail(identity, reason) }
        if isTrial { return state.withLock { $0.done += 1 } }
        switch try await store.noteExported(
            identity, of: provider, as: exported.transfer, at: surroundings.clock.unixTime)
        {
        case .exported: break
        case .changed: fail(identity, .transferChanged)
        case .conflict: fail(identity, .transferConflict)
        }
    }

    // MARK: Pages

    private func run(
        _ step: Step, exportedTo team: String?, isTrial: Bool,
        isDone: (TransferableIdentity) -> Bool
    ) async throws(AccountError) -> TransferSummary {
        try await prepare()
        var last = ""
        while summary.stop == nil {
            let page = try await surroundings.store.transferableIdentities(
                of: surroundings.provider, to: team, after: last, limit: TransferRun.pageSize)
            guard let end = page.last else { break }
            last = end.id
            var open: [TransferableIdentity] = []
            for identity in page {
                if isDone(identity) {
                    state.withLock { $0.already += 1 }
                } else if let reason = Self.objection(to: identity) {
                    fail(identity, reason)
                } else {
                    open.append(identity)
                }
            }
            if isTrial {
                state.withLock { $0.done += open.count }
            } else {
                try await perform(step, for: open)
            }
            progress(summary)
        }
        return summary
    }

    /// Why a user cannot be moved, whatever the issuer says.
    private static func objection(to identity: TransferableIdentity) -> ErrorCode? {
        switch identity.state {
        case .revoked: .identityRevoked
        case .deleted: .identityDeleted
        case .authorized, .transferred, nil: nil
        }
    }

    /// Waits for the issuer to allow calls; a run does not begin if it refuses them.
    private func prepare() async throws(AccountError) {
        while summary.stop == nil {
            let deadline = surroundings.clock.monotonicTime + TransferRun.timeout
            do throws(AuthenticationError) {
                return try await surroundings.transferring.prepareTransfers(until: deadline)
            } catch {
                switch error.disposition {
                case .throttled, .unavailable:
                    notePause(error)
                    await waitForTurn()
                default: stop(error.code)
                }
            }
        }
    }

    private func perform(_ step: Step, for identities: [TransferableIdentity]) async throws(AccountError) {
        var queue = identities.map { (identity: $0, number: 1) }[...]
        var failure: AccountError?
        await withTaskGroup(of: Attempt.self) { group in
            var inProgress = 0
            while failure == nil, summary.stop == nil, !queue.isEmpty || inProgress > 0 {
                if inProgress < TransferRun.concurrency, let (identity, number) = queue.popFirst() {
                    await waitForTurn()
                    guard summary.stop == nil else { break }
                    pace.withLock { $0.noteCheck(at: surroundings.clock.monotonicTime) }
                    group.addTask { await self.attempt(step, identity, number) }
                    inProgress += 1
                } else if let attempt = await group.next() {
                    inProgress -= 1
                    if let again = note(attempt, &failure) { queue.append((attempt.identity, again)) }
                }
            }
            // What was asked for is recorded, also if the run stops.
            for await attempt in group { _ = note(attempt, &failure) }
        }
        if let failure { throw failure }
    }

    /// Waits until the pace permits a call.
    private func waitForTurn() async {
        while summary.stop == nil {
            let left = pace.withLock { $0.wait(at: surroundings.clock.monotonicTime) }
            guard left > .zero else { return }
            await surroundings.sleep(left)
        }
    }

    // MARK: Attempts

    private func attempt(_ step: Step, _ identity: TransferableIdentity, _ number: Int) async -> Attempt {
        let deadline = surroundings.clock.monotonicTime + TransferRun.timeout
        let name: String
        do throws(AuthenticationError) {
            name = try await step.ask(identity, deadline)
            pace.withLock { $0.noteResponse() }
        } catch {
            return refused(error, identity, number)
        }
        do throws(AccountError) {
            let reason = try await step.record(identity, name)
            return Attempt(identity: identity, number: number, result: reason.map { .failed($0) } ?? .done)
        } catch {
            let isOfUser = error.code == .accountsTextInvalid
            return Attempt(identity: identity, number: number, result: isOfUser ? .failed(error.code) : .store(error))
        }
    }

    private func refused(_ error: AuthenticationError, _ identity: TransferableIdentity, _ number: Int) -> Attempt {
        switch error.disposition {
        case .throttled:
            notePause(error)
            return Attempt(identity: identity, number: number, result: .paused(error.code), counts: false)
        case .unavailable:
            notePause(error)
            return Attempt(identity: identity, number: number, result: .paused(error.code))
        case .denied: return Attempt(identity: identity, number: number, result: .denied(error.code))
        case .rejected, .malformed, .notFound:
            pace.withLock { $0.noteResponse() }
            return Attempt(identity: identity, number: number, result: .failed(error.code))
        }
    }

    /// Records a pause, before any further call; too many of them stop the run.
    private func notePause(_ error: AuthenticationError) {
        let pauses = pace.withLock { pace in
            pace.noteThrottled(at: surroundings.clock.monotonicTime, retryAfter: error.retryAfter)
            return pace.pauses
        }
        if pauses >= TransferRun.maximumPauses { stop(error.code) }
    }

    /// Records the outcome of an attempt.
    /// - Returns: the number of the next attempt; `nil` if there is none.
    private func note(_ attempt: Attempt, _ failure: inout AccountError?) -> Int? {
        switch attempt.result {
        case .done: state.withLock { $0.done += 1 }
        case .failed(let reason): fail(attempt.identity, reason)
        case .denied(let reason): stop(reason)
        case .store(let error): failure = error
        case .paused(let reason):
            guard attempt.counts else { return attempt.number }
            guard attempt.number >= TransferRun.attemptsPerUser else { return attempt.number + 1 }
            fail(attempt.identity, reason)
        }
        return nil
    }

    private func stop(_ reason: ErrorCode) { state.withLock { $0.stop = $0.stop ?? reason } }

    private func fail(_ identity: TransferableIdentity, _ reason: ErrorCode) {
        fail(TransferFailure(subject: identity.subject, account: identity.account, reason: reason))
    }

    private func fail(_ failure: TransferFailure) {
        state.withLock { $0.failed += 1 }
        report(failure)
    }
}

extension ErrorCode {
    /// The identity was removed, revoked or re-keyed during its export.
    package static let transferChanged: ErrorCode = "transfer.changed"
    /// The transfer subject, or the new subject, belongs to another identity.
    package static let transferConflict: ErrorCode = "transfer.conflict"
    /// No identity of the account store has this subject, or was exported.
    package static let transferUnknown: ErrorCode = "transfer.unknown"
    /// The user was exported to another team.
    package static let transferOtherTeam: ErrorCode = "transfer.other_team"
}
