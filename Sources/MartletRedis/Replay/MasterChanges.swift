internal import MartletCore

/// Which keys are served by a server that may not have this instance's recent writes, and since when their last one was
/// lost.
struct MasterChanges {
    /// Keys that are written again together.
    enum Keys: Hashable {
        case slot(HashSlot)
        /// All of a server that was connected again: it may have been restarted.
        case node(RedisURL.Address)
        case all
    }

    private var changed: Set<Keys> = []
    /// When the first of the servers was lost; `nil` if none was, as in a planned change.
    private(set) var lostAt: MonotonicTime?
    /// The same of what was written again last.
    private var lastLostAt: MonotonicTime?

    /// A server of keys was lost.
    mutating func lost(at now: MonotonicTime) { if lostAt == nil { lostAt = now } }

    /// Slots have another server; `nil` for all.
    mutating func moved(_ slots: Set<HashSlot>?) {
        guard let slots else {
            changed = [.all]
            return
        }
        if !changed.contains(.all) { changed.formUnion(slots.map { .slot($0) }) }
    }

    mutating func connected(_ node: RedisURL.Address) { if !changed.contains(.all) { changed.insert(.node(node)) } }

    func contains(_ slot: HashSlot, of node: RedisURL.Address) -> Bool {
        !changed.isEmpty && (changed.contains(.all) || changed.contains(.node(node)) || changed.contains(.slot(slot)))
    }

    /// Writes are being repeated.
    /// - Parameter isWritten: whether there is a server for all of the keys.
    mutating func written(at now: MonotonicTime, _ isWritten: (Keys) -> Bool) {
        guard !changed.isEmpty else { return }
        lastLostAt = lostAt ?? now
        changed = changed.filter { !isWritten($0) }
        if changed.isEmpty { lostAt = nil }
    }

    /// What was written again may be incomplete.
    mutating func failed() {
        changed = [.all]
        if let lastLostAt { lostAt = min(lostAt ?? lastLostAt, lastLostAt) }
    }
}
