/// How a server makes room when its memory is full, if it removes keys for that: a session that is evicted has ended.
package struct EvictionPolicy: Equatable {
    /// `allkeys-lru`, `volatile-ttl`.
    let name: String

    static let question = RedisCommand(["INFO", "memory"].map { Array($0.utf8) }, key: nil)

    /// - Parameter reply: to ``question``.
    /// - Returns: `nil` if keys are not evicted, or if the server does not say.
    init?(_ reply: RedisReply) {
        guard case .bytes(let text) = reply else { return nil }
        let field = Array("maxmemory_policy:".utf8)
        let line = text.split { $0 == 0x0A || $0 == 0x0D }.first { $0.starts(with: field) }
        guard let value = line?.dropFirst(field.count), !value.isEmpty,
            value.allSatisfy({ (0x61...0x7A).contains($0) || $0 == 0x2D })
        else { return nil }
        name = String(decoding: value, as: UTF8.self)
        if name == "noeviction" { return nil }
    }

    /// What it does and what to do about it.
    package var warning: String {
        "maxmemory-policy is \(name): with full memory Redis removes sessions, which signs users out; set noeviction"
    }
}

extension RedisClient {
    /// How a server evicts keys; `nil` if it does not, or does not say.
    package func evictionPolicy() async -> EvictionPolicy? {
        guard let reply = try? await execute(EvictionPolicy.question) else { return nil }
        return EvictionPolicy(reply)
    }
}
