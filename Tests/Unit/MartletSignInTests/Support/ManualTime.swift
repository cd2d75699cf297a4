import MartletCore
import MartletTesting

/// A clock that a test advances.
struct ManualTime: Sendable {
    private let seconds = Box<Int64>(1_700_000_000)

    var clock: Clock {
        Clock(
            unixTime: { [seconds] in UnixTime(seconds: seconds.value) },
            monotonicTime: { [seconds] in MonotonicTime(nanoseconds: seconds.value * 1_000_000_000) })
    }

    var now: Int64 { seconds.value }

    func advance(seconds span: Int64) { seconds.withLock { $0 += span } }
}
