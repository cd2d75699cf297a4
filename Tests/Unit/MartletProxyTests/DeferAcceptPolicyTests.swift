import Testing

@testable import MartletProxy

@Suite struct DeferAcceptPolicyTests {
    private static let window = DeferAcceptPolicy.window

    /// Records so many connections in each window, evaluating once in the middle and once at the end of it.
    /// - Returns: whether the policy was active at the end of each, and how often listeners had to be updated.
    private func run(_ counts: [Int]) -> (states: [Bool], updates: [Int]) {
        var policy = DeferAcceptPolicy()
        var now: Int64 = 5 * Self.window
        _ = policy.evaluate(at: now)
        var (states, updates): ([Bool], [Int]) = ([], [])
        for count in counts {
            var times = 0
            for _ in 0..<count { policy.recordSingleUse() }
            if policy.evaluate(at: now + Self.window / 2) { times += 1 }
            now += Self.window
            if policy.evaluate(at: now) { times += 1 }
            states.append(policy.isActive)
            updates.append(times)
        }
        return (states, updates)
    }

    @Test func `few connections do not activate it`() {
        let (states, updates) = run([0, 1, DeferAcceptPolicy.threshold - 1, 0])
        #expect(states == [false, false, false, false] && updates == [0, 0, 0, 0])
    }

    @Test func `many activate it within the window, and a window with few deactivates it`() {
        var policy = DeferAcceptPolicy()
        _ = policy.evaluate(at: Self.window)
        for _ in 0..<DeferAcceptPolicy.threshold { policy.recordSingleUse() }
        #expect(policy.evaluate(at: Self.window + 1) && policy.isActive)
        #expect(!policy.evaluate(at: 2 * Self.window) && policy.isActive)
        #expect(policy.evaluate(at: 2 * Self.window + 1) && !policy.isActive)
        #expect(!policy.evaluate(at: 9 * Self.window) && !policy.isActive)
    }

    @Test func `listeners are updated at the first evaluation and every ten seconds, whether it changed or not`() {
        var policy = DeferAcceptPolicy()
        #expect(policy.evaluate(at: 0) && !policy.evaluate(at: 1))
        for round in Int64(1)...3 {
            let due = round * DeferAcceptPolicy.interval
            #expect(!policy.evaluate(at: due - 1) && policy.evaluate(at: due) && !policy.isActive)
        }
    }

    @Test func `half the threshold keeps it active, and listeners are updated in each window`() {
        let half = DeferAcceptPolicy.threshold / 2
        let (states, updates) = run([DeferAcceptPolicy.threshold, half, half, half - 1, half])
        #expect(states == [true, true, true, false, false])
        #expect(updates.dropFirst().allSatisfy { $0 <= 1 } && updates[0] >= 1 && updates[3] == 1 && updates[4] == 0)
    }
}
