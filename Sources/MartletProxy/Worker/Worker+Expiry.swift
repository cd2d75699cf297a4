internal import MartletCore

/// Exchanges that outlive their credential: tunnels, streams of events, other long answers and uploads.
///
/// A request is let in by a credential that is good at that moment. Where the exchange is still under way when that
/// credential expires or is revoked, it ends as its route says (`close_on_expiry`). Short ones are left alone: they are
/// let finish as if they had been faster.
extension Worker {
    /// How often exchanges are looked through.
    static let watchInterval: Int64 = 200_000_000
    /// An exchange this young is let finish first.
    static let shortest: Int64 = 700_000_000

    /// How long the loop may sleep.
    var watchPatience: Int32 { exchanges.count > 0 ? Int32(Worker.watchInterval / 1_000_000) : 1000 }

    /// Notes which credential let a request in.
    /// - Parameters:
    ///   - number: what revocations call it.
    ///   - end: until when it is good, in milliseconds of Unix time.
    ///   - grant: where its token stands.
    mutating func bind(_ exchange: Int32, to number: UInt64, until end: Int64, grant: Int32, route: Int) {
        let grace = snapshot.facts[route].tunnels.grace
        guard grace >= 0 else { return }
        exchanges[exchange].credentialNumber = number
        exchanges[exchange].credentialEnd = end
        exchanges[exchange].grant = grant
        exchanges[exchange].grace = grace
    }

    /// Has exchanges end whose credentials were revoked.
    mutating func markRevoked(_ numbers: Set<UInt64>) {
        for exchange in 0..<exchanges.end where exchanges[exchange].isAlive {
            guard exchanges[exchange].credentialNumber != 0, numbers.contains(exchanges[exchange].credentialNumber)
            else { continue }
            markRevoked(exchange)
        }
    }

    /// Has an exchange end because its credential was revoked.
    mutating func markRevoked(_ exchange: Int32) {
        endCredential(exchange, isRevoked: true)
        watchedAt = 0
    }

    /// Looks through the exchanges for those that have to end.
    mutating func watchExchanges() {
        guard exchanges.count > 0, now &- watchedAt >= Worker.watchInterval else { return }
        watchedAt = now
        let unixMilliseconds = clock.unixMilliseconds
        var endsForDrain = tunnelsToDrain
        for exchange in 0..<exchanges.end where exchanges[exchange].isAlive {
            if exchanges[exchange].credentialEnd <= unixMilliseconds { endCredential(exchange, isRevoked: false) }
            let generation = exchanges[exchange].generation
            if exchanges[exchange].grant >= 0, now &- exchanges[exchange].started >= Worker.shortest {
                holdToken(of: exchange)
            }
            if isTunnel(exchange) { watchTunnel(exchange, endsForDrain: &endsForDrain) }
            guard exchanges.holds(exchange, generation), exchanges[exchange].cutsAt <= now else { continue }
            endWithCredential(exchange)
        }
        askAboutTokens()
    }

    private mutating func endCredential(_ exchange: Int32, isRevoked: Bool) {
        exchanges[exchange].credentialNumber = 0
        exchanges[exchange].credentialEnd = .max
        exchanges[exchange].isRevoked = isRevoked
        exchanges[exchange].cutsAt = now &+ exchanges[exchange].grace
    }

    private mutating func endWithCredential(_ exchange: Int32) {
        let farewell = exchanges[exchange].isRevoked ? Farewell.revoked : .expired
        if isTunnel(exchange) {
            exchanges[exchange].cutsAt = .max
            return endTunnel(exchange, farewell)
        }
        // A whole request that waits for its answer has done what it may do; the answer is cut if it is a long one.
        let isUnderWay = exchanges[exchange].hasResponseStarted || !exchanges[exchange].isRequestComplete
        guard isUnderWay, now &- exchanges[exchange].started >= Worker.shortest, let reason = farewell.reason else {
            return
        }
        let failure = Failure.credentialInvalid(reason)
        exchanges[exchange].isGRPC && exchanges[exchange].hasResponseStarted
            ? endCall(exchange, failure) : fail(exchange, failure)
    }

    /// A call of gRPC ends with a status, which no caller takes for a whole answer, and which says what to do.
    private mutating func endCall(_ exchange: Int32, _ failure: Failure) {
        exchanges[exchange].reason = counters.reason(failure.reason)
        dropLink(of: exchange)
        exchanges[exchange].answerTrailers.removeAll()
        failure.writeStatusTrailers(into: &exchanges[exchange].answerTrailers)
        endStream(exchange)
        complete(exchange)
    }
}
