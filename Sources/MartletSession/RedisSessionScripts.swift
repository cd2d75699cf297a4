internal import MartletRedis

/// The atomic operations of `RedisSessions`, one Lua script each.
///
/// A session is a hash: `x` its expiry, `s` its last use, `g` the generation of its refresh token (plain numbers), `d`
/// the sealed record, `m` the sealed listing, `p` the provider hash, `c` the hash of the app, `v` the verifier, `r` the
/// record key wrapped for the refresh token or cookie token, `l` the sealed last address, `a:<token hash>` an access
/// token's expiry, `b:<token hash>` its wrapped record key, `o` the sealed owner, `q:<token hash>` the end of a grace
/// period. A value of more than 64 bytes is in parts, `1d`, `2d` and so on: with a longer one Redis stores the whole
/// hash in a form that takes three times the memory (`hash-max-listpack-value`). A subject's index is a sorted set of
/// key hashes by creation time, with unique scores. The token pair of a grace period has a key of its own, so that it
/// expires with the period. The claims of the subject's account are one value: their version in digits, a space, and
/// the sealed claims.
///
/// A session with a cookie token has at most one `a:`: that of its token, from its first use until it is due.
///
/// The first three arguments of every script are now, idle timeout and slack. All times, including key expiry, come
/// from the gateway in milliseconds; scripts read no clock. Scripts publish before they write: without the permission
/// to publish, nothing changes.
///
/// A script whose connection was lost before its reply may have run. Those that only read, or touch, run again: they
/// change nothing that the first run did not. The others do not, since the second reply would be wrong: a session that
/// the first run has ended or rotated is gone, or belongs to another caller; the caller gets an error and may repeat.
/// What ends or rotates a session waits for a replica.
enum RedisSessionScripts {
    static let insert = script(
        """
        local base, channel, limit, keyhash = ARGV[4], ARGV[5], tonumber(ARGV[6]), ARGV[7]
        local mark = KEYS[4] and redis.call('GET', KEYS[4])
        if mark then
            -- Behind its seal: the number of the change.
            local number = tonumber(string.match(mark, ' (%d+)$'))
            if not number or number > tonumber(ARGV[19]) then return 1 end
        end
        local live = livesessions(KEYS[2], base)
        local ended = {}
        for _, same in ipairs({true, false}) do
            for _, session in ipairs(live) do
                if #ended <= #live - limit and (session[6] == ARGV[20]) == same then
                    ended[#ended + 1] = session[1]
                end
            end
        end
        if ARGV[18] == '0' and #ended > 0 then return {ended} end
        publish(channel, ended, nil, ARGV[21])
        markended(base, ended)
        drop(KEYS[2], base, ended)
        redis.call('HSET', KEYS[1], 's', ARGV[1], 'g', '0', 'x', ARGV[8], 'p', ARGV[11], 'c', ARGV[20])
        putaccess(KEYS[1], {}, ARGV[14], ARGV[15])
        put(KEYS[1], {}, 'd', ARGV[9])
        put(KEYS[1], {}, 'r', ARGV[13])
        put(KEYS[1], {}, 'v', ARGV[12])
        put(KEYS[1], {}, 'm', ARGV[10])
        setaddress(KEYS[1], '', ARGV[16])
        if ARGV[17] ~= '' then put(KEYS[1], {}, 'o', ARGV[17]) end
        redis.call('PEXPIREAT', KEYS[1], text(math.min(tonumber(ARGV[8]), now + idle)))
        local left = redis.call('PTTL', KEYS[2])
        local newest = redis.call('ZRANGE', KEYS[2], -1, -1, 'WITHSCORES')
        local score = math.max(now, (tonumber(newest[2]) or 0) + 1)
        redis.call('ZADD', KEYS[2], text(score), keyhash)
        if left < 0 or now + left < tonumber(ARGV[8]) then redis.call('PEXPIREAT', KEYS[2], ARGV[8]) end
        local claims = redis.call('GET', KEYS[3])
        if claims and now + redis.call('PTTL', KEYS[3]) < tonumber(ARGV[8]) then
            redis.call('PEXPIREAT', KEYS[3], ARGV[8])
        end
        return {claims and string.match(claims, '^%d+') or '', ended}
        """, traits: .hasManyKeys)

