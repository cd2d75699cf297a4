import MartletConfig
import MartletCore
import MartletJSON
import MartletProvider
import Testing

@testable import MartletRouter

/// One test of one claim, plain and inverted.
struct ConditionCase: Sendable, CustomTestStringConvertible {
    let test: ConditionConfiguration.Test
    let claim: JSONValue?
    /// `nil` when it holds.
    let failure: ErrorCode?
    let invertedFailure: ErrorCode?

    /// Decided: it holds, and inverted it does not.
    static func holds(_ test: ConditionConfiguration.Test, _ claim: JSONValue?) -> ConditionCase {
        ConditionCase(test: test, claim: claim, failure: nil, invertedFailure: .policyClaimMismatch)
    }

    /// Decided: it does not hold, and inverted it does.
    static func fails(_ test: ConditionConfiguration.Test, _ claim: JSONValue?) -> ConditionCase {
        ConditionCase(test: test, claim: claim, failure: .policyClaimMismatch, invertedFailure: nil)
    }

    /// Undecided: it fails both ways.
    static func undecided(
        _ test: ConditionConfiguration.Test, _ claim: JSONValue?, _ code: ErrorCode = .policyClaimType
    ) -> ConditionCase {
        ConditionCase(
            test: test, claim: claim, failure: code, invertedFailure: code == .policyClaimMissing ? nil : code)
    }

    var testDescription: String { "\(test) of \(claim.map { "\($0)" } ?? "nothing")" }
}

/// A decision without the name of its condition.
enum Decided: Equatable, Sendable {
    case allowed(until: UnixTime)
    case denied(ErrorCode)
}

extension Policy {
    fileprivate func decide(_ principal: Principal?, now: UnixTime) -> Decided {
        switch evaluate(principal, now: now) {
        case .allowed(let until): .allowed(until: until)
        case .denied(let denial): .denied(denial.code)
        }
    }
}

@Suite struct Policies {
    private static let now = UnixTime(seconds: 2_000)
    private static let forever = Decided.allowed(until: UnixTime(seconds: .max))

    private static func number(_ text: String) -> JSONValue {
        (try? JSON.parse(Array(text.utf8), limits: JSONLimits(maximumDepth: 2, maximumBytes: 100))) ?? .null
    }

    private static let missing: [ConditionCase] = [
        .equals(.bool(false)), .equals(.text("")), .isIn([.text("x"), .number(0)]), .contains(.text("x")),
        .matches(located(".*")), .greaterThan(0), .lessThan(0),
    ].flatMap { (test: ConditionConfiguration.Test) -> [ConditionCase] in
        [.undecided(test, nil, .policyClaimMissing), .undecided(test, .null, .policyClaimMissing)]
    }

