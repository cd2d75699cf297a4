internal import MartletAuthenticator
internal import MartletRouter

/// Exchanges in progress when a new configuration arrives: those it would reject end as if revoked.
///
/// The route is looked up immediately; credentials are verified again by the new configuration's providers, in batches.
extension EventLoop {
    /// Retains the tokens of exchanges in progress; call it before the caches are cleared.
    mutating func retainTokens() {
        for index in 0..<loop.exchanges.all.end {
            guard let exchange = loop.exchanges.all.handle(at: index), loop.exchanges[exchange].credential.decision >= 0
            else {
                continue
            }
            retainToken(of: exchange)
        }
    }

    /// Reevaluates all exchanges; call it when the new configuration is in place.
    mutating func reevaluateExchanges() {
        for index in 0..<loop.exchanges.all.end {
            guard let exchange = loop.exchanges.all.handle(at: index), loop.exchanges[exchange].responder == .upstream
            else {
                continue
            }
            switch reevaluate(exchange) {
            case .stays: authenticator.keepsRoute(ExchangeID(exchange))
            case .ends:
                loop.exchanges[exchange].credential.retainsToken = false
                authenticator.releaseToken(of: ExchangeID(exchange))
                markRevoked(exchange)
            case .revalidate(let route):
                // Short exchanges are allowed to finish.
                let due = loop.exchanges[exchange].record.started &+ CredentialWatch.minimumAge
                authenticator.revalidate(ExchangeID(exchange), for: route, at: due)
            }
        }
    }

    /// What the configuration says about an exchange in progress.
    mutating func reevaluate(_ exchange: Handle<Exchange>) -> Reevaluation {
        let found = loop.currentRoute(of: exchange)
        let evaluation = RouteReevaluation(
            settings(of: found), isBound: loop.exchanges[exchange].credential.revocationID != 0,
            isAnonymous: loop.exchanges[exchange].credential.provider < 0,
            isUpgrade: !loop.exchanges[exchange].tunnel.isNone)
        switch evaluation {
        case .stays: return .stays
        case .ends(let grace):
            if let grace { loop.exchanges[exchange].credential.expiryGrace = grace }
            return .ends
        case .dependsOnCredential(let grace):
            loop.exchanges[exchange].credential.expiryGrace = grace
            guard case .route(let route) = found else { return .ends }
            return authenticator.reevaluate(
                ExchangeID(exchange), loop.exchanges[exchange].credential, on: route, at: loop.time)
        }
    }

    /// The route that was found, unless the gateway responds there itself.
    private func settings(of found: RouteMatch) -> RouteReevaluation.Route? {
        guard case .route(let route) = found, loop.context.snapshot.compiledRoutes[route].upstream != CompiledRoute.own
        else {
            return nil
        }
        return RouteReevaluation.Route(
            expiryGrace: loop.context.snapshot.authentication.routes[route].expiryGrace,
            allowsTunnels: loop.context.snapshot.compiledRoutes[route].tunnels.areAllowed)
    }
}

extension LoopState {
    /// The route of an exchange in progress, whose headers and query are not known any more: the conditions of its own
    /// route hold, and no others.
    mutating func currentRoute(of exchange: Handle<Exchange>) -> RouteMatch {
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
