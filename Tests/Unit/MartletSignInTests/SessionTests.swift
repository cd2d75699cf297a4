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

@Suite struct `Callers and their sessions` {
    static let endpoints: [(String, String)] = [
        ("POST", "/auth/logout"), ("POST", "/auth/logout?all=true"), ("GET", "/auth/session"),
        ("HEAD", "/auth/session"),
        ("GET", "/auth/sessions"), ("DELETE", "/auth/sessions/ses_1"), ("POST", "/auth/link/apple"),
        ("DELETE", "/auth/link/apple"), ("POST", "/auth/password"),
    ]

    @Test(arguments: endpoints)
    func `need a session`(method: String, target: String) async throws {
        let stand = Stand()
        _ = try await stand.login("apple", "anna")
        func summary(_ authorization: String?) async -> String {
            let fields = authorization.map { [(name: "authorization", value: $0)] } ?? []
            return await stand.send(
                method, target, type: Stand.json, Array(#"{"proof":"anna"}"#.utf8), fields: fields
            ).summary
        }
        #expect(await summary(nil) == "401 credential_missing auth.credential_missing")
        for malformed in [
            "", "Bearer", "Bearer ", "Bearer a b", "Bearer mat_a1,mat_a1", "Basic YTpi", "mat_a1", "Negotiate x",
        ] {
            #expect(await summary(malformed) == "401 credential_invalid signin.bad_authorization", "\(malformed)")
        }
        for direct in ["Bearer eyJ.e30.AA", "Bearer mrt_r1", "bearer MAT_A1"] {
            #expect(await summary(direct) == "401 credential_invalid signin.session_needed", "\(direct)")
        }
        #expect(await summary("Bearer mat_unknown") == "401 credential_invalid session.unknown")
        stand.sessions.callsLeft = 0
        #expect(await summary("Bearer mat_a1") == "503 auth_unavailable session.unavailable")
    }

    @Test func `are rejected with two credentials`() async throws {
        let stand = Stand()
        let token = try await stand.login("apple", "anna")
        let reply = await stand.send(
            "GET", "/auth/session", bearer: token, fields: [("Authorization", "Bearer \(token)")])
        #expect(reply.summary == "401 credential_invalid signin.bad_authorization")
    }

    @Test func `see the session`() async throws {
        let stand = Stand()
        stand.apple.script.withLock { $0.claims = ["email": "a@example.com", "roles": ["x"]] }
        let token = try await stand.login("apple", "anna")
        let reply = await stand.send("GET", "/auth/session", bearer: token)
        #expect(reply.status == 200 && reply.field("Cache-Control") == "no-store")
        #expect(
            reply.object == [
                "subject": "usr_1", "provider": "apple", "claims": ["email": "a@example.com", "roles": ["x"]],
                "session_id": "ses_1", "auth_time": .integer(stand.time.now),
                "expires_at": .integer(stand.time.now + 900),
            ])
    }

