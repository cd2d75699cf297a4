internal import MartletAuthenticator
internal import MartletCore
internal import MartletProvider
internal import MartletRouter

/// Exchanges in progress when a new configuration arrives: those it would reject end as if revoked.
///
/// The route is looked up immediately; credentials are verified again by the new configuration's providers, in batches.
extension EventLoop {
    /// Retains the tokens of exchanges in progress; call it before the caches are cleared.
    mutating func retainTokens() {
        for index in 0..<exchanges.end {
            guard let exchange = exchanges.handle(at: index), exchanges[exchange].credential.decision >= 0 else {
                continue
            }
            retainToken(of: exchange)
        }
    }

    /// Reevaluates all exchanges; call it when the new configuration is in place.
    mutating func reevaluateExchanges() {
        for index in 0..<exchanges.end {
            guard let exchange = exchanges.handle(at: index), exchanges[exchange].responder == .upstream else {
                continue
            }
            switch reevaluate(exchange) {
            case .stays: authenticator.keepsRoute(ExchangeID(exchange))
            case .ends:
                exchanges[exchange].credential.retainsToken = false
                authenticator.releaseToken(of: ExchangeID(exchange))
                markRevoked(exchange)
            case .revalidate(let route):
                // Short exchanges are allowed to finish.
                let due = exchanges[exchange].record.started &+ CredentialWatch.minimumAge
                authenticator.revalidate(ExchangeID(exchange), for: route, at: due)
            }
        }
    }

    private mutating func reevaluate(_ exchange: Handle<Exchange>) -> Reevaluation {
        let found = unsafe snapshot.routes.match(
            method: exchanges[exchange].record.texts.method.span, authority: exchanges[exchange].record.texts.host.span,
            path: exchanges[exchange].record.texts.path.span)
        let evaluation = RouteReevaluation(
            settings(of: found), isBound: exchanges[exchange].credential.revocationID != 0,
            isAnonymous: exchanges[exchange].credential.provider < 0,
            isUpgrade: !exchanges[exchange].tunnel.isNone)
        switch evaluation {
        case .stays: return .stays
        case .ends(let grace):
            if let grace { exchanges[exchange].credential.expiryGrace = grace }
            return .ends
        case .dependsOnCredential(let grace):
            exchanges[exchange].credential.expiryGrace = grace
            guard case .route(let route) = found else { return .ends }
            return authenticator.reevaluate(
                ExchangeID(exchange), exchanges[exchange].credential, on: route, at: time)
        }
    }

    /// The route that was found, unless a handler in this process responds there.
    private func settings(of found: RouteMatch) -> RouteReevaluation.Route? {
        guard case .route(let route) = found, snapshot.compiledRoutes[route].mount < 0 else { return nil }
        return RouteReevaluation.Route(
            expiryGrace: snapshot.authentication.routes[route].expiryGrace,
            allowsTunnels: snapshot.compiledRoutes[route].tunnels.areAllowed)
    }
}
