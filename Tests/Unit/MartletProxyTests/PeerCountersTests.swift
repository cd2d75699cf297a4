import MartletResponder
import Testing

@testable import MartletProxy

@Suite struct `Counters by upstream and provider` {
    private static func report(_ counters: borrowing PeerCounters, _ names: [(name: String, index: Int)]) -> LoopReport
    {
        var report = LoopReport()
        counters.add(to: &report, upstreams: names)
        return report
    }

    @Test func `requests are counted by upstream, with errors and durations`() {
        var counters = PeerCounters()
        counters.adopt(upstreams: 2, providers: ["apple"])
        counters.count(upstream: 1, provider: 0, status: 200, bucket: 3, microseconds: 7)
        counters.count(upstream: 1, provider: -1, status: 502, bucket: 16, microseconds: 7)
        counters.count(upstream: -1, provider: 0, status: 401, bucket: 0, microseconds: 7)
        let report = Self.report(counters, [("a", 0), ("b", 1)])
        #expect(report.upstreams.map(\.requests) == [0, 2] && report.upstreams.map(\.errors) == [0, 1])
        #expect(report.upstreams[1].buckets[3] == 1 && report.upstreams[1].buckets[16] == 1)
        #expect(report.upstreams.map(\.sumMicroseconds) == [0, 14])
        #expect(report.providers == ["apple": 2])
    }

    @Test func `a sign-in that names its provider is not one of the provider's requests`() {
        var counters = PeerCounters()
        counters.adopt(upstreams: 0, providers: ["apple", "wechat"])
        counters.discount(provider: 1)
        counters.count(upstream: -1, provider: 1, status: 200, bucket: 0, microseconds: 7)
        counters.count(upstream: -1, provider: 0, status: 200, bucket: 0, microseconds: 7)
        for number in [-1, 2] { counters.discount(provider: number) }
        #expect(Self.report(counters, []).providers == ["apple": 1, "wechat": 0])
    }

    @Test func `a reload keeps what was counted, by name`() {
        var counters = PeerCounters()
        counters.adopt(upstreams: 1, providers: ["apple", "wechat"])
        counters.count(upstream: 0, provider: 1, status: 200, bucket: 0, microseconds: 7)
        counters.adopt(upstreams: 3, providers: ["wechat"])
        counters.count(upstream: 2, provider: 0, status: 200, bucket: 0, microseconds: 7)
        // Of a configuration that this loop has not adopted yet.
        counters.count(upstream: 9, provider: 7, status: 200, bucket: 0, microseconds: 7)
        let report = Self.report(counters, [("a", 0), ("c", 2), ("unknown", 9)])
        #expect(report.upstreams.map(\.name) == ["a", "c"] && report.upstreams.map(\.requests) == [1, 1])
        #expect(report.providers == ["apple": 0, "wechat": 2])
    }
}
