internal import MartletAuthenticator
internal import MartletRouter

/// Exchanges in progress when a new configuration arrives: those it would reject end as if revoked.
///
/// The route is looked up immediately; credentials are verified again by the new configuration's providers, in batches.
extension CredentialWatch {
    /// Retains the tokens of exchanges in progress; call it before the caches are cleared.
    static func retainTokens(_ exchanges: inout Exchanges, _ authenticator: inout Authenticator) {
        for index in 0..<exchanges.all.end {
            guard let exchange = exchanges.all.handle(at: index), exchanges[exchange].credential.decision >= 0
            else {
                continue
            }
            Self.retainToken(of: exchange, &exchanges, &authenticator)
        }
    }

    /// Reevaluates all exchanges; call it when the new configuration is in place.
    mutating func reevaluateExchanges(
        _ exchanges: inout Exchanges, _ authenticator: inout Authenticator, _ context: inout LoopContext
    ) {
        for index in 0..<exchanges.all.end {
            guard let exchange = exchanges.all.handle(at: index), exchanges[exchange].responder == .upstream
            else {
                continue
            }
            switch Self.reevaluate(exchange, &exchanges, &authenticator, &context) {
            case .stays: authenticator.keepsRoute(ExchangeID(exchange))
            case .ends:
                exchanges[exchange].credential.retainsToken = false
                authenticator.releaseToken(of: ExchangeID(exchange))
                markRevoked(exchange, &exchanges, &context)
            case .revalidate(let route):
                // Short exchanges are allowed to finish.
                let due = exchanges[exchange].record.started &+ Self.minimumAge
                authenticator.revalidate(ExchangeID(exchange), for: route, at: due)
            }
        }
    }

    /// What the configuration says about an exchange in progress.
    static func reevaluate(
        _ exchange: Handle<Exchange>, _ exchanges: inout Exchanges, _ authenticator: inout Authenticator,
        _ context: inout LoopContext
    ) -> Reevaluation {
        let found = currentRoute(of: exchange, &exchanges, &context)
        let evaluation = RouteReevaluation(
            settings(of: found, context.snapshot), isBound: exchanges[exchange].credential.revocationID != 0,
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
                ExchangeID(exchange), exchanges[exchange].credential, on: route, at: context.time)
        }
    }

    /// The route that was found, unless the gateway responds there itself.
    private static func settings(of found: RouteMatch, _ snapshot: Snapshot) -> RouteReevaluation.Route? {
        guard case .route(let route) = found, snapshot.compiledRoutes[route].upstream != CompiledRoute.own
        else {
            return nil
        }
        return RouteReevaluation.Route(
            expiryGrace: snapshot.authentication.routes[route].expiryGrace,
            allowsTunnels: snapshot.compiledRoutes[route].tunnels.areAllowed)
    }

    /// The route of an exchange in progress, whose headers and query are not known any more: the conditions of its own
    /// route hold, and no others.
    static func currentRoute(
        of exchange: Handle<Exchange>, _ exchanges: inout Exchanges, _ context: inout LoopContext
    ) -> RouteMatch {
        let (method, host) = unsafe (
            exchanges[exchange].record.texts.method, exchanges[exchange].record.texts.host
        )
        let path = unsafe exchanges[exchange].record.texts.path
        var found = unsafe context.snapshot.routes.match(
            method: method.span, authority: host.span, path: path.span)
        while case .route(let index) = found,
            context.snapshot.compiledRoutes[index].extras.contains(.conditions),
            context.counters.routes.configured[index] != exchanges[exchange].record.routeSlot
        {
            found = unsafe context.snapshot.routes.match(
                after: index, method: method.span, authority: host.span, path: path.span)
        }
        return found
    }
}
