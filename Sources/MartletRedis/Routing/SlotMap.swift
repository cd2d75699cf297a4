/// Which node of a cluster has which slots.
struct SlotMap: Sendable, Equatable {
    typealias Address = RedisURL.Address

    /// A range of slots in the reply to `CLUSTER SLOTS`, with its master.
    struct Range: Equatable {
        let slots: ClosedRange<UInt16>
        let master: Address
    }

    /// The maximum number of nodes; further ones are ignored.
    static let maximumNodes = 512

    private static let noOwner: UInt16 = .max

    private var owners = [UInt16](repeating: SlotMap.noOwner, count: Int(HashSlot.count))
    /// Those that have slots, and those that had some.
    private var nodes: [Address] = []
    /// How many slots each of them has.
    private var counts: [Int] = []

    init() {}

    /// The node of a slot; `nil` if it is not known.
    subscript(_ slot: HashSlot) -> Address? {
        let owner = owners[Int(slot.number)]
        return owner == SlotMap.noOwner ? nil : nodes[Int(owner)]
    }

    /// The nodes that have slots.
    var masters: [Address] { nodes.indices.filter { counts[$0] > 0 }.map { nodes[$0] } }
    /// Whether every slot has a node.
    var isComplete: Bool { unassigned == 0 }
    /// The number of slots without a node.
    var unassigned: Int { owners.count - counts.reduce(0, +) }

    /// Assigns a slot.
    /// - Returns: `false` if there are too many nodes.
    @discardableResult
    mutating func assign(_ slot: HashSlot, to address: Address) -> Bool {
        guard let node = index(of: address) else { return false }
        let former = owners[Int(slot.number)]
        if former != SlotMap.noOwner { counts[Int(former)] -= 1 }
        owners[Int(slot.number)] = node
        counts[Int(node)] += 1
        return true
    }

    /// The slots that have another node than in an earlier map.
    func changes(since earlier: SlotMap) -> SlotSet {
        if nodes == earlier.nodes, owners == earlier.owners { return [] }
        // The same nodes may have other indices.
        let translated = earlier.nodes.map { node in
            nodes.firstIndex(of: node).map { UInt16($0) } ?? SlotMap.noOwner &- 1
        }
        var changed = SlotSet()
        for (slot, old) in earlier.owners.enumerated() {
            let expected = old == SlotMap.noOwner ? old : translated[Int(old)]
            if owners[slot] != expected { changed.insert(HashSlot(UInt16(slot))) }
        }
        return changed
    }

    /// The map that most of several nodes agree on, slot by slot; the first of them wins a tie.
    ///
    /// One node alone may be wrong for a while, such as an old master that was unreachable.
    init(agreeing views: [[Range]]) {
        let maps = views.map { ranges in
            var map = SlotMap()
            for range in ranges {
                guard let node = index(of: range.master) else { continue }
                for slot in range.slots { map.owners[Int(slot)] = node }
            }
            return map.owners
        }
        guard let first = maps.first else { return }
        owners = first
        if maps.contains(where: { $0 != first }) {
            for slot in owners.indices where maps.contains(where: { $0[slot] != first[slot] }) {
                owners[slot] = SlotMap.winner(maps.map { $0[slot] })
            }
        }
        for owner in owners where owner != SlotMap.noOwner { counts[Int(owner)] += 1 }
    }

    /// The most frequent vote; an absent owner counts only if there is no other vote.
    private static func winner(_ votes: [UInt16]) -> UInt16 {
        var (best, most) = (noOwner, 0)
        for vote in votes where vote != noOwner {
            let count = votes.count { $0 == vote }
            if count > most { (best, most) = (vote, count) }
        }
        return best
    }

    private mutating func index(of address: Address) -> UInt16? {
        if let known = nodes.firstIndex(of: address) { return UInt16(known) }
        guard nodes.count < SlotMap.maximumNodes else { return nil }
        nodes.append(address)
        counts.append(0)
        return UInt16(nodes.count - 1)
    }

    static func == (left: SlotMap, right: SlotMap) -> Bool { left.changes(since: right).isEmpty }
}

extension SlotMap {
    /// Parses the reply to `CLUSTER SLOTS`: arrays of first slot, last slot, master, replicas; a node is its host, its
    /// port and more. `nil` if it is malformed.
    /// - Parameter asked: the node that replied; it may leave out its own host.
    static func ranges(_ reply: RedisReply, from asked: Address) -> [Range]? {
        guard case .array(let parts) = reply, parts.count <= Int(HashSlot.count) else { return nil }
        var ranges: [Range] = []
        for part in parts {
            guard case .array(let fields) = part, fields.count >= 3, case .integer(let first) = fields[0],
                case .integer(let last) = fields[1], let first = UInt16(exactly: first),
                let last = UInt16(exactly: last), first <= last, last < HashSlot.count,
                let master = address(fields[2], from: asked)
            else { return nil }
            ranges.append(Range(slots: first...last, master: master))
        }
        return ranges
    }

    /// The address of a node in such a reply.
    static func address(_ node: RedisReply, from asked: Address) -> Address? {
        guard case .array(let fields) = node, fields.count >= 2, case .integer(let port) = fields[1],
            let port = UInt16(exactly: port), port > 0
        else { return nil }
        var host: String?
        switch fields[0] {
        case .bytes(let bytes):
            guard let text = String(validating: bytes, as: UTF8.self), RedisRedirect.isHost(text) else { return nil }
            host = text.isEmpty || text == "?" ? nil : text
        case .nothing: break
        default: return nil
        }
        return RedisRedirect(isTemporary: false, slot: 0, host: host, port: port).address(from: asked)
    }
}
