internal import MartletCore
internal import MartletCrypto
internal import MartletRedis
internal import MartletServer
internal import MartletSession

/// Tests every permission that the gateway needs in Redis, on temporary keys that also expire.
struct RedisPermissions {
    /// The lifetime of the keys in milliseconds, in case removing them is not permitted.
    private static let lifetime = "10000"

    /// Connected.
    let client: RedisClient
    let prefix: String
    let clock: Clock
    /// Whether rate limits count in the store, by its clock.
    let hasSharedLimits: Bool

    private var channel: String { RevocationMessage.channel(prefix: prefix) }

    /// One finding per missing permission, or one that nothing is missing.
    func check() async -> [OnlineFinding] {
        guard let digits = try? RandomBytes.make(12) else {
            return [OnlineFinding(subject: "store", failure: "server.no_randomness", detail: "no random bytes")]
        }
        // In a cluster the keys of one script are on one node.
        let key = "\(prefix)check:{\(Base64URL.encode(digits))}"
        var findings: [OnlineFinding] = []
        let expiry = clock.unixTime.advanced(bySeconds: 10).seconds
        let commands = Self.commands(key: key, channel: channel, expiry: "\(expiry)000")
        for words in commands + (hasSharedLimits ? [["TIME"]] : []) {
            guard let finding = await attempt(words, key) else { continue }
            // Some commands are tested on several keys.
            if !findings.contains(where: { $0.detail == finding.detail }) { findings.append(finding) }
            if finding.failure != .redisNotPermitted { return findings }
        }
        if let finding = await attemptToSubscribe() { findings.append(finding) }
        guard findings.isEmpty else { return findings }
        return [OnlineFinding(subject: "store", failure: nil, detail: "the user has all required permissions")]
    }

    /// - Parameter expiry: in milliseconds of Unix time.
    private static func commands(key: String, channel: String, expiry: String) -> [[String]] {
        let (hash, set, counter) = ("\(key):h", "\(key):z", "\(key):n")
        return [
            ["SET", key, "1", "PX", lifetime, "NX"], ["GET", key], ["PTTL", key], ["EXISTS", key],
            ["INCR", counter], ["DECR", counter], ["PEXPIRE", counter, lifetime],
            ["HSET", hash, "f", "1"], ["PEXPIREAT", hash, expiry],
            ["HGET", hash, "f"], ["HMGET", hash, "f"], ["HGETALL", hash], ["HDEL", hash, "f"],
            ["ZADD", set, "1", "m"], ["PEXPIRE", set, lifetime], ["ZRANGE", set, "0", "-1"], ["ZREM", set, "m"],
            ["EVALSHA", String(repeating: "0", count: 40), "1", key],
            ["EVAL", "return 1", "1", key],
            ["GETDEL", key], ["DEL", key, hash, set, counter],
            // Subscribers ignore an empty message.
            ["PUBLISH", channel, ""], ["ROLE"], ["WAIT", "0", "1"],
        ]
    }

    /// What a command needs beside its own right; `nil` if nothing.
    private static func pattern(of name: String, channel: String, prefix: String) -> String? {
        switch name {
        case "PUBLISH": "&\(channel)"
        case "ROLE", "WAIT", "TIME": nil
        default: "~\(prefix)*"
        }
    }

    private func attempt(_ words: [String], _ key: String) async -> OnlineFinding? {
        let name = words[0]
        do throws(StoreError) {
            let reply = try await client.command(words.map { Array($0.utf8) }, on: Array(key.utf8))
            guard case .error(let kind) = reply, !(name == "EVALSHA" && kind == "NOSCRIPT") else { return nil }
            return OnlineFinding(
                subject: "store", failure: .redisRefused,
                detail: "Redis rejected \(name) (\(kind)); version 6.2 or newer is required")
        } catch  where error.code == .redisNotPermitted {
            return missing(name, on: Self.pattern(of: name, channel: channel, prefix: prefix))
        } catch {
            return OnlineFinding(subject: "store", failure: error.code, detail: "\(name): \(error.message)")
        }
    }

    private func attemptToSubscribe() async -> OnlineFinding? {
        do throws(StoreError) {
            let subscriber = RedisSubscriber(client, channel: channel, onMessage: { _ in }, onGap: {})
            defer { subscriber.shutdown() }
            subscriber.start()
            try await subscriber.waitUntilConnected()
            return nil
        } catch  where error.code == .redisNotPermitted {
            return missing("SUBSCRIBE", on: "&\(channel)")
        } catch {
            return OnlineFinding(subject: "store", failure: error.code, detail: "SUBSCRIBE: \(error.message)")
        }
    }

    /// - Parameter pattern: the key or channel pattern, as in an access control list; `nil` without one.
    private func missing(_ command: String, on pattern: String?) -> OnlineFinding {
        let rights = ["+\(command.lowercased())"] + [pattern].compactMap(\.self)
        return OnlineFinding(
            subject: "store", failure: .redisNotPermitted,
            detail:
                "the Redis user is not permitted to run \(command): it needs \(rights.joined(separator: " and "))")
    }
}
