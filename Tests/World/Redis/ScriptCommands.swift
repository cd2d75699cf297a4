extension CommandRule {
    /// Commands that run scripts.
    static let scriptCommands = [
        CommandRule("eval", -3, .noScript, keys: .counted) { model, call throws(CommandError) in
            let source = call.arguments[1]
            let digest = ScriptEngine.digest(of: source)
            let keys = try keyCount(call)
            try model.engine.compile(source, digest)
            model.scripts.insert(digest)
            return run(digest, keys, model, call)
        },
        CommandRule("evalsha", -3, .noScript, keys: .counted) { model, call throws(CommandError) in
            let digest = RedisKey(Array(call.arguments[1].lowercased.utf8))
            let keys = try keyCount(call)
            guard model.scripts.contains(digest) else {
                throw CommandError("NOSCRIPT No matching script. Please use EVAL.")
            }
            return run(digest, keys, model, call)
        },
        CommandRule("script|load", 3, [.noScript, .stale], keys: .none) { model, call throws(CommandError) in
            let digest = ScriptEngine.digest(of: call.arguments[2])
            try model.engine.compile(call.arguments[2], digest)
            model.scripts.insert(digest)
            return .bytes(digest.bytes)
        },
    ]

    private static func keyCount(_ call: CommandCall) throws(CommandError) -> Int {
        guard let count = call.arguments[2].integer else { throw .notAnInteger }
        guard count <= call.arguments.count - 3 else {
            throw CommandError("ERR Number of keys can't be greater than number of args")
        }
        guard count >= 0 else { throw CommandError("ERR Number of keys can't be negative") }
        return Int(count)
    }

    private static func run(_ digest: RedisKey, _ keys: Int, _ model: RedisModel, _ call: CommandCall) -> Reply {
        let rest = call.arguments.dropFirst(3)
        return model.engine.run(
            digest, keys: rest.prefix(keys), arguments: rest.dropFirst(keys), on: model, of: call.peer)
    }
}
