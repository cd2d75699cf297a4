/// Revocations whose cache entries are still to be removed, and their acknowledgements; many in a row cost one pass
/// over the tables.
package struct RevocationSweep {
    /// What one pass over the tables removes, and what is acknowledged afterwards.
    package struct Due {
        package let revocationIDs: Set<UInt64>
        package let acknowledgements: [LoopAcknowledgement]
    }

    /// How long removals may be batched, in nanoseconds.
    static let interval: Int64 = 20_000_000

    private var revocationIDs: Set<UInt64> = []
    private var acknowledgements: [LoopAcknowledgement] = []
    private var sweptAt: Int64 = 0

    var isEmpty: Bool { revocationIDs.isEmpty }

    /// Adds revocations.
    /// - Parameter acknowledgement: acknowledged when the cache entries are gone.
    mutating func add(_ revoked: [UInt64], _ acknowledgement: LoopAcknowledgement?) {
        revocationIDs.formUnion(revoked)
        guard let acknowledgement else { return }
        if revocationIDs.isEmpty { acknowledgement.acknowledge() } else { acknowledgements.append(acknowledgement) }
    }

    /// Returns and clears everything, if there is something and the last sweep was long enough ago.
    /// - Parameter now: the monotonic clock in nanoseconds.
    mutating func dequeue(at now: Int64) -> Due? {
        guard !revocationIDs.isEmpty, now &- sweptAt >= Self.interval else { return nil }
        let due = Due(revocationIDs: revocationIDs, acknowledgements: acknowledgements)
        (revocationIDs, acknowledgements, sweptAt) = ([], [], now)
        return due
    }
}
