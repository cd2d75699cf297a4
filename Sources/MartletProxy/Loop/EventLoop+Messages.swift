internal import MartletAuthenticator

/// Handles messages from other threads.
extension EventLoop {
    mutating func drainMailbox() {
        for message in loop.mailbox.drain() {
            switch message {
            case .verificationFinished(let finished):
                completeVerification(Handle(finished.exchange), epoch: finished.epoch, finished.result)
            case .limitsDecided(let exchange, let wait): resume(exchange, .decided(wait))
            case .localResponse(let exchange, let response):
                if loop.exchanges.all.contains(exchange) { RequestForwarder.localResponded(exchange, response, &loop) }
            case .localPart(let exchange, let part):
                if loop.exchanges.all.contains(exchange) { LocalParts.received(part, of: exchange, &loop) }
            case .watch(let watcher): loop.context.logs.watch(watcher)
            case .handshake(let downstream, let step):
                loop.context.threads.handshakeQueue.append(
                    .finished(step), of: downstream, from: loop.downstreams.network(of: downstream))
            case .adopt(let next, let sockets): adopt(next, sockets)
            case .resolved(let names):
                loop.upstreams.retire(loop.upstreams.directory.resolve(names, now: loop.now), &loop.context)
            case .health(let endpoints): loop.upstreams.directory.note(endpoints, now: loop.now)
            case .drained(let endpoints): loop.upstreams.directory.setDrained(endpoints, now: loop.now)
            case .invalidateCaches:
                // Verifications in flight may rest on what is invalidated: they are repeated.
                CredentialWatch.revalidateSessions(&loop.exchanges, &authenticator, &loop.context)
                authenticator.invalidate()
            case .revoked(let revocationIDs, let acknowledgement):
                authenticator.revoke(revocationIDs, acknowledgement, at: loop.time)
            case .sessionsChanged(let revocationIDs, let acknowledgement):
                authenticator.sessionsChanged(revocationIDs, acknowledgement, at: loop.time)
            case .rejectSessions(let rejects): authenticator.rejectSessions(rejects)
            case .logFormatChanged: loop.context.logs.access.formatChanged()
            case .accessLog(let settings): SelectedLines.adopt(settings, &loop.downstreams, &loop.context)
            case .connectionWanted: RequestForwarder.yieldConnections(&loop)
            case .report(let withEndpoints, let reply): reply(report(withEndpoints: withEndpoints))
            case .drain(let deadline, let hasSuccessor): drain(until: deadline, hasSuccessor: hasSuccessor)
            }
        }
    }
}
