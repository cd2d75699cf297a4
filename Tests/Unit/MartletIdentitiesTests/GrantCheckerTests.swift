import MartletAccounts
import MartletConfig
import MartletCore
import MartletEvents
import MartletJSON
import MartletProvider
import MartletTesting
import Testing

@testable import MartletIdentities

@Suite(.timeLimit(.minutes(3))) struct GrantCheckerTests {
    private static let schedule = CheckSchedule(
        every: .seconds(86_400), spread: .seconds(43_200), rate: RequestRate(count: 5))

    /// Runs a checker on simulated time.
    private func check(_ stage: Stage, _ issuer: ScriptedIssuer, for span: Duration) async throws -> GrantChecker {
        let end = stage.time.now + span.components.seconds * 1000
        let time = stage.time
        let stopping = Box<GrantChecker?>(nil)
        let made = GrantChecker(
            issuer.handle, store: stage.store.life, leases: stage.store, keys: stage.keys, runner: stage.runner(issuer),
            clock: time.clock,
            logger: .silent,
            sleep: { span in
                time.advance(by: span)
                if time.now >= end { stopping.value?.stop() }
            })
        let checker = try #require(made)
        stopping.withLock { $0 = checker }
        await checker.run()
        stopping.withLock { $0 = nil }
        return checker
    }

    @Test func `each identity is checked once a day, at the rate at most`() async throws {
        try await Stage.run { stage in
            let issuer = ScriptedIssuer(Self.schedule)
            for index in 0..<300 { try await stage.logIn("u\(index)", grant: "g\(index)", by: issuer) }
            let begin = stage.time.now
            _ = try await check(stage, issuer, for: .seconds(86_399))
            #expect(issuer.checked.value.isEmpty, "the first check is a day after the login")
            // A restart in the middle of the day.
            _ = try await check(stage, issuer, for: .seconds(21_600))
            let early = issuer.checked.value.count
            #expect((50...250).contains(early), "\(early) of 300 in the first half of the spread")
            _ = try await check(stage, issuer, for: .seconds(21_700))
            #expect(issuer.checked.value.count == 300)
            #expect(Set(issuer.checked.value).count == 300)
            _ = try await check(stage, issuer, for: .seconds(86_400))
            #expect(issuer.checked.value.count == 600)
            #expect(stage.time.now - begin < 3 * 86_400_000)
            #expect(stage.sessions.ended.value.isEmpty)
        }
    }

    @Test func `what is due together is checked at the rate`() async throws {
        try await Stage.run { stage in
            let schedule = CheckSchedule(every: .seconds(86_400), spread: .zero, rate: RequestRate(count: 5))
            let issuer = ScriptedIssuer(schedule)
            for index in 0..<100 { try await stage.logIn("u\(index)", grant: "g\(index)", by: issuer) }
            stage.time.advance(by: .seconds(90_000))
            _ = try await check(stage, issuer, for: .seconds(10))
            let count = issuer.checked.value.count
            #expect((40...60).contains(count), "\(count) in 10 s at 5/s")
        }
    }

    @Test func `a withdrawn consent signs the user out, a failure does not`() async throws {
        try await Stage.run { stage in
            let issuer = ScriptedIssuer(Self.schedule) { grant throws(AuthenticationError) in
                switch grant {
                case "withdrawn": return .revoked
                case "unreachable": throw .unavailable("apple.api_unreachable")
                default: return .valid
                }
            }
            let withdrawn = try await stage.logIn("u1", grant: "withdrawn", by: issuer)
            let unreachable = try await stage.logIn("u2", grant: "unreachable", by: issuer)
            try await stage.logIn("u3", grant: nil, by: issuer)
            stage.sessions.add("ses_1", by: "apple")
            stage.time.advance(by: .seconds(2 * 86_400))
            let checker = try await check(stage, issuer, for: .seconds(60))
            #expect(issuer.checked.value.sorted() == ["unreachable", "withdrawn"])
            #expect(checker.counters.revoked == 1 && checker.counters.failed == 1 && checker.counters.valid == 0)
            #expect(stage.sessions.ended.value == ["\(withdrawn) apple"])
            #expect(try await stage.store.life.identityStates(of: withdrawn).map(\.state) == [.revoked])
            #expect(try await stage.store.life.identityStates(of: unreachable).map(\.state) == [.authorized])
            let events = try await stage.events().filter { $0.subject == withdrawn }
            #expect(events.map(\.type) == [.accountCreated, .identityRevoked, .sessionRevoked])
            #expect(events.last?.data["reason"] == "apple_check")
            stage.time.advance(by: .seconds(86_400))
            _ = try await check(stage, issuer, for: .seconds(60))
            #expect(issuer.checked.value.count { $0 == "withdrawn" } == 1, "the grant is dropped")
        }
    }

    @Test func `throttling pauses all checks`() async throws {
        try await Stage.run { stage in
            let issuer = ScriptedIssuer(Self.schedule) { _ throws(AuthenticationError) in
                throw .throttled("apple.api_throttled", retryAfter: .seconds(60))
            }
            for index in 0..<50 { try await stage.logIn("u\(index)", grant: "g\(index)", by: issuer) }
            stage.time.advance(by: .seconds(2 * 86_400))
            _ = try await check(stage, issuer, for: .seconds(600))
            // 60, 120 and 240 s of pause: a few checks that were in progress each time.
            #expect(issuer.checked.value.count <= 45, "\(issuer.checked.value.count) checks in 10 minutes")
            #expect(stage.sessions.ended.value.isEmpty)
        }
    }

    @Test func `first checks are spread`() {
        let now: Int64 = 1_800_000_000_000
        let due = (0..<1000).map { _ in GrantChecker.firstCheck(Self.schedule, at: now) - now }
        #expect(due.allSatisfy { (86_400_000...129_600_000).contains($0) })
        #expect(Set(due.map { $0 / 4_320_000 }).count >= 9)
        let never = CheckSchedule(every: .seconds(.max / 1_000_000), spread: .zero, rate: RequestRate(count: 1))
        #expect(GrantChecker.firstCheck(never, at: .max) == .max)
    }
}

@Suite struct CheckPaceTests {
    private static let start = MonotonicTime(nanoseconds: 1_000_000_000)

    @Test func `calls keep their distance, without a burst after an idle time`() {
        var pace = CheckPace(interval: .milliseconds(200))
        #expect(pace.wait(at: Self.start) == .zero)
        pace.noteCheck(at: Self.start)
        #expect(pace.wait(at: Self.start) == .milliseconds(200))
        let later = Self.start + .seconds(100)
        #expect(pace.wait(at: later) == .zero)
        pace.noteCheck(at: later)
        #expect(pace.wait(at: later) == .milliseconds(200))
    }

    @Test func `pauses double up to an hour, and end with a response`() {
        var pace = CheckPace(interval: .milliseconds(200))
        for seconds in [60, 120, 240, 480, 960, 1920, 3600, 3600] as [Int64] {
            pace.noteThrottled(at: Self.start, retryAfter: nil)
            #expect(pace.wait(at: Self.start) == .seconds(seconds))
        }
        pace.noteResponse()
        pace.noteThrottled(at: Self.start, retryAfter: .seconds(90))
        #expect(pace.wait(at: Self.start) == .seconds(90))
    }
}
