import Foundation
import MartletConfig
import MartletCore
import MartletEvents
import MartletJSON
import MartletProvider
import MartletTesting
import Testing

@testable import MartletAccounts
@testable import MartletIdentities

@Suite(.timeLimit(.minutes(60))) struct GrantCheckerTests {
    private static let schedule = CheckSchedule(
        every: .seconds(86_400), spread: .seconds(43_200), rate: RequestRate(count: 5))

    /// Runs a checker on simulated time.
    private func check(
        _ stage: Stage, _ issuer: ScriptedIssuer, leases: (any LeaseStoring)? = nil, for span: Duration
    ) async throws -> GrantChecker {
        let end = stage.time.now + span.components.seconds * 1000
        let time = stage.time
        let stopping = Box<GrantChecker?>(nil)
        let made = GrantChecker(
            issuer.handle, store: stage.store.life, leases: leases ?? stage.store, keys: stage.keys,
            runner: stage.runner(issuer),
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

    /// `MARTLET_CHECKED_IDENTITIES` says how many.
    @Test func `a day's checks keep the rate and the spread, with a restart in the middle`() async throws {
        let total = ProcessInfo.processInfo.environment["MARTLET_CHECKED_IDENTITIES"].flatMap(Int.init) ?? 300
        try await Stage.run { stage in
            let time = stage.time
            let calls = Box<[(identity: String, second: Int64)]>([])
            let issuer = ScriptedIssuer(Self.schedule) { grant throws(AuthenticationError) in
                calls.withLock { $0.append((grant, time.now / 1000)) }
                return .valid
            }
            for index in 0..<total { try await stage.logIn("u\(index)", grant: "g\(index)", by: issuer) }
            _ = try await check(stage, issuer, for: .seconds(86_399))
            #expect(calls.value.isEmpty, "the first check is a day after the login")
            for span in [20_000, 23_300, 86_400] {
                _ = try await check(stage, issuer, for: .seconds(span))
                print("after \(span) s more: \(calls.value.count) checks")
            }
            let perSecond = Dictionary(grouping: calls.value, by: \.second).values.map(\.count).max() ?? 0
            let perIdentity = Dictionary(grouping: calls.value, by: \.identity).values
            let pauses = perIdentity.flatMap { zip($0, $0.dropFirst()).map { $1.second - $0.second } }
            print("\(total) identities: at most \(perSecond) in a second, pauses of at least \(pauses.min() ?? 0) s")
            #expect(perIdentity.count == total && perIdentity.allSatisfy { $0.count == 2 })
            #expect(stage.sessions.ended.value.isEmpty)
            #expect(perSecond <= 5 && pauses.allSatisfy { $0 >= 86_400 })
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

    @Test func `a store that takes no changes is asked with pauses`() async throws {
        /// Leases that are elsewhere.
        struct OtherLeases: LeaseStoring {
            func acquireLease(_ name: String, owner: String, for duration: Duration) async throws(StoreError) -> Bool {
                true
            }
            func releaseLease(_ name: String, owner: String) async throws(StoreError) {}
        }
        try await Stage.run { stage in
            let issuer = ScriptedIssuer(Self.schedule)
            try await stage.logIn("u1", grant: "g1", by: issuer)
            stage.time.advance(by: .seconds(2 * 86_400))
            // What is due can still be read.
            let file = CopySource(path: stage.path, clock: stage.time.clock)
            try await file.markMoved()
            await file.close()
            _ = try await check(stage, issuer, leases: OtherLeases(), for: .seconds(5))
            #expect(issuer.checked.value.isEmpty)
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
        var now = Self.start
        for (index, seconds) in ([60, 120, 240, 480, 960, 1920, 3600, 3600] as [Int64]).enumerated() {
            pace.noteThrottled(at: now, retryAfter: nil)
            #expect(pace.wait(at: now) == .seconds(seconds) && pace.pauses == index + 1)
            now = now + .seconds(seconds)
        }
        pace.noteResponse()
        pace.noteThrottled(at: now, retryAfter: .seconds(90))
        #expect(pace.wait(at: now) == .seconds(90) && pace.pauses == 1)
    }

    @Test func `calls in progress when a pause begins make it no longer than they have to`() {
        var pace = CheckPace(interval: .milliseconds(200), firstPause: .seconds(1))
        for _ in 0..<8 { pace.noteThrottled(at: Self.start, retryAfter: nil) }
        #expect(pace.wait(at: Self.start) == .seconds(1) && pace.pauses == 1)
        pace.noteThrottled(at: Self.start, retryAfter: .seconds(7))
        #expect(pace.wait(at: Self.start) == .seconds(7) && pace.pauses == 1)
    }
}
