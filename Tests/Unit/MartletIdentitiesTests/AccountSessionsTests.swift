import MartletAccounts
import MartletCore
import MartletJSON
import MartletSession
import MartletSessionTesting
import MartletTesting
import Testing

@testable import MartletIdentities

/// Sessions with a fence, whose steps are recorded.
private struct Steps {
    let store: RecordedSessions
    let fence: LoginFence
    let invalidated = Box<[String]>([])
    let sessions: AccountSessions

    init(outage: SessionError? = nil, capacity: Int = 100, start: LoginFence.Start? = nil) {
        let store = RecordedSessions(["ses_2", "ses_1"], outage: outage)
        let fence = LoginFence(store: MemoryStore(clock: .system, maximumEntries: capacity), keyPrefix: "test:")
        let invalidated = invalidated
        (self.store, self.fence) = (store, fence)
        sessions = AccountSessions(store, fence: fence, providers: ["apple", "password"]) { subject in
            var marked: [String] = []
            if let start {
                for provider in ["apple", "password", "wechat"]
                where (try? await fence.wasOvertaken(start, subject, provider: provider)) == true {
                    marked.append(provider)
                }
            }
            let line = "\(subject) after \(marked.joined(separator: ", ")), before \(store.ended.value.count) ends"
            invalidated.withLock { $0.append(line) }
        }
    }

    func error(_ end: SessionsEnd) async -> SessionError? {
        do throws(SessionError) {
            try await sessions.end(end, of: "usr_1")
            return nil
        } catch {
            return error
        }
    }
}

@Suite struct `The end of an account's sessions` {
    private static let start = LoginFence.Start(number: 0)

    @Test func `marks the change for logins, invalidates decisions, and ends sessions, in this order`() async throws {
        let steps = Steps(start: Self.start)
        try await steps.sessions.end(SessionsEnd("admin"), of: "usr_1")
        #expect(steps.invalidated.value == ["usr_1 after apple, password, before 0 ends"])
        #expect(steps.store.ended.value == ["all of usr_1"])
        let one = Steps(start: Self.start)
        try await one.sessions.end(SessionsEnd("unlinked", provider: "password"), of: "usr_1")
        #expect(one.invalidated.value == ["usr_1 after password, before 0 ends"])
        #expect(one.store.ended.value == ["some of usr_1"])
    }

    @Test(arguments: [
        (SessionsEnd("admin", only: "ses_1"), "ses_1 of usr_1"),
        (SessionsEnd("logout", except: "ses_1"), "some of usr_1"),
        (SessionsEnd(SessionsEnd.logoutAll), "all of usr_1"),
    ])
    func `leaves logins in progress alone`(_ end: SessionsEnd, _ ended: String) async throws {
        let steps = Steps(start: Self.start)
        try await steps.sessions.end(end, of: "usr_1")
        #expect(steps.invalidated.value.isEmpty && steps.store.ended.value == [ended])
        #expect(!(try await steps.fence.wasOvertaken(Self.start, "usr_1", provider: "apple")))
    }

    @Test func `a login whose start has no number is not rejected for a change that it may have followed`() async throws
    {
        let fence = LoginFence(store: MemoryStore(clock: .system, maximumEntries: 100), keyPrefix: "test:")
        let start = LoginFence.Start(number: -1)
        #expect(!(try await fence.wasOvertaken(start, user: "ann", provider: "password")))
        try await fence.mark(user: "ann", provider: "password")
        await #expect { try await fence.wasOvertaken(start, user: "ann", provider: "password") } throws: {
            ($0 as? StoreError)?.code == .sessionContended
        }
        #expect(try await fence.wasOvertaken(Self.start, user: "ann", provider: "password"))
    }

    @Test func `ends the sessions without a mark too, and reports that it is missing`() async {
        let steps = Steps(capacity: 0)
        let error = await steps.error(SessionsEnd("admin"))
        #expect(error?.code == .storeFull && error?.kind == .unavailable)
        #expect((error?.cause as? UnmarkedChange)?.provider == "password")
        #expect(steps.invalidated.value.count == 1 && steps.store.ended.value == ["all of usr_1"])
    }

    @Test func `fails where the sessions have not ended`() async {
        let steps = Steps(outage: SessionError("store.down", .unavailable), capacity: 0)
        let error = await steps.error(SessionsEnd("admin"))
        #expect(error?.code == "store.down" && error?.cause == nil)
    }
}

@Suite struct `Sessions as operators end them` {
    private func operators(_ store: RecordedSessions, _ stage: Stage?) -> OperatorSessions {
        let fence = LoginFence(store: MemoryStore(clock: .system), keyPrefix: "test:")
        return OperatorSessions(
            AccountSessions(store, fence: fence, providers: ["apple"]) { _ in }, life: nil, accounts: stage?.store,
            logger: .silent)
    }

    @Test func `one is found by its subject, or searched`() async throws {
        let store = RecordedSessions(["ses_2", "ses_1"])
        let sessions = operators(store, nil)
        #expect(try await sessions.end("ses_1", of: "usr_1"))
        #expect(try await !sessions.end("ses_3", of: "usr_1"))
        #expect(try await sessions.end("ses_1", of: nil))
        #expect(try await !sessions.end("ses_3", of: nil))
        #expect(store.ended.value == ["ses_1 of usr_1", "ses_1 of anyone", "ses_3 of anyone"])
        #expect(try await sessions.count(of: "usr_1") == 2)
        #expect(try await sessions.entries(of: "usr_1").map { $0["session_id"] } == ["ses_2", "ses_1"])
    }

    @Test func `a subject is known by its sessions or its account`() async throws {
        try await Stage.run { stage in
            let known = try await stage.logIn("001", grant: nil, by: ScriptedIssuer())
            let store = RecordedSessions()
            let sessions = operators(store, stage)
            #expect(try await sessions.endAll(of: known))
            #expect(try await !sessions.endAll(of: "usr_none"))
            #expect(store.ended.value == ["all of \(known)"])
            #expect(try await operators(RecordedSessions(["ses_1"]), nil).endAll(of: "apple:001"))
            #expect(try await !operators(RecordedSessions(), nil).endAll(of: "apple:001"))
        }
    }
}
