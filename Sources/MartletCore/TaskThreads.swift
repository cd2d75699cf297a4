private import CLinux
@_spi(ExperimentalCustomExecutors) @_spi(ExperimentalScheduling) internal import _Concurrency

/// The threads that run all tasks of the process, instead of those of libdispatch.
///
/// There is a fixed number of them, which start with the process: nothing has to be opened or started later, so that
/// tasks go on where descriptors, memory for stacks or threads are exhausted. Tasks do not block; what has to block has
/// a ``ThreadPool`` or a ``BlockingExecutor``.
package final class TaskThreads: TaskExecutor {
    /// A part of a task, and the executor on which the task wants it to run.
    fileprivate struct Job {
        let job: UnownedJob
        /// `nil` for a task without a lane.
        let lane: TaskLane?
    }

    private struct State {
        var queue = TaskQueue<Job>()
        var timers = TaskTimers<UnownedJob>()
        var threads = 0
        /// Threads that wait and have not been woken.
        var idle = 0

        /// Whether an idle thread has to be woken, which does not count as idle any more.
        mutating func wakesOne() -> Bool {
            guard idle > 0 else { return false }
            idle -= 1
            return true
        }

        /// Queues the jobs whose time has come.
        mutating func queueDueJobs() {
            guard let earliest = timers.earliest else { return }
            let now = TaskThreads.now
            guard earliest <= now else { return }
            while let job = timers.popFirst(at: now) {
                queue.append(Job(job: job, lane: nil), for: .gateway, of: .anonymous)
            }
        }
    }

    /// What a thread does next.
    private enum Step {
        case run(Job)
        case sleep(until: Int64?)
    }

    /// The threads of this process.
    package static let shared = TaskThreads()

    private let state = Lock(State())
    private let signal = ThreadSignal()
    /// As many as there are processors, because tasks only compute; at least two, so that one of them may be late.
    private let limit = max(Int(sysconf(Int32(_SC_NPROCESSORS_ONLN))), 2)

    private init() {}

    /// Has every task of the process run here; before the first task.
    package static func install() throws(SystemThreadError) {
        try shared.start()
        _createExecutors(factory: OwnExecutors.self)
    }

    /// How many threads there are.
    package var threads: Int { state.withLock { $0.threads } }

    /// Starts the threads that are missing.
    private func start() throws(SystemThreadError) {
        while true {
            let number = state.withLock { state -> Int? in
                guard state.threads < limit else { return nil }
                state.threads += 1
                return state.threads - 1
            }
            guard let number else { return }
            do throws(SystemThreadError) {
                _ = try SystemThread(name: "martlet-task-\(number)") { self.work() }
            } catch {
                state.withLock { $0.threads -= 1 }
                throw error
            }
        }
    }

    /// Queues a part of a task without a lane.
    package func enqueue(_ job: consuming ExecutorJob) {
        append(Job(job: UnownedJob(job), lane: nil), for: .gateway, of: .anonymous)
    }

    fileprivate func append(_ job: Job, for purpose: TaskPurpose, of owner: WorkOwner) {
        LockOrder.requireNone(for: "resumes or starts a task")
        let (wakesOne, hasThreads) = state.withLock { state in
            state.queue.append(job, for: purpose, of: owner)
            return (state.wakesOne(), state.threads > 0)
        }
        if wakesOne { signal.wake() }
        // Only where a test uses lanes without having installed the executor.
        if !hasThreads { try? start() }
    }

    /// Runs a job after a time.
    fileprivate func append(_ job: UnownedJob, after delay: Duration) {
        LockOrder.requireNone(for: "starts a timer")
        let due = TaskThreads.now &+ delay.boundedNanoseconds
        let wakesOne = state.withLock { state in
            let isEarliest = state.timers.earliest.map { due < $0 } ?? true
            state.timers.append(job, at: due)
            return isEarliest && state.wakesOne()
        }
        if wakesOne { signal.wake() }
    }

    // MARK: Threads

    private func work() {
        while true {
            let step = state.withLock { state -> Step in
                state.queueDueJobs()
                if let job = state.queue.popFirst() { return .run(job) }
                state.idle += 1
                return .sleep(until: state.timers.earliest)
            }
            switch step {
            case .run(let job):
                let executor = unsafe job.lane?.asUnownedTaskExecutor() ?? asUnownedTaskExecutor()
                unsafe job.job.runSynchronously(on: executor)
            case .sleep(let due): sleep(until: due)
            }
        }
    }

    /// Waits for a wakeup, or until a time.
    private func sleep(until due: Int64?) {
        guard let due else { return signal.wait() }
        while true {
            // Rounded up: a job must not run before its time.
            let milliseconds = (max(due - TaskThreads.now, 0) + 999_999) / 1_000_000
            if signal.wait(milliseconds: Int32(clamping: milliseconds)) { return }
            // A thread that does not count as idle any more has a wakeup to take.
            if state.withLock({ $0.wakesOne() }) { return }
        }
    }

    fileprivate static var now: Int64 {
        var time = timespec()
        _ = unsafe clock_gettime(CLOCK_MONOTONIC, &time)
        return Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec)
    }
}

extension TaskThreads: SchedulingExecutor {
    /// Queues a part of a task after a time.
    package func enqueue<C: _Concurrency.Clock>(
        _ job: consuming ExecutorJob, after delay: C.Duration, tolerance: C.Duration?, clock: C
    ) {
        append(UnownedJob(job), after: delay as? Duration ?? .zero)
    }

    /// Queues a part of a task at a time.
    package func enqueue<C: _Concurrency.Clock>(
        _ job: consuming ExecutorJob, at instant: C.Instant, tolerance: C.Duration?, clock: C
    ) {
        // The clocks of the standard library have such durations; others have no timer here, and sleep by themselves.
        append(UnownedJob(job), after: clock.now.duration(to: instant) as? Duration ?? .zero)
    }
}

/// The executors of a process in which ``TaskThreads`` run the tasks.
private enum OwnExecutors: ExecutorFactory {
    static var mainExecutor: any MainExecutor { PlatformExecutorFactory.mainExecutor }
    static var defaultExecutor: any TaskExecutor { TaskThreads.shared }
}

/// A lane of ``TaskThreads``: where the tasks of one purpose and one owner wait for their turn.
///
/// A task is started on it with `Task(executorPreference:)`, and stays on it for as long as it runs.
package final class TaskLane: TaskExecutor {
    private let purpose: TaskPurpose
    private let owner: WorkOwner

    package init(_ purpose: TaskPurpose, of owner: WorkOwner = .anonymous) {
        self.purpose = purpose
        self.owner = owner
    }

    /// Queues a part of a task for the lane's turn.
    package func enqueue(_ job: consuming ExecutorJob) {
        TaskThreads.shared.append(TaskThreads.Job(job: UnownedJob(job), lane: self), for: purpose, of: owner)
    }
}
