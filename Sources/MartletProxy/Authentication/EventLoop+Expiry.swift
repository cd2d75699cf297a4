internal import MartletAuthenticator
internal import MartletCore
internal import MartletResponder

/// Exchanges that outlive their credential: tunnels, event streams, other long responses and uploads.
///
/// A request is admitted with a credential that is valid at that moment. If the exchange is still in progress when the
/// credential expires or is revoked, it ends as its route says (`close_on_expiry`). Short exchanges are allowed to
/// finish.
extension EventLoop {
    /// How often exchanges are checked, in nanoseconds.
    static let expiryCheckInterval = CredentialWatch.interval

    /// Ends exchanges whose credentials were revoked.
    mutating func markAllRevoked(_ revocationIDs: Set<UInt64>) {
        for index in 0..<exchanges.end {
            guard let exchange = exchanges.handle(at: index), exchanges[exchange].credential.revocationID != 0,
                revocationIDs.contains(exchanges[exchange].credential.revocationID)
            else { continue }
            markRevoked(exchange)
        }
    }

    /// Ends an exchange because its credential was revoked.
    mutating func markRevoked(_ exchange: Handle<Exchange>) {
        endCredential(exchange, isRevoked: true)
        credentialWatch.checkSoon()
    }

    /// Ends the exchanges whose credential has expired or was revoked.
    mutating func checkExpiries() {
        guard credentialWatch.begin(exchanges: exchanges.count, at: now) else { return }
        let unixMilliseconds = clock.unixMilliseconds
        var endsForDrain = tunnelsToDrain
        for index in 0..<exchanges.end {
            guard let exchange = exchanges.handle(at: index) else { continue }
            if exchanges[exchange].credential.end <= unixMilliseconds { endCredential(exchange, isRevoked: false) }
            if exchanges[exchange].credential.decision >= 0,
                CredentialWatch.isLong(since: exchanges[exchange].record.started, at: now)
            {
                retainToken(of: exchange)
            }
            if isTunnel(exchange) { checkTunnel(exchange, endsForDrain: &endsForDrain) }
            guard exchanges[exchange].isAlive, exchanges[exchange].termination.deadline <= now else { continue }
            terminate(exchange)
        }
        submitRevalidations()
    }

    private mutating func endCredential(_ exchange: Handle<Exchange>, isRevoked: Bool) {
        exchanges[exchange].credential.revocationID = 0
        exchanges[exchange].credential.end = .max
        exchanges[exchange].termination.credentialEnded(
            isRevoked: isRevoked, grace: exchanges[exchange].credential.expiryGrace, at: now)
    }

    /// Ends an exchange whose credential has ended, if it is time.
    private mutating func terminate(_ exchange: Handle<Exchange>) {
        let progress = CredentialTermination.Progress(
            isTunnel: isTunnel(exchange), isGRPC: exchanges[exchange].request.isGRPC,
            isRequestComplete: exchanges[exchange].body.isComplete,
            hasResponseStarted: exchanges[exchange].response.hasStarted, started: exchanges[exchange].record.started)
        let action = exchanges[exchange].termination.action(for: progress, at: now)
        let closeReason = exchanges[exchange].termination.closeReason
        if action == .closeTunnel { return endTunnel(exchange, closeReason) }
        guard action != .wait, let reason = closeReason.reason else { return }
        let failure = Failure.credentialInvalid(reason)
        action == .endCall ? endGRPCCall(exchange, failure) : fail(exchange, failure)
    }

    /// A gRPC call ends with a status, which no caller mistakes for a complete response.
    private mutating func endGRPCCall(_ exchange: Handle<Exchange>, _ failure: Failure) {
        exchanges[exchange].record.reason = counters.reason(failure.reason)
        dropUpstream(of: exchange)
        exchanges[exchange].response.trailers.removeAll()
        failure.writeStatusTrailers(into: &exchanges[exchange].response.trailers)
        finishStream(exchange)
        complete(exchange)
    }
}
