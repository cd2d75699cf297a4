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
        for index in 0..<exchanges.end {
            guard let exchange = exchanges.handle(at: index) else { continue }
            if exchanges[exchange].credential.decision >= 0 { retainToken(of: exchange) }
            guard exchanges[exchange].credential.retainsToken,
                authenticator.retainsSession(of: ExchangeID(exchange))
            else { continue }
            authenticator.revalidate(ExchangeID(exchange), at: now)
        }
    }

    /// Retains the token of an exchange, if it has one.
    mutating func retainToken(of exchange: Handle<Exchange>) {
        let lent = unsafe exchanges.address(of: exchange)
        unsafe authenticator.retainToken(of: ExchangeID(exchange), &lent.pointee.credential)
    }

    /// Submits tokens that need revalidation, in batches.
    mutating func submitRevalidations() {
        for due in authenticator.dueRevalidations(at: time) {
            let exchange = Handle(due.exchange)
            guard exchanges.contains(exchange) else { continue }
            guard let target = due.target else {
                markRevoked(exchange)
                continue
            }
            let context = AuthenticationContext(
                now: time.unixTime, deadline: MonotonicTime(nanoseconds: now &+ Authenticator.verificationTimeout),
                client: network(of: exchange))
            verifier.submit(
                Verifier.Job(
                    credential: due.token.withBytes { Credential(bearer: $0) }, target: target,
                    subjects: snapshot.authentication.subjects, context: context, sink: mailbox,
                    exchange: due.exchange, epoch: authenticator.epoch))
        }
    }

    /// Applies the result of a revalidation.
    mutating func revalidated(_ exchange: Handle<Exchange>, epoch resultEpoch: Int, _ result: VerificationResult) {
        let lent = unsafe exchanges.address(of: exchange)
        let continues = unsafe authenticator.completeRevalidation(
            of: ExchangeID(exchange), epoch: resultEpoch, result, at: time, &lent.pointee.credential)
        if !continues { markRevoked(exchange) }
    }
}
