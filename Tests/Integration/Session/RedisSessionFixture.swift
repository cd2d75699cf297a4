import MartletCore
import MartletIO
import MartletRedis
import MartletSession
import MartletSessionTesting
import MartletTesting
import Testing

/// Instances that share a Redis, each with a loop and a connection of its own, for the length of a test.
func withInstances<Result>(
    _ count: Int, of server: RedisServer, at url: String? = nil, options: RedisOptions = RedisOptions(),
    _ body: ([RedisClient]) async throws -> Result
) async throws -> Result {
    let resolver = try Resolver()
    let loops = try (0..<count).map { try ServiceLoop(name: "test-service-\($0)") }
    defer {
        resolver.shutdown()
        for loop in loops { loop.shutdown() }
    }
    let clients = try loops.map { loop in
        try RedisClient(
            try RedisURL(url ?? server.url), options: options, loop: loop, resolver: resolver, clock: .system,
            logger: .silent)
    }
    defer { for client in clients { client.shutdown() } }
    for client in clients {
        client.start()
        try await client.waitUntilConnected()
    }
    return try await body(clients)
}

/// Patient enough for a busy machine.
var patient: RedisOptions {
    var options = RedisOptions()
    options.commandTimeout = .seconds(20)
    return options
}

/// A clock ahead of the server's, so that nothing expires on the server while a test moves it.
func hourAhead() -> Int64 { Clock.system.unixMilliseconds + 3_600_000 }

extension RedisClient {
    func sessions() -> RedisSessions { RedisSessions(client: self, keyPrefix: "martlet:") }

    /// One command, in words.
    @discardableResult
    func ask(_ words: String...) async throws -> RedisReply { try await command(words.map { Array($0.utf8) }) }

    /// The names of all keys.
    func keys() async throws -> [[UInt8]] { try await command([Array("KEYS".utf8), [0x2A]]).parts }

    /// The only key of a kind: `s`, `u` or `g`.
    func key(_ kind: Character) async throws -> [UInt8] {
        let found = try await keys().filter { String(decoding: $0, as: UTF8.self).contains("}:\(kind)") }
        guard let key = found.first, found.count == 1 else { throw TestFailure("\(found.count) keys of kind \(kind)") }
        return key
    }

    /// Whether the only key of a kind expires at an instant, in milliseconds of Unix time, within a second.
    ///
    /// `PEXPIRETIME` would be exact; Redis 6.2 does not have it.
    func ends(_ kind: Character, at instant: Int64) async throws -> Bool {
        let script = "local now = redis.call('TIME'); return now[1] * 1000 + redis.call('PTTL', KEYS[1])"
        let reply = try await command([Array("EVAL".utf8), Array(script.utf8), Array("1".utf8), try await key(kind)])
        guard case .integer(let end) = reply else { return false }
        return abs(end - instant) <= 1000
    }

    /// The fields of a hash, in their order.
    func fields(of key: [UInt8]) async throws -> [(name: String, value: [UInt8])] {
        let parts = try await command([Array("HGETALL".utf8), key]).parts
        return stride(from: 0, to: parts.count, by: 2).map {
            (String(decoding: parts[$0], as: UTF8.self), parts[$0 + 1])
        }
    }

    /// The fields that hold a value of a session: `d` and the like, or `a:` for what opens it with an access token.
    func parts(of kind: String, in key: [UInt8]) async throws -> [(name: String, value: [UInt8])] {
        try await fields(of: key).compactMap { field in
            let digits = field.name.prefix { $0.isNumber }
            let name = field.name.dropFirst(digits.count)
            let isOf = kind.hasSuffix(":") ? name.hasPrefix(kind) : name == kind
            return isOf ? (Int(digits) ?? 0, field) : nil
        }
        .sorted { (left: (Int, (name: String, value: [UInt8])), right) in left.0 < right.0 }.map(\.1)
    }

    /// Changes one bit of a value.
    /// - Parameter position: where in it, from 0 to 1.
    func alter(_ kind: String, at position: Double, in key: [UInt8]) async throws {
        let parts = try await parts(of: kind, in: key)
        // The time before the wrapped key is a number, of which not every bit may change.
        let start = kind == "a:" ? (parts.first?.value.firstIndex(of: 0x20) ?? 0) + 1 : 0
        var index = start + Int(Double(parts.reduce(-start) { $0 + $1.value.count }) * position)
        for part in parts {
            guard index >= part.value.count else {
                var value = part.value
                value[index] ^= 1
                return try await set(part.name, to: value, of: key)
            }
            index -= part.value.count
        }
        // A session whose cookie has not been used yet has no access token.
        if !parts.isEmpty { Issue.record("there is no byte \(index) to change in \(kind)") }
    }

    func set(_ field: String, to value: [UInt8], of key: [UInt8]) async throws {
        _ = try await command([Array("HSET".utf8), key, Array(field.utf8), value])
    }
}

extension RedisReply {
    /// The texts of an array.
    var parts: [[UInt8]] {
        guard case .array(let parts) = self else { return [] }
        return parts.compactMap { if case .bytes(let bytes) = $0 { bytes } else { nil } }
    }
}

/// Listens to a channel for the length of a call.
func withSubscriber(
    of server: RedisServer, channel: String, _ onMessage: @escaping @Sendable ([UInt8]) -> Void,
    during body: () async throws -> Void
) async throws {
    let resolver = try Resolver()
    let loop = try ServiceLoop(name: "test-listener")
    defer {
        resolver.shutdown()
        loop.shutdown()
    }
    let client = try RedisClient(
        try RedisURL(server.url), options: RedisOptions(), loop: loop, resolver: resolver, clock: .system,
        logger: .silent)
    client.start()
    defer { client.shutdown() }
    let subscriber = RedisSubscriber(
        client, channel: channel,
        onMessage: onMessage, onGap: {})
    subscriber.start()
    defer { subscriber.shutdown() }
    try await subscriber.waitUntilConnected()
    try await body()
}