    static let cases: [ConditionCase] =
        missing + [
            // equals
            .holds(.equals(.bool(true)), true), .fails(.equals(.bool(true)), false),
            .undecided(.equals(.bool(true)), "true"),
            .undecided(.equals(.bool(true)), 1), .undecided(.equals(.bool(true)), [true]),
            .undecided(.equals(.bool(true)), [:]),
            .holds(.equals(.text("a")), "a"), .fails(.equals(.text("a")), "A"), .fails(.equals(.text("a")), "a "),
            .undecided(.equals(.text("1")), 1), .undecided(.equals(.text("true")), true),
            .undecided(.equals(.text("a")), ["a"]),
            .fails(.equals(.text("\u{e9}")), "e\u{301}"), .fails(.equals(.text("K")), "\u{212A}"),
            .fails(.equals(.text("a")), "a\0"), .holds(.equals(.text("")), ""),
            .holds(.equals(.number(3)), 3), .holds(.equals(.number(3)), number("3.0")),
            .holds(.equals(.number(3)), number("3e0")),
            .fails(.equals(.number(3)), 4), .undecided(.equals(.number(3)), "3"), .undecided(.equals(.number(1)), true),
            .holds(.equals(.number(0)), number("-0")), .holds(.equals(.number(0.5)), number("0.5")),
            .fails(.equals(.number(9_007_199_254_740_991)), number("9007199254740992")),
            .fails(.equals(.number(1)), number("9223372036854775807")),
            .undecided(.equals(.number(1)), number("1e999")),
            // in
            .holds(.isIn([.text("a"), .text("b")]), "b"), .fails(.isIn([.text("a"), .text("b")]), "c"),
            .undecided(.isIn([.text("a"), .text("1")]), 1), .holds(.isIn([.text("a"), .number(1)]), 1),
            .fails(.isIn([.text("a"), .number(1)]), 2), .undecided(.isIn([.text("a"), .number(1)]), true),
            .holds(.isIn([.bool(false)]), false), .undecided(.isIn([.text("a")]), ["a"]),
            .undecided(.isIn([.text("a")]), [:]),
            // contains
            .holds(.contains(.text("admin")), ["user", "admin"]),
            .fails(.contains(.text("admin")), ["user", "nonadmin"]),
            .fails(.contains(.text("admin")), []), .undecided(.contains(.text("1")), [1]),
            .holds(.contains(.number(1)), [2, 1]), .fails(.contains(.number(1)), [2]),
            .undecided(.contains(.number(1)), ["1"]),
            .holds(.contains(.text("a")), [1, "a"]), .undecided(.contains(.text("a")), [1, "b"]),
            .undecided(.contains(.text("a")), [["a"]]), .undecided(.contains(.text("a")), [nil]),
            .holds(.contains(.bool(true)), [true]), .holds(.contains(.text("@example.")), "a@example.com"),
            .holds(.contains(.text("com")), "a@example.com"), .holds(.contains(.text("a@")), "a@example.com"),
            .fails(.contains(.text("@Example.")), "a@example.com"), .fails(.contains(.text("longer than it")), "short"),
            .fails(.contains(.text("\u{e9}")), "e\u{301}"), .holds(.contains(.text("e")), "e\u{301}"),
            .undecided(.contains(.number(1)), "1"), .undecided(.contains(.text("1")), 1),
            .undecided(.contains(.text("a")), ["a": 1]),
            .undecided(.contains(.bool(true)), true),
            // matches
            .holds(.matches(located("[^@]+@example\\.com")), "a@example.com"),
            .fails(.matches(located("[^@]+@example\\.com")), "a@evil@example.com"),
            .fails(.matches(located("[^@]+@example\\.com")), "a@example.com.evil.org"),
            .fails(.matches(located("a|b")), "ab"), .fails(.matches(located("^a$")), "a\n"),
            .fails(.matches(located("a.c")), "a\nc"),
            .holds(.matches(located(".")), "\u{1F600}"), .holds(.matches(located("")), ""),
            .fails(.matches(located("")), "a"),
            .fails(.matches(located(".")), "e\u{301}"), .undecided(.matches(located("1")), 1),
            .undecided(.matches(located("true")), true), .undecided(.matches(located("a")), ["a"]),
            .undecided(.matches(located(".*")), [:]),
            .undecided(
                .matches(located("(a+)+b")), .string(String(repeating: "a", count: 2_000) + "bc"), .policyMatchLimit),
            // exists
            .holds(.exists(true), true), .holds(.exists(true), ""), .holds(.exists(true), []),
            .fails(.exists(true), nil),
            .fails(.exists(true), .null), .holds(.exists(false), nil), .holds(.exists(false), .null),
            .fails(.exists(false), false),
            // gt, lt
            .holds(.greaterThan(1), 2), .fails(.greaterThan(1), 1), .fails(.greaterThan(1), 0),
            .holds(.greaterThan(1), number("1.5")),
            .holds(.lessThan(1), 0), .fails(.lessThan(1), 1), .fails(.lessThan(1), 2), .holds(.lessThan(0.5), 0),
            .fails(.greaterThan(1.5), 1), .holds(.greaterThan(0), number("9223372036854775807")),
            .holds(.lessThan(0), number("-9223372036854775808")),
            .holds(.greaterThan(0), number("99999999999999999999")),
            .undecided(.greaterThan(1), "2"), .undecided(.lessThan(1), "0"), .undecided(.greaterThan(0), true),
            .undecided(.lessThan(1), [0]), .undecided(.greaterThan(0), [:]),
            .undecided(.greaterThan(0), number("1e999")),
        ]

    @Test(arguments: cases) func `decide by type and value, and fail if undecided`(_ item: ConditionCase) throws {
        let claims: JSONObject = item.claim.map { JSONObject([("other", true), ("c", $0)]) } ?? ["other": true]
        for (inverted, failure) in [(false, item.failure), (true, item.invertedFailure)] {
            let condition = ConditionConfiguration.claim(name: "c", test: item.test, inverted: inverted)
            let policy = try policy([condition])
            let expected = failure.map { Decided.denied($0) } ?? Self.forever
            #expect(policy.decide(principal(claims), now: Self.now) == expected)
            let checks = policy.explain(principal(claims), now: Self.now)
            #expect(checks.map(\.failure) == [failure])
        }
    }

    private func policy(_ conditions: [ConditionConfiguration], maximumAge: Duration? = nil) throws -> Policy {
        try compiled([route(authorize: conditions, maximumAge: maximumAge)]).routes[0].policy
    }

    private static func claim(_ name: String, _ test: ConditionConfiguration.Test) -> ConditionConfiguration {
        .claim(name: ClaimPath(name), test: test, inverted: false)
    }

