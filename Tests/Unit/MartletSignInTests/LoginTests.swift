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

@Suite struct `A login` {
    @Test func `returns tokens with the documented members`() async throws {
        let stand = Stand()
        let reply = await stand.post("/auth/login/apple", #"{"proof":"anna"}"#)
        #expect(reply.status == 200)
        #expect(reply.field("Cache-Control") == "no-store" && reply.field("Content-Type") == "application/json")
        #expect(reply.response.body.last == 0x0A)
        let expected: JSONObject = [
            "access_token": "mat_a1", "refresh_token": "mrt_r1", "token_type": "Bearer", "expires_in": 900,
            "refresh_expires_in": 5_184_000, "session_id": "ses_1", "subject": "usr_1", "provider": "apple",
            "new_account": true,
        ]
        for member in expected.members { #expect(reply.object[member.name] == member.value, "\(member.name)") }
        #expect(reply.object.count == expected.count)
        let again = await stand.send("POST", "/auth/login/apple", type: Stand.form, Array("proof=anna".utf8))
        #expect(again["subject"] == "usr_1" && again.object["new_account"]?.bool == false)
        #expect(again["session_id"] == "ses_2")
    }

    @Test func `ends the session that it replaces`() async throws {
        let stand = Stand()
        let first = await stand.post("/auth/login/apple", #"{"proof":"anna"}"#)
        let token = try #require(first["refresh_token"])
        let second = await stand.post("/auth/login/apple", #"{"proof":"anna","replaces":"\#(token)"}"#)
        #expect(second.status == 200)
        #expect(stand.sessions.entries.map(\.reference.id) == [second["session_id"]])
        // One that has ended, or is none, replaces nothing.
        for other in [token, "mrt_unknown", ""] {
            let reply = await stand.post("/auth/login/apple", #"{"proof":"anna","replaces":"\#(other)"}"#)
            #expect(reply.status == 200)
        }
        #expect(stand.sessions.entries.count == 4)
        let wrong = await stand.post("/auth/login/apple", #"{"proof":"anna","replaces":7}"#)
        #expect(wrong.status == 400 && wrong.response.failure?.bodyErrors.first?.pointer == "/replaces")
        // A login that fails ends nothing.
        let live = try #require(second["refresh_token"])
        stand.apple.script.withLock { $0.error = .rejected("test.reason") }
        #expect(await stand.post("/auth/login/apple", #"{"proof":"anna","replaces":"\#(live)"}"#).status == 401)
        #expect(stand.sessions.entries.count == 4)
    }

    @Test func `makes no account for a user who may have another one`() async throws {
        let stand = Stand()
        let token = try await stand.login("password", "b82")
        stand.apple.script.withLock { $0.unlessKnown = .unavailable("test.uncertain", retryAfter: .seconds(2)) }
        let unknown = await stand.post("/auth/login/apple", #"{"proof":"anna"}"#)
        #expect(unknown.summary == "503 auth_unavailable test.uncertain")
        #expect(unknown.response.failure?.retryAfter == 2)
        #expect(await stand.post("/auth/link/apple", bearer: token, #"{"proof":"anna"}"#).status == 503)
        stand.apple.script.withLock { $0.unlessKnown = nil }
        let first = await stand.post("/auth/login/apple", #"{"proof":"anna"}"#)
        stand.apple.script.withLock { $0.unlessKnown = .unavailable("test.uncertain") }
        let known = await stand.post("/auth/login/apple", #"{"proof":"anna"}"#)
        #expect(known.status == 200 && known["subject"] == first["subject"])
        // Without accounts nothing is known.
        let bare = Stand(hasAccounts: false)
        bare.apple.script.withLock { $0.unlessKnown = .unavailable("test.uncertain") }
        #expect(await bare.post("/auth/login/apple", #"{"proof":"anna"}"#).status == 503)
    }

    @Test func `returns the provider's own subject without accounts`() async {
        let stand = Stand(hasAccounts: false)
        let reply = await stand.post("/auth/login/apple", #"{"proof":"anna"}"#)
        #expect(reply["subject"] == "apple:anna" && reply.object["new_account"] == nil)
    }

    @Test func `passes its network to the provider`() async {
        let stand = Stand()
        _ = await stand.post("/auth/login/apple", #"{"proof":"anna"}"#)
        #expect(stand.apple.script.value.clients.map { $0?.description } == ["0:0:0:0::/64"])
    }

    static let dispositions: [(AuthenticationError.Disposition, String)] = [
        (.rejected, "401 credential_invalid test.reason"), (.unavailable, "503 auth_unavailable test.reason"),
        (.malformed, "400 request_invalid test.reason"), (.denied, "403 not_allowed test.reason"),
        (.throttled, "429 throttled test.reason"), (.notFound, "404 not_found test.reason"),
    ]

    @Test(arguments: dispositions)
    func `is rejected with the provider's error`(disposition: AuthenticationError.Disposition, expected: String) async {
        let stand = Stand()
        stand.apple.script.withLock {
            $0.error = AuthenticationError("test.reason", disposition, retryAfter: .milliseconds(2500))
        }
        let reply = await stand.post("/auth/login/apple", #"{"proof":"anna"}"#)
        #expect(reply.summary == expected)
        #expect(reply.response.failure?.retryAfter == ([429, 503].contains(reply.status) ? 3 : 0))
        #expect(stand.sessions.entries.isEmpty)
    }

    @Test func `stores a name that was sent once`() async throws {
        let stand = Stand()
        stand.apple.script.withLock {
            $0.claims = ["email": "a@example.com"]
            $0.storedClaims = ["name": "Anna", "other": "x"]
        }
        _ = await stand.post("/auth/login/apple", #"{"proof":"anna"}"#)
        stand.apple.script.withLock { $0.storedClaims = [:] }
        let later = try await stand.login("apple", "anna")
        let claims = await stand.send("GET", "/auth/session", bearer: later).object["claims"]?.object
        #expect(claims == ["email": "a@example.com", "name": "Anna"])
    }

    @Test func `prefers the identity's own name`() async throws {
        let stand = Stand()
        stand.apple.script.withLock { $0.storedClaims = ["name": "Anna"] }
        let token = try await stand.login("apple", "anna")
        stand.password.script.withLock { $0.claims = ["name": "anna82"] }
        #expect(await stand.post("/auth/link/password", bearer: token, #"{"proof":"anna"}"#).status == 204)
        let own = try await stand.login("password", "anna")
        let claims = await stand.send("GET", "/auth/session", bearer: own).object["claims"]?.object
        #expect(claims == ["name": "anna82"])
        stand.password.script.withLock { $0.claims = ["name": nil] }
        let without = try await stand.login("password", "anna")
        let kept = await stand.send("GET", "/auth/session", bearer: without).object["claims"]?.object
        #expect(kept == ["name": "Anna"])
    }

    @Test func `has no claims of another identity of the account`() async throws {
        let stand = Stand()
        stand.apple.script.withLock { $0.claims = ["email": "a@example.com", "email_verified": true] }
        let token = try await stand.login("apple", "anna")
        #expect(await stand.post("/auth/link/password", bearer: token, #"{"proof":"anna"}"#).status == 204)
        let other = try await stand.login("password", "anna")
        let session = await stand.send("GET", "/auth/session", bearer: other)
        #expect(session["subject"] == "usr_1" && session.object["claims"]?.object == [:])
    }

    @Test func `has the claims that came with it without accounts`() async throws {
        let stand = Stand(hasAccounts: false)
        stand.apple.script.withLock { $0.storedClaims = ["name": "Anna"] }
        let token = try await stand.login("apple", "anna")
        let claims = await stand.send("GET", "/auth/session", bearer: token).object["claims"]?.object
        #expect(claims == ["name": "Anna"])
    }

    @Test func `finds an account by any alias`() async throws {
        let stand = Stand()
        _ = try await stand.login("apple", "openid")
        stand.apple.script.withLock { $0.aliases = ["openid"] }
        let reply = await stand.post("/auth/login/apple", #"{"proof":"unionid"}"#)
        #expect(reply["subject"] == "usr_1" && reply.object["new_account"]?.bool == false)
    }

    @Test func `needs a provider that accepts logins`() async {
        let stand = Stand()
        for path in ["bearer", "nobody", "Apple", "apple/", "apple/x", "", "%C3%A9"] {
            let reply = await stand.post("/auth/login/\(path)", #"{"proof":"anna"}"#)
            #expect(reply.summary == "404 no_route signin.unknown_endpoint", "\(path)")
        }
    }

    // Outages

    @Test func `gets 503 while the store is unavailable, before a credential is consumed`() async {
        let stand = Stand()
        stand.store.isUnavailable = true
        let reply = await stand.post("/auth/login/apple", #"{"proof":"anna"}"#)
        #expect(reply.summary == "503 auth_unavailable store.unavailable")
        #expect(stand.apple.script.value.logins == 0)
    }

    @Test func `gets 503 while accounts are unavailable, and leaves no session`() async {
        let stand = Stand()
        stand.accounts.callsLeft = 0
        let reply = await stand.post("/auth/login/apple", #"{"proof":"anna"}"#)
        #expect(reply.summary == "503 auth_unavailable accounts.unavailable")
        #expect(stand.sessions.entries.isEmpty)
    }

    @Test func `gets 503 while sessions are unavailable, and finds its account later`() async {
        let stand = Stand()
        stand.sessions.callsLeft = 0
        let reply = await stand.post("/auth/login/apple", #"{"proof":"anna"}"#)
        #expect(reply.summary == "503 auth_unavailable session.unavailable")
        stand.sessions.callsLeft = .max
        #expect(await stand.post("/auth/login/apple", #"{"proof":"anna"}"#)["subject"] == "usr_1")
    }

    @Test func `ends its session if the store fails halfway`() async {
        let stand = Stand()
        stand.apple.script.withLock { $0.interruption = { [store = stand.store] in store.isUnavailable = true } }
        let reply = await stand.post("/auth/login/apple", #"{"proof":"anna"}"#)
        #expect(reply.summary == "503 auth_unavailable store.unavailable")
        #expect(stand.sessions.entries.isEmpty)
    }

    @Test func `takes no store where the provider rejects whatever is sent`() async throws {
        let stand = Stand()
        let session = try await stand.login("password", "anna")
        let logins = stand.password.script.value.logins
        stand.password.script.withLock { $0.rejection = .throttled("test.flooded", retryAfter: .seconds(3)) }
        let proof = #"{"provider":"password","proof":"anna"}"#
        let again = await stand.post("/auth/reauthenticate", bearer: session, proof)
        #expect(again.summary == "429 throttled test.flooded")
        stand.store.isUnavailable = true
        let reply = await stand.post("/auth/login/password", proof)
        #expect(reply.summary == "429 throttled test.flooded" && reply.response.failure?.retryAfter == 3)
        #expect(stand.password.script.value.logins == logins)
        #expect(stand.endpoints.setup.providers[1].logins.counts.failures == 2)
    }

    // Nonce and refresh

    @Test func `may use a nonce once`() async throws {
        let stand = Stand()
        let reply = await stand.send("POST", "/auth/nonce")
        #expect(reply.status == 200 && reply.object["expires_in"]?.int64 == 300 && reply.object.count == 2)
        let nonce = try #require(reply["nonce"])
        #expect(try #require(Base64URL.decode(nonce)).count >= 16)
        let context = ProviderContext.detached(
            "apple",
            services: .init(
                clock: stand.time.clock, http: Unreachable(), store: stand.store,
                hashing: ThreadPool(
                    .undivided, name: "test", threads: 1, queue: 1, niceness: 0, clock: stand.time.clock),
                users: nil)
        )
        let login = AuthenticationContext(now: stand.time.clock.unixTime, deadline: .never)
        guard case .found = await context.consumeNonce(nonce, in: login) else {
            Issue.record("not found")
            return
        }
        guard case .miss = await context.consumeNonce(nonce, in: login) else {
            Issue.record("found twice")
            return
        }
        let other = try #require(await stand.post("/auth/nonce", "{}")["nonce"])
        #expect(other != nonce)
        stand.time.advance(seconds: 301)
        guard case .miss = await context.consumeNonce(other, in: login) else {
            Issue.record("found too late")
            return
        }
        #expect(nonce.utf8.count <= 128)
        stand.store.isUnavailable = true
        #expect(await stand.send("POST", "/auth/nonce").status == 200, "that takes no store")
        let fresh = Stand()
        fresh.store.isUnavailable = true
        #expect(await fresh.send("POST", "/auth/nonce").summary == "503 auth_unavailable store.unavailable")
        fresh.store.isUnavailable = false
        #expect(await fresh.send("POST", "/auth/nonce").status == 200)
    }

    @Test func `is extended by a refresh`() async throws {
        let stand = Stand()
        _ = try await stand.login("apple", "anna")
        let reply = await stand.post("/auth/refresh", #"{"refresh_token":"mrt_r1"}"#)
        #expect(reply.status == 200 && reply["access_token"] == "mat_a2" && reply["refresh_token"] == "mrt_r2")
        #expect(reply["session_id"] == "ses_1" && reply.object["new_account"]?.bool == false)
        #expect(reply.field("Cache-Control") == "no-store")
        let form = await stand.send("POST", "/auth/refresh", type: Stand.form, Array("refresh_token=mrt_r2".utf8))
        #expect(form.status == 200)
        let bare = Stand(hasAccounts: false)
        _ = try await bare.login("apple", "anna")
        let without = await bare.post("/auth/refresh", #"{"refresh_token":"mrt_r1"}"#)
        #expect(without.status == 200 && without.object["new_account"] == nil)
    }

    @Test func `is not extended by anything else`() async throws {
        let stand = Stand()
        let access = try await stand.login("apple", "anna")
        let expected = [
            (#"{"refresh_token":"mrt_other"}"#, "401 credential_invalid session.unknown"),
            (#"{"refresh_token":"\#(access)"}"#, "401 credential_invalid session.unknown"),
            (#"{"refresh_token":""}"#, "401 credential_invalid session.unknown"),
            (#"{"refresh_token":["mrt_r1"]}"#, "400 request_invalid signin.bad_member"),
            ("{}", "400 request_invalid signin.missing_member"),
        ]
        for (body, summary) in expected { #expect(await stand.post("/auth/refresh", body).summary == summary) }
        stand.sessions.isThrottled = true
        let throttled = await stand.post("/auth/refresh", #"{"refresh_token":"mrt_r1"}"#)
        #expect(throttled.summary == "429 throttled session.throttled")
        #expect(throttled.response.failure?.retryAfter == 1)
        stand.sessions.callsLeft = 0
        let unavailable = await stand.post("/auth/refresh", #"{"refresh_token":"mrt_r1"}"#)
        #expect(unavailable.summary == "503 auth_unavailable session.unavailable")
    }
}

/// Fails every call.
private struct Unreachable: HTTPCalling {
    func send(_ call: HTTPCall) async throws(HTTPCallError) -> HTTPCallResponse {
        throw HTTPCallError(code: "test.unreachable", message: "")
    }
}
