package import MartletCore
private import MartletCrypto

/// A Lua script, which Redis knows by the SHA-1 of its text.
package struct RedisScript: Sendable {
    let source: [UInt8]
    /// In lower-case hexadecimal digits.
    let digest: [UInt8]

    /// Takes the text; meant to be done once and kept.
    package init(_ source: String) {
        self.source = Array(source.utf8)
        digest = SHA1.digest(self.source).flatMap { [RedisScript.digit($0 >> 4), RedisScript.digit($0 & 15)] }
    }

    private static func digit(_ value: UInt8) -> UInt8 { value < 10 ? 0x30 + value : 0x57 + value }
}

extension RedisClient {
    /// Runs a script on the server: all of it or, where an error is thrown before the first write, nothing.
    ///
    /// It goes by its digest. A server that does not know it has done nothing and gets the text, once, as a command
    /// with a deadline of its own.
    /// - Parameter expectation: which replies make sense; another one costs the connection.
    /// - Returns: never `.error`: whatever goes wrong in a script is an outage to its caller.
    /// - Throws: a `redis.`, `io.` or `tls.` code; after `redis.timeout` and `redis.connection_lost` it may have run.
    package func run(
        _ script: RedisScript, keys: [[UInt8]], arguments: [[UInt8]], expecting expectation: RedisExpectation
    ) async throws(StoreError) -> RedisReply {
        let rest = [Array(String(keys.count).utf8)] + keys + arguments
        var reply = try await command([Array("EVALSHA".utf8), script.digest] + rest, expecting: expectation)
        if case .error("NOSCRIPT") = reply {
            reply = try await command([Array("EVAL".utf8), script.source] + rest, expecting: expectation)
        }
        if case .error(let kind) = reply { throw RedisFailure.refused(kind) }
        return reply
    }
}
