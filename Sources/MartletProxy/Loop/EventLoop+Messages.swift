internal import MartletAuthenticator
internal import MartletConfig
internal import MartletCore
internal import MartletHTTP
internal import MartletHTTP2
internal import MartletIO
internal import MartletProvider
internal import MartletTLS

/// Handles messages from other threads.
extension EventLoop {
    mutating func drainMailbox() {
        for message in mailbox.drain() {
            switch message {
            case .verificationFinished(let finished):
                completeVerification(Handle(finished.exchange), epoch: finished.epoch, finished.result)
            case .localResponse(let exchange, let response):
                if exchanges.contains(exchange) { localResponded(exchange, response) }
            case .handshake(let downstream, let step):
                threads.handshakeQueue.append(.finished(step), of: downstream, from: network(of: downstream))
            case .adopt(let next, let sockets): adopt(next, sockets)
            case .resolved(let names): directory.resolve(names)
            case .invalidateCaches:
                // Verifications in flight may rest on what is invalidated: they are repeated.
                revalidateSessions()
                authenticator.invalidate()
            case .revoked(let revocationIDs, let acknowledgement):
                authenticator.revoke(revocationIDs, acknowledgement, at: time)
            case .rejectSessions(let rejects): authenticator.rejectSessions(rejects)
            case .logFormatChanged: logs.access.formatChanged()
            case .report(let reply): reply(report())
            case .drain(let deadline, let hasSuccessor): drain(until: deadline, hasSuccessor: hasSuccessor)
            }
        }
    }
}
