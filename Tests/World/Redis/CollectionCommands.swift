internal import CLua

extension CommandRule {
    /// Commands for hashes.
    static let hashCommands = [
        CommandRule("hset", -4, [.write, .needsMemory]) { model, call throws(CommandError) in
            guard call.arguments.count.isMultiple(of: 2) else { throw .argumentCount("hset") }
            return try model.data.update(call.key, orCreate: .hash(RedisHash())) { value in
                value.updateHash { hash in
                    let names = stride(from: 2, to: call.arguments.count, by: 2)
                    return .count(names.count { hash.set(call.arguments[$0], call.arguments[$0 + 1]) })
                }
            }
        },
        CommandRule("hget", 3) { model, call throws(CommandError) in
            try model.data.hash(call.key)?[call.arguments[2]].map { .bytes($0) } ?? .nothing
        },
        CommandRule("hmget", -3) { model, call throws(CommandError) in
            let hash = try model.data.hash(call.key)
            return .array(call.arguments.dropFirst(2).map { hash?[$0].map { .bytes($0) } ?? .nothing })
        },
        CommandRule("hgetall", 2) { model, call throws(CommandError) in
            .array(try model.data.hash(call.key)?.fields.flatMap { [.bytes($0.name), .bytes($0.value)] } ?? [])
        },
        CommandRule("hvals", 2) { model, call throws(CommandError) in
            .array(try model.data.hash(call.key)?.fields.map { .bytes($0.value) } ?? [])
        },
        CommandRule("hdel", -3, .write) { model, call throws(CommandError) in
            guard try model.data.hash(call.key) != nil else { return .integer(0) }
            return try model.data.update(call.key, orCreate: .hash(RedisHash())) { value in
                value.updateHash { hash in .count(call.arguments.dropFirst(2).count { hash.remove($0) }) }
            }
        },
    ]

    /// Commands for sorted sets.
    static let sortedSetCommands = [
        CommandRule("zadd", -4, [.write, .needsMemory]) { model, call throws(CommandError) in
            guard call.arguments.count.isMultiple(of: 2) else {
                model.noteUnknown("zadd \(call.arguments[2].text)")
                throw .syntax
            }
            var members: [(name: [UInt8], score: Double)] = []
            for index in stride(from: 2, to: call.arguments.count, by: 2) {
                guard let score = Double(call.arguments[index].text), !score.isNaN else {
                    // An option, or no number.
                    model.noteUnknown("zadd \(call.arguments[index].text)")
                    throw .notAFloat
                }
                members.append((call.arguments[index + 1], score))
            }
            return try model.data.update(call.key, orCreate: .sortedSet(RedisSortedSet())) { value in
                value.updateSortedSet { set in .count(members.count { set.set($0.name, $0.score) }) }
            }
        },
        CommandRule("zrem", -3, .write) { model, call throws(CommandError) in
            guard try model.data.sortedSet(call.key) != nil else { return .integer(0) }
            return try model.data.update(call.key, orCreate: .sortedSet(RedisSortedSet())) { value in
                value.updateSortedSet { set in .count(call.arguments.dropFirst(2).count { set.remove($0) }) }
            }
        },
        CommandRule("zrange", -4) { model, call throws(CommandError) in try range(model, call) },
    ]

    /// By indices, with the option `WITHSCORES`.
    private static func range(_ model: RedisModel, _ call: CommandCall) throws(CommandError) -> Reply {
        let options = call.arguments.dropFirst(4).map(\.lowercased)
        if let other = options.first(where: { $0 != "withscores" }) {
            model.noteUnknown("zrange \(other)")
            throw .syntax
        }
        guard let first = call.arguments[2].integer, let last = call.arguments[3].integer else { throw .notAnInteger }
        let members = try model.data.sortedSet(call.key)?.members ?? []
        func index(_ number: Int64) -> Int64 { number < 0 ? max(number, -Int64.max) + Int64(members.count) : number }
        let (start, end) = (max(index(first), 0), min(index(last), Int64(members.count) - 1))
        guard start <= end else { return .array([]) }
        return .array(
            members[Int(start)...Int(end)].flatMap { member -> [Reply] in
                let name = Reply.bytes(member.name)
                return options.isEmpty ? [name] : [name, .bytes(member.score.redisText)]
            })
    }
}

extension Double {
    /// As Redis 7.0 writes a number.
    var redisText: [UInt8] {
        var text = [CChar](repeating: 0, count: 32)
        let count = unsafe text.withUnsafeMutableBufferPointer { buffer in
            unsafe martlet_lua_number(self, buffer.baseAddress, buffer.count)
        }
        return text.prefix(Int(count)).map { UInt8(bitPattern: $0) }
    }
}
