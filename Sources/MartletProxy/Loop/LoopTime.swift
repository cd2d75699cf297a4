internal import MartletCore

/// The clocks of a loop, as they were read for the current batch of events.
struct LoopTime {
    /// The monotonic clock, in nanoseconds.
    let monotonic: Int64
    /// The wall clock, in seconds.
    let unix: Int64

    var unixTime: UnixTime { UnixTime(seconds: unix) }
}