    /// Writes a session that a new master does not have, unless it has ended meanwhile.
    static let insertAgain = script(
        """
        if redis.call('EXISTS', KEYS[1]) == 1 or redis.call('EXISTS', KEYS[3]) == 1 then return 0 end
        for i = 5, #ARGV, 2 do
            if string.sub(ARGV[i], 1, 2) == 'a:' then putaccess(KEYS[1], {}, ARGV[i], ARGV[i + 1])
            else put(KEYS[1], {}, ARGV[i], ARGV[i + 1]) end
        end
        redis.call('PEXPIREAT', KEYS[1], ARGV[3])
        local newest = redis.call('ZRANGE', KEYS[2], -1, -1, 'WITHSCORES')
        local score = math.max(tonumber(ARGV[1]), (tonumber(newest[2]) or 0) + 1)
        redis.call('ZADD', KEYS[2], string.format('%.0f', score), ARGV[4])
        local left = redis.call('PTTL', KEYS[2])
        if left < 0 or ARGV[1] + left < tonumber(ARGV[2]) then redis.call('PEXPIREAT', KEYS[2], ARGV[2]) end
        return 1
        """)

    /// Ends a session that a new master still has, and marks its end.
    static let endAgain = RedisScript(
        """
        redis.call('PUBLISH', ARGV[1], ARGV[2])
        redis.call('SET', KEYS[2], '', 'PX', '\(markLifetime)')
        return redis.call('DEL', KEYS[1])
        """)

    static let lookUpAndTouch = script(
        """
        local f = fields(KEYS[1])
        local ends, seen, record = tonumber(f.x), tonumber(f.s), value(f, 'd')
        if next(f) and not (ends and seen and record) then return {4} end
        if not islive(ends, seen) then return {0} end
        local access, wrap = f[ARGV[4]], value(f, 'b:' .. string.sub(ARGV[4], 3)) or ''
        if not access then return {1} end
        local expiry = tonumber(string.match(access, '^%d+'))
        if not expiry then return {4} end
        if now >= expiry then return {2, record, access, wrap, ''} end
        touch(KEYS[1], ends, seen)
        setaddress(KEYS[1], f.l, ARGV[5])
        return {3, record, access, wrap, KEYS[2] and redis.call('GET', KEYS[2]) or ''}
        """, traits: .isRepeatable)

    static let storeClaims = script(
        """
        local base, channel, version = ARGV[4], ARGV[5], tonumber(ARGV[6])
        local old = redis.call('GET', KEYS[1])
        local known = old and tonumber(string.match(old, '^%d+')) or -1
        if known > version then return 0 end
        local changed = {}
        if known < version then
            for _, session in ipairs(livesessions(KEYS[2], base)) do changed[#changed + 1] = session[1] end
            publish(channel, changed, ARGV[9], ARGV[10])
        end
        local left = math.max(redis.call('PTTL', KEYS[1]), redis.call('PTTL', KEYS[2]))
        redis.call('SET', KEYS[1], ARGV[7])
        redis.call('PEXPIREAT', KEYS[1], text(math.max(tonumber(ARGV[8]), now + left)))
        return known < version and changed or 0
        """, traits: .hasManyKeys)

    static let read = script(
        """
        local f = fields(KEYS[1])
        local record, verifier, wrap = value(f, 'd'), value(f, 'v'), value(f, 'r')
        if not islive(tonumber(f.x), tonumber(f.s)) or not (record and verifier and wrap) then return {} end
        return {f.x, f.s, f.g, record, verifier, wrap, value(f, 'o') or '', f[ARGV[4]] or '',
            KEYS[3] and redis.call('GET', KEYS[3]) or '', redis.call('GET', KEYS[2])}
        """, traits: [.isRepeatable, .hasManyKeys])

