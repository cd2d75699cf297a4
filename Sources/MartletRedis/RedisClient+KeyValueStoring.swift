package import MartletCore

extension RedisClient: SharedStoring {
    /// `GET`.
    package func value(for key: String) async -> StoreAnswer<[UInt8]> {
        do {
            switch try await command([bytes("GET"), bytes(key)], expecting: .value) {
            case .bytes(let value): return .answer(value)
            case .error(let kind): return .unavailable(RedisFailure.refused(kind))
            default: return .miss
            }
        } catch {
            return .unavailable(error)
        }
    }

    /// `SET … PX`.
    package func set(_ value: [UInt8], for key: String, lifetime: Duration) async throws(StoreError) {
        let reply = try await command(
            [bytes("SET"), bytes(key), value, bytes("PX"), milliseconds(lifetime)], expecting: .acknowledgement)
        if case .error(let kind) = reply { throw RedisFailure.refused(kind) }
    }

    /// `SET … NX PX`.
    package func setIfAbsent(_ value: [UInt8], for key: String, lifetime: Duration) async throws(StoreError) -> Bool {
        let reply = try await command(
            [bytes("SET"), bytes(key), value, bytes("PX"), milliseconds(lifetime), bytes("NX")],
            expecting: .acknowledgementOrNothing)
        if case .error(let kind) = reply { throw RedisFailure.refused(kind) }
        return reply != .nothing
    }

    /// Compares and deletes in one script.
    package func remove(_ key: String, ifEqualTo value: [UInt8]) async throws(StoreError) {
        let script = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"
        let reply = try await command(
            [bytes("EVAL"), bytes(script), bytes("1"), bytes(key), value], expecting: .integer)
        if case .error(let kind) = reply { throw RedisFailure.refused(kind) }
    }

    /// `DEL`.
    package func remove(_ key: String) async throws(StoreError) {
        let reply = try await command([bytes("DEL"), bytes(key)], expecting: .integer)
        if case .error(let kind) = reply { throw RedisFailure.refused(kind) }
    }

    /// `GETDEL`.
    package func take(_ key: String) async -> StoreAnswer<[UInt8]> {
        do {
            switch try await command([bytes("GETDEL"), bytes(key)], expecting: .value) {
            case .bytes(let value): return .answer(value)
            case .error(let kind): return .unavailable(RedisFailure.refused(kind))
            default: return .miss
            }
        } catch {
            return .unavailable(error)
        }
    }

    /// `INCR`, with the lifetime set by the first.
    package func increment(_ key: String, lifetime: Duration) async throws(StoreError) -> CounterReading {
        let script = """
            local count = redis.call('INCR', KEYS[1])
            if count == 1 then redis.call('PEXPIRE', KEYS[1], ARGV[1]) end
            return {count, redis.call('PTTL', KEYS[1])}
            """
        return try reading(
            await command(
                [bytes("EVAL"), bytes(script), bytes("1"), bytes(key), milliseconds(lifetime)], expecting: .anything))
    }

    /// `GET` and `PTTL`.
    package func counter(_ key: String) async throws(StoreError) -> CounterReading {
        let script = "return {tonumber(redis.call('GET', KEYS[1]) or '0'), redis.call('PTTL', KEYS[1])}"
        return try reading(await command([bytes("EVAL"), bytes(script), bytes("1"), bytes(key)], expecting: .anything))
    }

    private func reading(_ reply: RedisReply) throws(StoreError) -> CounterReading {
        switch reply {
        case .array(let parts) where parts.count == 2:
            guard case .integer(let count) = parts[0], case .integer(let left) = parts[1] else { break }
            return CounterReading(
                count: Int(clamping: count), remaining: .milliseconds(min(max(left, 0), 100 * 365 * 86_400_000)))
        case .error(let kind): throw RedisFailure.refused(kind)
        default: break
        }
        throw StoreError(code: .redisReplyUnexpected, message: "Redis answered a counter with something else")
    }

    private func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

    /// Redis knows no lifetime under 1 ms, and refuses one that ends beyond its clock.
    private func milliseconds(_ lifetime: Duration) -> [UInt8] {
        bytes(String(min(max(lifetime.wholeMilliseconds, 1), 100 * 365 * 86_400_000)))
    }
}
