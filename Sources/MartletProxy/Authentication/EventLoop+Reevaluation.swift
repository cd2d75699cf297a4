internal import MartletCore
internal import MartletProvider
internal import MartletRouter

/// Exchanges in progress when a new configuration arrives: those it would reject end as if revoked.
///
/// The route is looked up immediately; credentials are verified again by the new configuration's providers, in batches.
extension EventLoop {
    /// What a new configuration says about an exchange.
    private enum Reevaluation {
        case stays
        case ends
        /// Its credential has to be verified for that route.
        case revalidate(route: Int)
    }

    /// Retains the tokens of exchanges in progress; call it before the caches are cleared.
    mutating func retainTokens() {
        for exchange in 0..<exchanges.end where exchanges[exchange].isAlive && exchanges[exchange].decision >= 0 {
            retainToken(of: exchange)
        }
    }

    /// Reevaluates all exchanges; call it when the new configuration is in place.
    mutating func reevaluateExchanges() {
        for exchange in 0..<exchanges.end
        where exchanges[exchange].isAlive && exchanges[exchange].responder == .upstream {
            switch reevaluate(exchange) {
            case .stays: retainedTokens[exchange]?.route = -1
            case .ends:
                exchanges[exchange].retainsToken = false
                releaseToken(of: exchange)
                markRevoked(exchange)
            case .revalidate(let route):
                // Short exchanges are allowed to finish.
                let time = exchanges[exchange].started &+ EventLoop.minimumAge
                retainedTokens[exchange]?.route = route
                retainedTokens[exchange]?.state = .pending
                retainedTokens[exchange]?.dueAt = time
                needsRevalidation = true
            }
        }
    }

    private mutating func reevaluate(_ exchange: Int32) -> Reevaluation {
        let found = unsafe snapshot.routes.match(
            method: exchanges[exchange].texts.method.span, authority: exchanges[exchange].texts.host.span,
            path: exchanges[exchange].texts.path.span)
        let isBound = exchanges[exchange].revocationID != 0
        guard case .route(let route) = found, snapshot.compiledRoutes[route].mount < 0 else {
            if !isBound { exchanges[exchange].expiryGrace = 0 }
            return .ends
        }
        let expiryGrace = snapshot.compiledRoutes[route].tunnels.expiryGrace
        // The route allows exchanges to outlive their credentials.
        guard expiryGrace >= 0, isBound || exchanges[exchange].provider < 0 else { return .stays }
        exchanges[exchange].expiryGrace = expiryGrace
        if exchanges[exchange].tunnel >= 0, !snapshot.compiledRoutes[route].tunnels.areAllowed { return .ends }
        guard snapshot.compiledRoutes[route].mode != .none else { return .stays }
        guard isBound else { return reevaluateAnonymous(route) }
        // A name and password is not retained, so it cannot be verified again.
        guard let held = retainedTokens[exchange], acceptsToken(held.isSession, route),
            isOnRoute(exchanges[exchange].provider, route)
        else { return .ends }
        return .revalidate(route: route)
    }

    private func reevaluateAnonymous(_ route: Int) -> Reevaluation {
        guard snapshot.compiledRoutes[route].mode == .optional else { return .ends }
        let now = MartletCore.UnixTime(seconds: unixTime)
        if case .denied = snapshot.routes.routes[route].policy.evaluate(nil, now: now) { return .ends }
        return .stays
    }

    private func acceptsToken(_ isSession: Bool, _ route: Int) -> Bool {
        isSession

            ? snapshot.compiledRoutes[route].acceptsSessions && snapshot.signIn.sessions != nil
            : snapshot.compiledRoutes[route].acceptsDirect
    }

    private func isOnRoute(_ provider: Int32, _ route: Int) -> Bool {
        provider >= 0 && snapshot.plans[Int(snapshot.planOfRoute[route])].providers.contains(provider)
    }

    /// Whether a revalidated credential may continue an exchange on a route of the new configuration.
    mutating func mayContinue(_ exchange: Int32, _ verified: VerifiedPrincipal, route: Int) -> Bool {
        let now = MartletCore.UnixTime(seconds: unixTime)
        guard let provider = provider(of: verified.principal, route),
            case .allowed(let until) = snapshot.routes.routes[route].policy.evaluate(verified.principal, now: now)
        else { return false }
        exchanges[exchange].provider = provider
        exchanges[exchange].revocationID = verified.revocationID
        exchanges[exchange].credentialEnd = min(verified.end, until.milliseconds)
        return true
    }

    /// What verifies a retained token: a provider of the new route, or the session store.
    func verificationTarget(of held: RetainedToken) -> Verifier.Target? {
        if held.isSession { return snapshot.signIn.sessions.map { .sessions($0) } }
        guard held.route >= 0 else { return nil }
        let plan = snapshot.plans[Int(snapshot.planOfRoute[held.route])]
        return held.token.withBytes { ProviderChoice.pick($0, among: plan.providers, of: snapshot.providers) }
            .map { .provider(snapshot.providers[Int($0)]) }
    }
}
