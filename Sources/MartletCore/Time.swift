private import CLinux

/// Seconds since 1970-01-01T00:00:00Z, as tokens and HTTP count them.
public struct UnixTime: Hashable, Comparable, Sendable, CustomStringConvertible {
    public let seconds: Int64

    public init(seconds: Int64) { self.seconds = seconds }

    public static func < (left: UnixTime, right: UnixTime) -> Bool { left.seconds < right.seconds }

    /// The instant so many seconds later (or earlier); saturates instead of trapping.
    public func advanced(bySeconds delta: Int64) -> UnixTime {
        let (sum, overflow) = seconds.addingReportingOverflow(delta)
        return UnixTime(seconds: overflow ? (delta > 0 ? .max : .min) : sum)
    }

    /// The same in milliseconds, saturating.
    public var milliseconds: Int64 {
        let (product, overflow) = seconds.multipliedReportingOverflow(by: 1000)
        return overflow ? (seconds > 0 ? .max : .min) : product
    }

    public var description: String { String(seconds) }
}

/// An instant of the clock that never goes back, in nanoseconds; for deadlines and measuring.
public struct MonotonicTime: Hashable, Comparable, Sendable {
    public let nanoseconds: Int64

    public init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

    /// The end of time: a deadline that never comes.
    public static let never = MonotonicTime(nanoseconds: .max)

    public static func < (left: MonotonicTime, right: MonotonicTime) -> Bool { left.nanoseconds < right.nanoseconds }

    /// Saturating addition, so that a deadline far away is simply `never`.
    public static func + (instant: MonotonicTime, span: Duration) -> MonotonicTime {
        let (sum, overflow) = instant.nanoseconds.addingReportingOverflow(span.wholeNanoseconds)
        return MonotonicTime(nanoseconds: overflow ? .max : sum)
    }

    /// The span from another instant to this one; never traps.
    public func since(_ earlier: MonotonicTime) -> Duration {
        .nanoseconds(nanoseconds &- earlier.nanoseconds)
    }
}

extension Duration {
    /// The span in nanoseconds, saturating at ±292 years.
    public var wholeNanoseconds: Int64 {
        let (seconds, attoseconds) = components
        let (product, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        guard !overflow else { return seconds > 0 ? .max : .min }
        let (sum, carried) = product.addingReportingOverflow(attoseconds / 1_000_000_000)
        return carried ? (seconds > 0 ? .max : .min) : sum
    }

    /// The span in milliseconds, saturating.
    public var wholeMilliseconds: Int64 { wholeNanoseconds / 1_000_000 }

    /// The span in seconds, rounded down, saturating.
    public var wholeSeconds: Int64 { components.seconds }
}

/// Where the time comes from: the system's clocks, or a test's.
public struct Clock: Sendable {
    private let readUnixTime: @Sendable () -> UnixTime
    private let readMonotonicTime: @Sendable () -> MonotonicTime
    private let readUnixMilliseconds: @Sendable () -> Int64

    /// - Parameters:
    ///   - unixTime: the wall clock.
    ///   - monotonicTime: the clock for deadlines.
    ///   - unixMilliseconds: the wall clock again, finer; `nil` is whole seconds.
    public init(
        unixTime: @escaping @Sendable () -> UnixTime, monotonicTime: @escaping @Sendable () -> MonotonicTime,
        unixMilliseconds: (@Sendable () -> Int64)? = nil
    ) {
        readUnixTime = unixTime
        readMonotonicTime = monotonicTime
        readUnixMilliseconds =
            unixMilliseconds ?? {
                let (product, overflow) = unixTime().seconds.multipliedReportingOverflow(by: 1000)
                return overflow ? .max : product
            }
    }

    public var unixTime: UnixTime { readUnixTime() }
    public var monotonicTime: MonotonicTime { readMonotonicTime() }
    /// The wall clock in milliseconds, for what instances agree on by it.
    public var unixMilliseconds: Int64 { readUnixMilliseconds() }

    /// `CLOCK_REALTIME` and `CLOCK_MONOTONIC`.
    public static let system = Clock(
        unixTime: { UnixTime(seconds: martlet_realtime_nanoseconds() / 1_000_000_000) },
        monotonicTime: { MonotonicTime(nanoseconds: martlet_monotonic_nanoseconds()) },
        unixMilliseconds: { martlet_realtime_nanoseconds() / 1_000_000 })
}
