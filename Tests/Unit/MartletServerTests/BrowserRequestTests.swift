import MartletCore
import MartletJSON
import MartletTesting
import Testing

@testable import MartletAdmin
@testable import MartletDecisions
@testable import MartletServer

/// Cookie sessions at a gateway that serves.
@Suite struct `Requests of browsers` {
    private static let navigation = BrowserStage.navigation
    private static let deletion = BrowserStage.deletion

    private func text(_ response: HTTPMessage) -> String {
        var text = "\(response.status)"
        if let code = response.member("code") { text += " \(code)" } else { text += " \(response.text)" }
        if let location = response["Location"] { text += " to \(location)" }
        if response.all("Set-Cookie").contains(Self.deletion) { text += ", cookie deleted" }
        return text
    }

    @Test func `without a session are redirected where they are navigations, and else rejected`() async throws {
        try await BrowserStage.run { stage in
            let html = ("Accept", "text/html,*/*;q=0.8")
            for field in [Self.navigation, html] {
                let found = try await stage.get("/a?b=1", field)
                #expect(text(found) == "302 sign_in_required to /auth/sign-in?return_to=/a%3Fb%3D1")
                #expect(found["Cache-Control"] == "no-store" && found["WWW-Authenticate"] == nil)
            }
            #expect(try await text(stage.get("/a")) == "401 credential_missing")
            #expect(try await text(stage.ask("POST", "/a", [html])) == "401 credential_missing")
            #expect(try await text(stage.get("/a", ("Sec-Fetch-Mode", "cors"), html)) == "401 credential_missing")
            #expect(try await text(stage.get("/a", ("Authorization", "Bearer x"), html)) == "401 credential_invalid")
            #expect(try await text(stage.get("/api/a", Self.navigation)) == "401 credential_missing")
            #expect(try await text(stage.get("/direct/a", Self.navigation)) == "401 credential_missing")
            #expect(stage.upstream.requests.isEmpty)
            #expect(try await text(stage.get("/optional/a", Self.navigation)) == "200 -")
            #expect(try await text(stage.get("/public/a", Self.navigation)) == "200 -")
            let head = try await stage.getByHTTP2("/a", Self.navigation)
            #expect(head.first?.contains(" 302") == true)
            #expect(head.contains { $0.lowercased() == "location: /auth/sign-in?return_to=/a" })
        }
    }

    @Test func `are explained with the session of their cookie`() async throws {
        try await BrowserStage.run { stage in
            let cookie = try await stage.signIn()
            var question = ExplanationQuestion()
            question.target = "/a"
            question.fields = [Secret(Array("Cookie: a=1; \(BrowserStage.cookie)=\(cookie)".utf8))]
            let document = try #require(await stage.gateway.explanation(of: question))
            #expect(document["request"]?.object?["credential"]?.string == "cookie")
            #expect(document["decision"]?.object?["outcome"]?.string == "forwarded", "\(document)")
            #expect(!String(decoding: JSON.write(document), as: UTF8.self).contains(cookie))
        }
    }

    @Test func `with a session have its identity, and no cookie of the gateway goes either way`() async throws {
        try await BrowserStage.run { stage in
            let cookie = try await stage.signIn()
            let field = ("Cookie", "a=1; \(BrowserStage.cookie)=\(cookie); b=2")
            // The second is decided from the cache.
            for target in ["/a", "/a", "/api/a", "/optional/a", "/public/a"] {
                let response = try await stage.get(target, field, Self.navigation)
                #expect(text(response) == (target == "/public/a" ? "200 -" : "200 ada"))
                #expect(response.all("Set-Cookie") == ["theme=dark"])
            }
            let head = try await stage.getByHTTP2(
                "/a", ("Cookie", "a=1"), BrowserStage.field(cookie), ("Cookie", "b=2"))
            #expect(head.first?.contains(" 200") == true)
            #expect(head.filter { $0.lowercased().hasPrefix("set-cookie") }.map { $0.suffix(10) } == ["theme=dark"])
            for request in stage.upstream.requests {
                let sent = request.all("Cookie").joined(separator: "; ")
                #expect(sent == "a=1; b=2")
            }
            #expect(stage.upstream.requests.count == 6)
            #expect(try await text(stage.get("/direct/a", field, Self.navigation)) == "401 credential_invalid")
            // Signing in again would change nothing.
            #expect(try await text(stage.get("/other/a", field, Self.navigation)) == "401 credential_invalid")
        }
    }

    @Test func `of a caller who has to authenticate again are not redirected`() async throws {
        try await BrowserStage.run { stage in
            let cookie = try await stage.signIn(authenticated: 60)
            for _ in 0..<2 {
                let response = try await stage.get("/fresh/a", BrowserStage.field(cookie), Self.navigation)
                #expect(response.status != 302 && response.status >= 400 && response.all("Set-Cookie").isEmpty)
            }
        }
    }

