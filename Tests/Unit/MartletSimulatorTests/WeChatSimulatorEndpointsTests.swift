import MartletCore
import MartletJSON
import MartletProvider
import MartletResponder
import MartletSimulator
import Testing

@Suite struct `WeChat simulator's endpoints` {
    private static func errcode(_ stage: WeChatStage, _ target: String, _ method: String = "GET") async throws -> Int64?
    {
        let response = await stage.ask(method, target)
        #expect(response.status == 200)
        #expect(response.fields.first { $0.name == "Content-Type" }?.value == "text/plain")
        return try WeChatStage.object(response.body)["errcode"]?.int64
    }

    // MARK: Codes

    @Test(arguments: 1...3)
    func `a code of an app or a page is exchanged for a token once`(app: Int) async throws {
        let stage = WeChatStage()
        let issued = try await stage.requestCode(app, #", "person": "ada""#)
        let code = try #require(issued["code"]?.string)
        let response = try await stage.object("GET", WeChatStage.exchange(app, code))
        #expect(response["openid"] == issued["openid"])
        #expect(response["unionid"] == issued["unionid"])
        #expect(response["expires_in"] == 7200)
        #expect(response["scope"] == (app == 2 ? "snsapi_login" : "snsapi_userinfo"))
        #expect(
            response["access_token"]?.string?.isEmpty == false && response["refresh_token"]?.string?.isEmpty == false)
        #expect(response["errcode"] == nil && response["is_snapshotuser"] == nil && response["session_key"] == nil)
        #expect(try await Self.errcode(stage, WeChatStage.exchange(app, code)) == 40163)
    }

