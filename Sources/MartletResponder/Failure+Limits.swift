package import MartletCore

/// Rejections by the limits of a route.
extension Failure {
    /// The client's network, or the process, keeps too many bodies for the gateway's own endpoints.
    package static let bodiesOverShare = Failure(
        status: 503, code: "overloaded", reason: "request.bodies_over_share", retryAfter: 1)

    /// More requests of the route are under way than its `limits.concurrency` allows.
    package static let tooManyUnderWay = Failure(
        status: 503, code: "overloaded", reason: "limits.concurrency_exceeded", retryAfter: 1)

    /// No endpoint of an upstream may be used: an operator has drained all, or all are unhealthy and none is used then.
    package static let noUsableEndpoint = Failure(
        status: 503, code: "upstream_unavailable", reason: "upstream.no_endpoint", retryAfter: 1)

    /// An upstream has as many requests or connections as its `breaker` allows.
    package static func breakerOpen(_ reason: ErrorCode) -> Failure {
        Failure(status: 503, code: "overloaded", reason: reason, retryAfter: 1)
    }

    /// There is no descriptor for a connection to an upstream, or none for this client's network.
    package static let tooManyUpstreamConnections = breakerOpen("upstream.too_many_connections")

    /// The system has no descriptor or memory for a connection to an upstream.
    package static let noDescriptor = breakerOpen("upstream.no_descriptor")

    /// The system has no local port left for a connection to an upstream's address.
    package static let noLocalPort = breakerOpen("upstream.no_local_port")

    /// The gateway has more to do than it can do in time, or uses too much memory.
    package static let overloaded = Failure(
        status: 503, code: "overloaded", reason: "server.overloaded", retryAfter: 1)

    /// A rate limit that lets nothing pass without the store, while that does not respond.
    /// - Parameter limit: the name of the limit, for the log.
    package static func limitUnavailable(_ limit: String) -> Failure {
        var failure = Failure(
            status: 503, code: "overloaded", reason: "limits.store_unavailable", retryAfter: 1)
        failure.condition = limit
        return failure
    }

    /// A rate limit has no token for the request.
    /// - Parameter limit: the name of the limit, for the log.
    package static func rateExceeded(_ limit: String, retryAfter: Int) -> Failure {
        var failure = throttled("limits.rate_exceeded", retryAfter: retryAfter)
        failure.condition = limit
        return failure
    }
}
