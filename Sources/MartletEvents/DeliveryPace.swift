internal import MartletCore

/// How many deliveries of a webhook may begin: as many as there are free places or, while every attempt fails, one a
/// second. Otherwise each event would be attempted, and its failure recorded, while the webhook is down.
struct DeliveryPace: Sendable {
    /// After how many failures in a row the webhook counts as down.
    private static let failureLimit = 8
    private static let probeInterval = Duration.seconds(1)

    private var failures = 0
    private var lastAttempt: MonotonicTime?

    /// Whether every recent attempt has failed.
    var isDown: Bool { failures >= DeliveryPace.failureLimit }

    /// Counts an attempt.
    mutating func note(success: Bool) { failures = success ? 0 : min(failures + 1, DeliveryPace.failureLimit) }

    /// Records that attempts begin.
    mutating func noteAttempt(at now: MonotonicTime) { lastAttempt = now }

    /// How many attempts may begin.
    /// - Parameters:
    ///   - free: the number of free places.
    ///   - inProgress: the number of attempts in progress.
    func allowed(free: Int, inProgress: Int, at now: MonotonicTime) -> Int {
        guard isDown else { return free }
        let isDue = lastAttempt.map { now.since($0) >= DeliveryPace.probeInterval } ?? true
        return isDue && inProgress == 0 ? min(free, 1) : 0
    }
}
