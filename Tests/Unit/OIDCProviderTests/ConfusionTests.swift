import MartletCore
import MartletJOSE
import MartletJSON
import MartletProvider
import MartletTesting
import OIDCProvider
import Testing

/// A token that is rejected: what is changed, and the error code.
struct BadToken: Sendable, CustomTestStringConvertible {
    let name: String
    let code: ErrorCode?
    let change: @Sendable (inout Token) -> Void

    init(_ name: String, _ code: ErrorCode?, _ change: @escaping @Sendable (inout Token) -> Void) {
        self.name = name
        self.code = code
        self.change = change
    }

    var testDescription: String { "\(name): \(code.map { "\($0)" } ?? "accepted")" }

    static func claim(_ name: String, _ value: String?, _ code: ErrorCode?) -> BadToken {
        BadToken("\(name) \(value?.prefix(40) ?? "absent")", code) { $0.claims[name] = value.map { JSONText($0) } }
    }

    static func header(_ name: String, _ value: String?, _ code: ErrorCode?) -> BadToken {
        BadToken("\(name) \(value?.prefix(40) ?? "absent")", code) { $0.header[name] = value.map { JSONText($0) } }
    }
}

/// One thing is wrong with each token; everything else is as it should be, and the signature holds.
@Suite struct ConfusionTests {
    static let now = Int(Bench.now)

    static let headers: [BadToken] =
        [nil, "\"none\"", "\"None\"", "\"nOnE\"", "\"HS256\"", "\"ES256\"", "\"PS256\"", "\"RS384\"", "\"rs256\"", "1"]
        .map { .header("alg", $0, "oidc.alg_not_allowed") }
        + ["crit", "b64", "zip", "enc", "jwk"].flatMap { name in
            ["[\"exp\"]", "false", "\"https://evil.example/keys\"", "null"].map {
                .header(name, $0, "oidc.header_not_allowed")
            }
        }
        + ["cty", "jku", "x5u", "x5c", "x5t", "x5t#S256"].flatMap { name in
            ["[\"exp\"]", "false", "\"https://evil.example/keys\"", "null"].map { .header(name, $0, nil) }
        }
        + [.header("cty", "\"JWT\"", "oidc.header_not_allowed"), .header("cty", "\"jwt\"", "oidc.header_not_allowed")]
        + ["logout+jwt", "dpop+jwt", "secevent+jwt", "token-introspection+jwt", "JWE", "text/jwt", ""].map {
            .header("typ", "\"\($0)\"", "oidc.header_not_allowed")
        }
        + ["null", "1", "[\"JWT\"]"].map { .header("typ", $0, "oidc.header_not_allowed") }
        + ["\"JWT\"", "\"jwt\"", "\"application/jwt\"", "\"at+jwt\"", "\"at+JWT\"", "\"application/at+jwt\""].map {
            .header("typ", $0, nil)
        }
        + [
            nil, "\"\"", "\"nobody\"", "\"../../etc/passwd\"", "\"' OR 1=1 --\"", "1", "null", "[\"RSA1\"]", "\"rsa1\"",
            "\"RSA1\\u0000\"",
        ].map { .header("kid", $0, "oidc.unknown_key") }
        + [.header("kid", "\"RSA2\"", "oidc.bad_signature"), .header("kid", "\"EC256\"", "oidc.key_unusable")]

