import MartletCore
import MartletProvider
import MartletResponder
import Testing

@testable import MartletAuthenticator

/// One request to an authenticator that has seen none before.
struct AdmissionCase: CustomTestStringConvertible, Sendable {
    let route: String
    let authorization: String?
    let expected: Decided

    var testDescription: String { "\(route), \(authorization ?? "no credential")" }

    init(_ route: String, _ authorization: String?, _ expected: Decided) {
        self.route = route
        self.authorization = authorization
        self.expected = expected
    }

    static let token = "Bearer t-1"
    static let session = "Bearer mat_1"
    static let basic = "Basic YTpi"
    static let missing = Decided.rejected(401, "auth.credential_missing")
    static let otherScheme = Decided.rejected(401, "auth.scheme_not_accepted")
    static let malformed = Decided.rejected(401, "auth.malformed_authorization")

    /// Every mode with every form of credential.
    static let modes = withoutAuthentication + mode("optional") + mode("required")

    private static let withoutAuthentication: [AdmissionCase] = [
        nil, token, session, basic, "Digest a", "Bearer", "",
    ].map { AdmissionCase("none", $0, .authorized(consumesCredential: false)) }

    private static func mode(_ mode: String) -> [AdmissionCase] {
        [
            AdmissionCase(mode, nil, mode == "optional" ? .authorized(consumesCredential: false) : missing),
            AdmissionCase(mode, token, .pending(by: "tokens")),
            AdmissionCase(mode, "bearer   t-1", .pending(by: "tokens")),
            AdmissionCase(mode, session, .pending(by: "sessions")),
            AdmissionCase(mode, "Bearer mrt_1", .pending(by: "sessions")),
            AdmissionCase(mode, basic, otherScheme),
            AdmissionCase(mode, "Digest a", otherScheme),
            AdmissionCase(mode, "Bearer", malformed),
            AdmissionCase(mode, "Bearer a b", malformed),
            AdmissionCase(mode, "Bearer a, Bearer b", malformed),
            AdmissionCase(mode, "Basic", malformed),
            AdmissionCase(mode, "", malformed),
        ]
    }

    /// What routes accept.
    static let routes: [AdmissionCase] = [
        AdmissionCase("basic", nil, missing),
        AdmissionCase("basic", basic, .pending(by: "passwords")),
        AdmissionCase("basic", token, .pending(by: "tokens")),
        AdmissionCase("basic", "Basic a b", malformed),
        AdmissionCase("optional basic", nil, .authorized(consumesCredential: false)),
        AdmissionCase("optional basic", basic, .pending(by: "passwords")),
        AdmissionCase("passwords", basic, .pending(by: "passwords")),
        AdmissionCase("passwords", token, .rejected(401, "auth.no_provider_claims_it")),
        AdmissionCase("two", token, .pending(by: "tokens")),
        AdmissionCase("two", "Bearer o-1", .pending(by: "others")),
        AdmissionCase("two", "Bearer x-1", .rejected(401, "auth.no_provider_claims_it")),
        AdmissionCase("other", token, .pending(by: "others")),
        AdmissionCase("sessions", session, .pending(by: "sessions")),
        AdmissionCase("sessions", token, .rejected(401, "auth.direct_not_accepted")),
        AdmissionCase("sessions", basic, otherScheme),
        AdmissionCase("direct", token, .pending(by: "tokens")),
        AdmissionCase("direct", session, .rejected(401, "auth.sessions_not_accepted")),
        AdmissionCase("admins", nil, missing),
        AdmissionCase("optional admins", nil, missing),
        AdmissionCase("optional admins", token, .pending(by: "tokens")),
    ]
}

@Suite struct AuthenticatorTests {
    private static let token = AdmissionCase.token

