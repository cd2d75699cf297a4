import MartletCore
import MartletJSON
import MartletTesting
import Testing

@testable import MartletResponder
@testable import MartletSignIn

/// `GET /identities`.
@Suite struct `Listed identities` {
    private func entries(_ stand: Stand, _ token: String) async -> [JSONObject] {
        let reply = await stand.send("GET", "/auth/identities", bearer: token)
        #expect(reply.status == 200)
        return reply.object["identities"]?.array?.compactMap(\.object) ?? []
    }

    @Test func `are those of the account, with claims only of the session's own`() async throws {
        let stand = Stand()
        stand.apple.script.withLock { $0.claims = ["name": "Anna", "email": "anna@example.com", "sub": "x"] }
        let token = try await stand.login("apple", "anna")
        #expect(await entries(stand, token).map { $0["can_unlink"]?.bool } == [false])
        #expect(await stand.post("/auth/link/password", bearer: token, #"{"proof":"a82"}"#).status == 204)
        let both = await entries(stand, token)
        #expect(both.map { $0["provider"]?.string } == ["apple", "password"])
        #expect(both.map { $0["state"]?.string } == ["unknown", "unknown"])
        #expect(both.map { $0["can_unlink"]?.bool } == [true, true])
        #expect(both.map { $0["name"]?.string } == ["Anna", nil])
        #expect(both.map { $0["email"]?.string } == ["anna@example.com", nil])
        let now = stand.endpoints.setup.clock.unixTime.seconds
        #expect(both.map { $0["linked_at"]?.int64 } == [1, 1])
        // There was no login with the second one yet.
        #expect(both.map { $0["last_login_at"]?.int64 } == [now, 1])
        #expect(both.allSatisfy { $0["sub"] == nil && $0["subject"] == nil })
    }

    @Test func `are the session's own without accounts`() async throws {
        let stand = Stand(hasAccounts: false)
        let only = await entries(stand, try await stand.login("apple", "anna"))
        #expect(only.count == 1 && only.first?["provider"]?.string == "apple")
        #expect(only.first?["can_unlink"]?.bool == false && only.first?["state"]?.string == "unknown")
        #expect(only.first?["linked_at"]?.int64 == only.first?["last_login_at"]?.int64)
    }

    @Test func `need a session and the account store`() async throws {
        let stand = Stand()
        #expect(await stand.send("GET", "/auth/identities").summary == "401 credential_missing auth.credential_missing")
        let token = try await stand.login("apple", "anna")
        stand.accounts.callsLeft = 0
        let reply = await stand.send("GET", "/auth/identities", bearer: token)
        #expect(reply.summary == "503 auth_unavailable accounts.unavailable")
    }

    @Test func `ignore a login that could not be recorded`() async throws {
        let stand = Stand()
        stand.accounts.cannotRecord.withLock { $0 = true }
        let token = try await stand.login("apple", "anna")
        #expect(await entries(stand, token).map { $0["last_login_at"]?.int64 } == [1])
        #expect(stand.lines.text.contains("recording a login failed provider=apple code=accounts.busy"))
    }
}
