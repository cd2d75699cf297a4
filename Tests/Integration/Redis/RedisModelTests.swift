import MartletCore
import MartletTesting
import Testing
import WorldRedis

/// The model of Redis is right where it cannot be distinguished from a real server.
@Suite(.timeLimit(.minutes(2))) struct RedisModelTests {
    /// As Redis 7.0 does while a hash is small, in the order in which its fields came.
    private static let keepsOrder = ["--hash-max-ziplist-value", "100000", "--hash-max-ziplist-entries", "100000"]

    @Test func `thousands of random commands have the same replies`() throws {
        let server = try RedisServer(extra: Self.keepsOrder)
        let twin = RedisTwin(of: server.port, .now())
        let (client, subscriber) = (try twin.connect(), try twin.connect())
        try subscriber.send("SUBSCRIBE", "c")
        var commands = RandomCommands(seed: 1)
        for _ in 0..<4000 { try client.send(commands.next()) }
        try subscriber.compareMessages()
        #expect(twin.differences.isEmpty, "\(twin.differences.prefix(5).joined(separator: "\n"))")
        #expect(commands.names.count >= 25)
    }

    @Test(.enabled(if: RedisTwin.isModeled, "numbers and errors are those of Redis 7.0"))
    func `scripts, right and wrong, have the same replies`() throws {
        let server = try RedisServer()
        let twin = RedisTwin(of: server.port, .now())
        let client = try twin.connect()
        for script in oddScripts { try client.send("EVAL", script, "2", "a", "b", "1", "x y") }
        for words in ["EVAL|return 1|x", "EVAL|return 1|-1", "EVAL|return 1|3|a", "EVALSHA|abc|0", "EVAL|return 1"] {
            try client.send(words.split(separator: "|").map { Array($0.utf8) })
        }
        #expect(twin.differences.isEmpty, "\(twin.differences.joined(separator: "\n"))")
    }
}

extension RedisModel {
    /// A model of a server with the clock of this machine.
    static func now(port: UInt16 = 0) -> RedisModel {
        RedisModel(at: RedisAddress(host: "127.0.0.1", port: Int(port)), engine: ScriptEngine()) {
            Clock.system.unixMilliseconds
        }
    }
}

/// Commands that the gateway uses, on few keys, with arguments that are right more often than not.
struct RandomCommands {
    private var generator: SeededGenerator
    private(set) var names: Set<String> = []

    init(seed: UInt64) { generator = SeededGenerator(seed: seed) }

    private static let values = [
        "", "0", "1", "-1", "41", "007", " 5", "9223372036854775807", "-9223372036854775808", "x", "\r\n", "*1\r\n",
        "ünï", String(repeating: "long ", count: 20), "a", "b", "3.5", "1e3",
    ]
    private static let patterns = ["*", "s*", "?1", "z\\*", "s\\?", "*1", "", "h?", "*[", "s1"]

    mutating func next() -> [[UInt8]] {
        let command = make()
        names.insert(command[0].uppercased())
        // Sometimes a word too few, or too many.
        var words = command
        switch Int.random(in: 0..<60, using: &generator) {
        case 0: words.removeLast()
        case 1: words.append(value())
        default: break
        }
        if words.isEmpty { words = ["PING"] }
        return words.map { Array($0.utf8) }
    }

    private mutating func pick(_ words: [String]) -> String { words.randomElement(using: &generator) ?? "" }
    private mutating func value() -> String { pick(Self.values) }
    private mutating func field() -> String { pick(["a", "b", "c", "d", ""]) }
    private mutating func score() -> String { pick(["1", "2", "2", "-3", "0.5", "1e3", "inf", "-inf", "nan", "x"]) }
    private mutating func index() -> String { pick(["0", "1", "2", "-1", "-2", "-100", "100", "x"]) }

    /// Mostly a key of the type.
    private mutating func key(_ type: String) -> String {
        let kind = Int.random(in: 0..<15, using: &generator) == 0 ? pick(["s", "h", "z", "n"]) : type
        return kind + pick(["1", "2", "3"])
    }

    private mutating func some(_ range: ClosedRange<Int>, _ make: (inout Self) -> [String]) -> [String] {
        (0..<Int.random(in: range, using: &generator)).flatMap { _ in make(&self) }
    }