    @Test func `see their own sessions only`() async throws {
        let stand = Stand()
        let first = try await stand.login("apple", "anna")
        _ = try await stand.login("apple", "bert")
        stand.time.advance(seconds: 10)
        _ = try await stand.login("apple", "anna")
        let reply = await stand.send("GET", "/auth/sessions", bearer: first)
        let entries = try #require(reply.object["sessions"]?.array)
        #expect(entries.compactMap { $0.object?["session_id"]?.string } == ["ses_3", "ses_1"])
        #expect(entries.map { $0.object?["current"]?.bool } == [false, true])
        let now = stand.time.now - 10
        #expect(
            entries[1].object == [
                "session_id": "ses_1", "provider": "apple", "created_at": .integer(now), "last_seen_at": .integer(now),
                "expires_at": .integer(now + 5_184_000), "current": true,
            ])
    }

    @Test func `end one of their own, and no other's`() async throws {
        let stand = Stand()
        let anna = try await stand.login("apple", "anna")
        _ = try await stand.login("apple", "bert")
        _ = try await stand.login("apple", "anna")
        for id in ["ses_2", "ses_9", "usr_1"] {
            let reply = await stand.send("DELETE", "/auth/sessions/\(id)", bearer: anna)
            #expect(reply.summary == "404 not_found signin.unknown_session")
        }
        #expect(await stand.send("DELETE", "/auth/sessions/ses_3", bearer: anna).status == 204)
        #expect(await stand.send("DELETE", "/auth/sessions/ses_3", bearer: anna).status == 404)
        #expect(await stand.send("DELETE", "/auth/sessions/ses_1", bearer: anna).status == 204)
        #expect(await stand.send("GET", "/auth/session", bearer: anna).status == 401)
        #expect(stand.sessions.entries.map(\.reference.id) == ["ses_2"])
    }

    @Test func `log out`() async throws {
        let stand = Stand()
        let first = try await stand.login("apple", "anna")
        let second = try await stand.login("apple", "anna")
        let third = try await stand.login("apple", "anna")
        let other = try await stand.login("apple", "bert")
        let reply = await stand.send("POST", "/auth/logout", bearer: first)
        #expect(reply.status == 204 && reply.response.body.isEmpty && reply.field("Cache-Control") == "no-store")
        #expect(await stand.send("POST", "/auth/logout", bearer: first).status == 401)
        #expect(await stand.send("POST", "/auth/logout?all=false&x=1", bearer: second).status == 204)
        #expect(await stand.send("POST", "/auth/logout?x&all=true", bearer: third).status == 204)
        #expect(stand.sessions.entries.map(\.access) == [other])
    }

    @Test(arguments: [false, true])
    func `are revoked by either token`(isForm: Bool) async throws {
        let stand = Stand()
        let kept = try await stand.login("apple", "anna")
        for prefix in ["mat_a", "mrt_r"] {
            let token = try await stand.login("apple", "anna")
            let sent = prefix + token.dropFirst(prefix.count)
            let reply =
                isForm
                ? await stand.send(
                    "POST", "/auth/revoke", type: Stand.form,
                    Array("token=\(sent)&token_type_hint=refresh_token&client_id=app".utf8))
                : await stand.post("/auth/revoke", #"{"token":"\#(sent)"}"#)
            #expect(reply.status == 200 && reply.response.body.isEmpty && reply.field("Cache-Control") == "no-store")
            #expect(stand.sessions.entries.map(\.access) == [kept])
            #expect(await stand.send("GET", "/auth/session", bearer: token).status == 401)
        }
    }

    @Test func `are not revoked by anything else`() async throws {
        let stand = Stand()
        let token = try await stand.login("apple", "anna")
        for unknown in ["mat_x", "mrt_x", "x", "", "eyJhbGciOiJub25lIn0.e30."] {
            #expect(await stand.post("/auth/revoke", #"{"token":"\#(unknown)"}"#).status == 200)
        }
        let expected = [
            ("{}", "400 request_invalid signin.missing_member"),
            (#"{"token":["\#(token)"]}"#, "400 request_invalid signin.bad_member"),
            (#"{"token":"\#(token)","token":"x"}"#, "400 request_invalid signin.repeated_member"),
        ]
        for (body, summary) in expected { #expect(await stand.post("/auth/revoke", body).summary == summary) }
        for sent in [token, "mrt_r1"] {
            stand.sessions.callsLeft = 0
            let unavailable = await stand.post("/auth/revoke", #"{"token":"\#(sent)"}"#)
            #expect(unavailable.summary == "503 auth_unavailable session.unavailable")
        }
        stand.sessions.callsLeft = .max
        #expect(stand.sessions.entries.count == 1)
    }

    @Test(arguments: ["all", "all=", "all=1", "all=TRUE", "all=true&all=true", "all=false&all=true"])
    func `are rejected with an ambiguous query`(query: String) async throws {
        let stand = Stand()
        let token = try await stand.login("apple", "anna")
        let reply = await stand.send("POST", "/auth/logout?\(query)", bearer: token)
        #expect(reply.summary == "400 request_invalid signin.bad_query")
        #expect(stand.sessions.entries.count == 1)
    }

    @Test func `get 503 if nothing was ended`() async throws {
        let stand = Stand()
        let token = try await stand.login("apple", "anna")
        for (method, target) in [
            ("POST", "/auth/logout"), ("POST", "/auth/logout?all=true"), ("GET", "/auth/sessions"),
            ("DELETE", "/auth/sessions/ses_1"),
        ] {
            stand.sessions.callsLeft = 1
            let reply = await stand.send(method, target, bearer: token)
            #expect(reply.summary == "503 auth_unavailable session.unavailable")
        }
    }
}
