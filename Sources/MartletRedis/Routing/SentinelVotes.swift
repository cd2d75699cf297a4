internal import MartletCore

/// What each sentinel said last about the master.
struct SentinelVotes {
    typealias Address = RedisURL.Address

    /// A master, with the number of the decision that made it one.
    struct Claim: Hashable, Sendable {
        let master: Address
        /// `config-epoch`; never negative.
        let epoch: Int64
    }

    /// How long a reply counts: sentinels are asked every second.
    private static let lifetime = Duration.milliseconds(2500)

    private var claims: [Address: (claim: Claim, time: MonotonicTime)] = [:]

    mutating func set(_ claim: Claim, of sentinel: Address, at now: MonotonicTime) { claims[sentinel] = (claim, now) }

    mutating func remove(_ sentinel: Address) { claims[sentinel] = nil }

    /// What sentinels say that still reply.
    func current(at now: MonotonicTime) -> [Address: Claim] {
        claims.filter { now.since($0.value.time) <= SentinelVotes.lifetime }.mapValues(\.claim)
    }

    /// What more than half of all sentinels agree on that have ever replied.
    func majority(at now: MonotonicTime) -> Claim? {
        var counts: [Claim: Int] = [:]
        for claim in current(at: now).values { counts[claim, default: 0] += 1 }
        return counts.first { 2 * $0.value > claims.count }?.key
    }
}