    static let claims: [BadToken] =
        [
            nil, "\"\"", "\"https://issuer.example/\"", "\"HTTPS://issuer.example\"", "\"https://evil.example\"", "1",
            "[]",
        ]
        .map { .claim("iss", $0, "oidc.bad_issuer") }
        + [
            nil, "\"\"", "\"api2\"", "\"ap\"", "\"API\"", "1", "[]", "[\"other\"]", "[\"api\",1]", "{}", "null",
            "[[\"api\"]]",
        ].map { .claim("aud", $0, "oidc.bad_audience") }
        + ["[\"api\"]", "[\"other\",\"api\"]"].map { .claim("aud", $0, nil) }
        + [nil, "\"1900000000\"", "-1", "-1.5", "1e12", "99999999999999", "true", "null"].flatMap { value in
            ["exp", "iat"].map { .claim($0, value, "oidc.bad_times") }
        }
        + [
            .claim("exp", "1.5", "oidc.expired"), .claim("iat", "1.5", "oidc.too_old"),
            .claim("exp", "\(now + 10).123456", nil), .claim("iat", "\(now - 10).5", nil), .claim("nbf", "1.8e9", nil),
            .claim("exp", "\(now)", "oidc.expired"), .claim("exp", "0", "oidc.expired"),
            .claim("iat", "\(now + 61)", "oidc.issued_in_future"), .claim("iat", "\(now - 86_401)", "oidc.too_old"),
            .claim("nbf", "\(now + 61)", "oidc.not_yet_valid"), .claim("nbf", "\"1\"", "oidc.bad_times"),
            .claim("auth_time", "\(now + 61)", "oidc.issued_in_future"), .claim("exp", "\(now + 1)", nil),
            .claim("exp", "\(now + 30 * 86_400)", nil), .claim("iat", "\(now + 60)", nil),
        ]
        + [
            nil, "\"\"", "1", "null", "[\"a\"]", "\"\(String(repeating: "s", count: 256))\"", "\"a\\u0000\"",
            "\"a\\nb\"",
            "\"\\u0085\"",
        ].map { .claim("sub", $0, "oidc.bad_subject") }
        + [.claim("sub", "\"\(String(repeating: "s", count: 255))\"", nil)]
        + ["{}", "{\"jkt\":\"x\"}", "{\"x5t#S256\":\"x\"}", "\"\"", "[]"].map {
            .claim("cnf", $0, "oidc.bound_token")
        }
        + [
            .claim("events", "{\"http://schemas.openid.net/event/backchannel-logout\":{}}", "oidc.wrong_token_kind"),
            .claim("email_verified", "2", "oidc.bad_claim"), .claim("email_verified", "[]", "oidc.bad_claim"),
            .claim("email_verified", "1", nil), .claim("auth_time", "\"\(now - 9)\"", nil),
            .claim("scope", "1", "oidc.bad_claim"),
            .claim("scope", "[1]", "oidc.bad_claim"), .claim("email_verified", "\"true\"", nil),
            .claim("azp", "\"anyone\"", nil),
        ]
        + ["email_verified", "scope", "cnf", "azp", "acr", "email", "nbf", "auth_time", "events", "groups"].map {
            .claim($0, "null", nil)
        }

    @Test(arguments: headers + claims)
    func `rejects a signed token for the one thing that is wrong with it`(token: BadToken) async throws {
        #expect(try await Bench().failureCode(Bench.token(token.change)) == token.code)
    }

    @Test func `accepts a token and returns its identity`() async throws {
        let identity = try await Bench().identity(Bench.token { $0.claims["scope"] = "\"read write\"" })
        #expect(identity.providerSubject == "user-1" && identity.issuer == Bench.issuer)
        #expect(identity.claims["scope"] == ["read", "write"])
        #expect(identity.expiresAt.seconds == Bench.now + 3600)
        #expect(identity.reusableUntil == identity.expiresAt)
        #expect(identity.issuedAt.seconds == Bench.now - 100 && identity.authTime.seconds == Bench.now - 100)
    }

