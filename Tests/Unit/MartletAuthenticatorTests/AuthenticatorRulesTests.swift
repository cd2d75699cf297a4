import MartletConfig
import MartletCore
import MartletJSON
import MartletProvider
import MartletResponder
import Testing

@testable import MartletAuthenticator

@Suite struct AuthenticatorRulesTests {
    // MARK: Forms of credentials

    /// A route, a form, and why the route does not accept it.
    private static let forms: [(String, CredentialForm, ErrorCode?)] = [
        ("none", .session, nil), ("none", .direct, nil), ("none", .basic, "auth.scheme_not_accepted"),
        ("required", .session, nil), ("required", .direct, nil), ("required", .basic, "auth.scheme_not_accepted"),
        ("basic", .session, nil), ("basic", .direct, nil), ("basic", .basic, nil),
        ("passwords", .direct, nil), ("passwords", .basic, nil),
        ("sessions", .session, nil), ("sessions", .direct, "auth.direct_not_accepted"),
        ("sessions", .basic, "auth.scheme_not_accepted"),
        ("direct", .session, "auth.sessions_not_accepted"), ("direct", .direct, nil),
        ("direct", .basic, "auth.scheme_not_accepted"),
    ]

    @Test(arguments: forms)
    func `a form that the route does not accept is an invalid credential`(
        route: String, form: CredentialForm, reason: ErrorCode?
    ) {
        let bench = AuthenticatorBench()
        let failure = bench.rejection(of: form, on: route)
        #expect(failure?.reason == reason && failure?.status == (reason == nil ? nil : 401))
    }

    @Test func `a store that is unavailable rejects sessions only where the route accepts them`() {
        var bench = AuthenticatorBench()
        bench.authenticator.rejectSessions(true)
        let session = bench.rejection(of: .session, on: "required")
        #expect(session?.status == 503 && session?.reason == "auth.store_down" && session?.retryAfter == 1)
        let elsewhere = bench.rejection(of: .session, on: "direct")
        #expect(elsewhere?.status == 401 && elsewhere?.reason == "auth.sessions_not_accepted")
        let direct = bench.rejection(of: .direct, on: "required")
        let basic = bench.rejection(of: .basic, on: "basic")
        #expect(direct == nil && basic == nil)
        bench.authenticator.rejectSessions(false)
        let again = bench.rejection(of: .session, on: "required")
        #expect(again?.reason == nil)
    }

    @Test func `without a store, its outage is no reason`() {
        var bench = AuthenticatorBench(hasSessions: false)
        bench.authenticator.rejectSessions(true)
        let session = bench.rejection(of: .session, on: "required")
        #expect(session?.status == 401 && session?.reason == "auth.sessions_not_accepted")
    }

    @Test(arguments: [
        ("required", true, true), ("required", false, true), ("sessions", true, true), ("sessions", false, false),
        ("direct", true, false), ("direct", false, true),
    ])
    func `a route accepts the kinds of tokens that it lists`(route: String, isSession: Bool, expected: Bool) {
        let bench = AuthenticatorBench()
        let accepts = bench.authenticator.acceptsToken(isSession: isSession, on: bench.index(route))
        #expect(accepts == expected)
    }

    @Test func `without a store, no route accepts sessions`() {
        let bench = AuthenticatorBench(hasSessions: false)
        for route in ["required", "sessions", "direct"] {
            let session = bench.authenticator.acceptsToken(isSession: true, on: bench.index(route))
            #expect(!session, "\(route)")
        }
        let direct = bench.authenticator.acceptsToken(isSession: false, on: bench.index("required"))
        #expect(direct)
    }

    @Test(arguments: [
        ("none", true), ("optional", true), ("required", true), ("admins", false), ("optional admins", false),
        ("recent", false),
    ])
    func `a policy with any condition allows no anonymous request`(route: String, expected: Bool) {
        let bench = AuthenticatorBench()
        let accepts = bench.authenticator.acceptsAnonymous(bench.index(route), at: bench.time)
        #expect(accepts == expected)
    }

