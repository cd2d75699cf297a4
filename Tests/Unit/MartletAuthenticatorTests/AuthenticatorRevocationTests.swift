import MartletCore
import MartletProvider
import MartletResponder
import Testing

@testable import MartletAuthenticator

@Suite struct AuthenticatorRevocationTests {
    private static let token = AdmissionCase.token
    private static let session = AdmissionCase.session
    private static let exchange = AuthenticatorBench.exchange
    private static let authorized = Decided.authorized(consumesCredential: true)

    // MARK: Verifications in progress

    @Test(arguments: [(-1, true), (0, false), (1, false)])
    func `a result is void when the credential was revoked after the query`(seconds: Int64, isValid: Bool) {
        var bench = AuthenticatorBench()
        var credential = CredentialState()
        _ = bench.decide("required", Self.session, &credential)
        let started = bench.time
        bench.advance(seconds: seconds)
        bench.authenticator.note(.ended([7]), nil, at: bench.time)
        bench.time = started
        let decided = bench.decide("required", Self.session, &credential, result: AuthenticatorBench.verified())
        #expect(decided == (isValid ? Self.authorized : .pending(by: "sessions")))
        #expect(credential.verificationAttempts == (isValid ? 1 : 2))
    }

    @Test func `the revocation of another credential voids nothing`() {
        var bench = AuthenticatorBench()
        var credential = CredentialState()
        _ = bench.decide("required", Self.session, &credential)
        bench.authenticator.note(.ended([8]), nil, at: bench.time)
        let decided = bench.decide("required", Self.session, &credential, result: AuthenticatorBench.verified())
        #expect(decided == Self.authorized)
    }

    @Test func `a credential is verified four times at most when its results are overtaken`() {
        var bench = AuthenticatorBench()
        var credential = CredentialState()
        for attempt in 1...4 {
            let decided = bench.decide("required", Self.token, &credential)
            #expect(decided == .pending(by: "tokens") && credential.verificationAttempts == attempt)
        }
        let fifth = bench.decide("required", Self.token, &credential)
        let (misses, retryAfter) = (bench.authenticator.misses, bench.rejection?.failure.retryAfter)
        #expect(fifth == .rejected(503, "auth.verdict_overtaken") && misses == 5 && retryAfter == 1)
    }

    @Test func `a result is not needed when another request has cached the principal meanwhile`() {
        var bench = AuthenticatorBench()
        var credential = CredentialState()
        _ = bench.decide("required", Self.session, &credential)
        _ = bench.decide("required", Self.session, result: AuthenticatorBench.verified())
        let decided = bench.decide("admins", Self.session, &credential, result: .failure(.unavailable("stub.down")))
        #expect(decided == Self.authorized)
    }

    // MARK: Sweeps

    @Test func `a sweep removes what was revoked, and returns the acknowledgements`() {
        var bench = AuthenticatorBench()
        _ = bench.decide("required", "Bearer mat_1", result: AuthenticatorBench.verified(revocationID: 7))
        _ = bench.decide("required", "Bearer mat_2", result: AuthenticatorBench.verified(revocationID: 8))
        let acknowledgement = LoopAcknowledgement(loops: 1)
        bench.authenticator.note(.ended([7, 9]), acknowledgement, at: bench.time)
        let wasDue = bench.authenticator.hasUnsweptRevocations
        let due = bench.authenticator.sweepRevocations(at: bench.time)
        #expect(due?.revocationIDs == [7, 9] && due?.acknowledgements.first === acknowledgement)
        let isDue = bench.authenticator.hasUnsweptRevocations
        #expect(wasDue && !isDue)
        let (first, second) = (bench.decide("required", "Bearer mat_1"), bench.decide("required", "Bearer mat_2"))
        #expect(first == .pending(by: "sessions") && second == Self.authorized)
        // The principal, which other routes would use, is gone as well.
        let other = bench.decide("admins", "Bearer mat_1")
        #expect(other == .pending(by: "sessions"))
        bench.authenticator.note(.ended([8]), nil, at: bench.time)
        let early = bench.authenticator.sweepRevocations(at: bench.time) == nil
        bench.advance(seconds: 1)
        let late = bench.authenticator.sweepRevocations(at: bench.time)
        #expect(early && late?.revocationIDs == [8] && late?.acknowledgements.isEmpty == true)
    }

    @Test func `old revocations are forgotten when there are many`() {
        var revocations = RecentRevocations()
        let (start, timeout) = (AuthenticatorBench.start.monotonic, Authenticator.verificationTimeout)
        revocations.add(Array(1...UInt64(RecentRevocations.limit + 1)), at: start)
        revocations.add([0], at: start + 2 * timeout)
        #expect(revocations.count == RecentRevocations.limit + 2 && revocations.contains(1, since: start))
        revocations.add([], at: start + 2 * timeout + RecentRevocations.pruneInterval)
        #expect(revocations.count == 1 && !revocations.contains(1, since: start))
    }

    // MARK: Long exchanges

