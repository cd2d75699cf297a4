internal import MartletCore

/// Exchanges that outlive their credential: tunnels, event streams, other long responses and uploads.
///
/// A request is admitted with a credential that is valid at that moment. If the exchange is still in progress when the
/// credential expires or is revoked, it ends as its route says (`close_on_expiry`). Short exchanges are allowed to
/// finish.
extension EventLoop {
    /// How often exchanges are checked, in nanoseconds.
    static let expiryCheckInterval: Int64 = 200_000_000
    /// Exchanges younger than this are allowed to finish.
    static let minimumAge: Int64 = 700_000_000

    /// How long the loop may sleep, in milliseconds.
    var expiryCheckWait: Int32 { exchanges.count > 0 ? Int32(EventLoop.expiryCheckInterval / 1_000_000) : 1000 }

    /// Ends exchanges whose credentials were revoked.
    mutating func markAllRevoked(_ revocationIDs: Set<UInt64>) {
        for exchange in 0..<exchanges.end where exchanges[exchange].isAlive {
            guard exchanges[exchange].credential.revocationID != 0,
                revocationIDs.contains(exchanges[exchange].credential.revocationID)
            else { continue }
            markRevoked(exchange)
        }
    }

    /// Ends an exchange because its credential was revoked.
    mutating func markRevoked(_ exchange: Int32) {
        endCredential(exchange, isRevoked: true)
        expiryCheckedAt = 0
    }

    /// Ends the exchanges whose credential has expired or was revoked.
    mutating func checkExpiries() {
        guard exchanges.count > 0, now &- expiryCheckedAt >= EventLoop.expiryCheckInterval else { return }
        expiryCheckedAt = now
        let unixMilliseconds = clock.unixMilliseconds
        var endsForDrain = tunnelsToDrain
        for exchange in 0..<exchanges.end where exchanges[exchange].isAlive {
            if exchanges[exchange].credential.end <= unixMilliseconds { endCredential(exchange, isRevoked: false) }
            let generation = exchanges[exchange].generation
            if exchanges[exchange].credential.decision >= 0, now &- exchanges[exchange].started >= EventLoop.minimumAge
            {
                retainToken(of: exchange)
            }
            if isTunnel(exchange) { checkTunnel(exchange, endsForDrain: &endsForDrain) }
            guard exchanges.contains(exchange, generation), exchanges[exchange].terminateAt <= now else { continue }
            terminateExpired(exchange)
        }
        submitRevalidations()
    }

    private mutating func endCredential(_ exchange: Int32, isRevoked: Bool) {
        exchanges[exchange].credential.revocationID = 0
        exchanges[exchange].credential.end = .max
        exchanges[exchange].isRevoked = isRevoked
        exchanges[exchange].terminateAt = now &+ exchanges[exchange].credential.expiryGrace
    }

    private mutating func terminateExpired(_ exchange: Int32) {
        let closeReason = exchanges[exchange].isRevoked ? CloseReason.revoked : .expired
        if isTunnel(exchange) {
            exchanges[exchange].terminateAt = .max
            return endTunnel(exchange, closeReason)
        }
        // A complete request that waits for its response is left alone; a response is cut off if it is a long one.
        let isUnderWay = exchanges[exchange].hasResponseStarted || !exchanges[exchange].isRequestComplete
        guard isUnderWay, now &- exchanges[exchange].started >= EventLoop.minimumAge,
            let reason = closeReason.reason
        else {
            return
        }
        let failure = Failure.credentialInvalid(reason)
        exchanges[exchange].isGRPC && exchanges[exchange].hasResponseStarted
            ? endGRPCCall(exchange, failure) : fail(exchange, failure)
    }

    /// A gRPC call ends with a status, which no caller mistakes for a complete response.
    private mutating func endGRPCCall(_ exchange: Int32, _ failure: Failure) {
        exchanges[exchange].reason = counters.reason(failure.reason)
        dropUpstream(of: exchange)
        exchanges[exchange].responseTrailers.removeAll()
        failure.writeStatusTrailers(into: &exchanges[exchange].responseTrailers)
        finishStream(exchange)
        complete(exchange)
    }
}
