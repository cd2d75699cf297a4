internal import MartletCore
internal import MartletProvider

/// Long exchanges whose credential is verified again: sessions whose revocation may have been missed, and whatever a
/// new configuration may decide differently (`EventLoop+Reevaluation`).
///
/// A request queries the store again when the cached session is old, and after a gap in the revocation messages of
/// other instances. An exchange in progress would not: so a long one retains its token, and is revalidated after a gap.
extension EventLoop {
    /// The token that a long exchange was admitted with.
    struct RetainedToken {
        enum State { case valid, pending, submitted }

        let token: Secret
        /// One of the gateway's own.
        let isSession: Bool
        /// The route of a new configuration that it is verified for, or −1.
        var route = -1
        var state = State.valid
        /// When the store may be queried next.
        var dueAt: Int64 = 0
    }

    /// How many tokens are revalidated at a time.
    private static let revalidationBatch = 256
    /// How long to wait before retrying a store that is unavailable, in nanoseconds.
    private static let retryInterval: Int64 = 1_000_000_000
    /// How long a revalidation may take, in nanoseconds.
    private static let revalidationTimeout: Int64 = 10_000_000_000

    /// Retains the token of an exchange; one that was admitted by name and password has none.
    mutating func retainToken(of exchange: Int32) {
        let (decision, revocationID) = (exchanges[exchange].decision, exchanges[exchange].revocationID)
        exchanges[exchange].decision = -1
        guard revocationID != 0,
            let token = unsafe decisions.token(decision, if: { $0.revocationID == revocationID })
        else { return }
        retainedTokens[exchange] = RetainedToken(
            token: Secret(unsafe Array(token)), isSession: unsafe OwnToken.matches(token))
        exchanges[exchange].retainsToken = true
    }

    /// Marks all sessions for revalidation, because a revocation may have been missed; call it before the caches are
    /// cleared.
    mutating func revalidateSessions() {
        for exchange in 0..<exchanges.end where exchanges[exchange].isAlive {
            if exchanges[exchange].decision >= 0 { retainToken(of: exchange) }
            guard exchanges[exchange].retainsToken, retainedTokens[exchange]?.isSession == true else { continue }
            retainedTokens[exchange]?.state = .pending
            retainedTokens[exchange]?.dueAt = now
            needsRevalidation = true
        }
    }

    /// Submits tokens that need revalidation, in batches.
    mutating func submitRevalidations() {
        guard needsRevalidation else { return }
        var left = EventLoop.revalidationBatch
        needsRevalidation = false
        for (exchange, held) in retainedTokens where held.state == .pending {
            needsRevalidation = true
            guard held.dueAt <= now else { continue }
            guard left > 0 else { return }
            left -= 1
            if let target = verificationTarget(of: held) {
                submitRevalidation(target, of: exchange, held.token)
            } else {
                markRevoked(exchange)
            }
        }
    }

    private mutating func submitRevalidation(_ target: Verifier.Target, of exchange: Int32, _ token: Secret) {
        retainedTokens[exchange]?.state = .submitted
        let context = AuthenticationContext(
            now: MartletCore.UnixTime(seconds: unixTime),
            deadline: MonotonicTime(nanoseconds: now &+ EventLoop.revalidationTimeout), client: network(of: exchange))
        verifier.submit(
            Verifier.Job(
                credential: token.withBytes { Credential(bearer: $0) }, target: target,
                subjects: snapshot.signIn.subjects, context: context, mailbox: mailbox, exchange: exchange,
                generation: exchanges[exchange].generation,
                epoch: epoch))
    }

    /// Applies the result of a revalidation.
    mutating func revalidated(_ exchange: Int32, epoch resultEpoch: Int, _ result: VerificationResult) {
        guard exchanges[exchange].retainsToken, let held = retainedTokens[exchange], held.state == .submitted else {
            return
        }
        guard resultEpoch == epoch else { return revalidateLater(exchange, at: now) }
        switch result {
        case .success(let verified):
            guard held.route < 0 || mayContinue(exchange, verified, route: held.route) else {
                return markRevoked(exchange)
            }
            retainedTokens[exchange]?.state = .valid
            retainedTokens[exchange]?.route = -1
        case .failure(let error) where error.disposition == .unavailable || error.disposition == .throttled:
            revalidateLater(exchange, at: now &+ EventLoop.retryInterval)
        case .failure: markRevoked(exchange)
        }
    }

    private mutating func revalidateLater(_ exchange: Int32, at time: Int64) {
        retainedTokens[exchange]?.state = .pending
        retainedTokens[exchange]?.dueAt = time
        needsRevalidation = true
    }

    /// Releases the token of an exchange that ends.
    mutating func releaseToken(of exchange: Int32) { retainedTokens[exchange] = nil }
}
