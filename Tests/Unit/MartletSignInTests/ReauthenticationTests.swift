import MartletAccounts
import MartletCore
import MartletJSON
import MartletProvider
import MartletSession
import MartletTesting
import Testing

@testable import MartletResponder
@testable import MartletSignIn

@Suite struct `Authenticating again` {
    private static let path = "/auth/reauthenticate"

    private static func body(_ provider: String, _ person: String) -> String {
        #"{"provider":"\#(provider)","proof":"\#(person)"}"#
    }

    /// The proof of a session, as `GET /session` shows it.
    private static func authTime(_ stand: Stand, _ token: String) async -> Int64? {
        await stand.send("GET", "/auth/session", bearer: token).object["auth_time"]?.int64
    }

    @Test func `renews the proof of the session`() async throws {
        let stand = Stand()
        let token = try await stand.login("apple", "anna")
        stand.time.advance(seconds: 700)
        #expect(await Self.authTime(stand, token) == stand.time.now - 700)
        stand.apple.script.withLock { $0.claims = ["acr": "mfa"] }
        let reply = await stand.post(Self.path, bearer: token, Self.body("apple", "anna"))
        #expect(reply.summary == "200" && reply.object["auth_time"]?.int64 == stand.time.now && reply["acr"] == "mfa")
        #expect(reply["session_id"] == stand.sessions.entries.first?.reference.id)
        #expect(await Self.authTime(stand, token) == stand.time.now)
        #expect(stand.sessions.entries.count == 1)
        #expect(stand.apple.script.value.purposes.last == .reauthentication(sessionID: reply["session_id"] ?? ""))
    }

    @Test func `accepts any provider of the account`() async throws {
        let stand = Stand()
        let token = try await stand.login("apple", "anna")
        #expect(await stand.post("/auth/link/password", bearer: token, #"{"proof":"a82"}"#).status == 204)
        stand.time.advance(seconds: 700)
        let reply = await stand.post(Self.path, bearer: token, Self.body("password", "a82"))
        #expect(reply.status == 200 && reply.object["acr"] == nil)
        let session = await stand.send("GET", "/auth/session", bearer: token)
        #expect(session["provider"] == "apple")
    }

    @Test func `accepts a form`() async throws {
        let stand = Stand()
        let token = try await stand.login("apple", "anna")
        let body = Array("provider=apple&proof=anna".utf8)
        #expect(await stand.send("POST", Self.path, bearer: token, type: Stand.form, body).status == 200)
    }

    @Test(arguments: [true, false])
    func `rejects a credential of another account, and changes nothing`(hasAccounts: Bool) async throws {
        let stand = Stand(hasAccounts: hasAccounts)
        let token = try await stand.login("apple", "anna")
        _ = try await stand.login("apple", "ben")
        stand.time.advance(seconds: 700)
        for person in ["ben", "unknown"] {
            let reply = await stand.post(Self.path, bearer: token, Self.body("apple", person))
            #expect(reply.summary == "401 credential_invalid signin.other_account")
        }
        #expect(await Self.authTime(stand, token) == stand.time.now - 700)
        // Nor is an account created for the unknown one.
        let unknown = AccountIdentity(provider: "apple", subjects: ["unknown"])
        #expect(try await stand.accounts.find(unknown) == nil)
    }

    @Test func `rejects what the provider rejects, within the budget of logins`() async throws {
        let stand = Stand()
        let token = try await stand.login("apple", "anna")
        stand.apple.script.withLock { $0.error = .rejected("test.wrong") }
        var statuses: [Int] = []
        for _ in 0..<601 {
            statuses.append(await stand.post(Self.path, bearer: token, Self.body("apple", "anna")).status)
        }
        #expect(statuses.filter { $0 == 401 }.count == 600 && statuses.last == 429)
        #expect(await stand.post("/auth/login/apple", #"{"proof":"anna"}"#).status == 429)
    }

    @Test func `counts credentials of others against the budget`() async throws {
        let stand = Stand()
        let token = try await stand.login("apple", "anna")
        for _ in 0..<600 { _ = await stand.post(Self.path, bearer: token, Self.body("apple", "ben")) }
        #expect(await stand.post(Self.path, bearer: token, Self.body("apple", "anna")).status == 429)
    }

