/// A command with what its execution needs.
struct CommandCall {
    let arguments: [[UInt8]]
    /// The client; that of the script, in one.
    let peer: RedisPeer

    /// The key of a command that has one, or the first one.
    var key: RedisKey { RedisKey(arguments[1]) }
}

/// What a command may be, as `COMMAND INFO` says it.
struct CommandFlags: OptionSet {
    let rawValue: UInt16

    static let write = CommandFlags(rawValue: 1)
    /// Refused without memory.
    static let needsMemory = CommandFlags(rawValue: 2)
    /// Executed while the server loads its data.
    static let loading = CommandFlags(rawValue: 4)
    /// Executed by a replica without its master.
    static let stale = CommandFlags(rawValue: 8)
    static let noScript = CommandFlags(rawValue: 16)
    /// Executed while a script runs.
    static let allowsBusy = CommandFlags(rawValue: 32)
    static let noAuthentication = CommandFlags(rawValue: 64)
    /// Executed for a client that has subscribed.
    static let subscribed = CommandFlags(rawValue: 128)
}

/// A command that the model knows: what the gateway uses.
struct CommandRule: Sendable {
    typealias Body = @Sendable (RedisModel, CommandCall) throws(CommandError) -> Reply?

    /// Which arguments are keys.
    enum Keys { case none, first, all, counted }
    enum Site { case data, sentinel, both }

    let name: String
    /// How many words it has, its name included; negative for at least so many.
    let arity: Int
    let flags: CommandFlags
    let keys: Keys
    let site: Site
    /// Without a reply the client gets one later, or has got several.
    let body: Body

    init(
        _ name: String, _ arity: Int, _ flags: CommandFlags = [], keys: Keys = .first, in site: Site = .data,
        _ body: @escaping Body
    ) {
        self.name = name
        self.arity = arity
        self.flags = flags
        self.keys = keys
        self.site = site
        self.body = body
    }

    func accepts(_ count: Int) -> Bool { arity < 0 ? count >= -arity : count == arity }

    func keys(of arguments: [[UInt8]]) -> [RedisKey] {
        switch keys {
        case .none: return []
        case .first: return [RedisKey(arguments[1])]
        case .all: return arguments.dropFirst().map { RedisKey($0) }
        case .counted:
            guard let count = arguments[2].integer, count >= 0, count <= arguments.count - 3 else { return [] }
            return arguments[3..<(3 + Int(count))].map { RedisKey($0) }
        }
    }
}

extension CommandRule {
    private static let table: [String: CommandRule] = {
        let all =
            keyCommands + stringCommands + hashCommands + sortedSetCommands + scriptCommands + serverCommands
            + replicationCommands + clusterCommands + sentinelCommands
        return Dictionary(all.map { ($0.name, $0) }) { first, _ in first }
    }()
    /// Commands whose second word is part of their name.
    private static let containers: Set<String> = ["client", "script", "cluster", "sentinel"]

    /// The rule of a command.
    /// - Parameter isUnknown: whether the model does not have it, though Redis may.
    static func find(
        _ arguments: [[UInt8]], inSentinel isSentinel: Bool, _ isUnknown: inout Bool
    ) throws(CommandError) -> CommandRule {
        var name = arguments[0].lowercased
        let isContainer = containers.contains(name) && (isSentinel || name != "sentinel")
        if isContainer {
            guard arguments.count > 1 else { throw .argumentCount(name) }
            name += "|" + arguments[1].lowercased
        }
        guard let rule = table[name], rule.site == .both || (rule.site == .sentinel) == isSentinel else {
            isUnknown = true
            if isContainer {
                throw CommandError(
                    "ERR unknown subcommand '\(arguments[1].text)'. Try \(arguments[0].text.uppercased()) HELP.")
            }
            let shown = arguments.dropFirst().map { "'\($0.text)' " }.joined()
            throw CommandError("ERR unknown command '\(arguments[0].text)', with args beginning with: \(shown)")
        }
        guard rule.accepts(arguments.count) else { throw .argumentCount(rule.name) }
        return rule
    }
}
