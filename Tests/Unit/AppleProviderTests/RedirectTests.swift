import AppleProvider
import MartletCore
import MartletJSON
import MartletProvider
import MartletTesting
import Testing

@Suite struct `Redirects to Apple` {
    private static func url(
        _ lines: [(String, Bench.Value)] = [], _ more: [(String, Bench.Value)] = []
    ) throws -> String {
        let bench = try Bench.web(lines, more)
        return try bench.provider.authorizationURL(
            for: Bench.attempt(), language: LanguageTag("zh-Hans"), until: .never)
    }

    private static let callback = "https%3A%2F%2Fapp.example.com%2Fauth%2Fcallback%2Fapple"
    private static let rest = "state=\(Bench.state)&nonce=\(Bench.attemptNonce)"

    @Test func `ask for a code and a token by form_post, and for what scope names`() throws {
        let start = "https://appleid.apple.com/auth/authorize?client_id=com.example.web&redirect_uri=\(Self.callback)"
        let posted = "\(start)&response_type=code%20id_token&response_mode=form_post"
        #expect(try Self.url() == "\(posted)&scope=name%20email&\(Self.rest)")
        #expect(try Self.url([("scope", .list(["email"]))]) == "\(posted)&scope=email&\(Self.rest)")
        #expect(try Self.url([("scope", .list(["email", "name"]))]) == "\(posted)&scope=name%20email&\(Self.rest)")
        #expect(try Self.url([("scope", .list([]))]) == "\(posted)&\(Self.rest)")
        #expect(
            try Self.url([("response_mode", .text("query"))])
                == "\(start)&response_type=code&response_mode=query&\(Self.rest)")
        let pkce = "&code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM&code_challenge_method=S256"
        #expect(try Self.url([("pkce", .text("true"))]) == "\(posted)&scope=name%20email&\(Self.rest)\(pkce)")
    }

    @Test func `go to base_url, with the nonce in the configured form`() throws {
        let url = try Self.url(
            [], [("base_url", .text("http://127.0.0.1:9101/")), ("nonce_form", .text("sha256_hex"))])
        #expect(url.hasPrefix("http://127.0.0.1:9101/auth/authorize?client_id="))
        #expect(url.firstMatch(of: #/nonce=[0-9a-f]{64}$/#) != nil && !url.contains(Bench.attemptNonce))
    }

    @Test func `are there with web alone`() throws {
        let bench = try Bench()
        #expect(bench.provider.redirectFlow(in: .standard) == nil)
        #expect {
            _ = try bench.provider.authorizationURL(for: Bench.attempt(), language: nil, until: .never)
        } throws: {
            ($0 as? AuthenticationError)?.code == "redirect.not_configured"
        }
        let lines: [(String, Bench.Value)] = [("base_url", .text("http://[::1]:9101/x"))]
        for browser in BrowserKind.allCases {
            #expect(
                try Bench.web().provider.redirectFlow(in: browser)
                    == RedirectFlow(responseMode: .formPost, origins: ["https://appleid.apple.com"]))
            #expect(
                try Bench.web([], lines).provider.redirectFlow(in: browser)?.origins == ["http://[::1]:9101"])
        }
        let query = try Bench.web([("response_mode", .text("query"))])
        #expect(query.provider.redirectFlow(in: .standard)?.responseMode == .query)
    }

    @Test func `make the Services ID an audience`() async throws {
        let token = try Bench.token { $0.claims["aud"] = "\"com.example.site\"" }
        #expect(try await Bench().failureCode(token) == "apple.bad_audience")
        let web = Bench.Value.block([("client_id", .text("com.example.site"))])
        let bench = try Bench([("web", web)])
        #expect(await bench.failureCode(token) == nil)
        #expect(try await bench.failureCode(Bench.token()) == nil)
    }

    static let badBlocks: [([(String, Bench.Value)], Bool, ErrorCode)] = [
        ([("client_id", .text(""))], true, "config.bad_value"),
        ([("client_id", .text("com.example web"))], true, "config.bad_value"),
        ([("client_id", .text(String(repeating: "a", count: 256)))], true, "config.bad_value"),
        ([("client_id", .list(["a"]))], true, "config.wrong_type"),
        ([], true, "config.missing_key"),
        ([("client_id", .text("w")), ("response_mode", .text("fragment"))], true, "config.bad_value"),
        ([("client_id", .text("w")), ("scope", .list(["openid"]))], true, "config.bad_value"),
        ([("client_id", .text("w")), ("scope", .text("name"))], true, "config.wrong_type"),
        (
            [("client_id", .text("w")), ("response_mode", .text("query")), ("scope", .list(["name"]))], true,
            "config.bad_value"
        ),
        ([("client_id", .text("w")), ("response_mode", .text("query"))], false, "config.missing_key"),
        ([("client_id", .text("w")), ("pkce", .text("true"))], false, "config.missing_key"),
        ([("client_id", .text("w")), ("pkce", .text("yes"))], true, "config.wrong_type"),
        ([("clientid", .text("w"))], true, "config.unknown_key"),
    ]

    @Test(arguments: badBlocks)
    func `are not configured against Apple's rules`(
        web: [(String, Bench.Value)], hasKey: Bool, code: ErrorCode
    ) throws {
        let lines = (hasKey ? try Bench.developerLines() : []) + [("web", Bench.Value.block(web))]
        #expect { try Bench(lines) } throws: { ($0 as? Bench.ConfigurationRejected)?.codes == [code] }
    }

    @Test func `are configured with query where nothing is asked for`() throws {
        _ = try Bench.web([("response_mode", .text("query")), ("scope", .list([]))])
        _ = try Bench.web([], key: false)
    }
}

