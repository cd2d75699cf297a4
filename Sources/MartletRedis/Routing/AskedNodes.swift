internal import MartletCore

/// Nodes that are connected only because another one named them, in `ASK`: they are in no map, and few are kept.
struct AskedNodes {
    typealias Address = RedisURL.Address

    static let maximum = 16
    /// How long one is kept without use.
    private static let lifetime = Duration.seconds(60)
    /// The same, for one that a newer map does not list.
    private static let lifetimeWithMap = Duration.seconds(5)
    /// The same, for one whose place is needed.
    private static let shortestLifetime = Duration.seconds(1)

    private var lastUses: [Address: MonotonicTime] = [:]

    /// When to call `expire`.
    var nextExpiry: MonotonicTime? { lastUses.values.min().map { $0 + AskedNodes.lifetime } }

    func contains(_ node: Address) -> Bool { lastUses[node] != nil }

    /// Notes that a command is sent to a node, if it is one of these.
    mutating func use(_ node: Address, at now: MonotonicTime) {
        if lastUses[node] != nil { lastUses[node] = now }
    }

    /// Adds a node.
    /// - Parameter busy: the nodes that have commands.
    /// - Returns: those to close instead; `nil` if there is no place.
    mutating func admit(_ node: Address, at now: MonotonicTime, busy: Set<Address>) -> [Address]? {
        var closed: [Address] = []
        if lastUses.count >= AskedNodes.maximum {
            let idle = lastUses.filter { !busy.contains($0.key) && now.since($0.value) >= AskedNodes.shortestLifetime }
            guard let oldest = idle.min(by: { $0.value < $1.value })?.key else { return nil }
            lastUses[oldest] = nil
            closed = [oldest]
        }
        lastUses[node] = now
        return closed
    }

    /// Removes a node.
    /// - Returns: whether it was one of these.
    mutating func remove(_ node: Address) -> Bool { lastUses.removeValue(forKey: node) != nil }

    /// Removes those that have not been used for long.
    /// - Parameter hasNewMap: whether there is a newer map, which lists none of them.
    /// - Returns: those to close.
    mutating func expire(at now: MonotonicTime, hasNewMap: Bool, busy: Set<Address>) -> [Address] {
        let lifetime = hasNewMap ? AskedNodes.lifetimeWithMap : AskedNodes.lifetime
        for node in busy { use(node, at: now) }
        let due = lastUses.filter { now.since($0.value) >= lifetime }.keys
        for node in due { lastUses[node] = nil }
        return due.sorted { $0.description < $1.description }
    }
}
