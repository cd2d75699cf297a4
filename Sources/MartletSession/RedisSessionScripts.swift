internal import MartletRedis

/// The atomic steps of `RedisSessions`, one script each.
///
/// A session is a hash: `x` its end, `s` its last use, `g` the generation of its refresh token (all readable numbers), `d` the
/// sealed record, `m` the sealed listing, `p` the provider's mark, `v` the verifier, `r` the record's key wrapped for the refresh
/// token, `l` where it was last used from, `a:<mark>` the same for an access token behind the token's end, `q:<mark>` the end of a grace. A subject's index is a
/// sorted set of filings by creation, no two at one instant. The pair that a grace gives out is a key of its own, so that it
/// goes when the grace does.
///
/// Every script starts with now, idle and slack. Times are the gateway's, in milliseconds, and keys expire by them too: a script
/// asks no clock. Scripts publish before they write: where publishing is not permitted, nothing happens.
enum RedisSessionScripts {
    static let insert = script(
        """
        local base, channel, limit, filing = ARGV[4], ARGV[5], tonumber(ARGV[6]), ARGV[7]
        local live = living(KEYS[2], base)
        local ended = {}
        for i = 1, #live - limit + 1 do ended[i] = live[i][1] end
        publish(channel, ended)
        drop(KEYS[2], base, ended)
        redis.call('HSET', KEYS[1], 's', ARGV[1], 'g', '0', 'x', ARGV[8], 'd', ARGV[9], 'm', ARGV[10], 'p', ARGV[11],
            'v', ARGV[12], 'r', ARGV[13], ARGV[14], ARGV[15])
        note(KEYS[1], '', ARGV[16])
        redis.call('PEXPIREAT', KEYS[1], text(math.min(tonumber(ARGV[8]), now + idle)))
        local left = redis.call('PTTL', KEYS[2])
        local newest = redis.call('ZRANGE', KEYS[2], -1, -1, 'WITHSCORES')
        local score = math.max(now, (tonumber(newest[2]) or 0) + 1)
        redis.call('ZADD', KEYS[2], text(score), filing)
        if left < 0 or now + left < tonumber(ARGV[8]) then redis.call('PEXPIREAT', KEYS[2], ARGV[8]) end
        return ended
        """)

    static let use = script(
        """
        local f = redis.call('HMGET', KEYS[1], 'x', 's', 'd', ARGV[4], 'l')
        local ends, seen = tonumber(f[1]), tonumber(f[2])
        if not islive(ends, seen) then return {0} end
        if not f[4] then return {1} end
        local expiry = tonumber(string.match(f[4], '^%d+'))
        if not expiry or now >= expiry then return {2} end
        touch(KEYS[1], ends, seen)
        note(KEYS[1], f[5], ARGV[5])
        return {3, f[3], f[4]}
        """)

    static let read = script(
        """
        local f = redis.call('HMGET', KEYS[1], 'x', 's', 'g', 'd', 'v', 'r')
        if not islive(tonumber(f[1]), tonumber(f[2])) then return {} end
        return {f[1], f[2], f[3], f[4], f[5], f[6], redis.call('GET', KEYS[2])}
        """)

    static let rotate = script(
        """
        local f = redis.call('HMGET', KEYS[1], 'x', 's', 'g', 'l')
        local ends, seen = tonumber(f[1]), tonumber(f[2])
        if not islive(ends, seen) then return 0 end
        if f[3] ~= ARGV[4] then return 1 end
        local over, access, graces = {}, 0, 0
        local all = redis.call('HGETALL', KEYS[1])
        for i = 1, #all, 2 do
            local kind = string.sub(all[i], 1, 2)
            if kind == 'a:' or kind == 'q:' then
                local expiry = tonumber(string.match(all[i + 1], '^%d+'))
                if not expiry or now >= expiry then over[#over + 1] = all[i]
                elseif kind == 'a:' then access = access + 1
                else graces = graces + 1 end
            end
        end
        if access >= tonumber(ARGV[9]) then return 2 end
        if ARGV[11] ~= '' and graces >= tonumber(ARGV[10]) then return 2 end
        if #over > 0 then redis.call('HDEL', KEYS[1], unpack(over)) end
        redis.call('HSET', KEYS[1], 'g', ARGV[5], 'r', ARGV[6], ARGV[7], ARGV[8], 's', text(math.max(seen, now)))
        redis.call('PEXPIREAT', KEYS[1], text(math.min(ends, math.max(seen, now) + idle)))
        note(KEYS[1], f[4], ARGV[14])
        if ARGV[11] ~= '' then
            redis.call('HSET', KEYS[1], ARGV[11], ARGV[12])
            redis.call('SET', KEYS[2], ARGV[13])
            redis.call('PEXPIREAT', KEYS[2], ARGV[12])
        end
        return 3
        """)

