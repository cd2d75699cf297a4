/// Tells whether clients come in numbers for one request each.
///
/// Then a connection costs more than its request, and it pays to have the kernel keep it until the request is there: see
/// ``Worker/accept(_:)``. It is asked about connections that have ended after one request, not about those that come: clients
/// that open many and say nothing on them never change how they are served.
struct SingleUseMeter {
    /// For how long connections are counted, in nanoseconds.
    static let window: Int64 = 100_000_000
    /// How often listeners are told at least, in nanoseconds.
    static let interval: Int64 = 10_000_000_000
    /// How many of them in one window are many: 500 per second.
    static let many = 50

    /// Whether there are many; it ends with a window that had less than half of that.
    private(set) var isHigh = false
    private var count = 0
    private var began: Int64 = 0
    private var told: Int64?

    /// Takes note of a connection that ended after its first request.
    mutating func note() { count &+= 1 }

    /// Looks at what was counted, which is to be done at least once in a window while there are many.
    /// - Returns: whether listeners are to be told: when it has changed, in each window while there are many, and every ten
    ///   seconds. Others that accept from the same socket may have told it something else, or have left it so.
    mutating func look(at now: Int64) -> Bool {
        let isOver = now &- began >= Self.window
        let wasHigh = isHigh
        if count >= Self.many { isHigh = true } else if isOver, count < Self.many / 2 { isHigh = false }
        let isDue = told.map { now &- $0 >= Self.interval } ?? true
        let isNews = isHigh != wasHigh || (isOver && isHigh) || isDue
        if isOver || isHigh != wasHigh { (began, count) = (now, 0) }
        if isNews { told = now }
        return isNews
    }
}
