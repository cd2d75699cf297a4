internal import MartletDecisions

/// How fast a request's body arrives, and when that is checked: some byte within `body_idle`, and `body_min_rate` on
/// average.
struct BodyPace {
    /// What is required of a body.
    struct Rules {
        /// How long nothing may arrive, in nanoseconds (`body_idle`).
        let idleTimeout: Int64
        /// Bytes per second; 0 for any (`body_min_rate`).
        let minimumRate: Int
    }

    /// The result of a check.
    enum Check {
        /// It arrives fast enough so far.
        case arriving
        case timedOut
    }

    /// Over how long a rate is averaged (`body_min_rate`), in nanoseconds.
    static let window: Int64 = 30_000_000_000
    /// How long an upstream may take to send 100 (Continue) before the gateway sends it: a client would wait forever
    /// for an upstream that never does (RFC 9110 §10.1.1).
    static let continueTimeout: Int64 = 1_000_000_000

    /// When body bytes were last received.
    private(set) var receivedAt: Int64 = 0
    /// When the current window began, over which the rate is measured.
    private(set) var windowStart: Int64 = 0
    private(set) var windowBytes = 0

    /// Starts a window.
    @inline(__always)
    mutating func begin(now: Int64) {
        windowStart = now
        windowBytes = 0
    }

    /// Starts waiting for the next bytes.
    @inline(__always)
    mutating func restart(now: Int64) { receivedAt = now }

    /// Counts bytes that were received.
    @inline(__always)
    mutating func add(_ count: Int) { windowBytes &+= count }

    /// When the body has to be checked next.
    /// - Parameter awaitsContinue: whether the client waits for 100 (Continue) before it sends the body.
    @inline(__always)
    func nextCheck(now: Int64, _ rules: Rules, awaitsContinue: Bool) -> Int64 {
        if awaitsContinue { return now &+ BodyPace.continueTimeout }
        let idle = receivedAt &+ rules.idleTimeout
        return rules.minimumRate > 0 ? min(windowStart &+ BodyPace.window, idle) : idle
    }

    /// Checks what has arrived, and starts the next window where one is over.
    mutating func check(now: Int64, _ rules: Rules) -> Check {
        let elapsed = now &- windowStart
        let isWindowOver = elapsed >= BodyPace.window
        let wanted = Int(elapsed / 1_000_000_000) &* rules.minimumRate
        let isIdle = now &- receivedAt >= rules.idleTimeout
        guard !isIdle, !isWindowOver || windowBytes >= wanted else { return .timedOut }
        if isWindowOver { begin(now: now) }
        return .arriving
    }
}
