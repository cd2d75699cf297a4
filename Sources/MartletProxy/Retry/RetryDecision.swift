/// What follows an attempt to send a request to an endpoint that has failed.
enum RetryDecision: Equatable {
    /// The request is sent again.
    /// - Parameters:
    ///   - avoiding: the endpoint that has failed it; none where the failure was not the endpoint's.
    ///   - reusing: whether an idle connection may be used.
    case retry(avoiding: EndpointIndex, reusing: Bool)
    case fail
}

/// An attempt to send a request to an endpoint that has failed.
struct FailedAttempt {
    /// What the endpoint may have done with the request.
    enum Progress: Equatable {
        /// Nothing was sent.
        case nothingSent
        /// The request was sent, or a part of it.
        case requestSent
        /// The endpoint said that it has not processed the request (RFC 9113 §8.7).
        case refused
    }

    /// How often a request is sent that may have been processed.
    static let repetitionLimit = 2
    /// How often a request is sent that an upstream refuses to process.
    static let refusedStreamLimit = 4

    let progress: Progress
    /// The endpoint that failed.
    let endpoint: EndpointIndex
    /// How often the request was sent to an endpoint, this attempt included.
    let attempts: Int
    /// Number of endpoints of the upstream.
    let endpoints: Int
    /// The request can be repeated without a second effect (``Exchange/isRepeatable``).
    let isRepeatable: Bool
    /// Body bytes were received, which may have been sent to the endpoint and are lost.
    let hasBodyBytes: Bool
    let hasResponseStarted: Bool

    /// A request is sent to each endpoint while nothing was sent, and twice if it can be repeated.
    var decision: RetryDecision {
        guard !hasResponseStarted else { return .fail }
        switch progress {
        case .nothingSent: return attempts < endpoints ? elsewhere : .fail
        case .requestSent: return attempts < FailedAttempt.repetitionLimit && isRepeatable ? elsewhere : .fail
        case .refused:
            return attempts < FailedAttempt.refusedStreamLimit && !hasBodyBytes
                ? .retry(avoiding: .none, reusing: true) : .fail
        }
    }

    private var elsewhere: RetryDecision { .retry(avoiding: endpoint, reusing: false) }
}
