import MartletCore
import Testing

@testable import MartletSignIn

@Suite struct NonceBudgetTests {
    @Test func `gives out so many in a window, and then tells when there are more`() {
        let budget = NonceBudget(window: .seconds(300), maximum: 3)
        let start = MonotonicTime(nanoseconds: 1_000_000_000)
        for _ in 0..<3 { #expect(budget.take(at: start) == nil) }
        #expect(budget.take(at: start) == .seconds(300))
        #expect(budget.take(at: start + .seconds(299)) == .seconds(1))
        for _ in 0..<3 { #expect(budget.take(at: start + .seconds(300)) == nil) }
        #expect(budget.take(at: start + .seconds(301)) == .seconds(299))
    }
}
