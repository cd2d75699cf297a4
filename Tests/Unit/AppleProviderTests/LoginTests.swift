import AppleProvider
import MartletCore
import MartletJSON
import MartletProvider
import MartletTesting
import Testing

@Suite struct LoginTests {
    static let subject = "001234.0123456789abcdef0123456789abcdef.0001"

    @Test func `authenticates the holder of a valid token`() async throws {
        let signIn = try await Bench().login().get()
        #expect(signIn.identity.providerSubject == Self.subject)
        #expect(signIn.identity.issuer == "https://appleid.apple.com")
        #expect(signIn.identity.claims["email"] == "someone@example.com")
        #expect(signIn.aliases.isEmpty && signIn.storedClaims.isEmpty)
    }

    @Test(arguments: TokenTests.badHeaders + TokenTests.badClaims)
    func `rejects every token that is rejected as a bearer token`(bad: BadToken) async throws {
        let result = try await Bench().login(.init(), bad.change)
        #expect(result.code == bad.code && result.disposition == .rejected)
    }

    @Test func `takes tokens as old as login_max_age, whatever max_age says`() async throws {
        let now = Int(Bench.now)
        for (lines, most) in [([], 600), ([("login_max_age", Bench.Value.text("30s")), ("max_age", .text("1d"))], 30)] {
            for (age, code) in [(most, nil), (most + 1, "apple.too_old" as ErrorCode?)] {
                let result = try await Bench(lines).login { $0.claims["iat"] = JSONText(now - age) }
                #expect(result.code == code, "\(age) s")
            }
        }
        #expect(
            try await Bench([("max_age", .text("1m"))]).login { $0.claims["iat"] = JSONText(now - 599) }.code == nil)
        #expect(try await Bench().failureCode(Bench.token { $0.claims["iat"] = JSONText(now - 601) }) == nil)
    }

    @Test func `without a token is a bad request, with an empty one a bad credential`() async throws {
        let bench = try Bench()
        let none = await bench.login(form: SignInForm(texts: [:], others: ["identity_token": .null], isForm: false))
        #expect(none.code == "signin.missing_member" && none.disposition == .malformed)
        let number = await bench.login(form: SignInForm(texts: [:], others: ["identity_token": 1], isForm: false))
        #expect(number.code == "signin.bad_member" && number.disposition == .malformed)
        let empty = await bench.login(form: Bench.Request().with(""))
        #expect(empty.code == "apple.token_missing" && empty.disposition == .rejected)
        let large = await bench.login(form: Bench.Request().with(String(repeating: "a", count: 8193)))
        #expect(large.code == "apple.token_too_large" && bench.issuer.fetches == 0)
    }

    @Test(arguments: ["authorization_code", "user", "nonce", "full_name"])
    func `is a bad request with a member of another type`(name: String) async throws {
        let wrong: [JSONValue] = [1, true, ["a"], name == "full_name" ? "Jane" : ["a": "b"]]
        for value in wrong {
            var request = Bench.Request()
            if let text = value.string { request.texts[name] = text } else { request.others[name] = value }
            let result = try await Bench().login(request)
            #expect(result.code == "signin.bad_member" && result.disposition == .malformed)
        }
        #expect(try await Bench().login(.init(others: [name: .null])).code == nil)
    }

    @Test func `cannot be decided without Apple's keys`() async throws {
        let bench = try Bench()
        bench.issuer.respond(with: nil)
        let result = try await bench.login()
        #expect(result.code == "apple.keys_unavailable" && result.disposition == .unavailable)
    }

    @Test func `says nothing of what it was given in its errors`() async throws {
        let request = Bench.Request(texts: ["nonce": "planted-nonce", "authorization_code": "planted-code"])
        let result = try await Bench().login(request) { $0.claims["nonce"] = "\"planted-other\"" }
        guard case .failure(let error) = result else { throw TestFailure("accepted") }
        #expect(!"\(error) \(error.cause.map { "\($0)" } ?? "")".contains("planted"))
    }
}

