import Foundation
import MartletTesting
import Testing

/// What callers do about their sessions, over HTTP.
@Suite struct `Own sessions` {
    @Test func `are listed and ended one by one`() throws {
        try withSignIn(users: ["alice", "bob"]) { stage in
            let first = try stage.passwordLogin()
            let second = try stage.passwordLogin()
            let other = try stage.passwordLogin("bob")
            let response = try stage.send("GET", "/auth/sessions", bearer: first.access)
            let entries = try #require(response.object["sessions"] as? [[String: Any]])
            #expect(Set(entries.compactMap { $0["session_id"] as? String }) == [first.session, second.session])
            for entry in entries {
                #expect(entry["current"] as? Bool == (entry["session_id"] as? String == first.session))
                let (created, ends) = (entry["created_at"] as? Int ?? 0, entry["expires_at"] as? Int ?? 0)
                #expect(abs(created - unixNow()) < 30 && abs(ends - created - 60 * 86_400) <= 1)
            }
            for id in [other.session, "ses_0", "x"] {
                expectRejection(
                    try stage.send("DELETE", "/auth/sessions/\(id)", bearer: first.access), 404, "not_found")
            }
            let ended = try stage.send("DELETE", "/auth/sessions/\(second.session)", bearer: first.access)
            #expect(ended.status == 204 && ended.body.isEmpty && ended["Content-Length"] == nil)
            try waitUntil("it is over", within: .seconds(2)) { try stage.status(with: second.access) == 401 }
            #expect(try stage.status(with: first.access) == 200)
            #expect(try stage.status(with: other.access) == 200)
        }
    }

    @Test func `are logged out of, here or everywhere`() throws {
        try withSignIn { stage in
            let sessions = try (0..<4).map { _ in try stage.passwordLogin() }
            for tokens in sessions { #expect(try stage.status(with: tokens.access) == 200) }
            #expect(try stage.send("POST", "/auth/logout", bearer: sessions[0].access).status == 204)
            try waitUntil("it is over", within: .seconds(2)) { try stage.status(with: sessions[0].access) == 401 }
            expectUnauthorized(try stage.send("POST", "/auth/logout", bearer: sessions[0].access), "credential_invalid")
            expectUnauthorized(
                try stage.post("/auth/refresh", ["refresh_token": sessions[0].refresh]), "credential_invalid")
            expectRejection(
                try stage.send("POST", "/auth/logout?all=1", bearer: sessions[1].access), 400, "request_invalid")
            #expect(try stage.status(with: sessions[1].access) == 200)
            #expect(try stage.send("POST", "/auth/logout?all=true", bearer: sessions[1].access).status == 204)
            for tokens in sessions.dropFirst() {
                try waitUntil("it is over", within: .seconds(2)) { try stage.status(with: tokens.access) == 401 }
            }
        }
    }

    @Test func `tell who is calling`() throws {
        try withSignIn { stage in
            let tokens = try stage.passwordLogin()
            let response = try stage.send("GET", "/auth/session", bearer: tokens.access)
            #expect(response.status == 200 && response.member("subject") == tokens.subject)
            #expect(response.member("session_id") == tokens.session && response.member("provider") == "password")
            let ends = response.object["expires_at"] as? Int ?? 0
            #expect((840...901).contains(ends - unixNow()))
            let head = try stage.send("HEAD", "/auth/session", bearer: tokens.access)
            #expect(head.status == 200 && head.body.isEmpty)
        }
    }
}

/// Identities of one account, over HTTP.
@Suite struct `Linked identities` {
    @Test func `are one subject until they part`() throws {
        try withSignIn { stage in
            let apple = try stage.appleLogin()
            let link = ["username": "alice", "password": SignInStage.password]
            for _ in 0..<2 {
                #expect(try stage.post("/auth/link/password", bearer: apple.access, link).status == 204)
            }
            let password = try stage.passwordLogin()
            #expect(password.subject == apple.subject && password.isNew == false)
            #expect(try stage.subject(seenWith: password.access) == apple.subject)
            #expect(try stage.send("DELETE", "/auth/link/apple", bearer: password.access).status == 204)
            try waitUntil("its sessions are over", within: .seconds(2)) {
                try stage.status(with: apple.access) == 401
            }
            #expect(try stage.status(with: password.access) == 200)
            let again = try stage.send("DELETE", "/auth/link/apple", bearer: password.access)
            expectRejection(again, 404, "not_found")
            let last = try stage.send("DELETE", "/auth/link/password", bearer: password.access)
            expectRejection(last, 409, "last_identity")
            // A credential of the second in which it left is one from before.
            let left = unixNow()
            try waitUntil("the second is over", within: .seconds(2)) { unixNow() > left }
            #expect(try stage.appleLogin().subject != apple.subject)
        }
    }

