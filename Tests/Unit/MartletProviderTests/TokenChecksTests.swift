import MartletCore
import MartletCrypto
import MartletJOSE
import MartletJSON
import MartletProvider
import Testing

/// The checks with a key at hand, for a provider that is not one of the bundled ones.
@Suite struct TokenChecksTests {
    static let now: Int64 = 1_800_000_000
    static let key = Result { try PrivateKey(generating: .p256) }

    static func checks(_ change: (inout TokenChecks) -> Void = { _ in }) -> TokenChecks {
        var checks = TokenChecks(
            prefix: "partner", owner: "the partner's", algorithms: [.es256], issuers: ["https://issuer.example"],
            audiences: ["api", "app"], maximumAge: .seconds(3600))
        change(&checks)
        return checks
    }

    static let claims: JSONObject = [
        "iss": "https://issuer.example", "aud": "api", "sub": "u1", "iat": .integer(now - 10),
        "exp": .integer(now + 60),
    ]

    static func claims(_ changes: KeyValuePairs<String, JSONValue?>) -> JSONObject {
        var claims = claims
        for (name, value) in changes { claims[name] = value }
        return claims
    }

    static func token(header: JSONObject = ["alg": "ES256", "kid": "k"], _ claims: JSONObject) throws -> [UInt8] {
        let input = [header, claims].map { Base64URL.encode(JSON.write($0)) }.joined(separator: ".")
        return Array("\(input).\(Base64URL.encode(try key.get().sign(Array(input.utf8))))".utf8)
    }

    static func verificationKey() throws -> VerificationKey {
        try VerificationKey(id: #require(KeyID("k")), parts: key.get().publicKey.parts)
    }

    /// The code of the first check that fails, or `nil`.
    static func code(_ token: [UInt8], _ checks: TokenChecks = checks()) throws -> ErrorCode? {
        let key = try verificationKey()
        var log = CheckLog(recorded: false)
        do throws(TokenError) {
            let checked = try checks.check(token, at: UnixTime(seconds: now), log: &log) {
                $0 == key.id || $0 == nil ? .key(key) : .unknown
            }
            _ = try checks.subject(of: checked.claims, log: &log)
        } catch { return error.code }
        return nil
    }

    @Test func `accepts a token, and records each check in order`() throws {
        let key = try Self.verificationKey()
        var log = CheckLog(recorded: true)
        let checked = try Self.checks().check(
            Self.token(Self.claims), at: UnixTime(seconds: Self.now), log: &log
        ) { _ in .key(key) }
        #expect(checked.issuer == "https://issuer.example" && checked.audience == "api")
        #expect(checked.times.issuedAt.seconds == Self.now - 10 && checked.times.end.seconds == Self.now + 60)
        #expect(checked.times.authTime == nil)
        #expect(try Self.checks().subject(of: checked.claims, log: &log) == "u1")
        #expect(
            log.results.map(\.check) == [
                "form", "algorithm", "header fields", "key", "key algorithm", "signature", "issuer", "audience",
                "expiry", "life", "age", "other times", "subject",
            ])
        #expect(log.results.allSatisfy { $0.failure == nil })
        #expect(log.results.last?.detail == "sub u1")
    }

    @Test(arguments: [
        (TokenType.none, nil), (.jwt, "JWT"), (.accessToken, "at+jwt"), (.accessToken, "application/at+jwt"),
        (.accessToken, "at+JWT"), (.accessToken, "Application/AT+JWT"), (.jwt, "jwt"), (.jwt, "application/jwt"),
        (.other, "logout+jwt"), (.other, "dpop+jwt"), (.other, "secevent+jwt"), (.other, "text/jwt"),
        (.other, ""),
    ])
    func `accepts the types of its list, and never another`(type: TokenType, text: String?) throws {
        var header: JSONObject = ["alg": "ES256", "kid": "k"]
        header["typ"] = text.map { .string($0) }
        let token = try Self.token(header: header, Self.claims)
        for accepted in [TokenType.none, .jwt, .accessToken, .other] {
            let isAccepted = accepted == type && type != .other
            let code = try Self.code(token, Self.checks { $0.types = [accepted] })
            #expect(code == (isAccepted ? nil : "partner.header_not_allowed"))
        }
    }

    @Test func `takes one of several audiences only where a list may have several`() throws {
        let lists: [(JSONValue?, single: Bool, anyOf: Bool)] = [
            ("api", true, true), (["api"], true, true), (["other", "app"], false, true), (["api", "app"], false, true),
            (["api", 1], false, false), ([], false, false), (["other"], false, false), ("other", false, false),
            (nil, false, false), (1, false, false), (["api": true], false, false),
        ]
        for (value, single, anyOf) in lists {
            let token = try Self.token(Self.claims(["aud": value]))
            #expect(try Self.code(token) == (single ? nil : "partner.bad_audience"), "\(String(describing: value))")
            let found = try Self.code(token, Self.checks { $0.audienceForm = .anyOf })
            #expect(found == (anyOf ? nil : "partner.bad_audience"), "\(String(describing: value))")
        }
        #expect(try Self.code(Self.token(Self.claims), Self.checks { $0.audiences = [] }) == "partner.bad_audience")
    }

