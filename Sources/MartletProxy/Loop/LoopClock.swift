internal import MartletAuthenticator
internal import MartletCore
internal import MartletHTTP

/// The time as one loop sees it: read once per batch of events.
struct LoopClock: ~Copyable {
    /// The clock that is read.
    let source: Clock
    /// The monotonic clock, in nanoseconds.
    private(set) var now: Int64
    /// The wall clock, in seconds.
    private(set) var unixTime: Int64
    /// The wall clock as the value of a `Date` field.
    private(set) var dateText = ByteBuffer(capacity: 64)
    /// The second of `dateText`.
    private var dateSecond: Int64 = -1

    init(_ source: Clock) {
        self.source = source
        now = source.monotonicTime.nanoseconds
        unixTime = source.unixTime.seconds
        _ = read()
    }

    /// Both clocks.
    @inline(__always)
    var time: LoopTime { LoopTime(monotonic: now, unix: unixTime) }

    /// The wall clock in milliseconds, read now.
    var unixMilliseconds: Int64 { source.unixMilliseconds }

    /// Reads the clocks.
    /// - Returns: whether the wall clock was set back.
    @inline(__always)
    mutating func read() -> Bool {
        now = source.monotonicTime.nanoseconds
        unixTime = source.unixTime.seconds
        return unixTime == dateSecond ? false : beginSecond()
    }

    @inline(never)
    private mutating func beginSecond() -> Bool {
        let isSetBack = unixTime < dateSecond
        dateSecond = unixTime
        dateText.removeAll()
        HTTPDate(UnixTime(seconds: unixTime)).append(to: &dateText)
        return isSetBack
    }
}