    // MARK: Providers

    private static let principals: [(String, String, Int32?)] = [
        ("required", "tokens", 0), ("other", "others", 1), ("two", "tokens", 0), ("two", "others", 1),
        ("basic", "passwords", 2), ("required", "others", nil), ("none", "tokens", nil), ("required", "Tokens", nil),
        ("required", "token", nil), ("required", "", nil),
    ]

    @Test(arguments: principals)
    func `the provider of a principal is one of the route's, by its name`(
        route: String, name: String, expected: Int32?
    ) throws {
        let bench = AuthenticatorBench()
        let principal = try AuthenticatorBench.verified(by: name).get().principal
        let provider = bench.authenticator.provider(of: principal, bench.index(route))
        #expect(provider == expected)
    }

    @Test func `names of providers are compared by their bytes`() throws {
        let rules = Samples.rules(
            [Samples.route("only", .required(providers: ["K"]))], providers: [Samples.handle("K", .bearerPrefix("k-"))])
        let authenticator = Authenticator(rules)
        let kelvin = "\u{212A}"
        let same = try AuthenticatorBench.verified(by: "K").get().principal
        let equivalent = try AuthenticatorBench.verified(by: kelvin).get().principal
        let found = authenticator.provider(of: same, 0)
        let other = authenticator.provider(of: equivalent, 0)
        #expect(kelvin == "K" && found == 0 && other == nil)
    }

    private static let indices: [(String, Int32, Bool)] = [
        ("required", 0, true), ("required", 1, false), ("two", 1, true), ("two", 2, false), ("none", 0, false),
        ("required", -1, false), ("two", .max, false),
    ]

    @Test(arguments: indices)
    func `a route accepts a provider by its index`(route: String, provider: Int32, expected: Bool) {
        let bench = AuthenticatorBench()
        let accepts = bench.authenticator.accepts(provider: provider, on: bench.index(route))
        #expect(accepts == expected)
    }

    // MARK: What verifies

    private static let targets: [(String, CredentialForm, String, String?)] = [
        ("required", .session, "mat_1", "sessions"), ("direct", .session, "mat_1", "sessions"),
        ("none", .session, "mat_1", "sessions"), ("required", .direct, "t-1", "tokens"),
        ("two", .direct, "t-1", "tokens"), ("two", .direct, "o-1", "others"), ("two", .direct, "x-1", nil),
        // The only provider of a route verifies every token.
        ("required", .direct, "x-1", "tokens"), ("passwords", .direct, "t-1", nil), ("none", .direct, "t-1", nil),
        ("basic", .direct, "x-1", "tokens"), ("basic", .basic, "YTpi", "passwords"),
        ("passwords", .basic, "YTpi", "passwords"), ("required", .basic, "YTpi", nil),
    ]

    @Test(arguments: targets)
    func `a credential is verified by the store, or by a provider of its route`(
        route: String, form: CredentialForm, value: String, expected: String?
    ) {
        let bench = AuthenticatorBench()
        let target = bench.authenticator.verificationTarget(form, Array(value.utf8), bench.index(route))
        #expect(Samples.name(of: target) == expected)
    }

    @Test func `without a store, nothing verifies sessions`() {
        let bench = AuthenticatorBench(hasSessions: false)
        let target = bench.authenticator.verificationTarget(.session, Array("mat_1".utf8), bench.index("required"))
        #expect(Samples.name(of: target) == nil)
    }

    @Test func `names and passwords are verified by the first provider of the route that accepts them`() {
        let rules = Samples.rules(
            [Samples.route("only", .required(providers: ["tokens", "second", "first"]))],
            providers: [
                Samples.handle("first", .basic), Samples.handle("second", .bearerPrefix("s-"), .basic),
                Samples.handle("tokens", .bearerPrefix("t-")),
            ])
        let authenticator = Authenticator(rules)
        let target = authenticator.verificationTarget(.basic, Array("YTpi".utf8), 0)
        #expect(Samples.name(of: target) == "second")
    }
}

