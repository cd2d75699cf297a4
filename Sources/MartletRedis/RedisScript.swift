package import MartletCore
private import MartletCrypto

/// A Lua script, which Redis caches by the SHA-1 of its text.
package struct RedisScript: Sendable {
    let source: [UInt8]
    /// The SHA-1 in lowercase hexadecimal.
    let digest: [UInt8]
    let traits: RedisCommandTraits
    /// `nil` for one that repairs.
    let repair: RedisRepair?

    /// Creates a script from its text and hashes it; reuse the value.
    /// - Parameter repair: removes what the script cannot read.
    package init(_ source: String, traits: RedisCommandTraits = [], repairedBy repair: RedisRepair? = .strings) {
        self.traits = traits
        self.repair = repair
        self.source = Array(source.utf8)
        digest = RedisScript.digest(of: self.source)
    }

    /// The command that runs the script.
    /// - Parameter name: `EVALSHA`, or `EVAL` to send its text.
    func command(
        _ name: String, _ keys: [[UInt8]], _ arguments: [[UInt8]], expecting expectation: RedisExpectation
    ) -> RedisCommand {
        let body = name == "EVALSHA" ? digest : source
        return RedisCommand(
            [Array(name.utf8), body, Array(String(keys.count).utf8)] + keys + arguments, expecting: expectation,
            key: keys.first, traits: keys.count > 1 ? traits.union(.hasManyKeys) : traits)
    }

    fileprivate static func digest(of source: [UInt8]) -> [UInt8] {
        Array(Hexadecimal.text(SHA1.digest(source)).utf8)
    }
}

extension RedisCommand {
    /// What a command does: its name, or the digest of its script.
    struct Kind: Hashable, Sendable {
        fileprivate let bytes: [UInt8]
    }

    var kind: Kind {
        let name = arguments.first ?? []
        guard arguments.count > 1 else { return Kind(bytes: name) }
        if name == Array("EVALSHA".utf8) { return Kind(bytes: arguments[1]) }
        return Kind(bytes: name == Array("EVAL".utf8) ? RedisScript.digest(of: arguments[1]) : name)
    }
}

extension RedisClient {
    /// Runs a script atomically; an error before its first write leaves the data unchanged.
    ///
    /// The script is sent by digest with EVALSHA. If the server does not have it cached, it is sent once with EVAL, as
    /// a command with its own deadline.
    /// - Parameters:
    ///   - keys: at least one; all of one slot.
    ///   - expectation: the valid types of reply; any other closes the connection.
    /// Keys of another type than the script expects, and values that are too large to be read, are removed: they are
    /// missing then, instead of an outage for as long as they exist.
    /// - Returns: the reply, never `.error`: an error in a script is thrown.
    /// - Throws: a `redis.`, `io.` or `tls.` code; after `redis.timeout` and `redis.connection_lost` the script may
    ///   have run.
    package func run(
        _ script: RedisScript, keys: [[UInt8]], arguments: [[UInt8]], expecting expectation: RedisExpectation
    ) async throws(StoreError) -> RedisReply {
        var reply = try await runOnce(script, keys, arguments, expectation)
        if reply.isUnreadable, let repair = script.repair {
            try await remove(unreadable: keys, by: repair)
            reply = try await runOnce(script, keys, arguments, expectation)
        }
        if reply == .tooLarge { throw .replyTooLarge }
        return try reply.accepted()
    }

    private func runOnce(
        _ script: RedisScript, _ keys: [[UInt8]], _ arguments: [[UInt8]], _ expectation: RedisExpectation
    ) async throws(StoreError) -> RedisReply {
        let reply = try await execute(script.command("EVALSHA", keys, arguments, expecting: expectation))
        guard case .error("NOSCRIPT") = reply else { return reply }
        return try await execute(script.command("EVAL", keys, arguments, expecting: expectation))
    }

    /// Removes what cannot be read among some keys, and counts it.
    func remove(unreadable keys: [[UInt8]], by repair: RedisRepair = .strings) async throws(StoreError) {
        failures.record(repair.kind, .malformed)
        try await runOnce(repair.script, keys, [], .anything).accepted()
    }
}

/// Removes keys that have another type than they should, and values that are too large.
package final class RedisRepair: Sendable {
    /// More than anything that the gateway stores; in bytes.
    package static let largestValue = 256 * 1024

    /// For keys that have strings.
    package static let strings = RedisRepair(
        .other,
        """
        for _, key in ipairs(KEYS) do
            local kind = redis.call('TYPE', key).ok
            if kind ~= 'none' and (kind ~= 'string' or redis.call('STRLEN', key) > \(largestValue)) then
                redis.call('DEL', key)
            end
        end
        return 1
        """)

    /// What it is counted as.
    let kind: SealedKind
    let script: RedisScript

    /// - Parameter source: of a script that gets the keys.
    package init(_ kind: SealedKind, _ source: String) {
        self.kind = kind
        script = RedisScript(source, traits: .hasManyKeys, repairedBy: nil)
    }
}

extension RedisReply {
    /// The reply, unless it is an error.
    @discardableResult
    func accepted() throws(StoreError) -> RedisReply {
        if case .error(let kind) = self { throw RedisErrorReply.storeError(kind) }
        return self
    }

    /// Whether it says that a key has another type, or is one that was too large.
    var isUnreadable: Bool { self == .error(kind: "WRONGTYPE") || self == .tooLarge }
}

extension StoreError {
    static let replyTooLarge = StoreError(code: .redisReplyTooLarge, message: "reply larger than the limit")
}