// MARK: - user and code

extension LoginTests {
    @Test(
        arguments: [
            ("", nil), (subject, nil), ("001234.0123456789abcdef0123456789abcdef.0002", "apple.user_mismatch"),
            ("\(subject) ", "apple.user_mismatch"), (subject.uppercased(), "apple.user_mismatch"),
            ("{}", "apple.user_mismatch"), (String(repeating: "u", count: 60_000), "apple.user_mismatch"),
        ] as [(String, ErrorCode?)])
    func `is for the user whom the token names`(user: String, code: ErrorCode?) async throws {
        #expect(try await Bench().login(.init(texts: ["user": user])).code == code)
    }

    /// Codes and their digests; the last is the example of the OIDC specification.
    static let codes = [
        ("c0ffee00c0ffee00c0ffee00c0ffee00.0.test.AAAAAAAAAAAAAAAAAAAAAA", "NTyNtBXGH3oXrUwjKKWAjA"),
        ("Qcb0Orv1zh30vL1MPRsbm-diHiMwcLyZvn1arpZv-Jxf_11jnpEX3Tgfvk", "LDktKdoQak3Pk0cnXxCltA"),
    ]

    @Test(arguments: codes)
    func `takes the code that came with the token and no other`(code: String, hash: String) async throws {
        func result(_ code: String?, _ hash: String?) async throws -> ErrorCode? {
            let texts = code.map { ["authorization_code": $0] } ?? [:]
            return try await Bench().login(.init(texts: texts)) { $0.claims["c_hash"] = hash.map { JSONText($0) } }.code
        }
        #expect(try await result(code, "\"\(hash)\"") == nil)
        for bad in ["\(hash)=", String(hash.dropLast()), hash.lowercased(), "", String(hash.reversed())] {
            #expect(try await result(code, "\"\(bad)\"") == "apple.code_mismatch", "\(bad)")
        }
        #expect(try await result(code + "x", "\"\(hash)\"") == "apple.code_mismatch")
        #expect(try await result(code, "1") == "apple.bad_claim")
        // Without a code there is nothing to check, without a hash nothing to check it by.
        for (code, hash) in [(nil, "\"\(hash)\""), ("", "\"\(hash)\""), (code, nil)] {
            #expect(try await result(code, hash) == nil)
        }
    }
}

// MARK: - Names

extension LoginTests {
    @Test(
        arguments: [
            (["given_name": "Jürgen", "family_name": "Müller"], "Jürgen Müller"), (["given_name": "小明"], "小明"),
            (["given_name": nil, "family_name": " Li  Wei "], "Li Wei"), ([:], nil), (["given_name": ""], nil),
            (["given_name": "\u{0}\r\n\u{7F}\u{85}"], nil),
            (
                ["given_name": "Jane\r\nX-Auth-Subject: root", "family_name": "\u{202E}Doe\u{2066}"],
                "Jane X-Auth-Subject: root Doe"
            ),
            (["given_name": "a\u{1B}[2Jb", "other": 1], "a[2Jb"), (["given_name": "👩‍💻"], "👩‍💻"),
            (["givenName": "Ada", "familyName": "Lovelace", "middleName": "King", "nickname": "A"], "Ada Lovelace"),
            (["givenName": nil, "familyName": "Lovelace"], "Lovelace"),
            (["given_name": "Ada", "family_name": "Lovelace", "title": "Countess"], "Ada Lovelace"),
        ] as [(JSONObject, String?)])
    func `keeps a name made fit to be shown`(name: JSONObject, kept: String?) async throws {
        let result = try await Bench().login(.init(others: ["full_name": .object(name)]))
        #expect(result.code == nil && result.name == kept)
        #expect(try result.get().identity.claims["name"] == nil, "the token does not say so")
    }

