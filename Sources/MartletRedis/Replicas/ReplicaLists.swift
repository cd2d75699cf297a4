/// Reads which replicas there are from replies of servers; what is malformed is left out.
enum ReplicaLists {
    typealias Address = RedisURL.Address

    /// The replicas of each master, from the reply of a node to `CLUSTER SLOTS`.
    static func ofSlots(_ reply: RedisReply, from asked: Address) -> [Address: [Address]] {
        guard case .array(let parts) = reply, parts.count <= Int(HashSlot.count) else { return [:] }
        var lists: [Address: [Address]] = [:]
        for part in parts {
            guard case .array(let fields) = part, fields.count >= 3,
                let master = SlotMap.address(fields[2], from: asked)
            else { continue }
            for field in fields[3...].prefix(ReplicaReads.knownPerMaster) {
                guard let replica = SlotMap.address(field, from: asked) else { continue }
                if lists[master]?.contains(replica) != true { lists[master, default: []].append(replica) }
            }
            if lists[master] == nil { lists[master] = [] }
        }
        return lists
    }

    /// The replicas that a sentinel knows and can reach, from its reply to `SENTINEL REPLICAS`.
    static func ofSentinel(_ reply: RedisReply) -> [Address]? {
        guard case .array(let parts) = reply else { return nil }
        return parts.prefix(SlotMap.maximumNodes).compactMap { part in
            guard let fields = SentinelFields(part) else { return nil }
            let flags = fields["flags"]?.split(separator: ",") ?? []
            let isAway = ["s_down", "o_down", "disconnected"].contains { flags.contains($0[...]) }
            return isAway ? nil : fields.address
        }
    }

    /// The replicas that receive from a master, from its reply to `ROLE`; `nil` if it is not a master.
    static func ofMaster(_ reply: RedisReply) -> [Address]? {
        guard case .array(let parts) = reply, parts.count == 3, parts[0] == .bytes(Array("master".utf8)),
            case .array(let list) = parts[2]
        else { return nil }
        return list.prefix(SlotMap.maximumNodes).compactMap { replica in
            guard case .array(let fields) = replica, fields.count >= 2, case .bytes(let host) = fields[0],
                case .bytes(let port) = fields[1], let name = String(validating: host, as: UTF8.self), !name.isEmpty,
                name != "?", RedisRedirect.isHost(name), let number = UInt16(digits: port), number > 0
            else { return nil }
            return .tcp(host: name, port: number)
        }
    }

    /// Whether a server says in its reply to `ROLE` that it is a replica and receives from its master.
    static func isLinked(_ reply: RedisReply) -> Bool {
        guard case .array(let parts) = reply, parts.count >= 4 else { return false }
        return parts[0] == .bytes(Array("slave".utf8)) && parts[3] == .bytes(Array("connected".utf8))
    }
}
