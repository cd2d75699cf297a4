private import CLinux
internal import MartletCore

/// Events that wait for the thread of a destination, up to a limit.
final class AuditQueue: Sendable {
    /// What a thread has to do.
    struct Work {
        var bodies: [[UInt8]] = []
        /// Whether the file was moved, as someone says.
        var reopens = false
        var key: AuditKey?
        /// Whether nothing more comes.
        var isLast = false
    }

    static let maximumEvents = SharedBound.auditEvents.total
    static let maximumBytes = SharedBound.auditEvents.bytes
    /// Events that are taken at a time.
    static let batch = 100

    private struct State {
        var bodies = FIFO<[UInt8]>()
        var count = 0
        var bytes = 0
        var reopens = false
        var key: AuditKey?
        var isEnding = false
    }

    private let state = Lock(State())
    private let signal = ThreadSignal()

    var isEnding: Bool { state.withLock { $0.isEnding } }

    /// - Returns: `false` if there is no space.
    func add(_ body: [UInt8]) -> Bool {
        let (isAdded, isFirst) = state.withLock { state in
            guard !state.isEnding, state.count < Self.maximumEvents, state.bytes + body.count <= Self.maximumBytes
            else { return (false, false) }
            state.bodies.append(body)
            state.count += 1
            state.bytes += body.count
            return (true, state.count == 1)
        }
        if isFirst { signal.wake() }
        return isAdded
    }

    func reopen() {
        state.withLock { $0.reopens = true }
        signal.wake()
    }

    func replace(_ key: AuditKey) {
        state.withLock { $0.key = key }
        signal.wake()
    }

    func end() {
        state.withLock { $0.isEnding = true }
        signal.wake()
    }

    /// Gives up what waits: no thread takes it any more.
    func abandon() -> Int {
        state.withLock { state in
            let count = state.count
            state = State()
            state.isEnding = true
            return count
        }
    }

    /// Gives up the oldest events.
    /// - Returns: how many.
    func drop() -> Int {
        state.withLock { state in
            var dropped = 0
            while dropped < Self.batch, let body = state.bodies.popFirst() {
                dropped += 1
                state.count -= 1
                state.bytes -= body.count
            }
            return dropped
        }
    }

    /// Waits for work, at most for so long.
    func take(within limit: Duration) -> Work {
        if state.withLock({ $0.count == 0 && !$0.reopens && $0.key == nil && !$0.isEnding }) { wait(limit) }
        return state.withLock { state in
            var work = Work(reopens: state.reopens, key: state.key)
            (state.reopens, state.key) = (false, nil)
            while work.bodies.count < Self.batch, let body = state.bodies.popFirst() {
                work.bodies.append(body)
                state.count -= 1
                state.bytes -= body.count
            }
            work.isLast = state.isEnding && state.count == 0
            return work
        }
    }

    /// Waits until there is something to do, whatever it is.
    func wait(_ limit: Duration) {
        _ = signal.wait(milliseconds: Int32(min(max(limit.wholeMilliseconds, 0), 60_000)))
    }

    /// Waits for a time, or until the log ends.
    func rest(_ limit: Duration) {
        guard !isEnding else { return }
        var none = pollfd(fd: -1, events: 0, revents: 0)
        _ = unsafe martlet_poll(&none, 1, Int32(truncatingIfNeeded: limit.wholeMilliseconds))
    }
}