@Suite struct `Responses of Apple's page` {
    @Test func `sign in by token and code, which agree`() async throws {
        let apple = try Bench.webTokens()
        let bench = try Bench.web(apple: apple)
        let user = #"{"name":{"firstName":"Jane","lastName":"Doe"},"email":"victim@example.com"}"#
        let signIn = try #require(try await bench.complete(["user": user]).signIn)
        #expect(signIn.identity.providerSubject == LoginTests.subject)
        #expect(signIn.identity.claims["email"] == "someone@example.com")
        #expect(signIn.storedClaims == ["name": "Jane Doe"] && signIn.aliases.isEmpty)
        #expect(signIn.grant?.client == Bench.website)
        #expect(signIn.grant?.token.withBytes { $0 } == Array("refresh".utf8))
        let call = try #require(apple.received.first)
        #expect(apple.received.count == 1 && !call.isRepeatable && call.fields.count == 5)
        #expect(call.fields["client_id"] == Bench.website && call.fields["redirect_uri"] == Bench.callback)
        #expect(call.fields["code"] == Bench.code && call.fields["grant_type"] == "authorization_code")
    }

    @Test func `have the verifier where there was a challenge`() async throws {
        let apple = try Bench.webTokens()
        let bench = try Bench.web([("pkce", .text("true"))], apple: apple)
        #expect(try await bench.complete().signIn != nil)
        #expect(apple.received.first?.fields["code_verifier"] == Bench.verifier)
    }

    @Test func `sign in by the token alone where there is no key`() async throws {
        let apple = ScriptedApple([])
        let bench = try Bench.web(apple: apple, key: false)
        let signIn = try #require(try await bench.complete().signIn)
        #expect(signIn.grant == nil && signIn.storedClaims.isEmpty && apple.received.isEmpty)
        #expect(try await bench.complete { $0.claims["c_hash"] = nil }.signIn != nil)
        #expect(try await bench.complete { $0.claims["c_hash"] = "\"other\"" }.code == "apple.code_mismatch")
    }

    @Test func `sign in by the code alone in a query`() async throws {
        let lines: [(String, Bench.Value)] = [("response_mode", .text("query"))]
        let apple = try Bench.webTokens()
        let signIn = try #require(try await Bench.web(lines, apple: apple).complete(["id_token": nil]).signIn)
        #expect(signIn.identity.providerSubject == LoginTests.subject && signIn.grant != nil)
        for (change, code) in [
            ({ $0.claims["nonce"] = "\"other\"" }, "apple.nonce_mismatch"),
            ({ $0.claims["nonce"] = nil }, "apple.nonce_missing"),
            ({ $0.claims["aud"] = "\"com.example.app\"" }, "apple.exchange_mismatch"),
            ({ $0.claims["aud"] = "\"com.attacker\"" }, "apple.bad_audience"),
            ({ $0.claims["iat"] = JSONText(Int(Bench.now) - 601) }, "apple.too_old"),
            ({ $0.claims["at_hash"] = "\"AAAAAAAAAAAAAAAAAAAAAA\"" }, "apple.exchange_mismatch"),
        ] as [((inout Token) -> Void, ErrorCode)] {
            let bench = try Bench.web(lines, apple: try Bench.webTokens(change))
            // A token that came along is not looked at: none was asked for.
            #expect(try await bench.complete().code == code, "\(code)")
        }
    }