    @Test func `takes the members as Swift names them`() async throws {
        let token = try Bench.token()
        let texts = ["identityToken": Secret(token), "nonce": Secret("")]
        let names: [String: JSONValue] = ["fullName": ["givenName": "Ada", "familyName": "Lovelace"]]
        let result = try await Bench().login(form: SignInForm(texts: texts, others: names, isForm: false))
        #expect(result.code == nil && result.name == "Ada Lovelace")
        let code = SignInForm(
            texts: ["identityToken": Secret(token), "authorizationCode": Secret("x")], others: [:], isForm: false)
        let exchanged = try await Bench.withKey(ScriptedApple([])).login(form: code)
        #expect(exchanged.code == "apple.api_unreachable")
    }

    @Test(
        arguments: [["first": "Ada"], ["given_name": "Ada", "familyname": "Lovelace"], ["name": "Ada"]] as [JSONObject]
    )
    func `does not drop a name without a word`(name: JSONObject) async throws {
        let result = try await Bench().login(.init(others: ["full_name": .object(name)]))
        #expect(result.code == "signin.bad_member" && result.disposition == .malformed)
        guard case .failure(let error) = result else { return }
        #expect(error.bodyErrors.map(\.pointer) == ["/full_name"])
    }

    @Test func `keeps no more of a name than 256 characters`() async throws {
        let long = String(repeating: "é", count: 300)
        let result = try await Bench().login(.init(others: ["full_name": ["given_name": .string(long)]]))
        #expect(result.name == String(repeating: "é", count: 256))
        let edge: JSONObject = [
            "given_name": .string(String(repeating: "a", count: 255)), "family_name": "b",
        ]
        let cut = try await Bench().login(.init(others: ["full_name": .object(edge)]))
        #expect(cut.name == String(repeating: "a", count: 255))
    }

    @Test(
        arguments: [["given_name": 1], ["family_name": ["a"]], ["given_name": "a", "family_name": true]] as [JSONObject]
    )
    func `takes names that are texts`(name: JSONObject) async throws {
        let result = try await Bench().login(.init(others: ["full_name": .object(name)]))
        #expect(result.code == "signin.bad_member" && result.disposition == .malformed)
    }

    @Test(
        arguments: [
            ("{\"name\":{\"firstName\":\"Jane\",\"lastName\":\"Doe\"},\"email\":\"victim@example.com\"}", "Jane Doe"),
            ("{\"name\":{\"lastName\":\"Doe\"}}", "Doe"), ("{\"email\":\"victim@example.com\"}", nil), ("{}", nil),
            ("{\"name\":null}", nil),
        ] as [(String, String?)])
    func `takes the name that Apple's web page posts, and never its e-mail`(user: String, kept: String?) async throws {
        let result = try await Bench().login(.init(texts: ["user": user], isForm: true))
        #expect(result.code == nil && result.name == kept)
        let signIn = try result.get()
        #expect(signIn.identity.claims["email"] == "someone@example.com")
        #expect(!"\(signIn.storedClaims) \(signIn.identity.claims)".contains("victim"))
    }

    @Test(arguments: [
        "{", "{\"name\":\"Jane\"}", "{\"name\":{\"firstName\":1}}", "{\"name\":{},\"name\":{}}",
        "{\"a\":\"\(String(repeating: "x", count: 4096))\"}", "{\"name\":{\"firstName\":[[[[[]]]]]}}",
    ])
    func `rejects a web user that is not Apple's JSON`(user: String) async throws {
        let result = try await Bench().login(.init(texts: ["user": user], isForm: true))
        #expect(result.code == "signin.bad_member" && result.disposition == .malformed)
    }

    @Test func `compares a form's user that is no JSON`() async throws {
        #expect(try await Bench().login(.init(texts: ["user": Self.subject], isForm: true)).code == nil)
        #expect(try await Bench().login(.init(texts: ["user": "other"], isForm: true)).code == "apple.user_mismatch")
    }
}
