package import MartletCore

extension ErrorCode {
    package static let redisNotConnected: ErrorCode = "redis.not_connected"
    package static let redisStopped: ErrorCode = "redis.stopped"
    package static let redisOverloaded: ErrorCode = "redis.overloaded"
    package static let redisCommandInvalid: ErrorCode = "redis.command_invalid"
    package static let redisTimeout: ErrorCode = "redis.timeout"
    package static let redisConnectTimeout: ErrorCode = "redis.connect_timeout"
    package static let redisConnectionLost: ErrorCode = "redis.connection_lost"
    package static let redisNameUnknown: ErrorCode = "redis.name_unknown"
    package static let redisReplyMalformed: ErrorCode = "redis.reply_malformed"
    package static let redisReplyTooLarge: ErrorCode = "redis.reply_too_large"
    package static let redisReplyUnexpected: ErrorCode = "redis.reply_unexpected"
    package static let redisRefused: ErrorCode = "redis.command_refused"
    package static let redisReadOnly: ErrorCode = "redis.read_only"
    package static let redisLoading: ErrorCode = "redis.loading"
    package static let redisOutOfMemory: ErrorCode = "redis.out_of_memory"
    package static let redisMoved: ErrorCode = "redis.moved"
    package static let redisClusterDown: ErrorCode = "redis.cluster_down"
    package static let redisMasterDown: ErrorCode = "redis.master_down"
    package static let redisAuthRequired: ErrorCode = "redis.auth_required"
    package static let redisWrongPassword: ErrorCode = "redis.wrong_password"
    package static let redisAuthRefused: ErrorCode = "redis.auth_refused"
    package static let redisDatabaseRefused: ErrorCode = "redis.database_refused"
    package static let redisNotPermitted: ErrorCode = "redis.not_permitted"
    package static let redisBusy: ErrorCode = "redis.busy"
    package static let redisTryAgain: ErrorCode = "redis.try_again"
    package static let redisMisconfigured: ErrorCode = "redis.misconfigured"
    package static let redisNoReplicas: ErrorCode = "redis.no_replicas"
    package static let redisProtectedMode: ErrorCode = "redis.protected_mode"
    package static let redisTooManyRedirects: ErrorCode = "redis.too_many_redirects"
    package static let redisNotCluster: ErrorCode = "redis.not_a_cluster"
    package static let redisMasterUnknown: ErrorCode = "redis.master_unknown"
    package static let redisTooManyClients: ErrorCode = "redis.too_many_clients"
    package static let redisCommandUnknown: ErrorCode = "redis.command_unknown"
}

/// Classifies error replies; those about the server rather than the command count as an outage.
enum RedisErrorReply {
    private static let outages: [String: (ErrorCode, String)] = [
        "READONLY": (.redisReadOnly, "Redis is a read-only replica: store.url must name the master"),
        "LOADING": (.redisLoading, "Redis is loading its data: it accepts commands when it has"),
        "OOM": (.redisOutOfMemory, "Redis has reached its memory limit: raise maxmemory, or remove what fills it"),
        "MOVED": (.redisMoved, "Redis runs in cluster mode: the store URL must start with redis+cluster://"),
        "ASK": (.redisMoved, "Redis runs in cluster mode: the store URL must start with redis+cluster://"),
        "CLUSTERDOWN": (
            .redisClusterDown,
            "Redis cluster down: 'redis-cli --cluster check' names the nodes or slots that are missing"
        ),
        "MASTERDOWN": (.redisMasterDown, "Redis replica has lost its master: see 'INFO replication' there"),
        "NOAUTH": (.redisAuthRequired, "Redis requires a password"),
        "WRONGPASS": (.redisWrongPassword, "Redis rejected the user name or password"),
        "NOPERM": (.redisNotPermitted, "Redis user lacks permission: 'martlet check --online' names the right"),
        "BUSY": (.redisBusy, "Redis is busy running a script: SCRIPT KILL ends it"),
        "TRYAGAIN": (.redisTryAgain, "Redis is migrating the key"),
        "MISCONF": (
            .redisMisconfigured, "Redis rejects writes because it cannot save: see its log, and the space on its disk"
        ),
        "NOREPLICAS": (
            .redisNoReplicas, "Redis rejects writes because it has too few replicas: see its min-replicas-to-write"
        ),
        "DENIED": (.redisProtectedMode, "Redis runs in protected mode: it needs a password or a bind address"),
        "UNKNOWNCOMMAND": (
            .redisCommandUnknown,
            "the server does not know a command: it must be Redis 6.2 or newer and no sentinel, which "
                + "redis+sentinel:// is for"
        ),
    ]

