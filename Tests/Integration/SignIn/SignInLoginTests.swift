import Foundation
import MartletCore
import MartletTesting
import Testing

/// From a proof to a session, over HTTP.
@Suite struct `Signing in` {
    @Test func `returns tokens whose bearer the upstream knows`() throws {
        try withSignIn { stage in
            let response = try stage.post(
                "/auth/login/password", ["username": "Alice", "password": SignInStage.password, "unknown": [1, 2]])
            #expect(response.status == 200 && response["Cache-Control"] == "no-store")
            #expect(response.body.last == 0x0A && response["Content-Type"] == "application/json")
            let tokens = try Tokens(response)
            #expect(tokens.subject.hasPrefix("usr_") && tokens.isNew == true)
            #expect(tokens.access.utf8.count <= 128 && tokens.refresh.utf8.count <= 128)
            #expect(response.object["expires_in"] as? Int == 900 && response.member("provider") == "password")
            #expect(try stage.subject(seenWith: tokens.access) == tokens.subject)
            let again = try Tokens(
                stage.post(
                    "/auth/login/password", form: "username=alice&password=correct+horse%20battery"))
            #expect(again.subject == tokens.subject && again.isNew == false && again.session != tokens.session)
        }
    }

    @Test func `with Apple makes one subject, for sessions and for direct tokens`() throws {
        try withSignIn { stage in
            let token = try stage.apple.token()
            let direct = try stage.subject(seenWith: token)
            let response = try stage.post(
                "/auth/login/apple",
                ["identity_token": token, "full_name": ["given_name": "Änne", "family_name": "B."]])
            let tokens = try Tokens(response)
            #expect(tokens.subject == direct && tokens.isNew == false)
            let session = try stage.send("GET", "/auth/session", bearer: tokens.access)
            let claims = try #require(session.object["claims"] as? [String: Any])
            #expect(claims["email"] as? String == "someone@example.com" && claims["email_verified"] as? Bool == true)
            #expect((claims["name"] as? String)?.contains("Änne") == true)
            let later = try stage.appleLogin()
            let kept = try stage.send("GET", "/auth/session", bearer: later.access).object["claims"] as? [String: Any]
            #expect(kept?["name"] as? String == claims["name"] as? String)
        }
    }

    @Test func `with the address of another account makes an account of its own`() throws {
        try withSignIn { stage in
            let (first, second) = (try stage.appleLogin("001.abc.0001"), try stage.appleLogin("002.abc.0002"))
            #expect(first.subject != second.subject && second.isNew == true)
            for token in [first.access, second.access] {
                let session = try stage.send("GET", "/auth/session", bearer: token)
                let claims = session.object["claims"] as? [String: Any]
                #expect(claims?["email"] as? String == "someone@example.com", "\(session)")
            }
        }
    }

    @Test func `without accounts names the provider's subject`() throws {
        try withSignIn(accounts: "") { stage in
            let tokens = try stage.appleLogin("001.abc.0001")
            #expect(tokens.subject == "apple:001.abc.0001" && tokens.isNew == nil)
            #expect(try stage.subject(seenWith: tokens.access) == tokens.subject)
            let link = try stage.post("/auth/link/apple", bearer: tokens.access, ["identity_token": "x"])
            expectRejection(link, 404, "no_route")
        }
    }

    @Test func `is refused in one shape for every cause`() throws {
        try withSignIn { stage in
            let shapes = try [
                stage.post("/auth/login/password", ["username": "alice", "password": "wrong"]),
                stage.post("/auth/login/password", ["username": "nobody", "password": SignInStage.password]),
                stage.post("/auth/login/apple", ["identity_token": "x"]),
                stage.post(
                    "/auth/login/apple", ["identity_token": try stage.apple.token { $0.claims["aud"] = "\"x\"" }]),
                stage.post("/auth/refresh", ["refresh_token": "mrt_x"]),
                stage.send("GET", "/auth/session", bearer: "mat_x"),
                stage.send("GET", "/auth/session", bearer: try stage.apple.token()),
            ]
            for response in shapes { expectUnauthorized(response, "credential_invalid") }
            expectUnauthorized(try stage.send("GET", "/auth/session"), "credential_missing")
            expectRejection(try stage.post("/auth/login/nobody", ["a": "b"]), 404, "no_route")
        }
    }

