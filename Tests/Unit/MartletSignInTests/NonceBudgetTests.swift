import MartletCore
import MartletProvider
import Testing

@testable import MartletSignIn

@Suite struct NonceBudgetTests {
    @Test func `gives out so many in a window, and then tells when there are more`() {
        let budget = NonceBudget(window: .seconds(300), maximum: 3)
        let start = MonotonicTime(nanoseconds: 1_000_000_000)
        for _ in 0..<3 { #expect(budget.take(at: start, for: nil) == nil) }
        #expect(budget.take(at: start, for: nil) == .seconds(300))
        #expect(budget.take(at: start + .seconds(299), for: nil) == .seconds(1))
        for _ in 0..<3 { #expect(budget.take(at: start + .seconds(300), for: nil) == nil) }
        #expect(budget.take(at: start + .seconds(301), for: nil) == .seconds(299))
    }

    @Test func `gives one network its share alone`() {
        let budget = NonceBudget(window: .seconds(300), maximum: 10)
        let start = MonotonicTime(nanoseconds: 1_000_000_000)
        func network(_ last: UInt8) -> ClientNetwork? {
            ClientNetwork(address: [UInt8](repeating: 0, count: 10) + [0xFF, 0xFF, 192, 0, 2, last])
        }
        for _ in 0..<2 { #expect(budget.take(at: start, for: network(1)) == nil) }
        #expect(budget.take(at: start, for: network(1)) == .seconds(300))
        #expect(budget.take(at: start, for: network(2)) == nil)
        #expect(budget.take(at: start + .seconds(300), for: network(1)) == nil)
    }
}
