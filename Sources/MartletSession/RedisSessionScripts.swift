internal import MartletRedis

/// The atomic operations of `RedisSessions`, one Lua script each.
///
/// A session is a hash: `x` its expiry, `s` its last use, `g` the generation of its refresh token (plain numbers), `d`
/// the sealed record, `m` the sealed listing, `p` the provider hash and that of the app, `v` the verifier, `r` the
/// record key wrapped for the refresh token or cookie token, `l` the sealed last address, `a:<token hash>` an access
/// token's expiry, a space and the record key wrapped for it, `o` the sealed owner, `q:<token hash>` the end of a grace
/// period. A value of more than 64 bytes is in parts of 63, `1d`, `2d` and so on: with a longer one Redis stores the whole
/// hash in a form that takes three times the memory (`hash-max-listpack-value`). The token pair of a grace period has a
/// key of its own, so that it expires with the period.
///
/// A subject is a hash too: for the key hash of each of its sessions when that was created, unique among them, a space
/// and the subject's name, which tells it from another one with the same tag; and `c`, the claims of its account: their
/// version in digits, a space, and the sealed claims.
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
        local mark = KEYS[3] and redis.call('GET', KEYS[3])
        if mark then
            -- Behind its seal: the number of the change.
            local number = tonumber(string.match(mark, ' (%d+)$'))
            if not number or number > tonumber(ARGV[19]) then return 1 end
        end
        local live = livesessions(KEYS[2], base, ARGV[20])
        local ended = {}
        for _, same in ipairs({true, false}) do
            for _, session in ipairs(live) do
                if #ended <= #live - limit and (session[6] == string.sub(ARGV[11], 9)) == same then
                    ended[#ended + 1] = session[1]
                end
            end
        end
        if ARGV[18] == '0' and #ended > 0 then return {ended} end
        publish(channel, ended, nil, ARGV[21])
        markended(base, ended)
        drop(KEYS[2], base, ended)
        redis.call('HSET', KEYS[1], 's', ARGV[1], 'g', '0', 'x', ARGV[8], 'p', ARGV[11], ARGV[14], ARGV[15])
        put(KEYS[1], {}, 'd', ARGV[9])
        put(KEYS[1], {}, 'r', ARGV[13])
        put(KEYS[1], {}, 'v', ARGV[12])
        put(KEYS[1], {}, 'm', ARGV[10])
        setaddress(KEYS[1], '', ARGV[16])
        if ARGV[17] ~= '' then put(KEYS[1], {}, 'o', ARGV[17]) end
        redis.call('PEXPIREAT', KEYS[1], text(math.min(tonumber(ARGV[8]), now + idle)))
        local newest = live[#live] and tonumber(live[#live][5]) or 0
        index(KEYS[2], keyhash, math.max(now, newest + 1), ARGV[20], ARGV[8])
        local claims = redis.call('HGET', KEYS[2], 'c')
        return {claims and string.match(claims, '^%d+') or '', ended}
        """, traits: .hasManyKeys)

    /// Writes a session that a new master does not have, unless it has ended meanwhile.
    static let insertAgain = script(
        """
        if redis.call('EXISTS', KEYS[1]) == 1 or redis.call('EXISTS', KEYS[3]) == 1 then return 0 end
        for i = 6, #ARGV, 2 do put(KEYS[1], {}, ARGV[i], ARGV[i + 1]) end
        redis.call('PEXPIREAT', KEYS[1], ARGV[3])
        local created = now
        eachsession(KEYS[2], ARGV[5], function(_, other) created = math.max(created, tonumber(other) + 1) end)
        index(KEYS[2], ARGV[4], created, ARGV[5], ARGV[2])
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
        local access = f[ARGV[4]]
        if not access then return {1} end
        local expiry = tonumber(string.match(access, '^(%d+) '))
        if not expiry then return {4} end
        if now >= expiry then return {2, record, access, ''} end
        touch(KEYS[1], ends, seen)
        setaddress(KEYS[1], f.l, ARGV[5])
        return {3, record, access, KEYS[2] and redis.call('HGET', KEYS[2], 'c') or ''}
        """, traits: .isRepeatable)

    static let storeClaims = script(
        """
        local base, channel, version = ARGV[4], ARGV[5], tonumber(ARGV[6])
        local old = redis.call('HGET', KEYS[1], 'c')
        local known = old and tonumber(string.match(old, '^%d+')) or -1
        if known > version then return 0 end
        local changed = {}
        if known < version then
            for _, session in ipairs(livesessions(KEYS[1], base, ARGV[10])) do
                changed[#changed + 1] = session[1]
            end
            publish(channel, changed, ARGV[9], ARGV[11])
        end
        redis.call('HSET', KEYS[1], 'c', ARGV[7])
        lengthen(KEYS[1], ARGV[8])
        return known < version and changed or 0
        """)

    static let read = script(
        """
        local f = fields(KEYS[1])
        local record, verifier, wrap = value(f, 'd'), value(f, 'v'), value(f, 'r')
        if not islive(tonumber(f.x), tonumber(f.s)) or not (record and verifier and wrap) then return {} end
        return {f.x, f.s, f.g, record, verifier, wrap, value(f, 'o') or '', f[ARGV[4]] or '',
            KEYS[3] and redis.call('HGET', KEYS[3], 'c') or '', redis.call('GET', KEYS[2])}
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
        if ARGV[7] ~= '' then redis.call('HSET', KEYS[1], ARGV[7], ARGV[8]) end
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
        local live = livesessions(KEYS[1], ARGV[4], ARGV[7])
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
        for _, session in ipairs(livesessions(KEYS[1], base, ARGV[9])) do
            local keyhash = session[1]
            if (id == '' or keyhash == id) and (provider == '' or session[4] == provider) and keyhash ~= excluded then
                ended[#ended + 1] = keyhash
            end
        end
        publish(ARGV[5], ended, nil, ARGV[10])
        markended(base, ended)
        drop(KEYS[1], base, ended)
        return ended
        """, traits: [.hasManyKeys, .waitsForReplicas])

    /// How long the end of a session is marked, in milliseconds: longer than an instance keeps writes to repeat them
    /// (30 s), so that none writes again what another has ended.
    private static let markLifetime = 35_000

    /// Keys say by their names which type they have; a subject also leads to its sessions.
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
            local start, kind = string.match(key, '^(.*{%x+}:)(%a)')
            if kind ~= 'u' then
                if isbad(key, kind == 's' and 'hash' or 'string') then redis.call('DEL', key) end
            elseif redis.call('TYPE', key).ok ~= 'hash' then redis.call('DEL', key)
            else
                local all = redis.call('HGETALL', key)
                for i = 1, #all, 2 do
                    local session, isclaims = start .. 's' .. all[i], all[i] == 'c'
                    if isclaims and #all[i + 1] > \(RedisRepair.largestValue)
                        or not isclaims and (#all[i + 1] > 64 or isbad(session, 'hash')) then
                        if not isclaims then redis.call('DEL', session) end
                        redis.call('HDEL', key, all[i])
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
            local count, new, old = #value > 64 and math.ceil(#value / 63) or 0, {name, value}, {}
            if count > 0 and count <= 40 then
                for i = 1, count do
                    new[2 * i - 1] = i .. name
                    new[2 * i] = string.sub(value, 63 * i - 62, 63 * i)
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

        """

    /// Functions shared by the scripts.
    ///
    /// `livesessions` returns the live sessions of a subject, oldest first, as {key hash, expiry, last use, provider
    /// hash, creation, app hash}, and deletes the others. `index` adds one to its subject, which `lengthen` lets live
    /// until then at least. `markended` marks ends. A message holds at most 512 revocation IDs,
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
            if new ~= '' and string.sub(old or '', 1, 4) ~= string.sub(new, 1, 4) then
                redis.call('HSET', key, 'l', new)
            end
        end
        local function markended(base, keyhashes)
            for _, keyhash in ipairs(keyhashes) do
                redis.call('SET', string.sub(base, 1, -2) .. 'e:' .. keyhash, '', 'PX', '\(markLifetime)')
            end
        end
        local function drop(subject, base, keyhashes)
            for _, keyhash in ipairs(keyhashes) do
                redis.call('DEL', base .. keyhash)
                redis.call('HDEL', subject, keyhash)
            end
        end
        local function eachsession(subject, name, body)
            local all = redis.call('HGETALL', subject)
            for i = 1, #all, 2 do
                if all[i] ~= 'c' then
                    local created, owner = string.match(all[i + 1], '^(%d+) (%x+)$')
                    if owner == name then body(all[i], created) end
                end
            end
        end
        local function livesessions(subject, base, name)
            local live, dead = {}, {}
            eachsession(subject, name, function(keyhash, created)
                local f = redis.call('HMGET', base .. keyhash, 'x', 's', 'p')
                if islive(tonumber(f[1]), tonumber(f[2])) then
                    live[#live + 1] = {keyhash, f[1], f[2], string.sub(f[3] or '', 1, 8), created, string.sub(f[3] or '', 9)}
                else dead[#dead + 1] = keyhash end
            end)
            table.sort(live, function(one, other) return tonumber(one[5]) < tonumber(other[5]) end)
            drop(subject, base, dead)
            return live
        end
        local function lengthen(subject, ends)
            local left = redis.call('PTTL', subject)
            if left < 0 or now + left < tonumber(ends) then redis.call('PEXPIREAT', subject, ends) end
        end
        local function index(subject, keyhash, created, name, ends)
            redis.call('HSET', subject, keyhash, text(created) .. ' ' .. name)
            lengthen(subject, ends)
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
