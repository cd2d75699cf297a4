internal import MartletConfig
internal import MartletCore
internal import MartletIO

/// What a loop knows of an overload.
struct LoopOverload: ~Copyable {
    /// Whether it is configured.
    private(set) var isWatched = false
    /// Whether requests may be rejected in this turn.
    private(set) var isActive = false
    private(set) var load = LoopLoad()
    private var limit = Int64.max
    /// When the last turn has ended.
    private var lastEnd = Int64.max
    private var probe: DelayProbe?
    /// Connections that wait to be accepted, in turns that it takes to accept them.
    private var turnsBehind: Int64 = 0
    private let memory: MemoryPressure?

    /// - Parameter memory: `nil` for a loop that rejects nothing, because operators use it.
    init(_ configuration: OverloadConfiguration?, memory: MemoryPressure?, _ poller: borrowing Poller) throws(IOError) {
        self.memory = memory
        try adopt(configuration, poller)
    }

    /// A loop that watches nothing.
    init() { memory = nil }

    /// Follows a new configuration.
    mutating func adopt(_ configuration: OverloadConfiguration?, _ poller: borrowing Poller) throws(IOError) {
        guard let configuration, memory != nil else {
            probe = nil
            (isWatched, isActive) = (false, false)
            return
        }
        if probe == nil { probe = try DelayProbe(poller) }
        limit = configuration.loopDelay.wholeNanoseconds
        isWatched = true
    }

    /// A turn begins.
    mutating func begin(at now: Int64) {
        load.advance(to: now, slept: now &- lastEnd)
        isActive = load.isOverloaded || memory?.isOver == true
    }

    /// Decides about a request.
    mutating func admits() -> Bool { memory?.isOver != true && load.admits() }

    /// The event that was sent has arrived.
    mutating func probeArrived(at now: Int64) {
        if let delay = probe?.receive(at: now) { load.waited(delay, at: now, limit: limit) }
    }

    /// More connections wait than one turn accepts.
    mutating func isBehind(by turns: Int) { turnsBehind = max(turnsBehind, Int64(min(turns, 1 << 20))) }

    /// A turn has ended.
    /// - Parameter isPartial: whether more events may be ready than the turn has handled.
    mutating func end(from start: Int64, to end: Int64, isPartial: Bool) {
        lastEnd = end
        let turn = end &- start
        let (delay, overflow) = turn.multipliedReportingOverflow(by: turnsBehind &+ 1)
        turnsBehind = 0
        let waited = max(overflow ? .max : delay, probe?.age(at: end) ?? 0)
        // What is left of a turn has waited for longer than this, but how long?
        if isPartial { probe?.send(at: end) }
        if !isPartial || waited > load.tolerance(limit) { load.waited(waited, at: end, limit: limit) }
    }
}

/// Watches the turns of a loop where an overload is configured.
enum OverloadControl {
    /// Connections that did nothing yet and are closed in one turn.
    private static let connectionBatch = 16

    /// Decides whether this turn rejects requests.
    @inline(never)
    static func begin(_ loop: inout LoopState) { loop.context.overload.begin(at: loop.now) }

    /// A listener has more connections than were accepted in this turn.
    @inline(never)
    static func measureBacklog(_ listener: Int32, perTurn: Int, _ loop: inout LoopState) {
        loop.context.overload.isBehind(by: Socket.backlog(of: listener) / perTurn)
    }

    /// Measures the turn; in an overload, closes connections that did nothing yet, the oldest first.
    @inline(never)
    static func end(_ loop: inout LoopState, events: Int) {
        let now = loop.context.clock.source.monotonicTime.nanoseconds
        loop.context.overload.end(from: loop.now, to: now, isPartial: events == Poller.batch)
        guard loop.context.overload.isActive else { return }
        for _ in 0..<connectionBatch {
            guard loop.freeCapacity() else { return }
        }
    }
}
