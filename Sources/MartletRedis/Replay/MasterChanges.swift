internal import MartletCore

/// Which keys are served by a server that may not have this instance's recent writes, and since when their last one was
/// lost.
struct MasterChanges {
    /// Keys that are written again together.
    enum Keys: Equatable {
        case slot(HashSlot)
        /// All of a server that was connected again: it may have been restarted.
        case node(RedisURL.Address)
        case all
    }

    private var isAllChanged = false
    private var slots = SlotSet()
    private var nodes: Set<RedisURL.Address> = []
    /// When the first of the servers was lost; `nil` if none was, as in a planned change.
    private(set) var lostAt: MonotonicTime?
    /// The same of what was written again last.
    private var lastLostAt: MonotonicTime?

    /// A change of all masters.
    static let all = MasterChanges(isAllChanged: true, lostAt: nil, lastLostAt: nil)

    /// A server of keys was lost.
    mutating func lost(at now: MonotonicTime) { if lostAt == nil { lostAt = now } }

    /// Slots have another server; `nil` for all.
    mutating func moved(_ moved: SlotSet?) {
        guard let moved else { return changeAll() }
        if !isAllChanged { slots.formUnion(moved) }
    }

    mutating func connected(_ node: RedisURL.Address) { if !isAllChanged { nodes.insert(node) } }

    func contains(_ slot: HashSlot, of node: RedisURL.Address) -> Bool {
        isAllChanged || nodes.contains(node) || slots.contains(slot)
    }

    var isEmpty: Bool { !isAllChanged && nodes.isEmpty && slots.isEmpty }

    private mutating func changeAll() {
        self = MasterChanges(isAllChanged: true, lostAt: lostAt, lastLostAt: lastLostAt)
    }

    /// Writes are being repeated.
    /// - Parameter isWritten: whether there is a server for all of the keys.
    mutating func written(at now: MonotonicTime, _ isWritten: (Keys) -> Bool) {
        guard !isEmpty else { return }
        lastLostAt = lostAt ?? now
        if isAllChanged { isAllChanged = !isWritten(.all) }
        nodes = nodes.filter { !isWritten(.node($0)) }
        slots.removeAll { isWritten(.slot($0)) }
        if isEmpty { lostAt = nil }
    }

    /// What was written again may be incomplete.
    mutating func failed() {
        changeAll()
        if let lastLostAt { lostAt = min(lostAt ?? lastLostAt, lastLostAt) }
    }
}
