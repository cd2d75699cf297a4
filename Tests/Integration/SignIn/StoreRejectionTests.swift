import MartletTesting
import Testing

/// Sessions while Redis is there and does not do what it is asked, and when it comes back.
@Suite struct `A store that refuses` {
    /// Commands that make a real server respond so, and those that undo it.
    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let commands: [String]
        let undo: [String]
        /// Sessions that no loop has seen can be verified all the same.
        var acceptsReads = false
    }

    private static let hangUp = ["CLIENT KILL TYPE normal", "CLIENT KILL TYPE pubsub"]
    static let cases = [
        Case(
            testDescription: "NOAUTH",
            commands: ["CONFIG SET requirepass secret"] + hangUp.map { "AUTH secret\r\n\($0)" },
            undo: ["AUTH secret\r\nCONFIG SET requirepass \"\""]),
        Case(
            testDescription: "NOPERM", commands: ["ACL SETUSER default -@scripting -get"],
            undo: ["ACL SETUSER default +@all"]),
        Case(
            testDescription: "READONLY", commands: ["REPLICAOF 127.0.0.1 1"] + hangUp, undo: ["REPLICAOF NO ONE"],
            acceptsReads: true),
        Case(
            testDescription: "MASTERDOWN",
            commands: ["CONFIG SET replica-serve-stale-data no", "REPLICAOF 127.0.0.1 1"] + hangUp,
            undo: ["REPLICAOF NO ONE"]),
        Case(
            testDescription: "the connection", commands: hangUp,
            undo: hangUp, acceptsReads: true),
    ]

    /// Requests with a session, each on a connection of its own, so that every loop gets some.
    private static func statuses(
        _ stage: SignInStage, _ token: String, for time: Duration
    ) throws -> [Int: Int] {
        let start = ContinuousClock.now
        var counts: [Int: Int] = [:]
        while ContinuousClock.now - start < time {
            counts[try stage.status(with: token), default: 0] += 1
            pause(.milliseconds(10))
        }
        return counts
    }

    @Test(arguments: cases) func `leaves proven sessions their cache_ttl, at every loop and until it is back`(
        _ sample: Case
    ) throws {
        let redis = try RedisServer()
        let more = "store: { url: \"\(redis.url)\" }\nsessions: { cache_ttl: 60s }"
        try withSignIn(server: "workers: 4", more: more) { stage in
            let session = try stage.passwordLogin().access
            let unused = try stage.passwordLogin().access
            #expect(try stage.status(with: session) == 200)
            for command in sample.commands { _ = try redis.command(command) }
            let during = try Self.statuses(stage, session, for: .milliseconds(1500))
            #expect(during.keys.sorted() == [200], "\(during)")
            if !sample.acceptsReads {
                // An outage is never told as a bad credential.
                #expect(try stage.status(with: unused) == 503)
            }
            for command in sample.undo { _ = try redis.command(command) }
            let after = try Self.statuses(stage, session, for: .seconds(3))
            #expect(after.keys.sorted() == [200], "\(after)")
            try waitUntil("others are verified again", within: .seconds(5)) { try stage.status(with: unused) == 200 }
            #expect(try stage.send("POST", "/auth/logout", bearer: session).status == 204)
            try waitUntil("a logout holds") { try stage.status(with: session) == 401 }
        }
    }

    @Test func `takes no copy of a session that has ended`() throws {
        let redis = try RedisServer()
        let more = "store: { url: \"\(redis.url)\" }\nsessions: { cache_ttl: 60s }"
        try withSignIn(server: "workers: 4", more: more) { stage in
            let session = try stage.passwordLogin().access
            #expect(try stage.status(with: session) == 200)
            #expect(try stage.send("POST", "/auth/logout", bearer: session).status == 204)
            try waitUntil("it has ended") { try stage.status(with: session) == 401 }
            try redis.stop()
            try waitUntil("the outage is known") { try stage.status(with: session) == 503 }
            let during = try Self.statuses(stage, session, for: .milliseconds(500))
            #expect(during.keys.sorted() == [503], "\(during)")
        }
    }
}
