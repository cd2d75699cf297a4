import MartletCore
import MartletTesting
import Testing

@Suite struct LeakyCountMinSketchTests {
    private static let second: Int64 = 1_000_000_000

    @Test func `counts a key and lets it drain evenly`() {
        var counts = LeakyCountMinSketch()
        #expect(counts.backlog(of: 1, at: 5) == 0)
        for _ in 0..<3 { counts.add(1, cost: Self.second, at: 5) }
        #expect(counts.backlog(of: 1, at: 5) == 3 * Self.second)
        #expect(counts.backlog(of: 1, at: 5 + Self.second) == 2 * Self.second)
        #expect(counts.backlog(of: 1, at: 5 + 10 * Self.second) == 0)
        counts.add(1, cost: Self.second, at: 5 + 10 * Self.second)
        #expect(counts.backlog(of: 1, at: 5 + 10 * Self.second) == Self.second, "elapsed time is not a credit")
    }

    @Test func `does not overflow`() {
        var counts = LeakyCountMinSketch()
        for _ in 0..<3 { counts.add(1, cost: .max, at: .max - 1) }
        #expect(counts.backlog(of: 1, at: .max - 1) == 1)
    }

    @Test func `never counts a key too low, however many others there are`() {
        var counts = LeakyCountMinSketch()
        for _ in 0..<10 { counts.add("mine", cost: Self.second, at: 0) }
        for other in 0..<200_000 { counts.add(other, cost: Self.second, at: 0) }
        #expect(counts.backlog(of: "mine", at: 0) >= 10 * Self.second)
    }

    /// A thousand keys at 100 each: one in 6,000 others is expected to appear to be at the limit too.
    @Test func `rarely counts a key too high`() {
        var counts = LeakyCountMinSketch()
        for _ in 0..<100 {
            for other in 0..<1000 { counts.add(other, cost: Self.second, at: 0) }
        }
        let tooHigh = (1_000_000..<1_010_000).count { counts.backlog(of: $0, at: 0) >= 100 * Self.second }
        #expect(tooHigh < 50)
    }
}
