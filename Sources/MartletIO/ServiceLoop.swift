private import CLinux
package import MartletCore

extension Readiness {
    /// The loop has stopped: close the descriptor and fail pending operations; no event follows.
    package static let loopStopped = Readiness(rawValue: 1 << 27)
}

/// An epoll loop on its own thread, with timers and a mailbox, for I/O off the request path: Redis and PostgreSQL.
///
/// Handlers, timers and jobs run on the loop's thread, one after the other, and must not block.
// @unchecked Sendable: `mailbox`, `identity` and `wakeUp` are safe from any thread; everything else is used by the
// loop's thread only, which every entry point checks.
@safe package final class ServiceLoop: @unchecked Sendable {
    private struct Mailbox {
        var jobs: [@Sendable () -> Void] = []
        var isStopping = false
        var isJoined = false
    }

    /// The maximum number of queued jobs, far above what callers with limits of their own can reach.
    private static let mailboxCapacity = 65_536
    private static let wakeUpToken: UInt64 = 0

    private let mailbox = Lock(Mailbox())
    private let wakeUp: Int32
    private let identity = Lock<SystemThread?>(nil)
    private let poller: Poller
    private let clock: Clock
    private var timers = TimerHeap()
    private var handlers: [UInt64: (Readiness) -> Void] = [:]
    private var lastToken = ServiceLoop.wakeUpToken

    /// Starts the loop's thread.
    package init(name: String, clock: Clock = .system) throws(IOError) {
        self.clock = clock
        poller = try Poller()
        wakeUp = eventfd(0, Int32(EFD_NONBLOCK | EFD_CLOEXEC))
        guard wakeUp >= 0 else { throw IOError("eventfd") }
        try poller.add(wakeUp, .readable, token: ServiceLoop.wakeUpToken)
        do {
            let thread = try SystemThread(name: name) { [self] in run() }
            identity.withLock { $0 = thread }
        } catch {
            throw IOError("pthread_create", errno: error.errno)
        }
    }

    deinit { close(wakeUp) }

    /// Whether the caller runs on the loop's thread.
    package var isInLoop: Bool { identity.withLock { $0?.isCurrent ?? false } }

    /// Traps when the caller is not on the loop's thread.
    package func preconditionInLoop() { precondition(isInLoop, "called off the loop's thread") }

    /// Queues a job to run on the loop; may be called from any thread, including the loop's.
    /// - Returns: `false` when the job will not run, because the loop has stopped or its mailbox is full.
    package func execute(_ job: @escaping @Sendable () -> Void) -> Bool {
        let (accepted, isFirst) = mailbox.withLock { mailbox in
            guard !mailbox.isStopping, mailbox.jobs.count < ServiceLoop.mailboxCapacity else { return (false, false) }
            mailbox.jobs.append(job)
            return (true, mailbox.jobs.count == 1)
        }
        if isFirst { wake() }
        return accepted
    }

    /// Runs a job once after a delay, unless the loop stops first. Call on the loop only.
    package func schedule(after delay: Duration, _ job: @escaping () -> Void) -> LoopTimer {
        preconditionInLoop()
        let timer = LoopTimer(deadline: clock.monotonicTime + delay, loop: self, job: job)
        timers.insert(timer)
        return timer
    }

    /// Registers a descriptor. Call on the loop only; the handler is retained until the registration ends.
    package func register(
        _ descriptor: Int32, _ interest: Readiness, _ handler: @escaping (Readiness) -> Void
    ) throws(IOError) -> LoopRegistration {
        preconditionInLoop()
        let token = lastToken &+ 1
        try poller.add(descriptor, interest, token: token)
        lastToken = token
        handlers[token] = handler
        return LoopRegistration(loop: self, descriptor: descriptor, token: token, interest: interest)
    }

    /// Stops the loop and joins its thread: queued jobs still run, timers do not, remaining handlers get `loopStopped`.
    ///
    /// Call from any thread but the loop's; a second call waits for the first.
    package func shutdown() {
        precondition(!isInLoop, "the loop cannot join itself")
        mailbox.withLock { $0.isStopping = true }
        wake()
        let thread = identity.withLock { $0 }
        thread?.join()
    }

    func cancel(_ timer: LoopTimer) {
        preconditionInLoop()
        timers.remove(timer)
    }

    func change(_ registration: LoopRegistration, to interest: Readiness) throws(IOError) {
        preconditionInLoop()
        try poller.modify(registration.descriptor, interest, token: registration.token)
    }

    func end(_ registration: LoopRegistration) {
        preconditionInLoop()
        guard handlers.removeValue(forKey: registration.token) != nil else { return }
        poller.remove(registration.descriptor)
    }
}

// MARK: - The loop's thread

extension ServiceLoop {
    private func run() {
        // The first job may read `isInLoop` before `init` has written `identity`.
        while identity.withLock({ $0 == nil }) { sched_yield() }
        while runOnce() {}
        finish()
    }

    /// One iteration: waits, then serves descriptors, timers and the mailbox.
    /// - Returns: `false` when the loop is to stop.
    private func runOnce() -> Bool {
        let count = poller.wait(milliseconds: millisecondsToNextTimer())
        for index in 0..<count {
            let token = poller.token(at: index)
            if token == ServiceLoop.wakeUpToken {
                drainWakeUp()
            } else if let handler = handlers[token] {
                handler(poller.readiness(at: index))
            }
        }
        let now = clock.monotonicTime
        while let timer = timers.popDue(at: now) { timer.fire() }
        let (jobs, isStopping) = dequeueJobs()
        for job in jobs { job() }
        return !isStopping
    }

    private func dequeueJobs() -> ([@Sendable () -> Void], Bool) {
        mailbox.withLock { mailbox in
            let jobs = mailbox.jobs
            mailbox.jobs.removeAll()
            return (jobs, mailbox.isStopping)
        }
    }

    /// After the last iteration: runs the remaining jobs, notifies the remaining handlers, and releases everything.
    private func finish() {
        for job in dequeueJobs().0 { job() }
        for token in handlers.keys.sorted() { handlers[token]?(.loopStopped) }
        handlers.removeAll()
        timers.removeAll()
    }

    private func millisecondsToNextTimer() -> Int32 {
        guard let earliest = timers.earliest else { return -1 }
        let nanoseconds = max(earliest.since(clock.monotonicTime).wholeNanoseconds, 0)
        let roundedUp = nanoseconds / 1_000_000 + (nanoseconds % 1_000_000 == 0 ? 0 : 1)
        return Int32(clamping: roundedUp)
    }

    private func wake() { _ = eventfd_write(wakeUp, 1) }

    private func drainWakeUp() {
        var count: eventfd_t = 0
        _ = unsafe eventfd_read(wakeUp, &count)
    }
}

/// A registered descriptor; used on its loop only.
package final class LoopRegistration {
    let descriptor: Int32
    let token: UInt64
    private let loop: ServiceLoop
    private var interest: Readiness

    init(loop: ServiceLoop, descriptor: Int32, token: UInt64, interest: Readiness) {
        self.loop = loop
        self.descriptor = descriptor
        self.token = token
        self.interest = interest
    }

    /// Changes the events of the descriptor.
    package func watch(_ interest: Readiness) throws(IOError) {
        guard interest != self.interest else { return }
        try loop.change(self, to: interest)
        self.interest = interest
    }

    /// Deregisters the descriptor and releases the handler; call it before closing the descriptor. Idempotent.
    package func end() { loop.end(self) }
}
