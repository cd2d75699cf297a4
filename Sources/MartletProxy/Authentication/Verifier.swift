private import CLinux
package import MartletCore
internal import MartletProvider
private import Synchronization

/// Judges credentials that no loop has seen before: a few threads and a bounded queue, so that a batch of unseen tokens
/// never holds up a loop's other connections.
package final class Verifier: Sendable {
    /// One credential to judge, and where the verdict goes.
    struct Job: Sendable {
        let credential: Credential
        let provider: Int32
        let handle: ProviderHandle
        let context: AuthenticationContext
        let mailbox: Mailbox
        let exchange: Int32
        let generation: UInt32
        /// The configuration that `provider` is an index into.
        let epoch: Int
    }

    private struct State {
        var jobs: [Job] = []
        var next = 0
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
    private let signal: Int32

    /// - Parameter threads: how many credentials are judged at once.
    package init(threads: Int) throws(SystemThreadError) {
        signal = eventfd(0, Int32(EFD_CLOEXEC | EFD_SEMAPHORE))
        for _ in 0..<max(threads, 1) { _ = try SystemThread(name: "martlet-verify") { [self] in work() } }
    }

    deinit { close(signal) }

    /// Takes a job; `false` when the queue is full.
    func submit(_ job: Job) -> Bool {
        let accepted = state.withLock { state in
            guard !state.isStopped, state.jobs.count - state.next < Verifier.queueLimit else { return false }
            state.jobs.append(job)
            return true
        }
        if accepted { wake() }
        return accepted
    }

    /// Ends the threads; verdicts still awaited are cancelled.
    package func stop() {
        let tasks = state.withLock { state in
            state.isStopped = true
            return state.waiting.values.compactMap { $0 }
        }
        for task in tasks { task.cancel() }
        wake()
    }

    private func wake() {
        var one: UInt64 = 1
        _ = unsafe write(signal, &one, 8)
    }

    private func work() {
        while true {
            var count: UInt64 = 0
            _ = unsafe read(signal, &count, 8)
            let (job, isStopped) = state.withLock { state in (take(&state), state.isStopped) }
            if let job { judge(job) }
            if isStopped {
                wake()
                return
            }
        }
    }

    private func take(_ state: inout State) -> Job? {
        guard state.next < state.jobs.count else { return nil }
        let job = state.jobs[state.next]
        state.next += 1
        if state.next == state.jobs.count {
            state.jobs.removeAll(keepingCapacity: true)
            state.next = 0
        } else if state.next > 1024 {
            state.jobs.removeFirst(state.next)
            state.next = 0
        }
        return job
    }

    private func judge(_ job: Job) {
        guard let local = job.handle.local else { return wait(for: job) }
        do {
            switch try local.verify(job.credential, in: job.context) {
            case .authenticated(let identity): job.settle(.success(identity))
            case .undecided: wait(for: job)
            }
        } catch {
            job.settle(.failure(error))
        }
    }

    /// Lets the provider take its time, off this thread; the job's deadline bounds it.
    private func wait(for job: Job) {
        guard let authenticating = job.handle.authenticating else {
            return job.settle(.failure(.rejected("auth.provider_takes_no_credential")))
        }
        let serial = state.withLock { state -> UInt64? in
            guard state.waiting.count < Verifier.waitingLimit, !state.isStopped else { return nil }
            state.serial += 1
            state.waiting[state.serial] = .some(nil)
            return state.serial
        }
        guard let serial else { return job.settle(.failure(.unavailable("auth.overloaded"))) }
        let task = Task { [weak self] in
            do {
                job.settle(.success(try await authenticating.authenticate(job.credential, in: job.context)))
            } catch let error as AuthenticationError {
                job.settle(.failure(error))
            } catch {
                job.settle(.failure(.unavailable("auth.provider_failed")))
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
    fileprivate func settle(_ verdict: Result<Identity, AuthenticationError>) {
        mailbox.post(
            .verdict(
                exchange: exchange, generation: generation, epoch: epoch,
                verdict.map { ProvenIdentity(provider: provider, identity: $0) }))
    }
}