    private mutating func make() -> [String] {
        switch Int.random(in: 0..<30, using: &generator) {
        case 0, 1: return ["SET", key("s"), value()] + some(0...1) { [$0.pick(["NX", "nx"])] }
        case 2:
            return ["SET", key("s"), value(), "PX", pick(["100000", "100000", "0", "-1", "x", "9223372036854775807"])]
        case 3: return ["SET", key("s"), value(), "NX", "PX", "100000"]
        case 4, 5: return ["GET", key("s")]
        case 6: return ["GETDEL", key("s")]
        case 7: return ["STRLEN", key("s")]
        case 8: return ["INCR", key("n")]
        case 9: return ["decr", key("n")]
        case 10: return ["SET", key("n"), pick(["5", "-7", "9223372036854775806"])]
        case 11: return ["DEL"] + some(1...3) { [$0.key($0.pick(["s", "h", "z"]))] }
        case 12: return ["EXISTS"] + some(1...3) { [$0.key($0.pick(["s", "h", "z"]))] }
        case 13: return ["TYPE", key(pick(["s", "h", "z"]))]
        case 14:
            return ["PEXPIRE", key(pick(["s", "h", "z"])), pick(["200000", "-1", "0", "x", "9223372036854775807"])]
        case 15: return ["PEXPIREAT", key(pick(["s", "h", "z"])), pick(["1", "1000", "99999999999999", "-5", "x"])]
        case 16: return ["PTTL", key(pick(["s", "h", "z"]))]
        case 17, 18: return ["HSET", key("h")] + some(1...3) { [$0.field(), $0.value()] }
        case 19: return ["HGET", key("h"), field()]
        case 20: return ["HMGET", key("h")] + some(1...3) { [$0.field()] }
        case 21: return [pick(["HGETALL", "HVALS"]), key("h")]
        case 22: return ["HDEL", key("h")] + some(1...2) { [$0.field()] }
        case 23, 24: return ["ZADD", key("z")] + some(1...3) { [$0.score(), $0.value()] }
        case 25: return ["ZREM", key("z")] + some(1...2) { [$0.value()] }
        case 26, 27: return ["ZRANGE", key("z"), index(), index()] + some(0...1) { _ in ["WITHSCORES"] }
        case 28:
            return [
                "SCAN", pick(["0", "0", "0", "x"]), "COUNT", pick(["1000", "0", "x"]), "MATCH", pick(Self.patterns),
            ]
        default:
            return [
                ["PUBLISH", pick(["c", "d"]), value()], ["PING"], ["PING", value()], ["SELECT", "0"], ["ROLE"],
                ["CLIENT", "SETNAME", "x"], ["CLIENT"], ["NONE", "a", "b"], ["WAIT", "0", "1"], ["WAIT", "x", "1"],
                ["WAIT", "0", "-1"], ["CLUSTER", "SLOTS"], ["AUTH", "x"], ["AUTH", "a", "b"],
            ].randomElement(using: &generator) ?? []
        }
    }
}

/// What Lua and Redis make of each other's values and errors.
private let oddScripts = [
    "return {1, 2.9, -2.9, 'a', true, false, {1, {2}}, nil, 5}", "return {ok = 'x', 1}", "return", "return 1e300",
    "return 0/0", "return -1e15", "return {err = 'MY boom'}", "return redis.error_reply('MY boom')",
    "return redis.error_reply('-MY boom')", "return redis.error_reply('boom')", "return redis.status_reply('fine')",
    "return KEYS[1] .. ARGV[1] .. #ARGV .. #KEYS", "return tostring(1e15) .. ' ' .. 0.1 .. ' ' .. 1/3",
    "return redis.call('SET', KEYS[1], 12345678901234567890)", "return redis.call('GET', KEYS[1])",
    "return redis.call('SET', KEYS[1], 0.1)", "return redis.call('GET', KEYS[1])", "return redis.call('INCR', KEYS[1])",
    "return redis.call('SET', KEYS[1], true)", "return redis.call()", "return redis.call('GET')",
    "return redis.call('FOO', 'a')", "return redis.pcall('FOO', 'a')", "return redis.pcall('FOO').err",
    "return redis.call('HGETALL', KEYS[1])", "return redis.pcall('HGETALL', KEYS[1])",
    "\n\nlocal function f()\n return redis.call('HGETALL', KEYS[1]) end\n local x = f() return x",
    "local function f()\nreturn redis.call('GET') end\nreturn f()",
    "return foo", "foo = 1", "string = 1", "return nil + 1", "error('boom')", "error({err = 'MY boom'})",
    "return {} .. 'x'",
    "return redis.call('PING')", "return redis.call('ROLE')", "redis.call('EVAL', 'return 1', 0)",
    "redis.call('SUBSCRIBE', 'x')", "return redis.call('WAIT', '0', '0')", "retur 1", "if x then",
    "return 1 end return 2",
    "redis.call('SET', KEYS[2], 'left') error('boom')", "return redis.call('GET', KEYS[2])",
    "return redis.call('TYPE', KEYS[2]).ok", "return {redis.call('HMGET', 'h', 'a', 'b'), redis.call('GET', 'none')}",
    "return redis.call('EXISTS', KEYS[1], KEYS[2], 'none')", "return string.format('%.0f %5.2f %s', 2^53, 1.005, 'x')",
    "local t = {} for k, v in pairs({a = 1, b = 2, c = 3, dd = 4, ee = 5}) do t[#t + 1] = k end return t",
    "return {string.find('a{b}c', '{', 1, true), string.match('12 34', '^(%d+) (%d+)$')}",
    "return {math.floor(-1.5), math.ceil(1.2), math.max(1, 3, 2), math.min(1, 3), #table.concat({'a', 'b'})}",
    "return {unpack({1, 2, 3}, 2)}", "return select('#', nil, nil)", "return type(redis.call)",
    "return redis.call('ZADD', 'z', 1, 'a', 2, 'b')",
    "return redis.call('ZRANGE', 'z', 0, -1, 'WITHSCORES')", "return redis.call('ZRANGE', 'z', '-1', '-1')",
]
