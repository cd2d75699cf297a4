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
    package static let redisTooManyClients: ErrorCode = "redis.too_many_clients"
}

/// Error replies that say something about the server, not about the command: to us they are an outage.
enum RedisFailure {
    private static let outages: [String: (ErrorCode, String)] = [
        "READONLY": (.redisReadOnly, "Redis is a read-only replica"),
        "LOADING": (.redisLoading, "Redis is loading its data"),
        "OOM": (.redisOutOfMemory, "Redis has reached its memory limit"),
        "MOVED": (.redisMoved, "Redis is a cluster, which this URL does not say"),
        "ASK": (.redisMoved, "Redis is a cluster, which this URL does not say"),
        "CLUSTERDOWN": (.redisClusterDown, "the Redis cluster is down"),
        "MASTERDOWN": (.redisMasterDown, "the replica has lost its master"),
        "NOAUTH": (.redisAuthRequired, "Redis asks for a password"),
        "WRONGPASS": (.redisWrongPassword, "Redis refuses the user or the password"),
        "NOPERM": (.redisNotPermitted, "the Redis user may not do this"),
        "BUSY": (.redisBusy, "Redis is busy with a script"),
        "TRYAGAIN": (.redisTryAgain, "Redis is moving the key"),
        "MISCONF": (.redisMisconfigured, "Redis cannot save and refuses writes"),
        "NOREPLICAS": (.redisNoReplicas, "Redis has too few replicas and refuses writes"),
        "DENIED": (.redisProtectedMode, "Redis runs in protected mode"),
    ]

    /// The outage an error reply stands for, `nil` when it concerns the command alone.
    static func outage(_ kind: String) -> StoreError? {
        outages[kind].map { StoreError(code: $0.0, message: $0.1) }
    }

    /// The first word of an error reply.
    ///
    /// The rest may hold keys and values and is not kept.
    static func kind(of text: [UInt8]) -> String {
        for (start, kind) in sentences where text.starts(with: start.utf8) { return kind }
        return outageInScript(text) ?? word(text[...]) ?? "ERR"
    }

    /// What has no word of its own.
    private static let sentences = [
        ("ERR max number of clients", "MAXCLIENTS"), ("ERR invalid password", "WRONGPASS"),
        ("ERR The user executing the script can't", "NOPERM"),
    ]

    /// Before version 7 an error of a command in a script comes after the script's own: `ERR Error running script (call
    /// to f_…): @user_script:1: @user_script: 1: -OOM command not allowed …`.
    private static func outageInScript(_ text: [UInt8]) -> String? {
        guard text.starts(with: "ERR Error running script".utf8) else { return nil }
        let mark = Array(": -".utf8)
        for start in text.indices.dropLast(mark.count) where text[start...].starts(with: mark) {
            if let kind = word(text[(start + mark.count)...]), outages[kind] != nil { return kind }
        }
        return nil
    }

    private static func word(_ text: ArraySlice<UInt8>) -> String? {
        let word = text.prefix { $0 != 0x20 }.prefix(20)
        guard !word.isEmpty, word.allSatisfy({ (0x41...0x5A).contains($0) }) else { return nil }
        return String(decoding: word, as: UTF8.self)
    }

    /// What a server says to credentials, or to a database, that it does not take.
    static let refusals: Set<ErrorCode> = [
        .redisAuthRequired, .redisWrongPassword, .redisAuthRefused, .redisDatabaseRefused, .redisNotPermitted,
    ]

    static func refused(_ kind: String) -> StoreError {
        if let outage = outage(kind) { return outage }
        if kind == "MAXCLIENTS" {
            return StoreError(code: .redisTooManyClients, message: "Redis takes no more clients")
        }
        return StoreError(code: .redisRefused, message: "Redis refused the command (\(kind))")
    }
}

extension StoreError {
    /// Whether the server could be reached and does not let us in as the URL says.
    package var isRefusal: Bool { RedisFailure.refusals.contains(code) }
}
