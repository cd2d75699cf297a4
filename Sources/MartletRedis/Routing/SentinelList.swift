internal import MartletCore

/// The sentinels that are asked: the seeds, and those that most of them list.
struct SentinelList {
    typealias Address = RedisURL.Address

    /// Including the seeds.
    static let maximum = 2 * RedisURL.maximumSeeds

    let seeds: [Address]
    private(set) var known: Set<Address>
    /// What each of them lists, and itself, which it leaves out.
    private var lists: [Address: Set<Address>] = [:]

    init(seeds: [Address]) {
        self.seeds = seeds
        known = Set(seeds)
    }

    /// A sentinel cannot be reached: its list no longer counts.
    mutating func lost(_ sentinel: Address) { lists[sentinel] = nil }

    /// A sentinel lists the others that it knows.
    /// - Returns: sentinels that are known from now on, and those that no longer are.
    mutating func answered(_ others: [Address], by sentinel: Address) -> (added: [Address], removed: [Address]) {
        guard known.contains(sentinel), others.count <= RedisURL.maximumSeeds else { return ([], []) }
        lists[sentinel] = Set(others + [sentinel])
        let half = lists.count
        let removed = ordered(known.subtracting(seeds).filter { 2 * votes(for: $0) < half })
        let listed = lists.values.reduce(into: Set()) { $0.formUnion($1) }
        known.subtract(removed)
        for gone in removed { lists[gone] = nil }
        let wanted = ordered(listed.subtracting(known).subtracting(removed).filter { 2 * votes(for: $0) > half })
        let added = Array(wanted.prefix(max(SentinelList.maximum - known.count, 0)))
        known.formUnion(added)
        return (added, removed)
    }

    private func votes(for sentinel: Address) -> Int { lists.values.count { $0.contains(sentinel) } }

    private func ordered(_ sentinels: Set<Address>) -> [Address] {
        sentinels.sorted { $0.description < $1.description }
    }
}