    @Test func `limits the life of a token only where there is a limit`() throws {
        let token = try Self.token(Self.claims(["exp": .integer(Self.now + 7 * 86_400)]))
        #expect(try Self.code(token) == nil)
        #expect(try Self.code(token, Self.checks { $0.maximumLifetime = .seconds(86_400) }) == "partner.bad_times")
        let backwards = try Self.token(Self.claims(["iat": .integer(Self.now + 50), "exp": .integer(Self.now + 50)]))
        #expect(try Self.code(backwards) == "partner.bad_times")
    }

    @Test func `only claims that were just sent may lack issuer and times`() throws {
        for name in ["iss", "exp", "iat"] {
            let claims = Self.claims([:])
            var short = claims
            short[name] = nil
            var log = CheckLog(recorded: false)
            #expect(throws: TokenError.self) {
                try Self.checks().check(TokenClaims(short), at: UnixTime(seconds: Self.now), log: &log)
            }
            let checked = try Self.checks { $0.isOnline = true }
                .check(TokenClaims(short), at: UnixTime(seconds: Self.now), log: &log)
            #expect(checked.issuer == "https://issuer.example")
            #expect(checked.times.end.seconds <= Self.now + 3601)
        }
    }

    @Test(arguments: ["-1", "-0", "1e12", "9999999999999", "1e999999999999", "\"1800000000\"", "true", "[]"])
    func `a time is a number of seconds`(text: String) throws {
        let value = try JSON.parse(Array(text.utf8), limits: JSONLimits(maximumDepth: 2, maximumBytes: 100))
        #expect(TokenClaims.time(value) == nil && NumericDate(value) == nil)
        #expect(try Self.code(Self.token(Self.claims(["exp": value]))) == "partner.bad_times")
    }

    @Test(
        arguments: [
            ("1.5", 1, 2), ("1800000060.000001", 1_800_000_060, 1_800_000_061),
            ("1800000060.000", 1_800_000_060, 1_800_000_060),
            ("1.8e9", 1_800_000_000, 1_800_000_000), ("1.8E+09", 1_800_000_000, 1_800_000_000), ("0.0", 0, 0),
            ("18000000005e-1", 1_800_000_000, 1_800_000_001), ("1e-9", 0, 1), ("0e999", 0, 0),
            ("1799999999.99999999999999999999", 1_799_999_999, 1_800_000_000),
            ("999999999999", 999_999_999_999, 999_999_999_999),
        ] as [(String, Int64, Int64)])
    func `a time may have a fraction`(text: String, floor: Int64, ceiling: Int64) throws {
        let value = try JSON.parse(Array(text.utf8), limits: JSONLimits(maximumDepth: 2, maximumBytes: 100))
        let date = try #require(NumericDate(value))
        #expect(date.floor.seconds == floor && date.ceiling.seconds == ceiling)
    }

    private static func number(_ text: String) throws -> JSONValue {
        try JSON.parse(Array(text.utf8), limits: JSONLimits(maximumDepth: 2, maximumBytes: 100))
    }

    @Test func `a fraction counts towards the stricter side`() throws {
        func code(_ name: String, _ text: String, strict: Bool = false) throws -> ErrorCode? {
            try Self.code(Self.token(Self.claims([name: Self.number(text)])), Self.checks { $0.isStrict = strict })
        }
        #expect(try code("exp", "\(Self.now + 1).5") == nil && code("exp", "\(Self.now).5") == "partner.expired")
        #expect(try code("iat", "\(Self.now - 3600).25") == nil)
        #expect(try code("iat", "\(Self.now - 3601).75") == "partner.too_old")
        #expect(try code("iat", "\(Self.now + 60).1") == "partner.bad_times")
        #expect(
            try code("nbf", "\(Self.now + 59).9") == nil && code("nbf", "\(Self.now + 60).1") == "partner.not_yet_valid"
        )
        #expect(try code("auth_time", "\(Self.now + 60).1") == "partner.issued_in_future")
        for name in ["exp", "iat", "nbf", "auth_time"] {
            #expect(try code(name, "\(Self.now - 5).5", strict: true) == "partner.bad_times")
            #expect(try code(name, "null", strict: true) == "partner.bad_times")
        }
    }

    @Test(
        arguments: [
            ("\"1799999000\"", 1_799_999_000), ("\"2027-01-15T07:43:20.250Z\"", 1_799_999_000), ("null", nil),
        ] as [(String, Int64?)])
    func `auth_time may be a text`(text: String, seconds: Int64?) throws {
        let key = try Self.verificationKey()
        let token = try Self.token(Self.claims(["auth_time": Self.number(text)]))
        var log = CheckLog(recorded: false)
        let checked = try Self.checks().check(token, at: UnixTime(seconds: Self.now), log: &log) { _ in .key(key) }
        #expect(checked.times.authTime?.seconds == seconds)
        #expect(try Self.code(Self.token(Self.claims(["auth_time": "yesterday"]))) == "partner.bad_times")
        #expect(try Self.code(token, Self.checks { $0.isStrict = true }) == "partner.bad_times")
    }

    @Test func `a claim that is null is absent`() throws {
        let claims = TokenClaims(["iss": "a", "nbf": .null, "iss": "b", "expx": 1])
        #expect(claims[.issuer] == "a")
        for name in TokenClaims.Name.allCases where name != .issuer { #expect(claims[name] == nil) }
        #expect(try Self.code(Self.token(Self.claims(["nbf": .null, "auth_time": .null]))) == nil)
        #expect(try Self.code(Self.token(Self.claims(["exp": .null]))) == "partner.bad_times")
    }

    @Test func `without a limit of the age, iat may be missing`() throws {
        let key = try Self.verificationKey()
        let checks = Self.checks { $0.acceptsAnyAge = true }
        var log = CheckLog(recorded: false)
        func times(_ claims: JSONObject) throws -> TokenChecks.Times {
            try checks.check(Self.token(claims), at: UnixTime(seconds: Self.now), log: &log) { _ in .key(key) }.times
        }
        let none = try times(Self.claims(["iat": nil]))
        #expect(none.issuedAt.seconds == 0 && none.authTime == nil && none.end.seconds == Self.now + 60)
        let old = try times(Self.claims(["iat": 1000]))
        #expect(old.issuedAt.seconds == 1000 && old.end.seconds == Self.now + 60)
        let ahead = Self.claims(["iat": .integer(Self.now + 61), "exp": .integer(Self.now + 99)])
        #expect(try Self.code(Self.token(ahead), checks) == "partner.issued_in_future")
        #expect(try Self.code(Self.token(Self.claims(["iat": "x"])), checks) == "partner.bad_times")
        #expect(try Self.code(Self.token(Self.claims(["iat": nil, "exp": nil])), checks) == "partner.bad_times")
    }

    @Test func `another claim may name the audience`() throws {
        let nested = ClaimPath("act", "client")
        for (path, claims): (ClaimPath, JSONObject) in [
            ("client_id", Self.claims(["aud": nil, "client_id": "app"])),
            (nested, Self.claims(["aud": "other", "act": ["client": ["x", "app"]]])),
        ] {
            let checks = Self.checks {
                $0.audienceClaim = path
                $0.audienceForm = .anyOf
            }
            #expect(try Self.code(Self.token(claims), checks) == nil)
            #expect(try Self.code(Self.token(claims)) == "partner.bad_audience")
            #expect(try Self.code(Self.token(Self.claims), checks) == "partner.bad_audience")
        }
    }

    @Test func `names what was found`() throws {
        let key = try Self.verificationKey()
        func message(_ header: JSONObject, _ claims: JSONObject) throws -> String {
            var log = CheckLog(recorded: false)
            let checks = Self.checks { $0.audienceForm = .anyOf }
            let token = try Self.token(header: header, claims)
            do throws(TokenError) {
                _ = try checks.check(token, at: UnixTime(seconds: Self.now), log: &log) { _ in .key(key) }
            } catch { return error.message }
            return ""
        }
        let header: JSONObject = ["alg": "ES256", "kid": "k"]
        #expect(try message(header, Self.claims(["aud": ["web", "x"]])) == "aud is [web, x], not api or app")
        #expect(try message(header, Self.claims(["aud": nil])) == "aud is neither a string nor a list, but absent")
        #expect(
            try message(header, Self.claims(["iss": "https://other.example"]))
                == "iss is https://other.example, not https://issuer.example")
        #expect(
            try message(["alg": "RS256", "kid": "k"], Self.claims)
                == "the algorithm is not allowed: alg is RS256, not ES256")
        #expect(
            try message(["alg": "ES256", "kid": "k", "typ": "at+jwt"], Self.claims)
                == "the token's type is not JWT: typ is at+jwt")
        var long = Self.claims
        long["groups"] = .string(String(repeating: "g", count: 20_000))
        #expect(
            try message(header, long).hasPrefix("the token has 2")
                && message(header, long).hasSuffix(" more than 16384"))
    }
}

@Suite struct IdentityTests {
    @Test func `a result is reused as long as it is valid, or shorter`() {
        func identity(_ reusableUntil: Int64?) -> Identity {
            Identity(
                providerSubject: "a", issuer: "b", claims: [:], authTime: UnixTime(seconds: 1),
                issuedAt: UnixTime(seconds: 1), expiresAt: UnixTime(seconds: 100),
                reusableUntil: reusableUntil.map { UnixTime(seconds: $0) })
        }
        #expect(identity(nil).reusableUntil.seconds == 100)
        #expect(identity(50).reusableUntil.seconds == 50)
        #expect(identity(101).reusableUntil.seconds == 100)
    }
}
