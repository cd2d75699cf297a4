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
                epoch += 1
                revalidateSessions()
                clearCaches()
            case .revoked(let revocationIDs, let acknowledgement): revoke(revocationIDs, acknowledgement)
            case .rejectSessions(let rejects):
                rejectsSessions = rejects
                if rejects { clearCaches() }
            case .logFormatChanged:
                // Formatted texts of records are cached under the epoch.
                epoch += 1
                logFormat = accessLog.format
            case .report(let reply): reply(report())
            case .drain(let deadline, let hasSuccessor): drain(until: deadline, hasSuccessor: hasSuccessor)
            }
        }
    }

    /// Resumes the request that waited for a verification.
    mutating func completeVerification(
        _ exchange: Int32, _ generation: UInt32, epoch resultEpoch: Int, _ result: VerificationResult
    ) {
        guard exchanges.contains(exchange, generation) else { return }
        let downstream = exchanges[exchange].downstream
        guard downstreams[downstream].phase == .authenticating else {
            return revalidated(exchange, epoch: resultEpoch, result)
        }
        // A result of the previous configuration's providers is void: the credential is verified again.
        resumeRequest(downstream, with: resultEpoch == epoch ? result : nil)
    }
}
