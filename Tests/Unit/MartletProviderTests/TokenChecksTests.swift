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
        (.other, "logout+jwt"), (.other, "dpop+jwt"), (.other, "secevent+jwt"), (.other, "jwt"), (.other, "AT+JWT"),
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

    @Test(arguments: ["1.5", "-1", "1e3", "9999999999999", "\"1800000000\"", "true", "null", "[]"])
    func `a time is a whole number of seconds`(text: String) throws {
        let value = try JSON.parse(Array(text.utf8), limits: JSONLimits(maximumDepth: 2, maximumBytes: 100))
        #expect(TokenClaims.time(value) == nil)
        #expect(try Self.code(Self.token(Self.claims(["exp": value]))) == "partner.bad_times")
    }

    @Test func `a claim that is absent is not null`() {
        let claims = TokenClaims(["iss": "a", "nbf": .null, "iss": "b", "expx": 1])
        #expect(claims[.issuer] == "a")
        #expect(claims[.notBefore] == .some(.null))
        for name in TokenClaims.Name.allCases where name != .issuer && name != .notBefore {
            #expect(claims[name] == nil)
        }
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
