import Testing
import WorldRedis

@Suite struct RedisModelTests {
    private let stage = Stage()

    @Test(arguments: [
        ("PING", "+PONG"), ("PING a", "$1|a"), ("SET a 1\nGET a\nDEL a a\nGET a", "+OK|$1|1|:1|$-1"),
        ("SET a 1 NX PX 10\nSET a 2 NX\nGET a\nPTTL a", "+OK|$-1|$1|1|:10"),
        ("GETDEL a\nSET a 1\nGETDEL a", "$-1|+OK|$1|1"),
        ("INCR n\nINCR n\nDECR n\nSET n x\nINCR n", ":1|:2|:1|+OK|-ERR value is not an integer or out of range"),
        (
            "HSET h b 1 a 2 b 3\nHGETALL h\nHDEL h b z\nHVALS h\nHDEL h a\nEXISTS h",
            ":2|*4|$1|b|$1|3|$1|a|$1|2|:1|*1|$1|2|:1|:0"
        ),
        (
            "ZADD z 2 b 1 c 1 a\nZRANGE z 0 -1\nZRANGE z -1 -1 WITHSCORES\nZREM z a b\nTYPE z",
            ":3|*3|$1|a|$1|c|$1|b|*2|$1|b|$1|2|:2|+zset"
        ),
        ("HSET h a 1\nGET h", ":1|-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("GET", "-ERR wrong number of arguments for 'get' command"), ("AUTH default x", "+OK"),
        ("SCAN 0 MATCH a*", "*2|$1|0|*0"),
    ])
    func `replies as Redis does`(commands: String, replies: String) {
        let server = stage.server()
        #expect(server.connect().call(commands) == replies)
        #expect(server.unknownCommands.isEmpty)
    }

    @Test func `commands come in pieces of every size`() {
        let words = [["SET", "a", "1\r\n$"], ["GET", "a"], ["PING"]]
        let bytes = words.flatMap { RedisPeer.encoded($0) } + Array("*0\r\n*1\r\n$4\r\nPING\r\n".utf8)
        for size in 1...bytes.count {
            let peer = stage.server().connect()
            for start in stride(from: 0, to: bytes.count, by: size) {
                peer.receive(Array(bytes[start..<min(start + size, bytes.count)]))
            }
            #expect(String(decoding: peer.output, as: UTF8.self) == "+OK\r\n$4\r\n1\r\n$\r\n+PONG\r\n+PONG\r\n")
        }
    }

    @Test(arguments: ["GET a\r\n", "*x\r\n", "*1\r\n!4\r\n", "*1\r\n$x\r\n", "*1\r\n$-1\r\n"])
    func `what is no command ends the connection`(bytes: String) {
        let server = stage.server()
        let peer = server.connect()
        peer.receive(Array(bytes.utf8))
        #expect(peer.isClosed && peer.take().hasPrefix("-ERR Protocol error: "))
        #expect(server.unknownCommands.count == 1)
    }

    @Test(arguments: [
        "LPUSH a b", "SET a b EX 5", "SET a b XX", "PEXPIRE a 5 NX", "ZADD z NX 1 a", "ZADD z NX CH 1 a",
        "ZRANGE z 0 -1 REV", "SCAN 0 TYPE string", "INFO", "SELECT 3", "CLIENT LIST", "SENTINEL MASTERS", "HELLO 3",
    ])
    func `notes what it does not know`(command: String) {
        let server = stage.server()
        _ = server.connect().call(command)
        #expect(server.unknownCommands.count == 1)
    }

    @Test func `keys expire by the clock`() {
        let server = stage.server()
        let peer = server.connect()
        #expect(peer.call("SET a 1 PX 10\nHSET h f 1\nPEXPIREAT h 1000020\nPEXPIREAT none 5") == "+OK|:1|:1|:0")
        stage.now += 10
        #expect(peer.call("GET a\nPTTL a\nPTTL h") == "$1|1|:0|:10")
        stage.now += 1
        #expect(peer.call("GET a\nPTTL a\nEXISTS a h\nINCR a\nPTTL a") == "$-1|:-2|:1|:1|:-1")
        #expect(peer.call("PEXPIRE h -1\nEXISTS h") == ":1|:0")
    }

    @Test func `a scan returns each key that stays, once`() {
        let server = stage.server()
        let peer = server.connect()
        for number in 0..<100 { _ = peer.call("SET k\(number) 1") }
        var (cursor, found) = ("0", [Substring]())
        repeat {
            let parts = peer.call("SCAN \(cursor) COUNT 7 MATCH k?*").split(separator: "|")
            cursor = String(parts[2])
            found += parts.dropFirst(4).filter { $0.hasPrefix("k") }
            _ = peer.call("DEL k\(found.count)\nSET new\(found.count) 1")
        } while cursor != "0"
        #expect(Set(found).count == found.count && found.count >= 80)
    }

    @Test(arguments: [
        (RedisConditions.loading, "GET a", "-LOADING Redis is loading the dataset in memory"),
        (.loading, "CLIENT SETNAME x", "+OK"),
        (.busy, "PING", "-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."),
        (.outOfMemory, "SET a b", "-OOM command not allowed when used memory > 'maxmemory'."),
        (.outOfMemory, "DEL a", ":0"),
        (.tooFewReplicas, "DEL a", "-NOREPLICAS Not enough good replicas to write."), (.tooFewReplicas, "GET a", "$-1"),
    ])
    func `says what is wrong with it`(condition: RedisConditions, command: String, reply: String) {
        let server = stage.server()
        server.conditions = condition
        #expect(server.connect().call(command) == reply)
        server.conditions = []
        #expect(server.connect().call("PING") == "+PONG")
    }

    @Test func `asks for a password, and refuses commands and clients`() {
        let server = stage.server()
        server.password = "p"
        server.deniedCommands = ["get"]
        let peer = server.connect()
        #expect(peer.call("PING\nFOO\nAUTH x\nAUTH p\nPING").hasPrefix("-NOAUTH Authentication required.|-ERR unknown"))
        #expect(peer.call("GET a") == "-NOPERM this user has no permissions to run the 'get' command")
        server.connectionError = "ERR max number of clients reached"
        let refused = server.connect()
        #expect(refused.take() == "-ERR max number of clients reached" && refused.isClosed)
    }

    @Test func `messages go to subscribers, in a script too`() {
        let server = stage.server()
        let (peer, other) = (server.connect(), server.connect())
        #expect(peer.call("SUBSCRIBE a\nPING\nGET a").hasPrefix("*3|$9|subscribe|$1|a|:1|*2|$4|pong|$0|"))
        peer.output = []
        var changes = 0
        peer.onChange = { changes += 1 }
        #expect(other.call("PUBLISH a x\nPUBLISH b x") == ":1|:0")
        #expect(peer.take() == "*3|$7|message|$1|a|$1|x" && changes == 1)
        #expect(other.call(words: "EVAL", "return redis.call('PUBLISH', 'a', 'y')", "0") == ":1")
        #expect(peer.take() == "*3|$7|message|$1|a|$1|y")
        peer.close()
        #expect(other.call("PUBLISH a x") == ":0")
    }
}
