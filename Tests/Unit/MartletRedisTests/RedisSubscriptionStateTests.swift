import MartletCore
import Testing

@testable import MartletRedis

@Suite struct RedisSubscriptionStateTests {
    @Test func `subscribes with the greeting and is ready when that stands`() throws {
        var wire = try Wire(listening, greeted: false)
        #expect(wire.sent().hasSuffix("*1\r\n$4\r\nPING\r\n*2\r\n$9\r\nSUBSCRIBE\r\n$2\r\nch\r\n"))
        wire.receive("+OK\r\n+PONG\r\n")
        #expect(wire.log == [])
        wire.receive(subscribed)
        #expect(wire.log == ["ready"])
        let error = #expect(throws: StoreError.self) { try wire.ask(1) }
        #expect(error?.code == .redisNotConnected)
    }

    @Test(arguments: [
        (subscribed + message("a"), ["ready", "message a"]), ("-NOPERM x\r\n", ["close redis.not_permitted"]),
        (message("a"), ["close redis.reply_unexpected"]), (":1\r\n", ["close redis.reply_unexpected"]),
        ("-ERR x\r\n", ["close redis.command_refused"]),
    ])
    func `is let in or not, whatever the pieces`(replies: String, log: [String]) throws {
        for pieces in 1...replies.utf8.count {
            var wire = try Wire(listening, greeted: false)
            wire.receive("+OK\r\n+PONG\r\n" + replies, pieces: pieces)
            #expect(wire.log == log)
        }
    }

    @Test func `hands over messages in order, between signs of life, whatever the pieces`() throws {
        let replies = message("one") + "*2\r\n$4\r\npong\r\n$0\r\n\r\n" + message("") + message("two")
        for pieces in 1...replies.utf8.count {
            var wire = try Wire(listening)
            try wire.state.heartbeat(at: soon, deadline: deadline)
            #expect(wire.sent() == "*1\r\n$4\r\nPING\r\n")
            wire.receive(replies, pieces: pieces)
            #expect(wire.log == ["message one", "message ", "message two"])
            let next = wire.nextDeadline
            #expect(next == nil)
        }
    }

    @Test func `a sign of life that does not come ends the connection, messages or not`() throws {
        var wire = try Wire(listening)
        try wire.state.heartbeat(at: soon, deadline: deadline)
        wire.receive(message("a"))
        wire.expire(deadline)
        #expect(wire.log == ["message a", "close redis.timeout"])
    }

    @Test func `a user that may not ask for a sign of life still gives one`() throws {
        var wire = try Wire(listening)
        try wire.state.heartbeat(at: soon, deadline: deadline)
        wire.receive("-NOPERM x\r\n" + message("a"))
        #expect(wire.log == ["message a"])
    }

    @Test(arguments: [
        message("a", on: "other"), "*3\r\n$11\r\nunsubscribe\r\n$2\r\nch\r\n:0\r\n", "*2\r\n:1\r\n:2\r\n",
        "+OK\r\n",
        "*4\r\n$8\r\npmessage\r\n$1\r\n*\r\n$2\r\nch\r\n$1\r\na\r\n", "$-1\r\n", "*-1\r\n",
        "*3\r\n$7\r\nmessage\r\n$2\r\nch\r\n:1\r\n", "*3\r\n$7\r\nmessage\r\n$2\r\nch\r\n$-1\r\n",
    ])
    func `anything else ends the connection`(reply: String) throws {
        for pieces in 1...reply.utf8.count {
            var wire = try Wire(listening)
            wire.receive(reply, pieces: pieces)
            #expect(wire.log == ["close redis.reply_unexpected"])
        }
        var asked = try Wire(listening)
        try asked.state.heartbeat(at: soon, deadline: deadline)
        asked.receive("+PONG\r\n")
        #expect(asked.log == ["close redis.reply_unexpected"])
    }

    @Test func `takes a message up to the bound`() throws {
        var settings = listening
        settings.maximumMessage = 10
        var wire = try Wire(settings)
        wire.receive(message("1234567890") + message("12345678901") + message("a"))
        #expect(wire.log == ["message 1234567890", "close redis.reply_too_large"])
    }
}
