/// Revocations and changes whose cache entries are still to be removed, and their acknowledgements; many in a row cost
/// one pass over the tables.
package struct RevocationSweep {
    /// What one pass over the tables removes, and what is acknowledged afterwards.
    package struct Due {
        package let revocationIDs: Set<UInt64>
        /// Sessions that have changed, but have not ended.
        package let changedIDs: Set<UInt64>
        package let acknowledgements: [LoopAcknowledgement]
    }

    /// How long removals may be batched, in nanoseconds.
    static let interval: Int64 = 20_000_000

    private var revocationIDs: Set<UInt64> = []
    private(set) var changedIDs: Set<UInt64> = []
    private var acknowledgements: [LoopAcknowledgement] = []
    private var sweptAt: Int64 = 0

    var isEmpty: Bool { revocationIDs.isEmpty && changedIDs.isEmpty }

    /// Adds what has happened to sessions and subjects.
    /// - Parameter acknowledgement: acknowledged when the cache entries are gone.
    mutating func add(_ change: CredentialChange, _ acknowledgement: LoopAcknowledgement?) {
        switch change {
        case .ended(let ids): revocationIDs.formUnion(ids)
        case .changed(let ids): changedIDs.formUnion(ids)
        }
        guard let acknowledgement else { return }
        if isEmpty { acknowledgement.acknowledge() } else { acknowledgements.append(acknowledgement) }
    }

    /// How long until what has been added can be removed, in milliseconds.
    /// - Parameter now: the monotonic clock in nanoseconds.
    func wait(at now: Int64) -> Int32 {
        let rest = max(Self.interval &- (now &- sweptAt), 0)
        return Int32(clamping: (rest &+ 999_999) / 1_000_000)
    }

    /// Returns and clears everything, if there is something and the last sweep was long enough ago.
    /// - Parameter now: the monotonic clock in nanoseconds.
    mutating func dequeue(at now: Int64) -> Due? {
        guard !isEmpty, now &- sweptAt >= Self.interval else { return nil }
        let due = Due(revocationIDs: revocationIDs, changedIDs: changedIDs, acknowledgements: acknowledgements)
        (revocationIDs, changedIDs, acknowledgements, sweptAt) = ([], [], [], now)
        return due
    }
}
