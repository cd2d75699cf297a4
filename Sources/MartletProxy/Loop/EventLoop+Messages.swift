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
            case .verificationFinished(let exchange, let generation, let resultEpoch, let result):
                completeVerification(exchange, generation, epoch: resultEpoch, result)
            case .localResponse(let exchange, let generation, let response):
                guard exchanges.contains(exchange, generation) else { continue }
                localResponded(exchange, response)
            case .handshake(let downstream, let generation, let step):
                let token = EventToken(.downstream, index: downstream, generation: generation)
                handshakeQueue.append(.finished(step), of: token, from: network(of: token))
            case .adopt(let next, let sockets): adopt(next, sockets)
            case .resolved(let names): directory.resolve(names)
            case .invalidateCaches:
                // Verifications in flight may rest on what is invalidated: they are repeated.
                revalidateSessions()
                authenticator.invalidate()
            case .revoked(let revocationIDs, let acknowledgement):
                authenticator.revoke(revocationIDs, acknowledgement, at: time)
            case .rejectSessions(let rejects): authenticator.rejectSessions(rejects)
            case .logFormatChanged:
                textEpoch += 1
                logFormat = accessLog.format
            case .report(let reply): reply(report())
            case .drain(let deadline, let hasSuccessor): drain(until: deadline, hasSuccessor: hasSuccessor)
            }
        }
    }
}