    static let rotate = script(
        """
        local f = fields(KEYS[1])
        local ends, seen = tonumber(f.x), tonumber(f.s)
        if not islive(ends, seen) then return 0 end
        if f.g ~= ARGV[4] or value(f, 'r') ~= ARGV[15] then return 1 end
        if ARGV[21] and value(f, 'd') ~= ARGV[21] then return 1 end
        -- Only of a cookie token: when the grace periods of replaced tokens end.
        local latest = tonumber(ARGV[16])
        local expired, shortened, access, graces = {}, {}, 0, 0
        for name, text in pairs(f) do
            local kind, hash = string.sub(name, 1, 2), string.sub(name, 3)
            if kind == 'a:' or kind == 'q:' then
                local expiry = tonumber(string.match(text, '^%d+'))
                if not expiry or now >= expiry or (latest and kind == 'a:') then
                    expired[#expired + 1] = name
                    if f['b:' .. hash] then expired[#expired + 1] = 'b:' .. hash end
                elseif kind == 'a:' then access = access + 1
                else
                    graces = graces + 1
                    if latest and expiry > latest then shortened[#shortened + 1] = hash end
                end
            end
        end
        if access >= tonumber(ARGV[9]) then return 2 end
        if ARGV[11] ~= '' and graces >= tonumber(ARGV[10]) then return 2 end
        if ARGV[18] and ARGV[18] ~= '' then
            if latest then redis.call('PUBLISH', ARGV[19], ARGV[20]) end
            put(KEYS[1], f, 'd', ARGV[18])
        end
        if #expired > 0 then redis.call('HDEL', KEYS[1], unpack(expired)) end
        for _, mark in ipairs(shortened) do
            redis.call('HSET', KEYS[1], 'q:' .. mark, ARGV[16])
            redis.call('PEXPIREAT', ARGV[17] .. mark, ARGV[16])
        end
        redis.call('HSET', KEYS[1], 'g', ARGV[5], 's', text(math.max(seen, now)))
        put(KEYS[1], f, 'r', ARGV[6])
        if ARGV[7] ~= '' then putaccess(KEYS[1], f, ARGV[7], ARGV[8]) end
        redis.call('PEXPIREAT', KEYS[1], text(math.min(ends, math.max(seen, now) + idle)))
        setaddress(KEYS[1], f.l, ARGV[14])
        if ARGV[11] ~= '' then
            redis.call('HSET', KEYS[1], ARGV[11], ARGV[12])
            redis.call('SET', KEYS[2], ARGV[13])
            redis.call('PEXPIREAT', KEYS[2], ARGV[12])
        end
        return 3
        """, traits: [.hasManyKeys, .waitsForReplicas])

    static let replace = script(
        """
        local f = fields(KEYS[1])
        if not islive(tonumber(f.x), tonumber(f.s)) then return 0 end
        if value(f, 'd') ~= ARGV[4] then return 1 end
        redis.call('PUBLISH', ARGV[6], ARGV[7])
        put(KEYS[1], f, 'd', ARGV[5])
        return 2
        """, traits: .waitsForReplicas)

    static let touch = script(
        """
        local f = redis.call('HMGET', KEYS[1], 'x', 's', 'l')
        local ends, seen = tonumber(f[1]), tonumber(f[2])
        if islive(ends, seen) then
            touch(KEYS[1], ends, seen)
            setaddress(KEYS[1], f[3], ARGV[4])
        end
        return 0
        """, traits: .isRepeatable)

    static let end = script(
        """
        if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
        publish(ARGV[4], {ARGV[5]}, nil, ARGV[6])
        redis.call('SET', KEYS[2], '', 'PX', '\(markLifetime)')
        return redis.call('DEL', KEYS[1])
        """, traits: [.hasManyKeys, .waitsForReplicas])

    static let list = script(
        """
        local found = {}
        local live = livesessions(KEYS[1], ARGV[4])
        local last = #live
        while ARGV[6] ~= '' and last > 0 and tonumber(live[last][5]) >= tonumber(ARGV[6]) do last = last - 1 end
        for i = last, math.max(1, last - tonumber(ARGV[5]) + 1), -1 do
            local f = fields(ARGV[4] .. live[i][1])
            found[#found + 1] = live[i][1]
            found[#found + 1] = value(f, 'm') or ''
            found[#found + 1] = live[i][2]
            found[#found + 1] = live[i][3]
            found[#found + 1] = f.l or ''
            found[#found + 1] = text(tonumber(live[i][5]))
        end
        return found
        """, traits: [.isRepeatable, .hasManyKeys])

    static let endSome = script(
        """
        local base, id, provider, excluded = ARGV[4], ARGV[6], ARGV[7], ARGV[8]
        local ended = {}
        for _, session in ipairs(livesessions(KEYS[1], base)) do
            local digits = string.sub(session[1], 1, 32)
            if (id == '' or digits == id) and (provider == '' or session[4] == provider) and digits ~= excluded then
                ended[#ended + 1] = session[1]
            end
        end
        publish(ARGV[5], ended, nil, ARGV[9])
        markended(base, ended)
        drop(KEYS[1], base, ended)
        return ended
        """, traits: [.hasManyKeys, .waitsForReplicas])

    /// How long the end of a session is marked, in milliseconds: longer than an instance keeps writes to repeat them
    /// (30 s), so that none writes again what another has ended.
    private static let markLifetime = 35_000

