import MartletCore
import MartletIO
import MartletRedis
import MartletTesting
import Testing

/// What a subscriber received: messages, and `gap` for each gap.
private final class Ear: Sendable {
    private let heard = Box<[String]>([])

    var all: [String] { heard.value }
    var gaps: Int { all.count { $0 == "gap" } }

    func hear(_ payload: [UInt8]) { heard.withLock { $0.append(String(decoding: payload, as: UTF8.self)) } }
    func miss() { heard.withLock { $0.append("gap") } }
}

private func withSubscriber<Result>(
    _ url: String, channel: String = "news", _ body: (RedisSubscriber, Ear) async throws -> Result
) async throws -> Result {
    let loop = try ServiceLoop(name: "test-service")
    let resolver = try Resolver()
    defer {
        resolver.shutdown()
        loop.shutdown()
    }
    let ear = Ear()
    let client = try RedisClient(
        try RedisURL(url), options: RedisOptions(), loop: loop, resolver: resolver, clock: .system, logger: .silent)
    client.start()
    defer { client.shutdown() }
    let subscriber = RedisSubscriber(
        client, channel: channel,
        onMessage: { ear.hear($0) }, onGap: { ear.miss() })
    subscriber.start()
    defer { subscriber.shutdown() }
    return try await body(subscriber, ear)
}

extension RedisServer {
    /// Publishes until a subscriber receives it.
    fileprivate func publish(_ text: String, on channel: String = "news") async throws {
        try await eventually("a subscriber listens") { try command("PUBLISH \(channel) \(text)") == ":1\r\n" }
    }
}

@Suite(.timeLimit(.minutes(2))) struct RedisSubscriberTests {
    @Test(arguments: [false, true])
    func `hears what is published on its channel`(overUnixSocket: Bool) async throws {
        let server = try RedisServer()
        let url = overUnixSocket ? "redis+unix://\(server.socketPath)?db=3" : server.url + "/3"
        try await withSubscriber(url) { subscriber, ear in
            try await subscriber.waitUntilConnected()
            #expect(ear.all == ["gap"])
            for text in ["one", "two", "three"] {
                #expect(try server.command("PUBLISH news \(text)") == ":1\r\n")
                #expect(try server.command("PUBLISH other \(text)") == ":0\r\n")
            }
            try await eventually("all is heard") { ear.all.count == 4 }
            #expect(ear.all == ["gap", "one", "two", "three"])
            #expect(subscriber.status.state == .connected && subscriber.status.reconnects == 0)
        }
    }

    @Test func `hears on after many heartbeats in silence`() async throws {
        let server = try RedisServer()
        try await withSubscriber(server.url) { subscriber, ear in
            try await subscriber.waitUntilConnected()
            try await Task.sleep(for: .seconds(4))
            #expect(try server.command("INFO commandstats").contains("cmdstat_ping"))
            try await server.publish("one")
            try await eventually("it is heard") { ear.all == ["gap", "one"] }
            #expect(subscriber.status.reconnects == 0)
        }
    }

    @Test func `keeps the order of many messages`() async throws {
        let server = try RedisServer()
        try await withSubscriber(server.url) { subscriber, ear in
            try await subscriber.waitUntilConnected()
            let socket = try RawSocket(connectingTo: .loopback(server.port))
            try socket.send((0..<5000).map { "PUBLISH news \($0)\r\n" }.joined())
            try await eventually("all is heard") { ear.all.count == 5001 }
            #expect(ear.all.dropFirst().elementsEqual((0..<5000).map(String.init)))
        }
    }

    @Test func `is back soon after Redis is, and says that it may have missed something`() async throws {
        let server = try RedisServer()
        try await withSubscriber(server.url) { subscriber, ear in
            try await subscriber.waitUntilConnected()
            try server.stop()
            // Long enough for the pauses between attempts to have grown.
            try await Task.sleep(for: .seconds(3))
            #expect(subscriber.status.state == .down && ear.gaps == 1)
            try server.restart()
            let start = Stopwatch()
            try await server.publish("one")
            // Promised within 2 s on a machine that is not loaded.
            #expect(start.undisturbed < .seconds(4))
            try await eventually("it is heard") { ear.all.contains("one") }
            #expect(ear.all.prefix(2) == ["gap", "gap"])
        }
    }

    @Test func `notices a server that has fallen silent`() async throws {
        let server = try RedisServer()
        try await withSubscriber(server.url) { subscriber, ear in
            try await subscriber.waitUntilConnected()
            server.freeze(true)
            let start = Stopwatch()
            try await eventually("the silence is noticed") { subscriber.status.state == .down }
            #expect(start.undisturbed < .seconds(4))
            #expect(subscriber.status.lastError?.code == .redisTimeout)
            server.freeze(false)
            try await eventually("it is back") { ear.gaps == 2 }
            try await server.publish("one")
        }
    }

    @Test func `does not take a pause of the server for a message`() async throws {
        let server = try RedisServer()
        try await withSubscriber(server.url) { subscriber, ear in
            try await subscriber.waitUntilConnected()
            #expect(try server.command("CLIENT PAUSE 2500 ALL") == "+OK\r\n")
            try await eventually("the silence is noticed") { subscriber.status.state == .down }
            try await eventually("it is back") { ear.gaps == 2 }
            try await server.publish("one")
            try await eventually("it is heard") { ear.all.last == "one" }
        }
    }

    @Test func `subscribes anew when Redis has ended the connection`() async throws {
        let server = try RedisServer()
        try await withSubscriber(server.url) { subscriber, ear in
            try await subscriber.waitUntilConnected()
            #expect(try server.command("CLIENT KILL TYPE pubsub") == ":1\r\n")
            try await eventually("it is back") { ear.gaps == 2 }
            try await server.publish("one")
            try await eventually("it is heard") { ear.all == ["gap", "gap", "one"] }
        }
    }

    @Test func `a message over the bound costs the connection`() async throws {
        let server = try RedisServer()
        try await withSubscriber(server.url) { subscriber, ear in
            try await subscriber.waitUntilConnected()
            try await server.publish(String(repeating: "x", count: 16 * 1024))
            try await server.publish(String(repeating: "y", count: 20 * 1024))
            try await eventually("it is back") { ear.gaps == 2 }
            #expect(subscriber.status.lastError?.code == .redisReplyTooLarge)
            #expect(ear.all.count == 3 && ear.all[1].utf8.count == 16 * 1024)
        }
    }

    @Test func `is not let in where it may not listen`() async throws {
        let server = try RedisServer()
        #expect(try server.command("ACL SETUSER app on >pw +@all resetchannels &news") == "+OK\r\n")
        try await withSubscriber("redis://app:pw@127.0.0.1:\(server.port)") { subscriber, _ in
            try await subscriber.waitUntilConnected()
        }
        try await withSubscriber("redis://app:pw@127.0.0.1:\(server.port)", channel: "other") { subscriber, ear in
            let code = await failure { () async throws(StoreError) in try await subscriber.waitUntilConnected() }
            #expect(code == .redisNotPermitted && ear.all.isEmpty)
        }
    }

    @Test func `hears no more after its end`() async throws {
        let server = try RedisServer()
        try await withSubscriber(server.url) { subscriber, ear in
            try await subscriber.waitUntilConnected()
            subscriber.shutdown()
            try await eventually("no subscriber") { try server.command("PUBSUB NUMSUB news").hasSuffix(":0\r\n") }
            #expect(try server.command("PUBLISH news one") == ":0\r\n")
            #expect(ear.all == ["gap"] && subscriber.status.state == .stopped)
        }
    }
}
