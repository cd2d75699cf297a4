internal import MartletAuthenticator
internal import MartletCore

/// Handles messages from other threads.
extension EventLoop {
    mutating func drainMailbox() {
        for entry in loop.mailbox.drain() {
            switch entry {
            case .verificationFinished(let finished):
                completeVerification(Handle(finished.exchange), epoch: finished.epoch, finished.result)
            case .limitsDecided(let exchange, let wait): resume(exchange, .decided(wait))
            case .localResponse(let exchange, let response):
                if loop.exchanges.all.contains(exchange) { RequestForwarder.localResponded(exchange, response, &loop) }
            case .localPart(let exchange, let part):
                if loop.exchanges.all.contains(exchange) { LocalParts.received(part, of: exchange, &loop) }
            case .handshake(let downstream, let step):
                loop.context.threads.handshakeQueue.append(
                    .finished(step), of: downstream, from: loop.downstreams.network(of: downstream))
            case .connectionWanted: RequestForwarder.yieldConnections(&loop)
            case .message(.adopt(let next, let sockets)): adopt(next, sockets)
            case .message(.resolved(let names)):
                loop.upstreams.retire(loop.upstreams.directory.resolve(names, now: loop.now), &loop.context)
            case .message(.health(let endpoints)): loop.upstreams.directory.note(endpoints, now: loop.now)
            case .message(.drained(let endpoints)): loop.upstreams.directory.setDrained(endpoints, now: loop.now)
            case .message(.invalidateCaches):
                // Verifications in flight may rest on what is invalidated: they are repeated.
                CredentialWatch.revalidateSessions(&loop.exchanges, &authenticator, &loop.context)
                authenticator.invalidate()
            case .message(.credentials(let change, let acknowledgement)):
                authenticator.note(change, acknowledgement, at: loop.time)
            case .message(.rejectSessions(let rejects)): authenticator.rejectSessions(rejects)
            case .message(.watch(let watcher)): loop.context.logs.watch(watcher)
            case .message(.logFormatChanged): loop.context.logs.access.formatChanged()
            case .message(.accessLog(let settings)): SelectedLines.adopt(settings, &loop.downstreams, &loop.context)
            case .message(.report(let withEndpoints, let reply)): reply(report(withEndpoints: withEndpoints))
            case .message(.drain(let deadline, let hasSuccessor)):
                drain(until: deadline.nanoseconds, hasSuccessor: hasSuccessor)
            }
        }
    }
}
