import MartletCore
import MartletCrypto
import MartletJSON
import MartletResponder
import MartletSimulator
import Testing

@Suite struct `Apple simulator's authorization page` {
    private static let client = "com.example.web"
    private static let callback = "https://example.com/auth/callback/apple"
    private static let request = [
        ("client_id", client), ("redirect_uri", callback), ("response_type", "code id_token"),
        ("response_mode", "form_post"), ("scope", "name email"), ("state", "s&<\"'é"), ("nonce", "n1"),
    ]
    private static let user = [
        ("page_account", AppleStage.subject), ("page_first_name", "Ada \"<b>"), ("page_last_name", "Lovelace"),
        ("page_email", "ada@example.com"), ("page_action", "continue"),
    ]

    /// The same list with a parameter replaced, or removed.
    private static func with(
        _ changes: [(String, String?)], in list: [(String, String)] = request
    ) -> [(String, String)] {
        list.filter { name, _ in !changes.contains { $0.0 == name } }
            + changes.compactMap { name, value in value.map { (name, $0) } }
    }

    private static func open(_ stage: AppleStage, _ parameters: [(String, String)] = request) async -> AppleStage.Reply
    {
        await stage.send("GET", "/auth/authorize?\(AppleStage.encoded(parameters))", fields: [])
    }

    private static func submit(
        _ stage: AppleStage, _ parameters: [(String, String)] = request, choice: [(String, String)] = user
    ) async -> AppleStage.Reply {
        await stage.call("/auth/authorize", parameters + choice)
    }

    /// The hidden fields of a page, with entities decoded.
    private static func fields(_ page: String) -> [String: String] {
        var fields: [String: String] = [:]
        for match in page.matches(of: #/<input type="hidden" name="([^"]*)" value="([^"]*)">/#) {
            fields[String(match.output.1)] = String(match.output.2)
                .replacing("&quot;", with: "\"").replacing("&#39;", with: "'").replacing("&lt;", with: "<")
                .replacing("&gt;", with: ">").replacing("&amp;", with: "&")
        }
        return fields
    }

    // MARK: Rules

    @Test func `the page has the request in its form, escaped`() async throws {
        let page = await Self.open(try AppleStage())
        #expect(page.status == 200 && page.text.contains("<form method=\"post\" action=\"/auth/authorize\">"))
        #expect(page.text.contains("page_first_name") && page.text.contains("page_hides_email"))
        #expect(Self.fields(page.text) == Dictionary(uniqueKeysWithValues: Self.request))
        #expect(!page.text.contains("s&<"))
        let bare = Self.with([("scope", nil), ("client_id", "<script>")])
        let other = await Self.open(try AppleStage(), bare)
        #expect(other.status == 200 && !other.text.contains("page_first_name") && !other.text.contains("<script>"))
    }

    /// What Apple refuses, on its own page.
    static let refused: [(String, String?)] = [
        ("client_id", nil), ("redirect_uri", nil), ("response_type", nil), ("response_type", "id_token"),
        ("response_type", "token"), ("response_mode", "query"), ("response_mode", "fragment"), ("response_mode", "web"),
        ("response_mode", nil), ("scope", "name phone"), ("scope", "name  email"), ("code_challenge", "short"),
        ("code_challenge", "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"), ("code_challenge_method", "S256"),
        ("prompt", "login"), ("redirect_uri", "http://example.com/"), ("redirect_uri", "https://192.0.2.1/"),
        ("redirect_uri", "https://example/"),
        ("redirect_uri", "https://example.com/#x"), ("redirect_uri", "https://user@example.com/"),
        ("redirect_uri", "https://[2001:db8::1]/"), ("redirect_uri", "https://exa mple.com/"),
        ("redirect_uri", "https://example.com:99999/"), ("redirect_uri", "https://-a.com/"),
        ("redirect_uri", "javascript:alert(1)"), ("redirect_uri", "https://"), ("redirect_uri", "//example.com"),
        ("redirect_uri", "https://example.com\\@evil.com/"), ("redirect_uri", "http://127.0.0.1.evil.com/"),
        ("redirect_uri", "https://1.2.3.4:443/"), ("redirect_uri", "https://exámple.com/"),
    ]

    @Test(arguments: refused) func `a bad request ends on the page`(_ name: String, _ value: String?) async throws {
        let stage = try AppleStage()
        let parameters = Self.with([(name, value)])
        for reply in [await Self.open(stage, parameters), await Self.submit(stage, parameters)] {
            #expect(reply.status == 400 && reply.text.hasPrefix("<!DOCTYPE html>"), "\(reply.text)")
            #expect(reply.response.fields.allSatisfy { $0.name != "Location" } && !reply.text.contains("submit()"))
        }
    }

