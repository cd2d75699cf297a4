import MartletConfig
import MartletCore
import MartletProvider
import Testing

@testable import WeChatProvider

@Suite struct `Redirects to WeChat` {
    private static let state = "0123456789abcdefABCDEF0123456789"
    private static let callback = "https://app.example.com/auth/callback/wechat"
    private static let both = "web: { app: web, official_account: page }"
    private static let encoded = "https%3A%2F%2Fapp.example.com%2Fauth%2Fcallback%2Fwechat"

    private static func attempt(_ browser: BrowserKind) throws -> RedirectAttempt {
        try #require(
            RedirectAttempt(
                state: state, nonce: String(repeating: "n", count: 22),
                codeVerifier: Secret(String(repeating: "v", count: 43)), redirectURI: callback, browser: browser))
    }

    private static func url(
        _ browser: BrowserKind, _ lines: String = both, language: String? = nil
    ) throws -> String {
        try Bench(lines).provider.authorizationURL(
            for: attempt(browser), language: language.flatMap { LanguageTag($0) }, until: .never)
    }

    private static func complete(
        _ bench: Bench, _ query: String, _ browser: BrowserKind = .standard, from network: ClientNetwork? = Bench.home
    ) async throws -> Result<RedirectOutcome, AuthenticationError> {
        let attempt = try attempt(browser)
        do throws(AuthenticationError) {
            let flow = RedirectFlow(responseMode: .query, origins: [])
            let fields = try CallbackFields(encoded: Array(query.utf8), sentBy: .query)
            let callback = try RedirectCallback(fields, of: attempt, in: flow)
            return .success(try await bench.provider.complete(callback, in: bench.context(.login, from: network)))
        } catch {
            return .failure(error)
        }
    }

    private static func bench(
        _ lines: String = both, scope: String = "snsapi_login", time: Time = Time(),
        store: (any SharedStoring)? = nil
    ) throws -> Bench {
        let bench = try Bench("profile: false\n\(lines)", time: time, store: store)
        bench.weChat.respond(
            `WeChat exchange`.token, .json(`WeChat exchange`.tokenResponse(#","unionid":"U_1""#, scope: scope)))
        return bench
    }

    // MARK: URLs

    @Test func `show a QR code outside WeChat, and ask for consent inside`() throws {
        let rest = "&redirect_uri=\(Self.encoded)&response_type=code"
        #expect(
            try Self.url(.standard)
                == "https://open.weixin.qq.com/connect/qrconnect?appid=\(Bench.website)\(rest)"
                + "&scope=snsapi_login&state=\(Self.state)#wechat_redirect")
        #expect(
            try Self.url(.weChat)
                == "https://open.weixin.qq.com/connect/oauth2/authorize?appid=\(Bench.account)\(rest)"
                + "&scope=snsapi_userinfo&state=\(Self.state)#wechat_redirect")
        let local = try Self.url(.standard, "open_url: http://127.0.0.1:9100/x/\n\(Self.both)")
        #expect(local.hasPrefix("http://127.0.0.1:9100/x/connect/qrconnect?appid="))
    }

    @Test(arguments: [
        (nil, false), ("zh-Hans", false), ("zh-Hant-HK", false), ("en", true), ("de", true),
    ])
    func `name the language of the QR page`(language: String?, isEnglish: Bool) throws {
        let url = try Self.url(.standard, language: language)
        #expect(url.hasSuffix("state=\(Self.state)\(isEnglish ? "&lang=en" : "")#wechat_redirect"))
        #expect(try !Self.url(.weChat, language: language).contains("lang="))
    }

    @Test(arguments: [
        ("profile: false\nallow_base_scope: true\naccount_key: openid", "snsapi_base"),
        ("allow_base_scope: true\naccount_key: openid", "snsapi_userinfo"),
        ("profile: false\naccount_key: openid", "snsapi_userinfo"),
        ("profile: false\nallow_base_scope: true", "snsapi_userinfo"),
        ("profile: false\nallow_base_scope: true\naccount_key: unionid_required", "snsapi_userinfo"),
    ])
    func `ask for the base scope only where an openid is enough`(lines: String, scope: String) throws {
        #expect(try Self.url(.weChat, "\(lines)\n\(Self.both)").contains("&scope=\(scope)&"))
        #expect(try Self.url(.standard, "\(lines)\n\(Self.both)").contains("&scope=snsapi_login&"))
    }

    @Test func `are there for the browsers that are configured`() async throws {
        for (lines, kinds) in [
            ("", []), (Self.both, BrowserKind.allCases), ("web: { app: web }", [.standard]),
            ("web: { official_account: page }", [.weChat]),
        ] as [(String, [BrowserKind])] {
            let bench = try Bench(lines)
            for kind in BrowserKind.allCases {
                let flow = bench.provider.redirectFlow(in: kind)
                #expect((flow != nil) == kinds.contains(kind))
                guard flow == nil else {
                    #expect(
                        flow == RedirectFlow(responseMode: .query, origins: ["https://open.weixin.qq.com"]))
                    continue
                }
                #expect {
                    _ = try Self.url(kind, lines)
                } throws: {
                    ($0 as? AuthenticationError)?.code == "redirect.not_configured"
                }
                let result = try await Self.complete(bench, "code=c1&state=\(Self.state)", kind)
                #expect(result.failure?.code == "redirect.not_configured" && bench.weChat.calls.isEmpty)
            }
        }
    }

    // MARK: Responses

    @Test func `come back with a code of the application that the browser was sent to`() async throws {
        let bench = try Self.bench()
        let result = try await Self.complete(bench, "code=c1&state=\(Self.state)")
        guard case .signedIn(let signIn) = try result.get() else {
            Issue.record("not signed in")
            return
        }
        #expect(signIn.identity.providerSubject == "u:U_1" && signIn.aliases == ["o:\(Bench.website):o-1"])
        let call = try #require(bench.weChat.calls.first)
        #expect(ScriptedWeChat.parameters(of: call)["appid"] == Bench.website && bench.weChat.calls.count == 1)

        let inside = try Self.bench(scope: "snsapi_userinfo")
        _ = try await Self.complete(inside, "code=c1&state=\(Self.state)", .weChat).get()
        #expect(ScriptedWeChat.parameters(of: inside.weChat.calls[0])["appid"] == Bench.account)
        // The scope of the other page.
        let mixed = try await Self.complete(try Self.bench(), "code=c1&state=\(Self.state)", .weChat)
        #expect(mixed.failure?.code == "wechat.scope_missing")
    }

    @Test func `without a code are cancelled`() async throws {
        let bench = try Self.bench()
        for query in ["state=\(Self.state)", "code=&state=\(Self.state)", "state=\(Self.state)&errcode=1"] {
            guard case .cancelled = try await Self.complete(bench, query).get() else {
                Issue.record("\(query) is not cancelled")
                continue
            }
        }
        let other = try await Self.complete(bench, "state=\(Self.state)0")
        #expect(other.failure?.code == "redirect.state_mismatch" && bench.weChat.calls.isEmpty)
    }

    @Test(
        arguments: [
            ("a%20b", "wechat.bad_code"), ("a%26appid%3Dwx", "wechat.bad_code"), ("%00", "wechat.bad_code"),
            (String(repeating: "a", count: 129), "redirect.field_too_long"), ("a&code=b", "redirect.repeated_field"),
        ] as [(String, ErrorCode)])
    func `with anything but a code are not sent`(code: String, reason: ErrorCode) async throws {
        let bench = try Self.bench()
        let result = try await Self.complete(bench, "state=\(Self.state)&code=\(code)")
        #expect(result.failure?.code == reason && bench.weChat.calls.isEmpty)
    }

    @Test func `send their code once, whoever presents it again`() async throws {
        let bench = try Self.bench()
        _ = try await Self.complete(bench, "code=c1&state=\(Self.state)").get()
        let elsewhere = ClientNetwork(address: [UInt8](repeating: 9, count: 16))
        let again = try await Self.complete(bench, "code=c1&state=\(Self.state)", from: elsewhere)
        #expect(again.failure?.code == "wechat.code_reused")
        bench.time.advance(.seconds(11))
        let late = try await Self.complete(bench, "code=c1&state=\(Self.state)")
        #expect(late.failure?.code == "wechat.code_reused")
        #expect(await bench.failure("web", "c1")?.code == "wechat.code_reused")
        #expect(bench.weChat.calls.count == 1)
    }

    @Test(
        arguments: [
            (.json(#"{"errcode":40029}"#), "wechat.upstream_bad_code", .rejected),
            (.json(#"{"errcode":50002}"#), "wechat.upstream_limited_user", .denied),
            (.json(#"{"errcode":-1}"#), "wechat.upstream_busy", .unavailable),
            (.failure("fetch.timeout"), "wechat.upstream_unreachable", .unavailable),
            (.raw(500, []), "wechat.upstream_bad_status", .unavailable),
            (
                .json(`WeChat exchange`.tokenResponse(#","is_snapshotuser":1"#, scope: "snsapi_login")),
                "wechat.virtual_user", .denied
            ),
        ] as [(ScriptedWeChat.Reply, ErrorCode, AuthenticationError.Disposition)])
    func `fail as logins do`(
        reply: ScriptedWeChat.Reply, code: ErrorCode, disposition: AuthenticationError.Disposition
    ) async throws {
        let bench = try Self.bench()
        bench.weChat.respond(`WeChat exchange`.token, reply)
        let result = try await Self.complete(bench, "code=c1&state=\(Self.state)")
        #expect(result.failure?.code == code && result.failure?.disposition == disposition)
        let full = try Self.bench()
        full.weChat.isFull = true
        let overloaded = try await Self.complete(full, "code=c1&state=\(Self.state)")
        #expect(overloaded.failure?.code == "wechat.overloaded" && full.weChat.calls.isEmpty)
    }

    @Test func `cannot be decided without the store`() async throws {
        let result = try await Self.complete(
            try Self.bench(store: BrokenStore()), "code=c1&state=\(Self.state)")
        #expect(result.failure?.code == "wechat.store_unavailable" && result.failure?.disposition == .unavailable)
    }

    // MARK: Configuration

    private static let apps = """
        apps:
          web: { variant: website, app_id: \(Bench.website), app_secret: s }
          page: { variant: official_account, app_id: \(Bench.account), app_secret: s }
          ios: { variant: mobile, app_id: \(Bench.mobile), app_secret: s }
        """

    @Test(
        arguments: [
            ("web: {}", "config.missing_key", 6), ("web: { app: page }", "config.bad_value", 13),
            ("web: { app: ios }", "config.bad_value", 13), ("web: { app: nowhere }", "config.bad_value", 13),
            ("web: { app: web, official_account: web }", "config.bad_value", 36),
            ("web: { app: web, page: page }", "config.unknown_key", 18), ("web: web", "config.wrong_type", 6),
            ("open_url: http://open.weixin.qq.com", "config.bad_url", 11),
            ("open_url: https://open.weixin.qq.com/?a", "config.bad_url", 11),
        ] as [(String, ErrorCode, Int)])
    func `are not configured with the wrong application`(line: String, code: ErrorCode, column: Int) {
        #expect {
            try Bench.configuration("\(Self.apps)\n\(line)")
        } throws: { error in
            let errors = (error as? Bench.ConfigurationRejected)?.diagnostics.errors ?? []
            return errors.map(\.code) == [code] && errors[0].location.line == 5
                && errors[0].location.column == column
        }
    }
}

extension Result where Failure == AuthenticationError {
    fileprivate var failure: AuthenticationError? { if case .failure(let error) = self { error } else { nil } }
}
