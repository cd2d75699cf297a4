package import MartletAuthenticator
package import MartletCore
package import MartletResponder

/// The messages that the rest of the process may post.
extension Mailbox {
    /// Adopts a new configuration; a socket of −1 is one that the loop already owns.
    package func adopt(_ snapshot: Snapshot, listeners: [ListenerSocket]) {
        post(.adopt(snapshot, listeners: listeners))
    }

    /// Sets new addresses of host names.
    package func resolved(_ names: [ResolvedName]) { post(.resolved(names)) }

    /// Notifies the loop of what health checks have found out; it keeps the last state of each endpoint.
    package func healthChanged(_ endpoints: [EndpointHealth]) { post(.health(endpoints)) }

    /// Has exactly these endpoints be out of use, without a resolved address.
    package func setDrained(_ endpoints: Set<EndpointIdentity>) { post(.drained(endpoints)) }

    /// Invalidates every cached decision and principal.
    package func invalidateCaches() { post(.invalidateCaches) }

    /// Removes cache entries of sessions that have ended, and of subjects: see ``SubjectRevocationID``.
    /// - Parameter acknowledgement: acknowledged when they are removed, or the loop has ended.
    package func revoked(_ revocationIDs: [UInt64], _ acknowledgement: LoopAcknowledgement? = nil) {
        post(.revoked(revocationIDs, acknowledgement))
    }

    /// Removes cache entries of sessions that have changed; exchanges that they admitted go on if their routes still
    /// allow it.
    /// - Parameter acknowledgement: acknowledged when they are removed, or the loop has ended.
    package func sessionsChanged(_ revocationIDs: [UInt64], _ acknowledgement: LoopAcknowledgement? = nil) {
        post(.sessionsChanged(revocationIDs, acknowledgement))
    }

    /// Starts or stops streaming finished requests to a watcher.
    package func watch(_ watcher: (any RequestWatching)?) { post(.watch(watcher)) }

    /// Starts or stops rejecting session tokens, cached ones included.
    package func rejectSessions(_ rejects: Bool) { post(.rejectSessions(rejects)) }

    /// Switches to the log's current access format.
    package func logFormatChanged() { post(.logFormatChanged) }

    /// Switches to other settings of the access log, for a loop that adopts no configuration.
    package func adoptAccessLog(_ settings: AccessLogSettings?) { post(.accessLog(settings)) }

    /// Accepts no more connections, serves requests in progress, and ends; what is left at the deadline is aborted.
    ///
    /// - Parameter hasSuccessor: whether another process accepts from the same sockets and their queues.
    package func drain(until deadline: MonotonicTime, hasSuccessor: Bool = false) {
        post(.drain(deadline: deadline.nanoseconds, hasSuccessor: hasSuccessor))
    }

    /// The loop's counters; `nil` when it does not reply in time.
    /// - Parameter withEndpoints: whether the state of every endpoint is among them.
    package func report(withEndpoints: Bool, within timeout: Duration) async -> LoopReport? {
        let reply = OnceOnly<LoopReport>()
        post(.report(withEndpoints: withEndpoints) { reply.complete($0) })
        return await reply.value(within: timeout)
    }
}

extension Mailbox: VerificationResultSink {
    /// Posts results of verifications.
    package func receive(_ results: [FinishedVerification]) {
        post(results.map { LoopMessage.verificationFinished($0) })
    }
}
