import MartletCore
import MartletRedis
import MartletTesting
import Testing

/// A server that is not Redis, or is broken: it completes the handshake, then sends the same reply to every read.
private final class SimulatedRedis: Sendable {
    private let listener: Listener
    let connections = Box(0)

    init(greeting: String = "+OK\r\n+PONG\r\n", reply: String, isCut: Bool = false) throws {
        let listener = try Listener(on: .loopback(0))
        self.listener = listener
        let connections = connections
        accepting = Background {
            while let socket = listener.accept() {
                connections.withLock { $0 += 1 }
                guard (try? socket.receive()) != nil, (try? socket.send(greeting)) != nil else { continue }
                guard let bytes = try? socket.receive(within: .seconds(5)), !bytes.isEmpty else { continue }
                try? socket.send(reply)
                if !isCut { _ = socket.isEnded(within: .seconds(5)) }
                socket.close()
            }
        }
    }

    private let accepting: Background<Void>

    var url: String { "redis://\(listener.endpoint)" }

    deinit { listener.close() }
}

@Suite(.timeLimit(.minutes(2))) struct RedisNonsenseTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let reply: String
        let code: ErrorCode
        var isCut = false
    }

    static let cases = [
        Case(testDescription: "HTTP", reply: "HTTP/1.1 400 Bad Request\r\n\r\n", code: .redisReplyMalformed),
        Case(testDescription: "a bulk of a terabyte", reply: "$1099511627776\r\nx", code: .redisTimeout),
        Case(
            testDescription: "a bulk of an impossible length", reply: "$99999999999999999999\r\n",
            code: .redisReplyMalformed),
        Case(testDescription: "a negative length", reply: "$-7\r\n", code: .redisReplyMalformed),
        Case(testDescription: "an array of two billion", reply: "*2147483647\r\n", code: .redisReplyMalformed),
        Case(testDescription: "an array above the bound", reply: "*65537\r\n", code: .redisReplyMalformed),
        Case(
            testDescription: "deep nesting", reply: String(repeating: "*1\r\n", count: 50), code: .redisReplyMalformed),
        Case(testDescription: "RESP3", reply: "%1\r\n+a\r\n+b\r\n", code: .redisReplyMalformed),
        Case(testDescription: "a number for a value", reply: ":1\r\n", code: .redisReplyUnexpected),
        Case(testDescription: "an array for a value", reply: "*1\r\n$1\r\na\r\n", code: .redisReplyUnexpected),
        Case(testDescription: "half a reply and the end", reply: "$5\r\nab", code: .redisConnectionLost, isCut: true),
        Case(testDescription: "half a reply and silence", reply: "$5\r\nab", code: .redisTimeout),
    ]

    @Test(arguments: cases)
    func `nonsense is an outage and costs the connection`(sample: Case) async throws {
        let server = try SimulatedRedis(reply: sample.reply, isCut: sample.isCut)
        try await withRedis(server.url) { client in
            try await client.waitUntilConnected()
            let code = await client.outage(reading: "a")
            // A command that had been queued behind the first learns of the lost connection alone.
            #expect(code == sample.code || code == .redisConnectionLost)
            _ = try await waitForConnections(server, 2)
        }
    }

    @Test(arguments: [
        ("LOADING Redis is loading the dataset in memory", ErrorCode.redisLoading),
        ("MASTERDOWN Link with MASTER is down", .redisMasterDown),
        ("CLUSTERDOWN Hash slot not served", .redisClusterDown),
        ("MOVED 3999 127.0.0.1:6381", .redisMoved),
        ("BUSY Redis is busy running a script", .redisBusy),
        ("TRYAGAIN Multiple keys request during rehashing of slot", .redisTryAgain),
        ("MISCONF Redis is configured to save RDB snapshots", .redisMisconfigured),
        ("READONLY You can't write against a read only replica.", .redisReadOnly),
        ("OOM command not allowed when used memory > 'maxmemory'.", .redisOutOfMemory),
        ("NOAUTH Authentication required.", .redisAuthRequired),
        ("ERR something else", .redisRefused),
    ])
    func `every error reply has its code`(text: String, code: ErrorCode) async throws {
        let server = try SimulatedRedis(reply: "-\(text)\r\n")
        try await withRedis(server.url) { client in
            try await client.waitUntilConnected()
            #expect(await client.outage(reading: "a") == code)
        }
    }

    @Test(arguments: [
        ("+OK\r\n-LOADING Redis is loading the dataset in memory\r\n", ErrorCode.redisLoading),
        ("-NOAUTH Authentication required.\r\n-NOAUTH Authentication required.\r\n", .redisAuthRequired),
        ("-ERR max number of clients reached\r\n", .redisTooManyClients),
        ("-DENIED Redis is running in protected mode\r\n", .redisProtectedMode),
        ("SSH-2.0-OpenSSH_9.2\r\n", .redisReplyMalformed),
        ("+OK\r\n+OK\r\n", .redisReplyUnexpected),
    ])
    func `a handshake that is refused keeps the client down with the reason`(
        greeting: String, code: ErrorCode
    ) async throws {
        let server = try SimulatedRedis(greeting: greeting, reply: "")
        try await withRedis(server.url) { client in
            #expect(await failure { () async throws(StoreError) in try await client.waitUntilConnected() } == code)
            #expect(client.status.state == .down && client.status.lastError?.code == code)
        }
    }

    @Test func `a silent server is given up after the connect deadline`() async throws {
        let server = try SimulatedRedis(greeting: "", reply: "")
        try await withRedis(server.url) { client in
            #expect(
                await failure { () async throws(StoreError) in try await client.waitUntilConnected() }
                    == .redisConnectTimeout)
        }
    }

    @Test func `a silent idle connection is found dead by its heartbeat`() async throws {
        let server = try SimulatedRedis(reply: "")
        var options = RedisOptions()
        options.heartbeatInterval = .milliseconds(50)
        options.commandTimeout = .milliseconds(100)
        try await withRedis(server.url, options: options) { client in
            try await client.waitUntilConnected()
            try await waitForConnections(server, 2)
            #expect(client.status.failures.isEmpty)
        }
    }

    private func waitForConnections(_ server: SimulatedRedis, _ count: Int) async throws {
        let start = ContinuousClock.now
        while server.connections.value < count {
            guard ContinuousClock.now - start < .seconds(20) else { throw TestFailure("no new connection") }
            try await Task.sleep(for: .milliseconds(5))
        }
    }
}
