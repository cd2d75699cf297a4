import MartletCore
import Testing

@testable import MartletAdmin

@Suite struct `Latency quantiles` {
    static func histogram(_ counts: [Int: Int]) -> LatencyHistogram {
        var buckets = [Int](repeating: 0, count: latencyBounds.count + 1)
        for (index, count) in counts { buckets[index] = count }
        var histogram = LatencyHistogram()
        histogram.add(buckets, sumMicroseconds: 0)
        return histogram
    }

    @Test func `lie inside their bucket`() {
        #expect(LatencyHistogram().quantile(0.5) == nil)
        #expect(Self.histogram([0: 10]).quantile(0.5) == 50)
        #expect(Self.histogram([0: 1, 1: 1]).quantile(0.5) == 100)
        #expect(Self.histogram([0: 1, 1: 1]).quantile(1) == 250)
        #expect(Self.histogram([3: 100]).quantile(0.99) == 995)
        #expect(Self.histogram([3: 90, 6: 10]).quantile(0.95) == 7500)
        #expect(Self.histogram([latencyBounds.count: 5]).quantile(0.5) == 10_000_000)
    }
}
