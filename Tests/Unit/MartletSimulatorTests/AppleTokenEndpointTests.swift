import MartletCore
import MartletCrypto
import MartletJOSE
import MartletJSON
import MartletResponder
import MartletSimulator
import Testing

@Suite struct `Apple simulator's tokens` {
    private static let pkce = (
        verifier: "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk",
        challenge: "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
    )
    private static let page = "https://example.com/auth/callback/apple"

    private static func halfHash(_ text: String) -> String {
        Base64URL.encode(Array(SHA256.digest(Array(text.utf8)).prefix(16)))
    }

    // MARK: Codes

    @Test func `a login's code is in its token, and is exchanged for tokens of the same login`() async throws {
        let stage = try AppleStage()
        let login = try await stage.logIn(#", "nonce": "n1", "email": "ada@example.com""#)
        let code = try #require(login["authorization_code"])
        #expect(try stage.claims(login["identity_token"])["c_hash"] == .string(Self.halfHash(code)))
        let reply = try await stage.exchange(code)
        #expect(reply.status == 200 && reply.object["expires_in"] == 3600 && reply["token_type"] == "Bearer")
        #expect(
            reply.object.members.map(\.name).sorted() == [
                "access_token", "expires_in", "id_token", "refresh_token", "token_type",
            ])
        let claims = try stage.claims(reply["id_token"])
        #expect(claims["at_hash"] == .string(Self.halfHash(try #require(reply["access_token"]))))
        #expect(claims["aud"] == .string(AppleStage.app) && claims["sub"] == .string(AppleStage.subject))
        #expect(
            claims["nonce"] == "n1" && claims["email"] == "ada@example.com"
                && claims["iss"] == "https://appleid.apple.com")
        #expect(claims["c_hash"] == nil && claims["iat"] == .integer(stage.now.seconds))
    }

    @Test func `a code is valid once, for its client, for five minutes`() async throws {
        let stage = try AppleStage()
        let code = try await stage.code()
        let other = try await stage.exchange(code, client: "com.example.web")
        #expect(other.status == 400 && other.error == "invalid_grant")
        #expect(other["error_description"]?.hasPrefix("client_id mismatch.") == true)
        #expect(try await stage.exchange(code).status == 200)
        let again = try await stage.exchange(code)
        #expect(again.error == "invalid_grant" && again["error_description"] == "The code has already been used.")
        let late = try await stage.code()
        stage.advance(299)
        let inTime = try await stage.code()
        #expect(try await stage.exchange(late).status == 200)
        stage.advance(300)
        #expect(try await stage.exchange(inTime)["error_description"] == "The code has expired or has been revoked.")
        #expect(try await stage.exchange("c-made-up").error == "invalid_grant")
        #expect(try await stage.exchange(try await stage.code(#", "code_lifetime": -1"#)).error == "invalid_grant")
    }

    @Test func `a name that only looks like the code's is another`() async throws {
        let stage = try AppleStage()
        let code = try await stage.code()
        // A Kelvin sign is canonically equivalent to a K.
        #expect(try await stage.exchange(code.replacing("K", with: "\u{212A}") + "\u{0301}").error == "invalid_grant")
        #expect(try await stage.exchange(code).status == 200)
    }

    @Test func `the redirect URI of a web login must be repeated byte by byte, and a native login has none`()
        async throws
    {
        let stage = try AppleStage()
        let web = #", "redirect_uri": "\#(Self.page)""#
        #expect(try await stage.exchange(try await stage.code(web), [("redirect_uri", Self.page)]).status == 200)
        for wrong in [nil, Self.page + "/", Self.page.uppercased(), Self.page + "?", ""] {
            let reply = try await stage.exchange(
                try await stage.code(web), wrong.map { [("redirect_uri", $0)] } ?? [])
            #expect(reply.status == 400 && reply.error == "invalid_client", "\(wrong ?? "none")")
        }
        let code = try await stage.code()
        #expect(try await stage.exchange(code, [("redirect_uri", Self.page)]).error == "invalid_client")
        #expect(try await stage.exchange(code).error == "invalid_grant", "used up")
    }

    @Test func `a code verifier is required with a challenge, and refused without`() async throws {
        let stage = try AppleStage()
        let challenge = #", "code_challenge": "\#(Self.pkce.challenge)""#
        let good = [("code_verifier", Self.pkce.verifier)]
        #expect(try await stage.exchange(try await stage.code(challenge), good).status == 200)
        for wrong in [[], [("code_verifier", Self.pkce.challenge)], [("code_verifier", "short")]] {
            #expect(try await stage.exchange(try await stage.code(challenge), wrong).error == "invalid_grant")
        }
        #expect(try await stage.exchange(try await stage.code(), good).error == "invalid_grant")
    }

    @Test func `a test changes or forges the token of the exchange`() async throws {
        let stage = try AppleStage()
        let changes = #", "exchange_claims": {"sub": "another", "at_hash": "x", "nonce": null}, "nonce": "n""#
        let claims = try stage.claims(try await stage.exchange(try await stage.code(changes))["id_token"])
        #expect(claims["sub"] == "another" && claims["at_hash"] == "x" && claims["nonce"] == nil)
        let wrongHash = try await stage.logIn(#", "claims": {"c_hash": "x"}"#)
        #expect(try stage.claims(wrongHash["identity_token"])["c_hash"] == "x")
        let forged = try await stage.exchange(try await stage.code(#", "exchange_forged": true"#))
        let token = try CompactJWS(Array(try #require(forged["id_token"]).utf8))
        let keys = try KeySet(document: stage.simulator.keySetDocument, allowing: [.rs256])
        let key = try #require(keys.keys[try token.keyID()])
        #expect(!key.verify(signature: token.signature, signingInput: token.signingInput))
    }

    // MARK: Refresh tokens

    @Test func `a refresh token is verified for its client alone, without a new refresh token`() async throws {
        let stage = try AppleStage()
        let login = try await stage.exchange(try await stage.code(#", "nonce": "n1""#))
        let token = try #require(login["refresh_token"])
        let reply = try await stage.refresh(token)
        #expect(reply.status == 200 && reply["refresh_token"] == nil && reply["access_token"] != login["access_token"])
        let claims = try stage.claims(reply["id_token"])
        #expect(claims["sub"] == .string(AppleStage.subject) && claims["nonce"] == nil)
        #expect(try await stage.refresh(token, client: "com.example.web").error == "invalid_grant")
        #expect(try await stage.refresh("r-made-up").error == "invalid_grant")
        stage.advance(400 * 86_400)
        #expect(try await stage.refresh(token).status == 200)
    }

    @Test func `a refresh token is throttled after so many verifications in a day`() async throws {
        let stage = try AppleStage(refreshesPerDay: 2)
        let token = try await stage.refreshToken()
        #expect(try await stage.refresh(token).status == 200)
        stage.advance(86_399)
        #expect(try await stage.refresh(token).status == 200)
        let throttled = try await stage.refresh(token)
        #expect(throttled.status == 429 && throttled.response.body.isEmpty)
        #expect(try await stage.refresh(try await stage.refreshToken()).status == 200, "each has its own limit")
        stage.advance(1)
        #expect(try await stage.refresh(token).status == 200)
        #expect(await stage.order("/simulator/limits", #"{"refreshes_per_day": 0}"#).status == 200)
        #expect(try await stage.refresh(token).status == 429)
        #expect(await stage.order("/simulator/limits", #"{"refreshes_per_day": null}"#).status == 200)
        #expect(try await stage.refresh(token).status == 200)
    }

    // MARK: Revocation

    @Test func `revoking any token ends the user's authorization`() async throws {
        for name in ["refresh_token", "access_token"] {
            let stage = try AppleStage()
            let (first, second) = (try await stage.exchange(try await stage.code()), try await stage.refreshToken())
            let pending = try await stage.code()
            let reply = try await stage.revoke(try #require(first[name]), [("token_type_hint", name)])
            #expect(reply.status == 200 && reply.response.body.isEmpty)
            for token in [second, try #require(first["refresh_token"])] {
                #expect(try await stage.refresh(token).error == "invalid_grant")
            }
            #expect(try await stage.exchange(pending).error == "invalid_grant")
            // A new login authorizes again, but the old tokens stay invalid; revoking one of them changes nothing.
            let new = try await stage.refreshToken()
            #expect(try await stage.refresh(second).error == "invalid_grant")
            #expect(try await stage.revoke(second).status == 200)
            #expect(try await stage.refresh(new).status == 200)
        }
    }

    @Test func `revoking an invalid token is no error, revoking another client's is one`() async throws {
        let stage = try AppleStage()
        let made = try await stage.revoke("r-made-up")
        #expect(made.status == 200 && made.response.body.isEmpty)
        let token = try await stage.refreshToken()
        #expect(try await stage.revoke(token, client: "com.example.web").error == "invalid_grant")
        #expect(try await stage.revoke(token, [("token_type_hint", "id_token")]).error == "invalid_request")
        #expect(try await stage.refresh(token).status == 200)
        for missing in [[], [("token", "")]] {
            #expect(try await stage.authorized("/auth/revoke", missing).error == "invalid_request")
        }
        #expect(await stage.call("/auth/revoke", [("token", token)]).error == "invalid_request")
    }

    @Test func `a test sets the state of a user`() async throws {
        let stage = try AppleStage()
        func set(_ state: String) async -> AppleStage.Reply {
            await stage.order("/simulator/user", #"{"subject": "\#(AppleStage.subject)", "state": "\#(state)"}"#)
        }
        let unknown = await stage.order("/simulator/user", #"{"subject": "me"}"#)
        #expect(unknown["state"] == "none" && unknown.object["email_forwarding"] == true)
        let token = try await stage.refreshToken()
        #expect(await set("authorized")["state"] == "authorized")
        #expect(try await stage.refresh(token).status == 200)
        #expect(await set("revoked")["state"] == "revoked")
        #expect(try await stage.refresh(token).error == "invalid_grant")
        let next = try await stage.refreshToken()
        #expect(await set("deleted")["state"] == "deleted")
        #expect(try await stage.refresh(next).error == "invalid_grant")
        let body = #"{"audience": "a", "subject": "\#(AppleStage.subject)", "code": true}"#
        #expect(await stage.order("/simulator/token", body).status == 400, "a deleted account never comes back")
        let off = await stage.order("/simulator/user", #"{"subject": "me", "email_forwarding": false}"#)
        #expect(off.object["email_forwarding"] == false && off["state"] == "none")
        for invalid in ["{}", #"{"subject": "me", "state": "gone"}"#, #"{"subject": "me", "email_forwarding": 1}"#] {
            #expect(await stage.order("/simulator/user", invalid).status == 400, "\(invalid)")
        }
    }

    // MARK: Form

    @Test func `the grant types and their parameters`() async throws {
        let stage = try AppleStage()
        let code = try await stage.code()
        let rows: [([(String, String)], String)] = [
            ([], "invalid_request"), ([("grant_type", "")], "invalid_request"),
            ([("grant_type", "password")], "unsupported_grant_type"),
            ([("grant_type", "authorization_code")], "invalid_request"),
            ([("grant_type", "authorization_code"), ("code", code), ("refresh_token", "r")], "invalid_request"),
            ([("grant_type", "authorization_code"), ("code", code), ("extra", "1")], "invalid_request"),
            ([("grant_type", "refresh_token")], "invalid_request"),
            ([("grant_type", "refresh_token"), ("refresh_token", "r"), ("redirect_uri", "x")], "invalid_request"),
            ([("grant_type", "client_credentials")], "invalid_request"),
            ([("grant_type", "client_credentials"), ("scope", "email")], "invalid_scope"),
            (
                [("grant_type", "authorization_code"), ("code", code), ("grant_type", "refresh_token")],
                "invalid_request"
            ),
            ([("grant_type", "authorization_code"), ("code", code), ("client_id", "a")], "invalid_request"),
        ]
        for (parameters, error) in rows {
            let reply = try await stage.authorized("/auth/token", parameters)
            #expect(reply.status == 400 && reply.error == error, "\(parameters): \(reply.text)")
        }
        #expect(try await stage.exchange(code).status == 200, "none of them has used the code up")
        let migration = try await stage.authorized(
            "/auth/token", [("grant_type", "client_credentials"), ("scope", "user.migration")])
        #expect(migration.object.members.map(\.name).sorted() == ["access_token", "expires_in", "token_type"])
    }

    @Test func `only a form with a User-Agent is read`() async throws {
        let stage = try AppleStage()
        let body = AppleStage.encoded([
            ("grant_type", "authorization_code"), ("code", try await stage.code()), ("client_id", AppleStage.app),
            ("client_secret", try stage.secret()),
        ])
        let (agent, form) = (("User-Agent", "test"), ("Content-Type", AppleStage.form))
        let rows: [[(name: String, value: String)]] = [
            [form], [agent], [form, ("User-Agent", "")], [agent, ("Content-Type", "application/json")],
            [agent, ("Content-Type", "text/plain")], [agent, form, form], [agent, ("Content-Type", "")],
            [agent, ("Content-Type", AppleStage.form + "x")],
        ]
        for fields in rows {
            let reply = await stage.send("POST", "/auth/token", body, fields: fields)
            #expect(reply.status == 400 && reply.error == "invalid_request", "\(fields)")
        }
        for odd in ["%", "a=%zz", "a=%ff", "\u{e9}=1", String(repeating: "a=1&", count: 20_000), body + "&code=x"] {
            let reply = await stage.send("POST", "/auth/token", odd, fields: [agent, form])
            #expect(reply.status == 400 && reply.error == "invalid_request", "\(odd.prefix(10))")
        }
        for path in ["/auth/token", "/auth/revoke"] {
            #expect(await stage.send("GET", path, fields: []).status == 405)
        }
        let good = await stage.send(
            "POST", "/auth/token", body, fields: [agent, ("content-type", AppleStage.form + "; charset=utf-8")])
        #expect(good.status == 200, "\(good.text)")
    }

    @Test func `a body of random bytes is an error, never a crash`() async throws {
        let stage = try AppleStage()
        var generator = SystemRandomNumberGenerator()
        for _ in 0..<300 {
            let bytes = (0..<Int.random(in: 0...200, using: &generator)).map { _ in UInt8.random(in: 32...126) }
            let text = String(decoding: bytes, as: UTF8.self)
            for path in ["/auth/token", "/auth/revoke"] {
                let reply = await stage.send(
                    "POST", path, text, fields: [("Content-Type", AppleStage.form), ("User-Agent", "test")])
                #expect(reply.status == 400, "\(text)")
            }
            for path in ["token", "key", "user", "trouble", "limits"] {
                #expect(await stage.order("/simulator/\(path)", text).status == 400, "\(text)")
            }
        }
    }
}
