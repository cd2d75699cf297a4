/// Revocations whose copies are still to be dropped, and who waits for that.
///
/// Many in a row cost one pass over the tables.
struct RevocationSweep {
    /// What one pass over the tables drops, and who is told afterwards.
    struct Due {
        let numbers: Set<UInt64>
        let acknowledgements: [LoopAcknowledgement]
    }

    /// How long copies may wait to be dropped together, in nanoseconds.
    static let interval: Int64 = 20_000_000

    private var numbers: Set<UInt64> = []
    private var acknowledgements: [LoopAcknowledgement] = []
    private var sweptAt: Int64 = 0

    var isEmpty: Bool { numbers.isEmpty }

    /// Notes what was revoked.
    /// - Parameter acknowledgement: who waits until the copies are gone.
    mutating func add(_ revoked: [UInt64], _ acknowledgement: LoopAcknowledgement?) {
        numbers.formUnion(revoked)
        guard let acknowledgement else { return }
        if numbers.isEmpty { acknowledgement.acknowledge() } else { acknowledgements.append(acknowledgement) }
    }

    /// Takes everything, if there is something and the last time was long enough ago.
    /// - Parameter now: the monotonic clock in nanoseconds.
    mutating func take(at now: Int64) -> Due? {
        guard !numbers.isEmpty, now &- sweptAt >= Self.interval else { return nil }
        let due = Due(numbers: numbers, acknowledgements: acknowledgements)
        (numbers, acknowledgements, sweptAt) = ([], [], now)
        return due
    }
}
