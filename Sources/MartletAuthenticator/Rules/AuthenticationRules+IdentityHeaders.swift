package import MartletCore
package import MartletProvider
package import MartletRouter

/// The identity headers of a request, as they were written.
package struct IdentityHeaders {
    /// Headers that were left out, because their value does not fit.
    package internal(set) var dropped: [DroppedHeader]
    /// Until when the block may be reused, in Unix seconds.
    var expires = Int64.max
}

extension AuthenticationRules {
    /// Writes the identity headers of a request, and for a principal the signed assertion, where upstreams get one.
    ///
    /// Nothing on a route without an upstream, and on a public one only the headers that are constant.
    ///
    /// - Parameter principal: `nil` for an anonymous request.
    package func writeIdentityHeaders(
        of principal: Principal?, route: Int, at unixTime: UnixTime, into block: inout ByteBuffer
    ) -> IdentityHeaders {
        guard table.routes[route].upstream >= 0 else { return IdentityHeaders(dropped: []) }
        let injection = table.injections[table.routes[route].injection]
        guard routes[route].mode != .none else {
            injection.renderConstants(into: &block)
            return IdentityHeaders(dropped: [])
        }
        var headers = IdentityHeaders(dropped: injection.render(principal, into: &block))
        guard let principal, let assertion else { return headers }
        let dropped = assertion.append(
            for: principal, injection: injection,
            upstream: upstreams[table.routes[route].upstream(of: principal.subject)], now: unixTime, into: &block)
        if let dropped { headers.dropped.append(dropped) }
        headers.expires = unixTime.seconds &+ assertion.lifetime.wholeSeconds
        return headers
    }
}