    @Test func `no public key is a secret`() async throws {
        let bench = try Bench()
        let key = try Bench.key.get()
        var token = Token(kid: key.identifier)
        token.header["alg"] = "\"HS256\""
        for secret in [try key.publicPEM(), Array(key.identifier.utf8), []] {
            #expect(await bench.failureCode(token.signed(byHMAC: secret)) == "oidc.alg_not_allowed")
        }
        for algorithms in ["HS256", "none", "RS256, HS512"] {
            #expect(throws: Bench.ConfigurationRejected.self) {
                try Bench("issuer: https://a.example\naudiences: [api]\nalgorithms: [\(algorithms)]")
            }
        }
    }

    @Test func `a signature by another key, a changed or a missing one is none`() async throws {
        let bench = try Bench()
        let stranger = try SigningKey("RSA1")
        #expect(try await bench.failureCode(Bench.token(by: stranger)) == "oidc.bad_signature")
        let parts = try Bench.token().split(separator: ".").map(String.init)
        let other = try Bench.token { $0.claims["sub"] = "\"admin\"" }.split(separator: ".").map(String.init)
        #expect(await bench.failureCode("\(parts[0]).\(other[1]).\(parts[2])") == "oidc.bad_signature")
        for text in [
            "\(parts[0]).\(parts[1]).", "\(parts[0]).\(parts[1])", "\(parts[0])..\(parts[2])", "a.b.c.d.e", "x",
        ] {
            #expect(await bench.failureCode(text) == "oidc.malformed", "\(text)")
        }
        #expect(await bench.failureCode("") == "oidc.token_missing")
    }

    @Test func `each algorithm works with its own keys, where it is configured`() async throws {
        let bench = try Bench(
            "issuer: https://issuer.example\naudiences: [api]\nalgorithms: [RS256, ES256, ES384, ES512, EdDSA]")
        for key in try [Bench.key.get()] + Bench.curves.get() {
            #expect(try await bench.failureCode(Bench.token(by: key)) == nil, "\(key.identifier)")
            #expect(
                try await Bench().failureCode(Bench.token(by: key))
                    == (key.identifier == "RSA1" ? nil : "oidc.alg_not_allowed"))
        }
    }

    @Test func `access tokens have a type and all of their claims`() async throws {
        let bench = try Bench("issuer: https://issuer.example\naudiences: [api]\naccess_tokens: true")
        func code(_ change: (inout Token) -> Void) async throws -> ErrorCode? {
            await bench.failureCode(
                try Bench.token { token in
                    token.header["typ"] = "\"at+jwt\""
                    token.claims["client_id"] = "\"app\""
                    token.claims["jti"] = "\"1\""
                    change(&token)
                })
        }
        #expect(try await code { _ in } == nil)
        #expect(try await code { $0.header["typ"] = "\"application/at+jwt\"" } == nil)
        #expect(try await code { $0.header["typ"] = "\"JWT\"" } == "oidc.header_not_allowed")
        #expect(try await code { $0.header["typ"] = nil } == "oidc.header_not_allowed")
        #expect(try await code { $0.claims["client_id"] = nil } == "oidc.wrong_token_kind")
        #expect(try await code { $0.claims["jti"] = nil } == "oidc.wrong_token_kind")
        #expect(try await code { $0.claims["jti"] = "1" } == "oidc.wrong_token_kind")
        #expect(try await code { $0.claims["sub"] = nil } == "oidc.bad_subject")
    }

    @Test func `authorized parties make azp mandatory`() async throws {
        let bench = try Bench("issuer: https://issuer.example\naudiences: [api]\nauthorized_parties: [app, web]")
        for (value, code): (String?, ErrorCode?) in [
            ("\"app\"", nil), ("\"web\"", nil), (nil, "oidc.bad_authorized_party"),
            ("\"evil\"", "oidc.bad_authorized_party"),
            ("[\"app\"]", "oidc.bad_authorized_party"), ("null", "oidc.bad_authorized_party"),
            ("\"APP\"", "oidc.bad_authorized_party"),
        ] {
            #expect(try await bench.failureCode(Bench.token { $0.claims["azp"] = value.map { JSONText($0) } }) == code)
        }
    }

    @Test func `leeway and max_age are those of the configuration`() async throws {
        let bench = try Bench("issuer: https://issuer.example\naudiences: [api]\nleeway: 30s\nmax_age: 5m")
        #expect(try await bench.failureCode(Bench.token { $0.claims["exp"] = JSONText(Self.now - 29) }) == nil)
        #expect(
            try await bench.failureCode(Bench.token { $0.claims["exp"] = JSONText(Self.now - 30) }) == "oidc.expired")
        #expect(try await bench.failureCode(Bench.token { $0.claims["iat"] = JSONText(Self.now - 300) }) == nil)
        #expect(
            try await bench.failureCode(Bench.token { $0.claims["iat"] = JSONText(Self.now - 301) }) == "oidc.too_old")
    }

    @Test func `without a limit of the age a token need not say when it was issued`() async throws {
        let bench = try Bench("issuer: https://issuer.example\naudiences: [api]\nmax_age: off")
        let identity = try await bench.identity(Bench.token { $0.claims["iat"] = nil })
        // As old as can be, for routes that demand a recent one.
        #expect(identity.issuedAt.seconds == 0 && identity.authTime.seconds == 0)
        #expect(identity.expiresAt.seconds == Bench.now + 3600)
        #expect(try await bench.failureCode(Bench.token { $0.claims["iat"] = 1 }) == nil)
        #expect(try await bench.failureCode(Bench.token { $0.claims["exp"] = nil }) == "oidc.bad_times")
    }

    @Test func `a token may have 16 KiB`() async throws {
        func code(_ bytes: Int) async throws -> ErrorCode? {
            try await Bench().failureCode(
                Bench.token { $0.claims["groups"] = JSONText(string: String(repeating: "g", count: bytes)) })
        }
        #expect(try await code(11_500) == nil)
        #expect(try await code(12_500) == "oidc.token_too_large")
    }

    @Test func `explains each check`() async throws {
        let bench = try Bench()
        let token = try Bench.token { $0.claims["cnf"] = "{}" }
        let results = await bench.provider.explain(Credential(bearer: Array(token.utf8)), in: bench.context)
        #expect(
            results.map(\.check) == [
                "form", "algorithm", "header fields", "key", "key algorithm", "signature", "issuer", "audience",
                "expiry", "life", "age", "other times", "subject", "token kind", "binding",
            ])
        #expect(results.last?.failure == "oidc.bound_token" && results.dropLast().allSatisfy { $0.failure == nil })
    }

    @Test func `an event loop decides what it can`() async throws {
        let bench = try await Bench.started()
        guard
            case .authenticated = try bench.provider.verify(
                Credential(bearer: Array(Bench.token().utf8)), in: bench.context)
        else {
            Issue.record("undecided")
            return
        }
        let unknown = try Bench.token { $0.header["kid"] = "\"new\"" }
        guard case .undecided = try bench.provider.verify(Credential(bearer: Array(unknown.utf8)), in: bench.context)
        else {
            Issue.record("decided")
            return
        }
        await bench.provider.shutdown()
    }
}
