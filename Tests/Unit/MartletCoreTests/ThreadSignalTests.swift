import Glibc
import Testing

@testable import MartletCore

/// Leaves the process no descriptor to open.
private func takeAllDescriptors() {
    var limit = rlimit()
    unsafe getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    limit.rlim_cur = 3
    unsafe setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    precondition(dup(STDERR_FILENO) < 0 && errno == EMFILE)
}

/// Processor time of the process in milliseconds.
private func processorTime() -> Int {
    var time = timespec()
    unsafe clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return time.tv_sec * 1000 + time.tv_nsec / 1_000_000
}

// Each in a process of its own, whose limit it changes.
@Suite struct ThreadSignalTests {
    @Test func `counts what wakes before anyone waits`() {
        let signal = ThreadSignal()
        signal.wake(2)
        signal.wait()
        #expect(signal.wait(milliseconds: 0) && !signal.wait(milliseconds: 20))
    }

    @Test func `threads of a pool run jobs and sleep where there is no descriptor`() async {
        await #expect(processExitsWith: .success) {
            takeAllDescriptors()
            let pool = ThreadPool(.undivided, name: "test", threads: 2, queue: 16, niceness: 0, clock: .system)
            for round in 0..<3 {
                let value = try? await pool.run(until: .never) { round }
                precondition(value == round)
                let before = processorTime()
                // A signal that never comes.
                precondition(!ThreadSignal().wait(milliseconds: 200))
                precondition(processorTime() - before < 100, "the threads of the pool do not sleep")
            }
        }
    }

    @Test func `tasks run where there is no descriptor`() async {
        await #expect(processExitsWith: .success) {
            takeAllDescriptors()
            for round in 0..<3 {
                let value = await Task(executorPreference: TaskLane(.gateway)) { round }.value
                precondition(value == round)
                // Long enough for the threads to sleep.
                precondition(!ThreadSignal().wait(milliseconds: 50))
            }
        }
    }

    @Test func `a blocking executor runs what comes later where there is no descriptor`() async {
        await #expect(processExitsWith: .success) {
            takeAllDescriptors()
            let executor = BlockingExecutor(name: "test", threads: 1)
            for round in 0..<3 {
                let start = ContinuousClock.now
                let value = await Task(executorPreference: executor) { round }.value
                precondition(value == round && ContinuousClock.now - start < .seconds(2))
                precondition(!ThreadSignal().wait(milliseconds: 50))
            }
        }
    }
}