    static let touch = script(
        """
        local f = redis.call('HMGET', KEYS[1], 'x', 's', 'l')
        local ends, seen = tonumber(f[1]), tonumber(f[2])
        if islive(ends, seen) then
            touch(KEYS[1], ends, seen)
            note(KEYS[1], f[3], ARGV[4])
        end
        return 0
        """)

    static let end = script(
        """
        if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
        publish(ARGV[4], {ARGV[5]})
        return redis.call('DEL', KEYS[1])
        """)

    static let list = script(
        """
        local found = {}
        local live = living(KEYS[1], ARGV[4])
        for i = #live, math.max(1, #live - tonumber(ARGV[5]) + 1), -1 do
            local f = redis.call('HMGET', ARGV[4] .. live[i][1], 'm', 'l')
            found[#found + 1] = live[i][1]
            found[#found + 1] = f[1]
            found[#found + 1] = live[i][2]
            found[#found + 1] = live[i][3]
            found[#found + 1] = f[2] or ''
        end
        return found
        """)

    static let endSome = script(
        """
        local base, id, mark, kept = ARGV[4], ARGV[6], ARGV[7], ARGV[8]
        local ended = {}
        for _, session in ipairs(living(KEYS[1], base)) do
            local digits = string.sub(session[1], 1, 32)
            if (id == '' or digits == id) and (mark == '' or session[4] == mark) and digits ~= kept then
                ended[#ended + 1] = session[1]
            end
        end
        publish(ARGV[5], ended)
        drop(KEYS[1], base, ended)
        return ended
        """)

    private static func script(_ body: String) -> RedisScript { RedisScript(prelude + body) }

    /// What the scripts have in common.
    ///
    /// `living` gives the live sessions of an index, oldest first, as {filing, end, last use, provider's mark}, and takes out the
    /// others. 512 numbers are as many as a subscriber takes in one message.
    private static let prelude = """
        local now, idle, slack = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
        local function text(number) return string.format('%.0f', number) end
        local function islive(ends, seen) return ends and seen and now < ends and now < seen + idle end
        local function touch(key, ends, seen)
            if now > seen + slack then
                redis.call('HSET', key, 's', ARGV[1])
                redis.call('PEXPIREAT', key, text(math.min(ends, now + idle)))
            end
        end
        local function note(key, was, new)
            if new ~= '' and string.sub(was or '', 1, 8) ~= string.sub(new, 1, 8) then
                redis.call('HSET', key, 'l', new)
            end
        end
        local function drop(index, base, filings)
            for _, filing in ipairs(filings) do
                redis.call('DEL', base .. filing)
                redis.call('ZREM', index, filing)
            end
        end
        local function living(index, base)
            local live, dead = {}, {}
            for _, filing in ipairs(redis.call('ZRANGE', index, 0, -1)) do
                local f = redis.call('HMGET', base .. filing, 'x', 's', 'p')
                if islive(tonumber(f[1]), tonumber(f[2])) then live[#live + 1] = {filing, f[1], f[2], f[3]}
                else dead[#dead + 1] = filing end
            end
            drop(index, base, dead)
            return live
        end
        local function publish(channel, filings)
            for first = 1, #filings, 512 do
                local numbers = {}
                for i = first, math.min(first + 511, #filings) do
                    numbers[#numbers + 1] = string.sub(filings[i], 1, 16)
                end
                redis.call('PUBLISH', channel, table.concat(numbers))
            end
        end

        """
}
