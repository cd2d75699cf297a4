internal import MartletCore
internal import MartletHTTP
internal import MartletProvider
internal import MartletRouter

/// The identity headers of a request, as they were written.
struct IdentityHeaders {
    /// Headers that were left out, because their value does not fit.
    var dropped: [DroppedHeader]
    /// Until when the block may be reused, in Unix seconds.
    var expires = Int64.max
}

extension Snapshot {
    /// Writes the identity headers of a request, and for a principal the signed assertion, where upstreams get one.
    ///
    /// - Parameter principal: `nil` for an anonymous request.
    func writeIdentityHeaders(
        of principal: Principal?, route: Int, at unixTime: UnixTime, into block: inout ByteBuffer
    ) -> IdentityHeaders {
        let injection = routes.injections[routes.routes[route].injection]
        var headers = IdentityHeaders(dropped: injection.render(principal, into: &block))
        guard let principal, let assertion = signIn.assertion else { return headers }
        let dropped = assertion.append(
            for: principal, injection: injection, upstream: upstreams[compiledRoutes[route].upstream].name,
            now: unixTime, into: &block)
        if let dropped { headers.dropped.append(dropped) }
        headers.expires = unixTime.seconds &+ assertion.lifetime.wholeSeconds
        return headers
    }
}
