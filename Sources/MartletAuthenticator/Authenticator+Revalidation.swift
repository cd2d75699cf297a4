internal import MartletCore
internal import MartletProvider
internal import MartletRouter

/// The tokens of long exchanges, which are verified again where their results may no longer hold.
extension Authenticator {
    /// How many tokens are revalidated at a time.
    static let revalidationBatch = 256
    /// How long to wait before retrying a store that is unavailable, in nanoseconds.
    static let retryInterval: Int64 = 1_000_000_000

    /// Retains the token of an exchange; one that was admitted by name and password has none.
    package mutating func retainToken(of exchange: ExchangeID, _ credential: inout CredentialState) {
        let (decision, revocationID) = (credential.decision, credential.revocationID)
        credential.decision = -1
        guard revocationID != 0, let token = unsafe token(ofDecision: decision, for: revocationID) else { return }
        let form: CredentialForm =
            if let source = UInt8(exactly: credential.headerSource) {
                .header(source: source)
            } else if credential.isCookie {
                .cookie
            } else {
                unsafe SessionPrefix.begins(token) ? .session : .direct
            }
        retainedTokens[exchange] = RetainedToken(token: Secret(unsafe Array(token)), form: form)
        credential.retainsToken = true
    }

    /// Retains the token of an exchange whose decision is not cached, as none is with `cache_ttl: 0s`, or while a cookie
    /// is replaced.
    mutating func retain(
        _ token: UnsafeBufferPointer<UInt8>, _ form: CredentialForm, of exchange: ExchangeID,
        _ credential: inout CredentialState
    ) {
        guard credential.revocationID != 0 else { return }
        retainedTokens[exchange] = RetainedToken(token: Secret(unsafe Array(token)), form: form)
        credential.retainsToken = true
    }

    /// Releases the token of an exchange that ends.
    package mutating func releaseToken(of exchange: ExchangeID) { retainedTokens[exchange] = nil }

    /// Whether the retained token of an exchange is a session's.
    package func retainsSession(of exchange: ExchangeID) -> Bool { retainedTokens[exchange]?.isSession == true }

    /// Requires that the token of an exchange is revalidated.
    package mutating func revalidate(_ exchange: ExchangeID, at time: Int64) {
        retainedTokens[exchange]?.state = .pending
        retainedTokens[exchange]?.dueAt = time
        needsRevalidation = true
    }

    /// Requires it for a route of a new configuration.
    package mutating func revalidate(_ exchange: ExchangeID, for route: Int, at time: Int64) {
        retainedTokens[exchange]?.route = route
        revalidate(exchange, at: time)
    }

    /// The exchange stays as it is under a new configuration.
    package mutating func keepsRoute(_ exchange: ExchangeID) { retainedTokens[exchange]?.route = -1 }

    /// The next batch of tokens to revalidate.
    package mutating func dueRevalidations(at time: LoopTime) -> [Revalidation] {
        guard needsRevalidation else { return [] }
        var due: [Revalidation] = []
        needsRevalidation = false
        for (exchange, retained) in retainedTokens where retained.state == .pending {
            needsRevalidation = true
            guard retained.dueAt <= time.monotonic else { continue }
            guard due.count < Authenticator.revalidationBatch else { break }
            retainedTokens[exchange]?.state = .submitted
            let target = verificationTarget(of: retained)
            due.append(Revalidation(exchange: exchange, credential: retained.credential, target: target))
        }
        return due
    }

    /// What verifies a retained token: a provider of the new route, or the session store.
    private func verificationTarget(of retained: RetainedToken) -> Verifier.Target? {
        if retained.isSession { return rules.sessions.map { .sessions($0) } }
        guard retained.route >= 0 else { return nil }
        return retained.token.withBytes { verificationTarget(retained.form, $0, retained.route) }
    }

    /// Applies the result of a revalidation.
    /// - Returns: whether the exchange may continue.
    package mutating func completeRevalidation(
        of exchange: ExchangeID, epoch resultEpoch: Int, _ result: VerificationResult, at time: LoopTime,
        _ credential: inout CredentialState
    ) -> Bool {
        guard credential.retainsToken, let retained = retainedTokens[exchange], retained.state == .submitted else {
            return true
        }
        guard resultEpoch == epoch else {
            revalidate(exchange, at: time.monotonic)
            return true
        }
        switch result {
        case .success(let verified):
            guard retained.route < 0 || mayContinue(verified, on: retained.route, at: time, &credential) else {
                return false
            }
            retainedTokens[exchange]?.state = .valid
            retainedTokens[exchange]?.route = -1
            return true
        case .failure(let error) where error.disposition == .unavailable || error.disposition == .throttled:
            revalidate(exchange, at: time.monotonic &+ Authenticator.retryInterval)
            return true
        case .failure: return false
        }
    }

    /// Whether a revalidated credential may continue an exchange on a route of the new configuration.
    private func mayContinue(
        _ verified: VerifiedPrincipal, on route: Int, at time: LoopTime, _ credential: inout CredentialState
    ) -> Bool {
        let policy = rules.table.routes[route].policy
        guard let provider = provider(of: verified.principal, route),
            case .allowed(let until) = policy.evaluate(verified.principal, now: time.unixTime)
        else { return false }
        credential.provider = provider
        credential.revocationID = verified.revocationID
        credential.end = min(verified.end, until.milliseconds)
        return true
    }

    /// Whether the credential of an exchange may continue it on a route of a new configuration.
    package func reevaluate(
        _ exchange: ExchangeID, _ credential: CredentialState, on route: Int, at time: LoopTime
    ) -> Reevaluation {
        let mode = rules.routes[route].mode
        guard mode != .none else { return .stays }
        guard credential.revocationID != 0 else {
            return mode == .optional && acceptsAnonymous(route, at: time) ? .stays : .ends
        }
        // A name and password is not retained, so it cannot be verified again.
        guard let retained = retainedTokens[exchange], acceptsToken(isSession: retained.isSession, on: route),
            accepts(provider: credential.provider, on: route)
        else { return .ends }
        return .revalidate(route: route)
    }
}
