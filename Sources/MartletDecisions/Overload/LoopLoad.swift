/// How many requests a loop lets pass, by how long events wait for it.
///
/// Two delays in a row that are longer than the limit begin an overload. What waits then is rejected, so that the queue is
/// gone; afterwards the loop looks for the share of requests with which the queue stays short: the share shrinks while
/// events wait longer than a tenth of the limit, and grows otherwise. With all requests the overload is over.
///
/// A load that is served in time can have longer queues than that. So the loop makes a trial after a while, in which the
/// share grows unless events wait longer than the limit.
package struct LoopLoad {
    /// All requests.
    package static let all = 1000
    /// The share that is admitted however large the load is, in thousandths.
    static let minimum = 20
    /// The share at first, in thousandths.
    package static let start = 80
    /// How often the share grows, in nanoseconds: twice as large until half of the requests are served or delays are too
    /// long for the first time, then by a tenth of itself, and by the minimum at least.
    static let growthInterval: Int64 = 100_000_000
    /// The time until a trial, in nanoseconds; doubled by each that fails.
    static let trialIntervals = Int64(2_000_000_000)...Int64(32_000_000_000)

    /// How long it takes at most until the queue is short, in nanoseconds.
    static let longestDrain: Int64 = 1_000_000_000
    /// A loop that sleeps for so long has no queue, in nanoseconds.
    static let idleTime: Int64 = 10_000_000

    /// Delays beyond the limit, for metrics.
    package private(set) var slowTurns = 0
    /// The share of requests that is admitted, in thousandths.
    package private(set) var share = all
    /// Whether what waits is being rejected.
    package private(set) var isDraining = false
    /// No share was too large yet.
    private var isStarting = false
    private var drainingSince = Int64.min
    private var wasSlow = false
    private var wasLong = false
    /// A smaller share shows its effect only once what was waiting then has been handled.
    private var nextCut = Int64.min
    private var nextGrowth = Int64.max
    private var trialInterval = trialIntervals.lowerBound
    private var nextTrial = Int64.max
    /// The share before the trial that is being made.
    private var shareBeforeTrial: Int?
    /// What the share has admitted beyond whole requests, in thousandths.
    private var remainder = 0

    package init() {}

    /// Whether requests are rejected.
    package var isOverloaded: Bool { share < Self.all }

    /// The delay with which the queue is short. No less than what a turn may take without any queue.
    package static func target(_ limit: Int64) -> Int64 { min(max(limit / 10, 2_000_000), limit) }

    /// The longest delay that changes nothing: what has waited for longer need not have arrived to be recorded.
    package func tolerance(_ limit: Int64) -> Int64 {
        if isDraining { return .max }
        return isOverloaded && shareBeforeTrial == nil ? Self.target(limit) : limit
    }

    /// Records how long an event has waited, or has waited already.
    /// - Parameters:
    ///   - delay: in nanoseconds.
    ///   - now: when it was measured.
    ///   - limit: the longest delay.
    package mutating func waited(_ delay: Int64, at now: Int64, limit: Int64) {
        if delay > limit { slowTurns &+= 1 }
        // A single delay may have any reason; a queue makes all of them long.
        let isSlowAgain = delay > limit && wasSlow
        let isLongAgain = delay > Self.target(limit) && wasLong
        (wasSlow, wasLong) = (delay > limit, delay > Self.target(limit))
        if !isOverloaded {
            guard isSlowAgain else { return }
            trialInterval = Self.trialIntervals.lowerBound
            drain(Self.start, at: now)
            isStarting = true
        } else if let before = shareBeforeTrial {
            guard isSlowAgain else { return }
            trialInterval = min(trialInterval &* 2, Self.trialIntervals.upperBound)
            drain(before, at: now)
        } else if isDraining {
            // Turns without any request may be long, too.
            let longest = now &- drainingSince < Self.longestDrain ? Self.target(limit) : limit
            if delay <= longest { endDraining(at: now) }
        } else if isSlowAgain {
            drain(share / 2, at: now)
        } else if isLongAgain, now >= nextCut {
            share = max(isStarting || delay > limit / 2 ? share / 2 : share * 7 / 8, Self.minimum)
            isStarting = false
            (nextCut, nextGrowth) = (now &+ delay, now &+ Self.growthInterval)
        }
    }

    private mutating func drain(_ share: Int, at now: Int64) {
        self.share = max(share, Self.minimum)
        (isDraining, drainingSince) = (true, now)
        (isStarting, shareBeforeTrial) = (false, nil)
    }

    private mutating func endDraining(at now: Int64) {
        isDraining = false
        nextGrowth = now &+ Self.growthInterval
        nextTrial = now &+ trialInterval
    }

    /// The share grows with the time.
    /// - Parameter slept: how long there was nothing to do.
    package mutating func advance(to now: Int64, slept: Int64) {
        guard isOverloaded else { return }
        if isDraining, slept >= Self.idleTime { endDraining(at: now &- slept) }
        guard !isDraining else { return }
        if now >= nextTrial, shareBeforeTrial == nil { shareBeforeTrial = share }
        while isOverloaded, now >= nextGrowth {
            share = min(
                isStarting && share < Self.all / 2 ? share * 2 : share + max(share / 10, Self.minimum), Self.all)
            nextGrowth = nextGrowth &+ Self.growthInterval
        }
        if !isOverloaded { shareBeforeTrial = nil }
    }

    /// Decides about a request: of a thousand, as many pass as the share says, evenly spread.
    package mutating func admits() -> Bool {
        remainder += isDraining ? Self.minimum : share
        guard remainder >= Self.all else { return false }
        remainder -= Self.all
        return true
    }
}
