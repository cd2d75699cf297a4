import MartletCore
import MartletProvider
import Testing

@testable import MartletAuthenticator

@Suite struct AuthenticatorRevalidationTests {
    private static let token = AdmissionCase.token
    private static let session = AdmissionCase.session
    private static let exchange = AuthenticatorBench.exchange
    private static let second: Int64 = 1_000_000_000

    /// An exchange that was admitted with a token, which is retained.
    private func retained(
        _ bench: inout AuthenticatorBench, _ authorization: String = Self.session,
        of exchange: ExchangeID = Self.exchange
    ) -> CredentialState {
        var credential = CredentialState()
        _ = bench.decide("required", authorization, &credential, result: AuthenticatorBench.verified())
        bench.authenticator.retainToken(of: exchange, &credential)
        return credential
    }

    /// The same, whose revalidation has been submitted, for a route of a new configuration or for none.
    private func submitted(
        _ bench: inout AuthenticatorBench, _ authorization: String = Self.session, for route: String? = nil
    ) -> CredentialState {
        let credential = retained(&bench, authorization)
        if let route {
            bench.authenticator.revalidate(Self.exchange, for: bench.index(route), at: bench.time.monotonic)
        } else {
            bench.authenticator.revalidate(Self.exchange, at: bench.time.monotonic)
        }
        _ = bench.authenticator.dueRevalidations(at: bench.time)
        return credential
    }

    /// The names of what verifies the tokens that are due; "none" where nothing does.
    private func due(_ bench: inout AuthenticatorBench, at monotonic: Int64? = nil) -> [String] {
        let time = LoopTime(monotonic: monotonic ?? bench.time.monotonic, unix: bench.time.unix)
        return bench.authenticator.dueRevalidations(at: time).map { Samples.name(of: $0.target) ?? "none" }
    }

    // MARK: Retaining

    @Test(arguments: [
        ("Bearer mat_1", "mat_1", true), ("Bearer mrt_1", "mrt_1", true), ("Bearer t-1", "t-1", false),
        ("bearer   t-1", "t-1", false),
    ])
    func `a token is retained as it was presented`(authorization: String, text: String, isSession: Bool) throws {
        var bench = AuthenticatorBench()
        let credential = retained(&bench, authorization)
        let token = try #require(bench.authenticator.retainedTokens[Self.exchange])
        let retainsSession = bench.authenticator.retainsSession(of: Self.exchange)
        #expect(credential.retainsToken && credential.decision == -1 && credential.revocationID == 7)
        #expect(token.token.withBytes { String(decoding: $0, as: UTF8.self) } == text)
        #expect(token.isSession == isSession && retainsSession == isSession)
        #expect(token.state == .valid && token.route == -1)
    }

    @Test func `an exchange that is not bound to a credential retains none`() {
        var bench = AuthenticatorBench()
        _ = bench.decide("required", Self.token, result: AuthenticatorBench.verified())
        // The decision at 0 exists, but is not this exchange's.
        var credential = CredentialState()
        credential.decision = 0
        bench.authenticator.retainToken(of: Self.exchange, &credential)
        let count = bench.authenticator.retainedTokens.count
        #expect(!credential.retainsToken && credential.decision == -1 && count == 0)
    }

    @Test func `an unknown exchange has no token, and nothing to release`() {
        var bench = AuthenticatorBench()
        let other = ExchangeID(raw: 4)
        _ = retained(&bench)
        bench.authenticator.releaseToken(of: other)
        bench.authenticator.keepsRoute(other)
        bench.authenticator.revalidate(other, for: 1, at: 0)
        let isDue = !due(&bench).isEmpty
        let needsRevalidation = bench.authenticator.needsRevalidation
        let count = bench.authenticator.retainedTokens.count
        let retainsSession = bench.authenticator.retainsSession(of: other)
        #expect(!isDue && !needsRevalidation && count == 1 && !retainsSession)
    }

    @Test func `a token is released with its exchange alone`() {
        var bench = AuthenticatorBench()
        let other = ExchangeID(raw: 4)
        _ = (retained(&bench), retained(&bench, of: other))
        bench.authenticator.releaseToken(of: Self.exchange)
        let first = bench.authenticator.retainsSession(of: Self.exchange)
        let second = bench.authenticator.retainsSession(of: other)
        bench.authenticator.revalidate(Self.exchange, at: bench.time.monotonic)
        bench.authenticator.revalidate(other, at: bench.time.monotonic)
        let exchanges = bench.authenticator.dueRevalidations(at: bench.time).map(\.exchange)
        #expect(!first && second && exchanges == [other])
    }

    // MARK: What is due

