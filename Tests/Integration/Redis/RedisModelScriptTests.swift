import MartletCore
import MartletJSON
import MartletProvider
import MartletRedis
import MartletServer
import MartletSession
import MartletSessionTesting
import MartletTesting
import MartletTraffic
import Testing

/// The gateway's own clients, sessions and limits, at a real server and its model.
@Suite(.timeLimit(.minutes(2))) struct RedisModelScriptTests {
    /// All of the gateway: a new one belongs into this test.
    private static let scriptCount = 20

    @Test func `every script of the gateway has the same replies, with its own arguments and with others`() async throws
    {
        let server = try RedisServer()
        let relay = try RedisRelay(to: server)
        defer { relay.close() }
        try await withInstances(2, of: server, at: relay.url, options: patient) { clients in
            for seed in 0..<2 as Range<UInt64> {
                let backends = clients.map { RedisSessions(client: $0, keyPrefix: "m\(seed):") }
                var history = SessionHistory(seed: seed, startingAt: hourAhead(), on: backends)
                try await history.run(steps: 250)
                var cookies = CookieHistory(seed: seed, startingAt: hourAhead(), on: backends)
                try await cookies.run(steps: 250)
            }
            try await runOtherSessions(clients)
            try await runCounters(clients[0])
            try await runLimits(clients[0])
            try await repeatWrites(clients[0], relay)
        }
        #expect(relay.differences.isEmpty, "\(relay.differences.prefix(5).joined(separator: "\n"))")
        #expect(relay.unknownCommands.isEmpty && relay.scriptCount == Self.scriptCount)
        #expect(relay.scriptRuns.count >= 500)
        try replayChanged(relay.scriptRuns)
    }

    /// What the histories leave out: claims, marks, renewals, ends by number, and keys of another type.
    private func runOtherSessions(_ clients: [RedisClient]) async throws {
        let clock = Box(hourAhead())
        let benches = clients.map { SessionBench(backend: $0.sessions(), clock: clock) }
        let key = ChangeMark.key(prefix: "martlet:", subject: "usr_ann", name: "apple")
        for version in [3, 3, 2, 5] as [Int64] {
            let account = AccountClaims(account: ["role": .string("admin \(version)")], identities: [:])
            _ = try await benches[0].store.apply(VersionedClaims(version: version, claims: account), to: "usr_ann")
            let tokens = try await benches[1].login()
            _ = try await benches[1].store.refresh(tokens.refreshToken)
            _ = try await benches[0].verify(tokens.accessToken)
            benches[0].advance(.seconds(60))
            _ = try await benches[0].renew(tokens.accessToken, with: benches[0].proof(acr: "mfa"))
            _ = try? await benches[0].store.create(
                subject: "usr_ann", provider: "apple", identity: .ann, client: SessionClient(), evicting: true,
                mark: ChangeMark(key: key, number: Int(version)))
            try await clients[0].set(ChangeMark.bytes(of: 4), for: key, lifetime: .seconds(60))
            _ = try await benches[0].store.end(sessionID: tokens.session.id)
        }
        let tokens = try await benches[0].login("usr_bob")
        let names = try await clients[0].command([Array("SCAN".utf8), [0x30], Array("COUNT".utf8), Array("5000".utf8)])
        guard case .array(let parts) = names, parts.count == 2 else { throw TestFailure("\(names)") }
        for name in parts[1].parts where String(decoding: name, as: UTF8.self).hasPrefix("martlet:") {
            let isHash = String(decoding: name, as: UTF8.self).contains("}:s")
            if isHash { _ = try await clients[0].command([Array("SET".utf8), name, [0x31]]) }
        }
        #expect(await benches[1].rejection(of: tokens.accessToken) == .sessionUnknown)
    }

    private func runCounters(_ store: RedisClient) async throws {
        let (common, own) = (
            CountedAttempt.Bucket(attempts: "{u}a", ban: "{u}b"),
            CountedAttempt.Bucket(attempts: "{u}a:n", ban: "{u}b:n")
        )
        let attempt = CountedAttempt(known: "{u}k", own: own, common: common, lifetime: .seconds(60))
        for round in 0..<12 {
            _ = try await store.count(attempt, for: .anonymous)
            for key in ["{u}a", "{u}c"] { _ = try await store.increment(key, lifetime: .seconds(60)) }
            try await store.decrement("{u}c")
            _ = try await store.counter("{u}c")
            switch round {
            case 2: try await store.set([9], for: "{u}k", lifetime: .seconds(60))
            case 4: _ = try await store.increment("{u}b:n", lifetime: .seconds(60))
            case 6: try await store.remove(["{u}k", "{u}a", "{u}b:n"])
            case 7: try await store.set([0x78], for: "{u}c", lifetime: .seconds(60))
            case 9:
                try await store.remove("{u}c")
                try await store.ask("HSET", "{u}c", "f", "1")
            default: break
            }
            #expect(try await store.setIfAbsent([1], for: "{u}x", lifetime: .seconds(60)))
            try await store.remove("{u}x", ifEqualTo: [2])
            try await store.remove("{u}x", ifEqualTo: [1])
            try await store.set([3], for: "{u}x", lifetime: .seconds(60))
            guard case .found([3]) = await store.take("{u}x") else { throw TestFailure("not taken") }
        }
    }

    /// Hours for a token, so that none comes back meanwhile.
    private func runLimits(_ client: RedisClient) async throws {
        let tokens = StoredTokens(client, prefix: "martlet:", seal: nil)
        for round in 0..<30 {
            var ask = TokenAsk()
            ask.key = Array("k\(round % 3)".utf8)
            ask.rate = TokenRate(count: 1, perSeconds: 3600, burst: 40)
            (ask.waiting, ask.extra) = (round % 4, round % 5)
            (ask.spent, ask.returned) = (round % 2, round % 3)
            let grant = await withCheckedContinuation { continuation in
                tokens.ask(ask) { continuation.resume(returning: $0) }
            }
            #expect(grant != nil)
        }
    }

    /// What was written last is written again when a connection was lost.
    private func repeatWrites(_ client: RedisClient, _ relay: RedisRelay) async throws {
        let bench = SessionBench(backend: client.sessions(), startingAt: hourAhead())
        let ended = try await bench.login("usr_eve")
        _ = try await bench.login("usr_eve")
        _ = try await bench.store.end(ended.session)
        let before = client.status.repeated
        relay.reset()
        try await eventually("what was written is written again") { client.status.repeated >= before + 2 }
    }

    /// Runs recorded scripts at a fresh server, some with one argument too few or another one.
    private func replayChanged(_ runs: [[[UInt8]]]) throws {
        let server = try RedisServer()
        let twin = RedisTwin(of: server.port, .now())
        let client = try twin.connect()
        var generator = SeededGenerator(seed: 5)
        let values = ["", "x", "-1", "0", "1e999", "nan", "99999999999999", "1 x"].map { Array($0.utf8) }
        // A bucket of a limit would be full within the time of a command.
        for run in runs where !String(decoding: run[1], as: UTF8.self).contains("'TIME'") {
            var command = run
            let first = 3 + (Int(String(decoding: run[2], as: UTF8.self)) ?? 0)
            switch Int.random(in: 0..<4, using: &generator) {
            case 0 where command.count > first: command.removeLast()
            case 1 where command.count > first:
                let index = Int.random(in: first..<command.count, using: &generator)
                command[index] = values.randomElement(using: &generator) ?? []
            default: break
            }
            try client.send(command)
        }
        #expect(twin.differences.isEmpty, "\(twin.differences.prefix(5).joined(separator: "\n"))")
        #expect(twin.scriptRuns.count >= 500)
    }
}
