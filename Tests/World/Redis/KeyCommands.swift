extension CommandRule {
    /// Commands for keys of every type.
    static let keyCommands = [
        CommandRule("del", -2, .write, keys: .all) { model, call in
            .count(call.arguments.dropFirst().count { model.data.remove(RedisKey($0)) })
        },
        CommandRule("exists", -2, keys: .all) { model, call in
            .count(call.arguments.dropFirst().count { model.data.entry(RedisKey($0)) != nil })
        },
        CommandRule("type", 2) { model, call in .status(model.data.entry(call.key)?.value.type ?? "none") },
        CommandRule("pttl", 2) { model, call in
            guard let entry = model.data.entry(call.key) else { return .integer(-2) }
            return .integer(entry.expiry.map { $0 - model.data.now } ?? -1)
        },
        CommandRule("pexpire", -3, .write) { model, call throws(CommandError) in
            try expire(model, call, "pexpire", from: model.data.now)
        },
        CommandRule("pexpireat", -3, .write) { model, call throws(CommandError) in
            try expire(model, call, "pexpireat", from: 0)
        },
        CommandRule("scan", -2, keys: .none) { model, call throws(CommandError) in try scan(model, call) },
    ]

    private static func expire(
        _ model: RedisModel, _ call: CommandCall, _ name: String, from start: Int64
    ) throws(CommandError) -> Reply {
        if call.arguments.count > 3 {
            let option = call.arguments[3].text
            model.noteUnknown("\(name) \(option)")
            throw CommandError("ERR Unsupported option \(option)")
        }
        guard let number = call.arguments[2].integer else { throw .notAnInteger }
        let (expiry, overflow) = start.addingReportingOverflow(number)
        guard !overflow else { throw .expiryTime(name) }
        return .integer(model.data.setExpiry(call.key, expiry) ? 1 : 0)
    }

    /// Names in the order of their positions, so that a cursor means the same after others have come and gone.
    private static func scan(_ model: RedisModel, _ call: CommandCall) throws(CommandError) -> Reply {
        guard let cursor = UInt64(call.arguments[1].text) else { throw CommandError("ERR invalid cursor") }
        var (count, pattern) = (Int64(10), Array("*".utf8))
        for index in stride(from: 2, to: call.arguments.count, by: 2) {
            let name = call.arguments[index].lowercased
            guard index + 1 < call.arguments.count else { throw .syntax }
            switch name {
            case "match": pattern = call.arguments[index + 1]
            case "count":
                guard let number = call.arguments[index + 1].integer else { throw .notAnInteger }
                guard number > 0 else { throw .syntax }
                count = number
            default:
                model.noteUnknown("scan \(name)")
                throw .syntax
            }
        }
        let due = model.data.keys.map { (position: $0.position, key: $0) }.filter { $0.position >= cursor }
            .sorted { ($0.position, $0.key) < ($1.position, $1.key) }
        var end = Int(min(count, Int64(due.count)))
        // All names of one position are returned together.
        while end > 0, end < due.count, due[end].position == due[end - 1].position { end += 1 }
        let next = due.dropFirst(end).first?.position ?? 0
        let found = due.prefix(end).filter { $0.key.matches(pattern) }
        return .array([.text(String(next)), .array(found.map { .bytes($0.key.bytes) })])
    }

    /// Commands for strings.
    static let stringCommands = [
        CommandRule("get", 2) { model, call throws(CommandError) in
            try model.data.string(call.key).map { .bytes($0) } ?? .nothing
        },
        CommandRule("getdel", 2, .write) { model, call throws(CommandError) in
            guard let value = try model.data.string(call.key) else { return .nothing }
            model.data.remove(call.key)
            return .bytes(value)
        },
        CommandRule("strlen", 2) { model, call throws(CommandError) in
            .count(try model.data.string(call.key)?.count ?? 0)
        },
        CommandRule("set", -3, [.write, .needsMemory]) { model, call throws(CommandError) in try set(model, call) },
        CommandRule("incr", 2, [.write, .needsMemory]) { model, call throws(CommandError) in try add(1, model, call) },
        CommandRule("decr", 2, [.write, .needsMemory]) { model, call throws(CommandError) in try add(-1, model, call) },
    ]

    /// With the options `PX` and `NX`.
    private static func set(_ model: RedisModel, _ call: CommandCall) throws(CommandError) -> Reply {
        var (isOnlyNew, lifetime) = (false, [UInt8]?.none)
        var index = 3
        while index < call.arguments.count {
            let name = call.arguments[index].lowercased
            index += 1
            switch name {
            case "nx": isOnlyNew = true
            case "px":
                guard index < call.arguments.count else { throw .syntax }
                lifetime = call.arguments[index]
                index += 1
            default:
                model.noteUnknown("set \(name)")
                throw .syntax
            }
        }
        var expiry: Int64?
        if let lifetime {
            guard let number = lifetime.integer else { throw .notAnInteger }
            let (sum, overflow) = model.data.now.addingReportingOverflow(number)
            guard number > 0, !overflow else { throw .expiryTime("set") }
            expiry = sum
        }
        if isOnlyNew, model.data.entry(call.key) != nil { return .nothing }
        model.data.set(call.key, .string(call.arguments[2]), expiry: expiry)
        return .ok
    }

    private static func add(_ step: Int64, _ model: RedisModel, _ call: CommandCall) throws(CommandError) -> Reply {
        guard let number = (try model.data.string(call.key) ?? Array("0".utf8)).integer else { throw .notAnInteger }
        let (sum, overflow) = number.addingReportingOverflow(step)
        guard !overflow else { throw CommandError("ERR increment or decrement would overflow") }
        model.data.set(call.key, .string(Array(String(sum).utf8)), expiry: model.data.entry(call.key)?.expiry)
        return .integer(sum)
    }
}
