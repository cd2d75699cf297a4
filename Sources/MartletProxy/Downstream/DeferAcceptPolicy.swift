/// Decides when listeners defer accepting (`TCP_DEFER_ACCEPT`): while many connections carry a single request each.
///
/// Then a connection costs more than its request, and it pays to have the kernel hold it until the request has arrived:
/// see ``EventLoop/accept(_:)``. It counts connections that ended after one request, not new ones: clients that open
/// many idle connections never change how others are served.
struct DeferAcceptPolicy {
    /// How long connections are counted, in nanoseconds.
    static let window: Int64 = 100_000_000
    /// How often listeners are updated at least, in nanoseconds.
    static let interval: Int64 = 10_000_000_000
    /// How many of them in one window activate the policy: 500 per second.
    static let threshold = 50

    /// Whether it is active; it ends with a window that had less than half the threshold.
    private(set) var isActive = false
    private var count = 0
    private var began: Int64 = 0
    private var appliedAt: Int64?

    /// Counts a connection that ended after its first request.
    mutating func recordSingleUse() { count &+= 1 }

    /// Evaluates the counts; call it at least once per window while active.
    /// - Returns: whether listeners have to be updated: on a change, in each window while active, and every ten
    ///   seconds, as other processes that accept from the same socket may have changed its options.
    mutating func evaluate(at now: Int64) -> Bool {
        let isOver = now &- began >= Self.window
        let wasActive = isActive
        if count >= Self.threshold { isActive = true } else if isOver, count < Self.threshold / 2 { isActive = false }
        let isDue = appliedAt.map { now &- $0 >= Self.interval } ?? true
        let shouldApply = isActive != wasActive || (isOver && isActive) || isDue
        if isOver || isActive != wasActive { (began, count) = (now, 0) }
        if shouldApply { appliedAt = now }
        return shouldApply
    }
}
