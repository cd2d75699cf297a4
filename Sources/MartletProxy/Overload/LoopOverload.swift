internal import MartletConfig
internal import MartletCore
internal import MartletDecisions
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
    /// - Parameter slept: whether there was nothing to do before it.
    mutating func begin(at now: Int64, slept: Bool) {
        load.advance(to: now, slept: slept ? now &- lastEnd : 0)
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

    /// All of a turn is done.
    mutating func ended(at now: Int64) { lastEnd = now }

    /// The requests of a turn are handled.
    /// - Parameter isPartial: whether more events may be ready than the turn has handled.
    mutating func end(from start: Int64, to end: Int64, isPartial: Bool) {
        let turn = end &- start
        let (product, overflow) = turn.multipliedReportingOverflow(by: turnsBehind &+ 1)
        turnsBehind = 0
        let delay = overflow ? .max : product
        let tolerance = load.tolerance(limit)
        if !isPartial || delay > tolerance {
            load.waited(delay, at: end, limit: limit)
        } else if let overdue = probe?.overdue(at: end, tolerance: tolerance) {
            load.waited(overdue, at: end, limit: limit)
        }
        if isPartial { probe?.send(at: end) }
    }
}
