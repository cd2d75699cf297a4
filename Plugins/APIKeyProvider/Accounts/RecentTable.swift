/// A table of limited size that drops what was used least recently.
struct RecentTable<Value> {
    private struct Node {
        let key: String
        var value: Value
        /// The node that was used next after this one; -1 at the end.
        var newer: Int
        /// The node that was used last before this one; -1 at the end.
        var older: Int
    }

    private let capacity: Int
    private var slots: [String: Int] = [:]
    private var nodes: [Node] = []
    private var newest = -1
    private var oldest = -1

    init(capacity: Int) { self.capacity = max(capacity, 1) }

    var count: Int { slots.count }

    /// The value of a key, which counts as used.
    mutating func value(for key: String) -> Value? {
        guard let slot = slots[key] else { return nil }
        touch(slot)
        return nodes[slot].value
    }

    /// Whether there is a value, which does not count as used.
    func contains(_ key: String) -> Bool { slots[key] != nil }

    mutating func set(_ value: Value, for key: String) {
        if let slot = slots[key] {
            nodes[slot].value = value
            return touch(slot)
        }
        let node = Node(key: key, value: value, newer: -1, older: -1)
        let slot: Int
        if nodes.count < capacity {
            slot = nodes.count
            nodes.append(node)
        } else {
            slot = oldest
            detach(slot)
            slots[nodes[slot].key] = nil
            nodes[slot] = node
        }
        slots[key] = slot
        attach(slot)
    }

    mutating func remove(_ key: String) {
        guard let slot = slots.removeValue(forKey: key) else { return }
        detach(slot)
        // The last node moves into the gap.
        let last = nodes.count - 1
        if slot != last {
            let node = nodes[last]
            nodes[slot] = node
            slots[node.key] = slot
            if node.newer >= 0 { nodes[node.newer].older = slot } else { newest = slot }
            if node.older >= 0 { nodes[node.older].newer = slot } else { oldest = slot }
        }
        nodes.removeLast()
    }

    mutating func removeAll() { self = RecentTable(capacity: capacity) }

    private mutating func touch(_ slot: Int) {
        guard slot != newest else { return }
        detach(slot)
        attach(slot)
    }

    private mutating func attach(_ slot: Int) {
        nodes[slot].newer = -1
        nodes[slot].older = newest
        if newest >= 0 { nodes[newest].newer = slot } else { oldest = slot }
        newest = slot
    }

    private mutating func detach(_ slot: Int) {
        let (newer, older) = (nodes[slot].newer, nodes[slot].older)
        if newer >= 0 { nodes[newer].older = older } else { newest = older }
        if older >= 0 { nodes[older].newer = newer } else { oldest = newer }
    }
}
