import MartletCore
import MartletEvents
import MartletJSON
import MartletProvider
import MartletSession
import MartletTesting
import Testing

@testable import MartletAccounts
@testable import MartletIdentities

@Suite(.timeLimit(.minutes(2))) struct JobRunnerTests {
    private func notification(_ change: ProviderNotification.Change, at time: Int64) -> ProviderNotification {
        ProviderNotification(id: "n", type: "t", subject: "001", time: time, change: change)
    }

    @Test func `a withdrawn consent ends the sessions of the identity, each with its event`() async throws {
        try await Stage.run { stage in
            let issuer = ScriptedIssuer()
            let ada = try await stage.logIn("001", grant: "g", by: issuer)
            stage.sessions.add("ses_1", by: "apple")
            stage.sessions.add("ses_2", by: "wechat")
            stage.time.advance(by: .seconds(60))
            let filed = try await stage.life(issuer).receive(
                notification(.consentRevoked, at: stage.time.now), from: issuer.handle)
            #expect(filed.outcome == .applied)
            #expect(stage.sessions.ended.value == ["\(ada) apple"])
            #expect(stage.sessions.live.value.map(\.id) == ["ses_2"])
            #expect(try await stage.store.life.dueJobs(at: .max, limit: 9).isEmpty)
            let events = try await stage.events()
            #expect(events.map(\.type) == [.accountCreated, .identityRevoked, .sessionRevoked])
            #expect(
                events.last?.data == [
                    "session_id": "ses_1", "reason": "apple_consent_revoked", "provider": "apple",
                ])
        }
    }

    @Test func `claims of a notification are published, later if the session store is down`() async throws {
        try await Stage.run { stage in
            let issuer = ScriptedIssuer()
            let ada = try await stage.logIn("001", grant: "g", by: issuer)
            stage.time.advance(by: .seconds(60))
            stage.published.isAvailable.withLock { $0 = false }
            let filed = try await stage.life(issuer).receive(
                notification(.claims(["email_forwarding": false]), at: stage.time.now), from: issuer.handle)
            #expect(filed.outcome == .applied, "filed, whatever the session store does")
            stage.time.advance(by: .seconds(20))
            try await stage.performDue(issuer)
            #expect(stage.published.subjects.value.isEmpty)
            stage.published.isAvailable.withLock { $0 = true }
            stage.time.advance(by: .seconds(20))
            try await stage.performDue(issuer)
            #expect(stage.published.subjects.value == [ada])
            #expect(try await stage.store.life.dueJobs(at: .max, limit: 9).isEmpty)
        }
    }

    @Test func `old deliveries to a removed webhook are dropped, an hour after the start`() async throws {
        try await Stage.run { stage in
            let issuer = ScriptedIssuer()
            try await stage.logIn("001", grant: nil, by: issuer)
            stage.time.advance(by: .seconds(2 * 86_400))
            let runner = stage.runner(issuer, hooks: ["another"])
            let task = Task { await runner.run() }
            let result: Result<Void, any Error>
            do {
                // It counts last.
                try await eventually("it has looked for deliveries") { runner.pendingRevocations != nil }
                #expect(try await stage.events().count == 1, "it is too early")
                stage.time.advance(by: .seconds(3600))
                try await eventually("they are dropped") { try await stage.events().isEmpty }
                result = .success(())
            } catch {
                result = .failure(error)
            }
            runner.stop()
            await task.value
            try result.get()
        }
    }

    @Test func `sessions end when their store is back, with one event each`() async throws {
        try await Stage.run { stage in
            let issuer = ScriptedIssuer()
            try await stage.logIn("001", grant: "g", by: issuer)
            stage.sessions.add("ses_1", by: "apple")
            stage.sessions.isAvailable.withLock { $0 = false }
            stage.time.advance(by: .seconds(60))
            let filed = try await stage.life(issuer).receive(
                notification(.consentRevoked, at: stage.time.now), from: issuer.handle)
            #expect(filed.outcome == .applied, "filed, whatever the session store does")
            for _ in 0..<5 {
                stage.time.advance(by: .seconds(20))
                try await stage.performDue(issuer)
            }
            #expect(stage.sessions.live.value.count == 1)
            stage.sessions.isAvailable.withLock { $0 = true }
            stage.time.advance(by: .seconds(20))
            try await stage.performDue(issuer)
            #expect(stage.sessions.live.value.isEmpty)
            #expect(try await stage.events().count { $0.type == .sessionRevoked } == 1)
        }
    }

    @Test func `sessions beyond the first page are reported too`() async throws {
        try await Stage.run { stage in
            let issuer = ScriptedIssuer()
            let ada = try await stage.logIn("001", grant: nil, by: issuer)
            for number in 0..<8 { stage.sessions.add("ses_\(number)", by: "apple") }
            let (store, now) = (stage.store.life, stage.time.now)
            // The last page has one session, which does not end.
            let most = try await store.beginEnd(SessionsEnd("admin", except: "ses_7"), of: ada, at: now)
            await stage.runner(issuer).perform(most)
            func reported() async throws -> [String] {
                try await stage.events().filter { $0.type == .sessionRevoked }.compactMap {
                    $0.data["session_id"]?.string
                }
            }
            #expect(try await reported() == (0..<7).map { "ses_\($0)" })
            #expect(stage.sessions.live.value.map(\.id) == ["ses_7"])
            for number in 8..<12 { stage.sessions.add("ses_\(number)", by: "apple") }
            let last = try await store.beginEnd(SessionsEnd("admin", only: "ses_11"), of: ada, at: now)
            await stage.runner(issuer).perform(last)
            let all = try await reported()
            #expect(all.last == "ses_11" && all.count == 8)
            #expect(try await store.dueJobs(at: .max, limit: 9).isEmpty)
        }
    }

    @Test func `a session that several jobs end is reported once`() async throws {
        try await Stage.run { stage in
            let issuer = ScriptedIssuer()
            let ada = try await stage.logIn("001", grant: nil, by: issuer)
            stage.sessions.add("ses_1", by: "apple")
            stage.sessions.add("ses_2", by: "apple")
            let (store, now) = (stage.store.life, stage.time.now)
            let first = try await store.beginEnd(SessionsEnd("evicted", only: "ses_1"), of: ada, at: now)
            let second = try await store.beginEnd(SessionsEnd("logout_all"), of: ada, at: now)
            let ended = ["ses_1", "ses_2"].map { EndedSession(id: $0, provider: "apple") }
            for job in second { try await store.noteSessions(ended, of: job, isLast: true, at: now) }
            await stage.runner(issuer).perform(first + second)
            #expect(stage.sessions.live.value.isEmpty)
            let events = try await stage.events().filter { $0.type == .sessionRevoked }
            #expect(events.compactMap { $0.data["session_id"]?.string } == ["ses_1", "ses_2"])
            #expect(events.allSatisfy { $0.data["reason"] == "logout_all" })
            #expect(try await store.dueJobs(at: .max, limit: 9).isEmpty)
        }
    }

    @Test func `a deletion ends sessions, unlinks, revokes, and says so`() async throws {
        try await Stage.run { stage in
            let issuer = ScriptedIssuer()
            let ada = try await stage.logIn("001", grant: "refresh", by: issuer)
            stage.sessions.add("ses_1", by: "apple")
            try await stage.life(issuer).requestDeletion(of: ada, reason: "user")
            #expect(stage.sessions.live.value.isEmpty)
            try await stage.performDue(issuer)
            #expect(issuer.unlinked.value == ["001"])
            #expect(issuer.revoked.value == ["refresh"])
            let events = try await stage.events()
            #expect(events.map(\.type) == [.accountCreated, .sessionRevoked, .accountDeleted])
            #expect(events.last?.data == ["reason": "user", "revoked_at_apple": true])
            #expect(try await stage.store.find(AccountIdentity(provider: "apple", subjects: ["001"])) == nil)
            #expect(try await stage.store.life.dueJobs(at: .max, limit: 9).isEmpty)
        }
    }

    @Test func `an hour without the issuer delays a revocation, but does not lose it`() async throws {
        try await Stage.run { stage in
            let isDown = Box(true)
            let issuer = ScriptedIssuer { _ throws(AuthenticationError) in
                if isDown.value { throw .unavailable("apple.api_unreachable") }
                return .valid
            }
            let ada = try await stage.logIn("001", grant: "refresh", by: issuer)
            try await stage.life(issuer).requestDeletion(of: ada, reason: "user")
            var attempts = 0
            for _ in 0..<360 {
                stage.time.advance(by: .seconds(10))
                attempts += try await stage.store.life.dueJobs(at: stage.time.now, limit: 9).count
                try await stage.performDue(issuer)
            }
            #expect(try await stage.events().last?.type == .accountCreated)
            #expect(try await stage.store.life.pendingRevocations().count == 1)
            #expect((10...40).contains(attempts), "\(attempts) attempts in an hour")
            isDown.withLock { $0 = false }
            stage.time.advance(by: .seconds(400))
            try await stage.performDue(issuer)
            #expect(issuer.revoked.value == ["refresh"])
            #expect(try await stage.events().last?.data["revoked_at_apple"] == true)
        }
    }

    @Test func `after revoke_max_age the deletion is complete, and attempts go on once a day`() async throws {
        try await Stage.run { stage in
            let issuer = ScriptedIssuer { _ throws(AuthenticationError) in
                throw .unavailable("apple.api_unreachable")
            }
            let ada = try await stage.logIn("001", grant: "refresh", by: issuer)
            try await stage.life(issuer).requestDeletion(of: ada, reason: "user")
            try await stage.performDue(issuer)
            stage.time.advance(by: .seconds(7 * 86_400))
            try await stage.performDue(issuer)
            let events = try await stage.events()
            #expect(events.last?.type == .accountDeleted)
            #expect(events.last?.data["revoked_at_apple"] == false)
            #expect(try await stage.store.life.pendingRevocations().count == 1)
            #expect(try await stage.store.life.dueJobs(at: stage.time.now + 86_399_000, limit: 9).isEmpty)
            #expect(try await stage.store.life.dueJobs(at: stage.time.now + 86_400_000, limit: 9).count == 1)
        }
    }

    @Test func `a grant whose key is lost is not revoked, and visible`() async throws {
        try await Stage.run { stage in
            let issuer = ScriptedIssuer()
            let ada = try await stage.logIn("001", grant: "refresh", by: issuer)
            let other = try #require(GrantKeys([Secret(try GrantKeys.makeText())]))
            let lost = Stage(store: stage.store, time: stage.time, keys: other, path: stage.path)
            try await lost.life(issuer).requestDeletion(of: ada, reason: "user")
            try await lost.performDue(issuer)
            #expect(issuer.revoked.value.isEmpty)
            #expect(try await stage.store.life.pendingRevocations().count == 1)
            stage.time.advance(by: .seconds(600))
            try await stage.performDue(issuer)
            #expect(issuer.revoked.value == ["refresh"])
        }
    }
}