    /// Keys say by their names which type they have; an index also leads to its sessions.
    private static let repair = RedisRepair(
        .session,
        """
        local function isbad(key, wanted)
            local kind, size = redis.call('TYPE', key).ok, 0
            if kind == 'none' then return false end
            if kind ~= wanted then return true end
            if kind == 'string' then size = redis.call('STRLEN', key) end
            if kind == 'hash' then for _, value in ipairs(redis.call('HVALS', key)) do size = size + #value end end
            return size > \(RedisRepair.largestValue)
        end
        for _, key in ipairs(KEYS) do
            local start, kind = string.match(key, '^(.*{%x+}:)(%a):')
            local wanted = kind == 's' and 'hash' or kind == 'i' and 'zset' or 'string'
            if isbad(key, wanted) then redis.call('DEL', key)
            elseif wanted == 'zset' then
                for _, keyhash in ipairs(redis.call('ZRANGE', key, 0, -1)) do
                    if isbad(start .. 's:' .. keyhash, 'hash') then
                        redis.call('DEL', start .. 's:' .. keyhash)
                        redis.call('ZREM', key, keyhash)
                    end
                end
            end
        end
        return 1
        """)

    private static func script(_ body: String, traits: RedisCommandTraits = []) -> RedisScript {
        RedisScript(parts + prelude + body, traits: traits, repairedBy: repair)
    }

    /// Functions for the values of a session's hash.
    ///
    /// `fields` returns a whole hash, `value` one value of it, or nil. `put` stores a value; `found` is the hash as it
    /// was read, of which nothing may be left. Values in more parts than the compact form may have are not divided.
    private static let parts = """
        local function fields(key)
            local all, found = redis.call('HGETALL', key), {}
            for i = 1, #all, 2 do found[all[i]] = all[i + 1] end
            return found
        end
        local function value(found, name)
            if found[name] then return found[name] end
            local all = {}
            while found[(#all + 1) .. name] do all[#all + 1] = found[(#all + 1) .. name] end
            if #all > 0 then return table.concat(all) end
        end
        local function put(key, found, name, value)
            local count, new, old = math.ceil(#value / 64), {name, value}, {}
            if count > 1 and count <= 40 then
                for i = 1, count do
                    new[2 * i - 1] = i .. name
                    new[2 * i] = string.sub(value, 64 * i - 63, 64 * i)
                end
                if found[name] then old[1] = name end
            else count = 0 end
            while found[(count + 1) .. name] do
                count = count + 1
                old[#old + 1] = count .. name
            end
            redis.call('HSET', key, unpack(new))
            if #old > 0 then redis.call('HDEL', key, unpack(old)) end
        end
        local function putaccess(key, found, name, value)
            local space = string.find(value, ' ', 1, true)
            redis.call('HSET', key, name, string.sub(value, 1, space - 1))
            put(key, found, 'b:' .. string.sub(name, 3), string.sub(value, space + 1))
        end

        """

    /// Functions shared by the scripts.
    ///
    /// `livesessions` returns the live sessions of an index, oldest first, as {key hash, expiry, last use, provider
    /// hash, score, app hash}, and deletes the others. `mark` marks ends. A message holds at most 512 revocation IDs,
    /// half of what a subscriber accepts. Where messages are sealed, the script publishes the one that it was given.
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
        local function setaddress(key, old, new)
            if new ~= '' and string.sub(old or '', 1, 8) ~= string.sub(new, 1, 8) then
                redis.call('HSET', key, 'l', new)
            end
        end
        local function markended(base, keyhashes)
            for _, keyhash in ipairs(keyhashes) do
                redis.call('SET', string.sub(base, 1, -3) .. 'e:' .. keyhash, '', 'PX', '\(markLifetime)')
            end
        end
        local function drop(index, base, keyhashes)
            for _, keyhash in ipairs(keyhashes) do
                redis.call('DEL', base .. keyhash)
                redis.call('ZREM', index, keyhash)
            end
        end
        local function livesessions(index, base)
            local live, dead = {}, {}
            local all = redis.call('ZRANGE', index, 0, -1, 'WITHSCORES')
            for i = 1, #all, 2 do
                local keyhash = all[i]
                local f = redis.call('HMGET', base .. keyhash, 'x', 's', 'p', 'c')
                if islive(tonumber(f[1]), tonumber(f[2])) then
                    live[#live + 1] = {keyhash, f[1], f[2], f[3], all[i + 1], f[4]}
                else dead[#dead + 1] = keyhash end
            end
            drop(index, base, dead)
            return live
        end
        local function publish(channel, keyhashes, prefix, sealed)
            if sealed then
                if #keyhashes > 0 then redis.call('PUBLISH', channel, sealed) end
                return
            end
            for first = 1, #keyhashes, 512 do
                local numbers = {}
                for i = first, math.min(first + 511, #keyhashes) do
                    numbers[#numbers + 1] = string.sub(keyhashes[i], 1, 16)
                end
                redis.call('PUBLISH', channel, (prefix or '') .. table.concat(numbers))
            end
        end

        """
}
