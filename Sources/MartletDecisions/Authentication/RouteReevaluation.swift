/// What a new configuration means for an exchange in progress, as far as its route decides that.
package enum RouteReevaluation: Equatable {
    /// The route in the new configuration.
    package struct Route {
        /// How long exchanges may outlive their credentials, in nanoseconds; negative without a limit.
        package var expiryGrace: Int64
        package var allowsTunnels: Bool

        package init(expiryGrace: Int64, allowsTunnels: Bool) {
            self.expiryGrace = expiryGrace
            self.allowsTunnels = allowsTunnels
        }
    }

    case stays
    /// The exchange ends.
    /// - Parameter grace: the grace period to end it with; `nil` for that of its former route.
    case ends(grace: Int64?)
    /// Its credential decides.
    case dependsOnCredential(grace: Int64)

    /// - Parameters:
    ///   - route: `nil` where the request has no route any more.
    ///   - isBound: a revocation could end the exchange.
    ///   - isAnonymous: no provider has verified its caller.
    ///   - isUpgrade: it is a tunnel, or has requested one.
    package init(_ route: Route?, isBound: Bool, isAnonymous: Bool, isUpgrade: Bool) {
        guard let route else {
            self = .ends(grace: isBound ? nil : 0)
            return
        }
        if route.expiryGrace < 0 || !isBound && !isAnonymous {
            // The route allows exchanges to outlive their credentials, or this one was not bound to its own.
            self = .stays
        } else {
            self =
                isUpgrade && !route.allowsTunnels
                ? .ends(grace: route.expiryGrace) : .dependsOnCredential(grace: route.expiryGrace)
        }
    }
}
