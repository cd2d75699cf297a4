import MartletCore
import MartletProvider
import Testing

@testable import MartletAuthenticator

@Suite struct AuthenticatorSweepTests {
    private static let token = AdmissionCase.token
    private static let session = AdmissionCase.session
    private static let authorized = Decided.authorized(consumesCredential: true)

    @Test func `a message without revocations is acknowledged immediately`() async {
        var bench = AuthenticatorBench()
        let acknowledgement = LoopAcknowledgement(loops: 1)
        bench.authenticator.note(.ended([]), acknowledgement, at: bench.time)
        let hasSome = bench.authenticator.hasUnsweptRevocations
        let isDue = bench.authenticator.sweepRevocations(at: bench.time) != nil
        #expect(!hasSome && !isDue)
        #expect(await acknowledgement.wait(within: .seconds(10)))
    }

    @Test func `revocations before a sweep are removed together`() {
        var bench = AuthenticatorBench()
        for number in UInt64(1)...4 {
            _ = bench.decide(
                "required", "Bearer mat_\(number)", result: AuthenticatorBench.verified(revocationID: number))
        }
        let acknowledgements = [LoopAcknowledgement(loops: 2), LoopAcknowledgement(loops: 2)]
        bench.authenticator.note(.ended([1]), acknowledgements[0], at: bench.time)
        bench.authenticator.note(.ended([2, 1]), nil, at: bench.time)
        bench.authenticator.note(.ended([4]), acknowledgements[1], at: bench.time)
        let before = bench.authenticator.decisionCount
        let due = bench.authenticator.sweepRevocations(at: bench.time)
        let (decisions, principals) = (bench.authenticator.decisionCount, bench.authenticator.principals.count)
        #expect(before == 4 && due?.revocationIDs == [1, 2, 4] && decisions == 1 && principals == 1)
        let acknowledged = due?.acknowledgements ?? []
        #expect(acknowledged.count == 2)
        #expect(acknowledged.first === acknowledgements[0] && acknowledged.last === acknowledgements[1])
        let left = bench.decide("required", "Bearer mat_3")
        #expect(left == Self.authorized)
    }

    @Test func `a sweep that is too early leaves everything as it is`() {
        var bench = AuthenticatorBench()
        bench.authenticator.note(.ended([1]), nil, at: bench.time)
        _ = bench.authenticator.sweepRevocations(at: bench.time)
        _ = bench.decide("required", Self.session, result: AuthenticatorBench.verified())
        bench.authenticator.note(.ended([7]), nil, at: bench.time)
        let next = bench.time.monotonic + RevocationSweep.interval
        let waits = [bench.time.monotonic, next - 1, next, next + 5].map {
            bench.authenticator.sweepWait(at: LoopTime(monotonic: $0, unix: bench.time.unix))
        }
        let early = bench.authenticator.sweepRevocations(at: LoopTime(monotonic: next - 1, unix: bench.time.unix))
        let (isUnswept, count) = (bench.authenticator.hasUnsweptRevocations, bench.authenticator.decisionCount)
        let late = bench.authenticator.sweepRevocations(at: LoopTime(monotonic: next, unix: bench.time.unix))
        let (isLeft, countAfterwards) = (
            bench.authenticator.hasUnsweptRevocations, bench.authenticator.decisionCount
        )
        #expect(waits == [20, 1, 0, 0])
        #expect(early?.revocationIDs == nil && isUnswept && count == 1)
        #expect(late?.revocationIDs == [7] && !isLeft && countAfterwards == 0)
    }

    @Test func `a cached denial goes with its caller's revocation`() {
        var bench = AuthenticatorBench()
        let user = AuthenticatorBench.verified(role: "user")
        let denied = bench.decide("admins", Self.token, result: user)
        bench.authenticator.note(.ended([7]), nil, at: bench.time)
        _ = bench.authenticator.sweepRevocations(at: bench.time)
        let count = bench.authenticator.decisionCount
        let again = bench.decide("admins", Self.token)
        #expect(denied == .rejected(403, "policy.claim_mismatch") && count == 0 && again == .pending(by: "tokens"))
    }

    @Test func `names and passwords go with the revocation of their subject`() {
        var bench = AuthenticatorBench()
        let verified = AuthenticatorBench.verified(by: "passwords")
        _ = bench.decide("passwords", AdmissionCase.basic, result: verified)
        bench.authenticator.note(.ended([7]), nil, at: bench.time)
        _ = bench.authenticator.sweepRevocations(at: bench.time)
        let again = bench.decide("passwords", AdmissionCase.basic)
        #expect(again == .pending(by: "passwords"))
    }

    @Test func `until the sweep, a cached decision is used`() {
        var bench = AuthenticatorBench()
        _ = bench.decide("required", Self.session, result: AuthenticatorBench.verified())
        bench.authenticator.note(.ended([7]), nil, at: bench.time)
        let decided = bench.decide("required", Self.session)
        #expect(decided == Self.authorized)
    }

    // MARK: Caches

    @Test func `rejecting sessions drops what is cached, accepting them again does not`() {
        var bench = AuthenticatorBench()
        _ = bench.decide("required", Self.token, result: AuthenticatorBench.verified())
        bench.authenticator.rejectSessions(false)
        let kept = [bench.authenticator.decisionCount, bench.authenticator.principals.count]
        bench.authenticator.rejectSessions(true)
        let dropped = [bench.authenticator.decisionCount, bench.authenticator.principals.count]
        let epoch = bench.authenticator.epoch
        #expect(kept == [1, 1] && dropped == [0, 0] && epoch == 0)
    }

    @Test func `decisions of several credentials are removed at the same time`() {
        var bench = AuthenticatorBench()
        for number in UInt64(1)...5 {
            _ = bench.decide(
                "required", "Bearer t-\(number)", result: AuthenticatorBench.verified(revocationID: number % 3))
        }
        bench.authenticator.removeDecisions(of: [])
        let all = bench.authenticator.decisionCount
        bench.authenticator.removeDecisions(of: [1, 2, 9])
        let count = bench.authenticator.decisionCount
        let third = bench.decide("required", "Bearer t-3")
        #expect(all == 5 && count == 1 && third == Self.authorized)
    }

    @Test func `the token of a cached decision is returned for its own credential alone`() {
        var bench = AuthenticatorBench()
        var credential = CredentialState()
        _ = bench.decide("required", Self.session, &credential, result: AuthenticatorBench.verified())
        let index = credential.decision
        let own = unsafe bench.authenticator.token(ofDecision: index, for: 7).map { unsafe Array($0) }
        let another = unsafe bench.authenticator.token(ofDecision: index, for: 8).map { unsafe Array($0) }
        let none = unsafe bench.authenticator.token(ofDecision: -1, for: 7).map { unsafe Array($0) }
        bench.authenticator.clearCaches()
        let cleared = unsafe bench.authenticator.token(ofDecision: index, for: 7).map { unsafe Array($0) }
        #expect(own == Array("mat_1".utf8) && another == nil && none == nil && cleared == nil)
    }
}