    @Test(arguments: AdmissionCase.modes + AdmissionCase.routes)
    func `decides by mode, form of credential and route`(item: AdmissionCase) {
        var bench = AuthenticatorBench()
        let decided = bench.decide(item.route, item.authorization)
        #expect(decided == item.expected)
        if item.route == "none" { #expect(bench.headers.isEmpty) }
        let (hits, isPending) = (bench.authenticator.hits, bench.authenticator.misses == 1)
        #expect(hits == 0)
        if case .pending = decided { #expect(isPending) }
    }

    @Test func `rejects sessions without a store, and while it is unavailable`() {
        var bench = AuthenticatorBench(hasSessions: false)
        let without = bench.decide("required", AdmissionCase.session)
        #expect(without == .rejected(401, "auth.sessions_not_accepted"))
        bench = AuthenticatorBench()
        _ = bench.decide("required", AdmissionCase.session, result: AuthenticatorBench.verified())
        _ = bench.decide("required", Self.token, result: AuthenticatorBench.verified())
        bench.authenticator.rejectSessions(true)
        let cached = bench.decide("required", AdmissionCase.session)
        #expect(cached == .rejected(503, "auth.store_down"))
        let retryAfter = bench.rejection?.failure.retryAfter
        #expect(retryAfter == 1)
        // Tokens of providers are accepted, after another verification.
        let direct = bench.decide("required", Self.token)
        #expect(direct == .pending(by: "tokens"))
        bench.authenticator.rejectSessions(false)
        let again = bench.decide("required", AdmissionCase.session)
        #expect(again == .pending(by: "sessions"))
    }

    @Test(arguments: [
        (AuthenticationError.Disposition.rejected, 401), (.unavailable, 503), (.malformed, 400), (.denied, 403),
        (.throttled, 429), (.notFound, 404),
    ])
    func `maps a failed verification to its status`(disposition: AuthenticationError.Disposition, status: Int) {
        for (route, authorization) in [("required", Self.token), ("optional", Self.token), ("basic", "Basic YTpi")] {
            var bench = AuthenticatorBench()
            let decided = bench.decide(
                route, authorization, result: .failure(AuthenticationError("stub.failed", disposition)))
            #expect(decided == .rejected(status, "stub.failed"))
            var isOfVerification = false
            if case .verification = bench.rejection?.cause { isOfVerification = true }
            #expect(isOfVerification)
            // A failure is never cached.
            let next = bench.decide(route, authorization)
            #expect(next == .pending(by: route == "basic" ? "passwords" : "tokens"))
        }
    }

    @Test func `an outage is never anonymous, on optional routes either`() {
        var bench = AuthenticatorBench()
        let decided = bench.decide("optional", Self.token, result: .failure(.unavailable("stub.down")))
        #expect(decided == .rejected(503, "stub.down"))
    }

    // MARK: Caches

    @Test(arguments: [AdmissionCase.token, AdmissionCase.session])
    func `a cached decision is used until it expires`(authorization: String) {
        var bench = AuthenticatorBench()
        var credential = CredentialState()
        let first = bench.decide(
            "required", authorization, &credential, result: AuthenticatorBench.verified(expires: 1_100))
        #expect(first == .authorized(consumesCredential: true))
        let written = bench.headers
        #expect(written.contains("tokens:ada"))
        #expect(credential.provider == 0 && credential.revocationID == 7 && credential.end == 1_100_000)
        credential = CredentialState()
        bench.advance(seconds: 99)
        let second = bench.decide("required", authorization, &credential)
        let (headers, hits) = (bench.headers, bench.authenticator.hits)
        #expect(second == first && headers == written && hits == 1)
        #expect(credential.provider == 0 && credential.revocationID == 7 && credential.end == 1_100_000)
        #expect(credential.decision >= 0 && credential.verificationAttempts == 0)
        bench.advance(seconds: 1)
        let third = bench.decide("required", authorization)
        let misses = bench.authenticator.misses
        #expect(third == .pending(by: authorization == Self.token ? "tokens" : "sessions") && misses == 1)
    }

    @Test func `a token is cached whole, and for its own route`() {
        var bench = AuthenticatorBench()
        _ = bench.decide("recent", Self.token, result: AuthenticatorBench.verified())
        for other in ["Bearer t-", "Bearer t-11", "Bearer T-1"] {
            let decided = bench.decide("recent", other)
            #expect(decided == .pending(by: "tokens"))
        }
        let elsewhere = bench.decide("other", Self.token)
        #expect(elsewhere == .pending(by: "others"))
    }

    @Test func `a route with the same providers needs no verification`() {
        var bench = AuthenticatorBench()
        _ = bench.decide("required", Self.token, result: AuthenticatorBench.verified())
        let decided = bench.decide("admins", Self.token)
        let (hits, misses) = (bench.authenticator.hits, bench.authenticator.misses)
        #expect(decided == .authorized(consumesCredential: true) && hits == 0 && misses == 0)
    }

    @Test func `caches a denial, and only for the route that made it`() {
        var bench = AuthenticatorBench()
        var credential = CredentialState()
        let user = AuthenticatorBench.verified(role: "user")
        let first = bench.decide("admins", Self.token, &credential, result: user)
        #expect(first == .rejected(403, "policy.claim_mismatch"))
        // The log names the provider; nothing was admitted that would have to end.
        #expect(credential.provider == 0 && credential.revocationID == 0)
        for hit in 1...2 {
            let cached = bench.decide("admins", Self.token)
            let hits = bench.authenticator.hits
            #expect(cached == first && hits == hit)
            var isOfPolicy = false
            if case .policy = bench.rejection?.cause { isOfPolicy = true }
            #expect(isOfPolicy)
        }
        let allowed = bench.decide("required", Self.token)
        #expect(allowed == .authorized(consumesCredential: true))
    }

    @Test func `a decision expires with the age condition that it met`() {
        var bench = AuthenticatorBench()
        var credential = CredentialState()
        // Issued at 950, and 100 seconds old at most.
        let first = bench.decide("recent", Self.token, &credential, result: AuthenticatorBench.verified())
        #expect(first == .authorized(consumesCredential: true) && credential.end == 1_050_000)
        bench.advance(seconds: 49)
        let second = bench.decide("recent", Self.token)
        #expect(second == first)
        bench.advance(seconds: 1)
        let third = bench.decide("recent", Self.token)
        let misses = bench.authenticator.misses
        #expect(third == .rejected(403, "policy.too_old") && misses == 0)
    }

    @Test func `an expired result is used once, and never cached`() {
        var bench = AuthenticatorBench()
        let first = bench.decide("required", Self.token, result: AuthenticatorBench.verified(expires: 1_000))
        #expect(first == .authorized(consumesCredential: true))
        let count = bench.authenticator.decisionCount
        let second = bench.decide("required", Self.token)
        #expect(count == 0 && second == .pending(by: "tokens"))
    }

    @Test func `rejects a provider that is not on the route, and caches the session`() {
        var bench = AuthenticatorBench()
        let session = AuthenticatorBench.verified(by: "tokens")
        let decided = bench.decide("other", AdmissionCase.session, result: session)
        #expect(decided == .rejected(401, "auth.provider_not_on_route"))
        let again = bench.decide("other", AdmissionCase.session)
        let accepted = bench.decide("required", AdmissionCase.session)
        let misses = bench.authenticator.misses
        #expect(again == decided && accepted == .authorized(consumesCredential: true) && misses == 0)
    }

    @Test func `caches names and passwords under a digest alone`() {
        var bench = AuthenticatorBench()
        var credential = CredentialState()
        let verified = AuthenticatorBench.verified(by: "passwords")
        let first = bench.decide("passwords", AdmissionCase.basic, &credential, result: verified)
        #expect(first == .authorized(consumesCredential: true))
        // A digest cannot be verified again, and the credential itself does not expire.
        #expect(credential.decision == -1 && credential.end == .max && credential.revocationID == 7)
        let stored = unsafe bench.authenticator.token(ofDecision: 0, for: 7).map { unsafe Array($0) }
        #expect(stored?.count == 32 && stored != Array("YTpi".utf8))
        credential = CredentialState()
        let second = bench.decide("passwords", AdmissionCase.basic, &credential)
        let hits = bench.authenticator.hits
        #expect(second == first && hits == 1 && credential.decision == -1)
        // The same bytes as a token are another credential.
        let asToken = bench.decide("basic", "Bearer YTpi")
        let other = bench.decide("passwords", "Basic YTpj")
        #expect(asToken == .pending(by: "tokens") && other == .pending(by: "passwords"))
    }

    @Test func `drops everything with a configuration, and counts an epoch`() {
        var bench = AuthenticatorBench()
        for change in 1...2 {
            _ = bench.decide("required", Self.token, result: AuthenticatorBench.verified())
            if change == 1 {
                bench.authenticator.adopt(AuthenticatorBench.rules())
            } else {
                bench.authenticator.invalidate()
            }
            let (epoch, count) = (bench.authenticator.epoch, bench.authenticator.decisionCount)
            let decided = bench.decide("required", Self.token)
            #expect(epoch == change && count == 0 && decided == .pending(by: "tokens"))
        }
    }

    // MARK: Exchanges

    @Test func `exchanges are bound to their credential where the route says so`() {
        var bench = AuthenticatorBench()
        var credential = CredentialState()
        let decided = bench.decide("unbound", Self.token, &credential, result: AuthenticatorBench.verified())
        #expect(decided == .authorized(consumesCredential: true))
        #expect(credential.revocationID == 0 && credential.end == .max && credential.decision == -1)
    }

    @Test(arguments: [("basic", true), ("passwords", true), ("required", false), ("sessions", false)])
    func `a rejection offers Basic where the route accepts it`(route: String, offers: Bool) {
        var bench = AuthenticatorBench()
        for authorization in [nil, "Digest a", "Bearer"] {
            var credential = CredentialState()
            let decided = bench.decide(route, authorization, &credential)
            #expect(decided != .authorized(consumesCredential: false) && credential.offersBasic == offers)
        }
    }

    @Test func `a denial from the cache offers Basic as the first one`() {
        var bench = AuthenticatorBench()
        for result in [AuthenticatorBench.verified(role: "user"), nil] {
            var credential = CredentialState()
            let decided = bench.decide("basic admins", Self.token, &credential, result: result)
            #expect(decided == .rejected(403, "policy.claim_mismatch") && credential.offersBasic)
        }
    }

    @Test func `an anonymous request gets none of the last user's headers`() {
        var bench = AuthenticatorBench()
        _ = bench.decide("required", Self.token, result: AuthenticatorBench.verified())
        let written = bench.headers
        let decided = bench.decide("optional", nil)
        let headers = bench.headers
        #expect(decided == .authorized(consumesCredential: false))
        #expect(written.contains("ada") && !headers.contains("ada"))
    }

    @Test func `an outcome fits into four registers`() {
        #expect(MemoryLayout<AuthorizationOutcome>.size <= 32)
    }

    @Test func `each request gets the headers of its own caller`() {
        var bench = AuthenticatorBench()
        let names = ["ada", "bob", "eve"]
        for name in names {
            _ = bench.decide("required", "Bearer t-\(name)", result: AuthenticatorBench.verified(name))
        }
        for name in names + names.reversed() {
            _ = bench.decide("required", "Bearer t-\(name)")
            let headers = bench.headers
            for other in names { #expect(headers.contains("tokens:\(other)") == (other == name)) }
        }
    }
}
