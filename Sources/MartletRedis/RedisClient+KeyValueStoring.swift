package import MartletCore

extension RedisClient: SharedStoring {
    /// `GET`.
    package func value(for key: String) async -> StoreReply<[UInt8]> { await read("GET", key, .isRepeatable) }

    /// `GET`, of a replica where the options allow that and one has the value.
    package func replicatedValue(for key: String) async -> StoreReply<[UInt8]> {
        await read("GET", key, readsReplicas ? [.isRepeatable, .acceptsReplicas] : .isRepeatable)
    }

    private func read(_ name: String, _ key: String, _ traits: RedisCommandTraits) async -> StoreReply<[UInt8]> {
        do {
            let reply = try await execute(
                RedisCommand([bytes(name), bytes(key)], expecting: .value, key: bytes(key), traits: traits))
            if reply.isUnreadable {
                try await remove(unreadable: [bytes(key)])
            } else if case .bytes(let value) = try reply.accepted() {
                return .found(value)
            }
            return .miss
        } catch {
            return .unavailable(error)
        }
    }

    /// `SET … PX`.
    package func set(_ value: [UInt8], for key: String, lifetime: Duration) async throws(StoreError) {
        try await execute(
            RedisCommand(
                [bytes("SET"), bytes(key), value, bytes("PX"), milliseconds(lifetime)], expecting: .acknowledgement,
                key: bytes(key), traits: .isRepeatable)
        ).accepted()
    }

    /// `SET … NX PX`.
    package func setIfAbsent(_ value: [UInt8], for key: String, lifetime: Duration) async throws(StoreError) -> Bool {
        let words = [bytes("SET"), bytes(key), value, bytes("PX"), milliseconds(lifetime), bytes("NX")]
        let reply = try await command(words, on: bytes(key), expecting: .acknowledgementOrNothing).accepted()
        guard reply != .nothing else { return false }
        record([RedisReplay(.write, RedisCommand(words, key: bytes(key), traits: .isRepeatable))])
        return true
    }

    /// Compares and deletes atomically in one script.
    package func remove(_ key: String, ifEqualTo value: [UInt8]) async throws(StoreError) {
        _ = try await run(.compareAndRemove, keys: [bytes(key)], arguments: [value], expecting: .integer)
    }

    /// `DEL`.
    package func remove(_ key: String) async throws(StoreError) {
        try await execute(
            RedisCommand([bytes("DEL"), bytes(key)], expecting: .integer, key: bytes(key), traits: .isRepeatable)
        ).accepted()
    }

    /// Whether some of the nodes accept commands.
    package var isPartlyAvailable: Bool { isCluster && !status.nodes.isEmpty }

    /// `DEL`; the keys have one hash tag.
    package func remove(_ keys: [String]) async throws(StoreError) {
        guard let first = keys.first else { return }
        try await execute(
            RedisCommand(
                [bytes("DEL")] + keys.map(bytes), expecting: .integer, key: bytes(first),
                traits: [.isRepeatable, .hasManyKeys])
        ).accepted()
    }

    /// The client, which counts what the owner writes.
    package func partition(_ purpose: StorePurpose, for owner: WorkOwner) -> any SharedStoring {
        MeteredStore(self, meter, purpose, for: owner)
    }

    /// All steps in one script.
    package func count(_ attempt: CountedAttempt, for owner: WorkOwner) async throws(StoreError) -> AttemptCount {
        try meter.check(owner, .throttles)
        var keys = [attempt.common.attempts, attempt.common.ban]
        if let known = attempt.known, let own = attempt.own { keys += [own.attempts, own.ban, known] }
        let reply = try await run(
            .countAttempt, keys: keys.map(bytes), arguments: [milliseconds(attempt.lifetime)], expecting: .array)
        guard case .array(let parts) = reply, parts.count == 3 else { throw .unexpectedCounter }
        var known: [UInt8]?
        if case .bytes(let value) = parts[0] { known = value }
        let attempts = try reading(parts[2])
        if attempts.count == 1 { meter.add(owner, .throttles) }
        return AttemptCount(known: known, ban: try reading(parts[1]), attempts: attempts)
    }

