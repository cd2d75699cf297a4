/// How fast the tokens of a bucket come back, and how many it holds.
@frozen @usableFromInline package struct TokenRate: Sendable, Hashable {
    /// No bucket needs longer than this to be full again: a century, so that no sum of times overflows.
    private static let longest: Int64 = 100 * 365 * 24 * 3600 * 1_000_000_000

    /// Tokens in one period.
    package let count: Int
    /// The period in seconds.
    package let seconds: Int
    /// Tokens of a full bucket.
    package let burst: Int
    /// Nanoseconds until one token is back; at least 1.
    @usableFromInline package let interval: Int64
    /// Nanoseconds until an empty bucket is full.
    @usableFromInline package let capacity: Int64

    /// - Parameters:
    ///   - count: tokens in one period; at least 1.
    ///   - burst: tokens of a full bucket; at least 1.
    package init(count: Int, perSeconds seconds: Int = 1, burst: Int) {
        self.count = max(count, 1)
        self.seconds = max(seconds, 1)
        self.burst = max(burst, 1)
        let period = Int64(self.seconds).multipliedReportingOverflow(by: 1_000_000_000)
        let nanoseconds = period.overflow ? Self.longest : min(period.partialValue, Self.longest)
        interval = max(nanoseconds / Int64(self.count), 1)
        let whole = interval.multipliedReportingOverflow(by: Int64(self.burst))
        capacity = whole.overflow ? Self.longest : max(min(whole.partialValue, Self.longest), interval)
    }
}
