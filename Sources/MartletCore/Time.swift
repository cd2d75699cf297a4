private import CLinux

/// Seconds since 1970-01-01T00:00:00Z, as in tokens and HTTP.
@frozen public struct UnixTime: Hashable, Comparable, Sendable, CustomStringConvertible {
    public let seconds: Int64

    public init(seconds: Int64) { self.seconds = seconds }

    public static func < (left: UnixTime, right: UnixTime) -> Bool { left.seconds < right.seconds }

    /// The instant `delta` seconds later (or earlier, if negative); saturates instead of trapping.
    public func advanced(bySeconds delta: Int64) -> UnixTime {
        let (sum, overflow) = seconds.addingReportingOverflow(delta)
        return UnixTime(seconds: overflow ? (delta > 0 ? .max : .min) : sum)
    }

    /// Milliseconds since 1970, saturating.
    public var milliseconds: Int64 {
        let (product, overflow) = seconds.multipliedReportingOverflow(by: 1000)
        return overflow ? (seconds > 0 ? .max : .min) : product
    }

    public var description: String { String(seconds) }
}

/// An instant of the monotonic clock, in nanoseconds; for deadlines and measurements.
@frozen public struct MonotonicTime: Hashable, Comparable, Sendable {
    public let nanoseconds: Int64

    public init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

    /// A deadline that is never reached.
    public static let never = MonotonicTime(nanoseconds: .max)

    public static func < (left: MonotonicTime, right: MonotonicTime) -> Bool { left.nanoseconds < right.nanoseconds }

    /// Saturating addition: a deadline out of range becomes `never`.
    public static func + (instant: MonotonicTime, span: Duration) -> MonotonicTime {
        let (sum, overflow) = instant.nanoseconds.addingReportingOverflow(span.wholeNanoseconds)
        return MonotonicTime(nanoseconds: overflow ? .max : sum)
    }

    /// The duration from an earlier instant to this one; never traps.
    public func since(_ earlier: MonotonicTime) -> Duration {
        .nanoseconds(nanoseconds &- earlier.nanoseconds)
    }
}

extension Duration {
    /// The duration in nanoseconds, saturating at ±292 years.
    public var wholeNanoseconds: Int64 {
        let (seconds, attoseconds) = components
        let (product, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        guard !overflow else { return seconds > 0 ? .max : .min }
        let (sum, carried) = product.addingReportingOverflow(attoseconds / 1_000_000_000)
        return carried ? (seconds > 0 ? .max : .min) : sum
    }

    /// The duration in nanoseconds, at least 0 and at most a hundred years: safe to add to the clock.
    package var boundedNanoseconds: Int64 { min(max(wholeNanoseconds, 0), 3_155_760_000 * 1_000_000_000) }

    /// The duration in milliseconds, saturating.
    public var wholeMilliseconds: Int64 { wholeNanoseconds / 1_000_000 }

    /// The whole seconds of the duration, saturating.
    public var wholeSeconds: Int64 { components.seconds }
}

/// The source of time: the system clocks, or a test's clock.
@frozen public struct Clock: Sendable {
    private let readUnixTime: @Sendable () -> UnixTime
    private let readMonotonicTime: @Sendable () -> MonotonicTime
    private let readUnixMilliseconds: @Sendable () -> Int64

    /// - Parameters:
    ///   - unixTime: the wall clock.
    ///   - monotonicTime: the clock for deadlines.
    ///   - unixMilliseconds: the wall clock in milliseconds; `nil` derives it from `unixTime`.
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
    /// The wall clock in milliseconds, for timestamps that instances share.
    public var unixMilliseconds: Int64 { readUnixMilliseconds() }

    /// `CLOCK_REALTIME` and `CLOCK_MONOTONIC`.
    public static let system = Clock(
        unixTime: { UnixTime(seconds: martlet_realtime_nanoseconds() / 1_000_000_000) },
        monotonicTime: { MonotonicTime(nanoseconds: martlet_monotonic_nanoseconds()) },
        unixMilliseconds: { martlet_realtime_nanoseconds() / 1_000_000 })
}
