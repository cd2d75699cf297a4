package import MartletCore

/// Time that a test advances.
package struct SimulatedTime: Sendable {
    private let milliseconds = Box<Int64>(1_800_000_000_000)

    package init() {}

    package var clock: Clock {
        Clock(
            unixTime: { [milliseconds] in UnixTime(seconds: milliseconds.value / 1000) },
            monotonicTime: { [milliseconds] in MonotonicTime(nanoseconds: milliseconds.value * 1_000_000) },
            unixMilliseconds: { [milliseconds] in milliseconds.value })
    }

    package var now: Int64 { milliseconds.value }

    package func advance(by span: Duration) {
        milliseconds.withLock { $0 += span.wholeMilliseconds }
    }
}
