import MartletCore
import MartletJSON
import MartletProvider
import MartletTesting
import OIDCProvider
import Testing

@Suite struct RedirectTests {
    static let state = "0123456789abcdef0123456789abcdef"
    static let nonce = "n-0S6_WzA2Mj0123456789"
    static let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
    static let callback = "https://app.example.com/auth/callback/oidc"
    static let tokenURL = "https://issuer.example/token"
    static let userInfoURL = "https://issuer.example/userinfo"

    static func yaml(_ web: String = "client_id: site, client_secret: s3cret", _ more: String = "") -> String {
        "issuer: https://issuer.example\naudiences: [api]\nweb: { \(web) }\n\(more)"
    }

    static func attempt() throws -> RedirectAttempt {
        try #require(
            RedirectAttempt(
                state: state, nonce: nonce, codeVerifier: Secret(verifier), redirectURI: callback, browser: .standard))
    }

    static func tokens(_ change: (inout Token) -> Void = { _ in }) throws -> JSONObject {
        let token = try Bench.token { token in
            token.claims["aud"] = "\"site\""
            token.claims["nonce"] = JSONText(string: nonce)
            token.claims["at_hash"] = JSONText(string: ScriptedIssuer.halfHash("access"))
            change(&token)
        }
        return ["access_token": "access", "token_type": "Bearer", "id_token": .string(token), "expires_in": 300]
    }

    static func bench(
        _ yaml: String = yaml(), discovery: KeyValuePairs<String, JSONValue?> = [:],
        _ change: (inout Token) -> Void = { _ in }
    ) async throws -> Bench {
        let bench = try Bench(yaml, issuer: ScriptedIssuer(discovery))
        bench.issuer.respond(at: tokenURL, try tokens(change))
        return bench
    }

    static func complete(
        _ bench: Bench, _ fields: [String: String] = ["code": "c0de"]
    ) async throws -> Result<RedirectOutcome, AuthenticationError> {
        let flow = try #require(bench.provider.redirectFlow(in: .standard))
        let attempt = try attempt()
        let all = fields.merging(["state": state]) { first, _ in first }
        let encoded = all.map { name, value in
            "\(name)=" + value.utf8.map { "%" + ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        }
        do throws(AuthenticationError) {
            let sent = try CallbackFields(
                encoded: Array(encoded.joined(separator: "&").utf8), sentBy: flow.responseMode)
            let callback = try RedirectCallback(sent, of: attempt, in: flow)
            return .success(try await bench.provider.complete(callback, in: bench.context))
        } catch { return .failure(error) }
    }

    @Test func `sends the browser to the discovered page`() async throws {
        let bench = try await Self.bench()
        let url = try await bench.provider.authorizationURL(
            for: Self.attempt(), language: LanguageTag("zh-Hans"), until: .never)
        #expect(
            url == "https://issuer.example/authorize?response_type=code&client_id=site"
                + "&redirect_uri=https%3A%2F%2Fapp.example.com%2Fauth%2Fcallback%2Foidc&scope=openid"
                + "&state=\(Self.state)&nonce=\(Self.nonce)"
                + "&code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM&code_challenge_method=S256&ui_locales=zh-Hans"
        )
        let flow = try #require(bench.provider.redirectFlow(in: .weChat))
        #expect(flow.responseMode == .query && flow.origins == ["https://issuer.example"])
        let posted = try await Self.bench(
            Self.yaml(
                "client_id: site, client_secret: s, response_mode: form_post, pkce: false, scope: [openid, email]"),
            discovery: ["authorization_endpoint": "https://login.example/a?x=1"])
        let other = try await posted.provider.authorizationURL(for: Self.attempt(), language: nil, until: .never)
        #expect(other.hasPrefix("https://login.example/a?x=1&response_type=code&"))
        #expect(other.contains("&scope=openid%20email&") && other.hasSuffix("&response_mode=form_post"))
        #expect(posted.provider.redirectFlow(in: .standard)?.origins == ["https://login.example"])
    }

    @Test func `exchanges the code once, and identifies the user by the token`() async throws {
        let bench = try await Self.bench()
        let result = try await Self.complete(bench)
        #expect(result.signIn?.identity.providerSubject == "user-1")
        #expect(result.signIn?.identity.claims.has("nonce") == false && result.signIn?.grant == nil)
        let call = try #require(bench.issuer.received(at: Self.tokenURL).first)
        #expect(
            call.fields == [
                "grant_type": "authorization_code", "code": "c0de", "redirect_uri": Self.callback,
                "code_verifier": Self.verifier,
            ])
        #expect(call.headers["Authorization"] == "Basic c2l0ZTpzM2NyZXQ=" && !call.isRepeatable)
        #expect(try await Self.complete(bench).code == "oidc.code_reused")
        #expect(bench.issuer.received(at: Self.tokenURL).count == 1)
        // An ID token of the website is no bearer token of the API.
        let token = try #require(try Self.tokens()["id_token"]?.string)
        #expect(await bench.failureCode(token) == "oidc.bad_audience")
    }

    @Test func `authenticates as the configuration says`() async throws {
        let post = try await Self.bench(
            Self.yaml("client_id: site, client_secret: s3cret, auth_method: client_secret_post"))
        #expect(try await Self.complete(post).signIn != nil)
        let sent = try #require(post.issuer.received(at: Self.tokenURL).first)
        #expect(sent.fields["client_id"] == "site" && sent.fields["client_secret"] == "s3cret")
        #expect(sent.headers["Authorization"] == nil)
        let open = try await Self.bench(Self.yaml("client_id: site"))
        #expect(try await Self.complete(open).signIn != nil)
        let bare = try #require(open.issuer.received(at: Self.tokenURL).first)
        #expect(bare.fields["client_id"] == "site" && bare.fields["client_secret"] == nil)
        #expect(bare.headers["Authorization"] == nil && bare.fields["code_verifier"] == Self.verifier)
    }

    static let badTokens: [BadToken] = [
        .claim("nonce", nil, "oidc.nonce_missing"), .claim("nonce", "1", "oidc.nonce_missing"),
        .claim("nonce", "\"other\"", "oidc.nonce_mismatch"), .claim("aud", "\"api\"", "oidc.bad_audience"),
        .claim("aud", "[\"site\",\"api\"]", "oidc.bad_authorized_party"),
        .claim("azp", "\"app\"", "oidc.bad_authorized_party"),
        .claim("azp", "\"site\"", nil), .claim("at_hash", "\"x\"", "oidc.exchange_mismatch"),
        .claim("at_hash", "1", "oidc.exchange_mismatch"), .claim("at_hash", nil, nil),
        .claim("iss", "\"https://evil.example\"", "oidc.bad_issuer"),
        .claim("iat", "\(Bench.now - 601)", "oidc.too_old"),
        .claim("exp", "\(Bench.now)", "oidc.expired"), .claim("cnf", "{}", "oidc.bound_token"),
        .header("typ", "\"at+jwt\"", "oidc.header_not_allowed"), .header("alg", "\"none\"", "oidc.alg_not_allowed"),
        .header("kid", "\"RSA2\"", "oidc.bad_signature"),
    ]

    @Test(arguments: badTokens)
    func `the token must be of this login`(token: BadToken) async throws {
        #expect(try await Self.complete(try await Self.bench(change: token.change)).code == token.code)
    }

    private static func bench(change: (inout Token) -> Void) async throws -> Bench { try await bench(yaml(), change) }

    @Test func `the response must name this issuer, where it names one or has to`() async throws {
        let bench = try await Self.bench()
        #expect(try await Self.complete(bench, ["code": "a", "iss": "https://evil.example"]).code == "oidc.bad_issuer")
        #expect(
            try await Self.complete(bench, ["error": "access_denied", "iss": "https://evil.example"]).code
                == "oidc.bad_issuer")
        #expect(bench.issuer.received(at: Self.tokenURL).isEmpty)
        #expect(try await Self.complete(bench, ["code": "b", "iss": Bench.issuer]).signIn != nil)
        let strict = try await Self.bench(discovery: ["authorization_response_iss_parameter_supported": true])
        #expect(try await Self.complete(strict).code == "oidc.bad_issuer")
        #expect(try await Self.complete(strict, ["code": "b", "iss": Bench.issuer]).signIn != nil)
        // django-oauth-toolkit announces it, and sends it with codes alone.
        #expect(try await Self.complete(strict, ["error": "access_denied"]).isCancelled)
        #expect(
            try await Self.complete(strict, ["error": "access_denied", "iss": "https://evil.example"]).code
                == "oidc.bad_issuer")
    }

    @Test func `tells a user who cancels from an issuer that refuses or is unavailable`() async throws {
        let bench = try await Self.bench()
        #expect(try await Self.complete(bench, ["error": "access_denied"]).isCancelled)
        let refused = try await Self.complete(bench, ["error": "invalid_scope"])
        #expect(refused.code == "oidc.authorization_failed" && refused.disposition == .rejected)
        let away = try await Self.complete(bench, ["error": "temporarily_unavailable"])
        #expect(away.code == "oidc.issuer_unavailable" && away.disposition == .unavailable)
        #expect(try await Self.complete(bench, [:]).code == "redirect.missing_field")
        #expect(bench.issuer.received(at: Self.tokenURL).isEmpty)
    }

    static let exchanges: [(Int, JSONObject, ErrorCode, AuthenticationError.Disposition)] = [
        (400, ["error": "invalid_grant"], "oidc.code_rejected", .rejected),
        (401, ["error": "invalid_client"], "oidc.exchange_refused", .unavailable),
        (400, ["error": "invalid_request"], "oidc.exchange_refused", .unavailable),
        (429, [:], "oidc.api_throttled", .unavailable), (500, [:], "oidc.api_bad_response", .unavailable),
        (200, [:], "oidc.api_bad_response", .unavailable), (400, [:], "oidc.api_bad_response", .unavailable),
        (200, ["access_token": "a", "token_type": "DPoP", "id_token": "b"], "oidc.api_bad_response", .unavailable),
        (200, ["access_token": "a", "token_type": "Bearer"], "oidc.api_bad_response", .unavailable),
        (
            200, ["access_token": "a\r\nb", "token_type": "Bearer", "id_token": "x"], "oidc.api_bad_response",
            .unavailable
        ),
        (200, ["access_token": "a", "token_type": "bearer", "id_token": "x"], "oidc.malformed", .rejected),
    ]

    @Test func `what an issuer says about a login is in the log`() async throws {
        let log = LogRecorder()
        let bench = try Bench(Self.yaml(), issuer: ScriptedIssuer(), logger: Logger(log, minimum: .debug))
        let text = "AADSTS70008: expired\n\u{1B}[2J"
        bench.issuer.respond(at: Self.tokenURL, 400, ["error": "invalid_grant", "error_description": .string(text)])
        #expect(try await Self.complete(bench).code == "oidc.code_rejected")
        let page = ["error": "access_denied", "error_description": "AADSTS50105: not assigned"]
        _ = try await Self.complete(bench, page)
        let said = log.lines.filter { $0["error_description"] != nil }
        let texts = [#"AADSTS70008: expired\u{a}\u{1b}[2J"#, "AADSTS50105: not assigned"]
        #expect(said.map { $0["error_description"] } == texts)
        #expect(said.map { $0["error"] } == ["invalid_grant", "access_denied"])
        #expect(said.allSatisfy { $0["client_id"] == "site" })
    }

    @Test func `tells a bad code from a failure of the issuer`() async throws {
        for (status, body, code, disposition) in Self.exchanges {
            let bench = try await Self.bench()
            bench.issuer.respond(at: Self.tokenURL, status, body)
            let result = try await Self.complete(bench)
            #expect(result.code == code && result.disposition == disposition, "\(status) \(body)")
        }
        let bench = try await Self.bench()
        bench.issuer.fail(at: Self.tokenURL)
        #expect(try await Self.complete(bench).code == "oidc.api_unreachable")
        bench.issuer.fail(at: ScriptedIssuer.discoveryURL)
        let blind = try Bench(Self.yaml(), issuer: bench.issuer)
        #expect(try await Self.complete(blind).code == "oidc.discovery_unavailable")
    }

    @Test func `userinfo adds claims of the same user, and changes none`() async throws {
        let bench = try await Self.bench(Self.yaml("client_id: site, client_secret: s, userinfo: true")) { token in
            token.claims["name"] = "\"Signed\""
        }
        bench.issuer.respond(
            at: Self.userInfoURL,
            [
                "sub": "user-1", "name": "Other", "email": "a@b.example", "email_verified": "true", "acr": "mfa",
                "iss": "x", "amr": ["otp"],
            ])
        let identity = try #require(try await Self.complete(bench).signIn?.identity)
        #expect(identity.claims["name"] == "Signed" && identity.claims["email"] == "a@b.example")
        #expect(identity.claims["email_verified"] == true && identity.claims["iss"] == .string(Bench.issuer))
        #expect(!identity.claims.has("acr") && !identity.claims.has("amr"))
        #expect(bench.issuer.received(at: Self.userInfoURL).first?.headers["Authorization"] == "Bearer access")
        for (status, body, code): (Int, JSONObject, ErrorCode) in [
            (200, ["sub": "user-2"], "oidc.userinfo_mismatch"), (200, [:], "oidc.userinfo_mismatch"),
            (401, [:], "oidc.api_bad_response"), (500, ["sub": "user-1"], "oidc.api_bad_response"),
        ] {
            bench.issuer.respond(at: Self.userInfoURL, status, body)
            #expect(try await Self.complete(bench, ["code": "\(status)\(body.count)"]).code == code)
        }
    }

    @Test func `userinfo may be signed, for this client`() async throws {
        let yaml = Self.yaml("client_id: site, client_secret: s, userinfo: true")
        func run(_ change: (inout Token) -> Void) async throws -> Result<RedirectOutcome, AuthenticationError> {
            let bench = try await Self.bench(yaml)
            let token = try Bench.token { token in
                token.claims = [
                    "sub": "\"user-1\"", "aud": "\"site\"", "iss": JSONText(string: Bench.issuer), "email": "\"a@b\"",
                ]
                change(&token)
            }
            bench.issuer.respond(at: Self.userInfoURL, 200, Array("\(token)\n".utf8))
            return try await Self.complete(bench)
        }
        #expect(try await run { _ in }.signIn?.identity.claims["email"] == "a@b")
        #expect(try await run { $0.claims["iss"] = nil }.signIn != nil)
        #expect(try await run { $0.claims["aud"] = "\"other\"" }.code == "oidc.bad_audience")
        #expect(try await run { $0.claims["iss"] = "\"https://evil.example\"" }.code == "oidc.bad_issuer")
        #expect(try await run { $0.header["kid"] = "\"RSA2\"" }.code == "oidc.bad_signature")
        #expect(try await run { $0.claims["sub"] = "\"user-2\"" }.code == "oidc.userinfo_mismatch")
        let bench = try await Self.bench(yaml)
        bench.issuer.respond(at: Self.userInfoURL, 200, Array("a.b.c".utf8))
        #expect(try await Self.complete(bench).code == "oidc.api_bad_response")
    }

    private static func query(
        _ web: String, _ request: RedirectRequest = RedirectRequest(), language: LanguageTag? = nil
    ) async throws -> String {
        let bench = try await bench(yaml("client_id: site, client_secret: s, pkce: false\(web)"))
        var attempt = try attempt()
        attempt.request = request
        let url = try await bench.provider.authorizationURL(for: attempt, language: language, until: .never)
        return String(url.split(separator: "nonce=\(nonce)", omittingEmptySubsequences: false).last ?? "")
    }

    @Test func `asks for what the page demands, and passes on what the configuration names`() async throws {
        let fixed = ", parameters: { prompt: select_account, audience: api x }, forward: [login_hint, prompt, max_age]"
        #expect(try await Self.query("") == "")
        #expect(try await Self.query(fixed) == "&prompt=select_account&audience=api%20x")
        var request = RedirectRequest()
        request.arguments = ["login_hint": "a@b", "prompt": "none", "max_age": "9", "audience": "evil", "x": "y"]
        #expect(
            try await Self.query(fixed, request) == "&prompt=none&audience=api%20x&login_hint=a%40b&max_age=9")
        request.maximumAge = .seconds(60)
        request.level = "mfa"
        #expect(
            try await Self.query(fixed, request)
                == "&prompt=none&audience=api%20x&login_hint=a%40b&max_age=60&acr_values=mfa")
        request.confirms = true
        #expect(try await Self.query("", request) == "&max_age=60&acr_values=mfa&prompt=login")
        request = RedirectRequest()
        request.arguments = ["ui_locales": "de", "login_hint": String(repeating: "a", count: 1025)]
        let language = LanguageTag("zh-Hans")
        #expect(try await Self.query("", language: language) == "&ui_locales=zh-Hans")
        #expect(
            try await Self.query(", forward: [ui_locales, login_hint]", request, language: language) == "&ui_locales=de"
        )
    }

    @Test(arguments: [
        "parameters: { state: x }", "parameters: { redirect_uri: x }", "parameters: { scope: x }", "parameters: [a]",
        "forward: [nonce]", "forward: [client_id]", "forward: ['']", "forward: [code_challenge]",
    ])
    func `leaves the flow's own parameters alone`(web: String) {
        #expect(throws: Bench.ConfigurationRejected.self) {
            try Bench(Self.yaml("client_id: site, client_secret: s, \(web)"))
        }
    }

    @Test func `without the block there are no redirects`() async throws {
        let bench = try Bench()
        #expect(bench.provider.redirectFlow(in: .standard) == nil)
        await #expect(throws: AuthenticationError.self) {
            try await bench.provider.authorizationURL(for: Self.attempt(), language: nil, until: .never)
        }
    }
}

extension Result where Success == RedirectOutcome, Failure == AuthenticationError {
    /// The error code, or `nil`.
    var code: ErrorCode? { if case .failure(let error) = self { error.code } else { nil } }
    var disposition: AuthenticationError.Disposition? {
        if case .failure(let error) = self { error.disposition } else { nil }
    }
    var signIn: SignIn? { if case .success(.signedIn(let signIn)) = self { signIn } else { nil } }
    var isCancelled: Bool { if case .success(.cancelled) = self { true } else { false } }
}
