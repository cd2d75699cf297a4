internal import MartletCore
internal import MartletCrypto
package import MartletRedis
package import MartletTraffic

/// Counts the tokens of shared limits in Redis.
///
/// The name of a bucket is a digest, under a key derived from `store.seal` where there is one: it shows neither an
/// address nor a subject.
package final class StoredTokens: SharedTokenStoring {
    private let client: RedisClient
    private let prefix: [UInt8]
    private let seal: StoreSeal?

    /// - Parameter prefix: of every key in the store.
    package init(_ client: RedisClient, prefix: String, seal: StoreSeal?) {
        self.client = client
        self.prefix = Array("\(prefix)limit:".utf8)
        self.seal = seal
    }

    /// Runs the script; a reply that it never gives counts as none.
    package func ask(_ ask: TokenAsk, _ completion: @escaping @Sendable (TokenGrant?) -> Void) {
        Task { completion(await grant(ask)) }
    }

    private func grant(_ ask: TokenAsk) async -> TokenGrant? {
        do throws(StoreError) {
            let reply = try await client.run(
                .takeTokens, keys: [prefix + name(of: ask.key)], arguments: arguments(ask), expecting: .array)
            guard case .array(let parts) = reply, parts.count == 3, case .integer(let granted) = parts[0],
                case .integer(let extra) = parts[1], case .integer(let missing) = parts[2]
            else { return nil }
            let nanoseconds = missing.multipliedReportingOverflow(by: 1_000)
            return TokenGrant(
                granted: Int(clamping: min(max(granted, 0), Int64(ask.waiting))),
                extra: Int(clamping: min(max(extra, 0), Int64(ask.extra))),
                missing: nanoseconds.overflow ? ask.rate.capacity : max(nanoseconds.partialValue, 0))
        } catch {
            return nil
        }
    }

    /// 16 bytes suffice: whoever finds two keys with one name makes them share a bucket.
    private func name(of key: [UInt8]) -> [UInt8] {
        let digest = seal?.digest(ofLimitKey: key) ?? SHA256.digest(Array("martlet limit".utf8) + key)
        return Array(Hexadecimal.text(digest.prefix(16)).utf8)
    }

    private func arguments(_ ask: TokenAsk) -> [[UInt8]] {
        let numbers: [Int64] = [
            Int64(ask.waiting), Int64(ask.extra), Int64(ask.spent), Int64(ask.returned), Int64(ask.rate.leasable),
            TokenAsk.leaseLifetime / 1_000,
        ]
        // Microseconds, with the nanoseconds behind the point.
        return numbers.map(Self.text) + [Self.microseconds(ask.rate.interval), Self.microseconds(ask.rate.capacity)]
    }

    private static func text(_ number: Int64) -> [UInt8] { Array(String(number).utf8) }

    private static func microseconds(_ nanoseconds: Int64) -> [UInt8] {
        let rest = String(nanoseconds % 1_000)
        return text(nanoseconds / 1_000) + Array(".".utf8)
            + Array(String(repeating: "0", count: 3 - rest.utf8.count).utf8)
            + Array(rest.utf8)
    }
}

extension RedisScript {
    /// Grants tokens of one bucket.
    ///
    /// The value is when the bucket is full, in microseconds of the server's clock, then the leased tokens that may be
    /// unused: those of this period and of the one before, and the number of the period. A period is as long as a lease,
    /// so that no lease outlives the period after its own.
    ///
    /// Not repeated where its outcome is unknown: the tokens of the first run are lost, which errs on the strict side.
    package static let takeTokens = RedisScript(
        """
        local waiting, extra, spent = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
        local returned, leasable, period = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
        local interval, capacity = tonumber(ARGV[7]), tonumber(ARGV[8])
        local time = redis.call('TIME')
        local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
        local number = math.floor(now / period)
        local full, current, before = 0, 0, 0
        local stored = redis.call('GET', KEYS[1])
        if stored then
            local a, b, c, d = string.match(stored, '^(%d+) (%d+) (%d+) (%d+)$')
            if a then
                full = tonumber(a)
                if tonumber(d) == number then current, before = tonumber(b), tonumber(c)
                elseif tonumber(d) == number - 1 then before = tonumber(b) end
            end
        end
        full = math.min(math.max(full - returned * interval, now), now + capacity)
        local left = math.min(spent, before)
        before = before - left
        current = math.max(current - (spent - left), 0)
        local tokens = math.floor((now + capacity - full + 0.5) / interval)
        local granted = math.min(waiting, tokens)
        extra = math.min(extra, math.floor((tokens - granted) / 2), math.max(leasable - current - before, 0))
        full = math.ceil(full + (granted + extra) * interval)
        current = current + extra
        if full > now then
            local value = string.format('%.0f %.0f %.0f %.0f', full, current, before, number)
            redis.call('SET', KEYS[1], value, 'PX', string.format('%.0f', math.ceil((full - now) / 1000) + 1))
        elseif stored then
            redis.call('DEL', KEYS[1])
        end
        return {granted, extra, math.ceil(full - now)}
        """)
}
