import MartletCore
import Testing

@testable import MartletRedis

@Suite struct RedisConnectionStateTests {
    @Test func `greets in one go with what the settings ask for`() throws {
        var settings = RedisConnectionState.Settings()
        settings.user = "ann"
        settings.password = Secret("pw")
        settings.database = 3
        var wire = try Wire(settings, greeted: false)
        #expect(
            wire.sent()
                == "*3\r\n$4\r\nAUTH\r\n$3\r\nann\r\n$2\r\npw\r\n*2\r\n$6\r\nSELECT\r\n$1\r\n3\r\n"
                + "*3\r\n$6\r\nCLIENT\r\n$7\r\nSETNAME\r\n$7\r\nmartlet\r\n*1\r\n$4\r\nPING\r\n")
        wire.receive("+OK\r\n+OK\r\n+OK\r\n")
        #expect(wire.log == [])
        wire.receive("+PONG\r\n")
        #expect(wire.log == ["ready"])
        let (isReady, next) = (wire.isReady, wire.nextDeadline)
        #expect(isReady && next == nil)
    }

    @Test func `leaves out what is not asked for, and a password goes without a user`() throws {
        var wire = try Wire(greeted: false)
        #expect(wire.sent().hasPrefix("*3\r\n$6\r\nCLIENT\r\n"))
        var settings = RedisConnectionState.Settings()
        settings.password = Secret("pw")
        var second = try Wire(settings, greeted: false)
        #expect(second.sent().hasPrefix("*2\r\n$4\r\nAUTH\r\n$2\r\npw\r\n*3\r\n"))
    }

    @Test(arguments: [
        ("-ERR unknown command\r\n+PONG\r\n", ["ready"]), ("-NOPERM no\r\n-NOPERM no\r\n", ["ready"]),
        ("+OK\r\n-LOADING x\r\n", ["close redis.loading"]), ("+OK\r\n-NOAUTH x\r\n", ["close redis.auth_required"]),
        ("+OK\r\n-ERR x\r\n", ["close redis.command_refused"]), ("+OK\r\n:1\r\n", ["close redis.reply_unexpected"]),
        ("+OK\r\n+PONG\r\n+PONG\r\n", ["ready", "close redis.reply_unexpected"]),
        ("-ERR max number of clients reached\r\n", ["close redis.too_many_clients"]),
        ("-DENIED x\r\n", ["close redis.protected_mode"]), ("HTTP/1.1 400\r\n", ["close redis.reply_malformed"]),
    ])
    func `is let in or not, whatever the pieces`(replies: String, log: [String]) throws {
        for pieces in 1...replies.utf8.count {
            var wire = try Wire(greeted: false)
            wire.receive(replies, pieces: pieces)
            #expect(wire.log == log)
        }
    }

    @Test(arguments: [
        ("-WRONGPASS x\r\n-NOAUTH x\r\n-NOAUTH x\r\n-NOAUTH x\r\n", "close redis.wrong_password"),
        ("-ERR invalid password\r\n-NOAUTH x\r\n-NOAUTH x\r\n-NOAUTH x\r\n", "close redis.wrong_password"),
        ("-ERR Client sent AUTH, but no password is set\r\n+OK\r\n+OK\r\n+PONG\r\n", "close redis.auth_refused"),
        ("+OK\r\n-ERR DB index is out of range\r\n+OK\r\n+PONG\r\n", "close redis.database_refused"),
    ])
    func `the first refused step is the reason`(replies: String, reason: String) throws {
        var settings = RedisConnectionState.Settings()
        settings.password = Secret("pw")
        settings.database = 3
        var wire = try Wire(settings, greeted: false)
        wire.receive(replies, pieces: 1)
        #expect(wire.log == [reason])
        var cut = try Wire(settings, greeted: false)
        cut.receive(String(replies.prefix { $0 != "\r\n" }) + "\r\n")
        cut.lose()
        let isFirst = replies.hasPrefix("-")
        #expect(cut.log == [isFirst ? reason : "close io.closed_by_peer"])
    }

    @Test func `gives up a greeting that does not come`() throws {
        var wire = try Wire(greeted: false)
        wire.expire(soon)
        #expect(wire.log == [])
        wire.expire(deadline)
        #expect(wire.log == ["close redis.connect_timeout"])
    }

    @Test func `takes no command before the greeting and none after the end`() throws {
        var wire = try Wire(greeted: false)
        #expect(throws: StoreError.self) { try wire.ask(1) }
        var ended = try Wire()
        ended.lose()
        ended.lose()
        #expect(ended.log == ["close io.closed_by_peer"])
        #expect(throws: StoreError.self) { try ended.ask(1) }
        ended.receive("+OK\r\n")
        #expect(ended.log == ["close io.closed_by_peer"])
    }

    @Test func `gives each command its reply, whatever the pieces`() throws {
        let replies = "+OK\r\n$2\r\nab\r\n$-1\r\n:5\r\n-ERR x\r\n-OOM x\r\n*1\r\n:1\r\n"
        for pieces in 1...replies.utf8.count {
            var wire = try Wire()
            for ticket in 1...7 { try wire.ask(UInt64(ticket)) }
            wire.receive(replies, pieces: pieces)
            #expect(
                wire.log == [
                    "1: status(\"OK\")", "2: bytes([97, 98])", "3: nothing", "4: integer(5)",
                    "5: error(kind: \"ERR\")", "6! redis.out_of_memory",
                    "7: array([MartletRedis.RedisReply.integer(1)])",
                ])
        }
    }

    @Test func `a deadline that passes ends the whole connection`() throws {
        var wire = try Wire()
        try wire.ask(1, by: soon)
        try wire.ask(2)
        try wire.ask(3)
        wire.expire(soon)
        #expect(
            wire.log == [
                "1! redis.timeout", "2! redis.connection_lost", "3! redis.connection_lost", "close redis.timeout",
            ])
        wire.receive("+late\r\n")
        #expect(wire.log.count == 4)
    }

    @Test func `answers everyone when the transport is lost`() throws {
        var wire = try Wire()
        try wire.ask(1)
        try wire.ask(2)
        wire.receive("+OK\r\n$5\r\nab")
        wire.lose()
        #expect(wire.log == ["1: status(\"OK\")", "2! redis.connection_lost", "close io.closed_by_peer"])
        #expect(wire.sent() == "")
    }

    @Test(arguments: [
        (RedisExpectation.value, ":1\r\n"), (.value, "+OK\r\n"), (.value, "*0\r\n"), (.acknowledgement, "$-1\r\n"),
        (.acknowledgement, "+QUEUED\r\n"), (.acknowledgementOrNothing, "$2\r\nOK\r\n"), (.integer, "$1\r\n1\r\n"),
    ])
    func `a reply the command cannot have ends the connection`(expectation: RedisExpectation, reply: String) throws {
        var wire = try Wire()
        try wire.ask(1, expectation)
        try wire.ask(2)
        wire.receive(reply)
        #expect(
            wire.log
                == ["1! redis.reply_unexpected", "2! redis.connection_lost", "close redis.reply_unexpected"])
    }

    @Test(arguments: [
        (RedisExpectation.value, "$1\r\na\r\n"), (.value, "$-1\r\n"), (.acknowledgement, "+OK\r\n"),
        (.acknowledgementOrNothing, "+OK\r\n"), (.acknowledgementOrNothing, "$-1\r\n"), (.integer, ":0\r\n"),
        (.value, "-WRONGTYPE x\r\n"), (.integer, "-NOSCRIPT x\r\n"), (.value, "-LOADING x\r\n"),
    ])
    func `a reply the command can have does not`(expectation: RedisExpectation, reply: String) throws {
        var wire = try Wire()
        try wire.ask(1, expectation)
        try wire.ask(2)
        wire.receive(reply + "+OK\r\n")
        #expect(wire.log.count == 2 && wire.log.last == "2: status(\"OK\")")
        let isReady = wire.isReady
        #expect(isReady)
    }

    @Test func `a reply that nobody waits for ends the connection`() throws {
        var wire = try Wire()
        wire.receive("+OK\r\n")
        #expect(wire.log == ["close redis.reply_unexpected"])
    }

    @Test func `losing the login ends the connection`() throws {
        var wire = try Wire()
        try wire.ask(1)
        try wire.ask(2)
        wire.receive("-NOAUTH x\r\n")
        #expect(wire.log == ["1! redis.auth_required", "2! redis.connection_lost", "close redis.auth_required"])
    }

    @Test func `leaves a server that became a replica, after what is under way`() throws {
        for pieces in 1...30 {
            var wire = try Wire()
            for ticket in 1...3 { try wire.ask(UInt64(ticket)) }
            wire.receive("-READONLY x\r\n", pieces: pieces)
            #expect(wire.log == ["1! redis.read_only"])
            let isReady = wire.isReady
            #expect(!isReady)
            let refusal = #expect(throws: StoreError.self) { try wire.ask(4) }
            #expect(refusal?.code == .redisNotConnected)
            wire.receive("$1\r\na\r\n-READONLY x\r\n+more\r\n", pieces: pieces)
            #expect(
                wire.log == ["1! redis.read_only", "2: bytes([97])", "3! redis.read_only", "close redis.read_only"])
        }
        var late = try Wire()
        try late.ask(1)
        try late.ask(2)
        late.receive("-READONLY x\r\n")
        late.expire(deadline)
        #expect(late.log == ["1! redis.read_only", "2! redis.timeout", "close redis.read_only"])
        var alone = try Wire()
        try alone.ask(1)
        alone.receive("-READONLY x\r\n")
        #expect(alone.log == ["1! redis.read_only", "close redis.read_only"])
    }

    @Test func `bounds what waits and what is not sent`() throws {
        var settings = RedisConnectionState.Settings()
        settings.maximumInFlight = 2
        var wire = try Wire(settings)
        try wire.ask(1)
        try wire.ask(2)
        let error = #expect(throws: StoreError.self) { try wire.ask(3) }
        #expect(error?.code == .redisOverloaded)
        wire.receive("+OK\r\n")
        try wire.ask(3)
        settings.maximumInFlight = 100
        settings.maximumUnsent = 20
        var full = try Wire(settings)
        try full.ask(1)
        try full.ask(2)
        let second = #expect(throws: StoreError.self) { try full.ask(3) }
        #expect(second?.code == .redisOverloaded)
        _ = full.sent()
        try full.ask(3)
    }

    @Test func `a heartbeat goes out only when nothing else is under way`() throws {
        var wire = try Wire()
        try wire.ask(1)
        _ = wire.sent()
        try wire.state.heartbeat(at: soon, deadline: deadline)
        #expect(wire.sent() == "")
        wire.receive("+OK\r\n")
        try wire.state.heartbeat(at: soon, deadline: deadline)
        #expect(wire.sent() == "*1\r\n$4\r\nPING\r\n")
        wire.receive("-LOADING x\r\n")
        let isReady = wire.isReady
        #expect(isReady && wire.log.count == 1)
        try wire.state.heartbeat(at: soon, deadline: deadline)
        wire.expire(deadline)
        #expect(wire.log.last == "close redis.timeout")
    }

    @Test func `pauses between attempts double, jitter and stay under two seconds`() {
        var generator = SystemRandomNumberGenerator()
        for _ in 0..<200 {
            var backoff = Backoff()
            var ceiling = 50
            for _ in 0..<70 {
                let pause = backoff.next(using: &generator)
                #expect(pause >= .milliseconds(ceiling / 2) && pause <= .milliseconds(ceiling))
                ceiling = min(ceiling * 2, 1800)
            }
            backoff.reset()
            #expect(backoff.next(using: &generator) <= .milliseconds(50))
        }
    }

    @Test func `a queue keeps its order through many turns`() {
        var queue = FirstInFirstOut<Int>()
        var next = 0
        var expected = 0
        for round in 0..<300 {
            for _ in 0..<(round % 17) {
                queue.append(next)
                next += 1
            }
            for _ in 0..<(round % 13) where queue.count > 0 {
                #expect(queue.first == expected)
                #expect(queue.popFirst() == expected)
                expected += 1
            }
            #expect(queue.count == next - expected)
        }
        while queue.popFirst() != nil { expected += 1 }
        #expect(expected == next && queue.popFirst() == nil && queue.first == nil)
    }
}
