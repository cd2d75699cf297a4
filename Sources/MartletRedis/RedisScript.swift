package import MartletCore
private import MartletCrypto

/// A Lua script, which Redis caches by the SHA-1 of its text.
package struct RedisScript: Sendable {
    let source: [UInt8]
    /// The SHA-1 in lowercase hexadecimal.
    let digest: [UInt8]
    let traits: RedisCommandTraits

    /// Creates a script from its text and hashes it; reuse the value.
    package init(_ source: String, traits: RedisCommandTraits = []) {
        self.traits = traits
        self.source = Array(source.utf8)
        digest = SHA1.digest(self.source).flatMap { [RedisScript.digit($0 >> 4), RedisScript.digit($0 & 15)] }
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

    private static func digit(_ value: UInt8) -> UInt8 { value < 10 ? 0x30 + value : 0x57 + value }
}

extension RedisClient {
    /// Runs a script atomically; an error before its first write leaves the data unchanged.
    ///
    /// The script is sent by digest with EVALSHA. If the server does not have it cached, it is sent once with EVAL, as
    /// a command with its own deadline.
    /// - Parameters:
    ///   - keys: at least one; all of one slot.
    ///   - expectation: the valid types of reply; any other closes the connection.
    /// - Returns: the reply, never `.error`: an error in a script is thrown.
    /// - Throws: a `redis.`, `io.` or `tls.` code; after `redis.timeout` and `redis.connection_lost` the script may
    ///   have run.
    package func run(
        _ script: RedisScript, keys: [[UInt8]], arguments: [[UInt8]], expecting expectation: RedisExpectation
    ) async throws(StoreError) -> RedisReply {
        let byDigest = script.command("EVALSHA", keys, arguments, expecting: expectation)
        var reply = try await execute(byDigest)
        if case .error("NOSCRIPT") = reply {
            reply = try await execute(script.command("EVAL", keys, arguments, expecting: expectation))
        }
        if case .error(let kind) = reply { throw RedisErrorReply.storeError(kind) }
        return reply
    }
}
