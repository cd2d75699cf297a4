internal import MartletCore
internal import MartletProvider
internal import MartletRouter

/// Exchanges in progress when a new configuration arrives: those it would reject end as if revoked.
///
/// The route is looked up immediately; credentials are verified again by the new configuration's providers, in batches.
extension EventLoop {
    /// Retains the tokens of exchanges in progress; call it before the caches are cleared.
    mutating func retainTokens() {
        for exchange in 0..<exchanges.end where exchanges[exchange].isAlive {
            guard exchanges[exchange].credential.decision >= 0 else { continue }
            retainToken(of: exchange)
        }
    }

    /// Reevaluates all exchanges; call it when the new configuration is in place.
    mutating func reevaluateExchanges() {
        for exchange in 0..<exchanges.end
        where exchanges[exchange].isAlive && exchanges[exchange].responder == .upstream {
            switch reevaluate(exchange) {
            case .stays: authenticator.keepsRoute(exchange)
            case .ends:
                exchanges[exchange].credential.retainsToken = false
                authenticator.releaseToken(of: exchange)
                markRevoked(exchange)
            case .revalidate(let route):
                // Short exchanges are allowed to finish.
                let due = exchanges[exchange].started &+ EventLoop.minimumAge
                authenticator.revalidate(exchange, for: route, at: due)
            }
        }
    }

    private mutating func reevaluate(_ exchange: Int32) -> Reevaluation {
        let found = unsafe snapshot.routes.match(
            method: exchanges[exchange].texts.method.span, authority: exchanges[exchange].texts.host.span,
            path: exchanges[exchange].texts.path.span)
        let isBound = exchanges[exchange].credential.revocationID != 0
        guard case .route(let route) = found, snapshot.compiledRoutes[route].mount < 0 else {
            if !isBound { exchanges[exchange].credential.expiryGrace = 0 }
            return .ends
        }
        let expiryGrace = snapshot.compiledRoutes[route].tunnels.expiryGrace
        // The route allows exchanges to outlive their credentials.
        guard expiryGrace >= 0, isBound || exchanges[exchange].credential.provider < 0 else { return .stays }
        exchanges[exchange].credential.expiryGrace = expiryGrace
        if exchanges[exchange].tunnel >= 0, !snapshot.compiledRoutes[route].tunnels.areAllowed { return .ends }
        return authenticator.reevaluate(exchange, exchanges[exchange].credential, on: route, at: time)
    }
}
