import MartletCore
import Testing

@testable import MartletRedis

@Suite struct RedisSubscriptionStateTests {
    @Test func `subscribes in the handshake and is ready once subscribed`() throws {
        var connection = try TestConnection(subscribing, ready: false)
        #expect(connection.sent().hasSuffix("*1\r\n$4\r\nPING\r\n*2\r\n$9\r\nSUBSCRIBE\r\n$2\r\nch\r\n"))
        connection.receive("+OK\r\n+PONG\r\n")
        #expect(connection.log == [])
        connection.receive(subscribed)
        #expect(connection.log == ["ready"])
        let error = #expect(throws: StoreError.self) { try connection.submit(1) }
        #expect(error?.code == .redisNotConnected)
    }

    @Test(arguments: [
        (subscribed + message("a"), ["ready", "message a"]), ("-NOPERM x\r\n", ["close redis.not_permitted"]),
        (message("a"), ["close redis.reply_unexpected"]), (":1\r\n", ["close redis.reply_unexpected"]),
        ("-ERR x\r\n", ["close redis.command_refused"]),
    ])
    func `completes or fails the handshake with chunks of any size`(replies: String, log: [String]) throws {
        for chunkSize in 1...replies.utf8.count {
            var connection = try TestConnection(subscribing, ready: false)
            connection.receive("+OK\r\n+PONG\r\n" + replies, chunkSize: chunkSize)
            #expect(connection.log == log)
        }
    }

    @Test func `delivers messages in order, between heartbeats, with chunks of any size`() throws {
        let replies = message("one") + "*2\r\n$4\r\npong\r\n$0\r\n\r\n" + message("") + message("two")
        for chunkSize in 1...replies.utf8.count {
            var connection = try TestConnection(subscribing)
            try connection.state.heartbeat(at: soon, deadline: deadline)
            #expect(connection.sent() == "*1\r\n$4\r\nPING\r\n")
            connection.receive(replies, chunkSize: chunkSize)
            #expect(connection.log == ["message one", "message ", "message two"])
            let next = connection.nextDeadline
            #expect(next == nil)
        }
    }

    @Test func `a missing heartbeat reply closes the connection despite messages`() throws {
        var connection = try TestConnection(subscribing)
        try connection.state.heartbeat(at: soon, deadline: deadline)
        connection.receive(message("a"))
        connection.expire(deadline)
        #expect(connection.log == ["message a", "close redis.timeout"])
    }

    @Test func `an error reply to a heartbeat keeps the connection`() throws {
        var connection = try TestConnection(subscribing)
        try connection.state.heartbeat(at: soon, deadline: deadline)
        connection.receive("-NOPERM x\r\n" + message("a"))
        #expect(connection.log == ["message a"])
    }

    @Test(arguments: [
        message("a", on: "other"), "*3\r\n$11\r\nunsubscribe\r\n$2\r\nch\r\n:0\r\n", "*2\r\n:1\r\n:2\r\n",
        "+OK\r\n",
        "*4\r\n$8\r\npmessage\r\n$1\r\n*\r\n$2\r\nch\r\n$1\r\na\r\n", "$-1\r\n", "*-1\r\n",
        "*3\r\n$7\r\nmessage\r\n$2\r\nch\r\n:1\r\n", "*3\r\n$7\r\nmessage\r\n$2\r\nch\r\n$-1\r\n",
    ])
    func `any other reply closes the connection`(reply: String) throws {
        for chunkSize in 1...reply.utf8.count {
            var connection = try TestConnection(subscribing)
            connection.receive(reply, chunkSize: chunkSize)
            #expect(connection.log == ["close redis.reply_unexpected"])
        }
        var other = try TestConnection(subscribing)
        try other.state.heartbeat(at: soon, deadline: deadline)
        other.receive("+PONG\r\n")
        #expect(other.log == ["close redis.reply_unexpected"])
    }

    @Test func `accepts messages up to the size limit`() throws {
        var settings = subscribing
        settings.maximumMessage = 10
        var connection = try TestConnection(settings)
        connection.receive(message("1234567890") + message("12345678901") + message("a"))
        #expect(connection.log == ["message 1234567890", "close redis.reply_too_large"])
    }
}
