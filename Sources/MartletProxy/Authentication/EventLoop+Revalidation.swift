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
        for exchange in 0..<exchanges.end where exchanges[exchange].isAlive {
            if exchanges[exchange].credential.decision >= 0 { retainToken(of: exchange) }
            guard exchanges[exchange].credential.retainsToken, authenticator.retainsSession(of: exchange) else {
                continue
            }
            authenticator.revalidate(exchange, at: now)
        }
    }

    /// Retains the token of an exchange, if it has one.
    mutating func retainToken(of exchange: Int32) {
        let lent = unsafe exchanges.address(of: exchange)
        unsafe authenticator.retainToken(of: exchange, &lent.pointee.credential)
    }

    /// Submits tokens that need revalidation, in batches.
    mutating func submitRevalidations() {
        for due in authenticator.dueRevalidations(at: time) {
            guard let target = due.target else {
                markRevoked(due.exchange)
                continue
            }
            let context = AuthenticationContext(
                now: time.unixTime, deadline: MonotonicTime(nanoseconds: now &+ Authenticator.verificationTimeout),
                client: network(of: due.exchange))
            verifier.submit(
                Verifier.Job(
                    credential: due.token.withBytes { Credential(bearer: $0) }, target: target,
                    subjects: snapshot.signIn.subjects, context: context, mailbox: mailbox, exchange: due.exchange,
                    generation: exchanges[due.exchange].generation, epoch: authenticator.epoch))
        }
    }

    /// Applies the result of a revalidation.
    mutating func revalidated(_ exchange: Int32, epoch resultEpoch: Int, _ result: VerificationResult) {
        let lent = unsafe exchanges.address(of: exchange)
        let continues = unsafe authenticator.completeRevalidation(
            of: exchange, epoch: resultEpoch, result, at: time, &lent.pointee.credential)
        if !continues { markRevoked(exchange) }
    }
}
