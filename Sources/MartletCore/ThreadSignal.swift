private import CLinux

/// Wakes threads that wait for work: a counting semaphore that needs no descriptor, so that threads can be made, and
/// sleep, when the process has none left.
@safe package final class ThreadSignal: Sendable {
    private nonisolated(unsafe) let semaphore: UnsafeMutablePointer<sem_t>

    package init() {
        unsafe semaphore = .allocate(capacity: 1)
        unsafe semaphore.initialize(to: sem_t())
        // Fails only for a count that is too large.
        _ = unsafe sem_init(semaphore, 0, 0)
    }

    deinit {
        _ = unsafe sem_destroy(semaphore)
        unsafe semaphore.deallocate()
    }

    /// Wakes so many threads, of those that wait or the next that do.
    package func wake(_ threads: Int = 1) {
        for _ in 0..<threads { _ = unsafe sem_post(semaphore) }
    }

    /// Waits to be woken.
    package func wait() {
        while unsafe sem_wait(semaphore) != 0, martlet_errno() == EINTR {}
    }

    /// Waits to be woken, for a time at most.
    /// - Returns: whether it was.
    package func wait(milliseconds: Int32) -> Bool {
        var end = timespec()
        guard unsafe clock_gettime(CLOCK_MONOTONIC, &end) == 0 else { return false }
        let nanoseconds = end.tv_nsec + Int(milliseconds % 1000) * 1_000_000
        end.tv_sec += Int(milliseconds / 1000) + nanoseconds / 1_000_000_000
        end.tv_nsec = nanoseconds % 1_000_000_000
        while unsafe sem_clockwait(semaphore, CLOCK_MONOTONIC, &end) != 0 {
            guard martlet_errno() == EINTR else { return false }
        }
        return true
    }
}