    @Test func `a plus sign is no space, and parameters are not repeated`() async throws {
        let stage = try AppleStage()
        let start = "/auth/authorize?client_id=a&redirect_uri=https%3A%2F%2Fexample.com%2F&response_mode=form_post"
        let rows = [
            ("response_type=code%20id_token&scope=name%20email", 200), ("response_type=code&scope=name+email", 400),
            ("response_type=code+id_token", 400), ("response_type=code&client_id=b", 400), ("response_type=%", 400),
            ("response_type=code&scope=openid", 200), ("response_type=code&state=", 200),
        ]
        for (query, status) in rows {
            #expect(await stage.send("GET", "\(start)&\(query)", fields: []).status == status, "\(query)")
        }
        #expect(await stage.send("PUT", "/auth/authorize", fields: []).status == 405)
    }

    @Test func `loopback redirect URIs work without TLS, registered ones exclude others`() async throws {
        let stage = try AppleStage()
        for host in ["127.0.0.1:8080", "localhost", "[::1]:8080"] {
            let reply = await Self.open(stage, Self.with([("redirect_uri", "http://\(host)/auth/callback/apple")]))
            #expect(reply.status == 200, "\(host)")
        }
        func register(_ list: String) async -> Int {
            await stage.order("/simulator/client", #"{"client_id": "\#(Self.client)", "redirect_uris": \#(list)}"#)
                .status
        }
        #expect(await register(#"["https://example.com/other"]"#) == 200)
        #expect(await Self.open(stage).status == 400)
        #expect(await register(#"["https://example.com/other", "\#(Self.callback)"]"#) == 200)
        #expect(await Self.open(stage).status == 200)
        #expect(await register("[]") == 200)
        for list in [#""x""#, #"["x"]"#, "[1]", #"["http://example.com/"]"#] { #expect(await register(list) == 400) }
    }

    // MARK: Logins

    @Test func `a first login posts code, token, state and user`() async throws {
        let stage = try AppleStage()
        let page = await Self.submit(stage)
        #expect(
            page.status == 200 && page.text.contains("action=\"\(Self.callback)\"") && page.text.contains("submit()"))
        let fields = Self.fields(page.text)
        #expect(fields.keys.sorted() == ["code", "id_token", "state", "user"] && fields["state"] == "s&<\"'é")
        let user = try AppleStage.object(Array(try #require(fields["user"]).utf8))
        #expect(user == ["name": ["firstName": "Ada \"<b>", "lastName": "Lovelace"], "email": "ada@example.com"])
        let claims = try stage.claims(fields["id_token"])
        let hash = Base64URL.encode(Array(SHA256.digest(Array(try #require(fields["code"]).utf8)).prefix(16)))
        #expect(claims["c_hash"] == .string(hash) && claims["nonce"] == "n1" && claims["aud"] == .string(Self.client))
        #expect(claims["email"] == "ada@example.com" && claims["is_private_email"] == nil)
        #expect(claims["real_user_status"] == nil && claims["sub"] == .string(AppleStage.subject))
        let tokens = try await stage.exchange(
            try #require(fields["code"]), [("redirect_uri", Self.callback)], client: Self.client)
        #expect(try stage.claims(tokens["id_token"])["nonce"] == "n1")
    }

    @Test func `the user is sent the first time only, until consent is revoked`() async throws {
        let stage = try AppleStage()
        let hidden = Self.user + [("page_hides_email", "on")]
        let first = Self.fields(await Self.submit(stage, choice: hidden).text)
        let relay = try #require(try stage.claims(first["id_token"])["email"]?.string)
        #expect(relay.hasSuffix("@privaterelay.appleid.com") && first["user"]?.contains(relay) == true)
        #expect(try stage.claims(first["id_token"])["is_private_email"] == true)
        let second = Self.fields(await Self.submit(stage).text)
        #expect(second["user"] == nil)
        #expect(try stage.claims(second["id_token"])["email"]?.string == relay, "the first choice counts")
        let revoke = #"{"subject": "\#(AppleStage.subject)", "state": "revoked"}"#
        _ = await stage.order("/simulator/user", revoke)
        let third = Self.fields(await Self.submit(stage).text)
        #expect(third["user"]?.contains("ada@example.com") == true)
        let delete = #"{"subject": "\#(AppleStage.subject)", "state": "deleted"}"#
        _ = await stage.order("/simulator/user", delete)
        #expect(await Self.submit(stage).status == 400)
    }

    @Test func `a scope gets what it names`() async throws {
        func user(_ scope: String) async throws -> JSONObject {
            let text = await Self.submit(try AppleStage(), Self.with([("scope", scope)])).text
            return try AppleStage.object(Array((Self.fields(text)["user"] ?? "{}").utf8))
        }
        #expect(try await user("name").members.map(\.name) == ["name"])
        #expect(try await user("email").members.map(\.name) == ["email"])
        #expect(try await user("openid").isEmpty)
        let stage = try AppleStage()
        let bare = Self.fields(await Self.submit(stage, Self.with([("scope", nil)])).text)
        #expect(try stage.claims(bare["id_token"])["email"] == nil && bare["user"] == nil)
    }

    @Test func `by query and by fragment`() async throws {
        let stage = try AppleStage()
        func location(_ changes: [(String, String?)]) async -> String {
            let reply = await Self.submit(stage, Self.with([("scope", nil)] + changes))
            #expect(reply.status == 303, "\(reply.text)")
            return reply.response.fields.first { $0.name == "Location" }?.value ?? ""
        }
        let code = ("response_type", "code" as String?)
        let query = await location([("response_mode", "query"), code])
        #expect(query.hasPrefix("\(Self.callback)?state=s%26%3C%22%27%C3%A9&code=c") && !query.contains("id_token"))
        let bare = await location([("response_mode", nil), ("state", nil), code])
        #expect(bare.hasPrefix("\(Self.callback)?code=c"))
        let more = await location([("response_mode", "query"), ("redirect_uri", Self.callback + "?a=b"), code])
        #expect(more.hasPrefix("\(Self.callback)?a=b&state="))
        let fragment = await location([("response_mode", "fragment")])
        #expect(fragment.hasPrefix("\(Self.callback)#state=") && fragment.contains("&id_token=ey"))
    }

    @Test func `a cancelled login is an error with the state`() async throws {
        let stage = try AppleStage()
        let page = await Self.submit(stage, choice: [("page_action", "cancel")])
        #expect(Self.fields(page.text) == ["error": "user_cancelled_authorize", "state": "s&<\"'é"])
        let query = Self.with([("scope", nil), ("response_mode", "query"), ("response_type", "code"), ("state", "x")])
        let reply = await Self.submit(stage, query, choice: [("page_action", "cancel")])
        #expect(reply.response.fields[0].value == "\(Self.callback)?state=x&error=user_cancelled_authorize")
        let user = await stage.order("/simulator/user", #"{"subject": "\#(AppleStage.subject)"}"#)
        #expect(user["state"] == "none")
    }

    @Test func `a challenge binds the code`() async throws {
        let stage = try AppleStage()
        let challenge: [(String, String?)] = [
            ("code_challenge", "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"), ("code_challenge_method", "S256"),
        ]
        let code = try #require(Self.fields(await Self.submit(stage, Self.with(challenge)).text)["code"])
        let verifier = ("code_verifier", "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk")
        let reply = try await stage.exchange(code, [("redirect_uri", Self.callback), verifier], client: Self.client)
        #expect(reply.status == 200, "\(reply.text)")
        let plain = Self.with([challenge[0], ("code_challenge_method", "plain")])
        #expect(await Self.open(stage, plain).status == 400)
    }

    @Test func `a choice that the page cannot make is an error`() async throws {
        let stage = try AppleStage()
        let changes: [[(String, String?)]] = [
            [("page_action", nil)], [("page_action", "x")], [("page_account", nil)],
            [("page_first_name", String(repeating: "x", count: 256))],
            [("page_account", String(repeating: "x", count: 256))], [("page_extra", "1")],
        ]
        for change in changes {
            let reply = await Self.submit(stage, choice: Self.with(change, in: Self.user))
            #expect(reply.status == 400, "\(change)")
        }
        #expect(await Self.submit(stage, Self.with([("nonce", String(repeating: "n", count: 9000))])).status == 400)
        #expect(await stage.order("/auth/authorize", "{}").status == 400)
    }

    @Test func `errors can be injected, and the log has the client`() async throws {
        let stage = try AppleStage()
        #expect(await stage.order("/simulator/trouble", #"{"path": "/auth/authorize", "status": 503}"#).status == 200)
        #expect(await Self.open(stage).status == 503)
        #expect(await Self.open(stage).status == 200)
        let log = await stage.log()
        #expect(log.map { $0["status"]?.int64 } == [503, 200] && log[1]["client_id"] == .string(Self.client))
    }
}
