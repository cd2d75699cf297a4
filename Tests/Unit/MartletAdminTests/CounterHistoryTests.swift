import MartletCore
import MartletJSON
import Testing

@testable import MartletAdmin

@Suite struct `Counters of the last ten minutes` {
    private static func instant(_ seconds: Double) -> MonotonicTime {
        MonotonicTime(nanoseconds: Int64(seconds * 1e9))
    }

    private static func sample(_ count: Int, errors: Int = 0, hits: Int? = nil) -> CounterSample {
        var buckets = [Int](repeating: 0, count: latencyBounds.count + 1)
        buckets[3] = count
        return CounterSample(count: count, errors: errors, hits: hits, buckets: buckets)
    }

    /// A history of 10 requests a second, of which every tenth fails, over some seconds.
    private static func steady(seconds: Int) -> CounterHistory {
        var history = CounterHistory()
        for second in stride(from: 0, through: seconds, by: 2) {
            history.record(
                [.all: sample(second * 10, errors: second, hits: second * 5)], at: instant(Double(second) + 0.01))
        }
        return history
    }

    private static func window(_ history: CounterHistory, _ name: String, at second: Int) -> JSONObject {
        let current = sample(second * 10, errors: second, hits: second * 5)
        return history.last(.all, current: current, at: instant(Double(second) + 0.02))[name]?.object ?? [:]
    }

    @Test func `every window has its own rate, errors, hits and quantiles`() {
        let history = Self.steady(seconds: 1200)
        for (name, seconds) in [("10s", 10), ("1m", 60), ("10m", 600)] {
            let window = Self.window(history, name, at: 1200)
            #expect(window["rate"]?.double.map { abs($0 - 10) < 0.1 } == true, "\(name): \(window)")
            let errors = window["errors"]?.int64.map(Int.init) ?? 0
            #expect(errors >= seconds && errors <= seconds + seconds / 5, "\(name): \(errors)")
            #expect(window["hits"]?.int64 == Int64(errors * 5), "\(name)")
            #expect(window["p50_ms"]?.double.map { $0 > 0.5 && $0 <= 1 } == true, "\(name)")
        }
    }

    @Test func `what happened before a window is not in it`() {
        var history = CounterHistory()
        for second in stride(from: 0, through: 100, by: 2) {
            history.record([.all: Self.sample(min(second, 20) * 100)], at: Self.instant(Double(second)))
        }
        let last = history.last(.all, current: Self.sample(2000), at: Self.instant(100))
        #expect(last["10s"]?.object?["rate"]?.double == 0 && last["10s"]?.object?["p99_ms"] == .null)
        #expect(last["1m"]?.object?["rate"]?.double == 0)
        #expect(last["10m"]?.object?["rate"]?.double == 20)
    }

    @Test func `a gateway that has just started shows what it has`() {
        let empty = CounterHistory().last(.all, current: Self.sample(5), at: Self.instant(1))
        #expect(empty["10s"]?.object?["rate"]?.double == 0)
        var history = CounterHistory()
        history.record([.all: Self.sample(0)], at: Self.instant(0))
        let last = history.last(.all, current: Self.sample(30), at: Self.instant(3))
        #expect(last["10m"]?.object?["rate"]?.double == 10 && last["10s"]?.object?["hits"] == .null)
    }

    @Test func `counters that begin again are not negative`() {
        var history = CounterHistory()
        history.record([.provider("a"): Self.sample(1000, errors: 7, hits: 9)], at: Self.instant(0))
        let last = history.last(.provider("a"), current: Self.sample(20, errors: 1, hits: 3), at: Self.instant(10))
        #expect(last["10s"]?.object?["rate"]?.double == 2 && last["10s"]?.object?["errors"]?.int64 == 1)
        let unknown = history.last(.route("new"), current: Self.sample(20), at: Self.instant(10))
        #expect(unknown["10s"]?.object?["rate"]?.double == 2)
    }

    @Test func `samples are bounded`() {
        let history = Self.steady(seconds: 100_000)
        #expect(history.sampleCount <= 30)
    }
}