    @Test func `hold when all conditions hold`() throws {
        let policy = try policy([Self.claim("a", .equals(.bool(true))), Self.claim("b", .exists(true))])
        #expect(policy.decide(principal(["a": true, "b": 1]), now: Self.now) == Self.forever)
        #expect(policy.decide(principal(["a": true]), now: Self.now) == .denied(.policyClaimMismatch))
        #expect(policy.decide(principal(["b": 1]), now: Self.now) == .denied(.policyClaimMissing))
    }

    @Test(
        arguments: [
            ["_claim_names": ["groups": "src1"]], ["hasgroups": true], ["hasgroups": "true"],
        ] as [JSONObject])
    func `fail if the issuer says that a claim is elsewhere`(claims: JSONObject) throws {
        let elsewhere = Decided.denied(.policyClaimElsewhere)
        let staff = Self.claim("groups", .contains(.text("staff")))
        #expect(try policy([staff]).decide(principal(claims), now: Self.now) == elsewhere)
        #expect(
            try policy([.any([Self.claim("a", .exists(true)), staff])]).decide(principal(claims), now: Self.now)
                == elsewhere)
        // What is not in the token is not absent.
        for test in [ConditionConfiguration.Test.exists(false), .exists(true)] {
            #expect(try policy([Self.claim("groups", test)]).decide(principal(claims), now: Self.now) == elsewhere)
        }
        let notBanned = ConditionConfiguration.claim(name: "groups", test: .contains(.text("banned")), inverted: true)
        #expect(try policy([notBanned]).decide(principal(claims), now: Self.now) == elsewhere)
        #expect(
            try policy([Self.claim("role", .contains(.text("staff")))]).decide(principal(claims), now: Self.now)
                == .denied(.policyClaimMissing))
        var there = claims
        there["groups"] = ["staff"]
        #expect(try policy([staff]).decide(principal(there), now: Self.now) == Self.forever)
        var other = claims
        other["a"] = 1
        #expect(
            try policy([.any([Self.claim("a", .exists(true)), staff])]).decide(principal(other), now: Self.now)
                == Self.forever)
    }

    @Test func `hold with any of a nested list`() throws {
        let policy = try policy([
            .any([
                Self.claim("a", .equals(.bool(true))),
                .any([Self.claim("b", .equals(.number(1))), Self.claim("c", .exists(true))]),
            ])
        ])
        #expect(policy.decide(principal(["a": true]), now: Self.now) == Self.forever)
        #expect(policy.decide(principal(["b": 1]), now: Self.now) == Self.forever)
        #expect(policy.decide(principal(["c": false]), now: Self.now) == Self.forever)
        #expect(policy.decide(principal(["a": "true", "b": 2]), now: Self.now) == .denied(.policyClaimMismatch))
    }

    @Test(arguments: [
        (1_000, 2_599, Decided.allowed(until: UnixTime(seconds: 2_600))), (1_000, 2_600, .denied(.policyTooOld)),
        (1_000, 9_000, .denied(.policyTooOld)), (3_000, 2_000, .allowed(until: UnixTime(seconds: 4_600))),
        (.max, 2_000, .allowed(until: UnixTime(seconds: .max))), (.min, 2_000, .denied(.policyTooOld)),
    ])
    func `bound the age of the credential`(_ issuedAt: Int64, _ now: Int64, _ decision: Decided) throws {
        let policy = try policy([], maximumAge: .seconds(1_600))
        #expect(policy.decide(principal(issuedAt: issuedAt), now: UnixTime(seconds: now)) == decision)
    }

    @Test func `require a principal unless they are empty`() throws {
        #expect(try policy([]).decide(nil, now: Self.now) == Self.forever)
        #expect(try policy([]).isEmpty)
        #expect(try policy([], maximumAge: .seconds(1)).decide(nil, now: Self.now) == .denied(.policyNoPrincipal))
        let absence = try policy([Self.claim("banned", .exists(false))])
        #expect(absence.decide(nil, now: Self.now) == .denied(.policyNoPrincipal))
        #expect(absence.explain(nil, now: Self.now).map(\.failure) == [.policyNoPrincipal])
        #expect(try policy([]).explain(nil, now: Self.now).isEmpty)
    }

    private static let role = ConditionConfiguration.claim(
        name: ClaimPath("realm_access", "roles"), test: .contains(.text("admin")), inverted: false)

    @Test func `test a member of a claim, and name its path`() throws {
        let policy = try policy([Self.role])
        #expect(
            policy.decide(principal(["realm_access": ["roles": ["user", "admin"]]]), now: Self.now) == Self.forever)
        for (claims, code): (JSONObject, ErrorCode) in [
            (["realm_access": ["roles": ["user"]]], .policyClaimMismatch), ([:], .policyClaimMissing),
            (["realm_access": [:]], .policyClaimMissing), (["realm_access": .null], .policyClaimMissing),
            (["realm_access": ["roles": .null]], .policyClaimMissing), (["realm_access": "text"], .policyClaimType),
            (["realm_access": [["roles": ["admin"]]]], .policyClaimType), (["roles": ["admin"]], .policyClaimMissing),
            (["realm_access.roles": ["admin"]], .policyClaimMissing),
        ] {
            #expect(policy.decide(principal(claims), now: Self.now) == .denied(code), "\(claims)")
        }
        let check = try #require(policy.explain(principal([:]), now: Self.now).first)
        #expect(check.check == "authorize[0] [realm_access, roles]")
        #expect(check.detail == "claim '[realm_access, roles]' contains 'admin': [realm_access, roles] is absent")
    }

    @Test func `may hold for callers without the claim, but not with another form of it`() throws {
        for path in [ClaimPath("plan"), ClaimPath("org", "plan")] {
            for inverted in [false, true] {
                let condition = ConditionConfiguration.claim(
                    name: path, test: .equals(.text("gold")), inverted: inverted, orAbsent: true)
                let policy = try policy([condition])
                func decide(_ value: JSONValue?) -> Decided {
                    let claims: JSONObject = value.map { ["plan": $0, "org": ["plan": $0]] } ?? [:]
                    return policy.decide(principal(claims), now: Self.now)
                }
                #expect(decide(nil as JSONValue?) == Self.forever && decide(JSONValue.null) == Self.forever)
                #expect(decide("gold") == (inverted ? .denied(.policyClaimMismatch) : Self.forever))
                #expect(decide("iron") == (inverted ? Self.forever : .denied(.policyClaimMismatch)))
                #expect(decide(1) == .denied(.policyClaimType))
            }
        }
        let nested = ConditionConfiguration.claim(
            name: ClaimPath("org", "plan"), test: .equals(.text("gold")), inverted: false, orAbsent: true)
        #expect(
            try policy([nested]).decide(principal(["org": "text"]), now: Self.now) == .denied(.policyClaimType))
        #expect(
            try policy([nested]).explain(principal([:]), now: Self.now).first?.detail
                == "claim '[org, plan]' equals 'gold' or absent: [org, plan] is absent")
    }

    @Test func `describe their conditions`() throws {
        let policy = try policy(
            [
                Self.claim("email_verified", .equals(.bool(true))),
                .claim(name: "plan", test: .isIn([.text("pro"), .number(2)]), inverted: true),
                .any([Self.claim("n", .greaterThan(1)), Self.claim("m", .matches(located("a+")))]),
            ], maximumAge: .seconds(600))
        let checks = policy.explain(principal(["email_verified": "true", "n": 1, "m": "\u{1b}b"]), now: Self.now)
        #expect(
            checks.map(\.check) == [
                "authorize[0] email_verified", "authorize[1] plan", "authorize[2] any (n, m)", "auth max_age",
            ])
        #expect(
            checks.map(\.failure) == [.policyClaimType, nil, .policyClaimMismatch, .policyTooOld])
        #expect(checks[0].detail == #"claim 'email_verified' equals true: email_verified is "true""#)
        #expect(checks[1].detail == "claim 'plan' not: in ['pro', 2]: plan is absent")
        #expect(checks[2].detail.hasPrefix("any of (claim 'n' gt 1; claim 'm' matches a+): n is 1"))
        #expect(checks[3].detail.hasPrefix("younger than 600 s: "))
        #expect(checks.allSatisfy { $0.detail.utf8.allSatisfy { (0x20...0x7E).contains($0) } })
    }

    @Test(arguments: [
        [ConditionConfiguration.any([])], [claim("a", .isIn([]))], [claim("a", .contains(.text("")))],
        [claim("a", .matches(located("(")))], [claim("a", .equals(.number(9_007_199_254_740_992)))],
        [claim("a", .greaterThan(.infinity))], [claim("a", .lessThan(.nan))], [claim("a", .isIn([.number(-1e300)]))],
        [(0..<20).reduce(claim("a", .exists(true))) { inner, _ in .any([inner]) }],
    ])
    func `are rejected if they can never match`(_ conditions: [ConditionConfiguration]) {
        #expect(Compilation([route(authorize: conditions)]).codes == [.configBadValue])
    }

    @Test func `are rejected on routes without authentication`() {
        let conditions = [Self.claim("a", .exists(true))]
        #expect(Compilation([route(auth: .none, authorize: conditions)]).codes == [.configBadValue])
        #expect(Compilation([route(auth: .none, maximumAge: .seconds(1))]).codes == [.configBadValue])
        #expect(Compilation([route(auth: .optional(providers: []), authorize: conditions)]).codes == [])
    }
}
