package import MartletCore
package import MartletProvider
internal import MartletTracing

/// Verifies credentials that are not cached and not verified inline: a few threads and a bounded queue, so that a batch
/// of new tokens never holds up a loop's other connections.
package final class Verifier: Sendable {
    private struct State {
        var isStopped = false
        /// `nil` until the waiting task is known.
        var waiting: [UInt64: Task<Void, Never>?] = [:]
        var limits = WaitingLimits()
        var serial: UInt64 = 0
    }

    private struct Queue {
        var jobs = FIFO<Job>()
        var limits = WaitingLimits()
        /// Threads that check the queue again before they sleep.
        var awake = 0
        var isStopped = false
    }

    /// The most jobs that a thread dequeues, and the most results that are delivered together.
    private static let batchLimit = 8

    /// Results for one loop, delivered together.
    private struct ResultBatch {
        var sink: (any VerificationResultSink)?
        var results: [FinishedVerification] = []

        mutating func deliver() {
            sink?.receive(results)
            sink = nil
            results.removeAll(keepingCapacity: true)
        }
    }

    private let state = Lock(State())
    private let queue = Lock(Queue())
    private let pool: ThreadPool
    private let threads: Int
    private let clock: Clock

    /// - Parameter threads: how many credentials are verified concurrently.
    package init(threads: Int, clock: Clock) {
        self.threads = max(threads, 1)
        self.clock = clock
        // At a lower priority than the loops: a flood of tokens with unknown keys must not delay other requests.
        pool = ThreadPool(
            .verificationWorkers, name: "martlet-verify", threads: self.threads, queue: self.threads, niceness: 5,
            clock: clock)
    }

    /// Submits a job; a full queue completes it with a failure.
    /// - Parameter verified: the identity, where only its account is missing.
    package func submit(_ job: Job, verified: Identity? = nil) {
        if let verified { return wait(for: job, .accounts, verified: verified) }
        // No thread is needed where the work is asynchronous: the store, or a provider that makes requests.
        guard case .provider(let handle) = job.target else { return wait(for: job, job.target.waitingKind) }
        guard handle.local != nil else { return wait(for: job, .provider(handle.name)) }
        let (isQueued, isThreadNeeded) = queue.withLock { queue in
            guard !queue.isStopped, queue.limits.enter(.thread(provider: handle.name), for: job.owner)
            else { return (false, false) }
            queue.jobs.append(job)
            guard queue.awake < threads else { return (true, false) }
            queue.awake += 1
            return (true, true)
        }
        guard isQueued else { return job.complete(.failure(.unavailable("auth.overloaded"))) }
        guard isThreadNeeded else { return }
        pool.submit(until: .never) { [weak self] rejection in
            if rejection == nil { self?.work() } else { self?.failWaiting() }
        }
    }

    /// Stops the threads; pending verifications are cancelled.
    package func stop() {
        let tasks = state.withLock { state in
            state.isStopped = true
            return state.waiting.values.compactMap { $0 }
        }
        for task in tasks { task.cancel() }
        rejectAll(asLast: true)
        pool.stop()
    }

    // MARK: Threads

    /// Verifies until the queue is empty.
    private func work() {
        var batch: [Job] = []
        batch.reserveCapacity(Verifier.batchLimit)
        var finished = ResultBatch()
        while dequeue(&batch) {
            for job in batch {
                guard let result = verify(job) else { continue }
                if let first = finished.sink, first !== job.sink { finished.deliver() }
                finished.sink = job.sink
                finished.results.append(job.finished(with: result))
            }
            finished.deliver()
            batch.removeAll(keepingCapacity: true)
        }
    }

    /// Dequeues this thread's share; `false` when the queue is empty, and the thread no longer counts as awake.
    private func dequeue(_ batch: inout [Job]) -> Bool {
        queue.withLock { queue in
            let share = min((queue.jobs.count + threads - 1) / threads, Verifier.batchLimit)
            guard share > 0 else {
                queue.awake -= 1
                return false
            }
            for _ in 0..<share {
                guard let job = queue.jobs.popFirst() else { break }
                if case .provider(let handle) = job.target {
                    queue.limits.leave(.thread(provider: handle.name), for: job.owner)
                }
                batch.append(job)
            }
            return true
        }
    }

    /// Fails queued jobs when no thread is available for them.
    private func failWaiting() {
        let hasOthers = queue.withLock { queue in
            queue.awake -= 1
            return queue.awake > 0 && !queue.isStopped
        }
        if !hasOthers { rejectAll(asLast: false) }
    }

    private func rejectAll(asLast isLast: Bool) {
        let left = queue.withLock { queue in
            if isLast { queue.isStopped = true }
            queue.limits = WaitingLimits()
            return queue.jobs.popAll()
        }
        for job in left { job.complete(.failure(.unavailable("auth.overloaded"))) }
    }

    /// The result, if it is available immediately; otherwise the job is completed later.
    private func verify(_ job: Job) -> VerificationResult? {
        guard clock.monotonicTime <= job.context.deadline else { return .failure(.unavailable("auth.overloaded")) }
        guard case .provider(let handle) = job.target, let local = handle.local else {
            submit(job)
            return nil
        }
        guard let decided = local.decide(job.credential, in: job.context) else {
            wait(for: job, .keys(provider: handle.name))
            return nil
        }
        switch decided {
        case .success(let identity) where job.needsAccount(of: identity):
            wait(for: job, .accounts, verified: identity)
            return nil
        case .success(let identity): return .success(handle.principal(of: identity))
        case .failure(let error): return .failure(error)
        }
    }

    /// Completes the job asynchronously, off this thread; the job's deadline bounds it.
    private func wait(for job: Job, _ kind: WaitingKind, verified: Identity? = nil) {
        let serial = state.withLock { state -> UInt64? in
            guard !state.isStopped, state.limits.enter(kind, for: job.owner) else { return nil }
            state.serial += 1
            state.waiting[state.serial] = .some(nil)
            return state.serial
        }
        guard let serial else { return job.complete(.failure(.unavailable("auth.overloaded"))) }
        let task = Task(executorPreference: TaskLane(.verification, of: job.owner)) { [weak self] in
            job.complete(await WorkOwner.$current.withValue(job.owner) { await job.result(verified) })
            self?.finish(serial, kind, job.owner)
        }
        state.withLock { state in
            if state.waiting.keys.contains(serial) { state.waiting[serial] = task }
        }
    }

    private func finish(_ serial: UInt64, _ kind: WaitingKind, _ owner: WorkOwner) {
        state.withLock { state in
            state.limits.leave(kind, for: owner)
            _ = state.waiting.removeValue(forKey: serial)
        }
    }
}
