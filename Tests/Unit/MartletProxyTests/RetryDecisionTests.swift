import Testing

@testable import MartletProxy

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

    @Test func `a request that was sent is repeated once, if that has no second effect`() {
        #expect(decision(.requestSent, attempts: 1) == Self.elsewhere)
        #expect(decision(.requestSent, attempts: 1, endpoints: 1) == Self.elsewhere)
        #expect(decision(.requestSent, attempts: 2) == .fail)
        #expect(decision(.requestSent, attempts: 1, isRepeatable: false) == .fail)
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

    @Test(arguments: [FailedAttempt.Progress.nothingSent, .requestSent, .refused])
    func `nothing is repeated after the response has started`(progress: FailedAttempt.Progress) {
        #expect(decision(progress, attempts: 1, hasResponseStarted: true) == .fail)
    }
}
