import MartletCore
import MartletIO
import MartletRedis
import MartletTesting
import Testing

/// A way for Redis to be unavailable for a while, and what it takes to come back.
private enum Absence: CustomTestStringConvertible {
    case killed, frozen, paused

    var testDescription: String { "\(self)" }

    /// Long enough for the pauses between attempts to have grown to the longest.
    var length: Duration { self == .killed ? .seconds(30) : .seconds(10) }

    /// Ends with Redis being there again.
    func happen(to server: RedisServer) async throws {
        switch self {
        case .killed:
            try server.stop()
            try await Task.sleep(for: length)
            try server.restart()
        case .frozen:
            server.freeze(true)
            try await Task.sleep(for: length)
            server.freeze(false)
        case .paused:
            _ = try server.command("CLIENT PAUSE \(length.wholeMilliseconds) ALL")
            try await Task.sleep(for: length)
        }
    }
}

/// What came of the commands that were sent all the while.
private struct Tally: Sendable {
    var answered = 0
    var failed: [ErrorCode: Int] = [:]
    var longestWait = Duration.zero
    /// The responses since the last failure.
    var answeredInARow = 0

    mutating func note(_ code: ErrorCode?, from start: Stopwatch) {
        longestWait = max(longestWait, start.undisturbed)
        guard let code else {
            answered += 1
            answeredInARow += 1
            return
        }
        failed[code, default: 0] += 1
        answeredInARow = 0
    }
}

/// Asks as steadily as many callers do, until told to stop.
private func ask(_ client: RedisClient, into tally: Box<Tally>, until isOver: Box<Bool>) async throws {
    while !isOver.value {
        let start = Stopwatch()
        let code = await client.outage(reading: "a")
        tally.withLock { $0.note(code, from: start) }
        try await Task.sleep(for: .milliseconds(20))
    }
}

@Suite(.timeLimit(.minutes(2))) struct RedisRecoveryTests {
    // Promised within 2 s on a machine that is not loaded.
    private static let bound = Duration.seconds(4)

    @Test(arguments: [Absence.killed, .frozen, .paused])
    fileprivate func `works again soon after Redis does, without long waits meanwhile`(absence: Absence) async throws {
        let server = try RedisServer()
        try await withRedis(server.url) { client in
            try await client.waitUntilConnected()
            let (tally, isOver) = (Box(Tally()), Box(false))
            try await withThrowingTaskGroup { group in
                for _ in 0..<10 { group.addTask { try await ask(client, into: tally, until: isOver) } }
                try await Task.sleep(for: .milliseconds(500))
                #expect(tally.value.failed.isEmpty)
                try await absence.happen(to: server)
                try await eventually("commands get through", within: RedisRecoveryTests.bound) {
                    tally.value.answeredInARow > 100
                }
                isOver.withLock { $0 = true }
                try await group.waitForAll()
                let result = tally.value
                // A command's deadline is 500 ms.
                #expect(result.longestWait < .seconds(3))
                #expect(
                    Set(result.failed.keys).isSubset(of: [.redisTimeout, .redisConnectionLost, .redisNotConnected]))
                #expect(client.status.state == .connected)
            }
        }
    }

    @Test(arguments: [Absence.killed, .frozen, .paused])
    fileprivate func `listens again soon after Redis is back`(absence: Absence) async throws {
        let server = try RedisServer()
        let gaps = Box(0)
        let loop = try ServiceLoop(name: "test-service")
        let resolver = try Resolver()
        defer {
            resolver.shutdown()
            loop.shutdown()
        }
        let client = try RedisClient(
            try RedisURL(server.url), options: RedisOptions(), loop: loop, resolver: resolver, clock: .system,
            logger: .silent)
        client.start()
        defer { client.shutdown() }
        let subscriber = RedisSubscriber(
            client, channel: "news",
            onMessage: { _ in }, onGap: { gaps.withLock { $0 += 1 } })
        subscriber.start()
        defer { subscriber.shutdown() }
        try await subscriber.waitUntilConnected()
        try await absence.happen(to: server)
        let back = Stopwatch()
        while try server.command("PUBLISH news x") != ":1\r\n" {
            guard back.elapsed < .seconds(30) else { break }
            try await Task.sleep(for: .milliseconds(10))
        }
        #expect(back.undisturbed < RedisRecoveryTests.bound)
        try await eventually("the gap is known") { gaps.value > 1 }
    }
}
