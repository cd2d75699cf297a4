import MartletCore
import MartletJSON
import MartletProvider
import MartletTesting
import Testing

/// A token that is rejected: what is changed, and the error code.
struct BadToken: Sendable, CustomTestStringConvertible {
    let name: String
    let code: ErrorCode
    let change: @Sendable (inout Token) -> Void

    init(_ name: String, _ code: ErrorCode, _ change: @escaping @Sendable (inout Token) -> Void) {
        self.name = name
        self.code = code
        self.change = change
    }

    var testDescription: String { "\(name): \(code)" }

    static func claim(_ name: String, _ value: String?, _ code: ErrorCode) -> BadToken {
        BadToken("\(name) \(value?.prefix(40) ?? "absent")", code) { $0.claims[name] = value.map { JSONText($0) } }
    }

    static func claim(_ name: String, _ value: Int, _ code: ErrorCode) -> BadToken { claim(name, String(value), code) }

    static func header(_ name: String, _ value: String?, _ code: ErrorCode) -> BadToken {
        BadToken("\(name) \(value?.prefix(40) ?? "absent")", code) { $0.header[name] = value.map { JSONText($0) } }
    }
}

@Suite struct TokenTests {
    static let now = Int(Bench.now)

    static let algorithms: [String?] = [
        nil, "\"none\"", "\"None\"", "\"NONE\"", "\"nOnE\"", "\"HS256\"", "\"PS256\"", "\"RS384\"", "\"rs256\"",
        "\"ES256\"",
        "\"\"", "1", "[\"RS256\"]",
    ]
    static let forbiddenFields = ["crit", "b64", "zip", "enc", "cty", "jwk", "jku", "x5u", "x5c", "x5t", "x5t#S256"]
    static let types = ["\"at+jwt\"", "\"jwt\"", "\"JOSE\"", "null", "1"]
    static let keys: [String?] = [
        nil, "\"\"", "\"nobody\"", "\"../../etc/passwd\"", "\"' OR 1=1 --\"", "\"https://evil.example\"", "1", "null",
        "[\"RSAKEY1\"]", "{\"a\":1}", "\"RSAKEY1 \"", "\"rsakey1\"", "\"RSAKEY1\\u0000\"",
        "\"\(String(repeating: "k", count: 65))\"",
    ]

    static let badHeaders: [BadToken] = {
        var list = algorithms.map { BadToken.header("alg", $0, "apple.alg_not_allowed") }
        for name in forbiddenFields {
            for value in ["[\"exp\"]", "\"https://evil.example/keys\"", "null", "{}"] {
                list.append(.header(name, value, "apple.header_not_allowed"))
            }
        }
        list += types.map { .header("typ", $0, "apple.header_not_allowed") }
        list += keys.map { .header("kid", $0, "apple.unknown_key") }
        list.append(.header("kid", "\"RSAKEY2\"", "apple.bad_signature"))
        return list
    }()

    static let issuers: [String?] = [
        nil, "\"\"", "\"https://account.apple.com\"", "\"https://appleid.apple.com/\"", "\"HTTPS://appleid.apple.com\"",
        "1",
        "[\"https://appleid.apple.com\"]",
    ]
    static let audiences: [String?] = [
        nil, "\"\"", "\"com.other.app\"", "\"com.example.app2\"", "\"com.example\"", "\"COM.EXAMPLE.APP\"",
        "\"com.example.app \"", "1", "[]", "[\"com.other.app\"]", "[\"com.example.app\",\"com.other.app\"]",
        "[\"com.example.app\",\"com.example.web\"]", "[1]", "{}", "null", "[[\"com.example.app\"]]",
    ]
    static let times: [String?] = [
        nil, "1e12", "1.5", "\"1900000000\"", "-1", "9007199254740993", "1\(String(repeating: "0", count: 400))",
        "true", "null",
        "1e400", "1800003600.0", "-0",
    ]
    static let subjects: [String?] = [
        nil, "\"\"", "1", "null", "[\"a\"]", "\"\(String(repeating: "s", count: 256))\"", "\"a\\u0000b\"", "\"a\\nb\"",
        "\"a\\u007f\"", "\"a\\u0085\"", "\"\u{80}\"", "\"a\u{9F}b\"", "\"\u{7F}\"", "\"é\\u001f\"",
    ]
    static let notBooleans = ["1", "0", "null", "\"TRUE\"", "\"False\"", "\"\"", "\"yes\"", "[true]"]

