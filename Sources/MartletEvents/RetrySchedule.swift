internal import MartletCore

/// When a delivery is retried: after 1 s, then twice as long each time up to 5 min, with ±20 % jitter.
package struct RetrySchedule: Sendable {
    private static let first = 1_000.0
    private static let longest = 300_000.0
    private static let jitter = 0.2

    /// The age of an event, in milliseconds, after which it is not retried.
    package let maximumAge: Int64

    package init(maximumAge: Duration) {
        self.maximumAge = max(maximumAge.wholeMilliseconds, 0)
    }

    /// When to retry, in milliseconds since 1970; `nil` if the event is too old.
    /// - Parameters:
    ///   - attempts: the number of failed attempts, the last one included.
    ///   - created: when the event happened.
    ///   - now: when the last attempt failed.
    ///   - random: a number from 0 to 1 that spreads the retries.
    package func retry(after attempts: Int, of created: Int64, at now: Int64, random: Double) -> Int64? {
        let (age, overflow) = now.subtractingReportingOverflow(created)
        guard !overflow, age < maximumAge else { return nil }
        var delay = RetrySchedule.first
        for _ in 1..<min(max(attempts, 1), 20) { delay = min(delay * 2, RetrySchedule.longest) }
        let spread = 1 + RetrySchedule.jitter * (2 * min(max(random, 0), 1) - 1)
        let (instant, isTooLate) = now.addingReportingOverflow(Int64(delay * spread))
        return isTooLate ? .max : instant
    }
}
