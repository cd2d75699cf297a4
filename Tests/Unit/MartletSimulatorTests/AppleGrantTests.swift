import MartletCore
import MartletJSON
import MartletResponder
import Testing

@testable import MartletSimulator

/// The values behind the endpoints, without HTTP.
@Suite struct `Apple simulator's books` {
    private static let now = UnixTime(seconds: 1_700_000_000)

    private static func code(lifetime: Int64 = 300) -> AuthorizationCode {
        AuthorizationCode(
            clientID: "app", subject: "me", redirectURI: nil, challenge: nil, token: ExchangedToken(claims: [:]),
            generation: 0, expiresAt: now.advanced(bySeconds: lifetime))
    }

    private static func redemption(_ code: String, client: String = "app") -> AuthorizationCodes.Redemption {
        .init(code: code, clientID: client, redirectURI: nil, verifier: nil)
    }

    private static func token(_ generation: Int = 0) -> RefreshToken {
        RefreshToken(
            teamID: "TEAM000001", clientID: "app", subject: "me", generation: generation,
            token: ExchangedToken(claims: [:]))
    }

    // MARK: Codes

    @Test func `a code is used up by its client's first attempt, whatever its outcome`() throws {
        var codes = AuthorizationCodes(capacity: 10)
        codes.insert(Self.code(), as: "c1")
        #expect(throws: AppleAPIError.self) { try codes.redeem(Self.redemption("c1", client: "other"), at: Self.now) }
        #expect(try codes.redeem(Self.redemption("c1"), at: Self.now).subject == "me")
        #expect(throws: AppleAPIError.invalidGrant("The code has already been used.")) {
            try codes.redeem(Self.redemption("c1"), at: Self.now)
        }
        codes.insert(Self.code(), as: "c2")
        let wrong = AuthorizationCodes.Redemption(code: "c2", clientID: "app", redirectURI: "x", verifier: nil)
        #expect(throws: AppleAPIError.self) { try codes.redeem(wrong, at: Self.now) }
        #expect(throws: AppleAPIError.invalidGrant("The code has already been used.")) {
            try codes.redeem(Self.redemption("c2"), at: Self.now)
        }
    }

    @Test func `a code expires at its time, and the oldest are dropped`() throws {
        var codes = AuthorizationCodes(capacity: 2)
        codes.insert(Self.code(), as: "c1")
        #expect(throws: AppleAPIError.self) {
            try codes.redeem(Self.redemption("c1"), at: Self.now.advanced(bySeconds: 300))
        }
        codes.insert(Self.code(lifetime: .max), as: "c2")
        codes.insert(Self.code(), as: "c3")
        codes.insert(Self.code(), as: "c4")
        #expect(throws: AppleAPIError.self) { try codes.redeem(Self.redemption("c2"), at: Self.now) }
        for name in ["c3", "c4"] { _ = try codes.redeem(Self.redemption(name), at: Self.now) }
    }

    // MARK: Refresh tokens

    @Test func `verifications are counted from the first one of a day`() throws {
        var tokens = RefreshTokens(capacity: 10, dailyLimit: 1)
        tokens.insert(Self.token(), as: "r")
        func verify(after seconds: Int64) throws {
            _ = try tokens.verify(
                "r", teamID: "TEAM000001", clientID: "app", at: Self.now.advanced(bySeconds: seconds))
        }
        try verify(after: 0)
        for seconds in [0, 1, 86_399] as [Int64] {
            #expect(throws: AppleAPIError.throttled) { try verify(after: seconds) }
        }
        try verify(after: 86_400)
        #expect(throws: AppleAPIError.throttled) { try verify(after: 172_799) }
        try verify(after: .max)
    }

    @Test func `a refresh token is of one team and one client`() throws {
        var tokens = RefreshTokens(capacity: 10, dailyLimit: 0)
        tokens.insert(Self.token(), as: "r")
        for (team, client) in [("TEAM000002", "app"), ("TEAM000001", "App"), ("", "")] {
            let error = #expect(throws: AppleAPIError.self) {
                try tokens.verify("r", teamID: team, clientID: client, at: Self.now)
            }
            #expect(error?.code == "invalid_grant")
        }
        #expect(throws: AppleAPIError.throttled) {
            try tokens.verify("r", teamID: "TEAM000001", clientID: "app", at: Self.now)
        }
    }

    @Test func `an access token lives for an hour`() {
        var tokens = AccessTokens(capacity: 1)
        let token = AccessToken(
            teamID: "TEAM000001", clientID: "app", purpose: .migration, expiresAt: Self.now.advanced(bySeconds: 3600))
        tokens.insert(token, as: "a")
        #expect(tokens.token("a", at: Self.now.advanced(bySeconds: 3599)) != nil)
        #expect(tokens.token("a", at: Self.now.advanced(bySeconds: 3600)) == nil)
        tokens.insert(token, as: "b")
        #expect(tokens.token("a", at: Self.now) == nil && tokens.token("b", at: Self.now) != nil)
    }

    // MARK: Users

    @Test func `what was issued before an ending stays invalid after the next consent`() {
        var users = AppleUsers(capacity: 10)
        let first = users.authorize("me", usesRelay: nil)
        #expect(first == 0 && users.isValid("me", generation: 0))
        #expect(users.authorize("me", usesRelay: nil) == 0, "another login is the same authorization")
        users.set("me", to: .revoked)
        #expect(!users.isValid("me", generation: 0))
        #expect(users.authorize("me", usesRelay: nil) == 1)
        #expect(!users.isValid("me", generation: 0) && users.isValid("me", generation: 1))
        users.set("me", to: .deleted)
        #expect(users.authorize("me", usesRelay: nil) == nil && users["me"].state == .deleted)
        #expect(users["other"].state == .none && !users.isValid("other", generation: 0))
    }

    // MARK: Injected errors

    @Test func `errors are used in order, each for its path and grant type`() throws {
        func fault(_ status: Int) throws -> AppleFault {
            let input = try SimulatorRequest(Array(#"{"status": \#(status)}"#.utf8), members: AppleFault.members)
            return try #require(try AppleFault(input))
        }
        var errors = ErrorInjection()
        #expect(errors.inject(try fault(500), path: "/a", grantType: "x", times: 1) == true)
        #expect(errors.inject(try fault(501), path: "/a", grantType: nil, times: 2) == true)
        #expect(errors.inject(try fault(502), path: "/b", grantType: nil, times: 1) == true)
        func next(_ path: String, _ grantType: String?) -> Int? {
            errors.next(path, grantType: grantType)?.injected?.response.status
        }
        #expect(next("/c", nil) == nil && next("/a", nil) == 501 && next("/a", "x") == 500)
        #expect(next("/a", "x") == 501 && next("/a", "x") == nil && next("/b", "y") == 502 && next("/b", "y") == nil)
        #expect(errors.inject(try fault(503), path: "/a", grantType: nil, times: 1000) == true)
        errors.clear("/a")
        #expect(next("/a", nil) == nil)
    }

    @Test func `client secrets are checked without HTTP, too`() throws {
        let pair = try DeveloperKeyPair(teamID: "TEAM000001", keyID: "KEY0000001")
        var keys = DeveloperKeys()
        #expect(keys.register(pair.key) == true)
        let secret = try pair.clientSecret(clientID: "app", at: Self.now)
        func check(at seconds: Int64, audience: String = AppleSimulator.issuer) throws -> DeveloperKey {
            try ClientSecretChecks(audience: audience, keys: keys, now: Self.now.advanced(bySeconds: seconds))
                .check(secret, clientID: "app")
        }
        #expect(try check(at: 0).teamID == "TEAM000001" && check(at: 299).keyID == "KEY0000001")
        for seconds in [-1, 300, .max, .min] as [Int64] {
            #expect(throws: AppleAPIError.self) { try check(at: seconds) }
        }
        #expect(throws: AppleAPIError.self) { try check(at: 0, audience: "https://example.com") }
    }
}
