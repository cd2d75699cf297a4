private import Synchronization

/// The requests and retries of an upstream in the last second, over all event loops.
///
/// Two words without a lock, each for half a second: when it began, its requests and its retries. Each loop adds to the
/// current one; whoever finds it outdated begins it anew, so that a count may be lost at a boundary, but never a retry
/// be granted twice.
package final class RetryBudget: Sendable {
    private let even = Atomic<UInt64>(0)
    private let odd = Atomic<UInt64>(0)
    private static let half: Int64 = 500_000_000

    package init() {}

    /// One half: 24 bits of its number, 20 of requests, 20 of retries; both counts stop at their maximum.
    private struct Half {
        static let maximum: UInt64 = (1 << 20) - 1
        var word: UInt64

        init(_ word: UInt64) { self.word = word }
        init(number: UInt64) { word = number << 40 }

        var number: UInt64 { word >> 40 }
        var requests: UInt64 { (word >> 20) & Half.maximum }
        var retries: UInt64 { word & Half.maximum }

        func adding(request: Bool) -> Half {
            if request { return requests < Half.maximum ? Half(word &+ 1 << 20) : self }
            return retries < Half.maximum ? Half(word &+ 1) : self
        }
    }

    /// Counts a request, not its retries.
    package func countRequest(at now: Int64) {
        let number = Self.number(now)
        with(number) { half in
            var expected = half.load(ordering: .relaxed)
            while true {
                let current = Half(expected).number == number ? Half(expected) : Half(number: number)
                let (exchanged, original) = half.weakCompareExchange(
                    expected: expected, desired: current.adding(request: true).word, ordering: .relaxed)
                if exchanged { return }
                expected = original
            }
        }
    }

    /// Takes a retry out of the budget.
    /// - Returns: whether there was one.
    package func takeRetry(_ policy: RetryBudgetPolicy, at now: Int64) -> Bool {
        let number = Self.number(now)
        let before = with(number &- 1) { Half($0.load(ordering: .relaxed)) }
        let isRecent = before.number == (number &- 1) & 0xFF_FFFF
        let (oldRequests, oldRetries) = isRecent ? (before.requests, before.retries) : (0, 0)
        return with(number) { half in
            var expected = half.load(ordering: .relaxed)
            while true {
                let current = Half(expected).number == number ? Half(expected) : Half(number: number)
                let requests = Int(oldRequests &+ current.requests)
                let retries = Int(oldRetries &+ current.retries)
                let maximum = max(requests * policy.percent / 100, policy.minimumPerSecond)
                guard retries < maximum, current.retries < Half.maximum else { return false }
                let (exchanged, original) = half.weakCompareExchange(
                    expected: expected, desired: current.adding(request: false).word, ordering: .relaxed)
                if exchanged { return true }
                expected = original
            }
        }
    }

    private static func number(_ now: Int64) -> UInt64 { UInt64(bitPattern: now / half) & 0xFF_FFFF }

    private func with<Result>(_ number: UInt64, _ body: (borrowing Atomic<UInt64>) -> Result) -> Result {
        number & 1 == 0 ? body(even) : body(odd)
    }
}
