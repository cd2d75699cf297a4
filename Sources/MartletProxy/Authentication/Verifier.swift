package import MartletCore
internal import MartletProvider
private import Synchronization

/// Judges credentials that no loop has seen before and that the loop does not judge itself: a few threads and a bounded
/// queue, so that a batch of unseen tokens never holds up a loop's other connections.
package final class Verifier: Sendable {
    /// Who judges.
    enum Judge: Sendable {
        case provider(ProviderHandle)
        case sessions(any SessionJudging)
    }

    private struct State {
        var isStopped = false
        /// `nil` until the task that waits is known.
        var waiting: [UInt64: Task<Void, Never>?] = [:]
        var limits = WaitingLimits()
        var serial: UInt64 = 0
    }

    private struct Queue {
        var jobs = FIFO<Job>()
        var limits = WaitingLimits()
        /// Threads that look here again before they sleep.
        var awake = 0
        var isStopped = false
    }

    /// The most jobs that a thread takes at once, and of whose verdicts a loop is told at once.
    private static let batchLimit = 8

    /// Verdicts for one loop, to be told together.
    private struct Said {
        var mailbox: Mailbox?
        var messages: [LoopMessage] = []

        mutating func post() {
            mailbox?.post(messages)
            mailbox = nil
            messages.removeAll(keepingCapacity: true)
        }
    }

    private let state = Mutex(State())
    private let queue = Mutex(Queue())
    private let pool: WorkPool
    private let threads: Int
    private let clock: Clock

    /// - Parameter threads: how many credentials are judged at once.
    package init(threads: Int, clock: Clock) {
        self.threads = max(threads, 1)
        self.clock = clock
        pool = WorkPool(
            name: "martlet-verify", threads: self.threads, queue: self.threads, niceness: 0, clock: clock)
    }

    /// Takes a job; a full queue is a verdict of its own.
    func submit(_ job: Job) {
        // No thread of ours is needed where somebody else judges: the store, or a provider that asks around.
        guard case .provider(let handle) = job.judge else { return wait(for: job, .sessions) }
        guard handle.local != nil else { return wait(for: job, .provider(handle.name)) }
        let (isTaken, isThreadNeeded) = queue.withLock { queue in
            guard !queue.isStopped, queue.limits.enter(.thread(provider: handle.name), for: job.owner)
            else { return (false, false) }
            queue.jobs.append(job)
            guard queue.awake < threads else { return (true, false) }
            queue.awake += 1
            return (true, true)
        }
        guard isTaken else { return job.settle(.failure(.unavailable("auth.overloaded"))) }
        guard isThreadNeeded else { return }
        pool.submit(until: .never) { [weak self] refusal in
            if refusal == nil { self?.work() } else { self?.giveUp() }
        }
    }

    /// Ends the threads; verdicts still awaited are cancelled.
    package func stop() {
        let tasks = state.withLock { state in
            state.isStopped = true
            return state.waiting.values.compactMap { $0 }
        }
        for task in tasks { task.cancel() }
        refuseAll(asLast: true)
        pool.stop()
    }

    // MARK: Threads

    /// Judges until nothing waits.
    private func work() {
        var batch: [Job] = []
        batch.reserveCapacity(Verifier.batchLimit)
        var said = Said()
        while take(&batch) {
            for job in batch {
                guard let verdict = judge(job) else { continue }
                if let first = said.mailbox, first !== job.mailbox { said.post() }
                said.mailbox = job.mailbox
                said.messages.append(job.message(of: verdict))
            }
            said.post()
            batch.removeAll(keepingCapacity: true)
        }
    }

    /// Takes this thread's share of what waits; `false` when there is nothing, and the thread no longer counts as awake.
    private func take(_ batch: inout [Job]) -> Bool {
        queue.withLock { queue in
            let share = min((queue.jobs.count + threads - 1) / threads, Verifier.batchLimit)
            guard share > 0 else {
                queue.awake -= 1
                return false
            }
            for _ in 0..<share {
                guard let job = queue.jobs.popFirst() else { break }
                if case .provider(let handle) = job.judge {
                    queue.limits.leave(.thread(provider: handle.name), for: job.owner)
                }
                batch.append(job)
            }
            return true
        }
    }

    /// There is no thread for what waits.
    private func giveUp() {
        let hasOthers = queue.withLock { queue in
            queue.awake -= 1
            return queue.awake > 0 && !queue.isStopped
        }
        if !hasOthers { refuseAll(asLast: false) }
    }

    private func refuseAll(asLast isLast: Bool) {
        let left = queue.withLock { queue in
            if isLast { queue.isStopped = true }
            queue.limits = WaitingLimits()
            return queue.jobs.takeAll()
        }
        for job in left { job.settle(.failure(.unavailable("auth.overloaded"))) }
    }

    /// The verdict, if it can be had at once; whoever takes longer settles the job.
    private func judge(_ job: Job) -> Verdict? {
        guard clock.monotonicTime <= job.context.deadline else { return .failure(.unavailable("auth.overloaded")) }
        guard case .provider(let handle) = job.judge, let local = handle.local else {
            submit(job)
            return nil
        }
        guard let decided = local.decide(job.credential, in: job.context) else {
            wait(for: job, .keys(provider: handle.name))
            return nil
        }
        switch decided {
        case .success(let identity) where job.subjects != nil:
            wait(for: job, .accounts, proven: identity)
            return nil
        case .success(let identity): return .success(handle.principal(of: identity))
        case .failure(let error): return .failure(error)
        }
    }

    /// Lets the judge take its time, off this thread; the job's deadline bounds it.
    private func wait(for job: Job, _ kind: WaitingKind, proven: Identity? = nil) {
        let serial = state.withLock { state -> UInt64? in
            guard !state.isStopped, state.limits.enter(kind, for: job.owner) else { return nil }
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
