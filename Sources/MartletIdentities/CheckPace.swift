internal import MartletCore

/// When the next call about an identity may be made: at a rate at most, and not while the issuer limits the rate of
/// calls.
struct CheckPace: Sendable {
    private static let longestPause = Duration.seconds(3600)

    private let interval: Duration
    private let firstPause: Duration
    private var next: MonotonicTime?
    private var pause: Duration
    private var pausedUntil: MonotonicTime?
    /// The number of pauses since the issuer's last response.
    private(set) var pauses = 0

    /// - Parameters:
    ///   - interval: the minimum time between two calls.
    ///   - firstPause: the first pause, unless the issuer asks for a longer one.
    init(interval: Duration, firstPause: Duration = .seconds(60)) {
        self.interval = interval
        self.firstPause = firstPause
        pause = firstPause
    }

    /// How long to wait; zero if a call may be made.
    func wait(at now: MonotonicTime) -> Duration { next.map { max($0.since(now), .zero) } ?? .zero }

    /// Records that a call is made.
    mutating func noteCheck(at now: MonotonicTime) {
        // An idle time does not permit a burst.
        let due = next.map { $0 > now ? $0 : now } ?? now
        next = due + interval
    }

    /// Records that the issuer limits the rate: no calls for a while, twice as long each time.
    mutating func noteThrottled(at now: MonotonicTime, retryAfter: Duration?) {
        let asked = now + (retryAfter ?? .zero)
        // Calls that were in progress when the pause began make it no longer than the issuer asks for.
        if let end = pausedUntil, now < end {
            pausedUntil = max(end, asked)
        } else {
            pausedUntil = max(now + pause, asked)
            pause = min(pause * 2, CheckPace.longestPause)
            pauses += 1
        }
        next = pausedUntil
    }

    /// Records that the issuer has responded.
    mutating func noteResponse() {
        pause = firstPause
        pauses = 0
    }
}
