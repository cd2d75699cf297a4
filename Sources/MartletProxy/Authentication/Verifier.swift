package import MartletCore
internal import MartletProvider
private import Synchronization

/// Judges credentials that no loop has seen before: a few threads and a bounded queue, so that a batch of unseen tokens
/// never holds up a loop's other connections.
package final class Verifier: Sendable {
    /// Who judges.
    enum Judge: Sendable {
        case provider(ProviderHandle)
        case sessions(any SessionJudging)
    }

    /// One credential to judge, and where the verdict goes.
    struct Job: Sendable {
        let credential: Credential
        let judge: Judge
        /// Finds the subject of what a provider proved; `nil` without accounts.
        let subjects: (any SubjectResolving)?
        let context: AuthenticationContext
        let mailbox: Mailbox
        let exchange: Int32
        let generation: UInt32
        /// The configuration, and the state of what may be trusted, that the verdict belongs to.
        let epoch: Int
    }

    private struct State {
        var isStopped = false
        /// `nil` until the task that waits is known.
        var waiting: [UInt64: Task<Void, Never>?] = [:]
        var serial: UInt64 = 0
    }

    /// Jobs that may wait for a thread.
    private static let queueLimit = 4096
    /// Verdicts that may wait for keys or a provider.
    private static let waitingLimit = 4096

    private let state = Mutex(State())
    private let pool: WorkPool

    /// - Parameter threads: how many credentials are judged at once.
    package init(threads: Int, clock: Clock) {
        pool = WorkPool(
            name: "martlet-verify", threads: threads, queue: Verifier.queueLimit, niceness: 0, clock: clock)
    }

    /// Takes a job; a full queue is a verdict of its own.
    func submit(_ job: Job) {
        // Sessions are the store's to judge: no thread of ours is needed while it answers.
        if case .sessions = job.judge { return wait(for: job) }
        pool.submit(until: job.context.deadline) { [weak self] refusal in
            guard let self, refusal == nil else { return job.settle(.failure(.unavailable("auth.overloaded"))) }
            judge(job)
        }
    }

    /// Ends the threads; verdicts still awaited are cancelled.
    package func stop() {
        let tasks = state.withLock { state in
            state.isStopped = true
            return state.waiting.values.compactMap { $0 }
        }
        for task in tasks { task.cancel() }
        pool.stop()
    }

    private func judge(_ job: Job) {
        guard case .provider(let handle) = job.judge, let local = handle.local else { return wait(for: job) }
        do {
            switch try local.verify(job.credential, in: job.context) {
            case .authenticated(let identity):
                guard job.subjects == nil else { return wait(for: job, proven: identity) }
                job.settle(.success(handle.principal(of: identity)))
            case .undecided: wait(for: job)
            }
        } catch {
            job.settle(.failure(error))
        }
    }

    /// Lets the judge take its time, off this thread; the job's deadline bounds it.
    private func wait(for job: Job, proven: Identity? = nil) {
        let serial = state.withLock { state -> UInt64? in
            guard state.waiting.count < Verifier.waitingLimit, !state.isStopped else { return nil }
            state.serial += 1
            state.waiting[state.serial] = .some(nil)
            return state.serial
        }
        guard let serial else { return job.settle(.failure(.unavailable("auth.overloaded"))) }
        let task = Task { [weak self] in
            do throws(AuthenticationError) {
                job.settle(.success(try await job.principal(proven)))
            } catch {
                job.settle(.failure(error))
            }
            self?.finish(serial)
        }
        state.withLock { state in
            if state.waiting.keys.contains(serial) { state.waiting[serial] = task }
        }
    }

    private func finish(_ serial: UInt64) {
        state.withLock { state in _ = state.waiting.removeValue(forKey: serial) }
    }
}

extension Verifier.Job {
    /// Asks whoever has to be asked.
    fileprivate func principal(_ proven: Identity?) async throws(AuthenticationError) -> ProvenPrincipal {
        switch judge {
        case .sessions(let sessions):
            let session = try await sessions.judge(credential, in: context)
            let copyEnd = context.now.advanced(bySeconds: session.copyLifetime.wholeSeconds)
            return ProvenPrincipal(
                principal: session.principal, number: session.number,
                expires: min(session.principal.identity.expiresAt, copyEnd).seconds, end: session.end)
        case .provider(let handle):
            guard let authenticating = handle.authenticating else {
                throw .rejected("auth.provider_takes_no_credential")
            }
            let identity: Identity
            if let proven {
                identity = proven
            } else {
                identity = try await authenticating.authenticate(credential, in: context)
            }
            guard let subjects else { return handle.principal(of: identity) }
            let subject = try await subjects.subject(of: identity, provider: handle.name)
            return ProvenPrincipal(
                Principal(identity: identity, provider: handle.name, subject: subject, sessionID: nil))
        }
    }

    fileprivate func settle(_ verdict: Verdict) {
        mailbox.post(.verdict(exchange: exchange, generation: generation, epoch: epoch, verdict))
    }
}

extension ProviderHandle {
    /// The principal of what the provider proved, where there are no accounts.
    fileprivate func principal(of identity: Identity) -> ProvenPrincipal {
        ProvenPrincipal(Principal(identity: identity, provider: name, sessionID: nil))
    }
}

extension ProvenPrincipal {
    /// Who was proved by something else than a session.
    fileprivate init(_ principal: Principal) {
        self.init(
            principal: principal, number: SubjectNumber.of(principal.subject),
            expires: principal.identity.expiresAt.seconds, end: principal.identity.expiresAt.milliseconds)
    }
}