    /// An exchange that was admitted with a token, which is retained.
    private func retained(
        _ bench: inout AuthenticatorBench, _ authorization: String = Self.session, route: String = "required",
        by provider: String = "tokens"
    ) -> CredentialState {
        var credential = CredentialState()
        _ = bench.decide(route, authorization, &credential, result: AuthenticatorBench.verified(by: provider))
        bench.authenticator.retainToken(of: Self.exchange, &credential)
        return credential
    }

    @Test func `retains the token of an exchange, unless it was a name and password`() {
        var bench = AuthenticatorBench()
        let session = retained(&bench)
        let isSession = bench.authenticator.retainsSession(of: Self.exchange)
        #expect(session.retainsToken && session.decision == -1 && isSession)
        bench.authenticator.releaseToken(of: Self.exchange)
        let direct = retained(&bench, Self.token)
        let isDirect = !bench.authenticator.retainsSession(of: Self.exchange)
        #expect(direct.retainsToken && isDirect)
        bench.authenticator.releaseToken(of: Self.exchange)
        let basic = retained(&bench, AdmissionCase.basic, route: "passwords", by: "passwords")
        let count = bench.authenticator.retainedTokens.count
        #expect(!basic.retainsToken && count == 0)
    }

    @Test(arguments: [
        (Self.session, true, "tokens"), (Self.token, true, "tokens"), (AdmissionCase.basic, false, "passwords"),
    ])
    func `retains a token immediately where its decision is not cached`(
        authorization: String, isRetained: Bool, provider: String
    ) {
        // As with `cache_ttl: 0s`: a reload would end the exchange as if its credential had been revoked.
        var bench = AuthenticatorBench()
        var credential = CredentialState()
        let now = bench.time.unix
        guard case .success(let verified) = AuthenticatorBench.verified(by: provider) else { return }
        let once = VerifiedPrincipal(
            principal: verified.principal, revocationID: 7, expires: now, end: (now + 100) * 1_000)
        let route = isRetained ? "required" : "passwords"
        let decided = bench.decide(route, authorization, &credential, result: .success(once))
        #expect(decided == .authorized(consumesCredential: true) && credential.decision < 0)
        let count = bench.authenticator.retainedTokens.count
        #expect(credential.retainsToken == isRetained && count == (isRetained ? 1 : 0))
    }

    @Test func `retains nothing when the cached decision is another credential's by now`() {
        var bench = AuthenticatorBench()
        var credential = CredentialState()
        _ = bench.decide("required", Self.session, &credential, result: AuthenticatorBench.verified())
        bench.authenticator.clearCaches()
        _ = bench.decide("required", "Bearer mat_2", result: AuthenticatorBench.verified(revocationID: 8))
        bench.authenticator.retainToken(of: Self.exchange, &credential)
        #expect(!credential.retainsToken && credential.decision == -1)
    }

    /// A result of a revalidation, and what it means for the exchange.
    struct RevalidationCase: CustomTestStringConvertible, Sendable {
        let name: String
        let result: VerificationResult
        let continues: Bool
        /// After how many seconds it is verified again.
        var retriedAfter: Int64?

        var testDescription: String { name }
    }

    @Test(arguments: [
        RevalidationCase(name: "verified", result: AuthenticatorBench.verified(), continues: true),
        RevalidationCase(name: "rejected", result: .failure(.rejected("stub.ended")), continues: false),
        RevalidationCase(name: "denied", result: .failure(.denied("stub.banned")), continues: false),
        RevalidationCase(
            name: "unavailable", result: .failure(.unavailable("stub.down")), continues: true, retriedAfter: 1),
        RevalidationCase(
            name: "throttled", result: .failure(.throttled("stub.many", retryAfter: .seconds(9))), continues: true,
            retriedAfter: 1),
    ])
    func `a revalidation decides whether the exchange continues`(item: RevalidationCase) {
        var bench = AuthenticatorBench()
        var credential = retained(&bench)
        let idle = bench.authenticator.dueRevalidations(at: bench.time).isEmpty
        bench.authenticator.revalidate(Self.exchange, at: bench.time.monotonic)
        let due = bench.authenticator.dueRevalidations(at: bench.time)
        let submitted = bench.authenticator.dueRevalidations(at: bench.time).isEmpty
        #expect(idle && due.count == 1 && due.first?.exchange == Self.exchange && submitted)
        #expect(due.first?.target != nil && due.first?.credential.withBytes { $0 == Array("mat_1".utf8) } == true)
        let epoch = bench.authenticator.epoch
        let continues = bench.authenticator.completeRevalidation(
            of: Self.exchange, epoch: epoch, item.result, at: bench.time, &credential)
        #expect(continues == item.continues)
        let early = bench.authenticator.dueRevalidations(at: bench.time).isEmpty
        bench.advance(seconds: item.retriedAfter ?? 1)
        let late = bench.authenticator.dueRevalidations(at: bench.time).count
        #expect(early && late == (item.retriedAfter == nil ? 0 : 1))
    }

