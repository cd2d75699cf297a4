private import CLinux

/// Threads for long jobs that must not block an event loop: password hashes, queries of an embedded database.
///
/// The queue is bounded: a job that does not fit is rejected immediately. Owners are served round-robin, and the number
/// of jobs that one owner may queue can be limited.
public final class ThreadPool: Sendable {
    /// Why a job did not run.
    public enum JobError: Error, Sendable { case overloaded, stopped, expired }

    private struct Job: Sendable {
        let deadline: MonotonicTime
        let run: @Sendable (JobError?) -> Void
    }

    private struct State {
        var jobs: FairQueue<Job>
        var isStopped = false
        var hasThreads = false
        /// Threads that sleep, or are about to, and have not been woken.
        var asleep = 0

        /// Whether a thread has to be woken for a new job.
        mutating func wakesOne() -> Bool {
            guard asleep > 0 else { return false }
            asleep -= 1
            return true
        }
    }

    private let state: Lock<State>
    private let signal = ThreadSignal()
    private let name: String
    private let threads: Int
    private let niceness: Int32
    private let clock: Clock

    /// Creates a pool; its threads start with the first job.
    /// - Parameters:
    ///   - bound: that of the queued jobs.
    ///   - name: of the threads, at most 15 bytes.
    ///   - threads: the maximum number of concurrent jobs.
    ///   - queue: the maximum number of queued jobs, where the bound leaves it open.
    ///   - niceness: 0 is the priority of the event loops, 19 the lowest.
    package init(
        _ bound: SharedBound, name: String, threads: Int, queue: Int? = nil, niceness: Int32, clock: Clock
    ) {
        state = Lock(State(jobs: FairQueue(FairQueue<Job>.Limits(bound, total: queue))))
        self.name = name
        self.threads = max(threads, 1)
        self.niceness = niceness
        self.clock = clock
    }

    /// Runs a job on one of the threads and returns its result.
    /// - Parameters:
    ///   - deadline: a job that has not started by then does not start.
    ///   - owner: who causes the job, such as ``ClientNetwork/workOwner`` of a client; the current task's, unless given.
    ///   - body: may block, but must return eventually.
    /// - Throws: why the job did not run.
    public func run<Value: Sendable>(
        until deadline: MonotonicTime, for owner: WorkOwner? = nil, _ body: @escaping @Sendable () -> Value
    ) async throws(JobError) -> Value {
        let owner = owner ?? .current
        let outcome: Result<Value, JobError> = await withCheckedContinuation { continuation in
            submit(until: deadline, for: owner) { error in
                continuation.resume(returning: error.map { .failure($0) } ?? .success(body()))
            }
        }
        return try outcome.get()
    }

    /// Queues a job without waiting for it.
    /// - Parameters:
    ///   - deadline: a job that has not started by then does not start.
    ///   - owner: who causes the job.
    ///   - body: called once: on one of the threads, or with an error, in that case possibly before this call returns.
    package func submit(
        until deadline: MonotonicTime, for owner: WorkOwner = .anonymous,
        _ body: @escaping @Sendable (JobError?) -> Void
    ) {
        let (error, rejected, wakesOne) = state.withLock { state -> (JobError, Job?, Bool) in
            let job = Job(deadline: deadline, run: body)
            guard !state.isStopped else { return (.stopped, job, false) }
            guard startThreads(&state) else { return (.overloaded, job, false) }
            switch state.jobs.append(job, of: owner) {
            case .queued: return (.overloaded, nil, state.wakesOne())
            case .queuedInsteadOf(let other): return (.overloaded, other, state.wakesOne())
            case .rejected: return (.overloaded, job, false)
            }
        }
        rejected?.run(error)
        if wakesOne { signal.wake() }
    }

    /// Stops the threads after their current jobs; queued jobs fail as `stopped`.
    package func stop() {
        let (left, asleep) = state.withLock { state in
            state.isStopped = true
            let left = state.jobs.popAll()
            let asleep = state.asleep
            state.asleep = 0
            return (left, asleep)
        }
        for job in left { job.run(.stopped) }
        if asleep > 0 { signal.wake(asleep) }
    }

    /// Whether a job of this owner would be queued now; check it before expensive preparations.
    public func hasCapacity(for owner: WorkOwner) -> Bool { state.withLock { $0.jobs.hasCapacity(for: owner) } }

    /// The number of queued jobs.
    public var waiting: Int { state.withLock { $0.jobs.count } }

    /// - Returns: `false` when the system cannot create a thread.
    private func startThreads(_ state: inout State) -> Bool {
        guard !state.hasThreads else { return true }
        for count in 0..<threads {
            let thread = try? SystemThread(name: name) { [self] in
                martlet_lower_thread_priority(niceness)
                work()
            }
            if thread == nil { return count > 0 }
            state.hasThreads = true
        }
        return true
    }

    /// Runs jobs until the queue is empty before it sleeps, because waking a thread costs a system call.
    private func work() {
        while true {
            let (job, isStopped) = state.withLock { state in
                let job = state.jobs.popFirst()
                if job == nil, !state.isStopped { state.asleep += 1 }
                return (job, state.isStopped)
            }
            if let job {
                job.run(job.deadline < clock.monotonicTime ? .expired : nil)
            } else if isStopped {
                return
            } else {
                signal.wait()
            }
        }
    }
}
