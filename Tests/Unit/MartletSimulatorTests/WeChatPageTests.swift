import MartletCore
import MartletJSON
import MartletResponder
import MartletSimulator
import Testing

@Suite struct `WeChat simulator's pages` {
    private static let qr = "/connect/qrconnect"
    private static let inside = "/connect/oauth2/authorize"
    private static let callback = "https://example.com/auth/callback/wechat"
    private static let state = "0123456789abcdef0123456789abcdef"

    private static func parameters(_ page: String) -> [(String, String)] {
        [
            ("appid", page == qr ? "wx0000000000000002" : "wx0000000000000003"), ("redirect_uri", callback),
            ("response_type", "code"), ("scope", page == qr ? "snsapi_login" : "snsapi_userinfo"), ("state", state),
        ]
    }

    private static func with(_ name: String, _ value: String?, _ page: String) -> [(String, String)] {
        let all = parameters(page)
        guard all.contains(where: { $0.0 == name }) else { return all + (value.map { [(name, $0)] } ?? []) }
        return all.compactMap { $0.0 == name ? value.map { (name, $0) } : $0 }
    }

    private static func send(
        _ stage: WeChatStage, _ method: String, _ page: String, _ parameters: [(String, String)],
        agent: String = "Mozilla/5.0 MicroMessenger/8.0"
    ) async -> LocalResponse {
        let text = AppleStage.encoded(parameters)
        let isPost = method == "POST"
        let body = isPost ? Array(text.utf8) : []
        return await stage.endpoints.handle(
            LocalRequest(
                method: method, path: page, query: isPost ? "" : text,
                fields: [("User-Agent", agent), ("Content-Type", AppleStage.form)], body: body,
                bodyBytes: body.count, client: "127.0.0.1", requestID: "r1"))
    }

    private static func text(_ response: LocalResponse) -> String { String(decoding: response.body, as: UTF8.self) }

    private static func location(_ response: LocalResponse) -> String? {
        response.fields.first { $0.name == "Location" }?.value
    }

    @Test(arguments: [qr, inside])
    func `a page has the request in its form, escaped, and two buttons`(page: String) async {
        let stage = WeChatStage()
        let response = await Self.send(stage, "GET", page, Self.parameters(page))
        let text = Self.text(response)
        #expect(response.status == 200 && text.contains("<form method=\"post\" action=\"\(page)\">"))
        #expect(text.contains("value=\"confirm\"") && text.contains("value=\"cancel\""))
        #expect(text.contains("name=\"redirect_uri\" value=\"\(Self.callback)\""))
        #expect(text.contains("page_snapshot") == (page == Self.inside))
        let escaped = await Self.send(
            stage, "GET", page, Self.with("redirect_uri", Self.callback + "?a='&b=<", page))
        #expect(Self.text(escaped).contains("?a=&#39;&amp;b=&lt;"))
    }