    @Test func `a revalidation of an earlier epoch is repeated`() {
        var bench = AuthenticatorBench()
        var credential = retained(&bench)
        bench.authenticator.revalidate(Self.exchange, at: bench.time.monotonic)
        _ = bench.authenticator.dueRevalidations(at: bench.time)
        bench.authenticator.invalidate()
        let continues = bench.authenticator.completeRevalidation(
            of: Self.exchange, epoch: 0, .failure(.rejected("stub.old")), at: bench.time, &credential)
        let due = bench.authenticator.dueRevalidations(at: bench.time).count
        #expect(continues && due == 1)
    }

    @Test func `a result that nothing waits for changes nothing`() {
        var bench = AuthenticatorBench()
        var credential = retained(&bench)
        let rejected = VerificationResult.failure(.rejected("stub.late"))
        let unsolicited = bench.authenticator.completeRevalidation(
            of: Self.exchange, epoch: 0, rejected, at: bench.time, &credential)
        bench.authenticator.releaseToken(of: Self.exchange)
        let released = bench.authenticator.completeRevalidation(
            of: Self.exchange, epoch: 0, rejected, at: bench.time, &credential)
        #expect(unsolicited && released)
    }

    @Test func `revalidates in batches`() {
        var bench = AuthenticatorBench()
        for number in 0..<300 {
            let exchange = ExchangeID(raw: UInt64(number))
            var credential = CredentialState()
            _ = bench.decide("required", Self.session, &credential, result: AuthenticatorBench.verified())
            bench.authenticator.retainToken(of: exchange, &credential)
            bench.authenticator.revalidate(exchange, at: bench.time.monotonic)
        }
        let (first, second) = (
            bench.authenticator.dueRevalidations(at: bench.time), bench.authenticator.dueRevalidations(at: bench.time)
        )
        #expect(first.count == Authenticator.revalidationBatch && second.count == 300 - first.count)
        #expect(Set((first + second).map(\.exchange)).count == 300)
    }

    // MARK: New configurations

    @Test(arguments: [
        ("required", AdmissionCase.session, "none", Reevaluation.stays),
        ("required", AdmissionCase.session, "sessions", .revalidate(route: 8)),
        ("required", AdmissionCase.session, "direct", .ends), ("required", AdmissionCase.session, "other", .ends),
        ("required", AdmissionCase.token, "direct", .revalidate(route: 9)),
        ("required", AdmissionCase.token, "sessions", .ends),
        ("passwords", AdmissionCase.basic, "passwords", .ends), ("passwords", AdmissionCase.basic, "none", .stays),
    ])
    func `an exchange under a new configuration`(
        route: String, authorization: String, next: String, expected: Reevaluation
    ) {
        var bench = AuthenticatorBench()
        let credential = retained(&bench, authorization, route: route, by: route == "passwords" ? route : "tokens")
        let decided = bench.authenticator.reevaluate(Self.exchange, credential, on: bench.index(next), at: bench.time)
        #expect(decided == expected)
    }

    @Test(arguments: [
        ("none", Reevaluation.stays), ("optional", .stays), ("optional admins", .ends), ("required", .ends),
    ])
    func `an anonymous exchange under a new configuration`(next: String, expected: Reevaluation) {
        var bench = AuthenticatorBench()
        var credential = CredentialState()
        _ = bench.decide("optional", nil, &credential)
        let decided = bench.authenticator.reevaluate(Self.exchange, credential, on: bench.index(next), at: bench.time)
        #expect(decided == expected)
    }

    @Test(arguments: [
        ("required", "tokens", "admin", true), ("admins", "tokens", "admin", true), ("admins", "tokens", "user", false),
        ("other", "tokens", "admin", false),
    ])
    func `a revalidated token has to meet the conditions of its new route`(
        route: String, provider: String, role: String, continues: Bool
    ) {
        var bench = AuthenticatorBench()
        var credential = retained(&bench)
        bench.authenticator.revalidate(Self.exchange, for: bench.index(route), at: bench.time.monotonic)
        _ = bench.authenticator.dueRevalidations(at: bench.time)
        let result = AuthenticatorBench.verified(by: provider, role: role, expires: 3_000, revocationID: 9)
        let decided = bench.authenticator.completeRevalidation(
            of: Self.exchange, epoch: 0, result, at: bench.time, &credential)
        #expect(decided == continues)
        #expect(credential.revocationID == (continues ? 9 : 7) && credential.end == (continues ? 3_000_000 : 2_000_000))
    }

    @Test func `a token whose verifier is gone has none`() {
        var bench = AuthenticatorBench()
        _ = retained(&bench)
        bench.authenticator.adopt(AuthenticatorBench.rules(hasSessions: false))
        bench.authenticator.revalidate(Self.exchange, at: bench.time.monotonic)
        let due = bench.authenticator.dueRevalidations(at: bench.time)
        #expect(due.count == 1 && due.first?.target == nil)
        // Once: the grace period of the exchange has begun.
        bench.advance(seconds: 1)
        let again = bench.authenticator.dueRevalidations(at: bench.time).isEmpty
        #expect(again)
    }
}
