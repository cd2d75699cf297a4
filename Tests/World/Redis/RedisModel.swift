/// Where a server is.
package struct RedisAddress: Hashable, Sendable {
    package let host: String
    package let port: Int

    /// - Parameter host: as clients get it in replies.
    package init(host: String, port: Int) {
        self.host = host
        self.port = port
    }
}

/// What is wrong with a server.
package struct RedisConditions: OptionSet, Sendable {
    package let rawValue: UInt8

    package init(rawValue: UInt8) { self.rawValue = rawValue }

    /// It reads its data: `LOADING`.
    package static let loading = RedisConditions(rawValue: 1)
    /// Another one's script runs: `BUSY`.
    package static let busy = RedisConditions(rawValue: 2)
    /// Its memory is full: `OOM`.
    package static let outOfMemory = RedisConditions(rawValue: 4)
    /// It has fewer replicas than `min-replicas-to-write`: `NOREPLICAS`.
    package static let tooFewReplicas = RedisConditions(rawValue: 8)
    /// It cannot save: `MISCONF`.
    package static let cannotSave = RedisConditions(rawValue: 16)
    /// Where it is a replica, it refuses reads while its master is lost: `MASTERDOWN`.
    package static let refusesStaleReads = RedisConditions(rawValue: 32)
    /// It is a node of a cluster that does not work: `CLUSTERDOWN`.
    package static let clusterDown = RedisConditions(rawValue: 64)
}

/// A model of a Redis 7.0 server, or of a sentinel: commands in, replies out, without a clock, threads, sockets or chance
/// of its own.
///
/// It knows the commands and options that the gateway uses. Any other one gets Redis' own error, and is noted in
/// ``unknownCommands``.
package final class RedisModel {
    package let address: RedisAddress
    /// The keys; a change that no client makes is made by ``change(_:)``.
    package internal(set) var data = RedisData()
    package var conditions: RedisConditions = []
    /// What clients must say first; `nil` if nothing.
    package var password: String?
    /// Commands that clients lack the right for, in lowercase, as `client|setname`.
    package var deniedCommands: Set<String> = []
    /// What a new client gets instead of replies, such as `ERR max number of clients reached`.
    package var connectionError: String?
    /// How the server removes keys when its memory is full, as `INFO memory` says it.
    package var evictionPolicy = "noeviction"
    /// Commands and options that are not modeled, in the order in which they came.
    package private(set) var unknownCommands: [String] = []

    let engine: ScriptEngine
    private let clock: () -> Int64
    private(set) var peers: [RedisPeer] = []
    /// The digests of the scripts that clients have sent.
    var scripts: Set<RedisKey> = []
    var subscribers: [RedisKey: [RedisPeer]] = [:]
    var replication = Replication()
    /// The slots, as this server knows them, if it is a node of a cluster.
    package var slots: RedisSlots?
    /// What it knows, if it is a sentinel.
    package var sentinel: RedisSentinelView?
    /// Gives messages to the other nodes of a cluster.
    var broadcast: (([UInt8], [UInt8]) -> Void)?

    /// An empty master.
    /// - Parameters:
    ///   - engine: may be shared by servers of one thread.
    ///   - clock: milliseconds since 1970.
    package init(at address: RedisAddress, engine: ScriptEngine, clock: @escaping () -> Int64) {
        self.address = address
        self.engine = engine
        self.clock = clock
    }

    var time: Int64 { clock() }

    /// A new connection of a client.
    package func connect() -> RedisPeer {
        let peer = RedisPeer(of: self)
        peers.append(peer)
        if let connectionError { peer.end(with: CommandError(connectionError)) }
        return peer
    }

    /// The digest by which clients name a script.
    package static func scriptDigest(_ source: [UInt8]) -> String { ScriptEngine.digest(of: source).bytes.text }

    /// Ends the connections of all clients.
    package func closePeers() { for peer in peers { peer.end(with: nil) } }

    /// Ends and starts again: clients are gone, and scripts are forgotten.
    /// - Parameter keepsData: whether everything was saved; nothing otherwise. Replicas then have the same.
    package func restart(keepsData: Bool = true) {
        closePeers()
        scripts = []
        guard !keepsData else { return }
        data = RedisData()
        for link in replication.links { link.resynchronize(with: self) }
    }

    /// Changes keys as a client would.
    package func change<Result>(_ body: (inout RedisData) -> Result) -> Result {
        data.now = time
        defer { commit() }
        return body(&data)
    }

    /// Notes a command or an option that is not modeled.
    func noteUnknown(_ what: String) { unknownCommands.append(what) }

    func remove(_ peer: RedisPeer) {
        peers.removeAll { $0 === peer }
        for channel in peer.channels { subscribers[channel]?.removeAll { $0 === peer } }
        replication.waiting.removeAll { $0 === peer }
    }
}

// MARK: - Executing