    @Test(arguments: [(qr, 2), (inside, 3)])
    func `a confirmed login comes back with a code of the user`(page: String, app: Int) async throws {
        let stage = WeChatStage()
        let response = await Self.send(
            stage, "POST", page, Self.parameters(page) + [("page_person", "Ada"), ("page_action", "confirm")])
        let location = try #require(Self.location(response))
        #expect(response.status == 303)
        let match = try #require(location.wholeMatch(of: #/(.*)\?code=([\w-]+)&state=(\w+)/#)?.output)
        #expect(match.1 == Self.callback && match.3 == Self.state)
        let tokens = try await stage.object("GET", WeChatStage.exchange(app, String(match.2)))
        let known = try await stage.requestCode(app, #", "person": "Ada""#)
        #expect(tokens["openid"] == known["openid"] && tokens["unionid"] == known["unionid"])
        #expect(tokens["scope"]?.string == (page == Self.qr ? "snsapi_login" : "snsapi_userinfo"))
        #expect(tokens["is_snapshotuser"] == nil)
        let again = try await stage.object("GET", WeChatStage.exchange(app, String(match.2)))
        #expect(again["errcode"] == 40163)
    }

    @Test func `a cancelled login comes back without a code`() async {
        let stage = WeChatStage()
        func location(_ parameters: [(String, String)]) async -> String? {
            Self.location(await Self.send(stage, "POST", Self.qr, parameters + [("page_action", "cancel")]))
        }
        #expect(await location(Self.parameters(Self.qr)) == "\(Self.callback)?state=\(Self.state)")
        #expect(await location(Self.with("state", nil, Self.qr)) == Self.callback)
        let more = Self.with("redirect_uri", Self.callback + "?a=b", Self.qr)
        #expect(await location(more) == "\(Self.callback)?a=b&state=\(Self.state)")
    }

    @Test func `a snapshot page has a virtual user, and codes expire`() async throws {
        let stage = WeChatStage()
        func code(_ page: String, _ more: [(String, String)] = []) async throws -> String {
            let choice = [("page_person", "Ada"), ("page_action", "confirm")] + more
            let response = await Self.send(stage, "POST", page, Self.parameters(page) + choice)
            return String(try #require(Self.location(response)?.firstMatch(of: #/code=([\w-]+)/#)?.output.1))
        }
        let snapshot = try await code(Self.inside, [("page_snapshot", "on")])
        let tokens = try await stage.object("GET", WeChatStage.exchange(3, snapshot))
        #expect(tokens["is_snapshotuser"] == 1)
        let (website, account) = (try await code(Self.qr), try await code(Self.inside))
        stage.advance(300)
        #expect(try await stage.object("GET", WeChatStage.exchange(3, account))["errcode"] == 40029)
        #expect(try await stage.object("GET", WeChatStage.exchange(2, website))["openid"] != nil)
    }

    /// What WeChat refuses, on its own page.
    static let refused: [(String, String, String?)] = [
        (qr, "appid", nil), (qr, "appid", "wx0000000000000009"), (qr, "appid", "wx0000000000000003"),
        (qr, "appid", "wx0000000000000001"), (qr, "redirect_uri", nil), (qr, "redirect_uri", "http://example.com/"),
        (qr, "redirect_uri", "https://192.0.2.1/"), (qr, "redirect_uri", "https://example.com/#x"),
        (qr, "redirect_uri", "https://user@example.com/"), (qr, "redirect_uri", "javascript:alert(1)"),
        (qr, "response_type", "token"), (qr, "response_type", nil), (qr, "scope", "snsapi_userinfo"),
        (qr, "scope", "snsapi_base"), (qr, "scope", nil), (qr, "scope", "snsapi_login,snsapi_base"),
        (qr, "nonce", "x"), (inside, "appid", "wx0000000000000002"), (inside, "appid", "wx0000000000000004"),
        (inside, "scope", "snsapi_login"), (inside, "state", "a-b"), (inside, "state", "a b"),
        (inside, "state", String(repeating: "a", count: 129)), (inside, "lang", "en"),
    ]

    @Test(arguments: refused)
    func `a bad request ends on the page`(page: String, name: String, value: String?) async {
        let stage = WeChatStage()
        let parameters = Self.with(name, value, page)
        let choice = [("page_person", "Ada"), ("page_action", "confirm")]
        for response in [
            await Self.send(stage, "GET", page, parameters), await Self.send(stage, "POST", page, parameters + choice),
        ] {
            #expect(response.status == 400 && Self.location(response) == nil, "\(Self.text(response))")
        }
    }

    @Test func `the order of parameters counts, and none is repeated`() async {
        let stage = WeChatStage()
        for page in [Self.qr, Self.inside] {
            let all = Self.parameters(page)
            #expect(await Self.send(stage, "GET", page, Array(all.reversed())).status == 400)
            #expect(await Self.send(stage, "GET", page, [all[0], all[2], all[1], all[3], all[4]]).status == 400)
            #expect(await Self.send(stage, "GET", page, all + [all[4]]).status == 400)
            #expect(await Self.send(stage, "PUT", page, all).status == 405)
        }
        let language = Self.parameters(Self.qr) + [("lang", "en")]
        #expect(await Self.send(stage, "GET", Self.qr, language).status == 200)
        #expect(await stage.ask("GET", "\(Self.qr)?appid=%zz").status == 400)
        #expect(await stage.ask("POST", Self.qr, "{}").status == 400)
    }

    @Test func `the page of official accounts is for WeChat's own browser`() async {
        let stage = WeChatStage()
        let firefox = "Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0"
        let parameters = Self.parameters(Self.inside)
        #expect(await Self.send(stage, "GET", Self.inside, parameters, agent: firefox).status == 400)
        #expect(await Self.send(stage, "GET", Self.qr, Self.parameters(Self.qr), agent: firefox).status == 200)
    }

    @Test func `codes go to the registered host alone`() async {
        let stage = WeChatStage()
        let body = """
            {"app_id": "wx0000000000000002", "secret": "s2", "variant": "website", "redirect_domain": "app.example.com"}
            """
        #expect(await stage.ask("POST", "/simulator/app", body).status == 200)
        for (uri, status) in [
            ("https://app.example.com/anything?x=1", 200), ("https://APP.example.com:8443/", 200),
            (Self.callback, 400), ("https://x.app.example.com/", 400), ("https://app.example.com.evil.com/", 400),
            ("http://127.0.0.1/", 400),
        ] {
            let parameters = Self.with("redirect_uri", uri, Self.qr)
            #expect(await Self.send(stage, "GET", Self.qr, parameters).status == status, "\(uri)")
        }
        for origin in ["http://127.0.0.1:8080", "https://127.0.0.1:8443", "https://localhost", "https://[::1]:8443"] {
            let local = Self.with("redirect_uri", "\(origin)/auth/callback/wechat", Self.inside)
            #expect(await Self.send(stage, "GET", Self.inside, local).status == 200, "\(origin)")
        }
    }

    @Test func `a choice that the page cannot make is an error`() async {
        let stage = WeChatStage()
        for choice in [
            [], [("page_action", "x")], [("page_action", "confirm")],
            [("page_action", "confirm"), ("page_person", "")],
            [("page_action", "confirm"), ("page_person", String(repeating: "x", count: 65))],
        ] {
            let response = await Self.send(stage, "POST", Self.qr, Self.parameters(Self.qr) + choice)
            #expect(response.status == 400)
        }
    }

    @Test func `faults can be injected, and calls are counted`() async throws {
        let stage = WeChatStage()
        for fault in [#""status": 503"#, #""errcode": -1"#] {
            let order = #"{"path": "\#(Self.qr)", \#(fault)}"#
            #expect(await stage.ask("POST", "/simulator/trouble", order).status == 200)
        }
        let all = Self.parameters(Self.qr)
        var statuses: [Int] = []
        for _ in 0..<3 { statuses.append(await Self.send(stage, "GET", Self.qr, all).status) }
        #expect(statuses == [503, 400, 200])
        #expect(try await stage.object("GET", "/simulator/calls")[Self.qr] == 3)
    }
}