    @Test func `a mini-program's code is exchanged for a session once`() async throws {
        let stage = WeChatStage()
        let issued = try await stage.requestCode(4)
        let code = try #require(issued["code"]?.string)
        #expect(issued["session_key"] == nil)
        let response = try await stage.object("GET", WeChatStage.exchange(4, code))
        #expect(response["openid"] == issued["openid"])
        let key = Array(try #require(response["session_key"]?.string).utf8)
        #expect(Base64.decode(key[...], padding: .required)?.count == 16)
        #expect(response["access_token"] == nil)
        #expect(try await Self.errcode(stage, WeChatStage.exchange(4, code)) == 40163)
    }

    @Test func `a user has one unionid and another openid in each app`() async throws {
        let stage = WeChatStage()
        var issued: [JSONObject] = []
        for app in 1...4 { issued.append(try await stage.requestCode(app, #", "person": "ada""#)) }
        #expect(Set(issued.compactMap { $0["unionid"]?.string }).count == 1)
        let openIDs = Set(issued.compactMap { $0["openid"]?.string })
        #expect(openIDs.count == 4 && openIDs.allSatisfy { $0.utf8.count == 28 && $0.hasPrefix("o") })
        let other = try await stage.requestCode(1, #", "person": "bob""#)
        #expect(other["unionid"] != issued[0]["unionid"])
    }

    @Test(arguments: [(1, 600), (2, 600), (3, 300), (4, 300)])
    func `a code has the lifetime of WeChat's`(app: Int, lifetime: Int64) async throws {
        let stage = WeChatStage()
        let (early, late) = (try await stage.code(app), try await stage.code(app))
        stage.advance(lifetime - 1)
        #expect(try await Self.errcode(stage, WeChatStage.exchange(app, early)) == nil)
        stage.advance(1)
        #expect(try await Self.errcode(stage, WeChatStage.exchange(app, late)) == 40029)
    }

    @Test func `a code is bound to one app`() async throws {
        let stage = WeChatStage()
        let (mobile, mini) = (try await stage.code(1), try await stage.code(4))
        for target in [
            WeChatStage.exchange(2, mobile), WeChatStage.exchange(4, mobile), WeChatStage.exchange(1, mini),
            WeChatStage.exchange(1, "nobody-s"),
            WeChatStage.exchange(4, mini).replacing("jscode2session?", with: "oauth2/access_token?").replacing(
                "js_code", with: "code"),
        ] {
            #expect(try await Self.errcode(stage, target) == 40029, "\(target)")
        }
        #expect(try await Self.errcode(stage, WeChatStage.exchange(1, mobile)) == nil)
    }

    @Test(
        arguments: [
            ("appid=wx0000000000000001", "", 41002), ("secret=s1", "", 41004), ("code=", "x=", 41008),
            ("grant_type=authorization_code", "", 40002), ("authorization_code", "client_credentials", 40002),
            ("wx0000000000000001", "wx00000000000000ff", 40013), ("secret=s1", "secret=s2", 40125),
        ] as [(String, String, Int64)])
    func `an invalid call gets WeChat's error`(part: String, change: String, errcode: Int64) async throws {
        let stage = WeChatStage()
        let code = try await stage.code(1)
        let target = WeChatStage.exchange(1, code)
        #expect(try await Self.errcode(stage, target.replacing(part, with: change)) == errcode)
        #expect(try await Self.errcode(stage, target, "POST") == 43001)
        #expect(try await Self.errcode(stage, target) == nil)
    }

    // MARK: Tokens

    @Test func `a token returns a profile, is checked, expires and is refreshed`() async throws {
        let stage = WeChatStage()
        let extra = #", "person": "ada", "nickname": "Ada", "headimgurl": "https://x.example/a""#
        let tokens = try await stage.object("GET", WeChatStage.exchange(1, try await stage.code(1, extra)))
        let token = try #require(tokens["access_token"]?.string)
        let openID = try #require(tokens["openid"]?.string)
        let query = "?access_token=\(token)&openid=\(openID)"
        let profile = try await stage.object("GET", "/sns/userinfo\(query)&lang=en")
        #expect(profile["nickname"] == "Ada" && profile["headimgurl"] == "https://x.example/a")
        #expect(profile["openid"] == tokens["openid"] && profile["unionid"] == tokens["unionid"])
        #expect(try await Self.errcode(stage, "/sns/auth\(query)") == 0)
        #expect(try await Self.errcode(stage, "/sns/auth\(query)x") == 40003)
        #expect(try await Self.errcode(stage, "/sns/auth?access_token=x&openid=\(openID)") == 40001)
        #expect(try await Self.errcode(stage, "/sns/userinfo?openid=\(openID)") == 41001)
        #expect(try await Self.errcode(stage, "/sns/userinfo?access_token=\(token)") == 41009)

        let refreshToken = tokens["refresh_token"]?.string ?? ""
        let renewal =
            "/sns/oauth2/refresh_token?appid=wx0000000000000001&grant_type=refresh_token&refresh_token=\(refreshToken)"
        #expect(try await stage.object("GET", renewal)["access_token"] == tokens["access_token"])
        stage.advance(7200)
        #expect(try await Self.errcode(stage, "/sns/auth\(query)") == 42001)
        let renewed = try await stage.object("GET", renewal)
        #expect(renewed["access_token"]?.string?.isEmpty == false && renewed["access_token"] != tokens["access_token"])
        #expect(try await Self.errcode(stage, renewal.replacing("0001&", with: "0002&")) == 40030)
        #expect(try await Self.errcode(stage, renewal.replacing(refreshToken, with: "x")) == 40030)
        stage.advance(31 * 86_400)
        #expect(try await Self.errcode(stage, renewal) == 42002)
    }

    @Test func `the base scope returns no profile`() async throws {
        let stage = WeChatStage()
        let code = try await stage.code(3, #", "scope": "snsapi_base""#)
        let tokens = try await stage.object("GET", WeChatStage.exchange(3, code))
        let query = "access_token=\(tokens["access_token"]?.string ?? "")&openid=\(tokens["openid"]?.string ?? "")"
        #expect(try await Self.errcode(stage, "/sns/userinfo?\(query)") == 48001)
    }

    // MARK: Simulator endpoints

    @Test(arguments: [
        ("POST", "/simulator/code", "{}", 400), ("POST", "/simulator/code", "[]", 400),
        ("POST", "/simulator/code", #"{"app_id": "wx0"}"#, 400),
        ("POST", "/simulator/code", #"{"app_id": "wx0000000000000001", "x": 1}"#, 400),
        ("POST", "/simulator/code", #"{"app_id": "wx0000000000000001", "lifetime": 601}"#, 400),
        ("POST", "/simulator/code", #"{"app_id": "wx0000000000000001", "snapshot": 1}"#, 400),
        ("POST", "/simulator/code", #"{"app_id": "wx0000000000000001", "errcode": "1"}"#, 400),
        ("POST", "/simulator/code", #"{"app_id": "wx0000000000000001", "delay": 9001}"#, 400),
        ("GET", "/simulator/code", "", 405), ("POST", "/simulator/trouble", #"{"path": "/sns/auth"}"#, 400),
        ("POST", "/simulator/trouble", #"{"path": "/sns/auth", "times": 0, "errcode": 1}"#, 400),
        ("POST", "/simulator/app", #"{"app_id": "a", "secret": "s", "variant": "phone"}"#, 400),
        ("GET", "/sns", "", 404), ("GET", "/cgi-bin/token", "", 404),
    ])
    func `an invalid request gets a problem document`(
        method: String, path: String, body: String, status: Int
    ) async throws {
        let response = await WeChatStage().ask(method, path, body)
        #expect(response.status == status)
        #expect(response.fields.first { $0.name == "Content-Type" }?.value == "application/problem+json")
    }

    @Test func `a request must be JSON`() async throws {
        let response = await WeChatStage().ask("POST", "/simulator/code", "{}", type: "text/plain")
        #expect(response.status == 415)
    }

    @Test func `faults are injected in order and counted`() async throws {
        let stage = WeChatStage()
        let target = WeChatStage.exchange(1, try await stage.code(1))
        _ = try await stage.object(
            "POST", "/simulator/trouble", #"{"path": "/sns/oauth2/access_token", "errcode": 45011, "times": 2}"#)
        _ = try await stage.object(
            "POST", "/simulator/trouble", #"{"path": "/sns/oauth2/access_token", "status": 502, "body": "<html>"}"#)
        for _ in 0..<2 { #expect(try await Self.errcode(stage, target) == 45011) }
        let broken = await stage.ask("GET", target)
        #expect(broken.status == 502 && String(decoding: broken.body, as: UTF8.self) == "<html>")
        // The first call has consumed the code.
        #expect(try await Self.errcode(stage, target) == 40163)
        #expect(try await stage.object("GET", "/simulator/calls") == ["/sns/oauth2/access_token": 4])
    }

    @Test func `an app can be added`() async throws {
        let stage = WeChatStage()
        _ = try await stage.object(
            "POST", "/simulator/app", #"{"app_id": "wx0000000000000009", "secret": "s9", "variant": "website"}"#)
        #expect(try await Self.errcode(stage, WeChatStage.exchange(9, try await stage.code(9))) == nil)
    }
}

@Suite struct `WeChat provider and simulator` {
    private static let names = ["", "ios", "web", "page", "mini"]

    @Test(arguments: 1...4)
    func `sign a user in with every variant`(app: Int) async throws {
        let stage = WeChatStage()
        let issued = try await stage.requestCode(app, #", "person": "Ada""#)
        let signIn = try await stage.provider()(Self.names[app], ["code": issued["code"]?.string ?? ""])
        #expect(signIn.identity.providerSubject == "u:\(issued["unionid"]?.string ?? "")")
        #expect(signIn.identity.claims["openid"] == issued["openid"])
        #expect(signIn.identity.claims["nickname"] == (app == 4 ? nil : "Ada"))
    }

    @Test(arguments: ["decrypt: true", "decrypt: false"])
    func `agree on a mini-program's data`(lines: String) async throws {
        let stage = WeChatStage()
        let issued = try await stage.requestCode(4, #", "person": "Ada""#)
        var form: [String: String] = [:]
        for name in ["code", "raw_data", "signature", "encrypted_data", "iv"] { form[name] = issued[name]?.string }
        let signIn = try await stage.provider(lines)("mini", form)
        #expect(signIn.identity.claims["nickname"] == "Ada")
        let stale = try await stage.requestCode(4, #", "data": {"watermark": {"timestamp": 1, "appid": "wx0"}}"#)
        for name in ["code", "raw_data", "signature", "encrypted_data", "iv"] { form[name] = stale[name]?.string }
        let error = await Self.failure { try await stage.provider(lines)("mini", form) }
        #expect(error?.code == (lines.hasSuffix("true") ? "wechat.bad_data" : nil))
    }

    @Test(
        arguments: [
            (#", "snapshot": true"#, "wechat.virtual_user", .denied),
            (#", "scope": "snsapi_base""#, "wechat.scope_missing", .rejected),
            (#", "lifetime": -1"#, "wechat.upstream_bad_code", .rejected),
            (#", "errcode": 50002"#, "wechat.upstream_limited_user", .denied),
            (#", "errcode": -1"#, "wechat.upstream_busy", .unavailable),
            (#", "body": """#, "wechat.upstream_bad_answer", .unavailable),
            (#", "status": 503"#, "wechat.upstream_bad_status", .unavailable),
            (#", "profile_body": "{\"openid\": \"o-other\"}""#, "wechat.identity_mismatch", .rejected),
        ] as [(String, ErrorCode, AuthenticationError.Disposition)])
    func `agree on errors`(
        extra: String, code: ErrorCode, disposition: AuthenticationError.Disposition
    ) async throws {
        let stage = WeChatStage()
        let (form, provider) = (["code": try await stage.code(3, extra)], try stage.provider())
        for _ in 0..<2 {
            let error = await Self.failure { try await provider("page", form) }
            #expect(error?.code == code)
            #expect(error?.disposition == disposition)
        }
        #expect(try await stage.object("GET", "/simulator/calls")["/sns/oauth2/access_token"] == 1)
    }

    @Test func `a busy profile call does not prevent a login`() async throws {
        let stage = WeChatStage()
        let code = try await stage.code(1, #", "profile_errcode": -1"#)
        #expect(try await stage.provider()("ios", ["code": code]).identity.claims["nickname"] == nil)
    }

    @Test func `codes of other apps and unknown codes are rejected`() async throws {
        let stage = WeChatStage()
        let provider = try stage.provider()
        for (name, code) in [("web", try await stage.code(1)), ("mini", try await stage.code(1)), ("ios", "nobody-s")] {
            #expect(await Self.failure { try await provider(name, ["code": code]) }?.code == "wechat.upstream_bad_code")
        }
    }

    private static func failure(_ body: () async throws -> SignIn) async -> AuthenticationError? {
        do { _ = try await body() } catch { return error as? AuthenticationError }
        return nil
    }

    @Test func `phone numbers come for a code, once, with the latest token of the application`() async throws {
        let stage = WeChatStage()
        let signIn = try stage.provider()
        func phone() async throws -> String {
            let order = try await stage.object("POST", "/simulator/phone", #"{"app_id": "wx0000000000000004"}"#)
            return try #require(order["phone_code"]?.string)
        }
        let first = try await phone()
        let login = try await signIn("mini", ["code": try await stage.code(4), "phone_code": first])
        #expect(login.identity.claims["phone_number"] == "+8613800000000")
        await #expect(throws: AuthenticationError.self) {
            try await signIn("mini", ["code": try await stage.code(4), "phone_code": first])
        }
        // Another program has fetched a token.
        _ = try stage.simulator.accountToken(of: "wx0000000000000004", isForced: true)
        let next = try await signIn("mini", ["code": try await stage.code(4), "phone_code": try await phone()])
        #expect(next.identity.claims["phone_number"] == "+8613800000000")
        #expect(try await stage.object("GET", "/simulator/calls")["/cgi-bin/stable_token"] == 2)
        let wrong = await stage.ask("POST", "/simulator/phone", #"{"app_id": "wx0000000000000001"}"#)
        #expect(wrong.status == 400)
    }

    @Test func `the unionid may come with the profile alone`() async throws {
        let stage = WeChatStage()
        let signIn = try stage.provider()
        let code = try await stage.code(3, #", "person": "Ada", "token_unionid": false"#)
        let login = try await signIn("page", ["code": code])
        #expect(login.identity.claims["unionid"] != nil && login.unlessKnown == nil)
        let busy = try await stage.code(3, #", "person": "Ada", "token_unionid": false, "profile_errcode": -1"#)
        #expect(try await signIn("page", ["code": busy]).unlessKnown?.code == "wechat.upstream_busy")
    }
}
