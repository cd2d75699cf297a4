import MartletCore
import MartletJSON
import MartletProvider
import MartletTesting
import Testing

@testable import WeChatProvider

@Suite struct `WeChat exchange` {
    static let token = "/sns/oauth2/access_token"
    static let profile = "/sns/userinfo"
    static let session = "/sns/jscode2session"

    static func tokenResponse(
        _ more: String = "", scope: String = "snsapi_userinfo", openID: String = "o-1"
    ) -> String {
        """
        {"access_token":"planted-access","expires_in":7200,"refresh_token":"planted-refresh","openid":"\(openID)",\
        "scope":"\(scope)"\(more)}
        """
    }

    private static func bench(
        _ response: String = tokenResponse(#","unionid":"U_1""#), _ profile: String? = nil, _ lines: String = ""
    ) throws -> Bench {
        let bench = try Bench(lines)
        bench.weChat.respond(token, .json(response))
        bench.weChat.respond(
            Self.profile,
            .json(
                profile
                    ?? """
                    {"openid":"o-1","unionid":"U_1","nickname":"Ada","sex":0,"province":"","city":"","country":"",\
                    "headimgurl":"https://thirdwx.qlogo.cn/mmopen/x/132","privilege":[]}
                    """))
        return bench
    }

    // MARK: Requests

    @Test func `an app's code is exchanged and its user's profile fetched`() async throws {
        let bench = try Self.bench()
        let signIn = try await bench.signIn("ios", "planted_code-1")
        #expect(bench.weChat.paths == [Self.token, Self.profile])
        #expect(
            ScriptedWeChat.parameters(of: bench.weChat.calls[0]) == [
                "appid": Bench.mobile, "secret": "\(Bench.secret)-1", "code": "planted_code-1",
                "grant_type": "authorization_code",
            ])
        #expect(
            ScriptedWeChat.parameters(of: bench.weChat.calls[1]) == [
                "access_token": "planted-access", "openid": "o-1", "lang": "zh_CN",
            ])
        #expect(bench.weChat.calls.allSatisfy { $0.url.hasPrefix("https://api.weixin.qq.com/sns/") })
        #expect(bench.weChat.calls.allSatisfy { $0.maximumBytes == 65_536 && $0.timeout == .seconds(5) })
        #expect(signIn.identity.providerSubject == "u:U_1")
        #expect(signIn.aliases == ["o:\(Bench.mobile):o-1"])
        #expect(signIn.identity.issuer == "https://api.weixin.qq.com")
        #expect(signIn.identity.authTime.seconds == Bench.now)
        #expect(signIn.storedClaims == [:])
        #expect(
            signIn.identity.claims == [
                "openid": "o-1", "app_id": .string(Bench.mobile), "unionid": "U_1", "nickname": "Ada",
                "picture": "https://thirdwx.qlogo.cn/mmopen/x/132",
            ])
    }

    @Test func `a mini-program's code is exchanged at its own endpoint`() async throws {
        let bench = try Self.bench()
        bench.weChat.respond(
            Self.session, .json(#"{"errcode":0,"openid":"o-9","session_key":"AAECAwQFBgcICQoLDA0ODw=="}"#))
        let signIn = try await bench.signIn("mini", "planted_code-1")
        #expect(bench.weChat.paths == [Self.session])
        #expect(
            ScriptedWeChat.parameters(of: bench.weChat.calls[0]) == [
                "appid": Bench.mini, "secret": "\(Bench.secret)-4", "js_code": "planted_code-1",
                "grant_type": "authorization_code",
            ])
        #expect(signIn.identity.providerSubject == "o:\(Bench.mini):o-9")
        #expect(signIn.identity.claims == ["openid": "o-9", "app_id": .string(Bench.mini)])
    }

    @Test func `secrets are encoded, and base_url may have a path`() async throws {
        let bench = try Bench(
            "base_url: http://127.0.0.1:1/fake/",
            apps: "apps: { a: { variant: mobile, app_id: \(Bench.mobile), app_secret: 'a&b=c%d+é#' } }".replacing(
                "é", with: "~"))
        _ = await bench.failure("a", "c")
        #expect(bench.weChat.calls[0].url.hasPrefix("http://127.0.0.1:1/fake/sns/oauth2/access_token?appid=wx0"))
        #expect(ScriptedWeChat.parameters(of: bench.weChat.calls[0])["secret"] == "a%26b%3Dc%25d%2B~%23")
    }

    @Test(arguments: [#"{"errcode":-1}"#, #"{"errcode":45011}"#, #"{"errcode":40001}"#, "<html>"])
    func `an openid needs an account where the unionid was due and not returned`(profile: String) async throws {
        let bench = try Self.bench(Self.tokenResponse(), profile)
        for _ in 0..<2 {
            let signIn = try await bench.signIn("page", "c1")
            #expect(signIn.identity.providerSubject == "o:\(Bench.account):o-1" && signIn.aliasesDecide)
            #expect(signIn.unlessKnown?.disposition == .unavailable)
        }
        for lines in ["account_key: openid", "profile: false"] {
            let other = try Self.bench(Self.tokenResponse(), profile, lines)
            #expect(try await other.signIn("page", "c1").unlessKnown == nil)
        }
        // WeChat returned the profile: the user has no unionid.
        let without = try Self.bench(Self.tokenResponse(), #"{"openid":"o-1","nickname":"Ada"}"#)
        #expect(try await without.signIn("page", "c1").unlessKnown == nil)
        let known = try Self.bench(Self.tokenResponse(#","unionid":"U_1""#), profile)
        #expect(try await known.signIn("page", "c1").unlessKnown == nil)
    }

    @Test(
        arguments: [
            (Array(#"A\ud83d"#.utf8), "A"), (Array(#"\udc00A"#.utf8), "A"), (Array(#"\ud83d\ude00"#.utf8), "\u{1F600}"),
            ([0xB0, 0xA1, 0x41], "A"), (Array(#"\\ud83d"#.utf8), #"\ud83d"#),
        ] as [([UInt8], String)])
    func `a nickname that cannot be read costs nothing else`(nickname: [UInt8], shown: String) async throws {
        let bench = try Self.bench(Self.tokenResponse(), nil, "account_key: unionid_required")
        let body =
            Array(#"{"openid":"o-1","unionid":"U_1","headimgurl":"https://thirdwx.qlogo.cn/x","nickname":""#.utf8)
            + nickname + Array(#""}"#.utf8)
        bench.weChat.respond(Self.profile, .raw(200, body))
        let claims = try await bench.signIn("page", "c1").identity.claims
        #expect(claims["unionid"] == "U_1" && claims["picture"] == "https://thirdwx.qlogo.cn/x")
        #expect(claims["nickname"]?.string?.replacing("\u{FFFD}", with: "") == shown)
    }

    @Test func `a single app need not be named`() async throws {
        let bench = try Bench(apps: "apps: { a: { variant: mobile, app_id: \(Bench.mobile), app_secret: s } }")
        bench.weChat.respond(Self.token, .json(Self.tokenResponse()))
        let signIn = try await bench.signIn(Bench.form(["code": "c1"]))
        #expect(signIn.identity.providerSubject == "o:\(Bench.mobile):o-1")
    }

    @Test(
        arguments: [
            ([:], "signin.missing_member /app"), (["app": "ios"], "signin.missing_member /code"),
            (["code": "c"], "signin.missing_member /app"), (["app": "IOS", "code": "c"], "wechat.unknown_app /app"),
            (["app": Bench.mobile, "code": "c"], "wechat.unknown_app /app"),
            (["app": "mini", "code": "c", "raw_data": "{}"], "signin.missing_member /signature"),
            (["app": "mini", "code": "c", "signature": "00"], "signin.missing_member /raw_data"),
        ] as [([String: String], String)])
    func `a form that cannot be read is malformed, names the member and sends nothing`(
        form: [String: String], expected: String
    ) async throws {
        let bench = try Self.bench()
        let error = await #expect(throws: AuthenticationError.self) { try await bench.signIn(Bench.form(form)) }
        #expect(error.map { "\($0.code) \($0.bodyErrors.map(\.pointer).joined())" } == expected)
        #expect(error?.disposition == .malformed)
        #expect(bench.weChat.calls.isEmpty)
    }

    @Test func `ids and tokens in the body are ignored`() async throws {
        let bench = try Self.bench()
        let signIn = try await bench.signIn(
            "ios", "c1", ["openid": "o-victim", "unionid": "U_victim", "access_token": "stolen", "appid": Bench.mini])
        #expect(signIn.identity.claims["openid"] == "o-1")
        #expect(!bench.weChat.calls.contains { $0.url.contains("victim") || $0.url.contains("stolen") })
    }

    // MARK: Errors

    struct Row: Sendable, CustomTestStringConvertible {
        let errcode: Int
        let code: ErrorCode
        let disposition: AuthenticationError.Disposition
        var retryAfter: Duration?

        var testDescription: String { "\(errcode)" }
    }

    static let rows: [Row] = [
        Row(errcode: -1, code: "wechat.upstream_busy", disposition: .unavailable, retryAfter: .seconds(2)),
        Row(errcode: 40001, code: "wechat.upstream_bad_secret", disposition: .unavailable, retryAfter: .seconds(60)),
        Row(errcode: 40002, code: "wechat.upstream_bad_call", disposition: .unavailable, retryAfter: .seconds(60)),
        Row(errcode: 40003, code: "wechat.upstream_bad_openid", disposition: .rejected),
        Row(errcode: 40013, code: "wechat.upstream_bad_app_id", disposition: .unavailable, retryAfter: .seconds(60)),
        Row(errcode: 40014, code: "wechat.upstream_bad_token", disposition: .unavailable),
        Row(errcode: 40029, code: "wechat.upstream_bad_code", disposition: .rejected),
        Row(errcode: 40030, code: "wechat.upstream_ended", disposition: .rejected),
        Row(errcode: 40125, code: "wechat.upstream_bad_secret", disposition: .unavailable, retryAfter: .seconds(60)),
        Row(errcode: 40163, code: "wechat.upstream_used_code", disposition: .rejected),
        Row(errcode: 40164, code: "wechat.upstream_bad_address", disposition: .unavailable, retryAfter: .seconds(60)),
        Row(errcode: 40226, code: "wechat.upstream_blocked_user", disposition: .denied),
        Row(errcode: 41001, code: "wechat.upstream_bad_call", disposition: .unavailable, retryAfter: .seconds(60)),
        Row(errcode: 41002, code: "wechat.upstream_bad_call", disposition: .unavailable, retryAfter: .seconds(60)),
        Row(errcode: 41003, code: "wechat.upstream_bad_call", disposition: .unavailable, retryAfter: .seconds(60)),
        Row(errcode: 41004, code: "wechat.upstream_bad_call", disposition: .unavailable, retryAfter: .seconds(60)),
        Row(errcode: 41008, code: "wechat.upstream_bad_call", disposition: .unavailable, retryAfter: .seconds(60)),
        Row(errcode: 41009, code: "wechat.upstream_bad_call", disposition: .unavailable, retryAfter: .seconds(60)),
        Row(errcode: 42001, code: "wechat.upstream_bad_token", disposition: .unavailable),
        Row(errcode: 42002, code: "wechat.upstream_ended", disposition: .rejected),
        Row(errcode: 42003, code: "wechat.upstream_expired_code", disposition: .rejected),
        Row(errcode: 42007, code: "wechat.upstream_ended", disposition: .rejected),
        Row(errcode: 43001, code: "wechat.upstream_bad_call", disposition: .unavailable, retryAfter: .seconds(60)),
        Row(errcode: 43002, code: "wechat.upstream_bad_call", disposition: .unavailable, retryAfter: .seconds(60)),
        Row(errcode: 43003, code: "wechat.upstream_bad_call", disposition: .unavailable, retryAfter: .seconds(60)),
        Row(errcode: 45009, code: "wechat.upstream_daily_quota", disposition: .unavailable, retryAfter: .seconds(3600)),
        Row(errcode: 45011, code: "wechat.upstream_rate", disposition: .unavailable, retryAfter: .seconds(60)),
        Row(errcode: 48001, code: "wechat.upstream_not_permitted", disposition: .unavailable, retryAfter: .seconds(60)),
        Row(errcode: 48004, code: "wechat.upstream_banned_api", disposition: .unavailable, retryAfter: .seconds(60)),
        Row(errcode: 50001, code: "wechat.upstream_no_consent", disposition: .rejected),
        Row(errcode: 50002, code: "wechat.upstream_limited_user", disposition: .denied),
        Row(errcode: 61004, code: "wechat.upstream_bad_address", disposition: .unavailable, retryAfter: .seconds(60)),
        Row(errcode: 87008, code: "wechat.upstream_stale_session_key", disposition: .rejected),
        Row(errcode: 87009, code: "wechat.upstream_stale_session_key", disposition: .rejected),
        Row(errcode: 12345, code: "wechat.upstream_unknown", disposition: .unavailable),
    ]

    @Test(arguments: rows)
    func `each of WeChat's errors is mapped, and the call is made once`(row: Row) async throws {
        for (app, path) in [("ios", Self.token), ("mini", Self.session)] {
            for errcode in ["\(row.errcode)", "\"\(row.errcode)\""] {
                let bench = try Bench()
                bench.weChat.respond(
                    path, .json(#"{"errcode":\#(errcode),"errmsg":"planted text, rid: 6172-61ab-04"}"#))
                let error = try #require(await bench.failure(app, "planted_code"))
                #expect(error.code == row.code)
                #expect(error.disposition == row.disposition)
                #expect(error.retryAfter == row.retryAfter)
                #expect(bench.weChat.paths == [path])
                #expect(bench.log.text.contains("errcode=\(row.errcode) rid=6172-61ab-04"))
                #expect(!bench.log.text.contains("planted"), "the log has \(bench.log.text)")
            }
        }
    }

    // MARK: Invalid responses

    static let unreadable: [(ScriptedWeChat.Reply, ErrorCode)] = [
        (.raw(200, []), "wechat.upstream_bad_answer"), (.json("{}"), "wechat.upstream_bad_answer"),
        (.json("null"), "wechat.upstream_bad_answer"), (.json("[]"), "wechat.upstream_bad_answer"),
        (.json("<html>"), "wechat.upstream_bad_answer"), (.json(#"{"errcode":"x"}"#), "wechat.upstream_bad_answer"),
        (.json(#"{"errcode":null}"#), "wechat.upstream_bad_answer"),
        (.json(#"{"errcode":1.5}"#), "wechat.upstream_bad_answer"),
        (.json(#"{"errcode":0,"errmsg":"ok"}"#), "wechat.upstream_bad_answer"),
        (.json(#"{"access_token":"t"}"#), "wechat.upstream_bad_answer"),
        (.json(#"{"openid":"o","scope":"snsapi_userinfo"}"#), "wechat.upstream_bad_answer"),
        (.json(tokenResponse(openID: "")), "wechat.upstream_bad_answer"),
        (.json(#"{"access_token":"t","openid":7,"scope":"snsapi_userinfo"}"#), "wechat.upstream_bad_answer"),
        (.json(tokenResponse(#","unionid":7"#)), "wechat.upstream_bad_answer"),
        (.json(tokenResponse(#","openid":"o-2""#)), "wechat.upstream_bad_answer"),
        (.json(tokenResponse() + "x"), "wechat.upstream_bad_answer"),
        (.raw(200, [UInt8](repeating: 0x20, count: 65_537)), "wechat.upstream_bad_answer"),
        (.raw(500, Array(tokenResponse().utf8)), "wechat.upstream_bad_status"),
        (.raw(302, []), "wechat.upstream_bad_status"),
        (.failure("fetch.timeout"), "wechat.upstream_unreachable"),
        (.failure("fetch.too_large"), "wechat.upstream_unreachable"),
    ]

    @Test(arguments: unreadable)
    func `an invalid response is an outage`(reply: ScriptedWeChat.Reply, code: ErrorCode) async throws {
        let bench = try Bench()
        bench.weChat.respond(Self.token, reply)
        let error = try #require(await bench.failure("ios", "c1"))
        #expect(error.code == code)
        #expect(error.disposition == .unavailable)
        #expect(bench.weChat.calls.count == 1)
    }

    @Test func `an error code in a nickname is ignored`() async throws {
        let bench = try Self.bench(
            Self.tokenResponse(), #"{"openid":"o-1","nickname":"{\"errcode\":40029}","headimgurl":""}"#)
        #expect(try await bench.signIn("ios", "c1").identity.claims["nickname"] == #"{"errcode":40029}"#)
    }

    // MARK: Identities

    @Test(
        arguments: [
            (tokenResponse(#","is_snapshotuser":1"#), "wechat.virtual_user", .denied),
            (tokenResponse(#","is_snapshotuser":"1""#), "wechat.virtual_user", .denied),
            (tokenResponse(#","is_snapshotuser":true"#), "wechat.virtual_user", .denied),
            (tokenResponse(scope: "snsapi_base"), "wechat.scope_missing", .rejected),
            (tokenResponse(scope: "xsnsapi_userinfo"), "wechat.scope_missing", .rejected),
            (tokenResponse(scope: ""), "wechat.scope_missing", .rejected),
            (tokenResponse(openID: "o 1"), "wechat.bad_identity", .rejected),
            (tokenResponse(openID: "o:1"), "wechat.bad_identity", .rejected),
            (tokenResponse(openID: String(repeating: "o", count: 129)), "wechat.bad_identity", .rejected),
            (tokenResponse(#","unionid":"U/1""#), "wechat.bad_identity", .rejected),
        ] as [(String, ErrorCode, AuthenticationError.Disposition)])
    func `an invalid identity is rejected`(
        response: String, code: ErrorCode, disposition: AuthenticationError.Disposition
    ) async throws {
        let bench = try Self.bench(response)
        let error = try #require(await bench.failure("page", "c1"))
        #expect(error.code == code)
        #expect(error.disposition == disposition)
        #expect(bench.weChat.paths == [Self.token])
    }

    @Test(
        arguments: [
            ("ios", "snsapi_userinfo", nil), ("ios", "snsapi_base,snsapi_userinfo,", nil),
            ("ios", "snsapi_login", "wechat.scope_missing"), ("web", "snsapi_login", nil),
            ("web", "snsapi_userinfo", "wechat.scope_missing"), ("web", "snsapi_base", "wechat.scope_missing"),
            ("page", "snsapi_userinfo", nil), ("page", "snsapi_login", "wechat.scope_missing"),
        ] as [(String, String, ErrorCode?)])
    func `each variant requires its own scope`(app: String, scope: String, code: ErrorCode?) async throws {
        #expect(await (try Self.bench(Self.tokenResponse(scope: scope))).failure(app, "c1")?.code == code)
    }

    @Test func `the base scope is for pages that allow it, and brings no profile`() async throws {
        let bench = try Self.bench(Self.tokenResponse(scope: "snsapi_base"), nil, "allow_base_scope: true")
        let signIn = try await bench.signIn("page", "c1")
        #expect(bench.weChat.paths == [Self.token])
        #expect(signIn.identity.providerSubject == "o:\(Bench.account):o-1")
        #expect(await bench.failure("ios", "c2")?.code == "wechat.scope_missing")
    }

    @Test func `a unionid that comes late finds the account of the openid`() async throws {
        let before = try await Self.bench(Self.tokenResponse(), #"{"openid":"o-1"}"#).signIn("ios", "c1")
        let after = try await Self.bench(Self.tokenResponse(), #"{"openid":"o-1","unionid":"U_1"}"#).signIn("ios", "c2")
        #expect(before.identity.providerSubject == "o:\(Bench.mobile):o-1")
        #expect(before.aliases.isEmpty)
        #expect(after.identity.providerSubject == "u:U_1")
        #expect(after.aliases == [before.identity.providerSubject])
    }

    @Test func `one openid of two apps is two people, one unionid is one`() async throws {
        let bench = try Self.bench(Self.tokenResponse(), #"{"openid":"o-1"}"#)
        let ios = try await bench.signIn("ios", "c1").identity.providerSubject
        bench.weChat.respond(Self.token, .json(Self.tokenResponse(scope: "snsapi_login")))
        #expect(try await bench.signIn("web", "c1").identity.providerSubject != ios)
    }

    @Test func `a unionid can be required, and an outage is not taken for a missing one`() async throws {
        let lines = "account_key: unionid_required"
        #expect(
            await (try Self.bench(Self.tokenResponse(), #"{"openid":"o-1"}"#, lines)).failure("ios", "c1")?.code
                == "wechat.unionid_missing")
        let bench = try Self.bench(Self.tokenResponse(), #"{"errcode":-1}"#, lines)
        #expect(await bench.failure("ios", "c1")?.disposition == .unavailable)
        // Without a secret in the call, 40001 means the token.
        bench.weChat.respond(Self.profile, .json(#"{"errcode":40001}"#))
        #expect(await bench.failure("ios", "c2")?.code == "wechat.upstream_bad_token")
        #expect(
            try await Self.bench(Self.tokenResponse(#","unionid":"U_1""#), nil, lines).signIn("ios", "c1").aliases.count
                == 1)
    }

    @Test func `accounts can be keyed by openid`() async throws {
        let signIn = try await Self.bench(Self.tokenResponse(#","unionid":"U_1""#), nil, "account_key: openid").signIn(
            "ios", "c")
        #expect(signIn.identity.providerSubject == "o:\(Bench.mobile):o-1")
        #expect(signIn.aliases.isEmpty)
        #expect(signIn.identity.claims["unionid"] == "U_1")
    }

    // MARK: Profiles

    @Test(
        arguments: [
            (.json(#"{"errcode":-1}"#), nil), (.json(#"{"errcode":40001}"#), nil), (.json(#"{"errcode":40014}"#), nil),
            (.json(#"{"errcode":42001}"#), nil), (.json(#"{"errcode":48001}"#), nil),
            (.json(#"{"errcode":45009}"#), nil),
            (.json(#"{"errcode":99999}"#), nil), (.json("{"), nil), (.json(#"{"nickname":"Eve"}"#), nil),
            (.raw(502, []), nil), (.failure("fetch.timeout"), nil),
            (.json(#"{"openid":"o-2","nickname":"Eve"}"#), "wechat.identity_mismatch"),
            (.json(#"{"openid":"o-1","unionid":"U_2"}"#), "wechat.identity_mismatch"),
            (.json(#"{"errcode":50002}"#), "wechat.upstream_limited_user"),
            (.json(#"{"errcode":40003}"#), "wechat.upstream_bad_openid"),
        ] as [(ScriptedWeChat.Reply, ErrorCode?)])
    func `an unavailable profile is left out, and another user's is rejected`(
        reply: ScriptedWeChat.Reply, code: ErrorCode?
    ) async throws {
        let bench = try Self.bench()
        bench.weChat.respond(Self.profile, reply)
        do {
            let signIn = try await bench.signIn("ios", "c1")
            #expect(code == nil)
            #expect(signIn.identity.providerSubject == "u:U_1")
            #expect(signIn.identity.claims["nickname"] == nil)
        } catch {
            #expect(error.code == code)
        }
        #expect(bench.weChat.paths == [Self.token, Self.profile])
    }

    @Test func `fetching profiles can be turned off`() async throws {
        let bench = try Self.bench(Self.tokenResponse(), nil, "profile: false")
        _ = try await bench.signIn("ios", "c1")
        #expect(bench.weChat.paths == [Self.token])
    }

    @Test func `no profile is fetched when time is short`() async throws {
        let bench = try Self.bench()
        bench.weChat.hold { [time = bench.time] in time.advance(.milliseconds(9_950)) }
        let signIn = try await bench.signIn("ios", "c1")
        #expect(signIn.identity.claims["nickname"] == nil)
        #expect(bench.weChat.paths == [Self.token])
    }
}