    @Test func `by many clients concurrently makes one account`() throws {
        try withSignIn { stage in
            let token = try stage.apple.token()
            let gateway = stage.gateway
            let logins = (0..<24).map { _ in
                Background {
                    let body = Array("{\"identity_token\":\"\(token)\"}".utf8)
                    return try Tokens(
                        gateway.exchange(
                            "POST", "/auth/login/apple", [("Content-Type", "application/json")], body: body)
                    )
                }
            }
            let tokens = try logins.map { try $0.value() }
            #expect(Set(tokens.map(\.subject)).count == 1)
            #expect(tokens.filter { $0.isNew == true }.count == 1)
            #expect(Set(tokens.map(\.session)).count == 24)
            let list = try stage.send("GET", "/auth/sessions", bearer: try stage.appleLogin().access)
            #expect((list.object["sessions"] as? [[String: Any]])?.count == 10, "max_per_subject")
        }
    }

    // Nonces

    @Test func `takes a nonce once where it has to`() throws {
        try withSignIn(apple: "nonce: required") { stage in
            func login(_ nonce: String?, claim: String?) throws -> HTTPMessage {
                // Each is another token: the same login again would get the same response.
                let token = try stage.apple.token {
                    $0.claims["nonce"] = claim.map { JSONText(string: $0) }
                    $0.claims["jti"] = JSONText(string: "\(UInt64.random(in: 0 ... .max))")
                }
                var members = ["identity_token": token]
                members["nonce"] = nonce
                return try stage.post("/auth/login/apple", members)
            }
            let response = try stage.send("POST", "/auth/nonce")
            #expect(response.status == 200 && response["Cache-Control"] == "no-store")
            let nonce = try #require(response.member("nonce"))
            #expect(try login(nonce, claim: nonce).status == 200)
            expectUnauthorized(try login(nonce, claim: nonce), "credential_invalid", "used before")
            expectUnauthorized(try login("my own", claim: "my own"), "credential_invalid", "not ours")
            expectRejection(try login(nil, claim: nil), 400, "request_invalid", "none")
            let other = try #require(try stage.send("POST", "/auth/nonce").member("nonce"))
            expectRejection(try login(nil, claim: other), 400, "request_invalid", "in the token alone")
            expectUnauthorized(try login(other, claim: nil), "credential_invalid", "in the body alone")
        }
    }

    // Refresh

    @Test func `is prolonged by many clients concurrently with one new pair`() throws {
        try withSignIn { stage in
            let first = try stage.passwordLogin()
            let gateway = stage.gateway
            let refreshes = (0..<64).map { _ in
                Background {
                    let body = Array("refresh_token=\(first.refresh)".utf8)
                    let type = [("Content-Type", "application/x-www-form-urlencoded")]
                    return try Tokens(gateway.exchange("POST", "/auth/refresh", type, body: body))
                }
            }
            let pairs = try refreshes.map { try $0.value() }
            #expect(Set(pairs.map(\.access)).count == 1 && Set(pairs.map(\.refresh)).count == 1)
            let second = try #require(pairs.first)
            #expect(second.session == first.session && second.subject == first.subject)
            #expect(try stage.status(with: first.access) == 200, "the old access token lives on")
            #expect(try stage.status(with: second.access) == 200)
            for wrong in [first.access, second.access, "", "mrt_", String(repeating: "a", count: 5000)] {
                expectUnauthorized(try stage.post("/auth/refresh", ["refresh_token": wrong]), "credential_invalid")
            }
            expectUnauthorized(try stage.send("GET", "/auth/session", bearer: second.refresh), "credential_invalid")
            #expect(try stage.status(with: second.access) == 200, "wrong tokens end nothing")
        }
    }

    @Test func `is over when a refresh token comes back after the grace`() throws {
        try withSignIn(more: "sessions: { refresh_reuse_grace: 1s }") { stage in
            let first = try stage.passwordLogin()
            let second = try Tokens(stage.post("/auth/refresh", ["refresh_token": first.refresh]))
            pause(.milliseconds(1500))
            expectUnauthorized(try stage.post("/auth/refresh", ["refresh_token": first.refresh]), "credential_invalid")
            expectUnauthorized(try stage.post("/auth/refresh", ["refresh_token": second.refresh]), "credential_invalid")
            try waitUntil("the session is over", within: .seconds(2)) { try stage.status(with: second.access) == 401 }
        }
    }
}