@Suite struct PrincipalCacheTests {
    @Test func `sessions have one scope, other credentials one per plan and form`() {
        let bench = AuthenticatorBench()
        let routes = ["none", "optional", "required", "other", "basic", "optional basic", "passwords"]
        let plans: [UInt32] = [0, 1, 1, 2, 4, 4, 5]
        for (route, plan) in zip(routes, plans) {
            let index = bench.index(route)
            let session = bench.authenticator.principalScope(.session, index)
            let direct = bench.authenticator.principalScope(.direct, index)
            let basic = bench.authenticator.principalScope(.basic, index)
            #expect([session, direct, basic] == [0, plan, plan | 0x8000_0000], "\(route)")
        }
    }

    /// How many principals are cached after one request.
    private func cached(
        _ route: String, _ authorization: String, by provider: String, expires: Int64 = 2_000
    ) -> Int {
        var bench = AuthenticatorBench()
        _ = bench.decide(
            route, authorization, result: AuthenticatorBench.verified(by: provider, expires: expires))
        return bench.authenticator.principals.count
    }

    @Test func `a principal is cached where a request can use it`() {
        // The route's decision is cached just as long, and no other route uses the same providers.
        #expect(cached("other", "Bearer o-1", by: "others") == 0)
        #expect(cached("required", "Bearer t-1", by: "tokens") == 1)
        // Other routes may accept the session; verifying a name and password is expensive.
        #expect(cached("other", "Bearer mat_1", by: "others") == 1)
        #expect(cached("passwords", "Basic YTpi", by: "passwords") == 1)
        // Its provider is not on this route, but may be on another.
        #expect(cached("other", "Bearer mat_1", by: "tokens") == 1)
    }

    @Test(arguments: [(999, 0), (1_000, 0), (1_001, 1)] as [(Int64, Int)])
    func `a principal that has expired is not cached`(expires: Int64, count: Int) {
        #expect(cached("required", "Bearer t-1", by: "tokens", expires: expires) == count)
    }

    @Test func `a principal is cached where its decision expires earlier`() {
        var route = Samples.route("only", .required(providers: ["tokens"]))
        route.maximumAge = .seconds(100)
        var bench = AuthenticatorBench()
        bench.authenticator = Authenticator(
            Samples.rules([route], providers: [Samples.handle("tokens", .bearerPrefix("t-"))]))
        let first = bench.decide("only", AdmissionCase.token, result: AuthenticatorBench.verified())
        let count = bench.authenticator.principals.count
        // Issued at 950.
        bench.advance(seconds: 50)
        let second = bench.decide("only", AdmissionCase.token)
        let misses = bench.authenticator.misses
        #expect(first == .authorized(consumesCredential: true) && count == 1)
        #expect(second == .rejected(403, "policy.too_old") && misses == 0)
    }

    @Test func `a principal that is too large is not cached, but its decision is`() {
        var bench = AuthenticatorBench()
        let claims: JSONObject = ["role": .string(String(repeating: "a", count: 9 * 1_024 * 1_024))]
        let first = bench.decide("required", AdmissionCase.token, result: Samples.verified(claims: claims))
        let (principals, decisions) = (bench.authenticator.principals.count, bench.authenticator.decisionCount)
        let elsewhere = bench.decide("optional", AdmissionCase.token)
        #expect(first == .authorized(consumesCredential: true) && principals == 0 && decisions == 1)
        #expect(elsewhere == .pending(by: "tokens"))
    }
}

extension AuthenticatorBench {
    /// Why a route does not accept credentials of a form; `nil` if it does.
    fileprivate func rejection(of form: CredentialForm, on route: String) -> Failure? {
        let index = index(route)
        return authenticator.accepts(form, on: index) ? nil : authenticator.rejection(of: form, on: index)
    }
}