    static let badTimes: [BadToken] = [
        .claim("exp", now, "apple.expired"), .claim("exp", now - 1, "apple.expired"), .claim("exp", 0, "apple.expired"),
        .claim("exp", now - 100 + 48 * 3600 + 1, "apple.bad_times"), .claim("exp", 999_999_999_999, "apple.bad_times"),
        .claim("iat", now + 3600, "apple.bad_times"), .claim("iat", now + 61, "apple.issued_in_future"),
        .claim("iat", now - 86_401, "apple.too_old"), .claim("iat", 0, "apple.bad_times"),
        .claim("nbf", now + 61, "apple.not_yet_valid"), .claim("nbf", "\"1\"", "apple.bad_times"),
        .claim("auth_time", now + 61, "apple.issued_in_future"), .claim("auth_time", "\"x\"", "apple.bad_times"),
    ]

    static let badClaims: [BadToken] = {
        var list = issuers.map { BadToken.claim("iss", $0, "apple.bad_issuer") }
        list += audiences.map { .claim("aud", $0, "apple.bad_audience") }
        for name in ["exp", "iat"] { list += times.map { .claim(name, $0, "apple.bad_times") } }
        list += badTimes
        list += subjects.map { .claim("sub", $0, "apple.bad_subject") }
        list += ["\"{}\"", "null"].map { .claim("events", $0, "apple.wrong_token_kind") }
        for name in ["email_verified", "is_private_email", "nonce_supported"] {
            list += notBooleans.map { .claim(name, $0, "apple.bad_claim") }
        }
        for (name, value) in [
            ("email", "1"), ("email", "null"), ("transfer_sub", "[]"), ("org_id", "{}"), ("real_user_status", "\"2\""),
        ] {
            list.append(.claim(name, value, "apple.bad_claim"))
        }
        return list
    }()

    @Test(arguments: badHeaders + badClaims)
    func `rejects a signed token for the one thing that is wrong with it`(bad: BadToken) async throws {
        #expect(try await Bench().failureCode(Bench.token(bad.change)) == bad.code)
    }

    @Test func `accepts a valid token and returns its identity`() async throws {
        let identity = try await Bench().identity(Bench.token { $0.claims["email_verified"] = JSONText("\"true\"") })
        #expect(identity.providerSubject == "001234.0123456789abcdef0123456789abcdef.0001")
        #expect(identity.issuer == "https://appleid.apple.com")
        #expect(identity.claims["email"] == "someone@example.com")
        #expect(identity.claims["email_verified"] == true)
        #expect(identity.issuedAt.seconds == Bench.now - 100)
        #expect(identity.authTime.seconds == Bench.now - 101)
        #expect(identity.expiresAt.seconds == Bench.now + 3600)
    }

    static let good: [BadToken] = [
        .claim("aud", "\"com.example.web\"", "ok"), .claim("aud", "[\"com.example.app\"]", "ok"),
        .header("typ", "\"JWT\"", "ok"),
        .claim("exp", now + 1, "ok"), .claim("iat", now + 60, "ok"), .claim("nbf", now + 60, "ok"),
        .claim("auth_time", nil, "ok"), .claim("email", "\"\"", "ok"), .claim("email", nil, "ok"),
        .claim("unheard_of", "[{}]", "ok"),
        .claim("sub", "\"\(String(repeating: "s", count: 255))\"", "ok"),
        .claim("sub", "\"~ \u{A0}\u{C0}\u{E9}Â€\"", "ok"),
        .claim("nonce", "\"n\"", "ok"),
        .claim("iat", now - 82_800, "ok"),
    ]

    @Test(arguments: good)
    func `accepts what Apple may write`(token: BadToken) async throws {
        #expect(try await Bench().failureCode(Bench.token(token.change)) == nil)
    }

    @Test(arguments: [("true", true), ("\"true\"", true), ("false", false), ("\"false\"", false)])
    func `makes real booleans of both spellings`(text: String, value: Bool) async throws {
        let identity = try await Bench().identity(
            Bench.token {
                for name in ["email_verified", "is_private_email", "nonce_supported"] {
                    $0.claims[name] = JSONText(text)
                }
            })
        for name in ["email_verified", "is_private_email", "nonce_supported"] {
            #expect(identity.claims[name] == .bool(value))
        }
    }

    @Test(arguments: [(0, 0), (1, 1), (2, 2), (3, 1), (-1, 1)])
    func `maps unlisted user states to unknown`(written: Int, read: Int) async throws {
        let identity = try await Bench().identity(Bench.token { $0.claims["real_user_status"] = JSONText(written) })
        #expect(identity.claims["real_user_status"]?.int64 == Int64(read))
    }

    @Test func `hides what only serves to check the token`() async throws {
        let identity = try await Bench().identity(
            Bench.token { for name in ["nonce", "c_hash", "at_hash"] { $0.claims[name] = "\"x\"" } })
        for name in ["nonce", "c_hash", "at_hash"] { #expect(identity.claims[name] == nil) }
    }
}
