import Testing
import WorldRedis

@Suite struct ScriptTests {
    private let stage = Stage()

    @Test(arguments: [
        ("return {1, 2.9, -2.9, 'a', true, false, {1, {2}}, nil, 5}", "*7|:1|:2|:-2|$1|a|:1|$-1|*2|:1|*1|:2"),
        ("return {ok = 'x', 1}", "+x"), ("return redis.error_reply('MY boom')", "-MY boom"),
        ("return KEYS[1] .. ARGV[1] .. #ARGV", "$4|kab2"), ("return", "$-1"), ("return 1e300", ":-9223372036854775808"),
        ("return redis.call('SET', KEYS[1], 0.1) and redis.call('GET', KEYS[1])", "$19|0.10000000000000001"),
        ("return redis.pcall('FOO').err", "$44|ERR Unknown Redis command called from script"),
        ("return {redis.call('HMGET', KEYS[1], 'a', 'b'), redis.call('TYPE', KEYS[1]).ok}", "*2|*2|$-1|$-1|$4|none"),
        ("if x then", "-ERR Error compiling script (new function): user_script:1: 'end' expected near '<eof>'"),
    ])
    func `replies as Redis does`(source: String, reply: String) {
        #expect(stage.server().connect().call(words: "EVAL", source, "1", "k", "ab", "c") == reply)
    }

    @Test(arguments: [
        ("return foo", "ERR user_script:1: Script attempted to access nonexistent global variable 'foo'", 1),
        ("\nfoo = 1", "ERR user_script:2: Attempt to modify a readonly table", 2),
        ("string = 1", "ERR user_script:1: Attempt to modify a readonly table", 1),
        ("return nil + 1", "ERR user_script:1: attempt to perform arithmetic on a nil value", 1),
        (
            "local function f()\nreturn redis.call('GET') end\nreturn f()",
            "ERR Wrong number of args calling Redis command from script", 2
        ),
        ("redis.call('SET', KEYS[1], 'a') redis.call('ROLE')", "ERR This Redis command is not allowed from script", 1),
    ])
    func `errors have Redis' words, and undo nothing`(source: String, message: String, line: Int) {
        let peer = stage.server().connect()
        let words = ["EVAL", source, "1", "k"]
        peer.receive(RedisPeer.encoded(words))
        let reply = peer.take()
        #expect(reply.hasPrefix("-\(message) script: ") && reply.hasSuffix(", on @user_script:\(line)."))
        if source.hasPrefix("redis.call('SET'") { #expect(peer.call("GET k") == "$1|a") }
    }

    @Test func `are known by their digest until the server restarts`() {
        let server = stage.server()
        let digest = "e0e1f9fabfc9d4800c877a703b823ac0578ff8db"
        let unknown = "-NOSCRIPT No matching script. Please use EVAL."
        #expect(server.connect().call("EVALSHA \(digest) 0") == unknown)
        #expect(server.connect().call(words: "SCRIPT", "LOAD", "return 1") == "$40|\(digest)")
        #expect(server.connect().call("EVALSHA \(digest.uppercased()) 0") == ":1")
        let other = stage.server()
        #expect(other.connect().call("EVALSHA \(digest) 0") == unknown)
        server.restart()
        #expect(server.connect().call("EVALSHA \(digest) 0") == unknown)
    }

    @Test func `time stands still in a script, and what refuses writes refuses its writes`() {
        let server = stage.server()
        let peer = server.connect()
        #expect(peer.call(words: "EVAL", "return redis.call('TIME')", "0") == "*2|$4|1000|$1|0")
        let write = "return redis.call('SET', KEYS[1], 'b')"
        server.conditions = .outOfMemory
        #expect(peer.call(words: "EVAL", write, "1", "a").hasPrefix("-OOM command not allowed"))
        // What has written once may go on.
        #expect(peer.call(words: "EVAL", "redis.call('DEL', KEYS[1]) " + write, "1", "a") == "+OK")
        server.conditions = .tooFewReplicas
        #expect(peer.call(words: "EVAL", write, "1", "a").hasPrefix("-NOREPLICAS "))
        server.conditions = []
        server.deniedCommands = ["set"]
        #expect(peer.call(words: "EVAL", write, "1", "a").hasPrefix("-ERR The user executing the script can't"))
    }
}
