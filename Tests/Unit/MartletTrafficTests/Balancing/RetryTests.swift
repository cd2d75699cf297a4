import Foundation
import MartletTraffic
import Testing

@Suite struct `A retry budget` {
    private static let second: Int64 = 1_000_000_000

    @Test func `grants its share of the requests`() {
        let budget = RetryBudget()
        let policy = RetryBudgetPolicy(percent: 20, minimumPerSecond: 0)
        #expect(!budget.takeRetry(policy, at: 0))
        for _ in 0..<100 { budget.countRequest(at: 0) }
        let granted = (0..<100).filter { _ in budget.takeRetry(policy, at: 1) }
        #expect(granted.count == 20)
    }

    @Test func `grants the minimum where there are few requests`() {
        let budget = RetryBudget()
        let policy = RetryBudgetPolicy(percent: 20, minimumPerSecond: 3)
        budget.countRequest(at: 0)
        let granted = (0..<10).filter { _ in budget.takeRetry(policy, at: 1) }
        #expect(granted.count == 3)
        #expect(budget.takeRetry(policy, at: Self.second))
    }

    @Test func `of a storm stays below the share, whenever it is asked`() {
        let budget = RetryBudget()
        let policy = RetryBudgetPolicy(percent: 20, minimumPerSecond: 3)
        var (requests, retries) = (0, 0)
        // 1,000 requests a second for 20 s, each of which wants two retries.
        for step in 0..<20_000 {
            let now = Int64(step) * 1_000_000
            budget.countRequest(at: now)
            requests += 1
            for _ in 0..<2 where budget.takeRetry(policy, at: now) { retries += 1 }
        }
        #expect(retries <= requests / 5 + 3 && retries >= requests / 6)
    }

    @Test func `forgets the requests of more than a second ago`() {
        let budget = RetryBudget()
        let policy = RetryBudgetPolicy(percent: 100, minimumPerSecond: 0)
        for _ in 0..<10 { budget.countRequest(at: 0) }
        #expect(budget.takeRetry(policy, at: Self.second * 9 / 10))
        #expect(!budget.takeRetry(policy, at: Self.second))
    }

    @Test func `counts what many loops do together`() async {
        let budget = RetryBudget()
        let policy = RetryBudgetPolicy(percent: 50, minimumPerSecond: 0)
        let granted = await withTaskGroup(of: Int.self) { group in
            for _ in 0..<8 {
                group.addTask {
                    (0..<10_000).reduce(0) { sum, _ in
                        budget.countRequest(at: 0)
                        return sum + (budget.takeRetry(policy, at: 0) ? 1 : 0)
                    }
                }
            }
            return await group.reduce(0, +)
        }
        #expect(granted <= 40_000 && granted > 35_000)
    }
}

@Suite struct `The wait before a retry` {
    private static func policy(_ backoff: Int64) -> RetryPolicy {
        RetryPolicy(
            attempts: 3, conditions: .connect, perTryTimeout: nil, backoff: backoff,
            budget: RetryBudgetPolicy(percent: 20, minimumPerSecond: 3))
    }

    @Test func `doubles, and is between half and all of it`() {
        let policy = Self.policy(100)
        for (retry, longest) in [(1, Int64(100)), (2, 200), (3, 400), (4, 800)] {
            let waits = (0..<10_000).map { policy.wait(before: retry, random: $0) }
            #expect(waits.min() == longest / 2 && waits.max() == longest)
        }
    }

    @Test func `is never too long to count, and none without backoff`() {
        #expect(Self.policy(0).wait(before: 9, random: 7) == 0)
        for random in [0, 1, UInt64.max] {
            let wait = Self.policy(10_000_000_000).wait(before: .max, random: random)
            #expect((30_000_000_000...60_000_000_000).contains(wait))
        }
    }

    @Test(arguments: [(502, RetryPolicy.Conditions.badGateway), (503, .serviceUnavailable), (504, .gatewayTimeout)])
    func `is for three statuses`(status: Int, condition: RetryPolicy.Conditions) {
        #expect(RetryPolicy.Conditions(status: status) == condition)
        #expect(RetryPolicy.Conditions(status: status - 2).isDisjoint(with: condition))
        #expect(RetryPolicy.Conditions(status: 500).isEmpty && RetryPolicy.Conditions(status: 429).isEmpty)
    }
}
