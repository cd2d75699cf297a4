internal import MartletConfig
internal import MartletCore
internal import MartletIO
internal import MartletResponder

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

/// Watches the turns of a loop where an overload is configured.
enum OverloadControl {
    /// Connections that did nothing yet and are closed in one turn.
    private static let connectionBatch = 16

    /// Decides whether this turn rejects requests.
    @inline(never)
    static func begin(_ loop: inout LoopState, slept: Bool) { loop.context.overload.begin(at: loop.now, slept: slept) }

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
        if loop.context.overload.isActive { closeSilent(&loop) }
        loop.context.overload.ended(at: loop.context.clock.source.monotonicTime.nanoseconds)
    }

    private static func closeSilent(_ loop: inout LoopState) {
        for _ in 0..<connectionBatch {
            guard closeOldestSilent(&loop) else { return }
        }
    }

    /// Closes the oldest connection on which nothing complete was received, and where nothing waits to be read.
    ///
    /// Uploads go on: an overload needs time, not places.
    /// - Returns: whether there was one.
    private static func closeOldestSilent(_ loop: inout LoopState) -> Bool {
        for _ in 0..<min(loop.downstreams.acceptor.order.count, ConnectionOrder.searchLimit) {
            guard let downstream = loop.downstreams.acceptor.order.popOldest() else { return false }
            guard loop.downstreams.all.contains(downstream) else { continue }
            let isSilent =
                loop.downstreams[downstream].phase != .exchange && loop.downstreams[downstream].phase != .frames
            if isSilent, loop.isEvictable(downstream), !Socket.hasUnread(loop.downstreams[downstream].transport.fd) {
                loop.displace(downstream)
                return true
            }
            loop.downstreams.acceptor.order.requeue(downstream)
        }
        return false
    }
}

/// Where requests begin.
enum RequestAdmission {
    /// Begins with a request whose head is in `bytes` (and parsed in the router): those of the listener's own handler
    /// are served in an overload, too.
    @inline(__always)
    static func begin(
        _ exchange: Handle<Exchange>, _ bytes: UnsafeBufferPointer<UInt8>, _ events: inout EventLoop
    ) {
        if events.loop.downstreams[events.loop.exchanges[exchange].downstream].origin.handler != nil,
            events.loop.exchanges[exchange].request.check.isEmpty,
            unsafe events.router.handToListenerHandler(exchange, bytes, &events.loop)
        {
            return
        }
        if events.loop.context.overload.isActive, !events.loop.context.overload.admits() {
            return events.loop.reject(exchange, .overloaded)
        }
        unsafe events.processRequest(exchange, bytes, verification: nil)
    }
}
