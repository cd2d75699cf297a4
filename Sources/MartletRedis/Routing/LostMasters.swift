internal import MartletCore

/// Which masters cannot be reached: the beginning and the end of each outage, once.
struct LostMasters {
    typealias Address = RedisURL.Address

    /// What has changed; sorted by address.
    struct Changes {
        var lost: [Address] = []
        var back: [Address] = []
    }

    private var known: Set<Address> = []

    /// - Parameters:
    ///   - lost: masters that cannot be reached.
    ///   - connected: masters that can. One that is neither is being connected, or no longer a master.
    mutating func update(lost: some Collection<Address>, connected: Set<Address>) -> Changes {
        let changes = Changes(lost: ordered(Set(lost).subtracting(known)), back: ordered(known.intersection(connected)))
        known.formUnion(changes.lost)
        known.subtract(changes.back)
        return changes
    }

    /// Those that are no longer masters are never back.
    mutating func keep(_ masters: some Sequence<Address>) { known.formIntersection(masters) }

    private func ordered(_ nodes: Set<Address>) -> [Address] { nodes.sorted { $0.description < $1.description } }
}
