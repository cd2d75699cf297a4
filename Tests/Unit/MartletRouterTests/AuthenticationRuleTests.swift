import MartletConfig
import MartletCore
import MartletJSON
import MartletProvider
import Testing

@testable import MartletRouter

/// `max_age` and `acr` in `authorize`.
@Suite struct `Conditions on the authentication` {
    private static let now = UnixTime(seconds: 10_000)

    private static func policy(
        age: Duration? = nil, acr: String? = nil, conditions: [ConditionConfiguration] = [], maximumAge: Duration? = nil
    ) throws -> Policy {
        var configuration = route(authorize: conditions, maximumAge: maximumAge)
        configuration.authenticationRequirement = AuthenticationRequirement(
            maximumAge: age.map { .init(value: $0, index: 1) }, level: acr.map { .init(value: $0, index: 2) })
        return try compiled([configuration]).routes[0].policy
    }

    private static func denial(_ policy: Policy, _ principal: Principal) -> PolicyDenial? {
        if case .denied(let denial) = policy.evaluate(principal, now: now) { denial } else { nil }
    }

    @Test(arguments: [
        (9_401, true), (9_400, false), (0, false), (Int64.min, false), (10_000, true), (99_999, true), (.max, true),
    ])
    func `bound the time since the user authenticated`(authTime: Int64, isAllowed: Bool) throws {
        let policy = try Self.policy(age: .seconds(600))
        let denial = Self.denial(policy, principal(authTime: authTime))
        #expect((denial == nil) == isAllowed)
        guard !isAllowed else { return }
        let stepUp = StepUpRequirement(maximumAge: 600)
        #expect(
            denial == PolicyDenial(.policyAuthenticationTooOld, condition: "authorize[1] max_age", stepUp: stepUp))
    }

    @Test func `hold until the authentication is too old, whatever the clock of the provider`() throws {
        let policy = try Self.policy(age: .seconds(600))
        func until(_ authTime: Int64) -> PolicyDecision {
            policy.evaluate(principal(authTime: authTime), now: Self.now)
        }
        #expect(until(9_900) == .allowed(until: UnixTime(seconds: 10_500)))
        #expect(until(20_000) == .allowed(until: UnixTime(seconds: 10_600)))
    }

    @Test func `count apart from the age of the credential`() throws {
        let policy = try Self.policy(age: .seconds(600), maximumAge: .seconds(9_100))
        let decision = policy.evaluate(principal(authTime: 9_900), now: Self.now)
        #expect(decision == .allowed(until: UnixTime(seconds: 10_100)))
        let old = try Self.policy(age: .seconds(600), maximumAge: .seconds(9_000))
        #expect(
            Self.denial(old, principal(authTime: 9_900)) == PolicyDenial(.policyTooOld, condition: "auth max_age"))
    }

    private static let levels: [(JSONValue?, Bool)] = [
        ("mfa", true), ("MFA", false), ("mfa ", false), ("", false), (nil, false), (.null, false), (["mfa"], false),
        (true, false), (1, false), (["acr": "mfa"], false),
    ]

    @Test(arguments: levels)
    func `require a level, as text and byte by byte`(level: JSONValue?, isAllowed: Bool) throws {
        let policy = try Self.policy(acr: "mfa")
        let claims: JSONObject = level.map { JSONObject([("acr", $0)]) } ?? [:]
        let denial = Self.denial(policy, principal(claims, authTime: 0))
        #expect((denial == nil) == isAllowed)
        guard !isAllowed else { return }
        let stepUp = StepUpRequirement(acr: "mfa")
        #expect(denial == PolicyDenial(.policyAuthenticationLevel, condition: "authorize[2] acr", stepUp: stepUp))
    }

    @Test func `are named together in one challenge`() throws {
        let policy = try Self.policy(age: .seconds(600), acr: "mfa")
        let both = StepUpRequirement(maximumAge: 600, acr: "mfa")
        #expect(Self.denial(policy, principal(authTime: 0))?.stepUp == both)
        #expect(
            Self.denial(policy, principal(["acr": "mfa"], authTime: 0))?.stepUp == StepUpRequirement(maximumAge: 600))
        #expect(Self.denial(policy, principal(authTime: 10_000))?.stepUp == StepUpRequirement(acr: "mfa"))
        #expect(Self.denial(policy, principal(["acr": "mfa"], authTime: 10_000)) == nil)
    }

    @Test func `come after what another authentication cannot mend`() throws {
        let staff = ConditionConfiguration.claim(name: "staff", test: .equals(.bool(true)), inverted: false)
        let policy = try Self.policy(age: .seconds(600), conditions: [staff])
        let denial = Self.denial(policy, principal(authTime: 0))
        #expect(denial == PolicyDenial(.policyClaimMissing, condition: "authorize[0] staff"))
    }

    @Test func `need a principal, and are described`() throws {
        let policy = try Self.policy(age: .seconds(600), acr: "mfa")
        #expect(!policy.isEmpty)
        #expect(policy.evaluate(nil, now: Self.now) == .denied(PolicyDenial(.policyNoPrincipal)))
        let checks = policy.explain(principal(["acr": "\u{1b}pwd"], authTime: 9_900), now: Self.now)
        #expect(checks.map(\.check) == ["authorize[1] max_age", "authorize[2] acr"])
        #expect(checks.map(\.failure) == [nil, .policyAuthenticationLevel])
        #expect(checks[0].detail == "authenticated in the last 600 s: authenticated at 9900, now 10000")
        #expect(checks[1].detail.hasPrefix("authenticated with acr 'mfa': acr is "))
        #expect(checks.allSatisfy { $0.detail.utf8.allSatisfy { (0x20...0x7E).contains($0) } })
    }

    @Test func `are rejected on routes without authentication`() {
        var configuration = route(auth: .none)
        configuration.authenticationRequirement.level = .init(value: "mfa", index: 0)
        #expect(Compilation([configuration]).codes == [.configBadValue])
    }
}

/// The names of conditions in logs and explanations.
@Suite struct `A condition's name` {
    private static func claim(_ name: String) -> ConditionConfiguration {
        .claim(name: ClaimPath(name), test: .exists(true), inverted: false)
    }

    private static let names: [(ConditionConfiguration, String)] = [
        (claim("email_verified"), "email_verified"), (claim("a b"), "a b"), (claim("a\"b\\c%"), "a%22b%5Cc%25"),
        (claim("\u{E9}\u{1b}[0m\u{202E}"), "%C3%A9%1B[0m%E2%80%AE"),
        (claim(String(repeating: "n", count: 100)), String(repeating: "n", count: 64)),
        (.any([claim("a"), claim("b")]), "any (a, b)"), (.any([claim("a"), .any([claim("b")])]), "any (a, any (b))"),
        (.any(["a", "b", "c", "d", "e"].map(claim)), "any (a, b, c, d, ...)"),
    ]

    @Test(arguments: names)
    func `is safe, and short`(configuration: ConditionConfiguration, name: String) throws {
        let condition = try Condition(configuration, depth: 0)
        #expect(condition.subject == name)
        #expect(Policy.Rule(condition: condition, index: 3).name == "authorize[3] \(name)")
    }
}
