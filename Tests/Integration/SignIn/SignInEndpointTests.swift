import Foundation
import MartletTesting
import Testing

/// How the endpoints behave over HTTP, whatever the provider.
@Suite struct `Sign-in endpoints` {
    private static let json = [("Content-Type", "application/json")]

    static let bodies: [(String, String, Int)] = [
        ("application/json", "{", 400), ("application/json", "[]", 400), ("application/json", "", 400),
        ("application/json", "{\"username\":\"a\",\"username\":\"b\",\"password\":\"c\"}", 400),
        ("application/json", "{\"username\":\"a\",\"\\u0075sername\":\"b\",\"password\":\"c\"}", 400),
        ("application/json", "{\"username\":[\"a\"],\"password\":\"c\"}", 400),
        ("application/json", "{\"username\":\"a\",\"password\":1}", 400),
        ("application/json", "{\"username\":\"a\"}", 400),
        ("application/json", "{\"username\":\"a\",\"password\":null}", 400),
        ("application/json", "{\"username\":\"\\ud800\",\"password\":\"c\"}", 400),
        ("application/json", "{\"x\":\(String(repeating: "[", count: 20_000))", 400),
        ("application/x-www-form-urlencoded", "username=a&username=b&password=c", 400),
        ("application/x-www-form-urlencoded", "username=%zz&password=c", 400),
        ("application/x-www-form-urlencoded", "username=%ff&password=c", 400),
        ("text/plain", "{\"username\":\"a\",\"password\":\"c\"}", 415),
        ("application/json; charset=utf-16", "{\"username\":\"a\",\"password\":\"c\"}", 415),
        ("multipart/form-data; boundary=x", "--x--", 415),
        ("application/json", "{\"username\":\"alice\",\"password\":\"wrong\"}", 401),
    ]

    @Test func `refuse bad bodies and go on with the connection`() throws {
        try withSignIn { stage in
            let client = try stage.gateway.connect()
            for (type, body, status) in Self.bodies {
                let response = try client.exchange(
                    "POST", "/auth/login/password", [("Content-Type", type)], body: Array(body.utf8))
                #expect(response.status == status, "\(type) \(body.prefix(80)): \(response)")
                #expect(response["Connection"]?.lowercased() != "close", "\(response)")
                stage.check("POST", "/auth/login/password", response, at: #_sourceLocation)
            }
            #expect(try client.exchange("POST", "/auth/nonce").status == 200)
        }
    }

    @Test func `read bodies of at most 64 KiB, however they are framed`() throws {
        try withSignIn { stage in
            func body(_ count: Int) -> [UInt8] {
                let start = "{\"username\":\"alice\",\"password\":\"\(SignInStage.password)\",\"x\":\""
                return Array(start.utf8) + [UInt8](repeating: 120, count: count - start.utf8.count - 2)
                    + Array("\"}".utf8)
            }
            let most = try stage.send("POST", "/auth/login/password", Self.json, body(65_536))
            #expect(most.status == 200, "\(most)")
            for (path, count) in [
                ("/auth/login/password", 65_537), ("/auth/nonce", 65_537), ("/auth/refresh", 1 << 20),
            ] {
                expectRejection(try stage.send("POST", path, Self.json, body(count)), 413, "request_too_large")
            }
            let client = try stage.gateway.connect()
            let chunk = String(repeating: "x", count: 0x4000)
            try client.send(
                "POST /auth/login/password HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                    + "Transfer-Encoding: chunked\r\n\r\n")
            for _ in 0..<5 { try? client.send("4000\r\n\(chunk)\r\n") }
            try? client.send("0\r\n\r\n")
            expectRejection(try client.response(), 413, "request_too_large")
        }
    }

    @Test func `refuse wrong methods and unknown paths`() throws {
        try withSignIn { stage in
            let methods = [
                ("/auth/login/apple", "POST"), ("/auth/nonce", "POST"), ("/auth/refresh", "POST"),
                ("/auth/logout", "POST"), ("/auth/session", "GET, HEAD"), ("/auth/sessions", "GET, HEAD"),
                ("/auth/sessions/x", "DELETE"), ("/auth/link/apple", "POST, DELETE"), ("/auth/password", "POST"),
            ]
            for (path, allow) in methods {
                for method in ["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"]
                where !allow.split(separator: ", ").contains(Substring(method)) {
                    let response = try stage.gateway.exchange(method, path)
                    expectRejection(response, 405, "method_not_allowed", "\(method) \(path)")
                    #expect(response["Allow"] == allow, "\(method) \(path)")
                }
            }
            for path in ["/auth", "/auth/x", "/auth/login", "/auth/login/x", "/auth/nonce/x", "/auth/sessions/a/b"] {
                expectRejection(try stage.gateway.exchange("POST", path, body: []), 404, "no_route", path)
            }
            // Spellings of one path lead to one endpoint; what is beside it is the routes'.
            #expect(try stage.gateway.exchange("POST", "/%61uth/n%6Fnce").status == 200)
            expectRejection(try stage.gateway.exchange("POST", "/auth/../auth/nonce"), 400, "request_invalid")
            #expect(try stage.gateway.get("/authx").member("code") == "credential_missing")
            #expect(stage.upstream.requests.isEmpty)
        }
    }

    @Test func `refuse two credentials and other schemes`() throws {
        try withSignIn { stage in
            let tokens = try stage.passwordLogin()
            let two = [("Authorization", "Bearer \(tokens.access)"), ("authorization", "Bearer \(tokens.access)")]
            #expect(try stage.gateway.get("/auth/session", two).status == 400)
            for value in ["Basic YWxpY2U6eA==", "Bearer", "Bearer a b", "mat_x"] {
                let response = try stage.gateway.get("/auth/session", [("Authorization", value)])
                expectUnauthorized(response, "credential_invalid", value)
            }
        }
    }

    @Test func `let pages of configured origins in`() throws {
        let origin = "https://app.example.com"
        try withSignIn(more: "sessions: { cors: { origins: [\"\(origin)\"] } }") { stage in
            let ask = [("Origin", origin), ("Access-Control-Request-Method", "POST")]
            let preflight = try stage.gateway.exchange("OPTIONS", "/auth/login/password", ask)
            #expect(preflight.status == 204 && preflight["Access-Control-Allow-Origin"] == origin)
            #expect(preflight["Access-Control-Allow-Methods"] == "POST" && preflight["Vary"] == "Origin")
            #expect(preflight["Access-Control-Allow-Credentials"] == nil)
            let foreign = [("Origin", "\(origin).evil.example"), ("Access-Control-Request-Method", "POST")]
            let refused = try stage.gateway.exchange("OPTIONS", "/auth/login/password", foreign)
            expectRejection(refused, 405, "method_not_allowed")
            #expect(refused["Access-Control-Allow-Origin"] == nil && refused["Vary"] == "Origin")
            let nonce = try stage.send("POST", "/auth/nonce", [("Origin", origin)])
            #expect(nonce["Access-Control-Allow-Origin"] == origin)
            let rejection = try stage.send("GET", "/auth/session", [("Origin", origin)])
            expectUnauthorized(rejection, "credential_missing")
            #expect(rejection["Access-Control-Allow-Origin"] == origin && rejection["Vary"] == "Origin")
        }
    }

    @Test func `serve the well-known documents that are configured`() throws {
        let wellKnown = """
            well_known:
              apple_app_site_association: { webcredentials: [ABCDE12345.com.example.app] }
              change_password: /account/password
            """
        try withSignIn(more: wellKnown) { stage in
            let apps = try stage.send("GET", "/.well-known/apple-app-site-association")
            #expect(apps.status == 200 && apps["Content-Type"] == "application/json")
            #expect(apps.text == "{\"webcredentials\":{\"apps\":[\"ABCDE12345.com.example.app\"]}}\n")
            let redirect = try stage.send(
                "GET", "/.well-known/change-password?to=https://evil.example", [("X-Forwarded-Host", "evil.example")])
            #expect(redirect.status == 303 && redirect["Location"] == "/account/password")
            for path in ["/.well-known/resource-that-should-not-exist-whose-status-code-should-not-be-200"] {
                #expect(try stage.gateway.get(path).status != 200)
            }
        }
    }

    @Test func `keep secrets out of logs and pages`() throws {
        try withSignIn(users: ["alice"]) { stage in
            let tokens = try stage.passwordLogin()
            let token = try stage.apple.token()
            _ = try stage.post(
                "/auth/login/apple",
                ["identity_token": token, "authorization_code": "planted-code", "nonce": "planted-n"])
            _ = try stage.post("/auth/login/password", ["username": "planted-user", "password": "planted-password"])
            _ = try stage.post(
                "/auth/login/password?password=planted-query", form: "username=alice&password=planted-form")
            _ = try stage.post("/auth/refresh", ["refresh_token": "mrt_planted"])
            _ = try stage.post("/auth/login/password", form: "username=alice&password=planted%zz")
            let new = try Tokens(stage.post("/auth/refresh", ["refresh_token": tokens.refresh]))
            _ = try stage.post(
                "/auth/password", bearer: new.access,
                ["current_password": SignInStage.password, "new_password": "planted-new-password"])
            _ = try stage.send("POST", "/auth/logout?all=true", bearer: new.access)
            let metrics = try stage.gateway.askAdmin("/metrics").text
            pause(.milliseconds(300))
            for text in [stage.gateway.everything, metrics] {
                #expect(!text.contains("planted") && !text.contains(SignInStage.password))
                for secret in [tokens.access, tokens.refresh, new.access, new.refresh, token] {
                    #expect(!text.contains(secret.dropFirst(4).prefix(20)))
                }
            }
            #expect(stage.gateway.everything.contains("password changed"))
        }
    }
}
