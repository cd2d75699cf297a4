internal import MartletAuthenticator
internal import MartletCore
internal import MartletDecisions
internal import MartletIO
internal import MartletProvider
internal import MartletResponder

/// Deadlines: each connection has one; its meaning follows from the connection's phase.
extension EventLoop {
    /// Handles every deadline that has passed.
    mutating func fireTimers() {
        guard loop.context.schedule.advance(to: loop.now) else { return }
        for entry in loop.context.schedule.due {
            let token = EventToken(raw: entry.token)
            switch token.kind {
            case .downstream where loop.downstreams.all.contains(token.downstream):
                timerFired(downstream: token.downstream, entry.tick)
            case .upstream where loop.upstreams.all.contains(token.upstream):
                responses.timerFired(upstream: token.upstream, entry.tick, &loop)
            default: break
            }
        }
        loop.context.schedule.clearDue()
        guard loop.context.schedule.isDrainOver(at: loop.now) else { return }
        loop.abortAll(isLast: false)
        writeAllFrames()
        loop.abortAll(isLast: true)
    }

    private mutating func timerFired(downstream: Handle<DownstreamConnection>, _ tick: Int64) {
        switch loop.downstreams[downstream].timer.fire(tick, at: loop.now) {
        case .stale: break
        case .early: loop.downstreams.arm(downstream, at: loop.downstreams[downstream].timer.deadline, &loop.context)
        case .due: downstreamTimedOut(downstream)
        }
    }

    /// The deadline of a downstream connection has passed.
    mutating func downstreamTimedOut(_ downstream: Handle<DownstreamConnection>) {
        let timeout = DownstreamTimeout(
            in: loop.downstreams[downstream].phase, isStream: loop.downstreams[downstream].isStream,
            isReceivingHead: loop.downstreams[downstream].reader.isReceivingHead)
        switch timeout {
        case .close: loop.close(downstream: downstream)
        case .failHandshake: loop.handshakeTimedOut(downstream)
        case .closeFrames: loop.framesTimedOut(downstream)
        case .checkWriting: loop.writeTimedOut(downstream)
        case .rejectHead:
            loop.downstreams[downstream].reader.isReceivingHead = false
            loop.reject(loop.exchanges.beginUnparsed(downstream, &loop.downstreams, &loop.context), .requestTimeout)
        case .endWait:
            let exchange = loop.downstreams[downstream].exchange
            loop.exchanges[exchange].suspension.limits?.wait.timedOut(at: loop.now)
            resume(exchange, .timedOut)
        case .checkExchange: RequestForwarder.exchangeTimedOut(loop.downstreams[downstream].exchange, &loop)
        }
    }
}

/// Exchanges that outlive their credential: tunnels, event streams, other long responses and uploads; and the other
/// deadlines of tunnels and routes, which are checked with them.
///
/// A request is admitted with a credential that is valid at that moment. If the exchange is still in progress when the
/// credential expires or is revoked, it ends as its route says (`close_on_expiry`). Short exchanges are allowed to
/// finish.
extension EventLoop {
    /// Ends the exchanges whose credential has expired or was revoked.
    mutating func checkExpiries() {
        guard credentialWatch.begin(exchanges: loop.exchanges.all.count, at: loop.now) else { return }
        let unixMilliseconds = loop.context.clock.unixMilliseconds
        var endsForDrain = tunnelsToDrain
        for index in 0..<loop.exchanges.all.end {
            guard let exchange = loop.exchanges.all.handle(at: index) else { continue }
            if loop.exchanges[exchange].response.rules.deadline <= loop.now, endsByRoute(exchange) { continue }
            if loop.exchanges[exchange].credential.end <= unixMilliseconds {
                loop.exchanges[exchange].endCredential(isRevoked: false, &loop.context)
            }
            if loop.exchanges[exchange].credential.decision >= 0,
                CredentialWatch.isLong(since: loop.exchanges[exchange].record.started, at: loop.now)
            {
                CredentialWatch.retainToken(of: exchange, &loop.exchanges, &authenticator)
            }
            if loop.exchanges.isTunnel(exchange) {
                RequestForwarder.checkTunnel(exchange, endsForDrain: &endsForDrain, &loop)
            }
            guard loop.exchanges[exchange].isAlive, loop.exchanges[exchange].termination.deadline <= loop.now else {
                continue
            }
            RequestForwarder.terminate(exchange, &loop)
        }
        credentialWatch.submitRevalidations(&loop.exchanges, &loop.downstreams, &authenticator, &loop.context)
    }

    /// Ends an exchange whose route's `timeout` has passed, unless its response has begun.
    /// - Returns: whether it ends; its handle must not be used then.
    private mutating func endsByRoute(_ exchange: Handle<Exchange>) -> Bool {
        let hasBegun = loop.exchanges[exchange].response.hasStarted || loop.exchanges.isTunnel(exchange)
        switch loop.exchanges[exchange].response.rules.action(
            hasResponseStarted: hasBegun, isWaiting: !loop.exchanges[exchange].suspension.isNone, at: loop.now)
        {
        case .ignore: return false
        case .reroute: resume(exchange, .rerouted)
        case .fail: loop.fail(exchange, ExchangeRouteRules.timeout)
        }
        return true
    }

    /// How many WebSockets a drain ends now.
    var tunnelsToDrain: Int {
        guard loop.isDraining else { return 0 }
        return Tunnel.drainBatch(
            open: loop.context.counters.tunnels.open, timeLeft: loop.drainDeadline &- loop.now,
            interval: CredentialWatch.interval
        )
    }
}
