/// When the exchanges in progress are checked for credentials that have ended.
struct CredentialWatch {
    /// How often, in nanoseconds.
    static let interval: Int64 = 200_000_000
    /// Exchanges younger than this are allowed to finish.
    static let minimumAge: Int64 = 700_000_000

    /// When they were last checked.
    private var checkedAt: Int64 = 0

    /// How long the loop may sleep, in milliseconds.
    static func wait(exchanges: Int) -> Int32 { exchanges > 0 ? Int32(interval / 1_000_000) : 1000 }

    /// Whether an exchange that started at a moment is a long one.
    @inline(__always)
    static func isLong(since started: Int64, at now: Int64) -> Bool { now &- started >= minimumAge }

    /// Begins a check.
    /// - Returns: whether one is due.
    @inline(__always)
    mutating func begin(exchanges: Int, at now: Int64) -> Bool {
        guard exchanges > 0, now &- checkedAt >= CredentialWatch.interval else { return false }
        checkedAt = now
        return true
    }

    /// The next check is due immediately.
    mutating func checkSoon() { checkedAt = 0 }
}
