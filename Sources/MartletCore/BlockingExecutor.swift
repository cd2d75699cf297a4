private import CLinux

/// Runs tasks that may block their thread, on threads of their own: Swift's own threads are as many as there are
/// processors, and all other work would wait for them.
///
/// Threads start when they are needed and end when they are idle. No task is ever rejected: whoever creates tasks limits
/// them.
package final class BlockingExecutor: TaskExecutor {
    private struct State {
        var jobs = FIFO<UnownedJob>()
        var threads = 0
        /// Threads that wait and have not been woken.
        var idle = 0

        enum Step { case wake, start, none }

        /// Queues a job; returns what makes sure that it runs.
        mutating func append(_ job: UnownedJob, limit: Int) -> Step {
            jobs.append(job)
            if idle > 0 {
                idle -= 1
                return .wake
            }
            guard threads < limit else { return .none }
            threads += 1
            return .start
        }
    }

    private let state = Lock(State())
    private let signal = ThreadSignal()
    private let name: String
    private let limit: Int
    private let idleTimeout: Int32

    /// - Parameters:
    ///   - name: of the threads, at most 15 bytes.
    ///   - threads: how many there are at most.
    ///   - idleTimeout: after how many milliseconds without work a thread ends.
    package init(name: String, threads: Int, idleTimeout: Int32 = 10_000) {
        self.name = name
        limit = max(threads, 1)
        self.idleTimeout = idleTimeout
    }

    /// How many threads there are.
    package var threads: Int { state.withLock { $0.threads } }

    /// Queues a job for the next free thread.
    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        switch state.withLock({ $0.append(job, limit: limit) }) {
        case .none: return
        case .wake: signal.wake()
        case .start:
            // Where the system has no thread, the job waits for one of those that there are, or for the next attempt.
            if (try? SystemThread(name: name) { self.work() }) == nil { state.withLock { $0.threads -= 1 } }
        }
    }

    /// Runs jobs until there has been none for a while.
    private func work() {
        while true {
            let job = state.withLock { state -> UnownedJob? in
                let job = state.jobs.popFirst()
                if job == nil { state.idle += 1 }
                return job
            }
            if let job {
                unsafe job.runSynchronously(on: asUnownedTaskExecutor())
            } else if !isWoken() {
                return
            }
        }
    }

    /// Waits for a wakeup; `false` if the thread has to end.
    private func isWoken() -> Bool {
        while true {
            if signal.wait(milliseconds: idleTimeout) { return true }
            let ends = state.withLock { state in
                guard state.idle > 0 else { return false }
                state.idle -= 1
                state.threads -= 1
                return true
            }
            if ends { return false }
        }
    }
}