    @Test func `a token is due at its time, and not a nanosecond before`() {
        var bench = AuthenticatorBench()
        _ = retained(&bench)
        let time = bench.time.monotonic + 500
        bench.authenticator.revalidate(Self.exchange, at: time)
        let early = due(&bench, at: time - 1)
        let isPending = bench.authenticator.needsRevalidation
        let late = due(&bench, at: time)
        let again = due(&bench, at: time)
        let isPendingAfterwards = bench.authenticator.needsRevalidation
        #expect(early.isEmpty && isPending && late == ["sessions"] && again.isEmpty && !isPendingAfterwards)
    }

    @Test(arguments: [(0, [0, 0]), (256, [256, 0]), (257, [256, 1]), (600, [256, 256, 88, 0])])
    func `a batch is as large as its limit`(count: Int, batches: [Int]) {
        var bench = AuthenticatorBench()
        for number in 0..<count {
            let exchange = ExchangeID(raw: UInt64(number))
            _ = retained(&bench, of: exchange)
            bench.authenticator.revalidate(exchange, at: bench.time.monotonic)
        }
        let found = batches.map { _ in due(&bench).count }
        #expect(found == batches && Authenticator.revalidationBatch == 256)
    }

    private static let routes: [(String, String)] = [
        ("required", "tokens"), ("two", "tokens"), ("other", "others"), ("passwords", "none"), ("none", "none"),
    ]

    @Test(arguments: routes)
    func `a provider's token is verified by a provider of the new route`(route: String, target: String) {
        var bench = AuthenticatorBench()
        _ = retained(&bench, Self.token)
        bench.authenticator.revalidate(Self.exchange, for: bench.index(route), at: bench.time.monotonic)
        let (targets, retainedRoute) = (due(&bench), bench.authenticator.retainedTokens[Self.exchange]?.route)
        let index = bench.index(route)
        #expect(targets == [target] && retainedRoute == index)
    }

    @Test func `a session is verified by the store, whatever the route`() {
        for route in ["required", "two", "passwords", "none"] {
            var bench = AuthenticatorBench()
            _ = retained(&bench)
            bench.authenticator.revalidate(Self.exchange, for: bench.index(route), at: bench.time.monotonic)
            let targets = due(&bench)
            #expect(targets == ["sessions"], "\(route)")
        }
    }

    @Test func `an exchange that stays on its route is verified for no other`() {
        var bench = AuthenticatorBench()
        _ = retained(&bench, Self.token)
        bench.authenticator.revalidate(Self.exchange, for: bench.index("required"), at: bench.time.monotonic)
        bench.authenticator.keepsRoute(Self.exchange)
        let route = bench.authenticator.retainedTokens[Self.exchange]?.route
        // Without a route, no provider is chosen.
        let targets = due(&bench)
        #expect(route == -1 && targets == ["none"])
    }

    // MARK: Results

    @Test func `a result for an exchange without a retained token changes nothing`() {
        var bench = AuthenticatorBench()
        var credential = submitted(&bench)
        credential.retainsToken = false
        let continues = bench.authenticator.completeRevalidation(
            of: Self.exchange, epoch: 0, .failure(.rejected("sample.ended")), at: bench.time, &credential)
        let state = bench.authenticator.retainedTokens[Self.exchange]?.state
        #expect(continues && state == .submitted)
    }

    @Test func `a result that was requested before another reason to verify is not used`() {
        var bench = AuthenticatorBench()
        var credential = submitted(&bench)
        bench.authenticator.revalidate(Self.exchange, at: bench.time.monotonic)
        let results: [VerificationResult] = [AuthenticatorBench.verified(), .failure(.rejected("sample.ended"))]
        for result in results {
            let continues = bench.authenticator.completeRevalidation(
                of: Self.exchange, epoch: 0, result, at: bench.time, &credential)
            let state = bench.authenticator.retainedTokens[Self.exchange]?.state
            #expect(continues && state == .pending)
        }
        let targets = due(&bench)
        #expect(targets == ["sessions"])
    }

    @Test func `without a new route, a valid token leaves the credential as it is`() {
        var bench = AuthenticatorBench()
        var credential = submitted(&bench)
        let result = AuthenticatorBench.verified(by: "others", role: "user", expires: 3_000, revocationID: 9)
        let continues = bench.authenticator.completeRevalidation(
            of: Self.exchange, epoch: 0, result, at: bench.time, &credential)
        let state = bench.authenticator.retainedTokens[Self.exchange]?.state
        #expect(continues && state == .valid && credential.provider == 0)
        #expect(credential.revocationID == 7 && credential.end == 2_000_000 && credential.retainsToken)
    }

    @Test func `with a new route, the credential is that of the result, once`() {
        var bench = AuthenticatorBench()
        var credential = submitted(&bench, for: "two")
        let result = AuthenticatorBench.verified(by: "others", expires: 3_000, revocationID: 9)
        let continues = bench.authenticator.completeRevalidation(
            of: Self.exchange, epoch: 0, result, at: bench.time, &credential)
        let retained = bench.authenticator.retainedTokens[Self.exchange]
        #expect(continues && retained?.state == .valid && retained?.route == -1)
        #expect(credential.provider == 1 && credential.revocationID == 9 && credential.end == 3_000_000)
        // The next revalidation is for no route: its result is not bound to the credential.
        bench.authenticator.revalidate(Self.exchange, at: bench.time.monotonic)
        _ = bench.authenticator.dueRevalidations(at: bench.time)
        let again = bench.authenticator.completeRevalidation(
            of: Self.exchange, epoch: 0, AuthenticatorBench.verified(), at: bench.time, &credential)
        #expect(again && credential.provider == 1 && credential.revocationID == 9)
    }

