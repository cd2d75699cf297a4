private import CLinux
internal import MartletCore
internal import MartletIO
private import Synchronization

/// Sees whether every event loop, and the threads of tasks, still turn: a thread that waits for none of them and takes no
/// lock that they hold longer than a queue needs.
///
/// While something stands still, health checks fail: a loop that turns responds by ``Stalls``, and where the admin
/// listener's own loop stands still, this thread does in its place. A service manager with a watchdog hears nothing
/// until everything turns again, and restarts the process.
final class Watchdog: Sendable {
    /// Something that should turn when it is woken.
    struct Watched: Sendable {
        let name: String
        let turns: @Sendable () -> UInt64
        let wake: @Sendable () -> Void
        /// The sockets at which requests of operators arrive, which no one accepts while this stands still.
        var listeners: [Int32] = []
    }

    /// At how many looks something may not have turned.
    private static let looks = 10

    private let watched: [Watched]
    private let limit: Atomic<Int64>
    private let logger: Logger
    private let stalls: Stalls
    private let end: Int32
    private let thread = Lock<SystemThread?>(nil)

    init(_ watched: [Watched], limit: Duration, stalls: Stalls, logger: Logger) throws(IOError) {
        self.watched = watched + [Self.tasks]
        self.stalls = stalls
        self.limit = Atomic(limit.wholeMilliseconds)
        self.logger = logger
        end = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))
        guard end >= 0 else { throw IOError("eventfd") }
    }

    deinit { close(end) }

    /// Applies another `server.watchdog`.
    func follow(_ limit: Duration) { self.limit.store(limit.wholeMilliseconds, ordering: .relaxed) }

    func start() throws(SystemThreadError) {
        let started = try SystemThread(name: "martlet-watchdog") { [self] in watch() }
        thread.withLock { $0 = started }
    }

    /// Ends the thread, before the sockets are closed that it may have to serve.
    func stop() {
        _ = eventfd_write(end, 1)
        let running = thread.withLock { thread in
            defer { thread = nil }
            return thread
        }
        running?.join()
    }

    /// The threads of all tasks: a task turns them.
    private static var tasks: Watched {
        let turns = TaskTurns()
        return Watched(name: "tasks", turns: { turns.count }, wake: { turns.wake() })
    }

    // MARK: The thread

    private func watch() {
        var watch = StallWatch()
        let interval = ServiceManager.watchdogInterval
        while true {
            for part in watched { part.wake() }
            let (pause, looks) = Self.pace(limit.load(ordering: .relaxed), notifyingEvery: interval)
            if rest(pause) { return }
            let change = watch.look(at: watched.map { $0.turns() }, limit: looks)
            stalls.set(any: watch.isStalled, tasks: watch.isStalled(watched.count - 1))
            if !watch.isStalled, interval != nil { ServiceManager.notify("WATCHDOG=1") }
            // Last: whatever may hold it up has been said already.
            for index in change.stalled {
                logger.error("event loop stalled", ("code", "server.loop_stalled"), ("loop", watched[index].name))
            }
            for index in change.recovered {
                logger.warning("event loop turns again", ("loop", watched[index].name))
            }
        }
    }

    /// How long to wait between two looks, in milliseconds, and how many of them make the limit.
    static func pace(_ limit: Int64, notifyingEvery interval: Int64?) -> (pause: Int64, looks: Int) {
        let pause = max(min(limit / Int64(looks), interval.map { $0 / 3 } ?? .max), 20)
        return (pause, Int(clamping: max((limit + pause - 1) / pause, 1)))
    }

    /// Waits for the next look, and meanwhile responds where no one else would.
    /// - Returns: whether the thread has to end.
    private func rest(_ pause: Int64) -> Bool {
        let until = Self.now + pause
        let listeners = stalls.isAny ? watched.flatMap(\.listeners) : []
        var polled = ([end] + listeners).map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
        while true {
            let left = max(until - Self.now, 0)
            guard unsafe martlet_poll(&polled, nfds_t(polled.count), Int32(clamping: left)) > 0 else {
                // An early look would find loops that have not had the time to turn.
                if Self.now >= until { return false }
                continue
            }
            if polled[0].revents != 0 { return true }
            for entry in polled.dropFirst() where entry.revents != 0 { UnavailableResponse.send(toNextOf: entry.fd) }
        }
    }

    private static var now: Int64 {
        var time = timespec()
        _ = unsafe clock_gettime(CLOCK_MONOTONIC, &time)
        return Int64(time.tv_sec) &* 1000 &+ Int64(time.tv_nsec) / 1_000_000
    }
}

/// What the watchdog has found, to be read on any thread without a lock.
final class Stalls: Sendable {
    private let any = Atomic(false)
    private let tasks = Atomic(false)

    /// Whether an event loop or the threads of tasks have not turned for the limit.
    var isAny: Bool { any.load(ordering: .relaxed) }
    /// Whether no task runs.
    var areTasksStalled: @Sendable () -> Bool { { self.tasks.load(ordering: .relaxed) } }

    fileprivate func set(any: Bool, tasks: Bool) {
        self.any.store(any, ordering: .relaxed)
        self.tasks.store(tasks, ordering: .relaxed)
    }
}

/// Counts the turns of the threads of tasks.
private final class TaskTurns: Sendable {
    private let turns = Atomic<UInt64>(0)
    private let isWaiting = Atomic(false)

    var count: UInt64 { turns.load(ordering: .relaxed) }

    /// Starts a task, unless the last one has not run yet.
    func wake() {
        guard !isWaiting.exchange(true, ordering: .relaxed) else { return }
        Task(executorPreference: TaskLane(.gateway)) {
            self.turns.add(1, ordering: .relaxed)
            self.isWaiting.store(false, ordering: .relaxed)
        }
    }
}

/// What a health check gets while the loop stands still that should respond to it.
enum UnavailableResponse {
    /// How long a client may take, in milliseconds.
    private static let timeout: Int32 = 100

    static let text = """
        HTTP/1.1 503 Service Unavailable\r
        Content-Type: text/plain; charset=utf-8\r
        Content-Length: 8\r
        Connection: close\r
        \r
        stalled\n
        """

    /// Accepts a connection, reads what has arrived of its request, and responds.
    static func send(toNextOf listener: Int32) {
        let connection = accept4(listener, nil, nil, Int32(SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue))
        guard connection >= 0 else { return }
        defer { close(connection) }
        var polled = pollfd(fd: connection, events: Int16(POLLIN), revents: 0)
        _ = unsafe poll(&polled, 1, timeout)
        var request = [UInt8](repeating: 0, count: 4096)
        _ = unsafe recv(connection, &request, request.count, 0)
        _ = unsafe text.utf8CString.withUnsafeBufferPointer { bytes in
            unsafe CLinux.send(connection, bytes.baseAddress, bytes.count - 1, Int32(MSG_NOSIGNAL))
        }
        // Otherwise bytes that were not read would reset the connection before its client has read the response.
        _ = shutdown(connection, Int32(SHUT_WR))
    }
}
