package import MartletTraffic

/// What follows an attempt to send a request to an endpoint that has failed.
package enum RetryDecision: Equatable {
    /// The request is sent again.
    /// - Parameters:
    ///   - avoiding: the endpoint that has failed it; none where the failure was not the endpoint's.
    ///   - reusing: whether an idle connection may be used.
    case retry(avoiding: EndpointIndex, reusing: Bool)
    /// The upstream's policy allows a retry, if its budget does.
    /// - Parameter waits: whether the request waits before.
    case retryWithinBudget(avoiding: EndpointIndex, reusing: Bool, waits: Bool)
    case fail
}

/// An attempt to send a request to an endpoint that has failed.
package struct FailedAttempt {
    /// What the endpoint may have done with the request.
    package enum Progress: Equatable {
        /// Nothing was sent.
        case nothingSent
        /// The request was sent, or a part of it, and no response came.
        case requestSent
        /// It was sent over a connection that had been idle, which the endpoint may have closed before.
        case sentOnIdleConnection
        /// No response came in time.
        case timedOut
        /// A response that may be repeated.
        case responded(RetryPolicy.Conditions)
        /// The endpoint said that it has not processed the request (RFC 9113 §8.7).
        case refused
    }

    /// How often a request is sent at least that may have been processed, without a policy.
    static let repetitionLimit = 2
    /// How often a request is sent that an upstream refuses to process.
    static let refusedStreamLimit = 4

    package let progress: Progress
    /// The endpoint that failed.
    package let endpoint: EndpointIndex
    /// How often the request was sent to an endpoint, this attempt included.
    package let attempts: Int
    /// Number of endpoints of the upstream.
    package let endpoints: Int
    /// The request can be repeated without a second effect (``Exchange/isRepeatable``).
    package let isRepeatable: Bool
    /// Body bytes were received, which may have been sent to the endpoint and are lost.
    package let hasBodyBytes: Bool
    package let hasResponseStarted: Bool
    /// `retries:` of the upstream.
    package var policy: RetryPolicy?

    package init(
        progress: Progress, endpoint: EndpointIndex, attempts: Int, endpoints: Int, isRepeatable: Bool,
        hasBodyBytes: Bool, hasResponseStarted: Bool, policy: RetryPolicy? = nil
    ) {
        self.progress = progress
        self.endpoint = endpoint
        self.attempts = attempts
        self.endpoints = endpoints
        self.isRepeatable = isRepeatable
        self.hasBodyBytes = hasBodyBytes
        self.hasResponseStarted = hasResponseStarted
        self.policy = policy
    }

    /// Without a policy a request is sent to each endpoint once while nothing was sent, or if it can be repeated, at
    /// least twice then.
    package var decision: RetryDecision {
        guard !hasResponseStarted else { return .fail }
        switch progress {
        case .refused:
            return attempts < FailedAttempt.refusedStreamLimit && !hasBodyBytes
                ? .retry(avoiding: .none, reusing: true) : .fail
        case .sentOnIdleConnection:
            if attempts < FailedAttempt.repetitionLimit, isRepeatable { return elsewhere }
            return policy.map { decision(by: $0) } ?? .fail
        case .nothingSent: return policy.map { decision(by: $0) } ?? (attempts < endpoints ? elsewhere : .fail)
        case .requestSent:
            let limit = max(endpoints, FailedAttempt.repetitionLimit)
            return policy.map { decision(by: $0) } ?? (attempts < limit && isRepeatable ? elsewhere : .fail)
        case .timedOut, .responded: return policy.map { decision(by: $0) } ?? .fail
        }
    }

    private var elsewhere: RetryDecision { .retry(avoiding: endpoint, reusing: false) }

    private func decision(by policy: RetryPolicy) -> RetryDecision {
        guard attempts <= policy.attempts, policy.conditions.contains(condition),
            isRepeatable || progress == .nothingSent
        else { return .fail }
        var hasResponded = false
        if case .responded = progress { hasResponded = true }
        // Another endpoint needs no time to recover from a connection that it did not refuse.
        let waits = progress != .nothingSent || endpoints == 1
        return .retryWithinBudget(avoiding: endpoint, reusing: hasResponded, waits: waits)
    }

    private var condition: RetryPolicy.Conditions {
        switch progress {
        case .nothingSent: .connect
        case .requestSent, .sentOnIdleConnection, .timedOut, .refused: .reset
        case .responded(let condition): condition
        }
    }
}
