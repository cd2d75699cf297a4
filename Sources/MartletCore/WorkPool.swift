private import CLinux
private import Synchronization

/// A few threads for work that takes long and must not hold up a loop: password hashes, queries of an embedded database.
///
/// The queue is bounded: what does not fit is refused at once, because a caller who waits for ever is worse off. It is served
/// in turn where work has owners, each of whom may be given a share of its places.
public final class WorkPool: Sendable {
    /// Why a piece of work was not done.
    public enum Refusal: Error, Sendable { case overloaded, stopped, expired }

    private struct Job: Sendable {
        let deadline: MonotonicTime
        let run: @Sendable (Refusal?) -> Void
    }

    private struct State {
        var jobs: FairQueue<Job>
        var isStopped = false
        var hasThreads = false
        /// Threads that sleep, or are about to, and that nobody has woken.
        var asleep = 0

        /// Whether a thread has to be woken for one more job.
        mutating func wakesOne() -> Bool {
            guard asleep > 0 else { return false }
            asleep -= 1
            return true
        }
    }

    private let state: Mutex<State>
    private let signal: Int32
    private let name: String
    private let threads: Int
    private let niceness: Int32
    private let clock: Clock

    /// Makes a pool; its threads start with the first piece of work.
    /// - Parameters:
    ///   - name: of the threads, at most 15 bytes.
    ///   - threads: how many pieces of work are done at once.
    ///   - queue: how many may wait.
    ///   - perMember: how many of one owner may wait; `nil` is all.
    ///   - perGroup: how many of all owners of one group may wait; `nil` is all.
    ///   - niceness: 0 is as important as the loops, 19 only what they leave.
    package init(
        name: String, threads: Int, queue: Int, perMember: Int? = nil, perGroup: Int? = nil, niceness: Int32,
        clock: Clock
    ) {
        let limits = FairQueue<Job>.Limits(total: queue, group: perGroup ?? queue, member: perMember ?? queue)
        state = Mutex(State(jobs: FairQueue(limits)))
        signal = eventfd(0, Int32(EFD_CLOEXEC | EFD_SEMAPHORE))
        self.name = name
        self.threads = max(threads, 1)
        self.niceness = niceness
        self.clock = clock
    }

    deinit { close(signal) }

    /// Does a piece of work on one of the threads and gives back what it returns.
    /// - Parameters:
    ///   - deadline: work that has not begun by then is not begun.
    ///   - owner: whose work it is, such as ``ClientNetwork/workOwner`` of the client that causes it.
    ///   - body: may block; must end by itself.
    /// - Throws: why it was not done.
    public func run<Value: Sendable>(
        until deadline: MonotonicTime, for owner: WorkOwner = .anybody, _ body: @escaping @Sendable () -> Value
    ) async throws(Refusal) -> Value {
        let outcome: Result<Value, Refusal> = await withCheckedContinuation { continuation in
            submit(until: deadline, for: owner) { refusal in
                continuation.resume(returning: refusal.map { .failure($0) } ?? .success(body()))
            }
        }
        return try outcome.get()
    }

    /// The same without waiting.
    /// - Parameters:
    ///   - deadline: work that has not begun by then is not begun.
    ///   - body: runs once: on one of the threads, or with the reason why it cannot, in that case perhaps at once.
    package func submit(
        until deadline: MonotonicTime, for owner: WorkOwner = .anybody, _ body: @escaping @Sendable (Refusal?) -> Void
    ) {
        let (refusal, refused, wakesOne) = state.withLock { state -> (Refusal, Job?, Bool) in
            let job = Job(deadline: deadline, run: body)
            guard !state.isStopped else { return (.stopped, job, false) }
            guard startThreads(&state) else { return (.overloaded, job, false) }
            switch state.jobs.append(job, of: owner) {
            case .queued: return (.overloaded, nil, state.wakesOne())
            case .queuedInsteadOf(let other): return (.overloaded, other, state.wakesOne())
            case .refused: return (.overloaded, job, false)
            }
        }
        refused?.run(refusal)
        if wakesOne { wake(1) }
    }

    /// Ends the threads after what they are doing; what waits is refused.
    package func stop() {
        let (left, asleep) = state.withLock { state in
            state.isStopped = true
            let left = state.jobs.takeAll()
            let asleep = state.asleep
            state.asleep = 0
            return (left, asleep)
        }
        for job in left { job.run(.stopped) }
        if asleep > 0 { wake(asleep) }
    }

    /// Whether work of an owner would find a place now; for who would do something costly before.
    public func hasRoom(for owner: WorkOwner) -> Bool { state.withLock { $0.jobs.hasRoom(for: owner) } }

    /// How many pieces of work wait.
    public var waiting: Int { state.withLock { $0.jobs.count } }

    /// `false` when the system has no thread left.
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

    private func wake(_ threads: Int) {
        var count = UInt64(threads)
        _ = unsafe write(signal, &count, 8)
    }

    /// A thread that has done something looks for more before it sleeps: only one that sleeps costs a call to be woken.
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
                sleep()
            }
        }
    }

    /// Waits to be woken; a signal is not that.
    private func sleep() {
        var count: UInt64 = 0
        while unsafe read(signal, &count, 8) < 0, martlet_errno() == EINTR {}
    }
}