    @Test(arguments: TokenTests.badHeaders + TokenTests.badClaims)
    func `have a token that is valid in every other way`(bad: BadToken) async throws {
        let apple = ScriptedApple([])
        let result = try await Bench.web(apple: apple).complete([:], bad.change)
        #expect(result.code == bad.code && result.disposition == .rejected && apple.received.isEmpty)
    }

    static let wrongTokens: [BadToken] = [
        .claim("aud", "\"com.example.app\"", "apple.bad_audience"),
        .claim("nonce", nil, "apple.nonce_missing"), .claim("nonce", "\"\"", "apple.nonce_mismatch"),
        .claim("nonce", "\"n-0S6_WzA2Mj0123456780\"", "apple.nonce_mismatch"),
        .claim("nonce", "1", "apple.bad_claim"),
        .claim("c_hash", "\"AAAAAAAAAAAAAAAAAAAAAA\"", "apple.code_mismatch"),
        .claim("iat", Int(Bench.now) - 601, "apple.too_old"),
    ]

    @Test(arguments: wrongTokens)
    func `have a token of this request`(bad: BadToken) async throws {
        let apple = ScriptedApple([])
        // Whatever apps may do, a browser's request always had a nonce.
        for nonce in ["off", "optional", "required"] {
            let bench = try Bench.web(apple: apple, [("nonce", .text(nonce))])
            let result = try await bench.complete([:], bad.change)
            #expect(result.code == bad.code && result.disposition == .rejected)
        }
        #expect(apple.received.isEmpty)
    }

    @Test func `have the nonce in the configured form`() async throws {
        let lines: [(String, Bench.Value)] = [("nonce_form", .text("sha256_hex"))]
        let raw = try await Bench.web(apple: ScriptedApple([]), lines).complete()
        #expect(raw.code == "apple.nonce_mismatch")
        let attempt = try Bench.attempt(nonce: "gateway-nonce-00010000")
        let hash = "8955baa2e538851e1821383f49550e67658b0f7de9f5e8c5bf23e5261a019465"
        let result = try await Bench.web(key: false, lines).complete(attempt: attempt) {
            $0.claims["nonce"] = JSONText(string: hash)
        }
        #expect(result.signIn != nil)
    }

    @Test func `have two tokens of the same user, client and request`() async throws {
        for (change, code) in [
            ({ $0.claims["sub"] = "\"001234.other.0002\"" }, "apple.exchange_mismatch"),
            ({ $0.claims["aud"] = "\"com.example.app\"" }, "apple.exchange_mismatch"),
            ({ $0.claims["nonce"] = "\"other\"" }, "apple.exchange_mismatch"),
            ({ $0.claims["nonce"] = nil }, "apple.exchange_mismatch"),
            (
                {
                    $0.claims["nonce"] = nil
                    $0.claims["nonce_supported"] = "false"
                }, "apple.nonce_missing"
            ),
            ({ $0.claims["at_hash"] = "\"AAAAAAAAAAAAAAAAAAAAAA\"" }, "apple.exchange_mismatch"),
            ({ $0.claims["iss"] = "\"https://evil.example\"" }, "apple.bad_issuer"),
        ] as [((inout Token) -> Void, ErrorCode)] {
            let result = try await Bench.web(apple: try Bench.webTokens(change)).complete()
            #expect(result.code == code && result.disposition == .rejected, "\(code)")
        }
    }

    @Test(arguments: ExchangeTests.failures)
    func `fail as the table of errors says, and use their code once`(failure: ExchangeCase) async throws {
        let apple = ScriptedApple(failure.status, failure.body)
        let bench = try Bench.web(apple: apple)
        let result = try await bench.complete()
        #expect(result.code == failure.code && result.disposition == failure.disposition)
        #expect(try await bench.complete().code == "apple.code_reused")
        #expect(apple.received.count == 1)
    }

    @Test func `share the codes that were used with logins`() async throws {
        let apple = try Bench.webTokens()
        let bench = try Bench.web(apple: apple)
        #expect(try await bench.complete().signIn != nil)
        #expect(try await bench.complete().code == "apple.code_reused")
        #expect(try await bench.login(code: Bench.code).code == "apple.code_reused")
        #expect(apple.received.count == 1)
    }

    @Test func `are undecided without Apple or the store`() async throws {
        let silent = try await Bench.web(apple: ScriptedApple([ScriptedApple.noResponse])).complete()
        #expect(silent.code == "apple.api_unreachable" && silent.disposition == .unavailable)
        let broken = try await Bench.web(apple: try Bench.webTokens(), store: BrokenStore()).complete()
        #expect(broken.code == "apple.store_unavailable" && broken.disposition == .unavailable)
        let bench = try Bench.web(apple: try Bench.webTokens())
        bench.issuer.respond(with: nil)
        let keyless = try await bench.complete()
        #expect(keyless.code == "apple.keys_unavailable" && keyless.disposition == .unavailable)
    }

