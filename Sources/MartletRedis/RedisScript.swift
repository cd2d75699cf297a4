package import MartletCore
private import MartletCrypto

/// A Lua script, which Redis caches by the SHA-1 of its text.
package struct RedisScript: Sendable {
    let source: [UInt8]
    /// The SHA-1 in lowercase hexadecimal.
    let digest: [UInt8]

    /// Creates a script from its text and hashes it; reuse the value.
    package init(_ source: String) {
        self.source = Array(source.utf8)
        digest = SHA1.digest(self.source).flatMap { [RedisScript.digit($0 >> 4), RedisScript.digit($0 & 15)] }
    }

    private static func digit(_ value: UInt8) -> UInt8 { value < 10 ? 0x30 + value : 0x57 + value }
}

extension RedisClient {
    /// Runs a script atomically; an error before its first write leaves the data unchanged.
    ///
    /// The script is sent by digest with EVALSHA. If the server does not have it cached, it is sent once with EVAL, as
    /// a command with its own deadline.
    /// - Parameter expectation: the valid types of reply; any other closes the connection.
    /// - Returns: the reply, never `.error`: an error in a script is thrown.
    /// - Throws: a `redis.`, `io.` or `tls.` code; after `redis.timeout` and `redis.connection_lost` the script may
    ///   have run.
    package func run(
        _ script: RedisScript, keys: [[UInt8]], arguments: [[UInt8]], expecting expectation: RedisExpectation
    ) async throws(StoreError) -> RedisReply {
        let rest = [Array(String(keys.count).utf8)] + keys + arguments
        var reply = try await command([Array("EVALSHA".utf8), script.digest] + rest, expecting: expectation)
        if case .error("NOSCRIPT") = reply {
            reply = try await command([Array("EVAL".utf8), script.source] + rest, expecting: expectation)
        }
        if case .error(let kind) = reply { throw RedisErrorReply.storeError(kind) }
        return reply
    }
}