    @Test func `with two credentials, or a cookie that the gateway did not set, are malformed`() async throws {
        try await BrowserStage.run { stage in
            let cookie = try await stage.signIn()
            let field = BrowserStage.field(cookie)
            let malformed = "400 request_invalid"
            for authorization in ["Bearer mat_x", "Bearer \(cookie)", "Basic YTpi", "Other x"] {
                #expect(try await text(stage.get("/a", field, ("Authorization", authorization))) == malformed)
                let optional = try await stage.get("/optional/a", field, ("Authorization", authorization))
                #expect(text(optional) == malformed)
            }
            for value in ["a\\b", "a,b", "\"a\"", String(repeating: "a", count: 3_901)] {
                let response = try await stage.get("/a", BrowserStage.field(value))
                #expect(text(response) == malformed + ", cookie deleted")
            }
            #expect(try await text(stage.get("/a", field, field)) == malformed + ", cookie deleted")
            #expect(stage.upstream.requests.isEmpty)
            // An application's own credential.
            #expect(try await text(stage.get("/public/a", field, ("Authorization", "Basic YTpi"))) == "200 -")
            let request = try stage.upstream.onlyRequest()
            #expect(request["Authorization"] == "Basic YTpi" && request["Cookie"] == nil)
        }
    }

    @Test func `with a cookie that cannot be used pass as without it, and it is deleted`() async throws {
        try await BrowserStage.run { stage in
            let cookie = try await stage.signIn()
            let found = "302 sign_in_required to /auth/sign-in"
            for value in ["\"a\"", "a b", "", "\(cookie); \(BrowserStage.cookie)=\(cookie)"] {
                let field = BrowserStage.field(value)
                // A person sees the page, whatever the cookie is.
                let page = try await stage.get("/a", field, Self.navigation)
                #expect(text(page) == "\(found)?return_to=/a, cookie deleted", "\(value)")
                for fields in [[field], [field, Self.navigation], [field, ("Sec-Fetch-Mode", "cors")]] {
                    #expect(try await text(stage.ask("GET", "/public/a", fields)) == "200 -, cookie deleted")
                    #expect(try await text(stage.ask("GET", "/optional/a", fields)) == "200 -, cookie deleted")
                }
            }
            // The session counts beside another cookie that cannot be used.
            let form = ("Cookie", "\(BrowserStage.cookie)-form=a b; \(BrowserStage.cookie)=\(cookie); c=1")
            for _ in 0..<2 {
                let response = try await stage.get("/a", form, Self.navigation)
                #expect(response.status == 200 && response.text == "ada")
                let set = response.all("Set-Cookie")
                #expect(set.count == 2 && set.last?.hasPrefix("\(BrowserStage.cookie)-form=; Path=/") == true)
            }
            #expect(stage.upstream.requests.last?.all("Cookie") == ["c=1"])
            let empty = try await stage.get("/a", BrowserStage.field(""), ("Sec-Fetch-Mode", "cors"))
            #expect(text(empty) == "401 credential_missing, cookie deleted")
        }
    }

    @Test func `get no dialog of the browser's own for a password`() async throws {
        try await BrowserStage.run { stage in
            let basic = { (response: HTTPMessage) in response.all("WWW-Authenticate").contains { $0.hasPrefix("Basic") }
            }
            for target in ["/basic/a", "/basic/b"] {
                for fields in [[], [("Authorization", "Basic YTpi")]] {
                    let program = try await stage.ask("GET", target, fields)
                    #expect(program.status == 401 && basic(program))
                    for mode in ["cors", "no-cors", "same-origin", "websocket"] {
                        let response = try await stage.ask("GET", target, fields + [("Sec-Fetch-Mode", mode)])
                        #expect(response.status == 401 && !basic(response), "\(mode)")
                        #expect(response.all("WWW-Authenticate").count == 1)
                    }
                }
            }
            var question = ExplanationQuestion()
            question.target = "/basic/a"
            for (fields, count) in [([], 2), (["Sec-Fetch-Mode: cors"], 1)] as [([String], Int)] {
                question.fields = fields.map { Secret(Array($0.utf8)) }
                let document = try #require(await stage.gateway.explanation(of: question))
                let text = String(decoding: JSON.write(document), as: UTF8.self)
                #expect(text.contains("Basic realm") == (count == 2), "\(text)")
            }
        }
    }

    private func isPage(_ response: HTTPMessage) -> Bool {
        response["Content-Type"] == "text/html; charset=utf-8" && response["Cache-Control"] == "no-store"
            && response["Content-Security-Policy"]?.hasPrefix("default-src 'none'; style-src 'nonce-") == true
            && response.text.contains(response["X-Request-Id"] ?? "?")
    }