extension RedisModel {
    /// Executes a command of a client.
    /// - Returns: `nil` if the reply comes later, or has been written.
    func execute(_ arguments: [[UInt8]], of peer: RedisPeer) -> Reply? {
        data.now = time
        let wasAsking = peer.isAsking
        var reply: Reply?
        do throws(CommandError) {
            let rule = try rule(of: arguments)
            let call = CommandCall(arguments: arguments, peer: peer)
            try admit(rule, call)
            reply = try rule.body(self, call)
        } catch {
            reply = .error(error)
        }
        if wasAsking { peer.isAsking = false }
        if let offset = commit() { peer.lastWrite = offset }
        return reply
    }

    /// Executes a command of a script.
    /// - Parameter hasWritten: whether the script has already written, and goes on if memory is full.
    func execute(_ arguments: [[UInt8]], inScriptOf peer: RedisPeer, _ hasWritten: inout Bool) -> Reply {
        do throws(CommandError) {
            let rule = try ruleInScript(of: arguments)
            let call = CommandCall(arguments: arguments, peer: peer)
            try admitInScript(rule, call, hasWritten: hasWritten)
            if rule.flags.contains(.write) { hasWritten = true }
            try checkSlotInScript(rule, call)
            return try rule.body(self, call) ?? .nothing
        } catch {
            return .error(error)
        }
    }

    private func rule(of arguments: [[UInt8]]) throws(CommandError) -> CommandRule {
        var isUnknown = false
        defer { if isUnknown { noteUnknown(arguments.prefix(2).map(\.text).joined(separator: " ")) } }
        return try CommandRule.find(arguments, inSentinel: sentinel != nil, &isUnknown)
    }

    /// The checks of `processCommand`, in its order.
    private func admit(_ rule: CommandRule, _ call: CommandCall) throws(CommandError) {
        let flags = rule.flags
        if password != nil, !call.peer.isAuthenticated, !flags.contains(.noAuthentication) {
            throw CommandError("NOAUTH Authentication required.")
        }
        if deniedCommands.contains(rule.name) {
            throw CommandError("NOPERM this user has no permissions to run the '\(rule.name)' command")
        }
        try checkSlot(rule, call)
        if conditions.contains(.outOfMemory), flags.contains(.needsMemory) { throw .outOfMemory }
        if flags.contains(.write) || rule.name == "ping" { try checkDisk() }
        if flags.contains(.write) { try checkReplicas() }
        if !call.peer.channels.isEmpty, !flags.contains(.subscribed) {
            throw CommandError(
                "ERR Can't execute '\(rule.name)': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are "
                    + "allowed in this context")
        }
        if isStale, conditions.contains(.refusesStaleReads), !flags.contains(.stale) {
            throw CommandError("MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.")
        }
        if conditions.contains(.loading), !flags.contains(.loading) {
            throw CommandError("LOADING Redis is loading the dataset in memory")
        }
        if conditions.contains(.busy), !flags.contains(.allowsBusy) {
            throw CommandError(
                "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.")
        }
    }

    private func checkDisk() throws(CommandError) {
        if conditions.contains(.cannotSave) { throw .cannotSave }
    }

    private func checkReplicas() throws(CommandError) {
        if isReplica { throw CommandError("READONLY You can't write against a read only replica.") }
        if conditions.contains(.tooFewReplicas) { throw CommandError("NOREPLICAS Not enough good replicas to write.") }
    }

    private func ruleInScript(of arguments: [[UInt8]]) throws(CommandError) -> CommandRule {
        let rule: CommandRule
        do throws(CommandError) {
            rule = try self.rule(of: arguments)
        } catch {
            let isCount = error.text.hasPrefix("ERR wrong number")
            throw CommandError(
                isCount
                    ? "ERR Wrong number of args calling Redis command from script"
                    : "ERR Unknown Redis command called from script")
        }
        guard !rule.flags.contains(.noScript) else {
            throw CommandError("ERR This Redis command is not allowed from script")
        }
        return rule
    }

    /// The checks of `scriptCall`, in its order.
    private func admitInScript(_ rule: CommandRule, _ call: CommandCall, hasWritten: Bool) throws(CommandError) {
        if deniedCommands.contains(rule.name) {
            throw CommandError("ERR The user executing the script can't run this command or subcommand")
        }
        guard rule.flags.contains(.write) else { return }
        // A replica first, unlike outside.
        if !isReplica { try checkDisk() }
        try checkReplicas()
        if conditions.contains(.outOfMemory), rule.flags.contains(.needsMemory), !hasWritten { throw .outOfMemory }
    }
}

extension CommandError {
    fileprivate static let outOfMemory = CommandError("OOM command not allowed when used memory > 'maxmemory'.")
    fileprivate static let cannotSave = CommandError(
        "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk. Commands that "
            + "may modify the data set are disabled, because this instance is configured to report errors during writes "
            + "if RDB snapshotting fails (stop-writes-on-bgsave-error option). Please check the Redis logs for details "
            + "about the RDB error.")
}