    @Test func `needs a session`() async throws {
        let stand = Stand()
        #expect(
            await stand.post(Self.path, Self.body("apple", "anna")).summary
                == "401 credential_missing auth.credential_missing")
        let reply = await stand.post(Self.path, bearer: "mat_gone", Self.body("apple", "anna"))
        #expect(reply.status == 401 && stand.apple.script.value.logins == 0)
        #expect(await stand.send("GET", Self.path).status == 405)
    }

    @Test(arguments: [
        ("{}", "signin.missing_member", "/provider"),
        (#"{"proof":"anna"}"#, "signin.missing_member", "/provider"),
        (#"{"provider":7,"proof":"anna"}"#, "signin.bad_member", "/provider"),
        (#"{"provider":null,"proof":"anna"}"#, "signin.missing_member", "/provider"),
        (#"{"provider":"","proof":"anna"}"#, "signin.unknown_provider", "/provider"),
        (#"{"provider":"bearer","proof":"anna"}"#, "signin.unknown_provider", "/provider"),
        (#"{"provider":"APPLE","proof":"anna"}"#, "signin.unknown_provider", "/provider"),
        (#"{"provider":"apple\u0000","proof":"anna"}"#, "signin.unknown_provider", "/provider"),
        (#"{"provider":"apple","provider":"password","proof":"anna"}"#, "signin.repeated_member", "/provider"),
        (#"{"provider":"apple"}"#, "signin.missing_member", "/proof"),
        (#"{"provider":"apple","proof":["anna"]}"#, "signin.bad_member", "/proof"),
        ("[]", "signin.not_an_object", ""), ("", "signin.body_missing", ""), ("{", "json.syntax", ""),
    ])
    func `rejects malformed bodies`(body: String, reason: String, pointer: String) async throws {
        let stand = Stand()
        let token = try await stand.login("apple", "anna")
        stand.time.advance(seconds: 700)
        let reply = await stand.post(Self.path, bearer: token, body)
        #expect(reply.status == 400 && reply.code == "request_invalid")
        if !reason.hasPrefix("json.") { #expect(reply.reason == reason) }
        #expect(reply.response.failure?.bodyErrors.first?.pointer == pointer)
        #expect(await Self.authTime(stand, token) == stand.time.now - 700)
    }

    @Test func `changes nothing if the session ends meanwhile`() async throws {
        let stand = Stand()
        let token = try await stand.login("apple", "anna")
        stand.apple.script.withLock {
            $0.interruption = { _ = await stand.send("POST", "/auth/logout", bearer: token) }
        }
        #expect(await stand.post(Self.path, bearer: token, Self.body("apple", "anna")).status == 401)
        #expect(stand.sessions.entries.isEmpty)
    }

    @Test func `is unavailable without its stores`() async throws {
        let stand = Stand()
        let token = try await stand.login("apple", "anna")
        stand.store.isUnavailable = true
        #expect(await stand.post(Self.path, bearer: token, Self.body("apple", "anna")).status == 503)
        stand.store.isUnavailable = false
        stand.accounts.callsLeft = 0
        #expect(await stand.post(Self.path, bearer: token, Self.body("apple", "anna")).status == 503)
        stand.accounts.callsLeft = .max
        for calls in 0...2 {
            stand.sessions.callsLeft = calls
            #expect(await stand.post(Self.path, bearer: token, Self.body("apple", "anna")).status == 503)
        }
    }
}

@Suite struct `A fresh proof` {
    /// What an endpoint does that requires one.
    private static func require(_ stand: Stand, _ token: String, _ body: String? = nil) async -> Failure? {
        let request = LocalRequest(
            method: "DELETE", path: "/auth/account", query: "",
            fields: [("Authorization", "Bearer \(token)"), ("Content-Type", Stand.json)],
            body: Array((body ?? "").utf8),
            bodyBytes: body?.utf8.count ?? 0, client: "127.0.0.1",
            network: ClientNetwork(address: [UInt8](repeating: 0, count: 16)), requestID: "r1")
        do throws(Failure) {
            let caller = try await stand.endpoints.caller(of: request)
            try await stand.endpoints.requireFreshProof(
                of: caller, within: .seconds(600), form: try SignInBody.optionalForm(of: request), request)
            return nil
        } catch {
            return error
        }
    }

    @Test func `is that of a young session`() async throws {
        let stand = Stand()
        let token = try await stand.login("apple", "anna")
        stand.time.advance(seconds: 599)
        #expect(await Self.require(stand, token) == nil)
        stand.time.advance(seconds: 1)
        let failure = await Self.require(stand, token)
        #expect(failure?.status == 401 && failure?.reason == "signin.proof_too_old")
        #expect(
            failure?.challengeText
                == #"Bearer realm="martlet", error="insufficient_user_authentication", "#
                + #"error_description="More recent authentication is required", max_age=600"#)
    }

    @Test func `is a credential in the body`() async throws {
        let stand = Stand()
        let token = try await stand.login("apple", "anna")
        stand.time.advance(seconds: 800)
        #expect(await Self.require(stand, token, #"{"provider":"apple","proof":"anna"}"#) == nil)
        // The session is not renewed.
        #expect(await Self.require(stand, token)?.status == 401)
        #expect(await Self.require(stand, token, "{}")?.reason == "signin.proof_too_old")
    }

    @Test func `is not a wrong credential beside a young session`() async throws {
        let stand = Stand()
        let token = try await stand.login("apple", "anna")
        let failure = await Self.require(stand, token, #"{"provider":"apple","proof":"ben"}"#)
        #expect(failure?.reason == "signin.other_account")
        #expect(await Self.require(stand, token, #"{"username":"anna","password":"x"}"#)?.status == 400)
        stand.apple.script.withLock { $0.error = .rejected("test.wrong") }
        #expect(await Self.require(stand, token, #"{"provider":"apple","proof":"anna"}"#)?.reason == "test.wrong")
        #expect(await Self.require(stand, token, #"{"reason":"moved"}"#) == nil)
    }
}
