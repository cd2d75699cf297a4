internal import MartletAuthenticator
internal import MartletCore
internal import MartletDecisions
internal import MartletProvider
internal import MartletRouter

/// Long exchanges whose credential is verified again: sessions whose revocation may have been missed, and whatever a
/// new configuration may decide differently (``reevaluateExchanges(_:_:_:)``).
///
/// A request queries the store again when the cached session is old, and after a gap in the revocation messages of
/// other instances. An exchange in progress would not: so a long one retains its token, and is revalidated after a gap.
extension CredentialWatch {
    /// Marks all sessions for revalidation, because a revocation may have been missed; call it before the caches are
    /// cleared.
    static func revalidateSessions(
        _ exchanges: inout Exchanges, _ authenticator: inout Authenticator, _ context: inout LoopContext
    ) {
        for index in 0..<exchanges.all.end {
            guard let exchange = exchanges.all.handle(at: index) else { continue }
            if exchanges[exchange].credential.decision >= 0 {
                Self.retainToken(of: exchange, &exchanges, &authenticator)
            }
            guard exchanges[exchange].credential.retainsToken,
                authenticator.retainsSession(of: ExchangeID(exchange))
            else { continue }
            authenticator.revalidate(ExchangeID(exchange), at: context.now)
        }
    }

    /// Marks the exchanges of changed sessions, whose routes decide again; call it before the cache entries are
    /// removed.
    private mutating func revalidateExchanges(
        of revocationIDs: Set<UInt64>, _ exchanges: inout Exchanges, _ authenticator: inout Authenticator,
        _ context: inout LoopContext
    ) {
        guard !revocationIDs.isEmpty else { return }
        for index in 0..<exchanges.all.end {
            guard let exchange = exchanges.all.handle(at: index), exchanges[exchange].responder == .upstream,
                revocationIDs.contains(exchanges[exchange].credential.revocationID)
            else { continue }
            if exchanges[exchange].credential.decision >= 0 {
                Self.retainToken(of: exchange, &exchanges, &authenticator)
            }
            switch Self.reevaluate(exchange, &exchanges, &authenticator, &context) {
            case .stays: continue
            // As by a reload: a name and password cannot be verified again.
            case .ends: markRevoked(exchange, &exchanges, &context)
            case .revalidate(let route):
                // Short exchanges are allowed to finish.
                let due = exchanges[exchange].record.started &+ Self.minimumAge
                authenticator.revalidate(ExchangeID(exchange), for: route, at: due)
                checkSoon()
            }
        }
    }

    /// Retains the token of an exchange, if it has one.
    static func retainToken(
        of exchange: Handle<Exchange>, _ exchanges: inout Exchanges, _ authenticator: inout Authenticator
    ) {
        let lent = unsafe exchanges.all.address(of: exchange)
        unsafe authenticator.retainToken(of: ExchangeID(exchange), &lent.pointee.credential)
    }

    /// Submits tokens that need revalidation, in batches.
    mutating func submitRevalidations(
        _ exchanges: inout Exchanges, _ downstreams: inout DownstreamConnections, _ authenticator: inout Authenticator,
        _ context: inout LoopContext
    ) {
        for due in authenticator.dueRevalidations(at: context.time) {
            let exchange = Handle(due.exchange)
            guard exchanges.all.contains(exchange) else { continue }
            guard let target = due.target else {
                markRevoked(exchange, &exchanges, &context)
                continue
            }
            let authentication = AuthenticationContext(
                now: context.time.unixTime,
                deadline: MonotonicTime(nanoseconds: context.now &+ Authenticator.verificationTimeout),
                client: exchanges[exchange].clientNetwork(&downstreams),
                request: target.facts(of: exchanges[exchange].record.texts))
            context.verifier.submit(
                Verifier.Job(
                    credential: due.credential, target: target,
                    subjects: context.snapshot.authentication.subjects, context: authentication,
                    sink: context.mailbox,
                    exchange: due.exchange, epoch: authenticator.epoch, isRevalidation: true))
        }
    }

    /// Applies the result of a revalidation.
    mutating func revalidated(
        _ exchange: Handle<Exchange>, epoch resultEpoch: Int, _ result: VerificationResult,
        _ exchanges: inout Exchanges, _ authenticator: inout Authenticator, _ context: inout LoopContext
    ) {
        let lent = unsafe exchanges.all.address(of: exchange)
        let continues = unsafe authenticator.completeRevalidation(
            of: ExchangeID(exchange), epoch: resultEpoch, result, at: context.time, &lent.pointee.credential)
        if !continues { markRevoked(exchange, &exchanges, &context) }
    }

    // MARK: Revocations

    /// Removes cache entries of what was revoked, and ends the exchanges that it admitted.
    mutating func sweepRevocations(
        _ exchanges: inout Exchanges, _ authenticator: inout Authenticator, _ context: inout LoopContext
    ) {
        guard authenticator.hasUnsweptRevocations else { return }
        revalidateExchanges(of: authenticator.unsweptChanges, &exchanges, &authenticator, &context)
        guard let due = authenticator.sweepRevocations(at: context.time) else { return }
        markAllRevoked(due.revocationIDs, &exchanges, &context)
        for acknowledgement in due.acknowledgements { acknowledgement.acknowledge() }
    }

    /// Ends exchanges whose credentials were revoked.
    private mutating func markAllRevoked(
        _ revocationIDs: Set<UInt64>, _ exchanges: inout Exchanges, _ context: inout LoopContext
    ) {
        for index in 0..<exchanges.all.end {
            guard let exchange = exchanges.all.handle(at: index),
                exchanges[exchange].credential.revocationID != 0,
                revocationIDs.contains(exchanges[exchange].credential.revocationID)
            else { continue }
            markRevoked(exchange, &exchanges, &context)
        }
    }

    /// Ends an exchange because its credential was revoked.
    mutating func markRevoked(_ exchange: Handle<Exchange>, _ exchanges: inout Exchanges, _ context: inout LoopContext)
    {
        exchanges[exchange].endCredential(isRevoked: true, &context)
        checkSoon()
    }
}

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
