import MartletCore
import Testing

@testable import MartletRedis

@Suite struct RedisConnectionStateTests {
    @Test func `pipelines the handshake that the settings require`() throws {
        var settings = RedisConnectionState.Settings()
        settings.credentials = RedisURL.Credentials(user: "ann", password: Secret("pw"))
        settings.database = 3
        var connection = try TestConnection(settings, ready: false)
        #expect(
            connection.sent()
                == "*3\r\n$4\r\nAUTH\r\n$3\r\nann\r\n$2\r\npw\r\n*2\r\n$6\r\nSELECT\r\n$1\r\n3\r\n"
                + "*3\r\n$6\r\nCLIENT\r\n$7\r\nSETNAME\r\n$7\r\nmartlet\r\n*1\r\n$4\r\nPING\r\n")
        connection.receive("+OK\r\n+OK\r\n+OK\r\n")
        #expect(connection.log == [])
        connection.receive("+PONG\r\n")
        #expect(connection.log == ["ready"])
        let (isReady, next) = (connection.isReady, connection.nextDeadline)
        #expect(isReady && next == nil)
    }

    @Test func `omits unneeded handshake steps, and authenticates with a password alone`() throws {
        var connection = try TestConnection(ready: false)
        #expect(connection.sent().hasPrefix("*3\r\n$6\r\nCLIENT\r\n"))
        var settings = RedisConnectionState.Settings()
        settings.credentials = RedisURL.Credentials(user: nil, password: Secret("pw"))
        var second = try TestConnection(settings, ready: false)
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
    func `completes or fails the handshake with chunks of any size`(replies: String, log: [String]) throws {
        for chunkSize in 1...replies.utf8.count {
            var connection = try TestConnection(ready: false)
            connection.receive(replies, chunkSize: chunkSize)
            #expect(connection.log == log)
        }
    }

    @Test(arguments: [
        ("-WRONGPASS x\r\n-NOAUTH x\r\n-NOAUTH x\r\n-NOAUTH x\r\n", "close redis.wrong_password"),
        ("-ERR invalid password\r\n-NOAUTH x\r\n-NOAUTH x\r\n-NOAUTH x\r\n", "close redis.wrong_password"),
        ("-ERR Client sent AUTH, but no password is set\r\n+OK\r\n+OK\r\n+PONG\r\n", "close redis.auth_refused"),
        ("+OK\r\n-ERR DB index is out of range\r\n+OK\r\n+PONG\r\n", "close redis.database_refused"),
    ])
    func `the first failed handshake step is the reason`(replies: String, reason: String) throws {
        var settings = RedisConnectionState.Settings()
        settings.credentials = RedisURL.Credentials(user: nil, password: Secret("pw"))
        settings.database = 3
        var connection = try TestConnection(settings, ready: false)
        connection.receive(replies, chunkSize: 1)
        #expect(connection.log == [reason])
        var cut = try TestConnection(settings, ready: false)
        cut.receive(String(replies.prefix { $0 != "\r\n" }) + "\r\n")
        cut.lose()
        let isFirst = replies.hasPrefix("-")
        #expect(cut.log == [isFirst ? reason : "close io.closed_by_peer"])
    }

    @Test func `times out the handshake`() throws {
        var connection = try TestConnection(ready: false)
        connection.expire(soon)
        #expect(connection.log == [])
        connection.expire(deadline)
        #expect(connection.log == ["close redis.connect_timeout"])
    }

    @Test func `rejects commands before the handshake and after the end`() throws {
        var connection = try TestConnection(ready: false)
        #expect(throws: StoreError.self) { try connection.submit(1) }
        var ended = try TestConnection()
        ended.lose()
        ended.lose()
        #expect(ended.log == ["close io.closed_by_peer"])
        #expect(throws: StoreError.self) { try ended.submit(1) }
        ended.receive("+OK\r\n")
        #expect(ended.log == ["close io.closed_by_peer"])
    }

    @Test func `matches replies to commands with chunks of any size`() throws {
        let replies = "+OK\r\n$2\r\nab\r\n$-1\r\n:5\r\n-ERR x\r\n-OOM x\r\n*1\r\n:1\r\n"
        for chunkSize in 1...replies.utf8.count {
            var connection = try TestConnection()
            for ticket in 1...7 { try connection.submit(UInt64(ticket)) }
            connection.receive(replies, chunkSize: chunkSize)
            #expect(
                connection.log == [
                    "1: status(\"OK\")", "2: bytes([97, 98])", "3: nothing", "4: integer(5)",
                    "5: error(kind: \"ERR\")", "6! redis.out_of_memory",
                    "7: array([MartletRedis.RedisReply.integer(1)])",
                ])
        }
    }

    @Test func `an expired deadline closes the connection`() throws {
        var connection = try TestConnection()
        try connection.submit(1, by: soon)
        try connection.submit(2)
        try connection.submit(3)
        connection.expire(soon)
        #expect(
            connection.log == [
                "1! redis.timeout", "2! redis.connection_lost", "3! redis.connection_lost", "close redis.timeout",
            ])
        connection.receive("+late\r\n")
        #expect(connection.log.count == 4)
    }

    @Test func `fails all pending commands when the transport is lost`() throws {
        var connection = try TestConnection()
        try connection.submit(1)
        try connection.submit(2)
        connection.receive("+OK\r\n$5\r\nab")
        connection.lose()
        #expect(connection.log == ["1: status(\"OK\")", "2! redis.connection_lost", "close io.closed_by_peer"])
        #expect(connection.sent() == "")
    }

    @Test(arguments: [
        (RedisExpectation.value, ":1\r\n"), (.value, "+OK\r\n"), (.value, "*0\r\n"), (.acknowledgement, "$-1\r\n"),
        (.acknowledgement, "+QUEUED\r\n"), (.acknowledgementOrNothing, "$2\r\nOK\r\n"), (.integer, "$1\r\n1\r\n"),
    ])
    func `a reply of the wrong type closes the connection`(expectation: RedisExpectation, reply: String) throws {
        var connection = try TestConnection()
        try connection.submit(1, expectation)
        try connection.submit(2)
        connection.receive(reply)
        #expect(
            connection.log
                == ["1! redis.reply_unexpected", "2! redis.connection_lost", "close redis.reply_unexpected"])
    }

    @Test(arguments: [
        (RedisExpectation.value, "$1\r\na\r\n"), (.value, "$-1\r\n"), (.acknowledgement, "+OK\r\n"),
        (.acknowledgementOrNothing, "+OK\r\n"), (.acknowledgementOrNothing, "$-1\r\n"), (.integer, ":0\r\n"),
        (.value, "-WRONGTYPE x\r\n"), (.integer, "-NOSCRIPT x\r\n"), (.value, "-LOADING x\r\n"),
    ])
    func `a reply of a valid type does not close the connection`(expectation: RedisExpectation, reply: String) throws {
        var connection = try TestConnection()
        try connection.submit(1, expectation)
        try connection.submit(2)
        connection.receive(reply + "+OK\r\n")
        #expect(connection.log.count == 2 && connection.log.last == "2: status(\"OK\")")
        let isReady = connection.isReady
        #expect(isReady)
    }

    @Test func `an unsolicited reply closes the connection`() throws {
        var connection = try TestConnection()
        connection.receive("+OK\r\n")
        #expect(connection.log == ["close redis.reply_unexpected"])
    }

    @Test func `losing the authentication closes the connection`() throws {
        var connection = try TestConnection()
        try connection.submit(1)
        try connection.submit(2)
        connection.receive("-NOAUTH x\r\n")
        #expect(connection.log == ["1! redis.auth_required", "2! redis.connection_lost", "close redis.auth_required"])
    }

    @Test func `drains and closes the connection to a server that became a replica`() throws {
        for chunkSize in 1...30 {
            var connection = try TestConnection()
            for ticket in 1...3 { try connection.submit(UInt64(ticket)) }
            connection.receive("-READONLY x\r\n", chunkSize: chunkSize)
            #expect(connection.log == ["1! redis.read_only"])
            let isReady = connection.isReady
            #expect(!isReady)
            let rejection = #expect(throws: StoreError.self) { try connection.submit(4) }
            #expect(rejection?.code == .redisNotConnected)
            connection.receive("$1\r\na\r\n-READONLY x\r\n+more\r\n", chunkSize: chunkSize)
            #expect(
                connection.log == [
                    "1! redis.read_only", "2: bytes([97])", "3! redis.read_only", "close redis.read_only",
                ])
        }
        var late = try TestConnection()
        try late.submit(1)
        try late.submit(2)
        late.receive("-READONLY x\r\n")
        late.expire(deadline)
        #expect(late.log == ["1! redis.read_only", "2! redis.timeout", "close redis.read_only"])
        var alone = try TestConnection()
        try alone.submit(1)
        alone.receive("-READONLY x\r\n")
        #expect(alone.log == ["1! redis.read_only", "close redis.read_only"])
    }

    @Test func `limits the commands in flight and the unsent bytes`() throws {
        var settings = RedisConnectionState.Settings()
        settings.maximumInFlight = 2
        var connection = try TestConnection(settings)
        try connection.submit(1)
        try connection.submit(2)
        let error = #expect(throws: StoreError.self) { try connection.submit(3) }
        #expect(error?.code == .redisOverloaded)
        connection.receive("+OK\r\n")
        try connection.submit(3)
        settings.maximumInFlight = 100
        settings.maximumUnsent = 20
        var full = try TestConnection(settings)
        try full.submit(1)
        try full.submit(2)
        let second = #expect(throws: StoreError.self) { try full.submit(3) }
        #expect(second?.code == .redisOverloaded)
        _ = full.sent()
        try full.submit(3)
    }

    @Test func `a heartbeat is sent only when no command is pending`() throws {
        var connection = try TestConnection()
        try connection.submit(1)
        _ = connection.sent()
        try connection.state.heartbeat(at: soon, deadline: deadline)
        #expect(connection.sent() == "")
        connection.receive("+OK\r\n")
        try connection.state.heartbeat(at: soon, deadline: deadline)
        #expect(connection.sent() == "*1\r\n$4\r\nPING\r\n")
        connection.receive("-LOADING x\r\n")
        let isReady = connection.isReady
        #expect(isReady && connection.log.count == 1)
        try connection.state.heartbeat(at: soon, deadline: deadline)
        connection.expire(deadline)
        #expect(connection.log.last == "close redis.timeout")
    }
}
