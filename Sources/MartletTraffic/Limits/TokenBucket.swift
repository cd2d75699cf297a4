/// A bucket of tokens as one number: when it will be full again (GCRA, the generic cell rate algorithm).
///
/// Each token that is taken moves this time by one interval into the future, and a bucket that was never used is full
/// since time 0.
package struct TokenBucket: Sendable, Equatable {
    /// When it will be full again, in nanoseconds of the monotonic clock.
    package private(set) var fullAt: Int64

    /// - Parameter fullAt: 0 for a full one.
    package init(fullAt: Int64 = 0) { self.fullAt = fullAt }

    /// Takes a token, if there is one.
    @inline(__always)
    package mutating func take(_ rate: TokenRate, at now: Int64) -> TokenDecision {
        let missing = missing(rate, at: now)
        // Neither is longer than a century.
        let next = missing &+ rate.interval
        guard next <= rate.capacity else { return TokenDecision(isAllowed: false, missing: missing) }
        fullAt = Self.sum(now, next)
        return TokenDecision(isAllowed: true, missing: next)
    }

    /// Gives back a token that was taken.
    @inline(__always)
    package mutating func giveBack(_ rate: TokenRate) {
        let earlier = fullAt.subtractingReportingOverflow(rate.interval)
        fullAt = earlier.overflow ? 0 : max(earlier.partialValue, 0)
    }

    /// Leaves at least one token in it.
    @inline(__always)
    package mutating func leaveOne(_ rate: TokenRate, at now: Int64) {
        fullAt = min(fullAt, Self.sum(now, rate.capacity &- rate.interval))
    }

    /// Nanoseconds until it is full, at most those of an empty one.
    @inline(__always)
    private func missing(_ rate: TokenRate, at now: Int64) -> Int64 {
        guard fullAt > now else { return 0 }
        let difference = fullAt.subtractingReportingOverflow(now)
        return difference.overflow ? rate.capacity : min(difference.partialValue, rate.capacity)
    }

    @inline(__always)
    private static func sum(_ now: Int64, _ nanoseconds: Int64) -> Int64 {
        let sum = now.addingReportingOverflow(nanoseconds)
        return sum.overflow ? .max : sum.partialValue
    }
}

/// Whether there was a token, and the state of the bucket afterwards.
@frozen @usableFromInline package struct TokenDecision: Sendable, Equatable {
    @inlinable static var second: Int64 { 1_000_000_000 }

    @usableFromInline package let isAllowed: Bool
    /// Nanoseconds until the bucket is full.
    @usableFromInline package let missing: Int64

    @inlinable @inline(__always)
    package init(isAllowed: Bool, missing: Int64) {
        self.isAllowed = isAllowed
        self.missing = missing
    }

    /// The decision after its token was given back.
    package func givenBack(_ rate: TokenRate) -> TokenDecision {
        isAllowed ? TokenDecision(isAllowed: true, missing: max(missing &- rate.interval, 0)) : self
    }

    /// The tokens that are left.
    @inlinable @inline(__always)
    package func remaining(_ rate: TokenRate) -> Int { Int((rate.capacity &- missing) / rate.interval) }

    /// Nanoseconds until there is a token; 0 if there is one.
    @inlinable @inline(__always)
    package func wait(_ rate: TokenRate) -> Int64 { max(missing &+ rate.interval &- rate.capacity, 0) }

    /// Whole seconds until there is a token, at least 1: `Retry-After`.
    @inlinable @inline(__always)
    package func retryAfter(_ rate: TokenRate) -> Int { Self.seconds(wait(rate)) }

    /// Whole seconds, at least 1, until the bucket is full, or until it has a token if it has none.
    @inlinable @inline(__always)
    package func reset(_ rate: TokenRate) -> Int {
        remaining(rate) == 0 ? retryAfter(rate) : Self.seconds(missing)
    }

    @inlinable @inline(__always)
    static func seconds(_ nanoseconds: Int64) -> Int {
        Int(max((nanoseconds &+ second &- 1) / second, 1))
    }
}