    /// `GETDEL`.
    package func take(_ key: String) async -> StoreReply<[UInt8]> {
        let reply = await read("GETDEL", key, [])
        if case .found = reply {
            // Whoever comes second must not get it from a master that has it still.
            let removal = RedisCommand([bytes("DEL"), bytes(key)], key: bytes(key), traits: .isRepeatable)
            record([RedisReplay(.end, removal)])
        }
        return reply
    }

    /// `PUBLISH`; a message that arrives twice does no more than once.
    package func publish(_ message: [UInt8], on channel: [UInt8]) async throws(StoreError) {
        try await execute(
            RedisCommand([bytes("PUBLISH"), channel, message], expecting: .integer, key: nil, traits: .isRepeatable)
        ).accepted()
    }

    /// `INCR`; the first increment sets the lifetime.
    package func increment(_ key: String, lifetime: Duration) async throws(StoreError) -> CounterReading {
        try reading(await run(.increment, keys: [bytes(key)], arguments: [milliseconds(lifetime)], expecting: .array))
    }

    /// `DECR` unless the counter is 0; keeps its lifetime.
    package func decrement(_ key: String) async throws(StoreError) {
        _ = try await run(.decrement, keys: [bytes(key)], arguments: [], expecting: .integer)
    }

    /// `GET` and `PTTL`.
    package func counter(_ key: String) async throws(StoreError) -> CounterReading {
        try reading(await run(.readCounter, keys: [bytes(key)], arguments: [], expecting: .array))
    }

    /// - Parameter reply: the count and its time, and a third element if the counter was no number.
    private func reading(_ reply: RedisReply) throws(StoreError) -> CounterReading {
        guard case .array(let parts) = reply, (2...3).contains(parts.count), case .integer(let count) = parts[0],
            case .integer(let left) = parts[1]
        else { throw .unexpectedCounter }
        if parts.count == 3 { failures.record(.throttle, .malformed) }
        return CounterReading(
            count: Int(clamping: count), remaining: .milliseconds(min(max(left, 0), 100 * 365 * 86_400_000)))
    }

    private func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

    /// Clamped: Redis rejects lifetimes under 1 ms and expiry times that overflow its clock.
    private func milliseconds(_ lifetime: Duration) -> [UInt8] {
        bytes(String(min(max(lifetime.wholeMilliseconds, 1), 100 * 365 * 86_400_000)))
    }
}

extension RedisScript {
    fileprivate static let compareAndRemove = RedisScript(
        "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0")

    /// `number` reads a counter: 0, and that it is bad, for what is none.
    private static let number = """
        local function number(key)
            local text = redis.call('GET', key)
            if not text then return 0 end
            if #text < 16 and string.match(text, '^%d+$') then return tonumber(text) end
            return 0, 1
        end

        """

    /// `add` adds 1 to a counter, which starts over if it is no number.
    private static let add =
        number + """
            local function add(key, lifetime)
                local _, bad = number(key)
                if bad then redis.call('DEL', key) end
                local count = redis.call('INCR', key)
                if count == 1 then redis.call('PEXPIRE', key, lifetime) end
                return {count, redis.call('PTTL', key), bad}
            end

            """

    fileprivate static let increment = RedisScript(add + "return add(KEYS[1], ARGV[1])")

    /// The value that decides about the bucket, the bucket's ban, and its attempts.
    fileprivate static let countAttempt = RedisScript(
        add + """
            local known = KEYS[5] and redis.call('GET', KEYS[5]) or false
            local attempts, ban = KEYS[1], KEYS[2]
            if known then attempts, ban = KEYS[3], KEYS[4] end
            local banned, bad = number(ban)
            if banned > 0 then return {known, {banned, redis.call('PTTL', ban)}, {0, 0}} end
            return {known, {0, 0, bad}, add(attempts, ARGV[1])}
            """, traits: .hasManyKeys)

    fileprivate static let decrement = RedisScript(
        """
        local text = redis.call('GET', KEYS[1]) or '0'
        if #text < 16 and string.match(text, '^[1-9]%d*$') then return redis.call('DECR', KEYS[1]) end
        return 0
        """)

    fileprivate static let readCounter = RedisScript(
        number + """
            local count, bad = number(KEYS[1])
            return {count, redis.call('PTTL', KEYS[1]), bad}
            """, traits: .isRepeatable)
}

extension StoreError {
    fileprivate static let unexpectedCounter = StoreError(
        code: .redisReplyUnexpected, message: "unexpected reply to a counter script")
}
