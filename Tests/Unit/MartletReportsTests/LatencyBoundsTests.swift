import MartletReports
import Testing

@Suite struct LatencyBoundsTests {
    @Test func `the bounds of the histogram ascend from 100 µs to 10 s`() {
        #expect(latencyBounds.first == 100 && latencyBounds.last == 10_000_000)
        #expect(zip(latencyBounds, latencyBounds.dropFirst()).allSatisfy { $0 < $1 })
    }
}
