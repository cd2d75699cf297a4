import MartletTraffic
import Testing

@testable import MartletDecisions

@Suite struct LimitDecisionsTests {
    private static let second: Int64 = 1_000_000_000
    private static let rate = TokenRate(count: 1, burst: 2)

    private func decisions(_ missing: [(isAllowed: Bool, seconds: Int64)]) -> LimitDecisions {
        var decisions = LimitDecisions()
        for (index, one) in missing.enumerated() {
            let decision = TokenDecision(isAllowed: one.isAllowed, missing: one.seconds * Self.second)
            decisions.record(decision, of: index, Self.rate)
        }
        return decisions
    }

    @Test func `the limit with the longest wait rejects`() {
        #expect(decisions([(true, 1), (true, 2)]).areAllowed)
        #expect(decisions([(true, 1), (false, 2)]).rejecting == 1)
        let two = TokenRate(count: 1, perSeconds: 60, burst: 1)
        var decisions = decisions([(false, 2)])
        decisions.record(TokenDecision(isAllowed: false, missing: 60 * Self.second), of: 1, two)
        decisions.record(TokenDecision(isAllowed: false, missing: 2 * Self.second), of: 2, Self.rate)
        #expect(decisions.rejecting == 1 && !decisions.areAllowed)
    }

    @Test func `a token that was given back is left again`() {
        var decisions = decisions([(true, 1), (false, 2)])
        #expect(decisions.took(0) && !decisions.took(1))
        decisions.gaveBack(0, Self.rate)
        #expect(decisions[0].remaining(Self.rate) == 2)
    }

    @Test func `there is room for all limits of a route`() {
        #expect(LimitDecisions.capacity == 8)
        #expect(decisions(Array(repeating: (true, 1), count: 8)).areAllowed)
    }
}
