import MartletTraffic
import Testing

@testable import MartletDecisions

@Suite struct RetryDecisionTests {
    private static let endpoint = EndpointIndex(rawValue: 7)
    private static let elsewhere = RetryDecision.retry(avoiding: endpoint, reusing: false)
    private static let anywhere = RetryDecision.retry(avoiding: .none, reusing: true)

    private func decision(
        _ progress: FailedAttempt.Progress, attempts: Int, endpoints: Int = 3, isRepeatable: Bool = true,
        hasBodyBytes: Bool = false, hasResponseStarted: Bool = false
    ) -> RetryDecision {
        FailedAttempt(
            progress: progress, endpoint: Self.endpoint, attempts: attempts, endpoints: endpoints,
            isRepeatable: isRepeatable, hasBodyBytes: hasBodyBytes, hasResponseStarted: hasResponseStarted
        ).decision
    }

    @Test func `a request of which nothing was sent is sent to each endpoint once`() {
        for endpoints in 1...4 {
            for attempts in 1...5 {
                let expected = attempts < endpoints ? Self.elsewhere : .fail
                #expect(decision(.nothingSent, attempts: attempts, endpoints: endpoints) == expected)
                #expect(
                    decision(
                        .nothingSent, attempts: attempts, endpoints: endpoints, isRepeatable: false,
                        hasBodyBytes: true) == expected)
            }
        }
    }

    @Test func `a request that was sent goes to each other endpoint, if that has no second effect`() {
        for endpoints in 1...4 {
            for attempts in 1...5 {
                let expected = attempts < max(endpoints, 2) ? Self.elsewhere : .fail
                #expect(decision(.requestSent, attempts: attempts, endpoints: endpoints) == expected)
                #expect(
                    decision(.requestSent, attempts: attempts, endpoints: endpoints, isRepeatable: false) == .fail)
            }
        }
    }

    @Test func `a request on a connection that had been idle is repeated once`() {
        #expect(decision(.sentOnIdleConnection, attempts: 1, endpoints: 1) == Self.elsewhere)
        #expect(decision(.sentOnIdleConnection, attempts: 2) == .fail)
        #expect(decision(.sentOnIdleConnection, attempts: 1, isRepeatable: false) == .fail)
    }

    @Test func `neither a timeout nor a status is repeated without a policy`() {
        #expect(decision(.timedOut, attempts: 1) == .fail)
        #expect(decision(.responded(.serviceUnavailable), attempts: 1) == .fail)
    }

    @Test func `a refused request is sent up to four times, to any endpoint`() {
        for attempts in 1...3 {
            #expect(decision(.refused, attempts: attempts, endpoints: 1) == Self.anywhere)
            #expect(decision(.refused, attempts: attempts, isRepeatable: false) == Self.anywhere)
        }
        #expect(decision(.refused, attempts: 4) == .fail)
    }

    @Test func `a refused request whose body is lost is not repeated`() {
        #expect(decision(.refused, attempts: 1, hasBodyBytes: true) == .fail)
    }

    // MARK: With a policy

    private static func policy(_ conditions: RetryPolicy.Conditions, attempts: Int = 2) -> RetryPolicy {
        RetryPolicy(
            attempts: attempts, conditions: conditions, perTryTimeout: nil, backoff: 1,
            budget: RetryBudgetPolicy(percent: 20, minimumPerSecond: 3))
    }

    private func decision(
        _ progress: FailedAttempt.Progress, by policy: RetryPolicy, attempts: Int = 1, endpoints: Int = 3,
        isRepeatable: Bool = true
    ) -> RetryDecision {
        FailedAttempt(
            progress: progress, endpoint: Self.endpoint, attempts: attempts, endpoints: endpoints,
            isRepeatable: isRepeatable, hasBodyBytes: false, hasResponseStarted: false, policy: policy
        ).decision
    }

    private static func budgeted(reusing: Bool = false, waits: Bool = true) -> RetryDecision {
        .retryWithinBudget(avoiding: endpoint, reusing: reusing, waits: waits)
    }

    static let conditions: [(FailedAttempt.Progress, RetryPolicy.Conditions)] = [
        (.nothingSent, .connect), (.requestSent, .reset), (.timedOut, .reset),
        (.responded(.badGateway), .badGateway), (.responded(.serviceUnavailable), .serviceUnavailable),
        (.responded(.gatewayTimeout), .gatewayTimeout),
    ]

    @Test(arguments: conditions)
    func `the policy says after what a request is repeated, and how often`(
        progress: FailedAttempt.Progress, condition: RetryPolicy.Conditions
    ) {
        let all: RetryPolicy.Conditions = [.connect, .reset, .badGateway, .serviceUnavailable, .gatewayTimeout]
        for attempts in 1...2 {
            let decided = decision(progress, by: Self.policy(condition), attempts: attempts)
            #expect(decided != .fail)
        }
        #expect(decision(progress, by: Self.policy(all), attempts: 3) == .fail)
        #expect(decision(progress, by: Self.policy(all.subtracting(condition))) == .fail)
        #expect(decision(progress, by: Self.policy(all, attempts: 0)) == .fail)
    }

    @Test func `only an endpoint that could not be connected to is left without a wait, for another one`() {
        let policy = Self.policy([.connect, .reset, .serviceUnavailable])
        #expect(decision(.nothingSent, by: policy) == Self.budgeted(waits: false))
        #expect(decision(.nothingSent, by: policy, endpoints: 1) == Self.budgeted())
        #expect(decision(.requestSent, by: policy) == Self.budgeted())
        #expect(decision(.responded(.serviceUnavailable), by: policy) == Self.budgeted(reusing: true))
    }

    @Test func `a request with a second effect is repeated only while nothing was sent`() {
        let policy = Self.policy([.connect, .reset, .serviceUnavailable])
        #expect(decision(.nothingSent, by: policy, isRepeatable: false) == Self.budgeted(waits: false))
        #expect(decision(.requestSent, by: policy, isRepeatable: false) == .fail)
        #expect(decision(.responded(.serviceUnavailable), by: policy, isRepeatable: false) == .fail)
    }

    @Test func `a refused stream and an idle connection that closed need no policy`() {
        #expect(decision(.refused, by: Self.policy([])) == Self.anywhere)
        #expect(decision(.sentOnIdleConnection, by: Self.policy([])) == Self.elsewhere)
        #expect(decision(.sentOnIdleConnection, by: Self.policy([]), attempts: 2) == .fail)
        #expect(decision(.sentOnIdleConnection, by: Self.policy(.reset), attempts: 2) == Self.budgeted())
    }

    @Test(arguments: [FailedAttempt.Progress.nothingSent, .requestSent, .refused])
    func `nothing is repeated after the response has started`(progress: FailedAttempt.Progress) {
        #expect(decision(progress, attempts: 1, hasResponseStarted: true) == .fail)
    }
}