    @Test(arguments: [(49, true), (50, false)] as [(Int64, Bool)])
    func `a new route may end the credential earlier, or accept it no longer`(seconds: Int64, isYoung: Bool) {
        var bench = AuthenticatorBench()
        var credential = submitted(&bench, for: "recent")
        bench.advance(seconds: seconds)
        // Issued at 950, and 100 seconds old at most.
        let continues = bench.authenticator.completeRevalidation(
            of: Self.exchange, epoch: 0, AuthenticatorBench.verified(revocationID: 9), at: bench.time, &credential)
        #expect(continues == isYoung && credential.end == (isYoung ? 1_050_000 : 2_000_000))
        #expect(credential.revocationID == (isYoung ? 9 : 7))
    }

    @Test func `a result of an earlier epoch is requested again for the same route`() {
        var bench = AuthenticatorBench()
        var credential = submitted(&bench, Self.token, for: "other")
        bench.authenticator.invalidate()
        bench.advance(seconds: 3)
        let continues = bench.authenticator.completeRevalidation(
            of: Self.exchange, epoch: 0, AuthenticatorBench.verified(), at: bench.time, &credential)
        let retained = bench.authenticator.retainedTokens[Self.exchange]
        let (targets, now) = (due(&bench), bench.time.monotonic)
        #expect(continues && retained?.state == .pending && retained?.dueAt == now && targets == ["others"])
    }

    @Test(arguments: [
        AuthenticationError.Disposition.rejected, .denied, .malformed, .notFound, .unavailable, .throttled,
    ])
    func `only an outage or a throttle is retried, after a second`(disposition: AuthenticationError.Disposition) {
        var bench = AuthenticatorBench()
        var credential = submitted(&bench, for: "two")
        let isTemporary = disposition == .unavailable || disposition == .throttled
        let continues = bench.authenticator.completeRevalidation(
            of: Self.exchange, epoch: 0, .failure(AuthenticationError("sample.failed", disposition)), at: bench.time,
            &credential)
        let time = bench.time.monotonic + Self.second
        let (early, late) = (due(&bench, at: time - 1), due(&bench, at: time))
        #expect(continues == isTemporary && early.isEmpty && late == (isTemporary ? ["sessions"] : []))
        #expect(credential.revocationID == 7 && credential.end == 2_000_000)
    }

    // MARK: New configurations

    private static let reevaluations: [(String, String, Reevaluation)] = [
        (session, "optional", .revalidate(route: 1)), (session, "two", .revalidate(route: 4)),
        (session, "passwords", .ends), (token, "two", .revalidate(route: 4)),
        (token, "optional", .revalidate(route: 1)),
        // Conditions are evaluated with the result of the verification.
        (token, "admins", .revalidate(route: 10)), (token, "passwords", .ends), (token, "none", .stays),
    ]

    @Test(arguments: reevaluations)
    func `an exchange continues where its token may be accepted`(
        authorization: String, route: String, expected: Reevaluation
    ) {
        var bench = AuthenticatorBench()
        let credential = retained(&bench, authorization)
        let found = bench.authenticator.reevaluate(Self.exchange, credential, on: bench.index(route), at: bench.time)
        #expect(found == expected)
    }

    @Test func `an exchange whose token was released or whose provider is unknown ends`() {
        var bench = AuthenticatorBench()
        let credential = retained(&bench)
        var unknown = credential
        unknown.provider = -1
        let index = bench.index("required")
        let withoutProvider = bench.authenticator.reevaluate(Self.exchange, unknown, on: index, at: bench.time)
        bench.authenticator.releaseToken(of: Self.exchange)
        let released = bench.authenticator.reevaluate(Self.exchange, credential, on: index, at: bench.time)
        #expect(withoutProvider == .ends && released == .ends)
    }

    @Test func `a session ends without a store, but not while the store is unavailable`() {
        var bench = AuthenticatorBench()
        let credential = retained(&bench)
        let index = bench.index("required")
        bench.authenticator.rejectSessions(true)
        let unavailable = bench.authenticator.reevaluate(Self.exchange, credential, on: index, at: bench.time)
        bench.authenticator.adopt(AuthenticatorBench.rules(hasSessions: false))
        let without = bench.authenticator.reevaluate(Self.exchange, credential, on: index, at: bench.time)
        #expect(unavailable == .revalidate(route: index) && without == .ends)
    }
}