@Suite struct JobScheduleTests {
    private func job(_ kind: AccountJob.Kind, attempts: Int) -> AccountJob {
        AccountJob(
            number: 1, kind: kind, account: "a", provider: "p", data: [:], attempts: attempts, createdAt: 0)
    }

    private func delay(_ kind: AccountJob.Kind, _ attempts: Int, _ retryAfter: Duration? = nil) -> Int64 {
        JobSchedule.retry(job(kind, attempts: attempts), at: 0, retryAfter: retryAfter, random: 0.5)
    }

    @Test func `attempts are repeated after a second, then twice as long each time`() {
        #expect((0..<5).map { delay(.revoke, $0) } == [1000, 2000, 4000, 8000, 16_000])
        #expect(delay(.revoke, 1000) == 300_000)
        #expect(delay(.endSessions, 1000) == 15_000)
        #expect(delay(.revoke, -5) == 1000)
    }

    @Test func `a pause that the issuer asks for is kept, up to a day`() {
        #expect(delay(.revoke, 0, .seconds(60)) == 60_000)
        #expect(delay(.revoke, 0, .seconds(1_000_000_000)) == 86_400_000)
        #expect(JobSchedule.retry(job(.revoke, attempts: 0), at: .max, retryAfter: nil, random: 1) == .max)
    }
}
