internal import MartletCore

/// When the next check of a grant may be made: at a rate at most, and not while the issuer limits the rate of calls.
struct CheckPace: Sendable {
    private static let firstPause = Duration.seconds(60)
    private static let longestPause = Duration.seconds(3600)

    private let interval: Duration
    private var next: MonotonicTime?
    private var pause = CheckPace.firstPause

    /// - Parameter interval: the minimum time between two checks.
    init(interval: Duration) { self.interval = interval }

    /// How long to wait; zero if a check may be made.
    func wait(at now: MonotonicTime) -> Duration { next.map { max($0.since(now), .zero) } ?? .zero }

    /// Records that a check is made.
    mutating func noteCheck(at now: MonotonicTime) {
        // An idle time does not permit a burst.
        let due = next.map { $0 > now ? $0 : now } ?? now
        next = due + interval
    }

    /// Records that the issuer limits the rate: no checks for a while, twice as long each time.
    mutating func noteThrottled(at now: MonotonicTime, retryAfter: Duration?) {
        next = now + max(retryAfter ?? .zero, pause)
        pause = min(pause * 2, CheckPace.longestPause)
    }

    /// Records that the issuer has responded.
    mutating func noteResponse() { pause = CheckPace.firstPause }
}