    @Test func `are listed with when they were used`() throws {
        try withSignIn { stage in
            let start = unixNow()
            let apple = try stage.appleLogin()
            func listed(_ token: String) throws -> [[String: Any]] {
                let response = try stage.send("GET", "/auth/identities", bearer: token)
                return try #require(response.object["identities"] as? [[String: Any]])
            }
            let only = try #require(try listed(apple.access).first)
            #expect(only["provider"] as? String == "apple" && only["can_unlink"] as? Bool == false)
            #expect(only["state"] as? String == "authorized")
            #expect((start...start + 30).contains(only["last_login_at"] as? Int ?? 0))
            let link = ["username": "alice", "password": SignInStage.password]
            #expect(try stage.post("/auth/link/password", bearer: apple.access, link).status == 204)
            let password = try stage.passwordLogin()
            let both = try listed(password.access)
            #expect(Set(both.compactMap { $0["provider"] as? String }) == ["apple", "password"])
            #expect(
                both.allSatisfy {
                    $0["can_unlink"] as? Bool == true && $0["email"] == nil || $0["provider"] as? String == "apple"
                })
            #expect(try stage.send("DELETE", "/auth/link/apple", bearer: password.access).status == 204)
            #expect(try listed(password.access).map { $0["can_unlink"] as? Bool } == [false])
        }
    }

    @Test func `that part leave no account to direct tokens from before`() throws {
        try withSignIn { stage in
            let token = try stage.apple.token()
            let direct = try stage.subject(seenWith: token)
            let apple = try stage.appleLogin()
            #expect(apple.subject == direct)
            let link = ["username": "alice", "password": SignInStage.password]
            #expect(try stage.post("/auth/link/password", bearer: apple.access, link).status == 204)
            #expect(try stage.send("DELETE", "/auth/link/apple", bearer: apple.access).status == 204)
            try waitUntil("the token is over", within: .seconds(2)) { try stage.status(with: token) == 401 }
            let left = unixNow()
            try waitUntil("the second is over", within: .seconds(2)) { unixNow() > left }
            #expect(try stage.status(with: token) == 401)
            #expect(try stage.subject(seenWith: stage.apple.token()) != direct)
        }
    }

    @Test func `cannot be taken from another account`() throws {
        try withSignIn { stage in
            _ = try stage.passwordLogin()
            let apple = try stage.appleLogin()
            let link = ["username": "alice", "password": SignInStage.password]
            expectRejection(
                try stage.post("/auth/link/password", bearer: apple.access, link), 409, "identity_taken")
            let second = ["identity_token": try stage.apple.token(subject: "002.abc.0002")]
            expectRejection(
                try stage.post("/auth/link/apple", bearer: apple.access, second), 409, "provider_already_linked")
            expectUnauthorized(try stage.post("/auth/link/password", link), "credential_missing")
            let wrong = ["username": "alice", "password": "wrong"]
            expectUnauthorized(try stage.post("/auth/link/password", bearer: apple.access, wrong), "credential_invalid")
        }
    }

    @Test func `lose their password record when the password is unlinked`() throws {
        try withSignIn { stage in
            let password = try stage.passwordLogin()
            let proof = ["identity_token": try stage.apple.token()]
            #expect(try stage.post("/auth/link/apple", bearer: password.access, proof).status == 204)
            let apple = try stage.appleLogin()
            #expect(try stage.send("DELETE", "/auth/link/password", bearer: apple.access).status == 204)
            let login = ["username": "alice", "password": SignInStage.password]
            expectUnauthorized(try stage.post("/auth/login/password", login), "credential_invalid")
        }
    }
}

/// `POST /auth/password`, over HTTP.
@Suite struct `Changed passwords` {
    @Test func `end the other sessions`() throws {
        try withSignIn { stage in
            let own = try stage.passwordLogin()
            let other = try stage.passwordLogin()
            #expect(try stage.status(with: other.access) == 200)
            func change(_ current: String, _ new: String) throws -> HTTPMessage {
                try stage.post(
                    "/auth/password", bearer: own.access, ["current_password": current, "new_password": new])
            }
            expectUnauthorized(try change("wrong", "another secret"), "credential_invalid")
            expectRejection(try change(SignInStage.password, "short"), 400, "request_invalid")
            #expect(try stage.status(with: other.access) == 200)
            #expect(try change(SignInStage.password, "another secret").status == 204)
            try waitUntil("it is over", within: .seconds(2)) { try stage.status(with: other.access) == 401 }
            #expect(try stage.status(with: own.access) == 200)
            let old = ["username": "alice", "password": SignInStage.password]
            expectUnauthorized(try stage.post("/auth/login/password", old), "credential_invalid")
            #expect(try stage.passwordLogin("alice", "another secret").subject == own.subject)
        }
    }

    @Test func `need a password`() throws {
        try withSignIn { stage in
            let apple = try stage.appleLogin()
            let body = ["current_password": "x", "new_password": "another secret"]
            expectRejection(try stage.post("/auth/password", bearer: apple.access, body), 404, "not_found")
        }
    }

    @Test func `are tried only so often`() throws {
        try withSignIn { stage in
            let tokens = try stage.passwordLogin()
            let body = ["current_password": "wrong", "new_password": "another secret"]
            let responses = try (0..<8).map { _ in try stage.post("/auth/password", bearer: tokens.access, body) }
            #expect(responses.map(\.status).contains(429), "\(responses.map(\.status))")
            let throttled = try #require(responses.last)
            expectRejection(throttled, 429, "throttled")
            #expect((Int(throttled["Retry-After"] ?? "") ?? 0) >= 1)
            #expect(try stage.status(with: tokens.access) == 200)
        }
    }
}