    /// The outage that an error reply indicates; `nil` if the error concerns the command alone.
    static func outage(_ kind: String) -> StoreError? {
        outages[kind].map { StoreError(code: $0.0, message: $0.1) }
    }

    /// The first word of an error reply; the rest is dropped because it may contain keys and values.
    static func kind(of text: [UInt8]) -> String {
        for (start, kind) in sentences where text.starts(with: start.utf8) { return kind }
        return outageInScript(text) ?? word(text[...]) ?? "ERR"
    }

    /// Errors that are recognized by their text.
    private static let sentences = [
        ("ERR max number of clients", "MAXCLIENTS"), ("ERR invalid password", "WRONGPASS"),
        ("ERR unknown command", "UNKNOWNCOMMAND"),
        ("ERR The user executing the script can't", "NOPERM"),
        // Since Redis 7.2, and Valkey.
        ("ERR ACL failure in script", "NOPERM"),
        // A key of the script is being moved to another node.
        ("ERR Script attempted to access a non local key", "TRYAGAIN"),
    ]

    /// Before Redis 7, the error of a command in a script follows the script's own error: `ERR Error running script
    /// (call to f_…): @user_script:1: @user_script: 1: -OOM command not allowed …`.
    private static func outageInScript(_ text: [UInt8]) -> String? {
        guard text.starts(with: "ERR Error running script".utf8) else { return nil }
        let end = String(decoding: text.suffix(200), as: UTF8.self)
        if end.contains("attempted to access a non local key") { return "TRYAGAIN" }
        if end.contains(": The user executing the script can't") { return "NOPERM" }
        let separator = Array(": -".utf8)
        for start in text.indices.dropLast(separator.count) where text[start...].starts(with: separator) {
            if let kind = word(text[(start + separator.count)...]),
                outages[kind] != nil || kind == "WRONGTYPE"
            {
                return kind
            }
        }
        // The error of a command that was executed has no sign.
        return end.contains(": WRONGTYPE ") ? "WRONGTYPE" : nil
    }

    private static func word(_ text: ArraySlice<UInt8>) -> String? {
        let word = text.prefix { $0 != 0x20 }.prefix(20)
        guard !word.isEmpty, word.allSatisfy({ (0x41...0x5A).contains($0) }) else { return nil }
        return String(decoding: word, as: UTF8.self)
    }

    /// Errors by which a server rejects credentials, permissions or the database.
    static let accessErrors: Set<ErrorCode> = [
        .redisAuthRequired, .redisWrongPassword, .redisAuthRefused, .redisDatabaseRefused, .redisNotPermitted,
    ]

    static func storeError(_ kind: String) -> StoreError {
        if let outage = outage(kind) { return outage }
        if kind == "MAXCLIENTS" {
            return StoreError(
                code: .redisTooManyClients, message: "Redis has reached its client limit: raise maxclients")
        }
        return StoreError(code: .redisRefused, message: "Redis rejected the command (\(kind))")
    }
}

extension RedisErrorReply {
    /// Errors by which a server says that it is up and does not do what it is for.
    private static let states: Set<ErrorCode> = Set(outages.values.map(\.0))
        .union([.redisTooManyClients, .redisRefused, .redisAuthRefused, .redisDatabaseRefused])
        // Ends by itself, soon.
        .subtracting([.redisTryAgain])

    /// Whether a server has rejected the command, or the connection that it needs, for what is wrong with the server.
    static func saysState(_ error: StoreError) -> Bool { states.contains(error.code) }

    /// Errors that end when another server gets the keys.
    static let ofOneServer: Set<ErrorCode> = [.redisReadOnly, .redisClusterDown, .redisMasterDown, .redisMoved]

    /// Errors that a server whose connection has been accepted no longer has.
    static let beforeConnecting: Set<ErrorCode> = [
        .redisLoading, .redisTooManyClients, .redisAuthRequired, .redisMoved,
    ]
}

extension StoreError {
    /// Whether the server is reachable but rejects the credentials, permissions or database of the URL.
    package var isAccessDenied: Bool { RedisErrorReply.accessErrors.contains(code) }
}
