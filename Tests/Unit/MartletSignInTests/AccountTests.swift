import MartletAccounts
import MartletConfig
import MartletCore
import MartletJSON
import MartletSession
import MartletTesting
import Testing

@testable import MartletProvider
@testable import MartletResponder
@testable import MartletSignIn

@Suite struct `A link` {
    @Test func `adds a second identity to the caller's account, idempotently`() async throws {
        let stand = Stand()
        stand.password.script.withLock { $0.storedClaims = ["name": "Anna"] }
        let token = try await stand.login("apple", "anna")
        for _ in 0..<2 {
            let reply = await stand.post("/auth/link/password", bearer: token, #"{"proof":"a82"}"#)
            #expect(reply.status == 204 && reply.response.body.isEmpty)
        }
        let login = await stand.post("/auth/login/password", #"{"proof":"a82"}"#)
        #expect(login["subject"] == "usr_1" && login.object["new_account"]?.bool == false)
        #expect(stand.sessions.entries.map(\.provider) == ["apple", "password"])
    }

    @Test func `is rejected if the identity or the provider is already linked`() async throws {
        let stand = Stand()
        _ = try await stand.login("password", "b82")
        let token = try await stand.login("apple", "anna")
        let bound = await stand.post("/auth/link/password", bearer: token, #"{"proof":"b82"}"#)
        #expect(bound.summary == "409 identity_taken accounts.bound_elsewhere")
        let second = await stand.post("/auth/link/apple", bearer: token, #"{"proof":"anna2"}"#)
        #expect(second.summary == "409 provider_already_linked accounts.provider_taken")
    }

    @Test func `that is rejected uses nothing up`() async throws {
        let stand = Stand()
        _ = try await stand.login("password", "b82")
        let token = try await stand.login("apple", "anna")
        for provider in [stand.password, stand.apple] {
            provider.script.withLock { ($0.asks, $0.consumed) = (true, 0) }
        }
        let bound = await stand.post("/auth/link/password", bearer: token, #"{"proof":"b82"}"#)
        #expect(bound.summary == "409 identity_taken accounts.bound_elsewhere")
        let second = await stand.post("/auth/link/apple", bearer: token, #"{"proof":"anna2"}"#)
        #expect(second.summary == "409 provider_already_linked accounts.provider_taken")
        let other = await stand.post(
            "/auth/reauthenticate", bearer: token, #"{"provider":"password","proof":"b82"}"#)
        #expect(other.summary == "401 credential_invalid signin.other_account")
        #expect(stand.password.script.value.consumed == 0 && stand.apple.script.value.consumed == 0)
        #expect(await stand.post("/auth/login/password", #"{"proof":"b82"}"#).status == 200)
        #expect(await stand.post("/auth/link/password", bearer: token, #"{"proof":"c82"}"#).status == 204)
        #expect(stand.password.script.value.consumed == 2)
    }

    @Test func `needs a second login`() async throws {
        let stand = Stand()
        let token = try await stand.login("apple", "anna")
        #expect(await stand.post("/auth/link/password", bearer: token, "{}").summary.hasPrefix("400"))
        stand.password.script.withLock { $0.error = .rejected("test.reason") }
        let reply = await stand.post("/auth/link/password", bearer: token, #"{"proof":"a82"}"#)
        #expect(reply.summary == "401 credential_invalid test.reason")
    }

    @Test func `needs a session that is still live after the login`() async throws {
        let stand = Stand()
        let token = try await stand.login("apple", "anna")
        let sessions = stand.sessions
        stand.password.script.withLock { script in
            script.interruption = { try? await sessions.endAll(subject: "usr_1", provider: nil, except: nil) }
        }
        let reply = await stand.post("/auth/link/password", bearer: token, #"{"proof":"a82"}"#)
        #expect(reply.summary == "401 credential_invalid session.unknown")
        stand.password.script.withLock { $0.interruption = nil }
        #expect(await stand.post("/auth/login/password", #"{"proof":"a82"}"#)["subject"] == "usr_2")
    }

    @Test func `needs accounts and a provider that accepts logins`() async throws {
        let stand = Stand()
        let token = try await stand.login("apple", "anna")
        for name in ["bearer", "nobody"] {
            let reply = await stand.post("/auth/link/\(name)", bearer: token, #"{"proof":"x"}"#)
            #expect(reply.summary == "404 no_route signin.unknown_provider")
        }
        let bare = Stand(hasAccounts: false)
        let other = try await bare.login("apple", "anna")
        for method in ["POST", "DELETE"] {
            let reply = await bare.send(
                method, "/auth/link/password", bearer: other, type: Stand.json, Array(#"{"proof":"x"}"#.utf8))
            #expect(reply.summary == "404 no_route signin.no_accounts")
        }
    }

    @Test func `gets 503 while accounts are unavailable`() async throws {
        let stand = Stand()
        let token = try await stand.login("apple", "anna")
        stand.accounts.callsLeft = 0
        let link = await stand.post("/auth/link/password", bearer: token, #"{"proof":"x"}"#)
        #expect(link.summary == "503 auth_unavailable accounts.unavailable")
        let unlink = await stand.send("DELETE", "/auth/link/apple", bearer: token)
        #expect(unlink.summary == "503 auth_unavailable accounts.unavailable")
        #expect(await stand.send("GET", "/auth/session", bearer: token).status == 200)
    }
}

@Suite struct `An unlinking` {
    /// A stand with one user who has both identities, and a session of each.
    private func pair() async throws -> (stand: Stand, apple: String, password: String) {
        let stand = Stand()
        let apple = try await stand.login("apple", "anna")
        #expect(await stand.post("/auth/link/password", bearer: apple, #"{"proof":"a82"}"#).status == 204)
        return (stand, apple, try await stand.login("password", "a82"))
    }

    @Test func `removes the identity and ends the sessions that it created`() async throws {
        let (stand, apple, password) = try await pair()
        let reply = await stand.send("DELETE", "/auth/link/password", bearer: apple)
        #expect(reply.status == 204 && reply.response.body.isEmpty)
        #expect(await stand.send("GET", "/auth/session", bearer: password).status == 401)
        #expect(await stand.send("GET", "/auth/session", bearer: apple).status == 200)
        #expect(stand.password.script.value.unlinked == ["a82"])
        #expect(stand.invalidations.value == 1)
        #expect(await stand.post("/auth/login/password", #"{"proof":"a82"}"#)["subject"] == "usr_2")
    }

    @Test func `may end the caller's own session`() async throws {
        let (stand, apple, password) = try await pair()
        #expect(await stand.send("DELETE", "/auth/link/apple", bearer: apple).status == 204)
        #expect(await stand.send("GET", "/auth/session", bearer: apple).status == 401)
        #expect(await stand.send("GET", "/auth/session", bearer: password).status == 200)
    }

    @Test func `leaves the last identity`() async throws {
        let stand = Stand()
        let token = try await stand.login("apple", "anna")
        let reply = await stand.send("DELETE", "/auth/link/apple", bearer: token)
        #expect(reply.summary == "409 last_identity accounts.last_identity")
        #expect(await stand.send("GET", "/auth/session", bearer: token).status == 200)
        #expect(stand.apple.script.value.unlinked.isEmpty && stand.invalidations.value == 0)
    }

    @Test func `leaves one of two that are unlinked concurrently`() async throws {
        let (stand, apple, _) = try await pair()
        async let first = stand.send("DELETE", "/auth/link/apple", bearer: apple)
        async let second = stand.send("DELETE", "/auth/link/password", bearer: apple)
        let statuses = await [first.status, second.status].sorted()
        #expect(statuses == [204, 409] || statuses == [204, 401])
        #expect(try await stand.accounts.identities(of: "usr_1").count == 1)
    }

    @Test func `of an identity that is not linked gets 404`() async throws {
        let stand = Stand()
        let token = try await stand.login("apple", "anna")
        let known = await stand.send("DELETE", "/auth/link/password", bearer: token)
        #expect(known.summary == "404 not_found accounts.not_linked")
        let unknown = await stand.send("DELETE", "/auth/link/nobody", bearer: token)
        #expect(unknown.summary == "404 no_route signin.unknown_provider")
    }

    @Test func `of a provider that is not configured any more works`() async throws {
        let stand = Stand()
        let token = try await stand.login("apple", "anna")
        try await stand.accounts.link(
            AccountIdentity(provider: "gone", subjects: ["x"]), to: "usr_1", keeping: [:], at: stand.time.clock.unixTime
        )
        #expect(await stand.send("DELETE", "/auth/link/gone", bearer: token).status == 204)
    }

    @Test func `that could not end sessions does so on a retry`() async throws {
        let (stand, apple, password) = try await pair()
        stand.sessions.callsLeft = 1
        let reply = await stand.send("DELETE", "/auth/link/password", bearer: apple)
        #expect(reply.summary == "503 auth_unavailable session.unavailable")
        stand.sessions.callsLeft = .max
        let again = await stand.send("DELETE", "/auth/link/password", bearer: apple)
        #expect(again.summary == "404 not_found accounts.not_linked")
        #expect(await stand.send("GET", "/auth/session", bearer: password).status == 401)
    }

    @Test func `that fails at the provider is reverted`() async throws {
        let (stand, apple, password) = try await pair()
        stand.password.script.withLock { $0.unlinkError = .unavailable("test.unavailable") }
        let reply = await stand.send("DELETE", "/auth/link/password", bearer: apple)
        #expect(reply.summary == "503 auth_unavailable test.unavailable")
        #expect(await stand.send("GET", "/auth/session", bearer: password).status == 200)
        stand.password.script.withLock { $0.unlinkError = nil }
        #expect(await stand.send("DELETE", "/auth/link/password", bearer: apple).status == 204)
    }

    @Test func `that fails and cannot be reverted is logged`() async throws {
        let (stand, apple, _) = try await pair()
        stand.password.script.withLock { $0.unlinkError = .unavailable("test.unavailable") }
        stand.accounts.callsLeft = 1
        let reply = await stand.send("DELETE", "/auth/link/password", bearer: apple)
        #expect(reply.summary == "503 auth_unavailable test.unavailable")
        #expect(stand.lines.text.contains("warning identity unlinked, but not deleted by its provider"))
    }

    @Test func `succeeds if the mark cannot be stored`() async throws {
        let (stand, apple, _) = try await pair()
        stand.store.isUnavailable = true
        #expect(await stand.send("DELETE", "/auth/link/password", bearer: apple).status == 204)
        #expect(stand.lines.text.contains("warning storing a change mark failed"))
    }

    @Test func `overtakes a login in progress`() async throws {
        let (stand, apple, _) = try await pair()
        let other = stand
        stand.password.script.withLock { script in
            script.interruption = {
                other.password.script.withLock { $0.interruption = nil }
                #expect(await other.send("DELETE", "/auth/link/password", bearer: apple).status == 204)
            }
        }
        // The account store creates a new account for the late login.
        let late = await stand.post("/auth/login/password", #"{"proof":"a82"}"#)
        #expect(late["subject"] == "usr_2")
        #expect(stand.sessions.entries.allSatisfy { $0.reference.subject != "usr_1" || $0.provider == "apple" })
    }
}

@Suite struct `A change of password` {
    private static let body = #"{"current_password":"old-secret","new_password":"new-secret"}"#

    private func stand() async throws -> (stand: Stand, token: String) {
        let stand = Stand()
        stand.password.script.withLock { $0.passwords = ["a82": "old-secret"] }
        return (stand, try await stand.login("password", "a82"))
    }

    @Test func `ends the subject's other sessions`() async throws {
        let (stand, token) = try await stand()
        _ = try await stand.login("password", "a82")
        #expect(await stand.post("/auth/link/apple", bearer: token, #"{"proof":"anna"}"#).status == 204)
        _ = try await stand.login("apple", "anna")
        let stranger = try await stand.login("password", "b82")
        let reply = await stand.post("/auth/password", bearer: token, Self.body)
        #expect(reply.status == 204 && reply.response.body.isEmpty)
        #expect(stand.sessions.entries.map(\.access) == [token, stranger])
        #expect(stand.password.script.value.passwords == ["a82": "new-secret"])
        #expect(stand.invalidations.value == 1)
    }

    @Test func `works from a session of another identity of the account`() async throws {
        let (stand, token) = try await stand()
        #expect(await stand.post("/auth/link/apple", bearer: token, #"{"proof":"anna"}"#).status == 204)
        let apple = try await stand.login("apple", "anna")
        let body = "current_password=old-secret&new_password=new-secret"
        let reply = await stand.send("POST", "/auth/password", bearer: apple, type: Stand.form, Array(body.utf8))
        #expect(reply.status == 204)
        #expect(stand.sessions.entries.map(\.access) == [apple])
    }

    @Test func `works without accounts for a session of its own`() async throws {
        let stand = Stand(hasAccounts: false)
        stand.password.script.withLock { $0.passwords = ["a82": "old-secret"] }
        let token = try await stand.login("password", "a82")
        #expect(await stand.post("/auth/password", bearer: token, Self.body).status == 204)
    }

    static let rejections: [(String, String)] = [
        (#"{"current_password":"wrong","new_password":"new-secret"}"#, "401 credential_invalid test.wrong_password"),
        (#"{"current_password":"old-secret","new_password":"short"}"#, "400 request_invalid test.too_short"),
        (#"{"current_password":"old-secret"}"#, "400 request_invalid signin.missing_member"),
        (#"{"new_password":"new-secret"}"#, "400 request_invalid signin.missing_member"),
        (#"{"current_password":1,"new_password":"new-secret"}"#, "400 request_invalid signin.bad_member"),
    ]

    @Test(arguments: rejections)
    func `that is rejected ends no sessions`(body: String, expected: String) async throws {
        let (stand, token) = try await stand()
        _ = try await stand.login("password", "a82")
        #expect(await stand.post("/auth/password", bearer: token, body).summary == expected)
        #expect(stand.sessions.entries.count == 2 && stand.invalidations.value == 0)
    }

    @Test func `is throttled as a login is`() async throws {
        let (stand, token) = try await stand()
        stand.password.script.withLock { $0.error = .throttled("test.throttled", retryAfter: .seconds(7)) }
        let reply = await stand.post("/auth/password", bearer: token, Self.body)
        #expect(reply.summary == "429 throttled test.throttled" && reply.response.failure?.retryAfter == 7)
    }

    @Test func `needs a password`() async throws {
        let stand = Stand { setup in setup.providers.removeAll { $0.name == "apple" } }
        let token = try await stand.login("password", "a82")
        let record = await stand.post("/auth/password", bearer: token, Self.body)
        #expect(record.summary == "404 not_found signin.no_password")
        let bare = Stand { setup in setup.providers[0] = ProviderHandle(PlainProvider(), name: "plain") }
        let other = try await bare.login("plain", "anna")
        let identity = await bare.post("/auth/password", bearer: other, Self.body)
        #expect(identity.summary == "404 not_found signin.no_password")
    }

    @Test func `logs when sessions could not be ended`() async throws {
        let (stand, token) = try await stand()
        stand.sessions.callsLeft = 1
        let reply = await stand.post("/auth/password", bearer: token, Self.body)
        #expect(reply.summary == "503 auth_unavailable session.unavailable")
        #expect(stand.lines.text.contains("warning sessions not ended after password change"))
    }

    @Test func `gets 503 while accounts are unavailable`() async throws {
        let (stand, token) = try await stand()
        stand.accounts.callsLeft = 0
        let reply = await stand.post("/auth/password", bearer: token, Self.body)
        #expect(reply.summary == "503 auth_unavailable accounts.unavailable")
    }

    @Test func `overtakes a login with the old password`() async throws {
        let (stand, token) = try await stand()
        let other = stand
        stand.password.script.withLock { script in
            script.interruption = {
                other.password.script.withLock { $0.interruption = nil }
                #expect(await other.post("/auth/password", bearer: token, Self.body).status == 204)
            }
        }
        let late = await stand.post("/auth/login/password", #"{"proof":"a82"}"#)
        #expect(late.summary == "401 credential_invalid signin.overtaken")
        #expect(stand.sessions.entries.map(\.access) == [token])
        #expect(await stand.post("/auth/login/password", #"{"proof":"a82"}"#).status == 200)
    }

    @Test func `logs no passwords`() async throws {
        let (stand, token) = try await stand()
        _ = await stand.post("/auth/password", bearer: token, Self.body)
        #expect(stand.lines.text.contains("info password changed provider=password request_id=r1"))
        #expect(!stand.lines.text.contains("secret") && !stand.lines.text.contains("mat_"))
    }
}

@Suite struct `Subjects of direct tokens` {
    private func identity(_ subject: String) -> Identity {
        let now = UnixTime(seconds: 0)
        return Identity(
            providerSubject: subject, issuer: "i", claims: ["name": "Anna"], authTime: now, issuedAt: now,
            expiresAt: now)
    }

    @Test func `are those of sessions`() async throws {
        let stand = Stand()
        let subjects = AccountSubjects(accounts: stand.accounts, clock: stand.time.clock)
        #expect(try await subjects.subject(of: identity("anna"), provider: "apple") == ResolvedSubject("usr_1"))
        let login = await stand.post("/auth/login/apple", #"{"proof":"anna"}"#)
        #expect(login["subject"] == "usr_1" && login.object["new_account"]?.bool == false)
        #expect(stand.sessions.entries.first?.identity.claims == [:])
    }

    @Test func `name the provider without accounts`() async throws {
        let subjects = AccountSubjects(accounts: nil, clock: ManualTime().clock)
        #expect(try await subjects.subject(of: identity("anna"), provider: "apple") == ResolvedSubject("apple:anna"))
    }

    @Test func `are unavailable while accounts are`() async {
        let accounts = ScriptedAccounts()
        accounts.callsLeft = 0
        let subjects = AccountSubjects(accounts: accounts, clock: ManualTime().clock)
        await #expect {
            try await subjects.subject(of: self.identity("anna"), provider: "apple")
        } throws: { error in
            let error = error as? AuthenticationError
            return error?.disposition == .unavailable && error?.code == "accounts.unavailable"
        }
    }
}
