import MartletAccounts
import MartletCore
import MartletJSON
import MartletProvider
import MartletSession
import MartletSessionTesting
import MartletTesting
import Testing

@testable import MartletIdentities

@Suite struct `The report on an account` {
    private func text(of identities: [AccountReport.Identity], sessions: Int?) -> String {
        let account = AccountRecord(
            subject: "usr_1", createdAt: UnixTime(seconds: 1), disabledAt: nil, storedClaims: ["name": "Ann"],
            claims: ["role": "staff"], profile: ["locale": "en"])
        let report = AccountReport(account: account, identities: identities, sessions: sessions)
        return String(decoding: JSON.write(report.document), as: UTF8.self)
    }

    @Test func `has the account with its identities, and names the resource of its claims`() {
        let apple = AccountReport.Identity(
            provider: "apple", subjects: ["001", "002"],
            times: LinkedIdentity(
                provider: "apple", linkedAt: UnixTime(seconds: 2), lastLoginAt: UnixTime(seconds: 3)),
            status: IdentityStatus(
                provider: "apple", state: .authorized, checkedAt: UnixTime(seconds: 4), hasGrant: true),
            isEmailVerified: true, lock: nil)
        let password = AccountReport.Identity(
            provider: "password", subjects: ["ann"], times: nil, status: nil, isEmailVerified: nil,
            lock: .throttled(UserThrottling(remaining: .seconds(60), knownNetworks: 1)))
        let quiet = AccountReport.Identity(
            provider: "other", subjects: ["ann"], times: nil, status: nil, isEmailVerified: nil, lock: .open)
        let shown = text(of: [apple, password, quiet], sessions: 2)
        let identities = [
            #"{"provider":"apple","subject":"001","aliases":["002"],"linked_at":2,"last_login_at":3,"#
                + #""credential_state":"authorized","checked_at":4,"grant":true,"email_verified":true}"#,
            #"{"provider":"password","subject":"ann","aliases":[],"linked_at":null,"last_login_at":null,"#
                + #""credential_state":"unknown","checked_at":null,"grant":false,"#
                + #""lock":{"seconds":60,"known_networks":1}}"#,
            #"{"provider":"other","subject":"ann","aliases":[],"linked_at":null,"last_login_at":null,"#
                + #""credential_state":"unknown","checked_at":null,"grant":false,"lock":null}"#,
        ]
        #expect(
            shown
                == #"{"subject":"usr_1","state":"active","created_at":1,"disabled":false,"disabled_at":null,"#
                + #""deletion":null,"identities":["# + identities.joined(separator: ",")
                + #"],"claims":"/subjects/usr_1/claims","stored_claims":{"name":"Ann"},"profile":{"locale":"en"},"#
                + #""sessions":2}"#)
        let unavailable = text(of: [], sessions: nil)
        #expect(unavailable.hasSuffix(#""sessions":null}"#))
    }
}

@Suite(.timeLimit(.minutes(2))) struct `Accounts as operators change them` {
    private func operators(_ stage: Stage, _ sessions: RecordedSessions, outage: ErrorCode? = nil) -> OperatorAccounts {
        let fence = LoginFence(store: MemoryStore(clock: .system), keyPrefix: "test:")
        let listed = OperatorSessions(
            AccountSessions(sessions, fence: fence, providers: ["apple"]) { _ in }, life: nil, accounts: stage.store,
            logger: .silent)
        return OperatorAccounts(
            stage.store, life: stage.life(ScriptedIssuer()), sessions: listed, providers: [], logger: .silent
        ) { outage }
    }

    @Test func `are shown, disabled, enabled and deleted`() async throws {
        try await Stage.run { stage in
            let subject = try await stage.logIn("001", grant: nil, by: ScriptedIssuer())
            let accounts = operators(stage, RecordedSessions(["ses_2", "ses_1"]))
            let shown = try #require(try await accounts.document(of: subject))
            #expect(shown["state"] == "active" && shown["sessions"] == 2)
            #expect(shown["identities"]?.array?.first?.object?["subject"] == "001")
            #expect(try await accounts.setDisabled(subject, true))
            let disabled = try await accounts.document(of: subject)
            #expect(disabled?["state"] == "disabled" && disabled?["disabled"] == true)
            #expect(try await accounts.setDisabled(subject, false))
            #expect(try await accounts.document(of: subject)?["state"] == "active")
            #expect(stage.published.subjects.value == [subject, subject])
            #expect(try await accounts.delete(subject))
            #expect(stage.sessions.ended.value == ["\(subject) all"])
        }
    }

    @Test func `are unknown without an account, and stay as they are in an outage`() async throws {
        try await Stage.run { stage in
            let subject = try await stage.logIn("001", grant: nil, by: ScriptedIssuer())
            let accounts = operators(stage, RecordedSessions(outage: SessionError("store.down", .unavailable)))
            #expect(try await accounts.document(of: "usr_none") == nil)
            #expect(try await !accounts.setDisabled("usr_none", true))
            #expect(try await !accounts.delete("usr_none"))
            #expect(try await accounts.document(of: subject)?["sessions"] == .null)
            let down = operators(stage, RecordedSessions(), outage: "store.down")
            let error = await #expect(throws: AccountError.self) { try await down.setDisabled(subject, true) }
            #expect(error?.code == "store.down" && error?.message.contains("nothing was changed") == true)
            #expect(try await accounts.document(of: subject)?["state"] == "active")
            // What no gateway could be notified of is made, and reported as such.
            stage.published.isAvailable.withLock { $0 = false }
            let late = await #expect(throws: AccountError.self) { try await accounts.setDisabled(subject, true) }
            #expect(late?.message.hasPrefix("the account was changed") == true)
            #expect(try await accounts.document(of: subject)?["state"] == "disabled")
        }
    }
}
