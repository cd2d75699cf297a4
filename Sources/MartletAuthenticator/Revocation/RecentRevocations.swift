/// Recent revocations and their time: verification results requested before are void.
struct RecentRevocations {
    /// Above this many revocations, those that no verification in flight can predate are dropped.
    static let limit = 4096
    /// How often such revocations are looked for, in nanoseconds.
    static let pruneInterval: Int64 = 1_000_000_000

    /// How long a verification may be in flight, doubled, in nanoseconds.
    static let retention: Int64 = 20_000_000_000

    private var times: [UInt64: Int64] = [:]
    private var prunedAt: Int64 = 0

    var count: Int { times.count }

    /// Records revocations.
    /// - Parameter now: the monotonic clock in nanoseconds.
    mutating func add(_ revocationIDs: [UInt64], at now: Int64) {
        if times.count > Self.limit, now &- prunedAt >= Self.pruneInterval {
            prunedAt = now
            times = times.filter { now &- $0.value <= Self.retention }
        }
        for revocationID in revocationIDs { times[revocationID] = now }
    }

    /// Whether a credential was revoked at that time or later.
    func contains(_ revocationID: UInt64, since time: Int64) -> Bool {
        guard !times.isEmpty, let moment = times[revocationID] else { return false }
        return moment >= time
    }
}
