internal import MartletCore
internal import MartletProvider
internal import MartletRouter

/// Exchanges that are under way when a new configuration comes: what it would refuse ends as if revoked.
///
/// Where the caller stood is looked up at once by the new routes; the credential itself is judged anew by whoever judges it
/// now, some at a time.
extension Worker {
    /// What a new configuration says of an exchange.
    private enum Reconsidered {
        case stays
        case ends
        /// Its credential is to be judged for that route.
        case judge(route: Int)
    }

    /// Keeps the tokens of exchanges that are under way; to be called before what is known of tokens is forgotten.
    mutating func holdTokens() {
        for exchange in 0..<exchanges.end where exchanges[exchange].isAlive && exchanges[exchange].grant >= 0 {
            holdToken(of: exchange)
        }
    }

    /// Looks through all exchanges; to be called when the new configuration is in place.
    mutating func reconsiderExchanges() {
        for exchange in 0..<exchanges.end
        where exchanges[exchange].isAlive && exchanges[exchange].responder == .upstream {
            switch reconsider(exchange) {
            case .stays: heldTokens[exchange]?.route = -1
            case .ends:
                exchanges[exchange].holdsToken = false
                dropToken(of: exchange)
                markRevoked(exchange)
            case .judge(let route):
                // Short ones are let finish.
                let time = exchanges[exchange].started &+ Worker.shortest
                heldTokens[exchange]?.route = route
                heldTokens[exchange]?.state = .doubted
                heldTokens[exchange]?.askAt = time
                hasDoubts = true
            }
        }
    }

    private mutating func reconsider(_ exchange: Int32) -> Reconsidered {
        let found = unsafe snapshot.routes.match(
            method: exchanges[exchange].texts.method.span, authority: exchanges[exchange].texts.host.span,
            path: exchanges[exchange].texts.path.span)
        let isBound = exchanges[exchange].credentialNumber != 0
        guard case .route(let route) = found, snapshot.facts[route].mount < 0 else {
            if !isBound { exchanges[exchange].grace = 0 }
            return .ends
        }
        let grace = snapshot.facts[route].tunnels.grace
        // Of a route that lets exchanges outlive their credentials.
        guard grace >= 0, isBound || exchanges[exchange].provider < 0 else { return .stays }
        exchanges[exchange].grace = grace
        if exchanges[exchange].tunnel >= 0, !snapshot.facts[route].tunnels.areAllowed { return .ends }
        guard snapshot.facts[route].mode != .none else { return .stays }
        guard isBound else { return reconsiderAnonymous(route) }
        // A pair of name and password is not kept: nobody could judge it again.
        guard let held = heldTokens[exchange], takesToken(held.isSession, route),
            isOnRoute(exchanges[exchange].provider, route)
        else { return .ends }
        return .judge(route: route)
    }

    private func reconsiderAnonymous(_ route: Int) -> Reconsidered {
        guard snapshot.facts[route].mode == .optional else { return .ends }
        let now = MartletCore.UnixTime(seconds: unixTime)
        if case .denied = snapshot.routes.routes[route].policy.judge(nil, now: now) { return .ends }
        return .stays
    }

    private func takesToken(_ isSession: Bool, _ route: Int) -> Bool {
        isSession
            ? snapshot.facts[route].takesSessions && snapshot.signIn.sessions != nil : snapshot.facts[route].takesDirect
    }

    private func isOnRoute(_ provider: Int32, _ route: Int) -> Bool {
        provider >= 0 && snapshot.plans[Int(snapshot.planOfRoute[route])].providers.contains(provider)
    }

    /// Whether a credential that was judged anew may go on with an exchange on a route of the new configuration.
    mutating func mayGoOn(_ exchange: Int32, _ proven: ProvenPrincipal, route: Int) -> Bool {
        let now = MartletCore.UnixTime(seconds: unixTime)
        guard let provider = provider(of: proven.principal, route),
            case .allowed(let until) = snapshot.routes.routes[route].policy.judge(proven.principal, now: now)
        else { return false }
        exchanges[exchange].provider = provider
        exchanges[exchange].credentialNumber = proven.number
        exchanges[exchange].credentialEnd = min(proven.end, until.milliseconds)
        return true
    }

    /// Who judges a kept token: for a route of the new configuration, or the store, which knows all sessions.
    func judge(of held: HeldToken) -> Verifier.Judge? {
        if held.isSession { return snapshot.signIn.sessions.map { .sessions($0) } }
        guard held.route >= 0 else { return nil }
        let plan = snapshot.plans[Int(snapshot.planOfRoute[held.route])]
        return held.token.withBytes { ProviderChoice.pick($0, among: plan.providers, of: snapshot.providers) }
            .map { .provider(snapshot.providers[Int($0)]) }
    }
}
