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
    /// Nothing on a route that has a response of its own, and on a public one only the headers that are constant. On a
    /// route that serves checks alone the audience of the assertion is the route's name: it has no upstream.
    ///
    /// - Parameter principal: `nil` for an anonymous request.
    package func writeIdentityHeaders(
        of principal: Principal?, route: Int, at unixTime: UnixTime, into block: inout ByteBuffer
    ) -> IdentityHeaders {
        let upstream = table.routes[route].upstream
        guard upstream >= 0 || table.routes[route].servesChecksOnly else { return IdentityHeaders(dropped: []) }
        let injection = table.injections[table.routes[route].injection]
        guard routes[route].mode != .none else {
            injection.renderConstants(into: &block)
            return IdentityHeaders(dropped: [])
        }
        var headers = IdentityHeaders(dropped: injection.render(principal, into: &block))
        guard let principal, let assertion else { return headers }
        let target = table.routes[route].upstream(for: SubjectRevocationID.of(principal.subject))
        let audience = target >= 0 ? upstreams[target] : table.routes[route].name
        let dropped = assertion.append(
            for: principal, injection: injection, upstream: audience, now: unixTime, into: &block)
        if let dropped { headers.dropped.append(dropped) }
        headers.expires = unixTime.seconds &+ assertion.lifetime.wholeSeconds
        return headers
    }
}
