package import MartletCore
package import MartletResponder

/// How an upstream connection has failed: what that means for its request, and for its endpoint.
package enum UpstreamFailureKind: Equatable {
    /// It was not ready for requests yet.
    case notEstablished
    /// An HTTP/2 connection: each of its streams has failed.
    case connectionOfStreams
    /// It carried no request.
    case unused
    /// It carried an open tunnel.
    case tunnel
    /// It had been idle before this request: the upstream may have closed it before it received any of it.
    case stale
    /// Nothing of a response was received.
    case noResponse
    /// A part of a response was received.
    case incompleteResponse

    /// - Parameters:
    ///   - isTunnel: the request has become an open tunnel.
    ///   - served: requests that the connection carried before.
    ///   - hasResponse: bytes of the response were received.
    package init(
        of kind: UpstreamKind, in phase: UpstreamPhase, carriesRequest: Bool, isTunnel: Bool,
        served: Int, hasResponse: Bool
    ) {
        if phase == .handshake {
            self = .notEstablished
        } else if kind == .http2 {
            self = .connectionOfStreams
        } else if !carriesRequest {
            self = .unused
        } else if isTunnel {
            self = .tunnel
        } else if hasResponse {
            self = .incompleteResponse
        } else {
            self = served > 0 ? .stale : .noResponse
        }
    }

    /// Whether it counts as a failure of the endpoint.
    package var blamesEndpoint: Bool { self == .noResponse || self == .incompleteResponse }

    /// Whether the request may be sent again.
    package var allowsRetry: Bool { self == .noResponse || self == .stale }

    /// The response to the request, given the reason of the failure.
    package func failure(_ reason: ErrorCode) -> Failure {
        switch self {
        case .tunnel: .upstreamInvalid("tunnel.upstream_broke")
        case .incompleteResponse: .upstreamInvalid(reason)
        case .notEstablished, .connectionOfStreams, .unused, .stale, .noResponse: .upstreamUnavailable(reason)
        }
    }
}
