package import MartletCore

/// The clocks of a loop, as they were read for the current batch of events.
@usableFromInline
package struct LoopTime: Sendable {
    /// The monotonic clock, in nanoseconds.
    @usableFromInline package let monotonic: Int64
    /// The wall clock, in seconds.
    @usableFromInline package let unix: Int64

    @inlinable @inline(__always)
    package init(monotonic: Int64, unix: Int64) {
        self.monotonic = monotonic
        self.unix = unix
    }

    package var unixTime: UnixTime { UnixTime(seconds: unix) }
}