    @Test func `say that the user has cancelled`() async throws {
        let bench = try Bench.web(apple: ScriptedApple([]))
        let cancel = ["error": "user_cancelled_authorize", "code": nil, "id_token": nil]
        #expect(try await bench.complete(cancel).isCancelled)
        // Nothing beside the error counts.
        #expect(try await bench.complete(["error": "user_cancelled_authorize", "user": "{"]).isCancelled)
        for error in ["invalid_client", "User_cancelled_authorize", "user_cancelled_authorize "] {
            let result = try await bench.complete(["error": error])
            #expect(result.code == "apple.authorization_failed" && result.disposition == .rejected)
        }
        #expect(try await bench.complete(cancel.merging(["state": "x"]) { $1 }).code == "redirect.state_mismatch")
    }

    static let badFields: [([String: String?], ErrorCode, AuthenticationError.Disposition)] = [
        (["state": nil], "redirect.state_mismatch", .rejected),
        (["state": String(repeating: "0", count: 32)], "redirect.state_mismatch", .rejected),
        (["code": nil], "redirect.missing_field", .malformed), (["code": ""], "redirect.missing_field", .malformed),
        (["code": String(repeating: "c", count: 1025)], "redirect.field_too_long", .malformed),
        (["code": "other"], "apple.code_mismatch", .rejected),
        (["id_token": nil], "apple.token_missing", .rejected), (["id_token": ""], "apple.token_missing", .rejected),
        (["id_token": "a.b"], "apple.malformed", .rejected),
        (["id_token": String(repeating: "a", count: 8193)], "apple.token_too_large", .rejected),
        (["id_token": String(repeating: "a", count: 16_385)], "redirect.field_too_long", .malformed),
        (["error": String(repeating: "e", count: 129)], "redirect.field_too_long", .malformed),
        (["user": "{\"a\":\"\(String(repeating: "x", count: 4096))\"}"], "redirect.field_too_long", .malformed),
    ]

    @Test(arguments: badFields)
    func `have fields as Apple sends them`(
        changes: [String: String?], code: ErrorCode, disposition: AuthenticationError.Disposition
    ) async throws {
        let apple = ScriptedApple([])
        let result = try await Bench.web(apple: apple).complete(changes)
        #expect(result.code == code && result.disposition == disposition && apple.received.isEmpty)
    }

    @Test(arguments: [
        "{", "[]", "null", "Jane", "{\"name\":\"Jane\"}", "{\"name\":{\"firstName\":1}}", "{\"name\":{},\"name\":{}}",
        "{\"name\":{\"firstName\":[[[[[]]]]]}}", "\u{FEFF}{}", "{\"name\":{\"firstName\":\"\\ud800\"}}", "{}}",
    ])
    func `have no other user than Apple's JSON`(user: String) async throws {
        let apple = ScriptedApple([])
        let result = try await Bench.web(apple: apple).complete(["user": user])
        #expect(result.code == "signin.bad_member" && result.disposition == .malformed && apple.received.isEmpty)
    }

    @Test(arguments: [
        (#"{"name":{"firstName":"A\u0000\u202e<b>","lastName":"\r\nSet-Cookie: x"}}"#, "A<b> Set-Cookie: x"),
        (#"{"sub":"other","email":"victim@example.com","is_private_email":false}"#, nil), ("{}", nil), ("", nil),
        (#"{"name":{"lastName":"Doe"}}"#, "Doe"),
    ])
    func `are believed for the name alone`(user: String, name: String?) async throws {
        let signIn = try #require(try await Bench.web(key: false).complete(["user": user]).signIn)
        #expect(signIn.storedClaims["name"]?.string == name && signIn.storedClaims.count == (name == nil ? 0 : 1))
        #expect(signIn.identity.claims["email"] == "someone@example.com" && signIn.identity.claims["name"] == nil)
        #expect(signIn.identity.providerSubject == LoginTests.subject)
    }

    @Test func `are not repeated in errors`() async throws {
        for changes in [["code": "planted-code"], ["error": "planted-error"], ["user": "planted-user"]] {
            let result = try await Bench.web(apple: ScriptedApple([])).complete(changes) {
                $0.claims["aud"] = "\"planted\""
            }
            guard case .failure(let error) = result else { throw TestFailure("accepted") }
            #expect(!"\(error) \(error.cause.map { "\($0)" } ?? "") \(error.bodyErrors)".contains("planted-"))
        }
    }
}
