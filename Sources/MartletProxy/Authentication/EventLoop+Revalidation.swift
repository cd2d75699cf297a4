internal import MartletAuthenticator
internal import MartletCore
internal import MartletProvider

/// Long exchanges whose credential is verified again: sessions whose revocation may have been missed, and whatever a
/// new configuration may decide differently (`EventLoop+Reevaluation`).
///
/// A request queries the store again when the cached session is old, and after a gap in the revocation messages of
/// other instances. An exchange in progress would not: so a long one retains its token, and is revalidated after a gap.
extension EventLoop {
    /// Marks all sessions for revalidation, because a revocation may have been missed; call it before the caches are
    /// cleared.
    mutating func revalidateSessions() {
        for index in 0..<loop.exchanges.all.end {
            guard let exchange = loop.exchanges.all.handle(at: index) else { continue }
            if loop.exchanges[exchange].credential.decision >= 0 { retainToken(of: exchange) }
            guard loop.exchanges[exchange].credential.retainsToken,
                authenticator.retainsSession(of: ExchangeID(exchange))
            else { continue }
            authenticator.revalidate(ExchangeID(exchange), at: loop.now)
        }
    }

    /// Marks the exchanges of changed sessions, whose routes decide again; call it before the cache entries are
    /// removed.
    mutating func revalidateExchanges(of revocationIDs: Set<UInt64>) {
        guard !revocationIDs.isEmpty else { return }
        for index in 0..<loop.exchanges.all.end {
            guard let exchange = loop.exchanges.all.handle(at: index), loop.exchanges[exchange].responder == .upstream,
                revocationIDs.contains(loop.exchanges[exchange].credential.revocationID)
            else { continue }
            if loop.exchanges[exchange].credential.decision >= 0 { retainToken(of: exchange) }
            switch reevaluate(exchange) {
            case .stays: continue
            // As by a reload: a name and password cannot be verified again.
            case .ends: markRevoked(exchange)
            case .revalidate(let route):
                // Short exchanges are allowed to finish.
                let due = loop.exchanges[exchange].record.started &+ CredentialWatch.minimumAge
                authenticator.revalidate(ExchangeID(exchange), for: route, at: due)
                credentialWatch.checkSoon()
            }
        }
    }

    /// Retains the token of an exchange, if it has one.
    mutating func retainToken(of exchange: Handle<Exchange>) {
        let lent = unsafe loop.exchanges.all.address(of: exchange)
        unsafe authenticator.retainToken(of: ExchangeID(exchange), &lent.pointee.credential)
    }

    /// Submits tokens that need revalidation, in batches.
    mutating func submitRevalidations() {
        for due in authenticator.dueRevalidations(at: loop.time) {
            let exchange = Handle(due.exchange)
            guard loop.exchanges.all.contains(exchange) else { continue }
            guard let target = due.target else {
                markRevoked(exchange)
                continue
            }
            let authentication = AuthenticationContext(
                now: loop.time.unixTime,
                deadline: MonotonicTime(nanoseconds: loop.now &+ Authenticator.verificationTimeout),
                client: loop.exchanges[exchange].clientNetwork(&loop.downstreams),
                request: target.facts(of: loop.exchanges[exchange].record.texts))
            loop.verifier.submit(
                Verifier.Job(
                    credential: due.credential, target: target,
                    subjects: loop.context.snapshot.authentication.subjects, context: authentication,
                    sink: loop.mailbox,
                    exchange: due.exchange, epoch: authenticator.epoch, isRevalidation: true))
        }
    }

    /// Applies the result of a revalidation.
    mutating func revalidated(_ exchange: Handle<Exchange>, epoch resultEpoch: Int, _ result: VerificationResult) {
        let lent = unsafe loop.exchanges.all.address(of: exchange)
        let continues = unsafe authenticator.completeRevalidation(
            of: ExchangeID(exchange), epoch: resultEpoch, result, at: loop.time, &lent.pointee.credential)
        if !continues { markRevoked(exchange) }
    }
}
