internal import MartletConfig
internal import MartletCore
internal import MartletHTTP
internal import MartletProvider
internal import MartletRouter

/// Renders the identity headers of a request.
extension EventLoop {
    mutating func renderIdentity(_ principal: Principal?, route: Int) {
        let injection = snapshot.routes.routes[route].injection
        for dropped in snapshot.routes.injections[injection].render(principal, into: &identityBlock) {
            _ = counters.reason(dropped.reason)
        }
    }

    /// Adds the signed assertion about the caller, where upstreams get one.
    /// - Returns: until when the block may be reused, in Unix seconds.
    mutating func appendAssertion(_ principal: Principal, route: Int) -> Int64 {
        guard let assertion = snapshot.signIn.assertion else { return .max }
        let (matched, upstream) = (snapshot.routes.routes[route], snapshot.compiledRoutes[route].upstream)
        let dropped = assertion.append(
            for: principal, injection: snapshot.routes.injections[matched.injection],
            upstream: snapshot.upstreams[upstream].name, now: MartletCore.UnixTime(seconds: unixTime),
            into: &identityBlock)
        if let dropped { _ = counters.reason(dropped.reason) }
        return unixTime &+ assertion.lifetime.wholeSeconds
    }
}
