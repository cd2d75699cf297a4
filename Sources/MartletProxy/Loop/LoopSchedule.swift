internal import MartletCore
internal import MartletHTTP2
internal import MartletIO

/// What a loop has still to do: deadlines, connections to resume, frames to write, and the end of a drain.
struct LoopSchedule: ~Copyable {
    private var timerWheel: TimerWheel
    /// The timers that have come due.
    private(set) var due: [TimerWheel.Entry] = []
    /// Connections to resume before the next wait.
    var ready = TurnList()
    /// HTTP/2 connections that may have frames to write.
    var dirty = TurnList()
    /// Sessions of connections that were closed in this iteration.
    var closedSessions: [HTTP2Session] = []
    /// When a drain aborts what is left; `max` while serving.
    private(set) var drainDeadline = Int64.max

    init(now: Int64) { timerWheel = TimerWheel(now: MonotonicTime(nanoseconds: now)) }

    // MARK: Timers

    /// The earliest tick at which a timer can come due.
    @inline(__always)
    var nextTick: Int64 { timerWheel.nextTick }

    /// Adds an entry to the timer wheel.
    @inline(__always)
    mutating func enter(_ token: EventToken, at tick: Int64) { timerWheel.enter(token.raw, at: tick) }

    /// Advances the timer wheel.
    /// - Returns: whether timers have come due, or the drain is over.
    @inline(__always)
    mutating func advance(to now: Int64) -> Bool {
        timerWheel.advance(to: now, due: &due)
        return !due.isEmpty || now >= drainDeadline
    }

    /// The timers that have come due were handled.
    mutating func clearDue() { due.removeAll(keepingCapacity: true) }

    /// How long the loop may sleep, in milliseconds: until the next timer, or `idle` without timers.
    mutating func wait(now: Int64, idle: Int32) -> Int32 { timerWheel.wait(now: now, idle: idle) }

    // MARK: The drain

    @inline(__always)
    var isDraining: Bool { drainDeadline != .max }

    /// Whether the drain is over.
    func isDrainOver(at now: Int64) -> Bool { now >= drainDeadline }

    /// Starts a drain, or ends the one in progress earlier.
    /// - Returns: whether it starts.
    mutating func drain(until deadline: Int64) -> Bool {
        let starts = !isDraining
        drainDeadline = min(drainDeadline, deadline)
        return starts
    }

    /// Releases the sessions of connections that were closed in this iteration: nothing refers to them any more.
    mutating func freeClosedSessions() {
        while let session = closedSessions.popLast() { session.free() }
    }
}