    @Test func `get errors as pages where a person sees them`() async throws {
        try await BrowserStage.run { stage in
            let cookie = BrowserStage.field(try await stage.signIn())
            for (target, status) in [("/auth/nothing", 404), ("/gone/a", 502), ("/limited/a", 429), ("/a//b", 400)] {
                var last: HTTPMessage?
                for _ in 0..<2 {
                    last = try await stage.get(target, cookie, Self.navigation, ("Accept-Language", "zh-HK"))
                }
                let page = try #require(last)
                #expect(page.status == status && isPage(page) && page.text.contains("lang=\"zh-Hant\""), "\(target)")
                #expect((page["Retry-After"] != nil) == (status == 429))
                let document = try await stage.get(target, cookie, ("Sec-Fetch-Mode", "cors"))
                #expect(document.status == status && document["Content-Type"] == "application/problem+json")
            }
            let nonces = Set(
                try await [stage.get("/auth/nothing", Self.navigation), stage.get("/auth/nothing", Self.navigation)]
                    .compactMap { $0["Content-Security-Policy"] })
            #expect(nonces.count == 2)
        }
    }

    @Test func `of a user who may not say who that is, and how to leave`() async throws {
        try await BrowserStage.run { stage in
            let cookie = BrowserStage.field(try await stage.signIn(claims: ["name": "Ada <b>"]))
            for _ in 0..<2 {
                let page = try await stage.get("/staff/a?b=1", cookie, Self.navigation)
                #expect(page.status == 403 && isPage(page))
                #expect(page.text.contains("Ada &lt;b&gt;"))
                #expect(page.text.contains("action=\"/auth/sign-out?return_to=/auth/signed-out\""))
                #expect(page.text.contains("/auth/sign-in?confirm=true&amp;return_to=/staff/a%3Fb%3D1"))
                #expect(page["WWW-Authenticate"]?.contains("insufficient_scope") == true)
            }
            #expect(try await text(stage.get("/staff/a", cookie)) == "403 not_allowed")
            let leave = try await stage.ask(
                "POST", "/auth/sign-out?return_to=/auth/signed-out",
                [cookie, Self.navigation, ("Sec-Fetch-Site", "same-origin")])
            #expect(leave.status == 303 && leave["Location"] == "/auth/signed-out")
            #expect(stage.upstream.requests.isEmpty)
        }
    }

    @Test func `who have to authenticate again get a page that leads there`() async throws {
        try await BrowserStage.run { stage in
            let cookie = BrowserStage.field(try await stage.signIn(authenticated: 60))
            let page = try await stage.get("/fresh/a", cookie, Self.navigation)
            #expect(page.status == 401 && isPage(page) && page["WWW-Authenticate"]?.contains("max_age=1") == true)
            #expect(page.text.contains("/auth/sign-in?confirm=true&amp;return_to=/fresh/a"))
        }
    }

    @Test(arguments: [
        ("POST", [], 403), ("DELETE", [("Sec-Fetch-Site", "cross-site")], 403), ("GET", [], 200),
        ("POST", [("Sec-Fetch-Site", "same-site")], 403), ("POST", [("Sec-Fetch-Site", "same-origin")], 200),
        ("POST", [("Sec-Fetch-Site", "none")], 200), ("PUT", [("Origin", BrowserStage.origin)], 200),
        ("PUT", [("Origin", "https://evil.example")], 403), ("PUT", [("Origin", "null")], 403),
        ("POST", [("Origin", BrowserStage.origin), ("Origin", BrowserStage.origin)], 400),
        ("GET", [("Sec-Fetch-Site", "none"), ("Sec-Fetch-Site", "none")], 400),
        ("OPTIONS", [("Sec-Fetch-Site", "cross-site")], 200),
    ])
    func `are checked for their origin`(method: String, fields: [(String, String)], status: Int) async throws {
        try await BrowserStage.run { stage in
            let cookie = BrowserStage.field(try await stage.signIn())
            let response = try await stage.ask(method, "/a", [cookie] + fields)
            #expect(response.status == status && (status != 403 || response.member("code") == "cross_site"))
            #expect(stage.upstream.requests.count == (status == 200 ? 1 : 0))
            // Without a credential there is nothing to misuse.
            #expect(try await stage.ask(method, "/public/a", [cookie] + fields).status == 200)
        }
    }

