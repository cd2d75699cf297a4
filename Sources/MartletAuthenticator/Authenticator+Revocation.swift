/// Sessions that have ended, and subjects that have changed.
extension Authenticator {
    /// Records what has happened to sessions and subjects; their cache entries go with the next sweep.
    ///
    /// A verification in flight may not have seen it: results requested before it are void.
    package mutating func note(
        _ change: CredentialChange, _ acknowledgement: LoopAcknowledgement?, at time: LoopTime
    ) {
        revocations.add(change.revocationIDs, at: time.monotonic)
        sweep.add(change, acknowledgement)
        hasUnsweptRevocations = !sweep.isEmpty
    }

    /// Sessions that have changed, whose cache entries the next sweep removes.
    package var unsweptChanges: Set<UInt64> { sweep.changedIDs }

    /// How long the loop may sleep before what was revoked can be removed, in milliseconds.
    package func sweepWait(at time: LoopTime) -> Int32 { sweep.wait(at: time.monotonic) }

    /// Removes cache entries of what was revoked or has changed: many revocations in a row cost one pass over the tables.
    ///
    /// - Returns: what was removed, when a sweep was due. The caller ends what those credentials admitted, and then
    ///   acknowledges.
    package mutating func sweepRevocations(at time: LoopTime) -> RevocationSweep.Due? {
        guard let due = sweep.dequeue(at: time.monotonic) else { return nil }
        hasUnsweptRevocations = !sweep.isEmpty
        let removed = due.revocationIDs.union(due.changedIDs)
        removeDecisions(of: removed)
        principals.removeAll { removed.contains($0.revocationID) }
        return due
    }

    /// Starts or stops rejecting sessions, cached ones included.
    package mutating func rejectSessions(_ rejects: Bool) {
        rejectsSessions = rejects
        if rejects { clearCaches() }
    }
}
