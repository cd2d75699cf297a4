internal import MartletCore
internal import MartletCrypto

/// Which nodes of a cluster have which slots: what one of them knows, which may be outdated.
package struct RedisSlots: Equatable, Sendable {
    /// Slots of one master, and its replicas.
    package struct Range: Equatable, Sendable {
        var slots: ClosedRange<UInt16>
        var master: RedisAddress
        var replicas: [RedisAddress]
    }

    /// A slot whose keys are being moved.
    struct Move: Equatable {
        let source: RedisAddress
        let target: RedisAddress
    }

    package internal(set) var ranges: [Range]
    var moves: [UInt16: Move] = [:]

    /// All slots, in equal shares.
    /// - Parameter shards: a master and its replicas, each.
    package init(dividedAmong shards: [[RedisAddress]]) {
        let share = 16_384 / max(shards.count, 1)
        ranges = shards.enumerated().compactMap { index, nodes in
            guard let master = nodes.first else { return nil }
            let last = index == shards.count - 1 ? 16_383 : (index + 1) * share - 1
            return Range(
                slots: UInt16(index * share)...UInt16(last), master: master, replicas: Array(nodes.dropFirst()))
        }
    }

    func master(of slot: UInt16) -> RedisAddress? { ranges.first { $0.slots.contains(slot) }?.master }

    /// Gives all slots of a master to one of its replicas.
    mutating func replace(_ old: RedisAddress, by new: RedisAddress) {
        for index in ranges.indices where ranges[index].master == old {
            ranges[index].replicas.removeAll { $0 == new }
            ranges[index].master = new
        }
    }

    /// Lists a replica of a master, and nowhere else.
    mutating func add(_ replica: RedisAddress, of master: RedisAddress) {
        for index in ranges.indices {
            ranges[index].replicas.removeAll { $0 == replica }
            if ranges[index].master == master { ranges[index].replicas.append(replica) }
        }
    }

    /// Gives one slot to another master.
    mutating func assign(_ slot: UInt16, to master: RedisAddress) {
        let replicas = ranges.first { $0.master == master }?.replicas ?? []
        ranges = ranges.flatMap { range -> [Range] in
            guard range.slots.contains(slot) else { return [range] }
            var parts = [Range(slots: slot...slot, master: master, replicas: replicas)]
            if range.slots.lowerBound < slot {
                var part = range
                part.slots = range.slots.lowerBound...(slot - 1)
                parts.insert(part, at: 0)
            }
            if slot < range.slots.upperBound {
                var part = range
                part.slots = (slot + 1)...range.slots.upperBound
                parts.append(part)
            }
            return parts
        }
        moves[slot] = nil
    }
}

extension RedisAddress {
    /// What a cluster calls the node.
    var nodeID: String { Hexadecimal.text(SHA1.digest(Array("\(host):\(port)".utf8))) }
}

/// Where a command is to be sent instead.
private enum Redirection {
    case here, down, unassigned, crossSlot, tryAgain
    case moved(UInt16, RedisAddress)
    case ask(UInt16, RedisAddress)
}

extension RedisModel {
    /// Refuses a command for keys of other nodes.
    func checkSlot(_ rule: CommandRule, _ call: CommandCall) throws(CommandError) {
        switch redirection(rule, call) {
        case .here: return
        case .down: throw CommandError("CLUSTERDOWN The cluster is down")
        case .unassigned: throw CommandError("CLUSTERDOWN Hash slot not served")
        case .crossSlot: throw CommandError("CROSSSLOT Keys in request don't hash to the same slot")
        case .tryAgain: throw CommandError("TRYAGAIN Multiple keys request during rehashing of slot")
        case .moved(let slot, let node): throw CommandError("MOVED \(slot) \(node.host):\(node.port)")
        case .ask(let slot, let node): throw CommandError("ASK \(slot) \(node.host):\(node.port)")
        }
    }

    func checkSlotInScript(_ rule: CommandRule, _ call: CommandCall) throws(CommandError) {
        switch redirection(rule, call) {
        case .here: return
        case .down: throw CommandError("ERR Script attempted to execute a command while the cluster is down")
        default: throw CommandError("ERR Script attempted to access a non local key in a cluster node")
        }
    }

    /// The rules of `getNodeByQuery`.
    private func redirection(_ rule: CommandRule, _ call: CommandCall) -> Redirection {
        guard let slots else { return .here }
        let keys = rule.keys(of: call.arguments)
        guard let slot = keys.first?.slot else { return .here }
        guard let owner = slots.master(of: slot) else { return .unassigned }
        guard keys.allSatisfy({ $0.slot == slot }) else { return .crossSlot }
        guard !conditions.contains(.clusterDown) else { return .down }
        let missing = keys.count { data.entry($0) == nil }
        let move = slots.moves[slot]
        if let move, move.source == address, owner == address, missing > 0 {
            return missing < keys.count ? .tryAgain : .ask(slot, move.target)
        }
        if let move, move.target == address, call.peer.isAsking {
            return Set(keys).count > 1 && missing > 0 ? .tryAgain : .here
        }
        if owner == address { return .here }
        let isRead = !rule.flags.contains(.write)
        if isReplica, call.peer.isReadOnly, isRead, replication.masterAddress == owner { return .here }
        return .moved(slot, owner)
    }
}

extension CommandRule {
    /// Commands of a cluster.
    static let clusterCommands = [
        CommandRule("cluster|slots", 2, .stale, keys: .none) { model, _ throws(CommandError) in
            let slots = try cluster(model)
            return .array(
                slots.ranges.map { range in
                    let nodes = ([range.master] + range.replicas).map { node in
                        Reply.array([.text(node.host), .count(node.port), .text(node.nodeID), .array([])])
                    }
                    let bounds = [range.slots.lowerBound, range.slots.upperBound].map { Reply.count(Int($0)) }
                    return .array(bounds + nodes)
                })
        },
        CommandRule("asking", 1, keys: .none) { model, call throws(CommandError) in
            _ = try cluster(model)
            call.peer.isAsking = true
            return .ok
        },
        CommandRule("readonly", 1, [.loading, .stale], keys: .none) { model, call throws(CommandError) in
            _ = try cluster(model)
            call.peer.isReadOnly = true
            return .ok
        },
    ]

    private static func cluster(_ model: RedisModel) throws(CommandError) -> RedisSlots {
        guard let slots = model.slots else { throw CommandError("ERR This instance has cluster support disabled") }
        return slots
    }
}