    @Test func `with an ended session sign in again, or pass without it, and the cookie is deleted`() async throws {
        try await BrowserStage.run { stage in
            let cookie = try await stage.signIn()
            #expect(try await text(stage.get("/a", BrowserStage.field(cookie))) == "200 ada")
            try await stage.end(cookie)
            for value in [cookie, "mct_x", "x"] {
                let field = BrowserStage.field(value)
                #expect(
                    try await text(stage.get("/b", field, Self.navigation))
                        == "302 sign_in_required to /auth/sign-in?return_to=/b, cookie deleted")
                #expect(try await text(stage.get("/b", field)) == "401 credential_invalid")
                #expect(
                    try await text(stage.get("/api/b", field, Self.navigation))
                        == "401 credential_invalid, cookie deleted")
                #expect(try await text(stage.get("/optional/b", field, Self.navigation)) == "200 -, cookie deleted")
                #expect(try await text(stage.get("/optional/b", field)) == "401 credential_invalid")
            }
            #expect(stage.upstream.requests.allSatisfy { $0["Cookie"] == nil })
        }
    }

    @Test func `get the cookie that replaces theirs`() async throws {
        try await BrowserStage.run(sessions: "{ access_ttl: 1s, refresh_reuse_grace: 30s }") { stage in
            let cookie = try await stage.signIn()
            let first = try await stage.get("/a", BrowserStage.field(cookie))
            #expect(text(first) == "200 ada")
            stage.advance(bySeconds: 2)
            let second = try await stage.get("/a", BrowserStage.field(cookie))
            let set = second.all("Set-Cookie")
            #expect(text(second) == "200 ada" && set.count == 2 && set.first == "theme=dark")
            #expect(second.all("Cache-Control") == ["private"])
            let pair = try #require(set.last?.split(separator: ";").first).split(separator: "=")
            let next = String(try #require(pair.last))
            #expect(pair.first == "__Host-martlet" && next.hasPrefix("mct_") && next != cookie)
            #expect(set.last?.hasSuffix("; Path=/; Secure; HttpOnly; SameSite=Lax; Max-Age=2592000") == true)
            // It is the same by HTTP/2, and for a response of the gateway itself.
            let head = try await stage.getByHTTP2("/a", BrowserStage.field(cookie))
            #expect(head.contains { $0.lowercased().hasPrefix("set-cookie:") && $0.contains(next) })
            let rejected = try await stage.get("/other/a", BrowserStage.field(cookie))
            #expect(rejected.status == 401 && rejected["Set-Cookie"]?.contains(next) == true)
            let last = try await stage.get("/a", BrowserStage.field(next))
            #expect(text(last) == "200 ada")
        }
    }

    @Test(arguments: ExampleProxy.Kind.installed)
    func `get it through another proxy that asks the gateway`(_ kind: ExampleProxy.Kind) async throws {
        let sessions = "{ access_ttl: 1s, refresh_reuse_grace: 30s }"
        try await BrowserStage.run(sessions: sessions, server: ", trusted_proxies: [127.0.0.1/32]") { stage in
            let (gateway, api) = (stage.endpoint, stage.upstream.endpoint)
            let proxy = try await onOwnThread { try ExampleProxy(kind, gateway: gateway, api: api) }
            let field = BrowserStage.field(try await stage.signIn())
            let ask: @Sendable (_ field: (String, String)) async throws -> HTTPMessage = { field in
                try await onOwnThread { try proxy.exchange("GET", "/a", [field]) }
            }
            #expect(try await ask(field).text == "ada")
            stage.advance(bySeconds: 2)
            let second = try await ask(field)
            let next = second.all("Set-Cookie").first { $0.hasPrefix("__Host-martlet=mct_") }
            let pair = try #require(next?.split(separator: ";").first).split(separator: "=")
            #expect(second.text == "ada" && next?.contains("; HttpOnly") == true)
            #expect(next?.contains("; SameSite=Lax") == true)
            #expect(try await ask(BrowserStage.field(String(try #require(pair.last)))).text == "ada")
        }
    }

    @Test func `open a WebSocket from a page of this site alone`() async throws {
        try await BrowserStage.run { stage in
            let cookie = BrowserStage.field(try await stage.signIn())
            let upgrade = [
                ("Connection", "Upgrade"), ("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13"),
                ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="), cookie,
            ]
            for fields in [
                [], [("Origin", "https://evil.example")], [("Sec-Fetch-Site", "same-origin")],
                [("Origin", "https://evil.example"), ("Sec-Fetch-Site", "same-origin")],
            ] {
                #expect(try await text(stage.ask("GET", "/ws", upgrade + fields)) == "403 cross_site")
            }
            #expect(stage.upstream.requests.isEmpty)
            let opened = try await stage.ask("GET", "/ws", upgrade + [("Origin", BrowserStage.origin)])
            #expect(opened.status == 101 && opened.all("Set-Cookie") == ["theme=dark"])
            let request = try stage.upstream.onlyRequest()
            #expect(request["Cookie"] == nil && request["X-Auth-Subject"] == "ada")
        }
    }
}
